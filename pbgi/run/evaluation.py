"""Calling the user's function: where it runs, how long it takes, and what it returns or raises."""

import inspect
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from pbgi.errors import InvalidInputError, StopRun
from pbgi.serialization import Value

Function = Callable[[dict[str, Value]], Any]


class NoValueError(InvalidInputError):
    """The function returned no value, or not all outcomes: a `return` is missing, say. No other point will mend it."""


class Outcome(NamedTuple):
    """What a worker brings back.

    Attributes:
        returned: What the function returned.
        seconds: How long it took.
        error: What it raised, in a line; None if nothing.
        where: The traceback of that, from the function on.
        line: The line of the function where that happened, with its file and number.
        exit_code: What it gave to `sys.exit`, in a tuple; None if it did not call it.
        stopped: What it gave to `StopRun`; None if it did not raise it.
    """

    returned: Any
    seconds: float
    error: str | None = None
    where: str = ""
    line: str | None = None
    exit_code: tuple[Any] | None = None
    stopped: str | None = None


def require_function(fun: Any) -> None:
    """Refuse what gives no value, whatever it is called with.

    Raises:
        InvalidInputError: It cannot be called with one argument, or calling it does not run it.
    """
    if not callable(fun):
        raise InvalidInputError(f"fun must be callable, a function of a dict of parameters; got {fun!r}")
    own = (fun, getattr(fun, "__call__", None))  # noqa: B004 (an object's call may be one of these as well)
    if any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in own):
        way_out = "write lambda params: asyncio.run(fun(params))"
        raise InvalidInputError(
            f"fun must return a value; got {fun!r}, which is async, so a call returns none; {way_out}"
        )
    if any(inspect.isgeneratorfunction(f) for f in own):
        raise InvalidInputError(f"fun must return a value; got {fun!r}, a generator; write return instead of yield")
    try:  # a wrapper may take other arguments than what it wraps
        parameters = inspect.signature(fun, follow_wrapped=False)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        parameters.bind({})
    except TypeError:
        rule = "fun must take one argument, a dict of parameters"
        way_out = "write lambda params: fun(**params)"
        raise InvalidInputError(f"{rule}; got {fun!r} with {parameters}; {way_out}") from None


def evaluate(fun: Function, params: dict[str, Value]) -> Outcome:
    """Run the function where the worker is; what it raises comes back as text, since not every error can travel."""
    start = time.perf_counter()
    try:
        returned = fun(params)
    except SystemExit as exit_:
        error = f"the function called sys.exit({exit_.code!r})"
        return Outcome(None, time.perf_counter() - start, error, exit_code=(exit_.code,))
    except StopRun as stop:
        return Outcome(None, time.perf_counter() - start, stopped=str(stop))
    except Exception as raised:
        below = None if raised.__traceback__ is None else raised.__traceback__.tb_next  # without this function
        where = "".join(traceback.format_exception(type(raised), raised, below))
        return Outcome(None, time.perf_counter() - start, in_a_line(raised), where, _line(below))
    return Outcome(returned, time.perf_counter() - start)


def in_a_line(error: BaseException) -> str:
    """The kind of an error and what it says, if it can say anything: users write these classes."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which cannot be shown as text"


def _line(below: TracebackType | None) -> str | None:
    """Where the function itself stood when something was raised, however deep that was."""
    frames = traceback.extract_tb(below, limit=1)
    if not frames:  # it could not even be called
        return None
    shown = f": {frames[0].line}" if frames[0].line else ""
    return f"{Path(frames[0].filename).name}, line {frames[0].lineno}{shown}"


class Read(NamedTuple):
    """What the function returned, taken apart: a cost may be None; outcomes are by the names of the conditions."""

    value: Any
    cost: Any
    outcomes: dict[str, Any]


def read(returned: Any, names: Collection[str] = ()) -> Read:
    """Value, cost and outcomes from what the function returned.

    Args:
        returned: A value, `(value, cost)`, or a mapping with "value", perhaps "cost", and the outcomes.
        names: Of the outcomes that conditions are about.

    Raises:
        NoValueError: There is no value in it, or an outcome is missing.
        InvalidInputError: It is something else.
    """
    value, cost, outcomes = returned, None, dict[str, Any]()
    if isinstance(returned, Mapping):
        unknown = sorted(set(returned) - {"value", "cost", *names}, key=str)
        if "value" not in returned or unknown:
            rule = "a returned mapping must have 'value' and may have 'cost'"
            others = f", and the outcomes {', '.join(map(repr, names))}" if names else ""
            raise InvalidInputError(f"{rule}{others}; got {list(returned)}")
        value, cost = returned["value"], returned.get("cost")
        outcomes = {name: returned[name] for name in names if returned.get(name) is not None}
    elif isinstance(returned, tuple):
        if len(returned) != 2:
            raise InvalidInputError(f"a returned tuple must be (value, cost); got {returned!r}")
        value, cost = returned
    if value is None:
        rule = "the function must return a value, (value, cost) or {'value': ..., 'cost': ...}"
        raise NoValueError(f"{rule}; got {returned!r}: the value is missing; is there a `return`?")
    missing = [name for name in names if name not in outcomes]
    if missing:
        wanted = ", ".join(f"{name!r}: ..." for name in ("value", *names))
        raise NoValueError(
            f"the function must return {{{wanted}}}; got {returned!r}: the outcome {missing[0]!r}, which a condition "
            "is about, is missing"
        )
    return Read(value, cost, outcomes)


def cost_in(returned: Any) -> Any:
    """The cost in what the function returned, whatever the value is; None if there is none."""
    if isinstance(returned, Mapping):
        return returned.get("cost")
    return returned[1] if isinstance(returned, tuple) and len(returned) == 2 else None


class Threads(Executor):
    """A thread for every call. Nobody waits for one that was left behind, also not at the end of the program."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function in a thread of its own."""
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # whoever asks for the result gets it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future
