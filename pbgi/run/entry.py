"""One call that runs a whole search: `minimize(fun, space, budget=...)`, and `maximize`."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import ParamSpec

from pbgi.checks import refuse_unknown_arguments, require_count, require_positive
from pbgi.constraints.constraint import Constraints
from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig
from pbgi.history import TrialState
from pbgi.model import ModelKind
from pbgi.optimizer import Optimizer
from pbgi.parameter import Parameter
from pbgi.policy import Policy
from pbgi.run.checkpoint import Beginning, Checkpoint
from pbgi.run.ending import Failures
from pbgi.run.evaluation import Function, Threads, require_function
from pbgi.run.file_lock import held
from pbgi.run.loop import Callback, Run
from pbgi.run.progress import Progress
from pbgi.run.result import Result
from pbgi.run.starting_points import StartingPoint, read_points, tell_known
from pbgi.serialization import Value
from pbgi.space import Space
from pbgi.stopping import StopRule

P = ParamSpec("P")


@refuse_unknown_arguments
def minimize(
    fun: Function,
    space: Space | Mapping[str, Parameter | Value],
    *,
    budget: float | None = None,
    direction: str = "minimize",
    cost: Cost | None = None,
    policy: Policy | None = None,
    stop: StopRule | None = None,
    model: GPConfig | ModelKind | None = None,
    n_startup_trials: int | None = None,
    seed: int | None = None,
    n_workers: int = 1,
    executor: Executor | None = None,
    callbacks: Sequence[Callback] = (),
    x0: Iterable[StartingPoint] = (),
    progress: bool = False,
    max_failures: int | None = 5,
    seconds: float | None = None,
    resume: str | os.PathLike[str] | None = None,
    constraints: Constraints | None = None,
) -> Result:
    """Minimize a function within a budget.

    Args:
        fun: Takes a dict of parameters; returns the value, `(value, cost)` or `{"value": ..., "cost": ...}`. Where no
            cost is reported it is the measured seconds, unless `cost` says what a trial costs. An exception fails the
            trial, which is charged, and the search goes on.
        space: Names to `Float`, `Integer`, `Categorical` or fixed values.
        budget: What may be spent, in the unit of the costs.
        direction: "minimize" or "maximize".
        cost: See `Optimizer`.
        policy: See `Optimizer`.
        stop: See `Optimizer`.
        model: See `Optimizer`.
        n_startup_trials: See `Optimizer`.
        seed: See `Optimizer`.
        n_workers: Threads that run `fun` at the same time; a new trial starts the moment one ends.
        executor: Runs `fun` instead, `n_workers` at a time, e.g. a ProcessPoolExecutor.
        callbacks: Called with the optimizer and the trial whenever a trial ends. One that returns True, or raises
            `StopRun`, ends the run with what there is. A method `end` of a callback is called once with the reason why
            the run ended, None after Ctrl-C.
        x0: Points to begin with: parameters to try first, or (params, value) or (params, value, cost) already known.
        progress: Show what is spent, the best value and how many trials are expected to fit, on stderr.
        max_failures: So many failures before the first success raise the error of the last, and ten times as many in a
            row after it end the run; None to go on whatever happens.
        seconds: How long this call may start trials, in seconds of the clock on the wall. Those that run then end.
        resume: A file in which the run is kept, written before and after every trial. If it exists, the run goes on
            from there as if it had never stopped; it must have been written with the same arguments, but for when to
            stop. A trial that was running when the program was killed is charged what was expected of it, and its
            point is tried again.
        constraints: Names of outcomes with the conditions that they must keep, `AtMost(limit)` or `AtLeast(limit)`; the
            function returns the outcomes beside the value, `{"value": ..., "latency_ms": ...}`.

    Returns:
        The result; after Ctrl-C, `StopRun` or `sys.exit` in the function or an error in a callback or a price, what
        there is by then. Trials that run on are not waited for; they are charged what they have used.

    Raises:
        BrokenFunctionError: The first `max_failures` trials failed.
        InvalidInputError: An argument breaks its rule, or the function returned no value before the first success.
    """
    require_function(fun)
    called = _functions(callbacks)
    optimizer = Optimizer(
        space,
        budget=budget,
        direction=direction,
        cost=cost,
        policy=policy,
        stop=stop,
        model=model,
        n_startup_trials=n_startup_trials,
        seed=seed,
        constraints=constraints,
        max_failures=None,  # counted where the traceback is known
    )
    _require_executor(executor)
    limit = None if seconds is None else require_positive("seconds", seconds)
    if optimizer.endless and limit is None:
        raise InvalidInputError(
            "a search must end: give budget=..., seconds=..., stop=MaxTrials(n) or policy=PBGI(cost_scale=...); "
            "got none of them"
        )
    require_count("n_workers", n_workers)
    most_failures = None if max_failures is None else require_count("max_failures", max_failures)
    points = read_points(optimizer.space, x0)
    checkpoint = None if resume is None else Checkpoint(_file(resume), [point.to_plain() for point in points])
    given = [name for name, value in (("n_startup_trials", n_startup_trials), ("seed", seed)) if value is not None]
    shown = Progress(sys.stderr if progress else None)
    with nullcontext() if checkpoint is None else held(checkpoint.path):
        begun = None if checkpoint is None else checkpoint.load(optimizer, given)
        if begun is None:
            begun = Beginning(optimizer, tell_known(optimizer, points), isinstance(cost, KnownCost | UniformCost), [])
        run = Run(
            begun,
            fun,
            callbacks=called,
            shown=shown,
            failures=Failures(most_failures, _n_succeeded(begun.optimizer)),
            checkpoint=checkpoint,
            seconds=limit,
        )
        return run.result(executor if executor is not None or n_workers == 1 else Threads(), n_workers)


def _maximizing(run: Callable[P, Result]) -> Callable[P, Result]:
    """The same call with its arguments, but for the direction, which is the other one."""

    @wraps(run)
    def maximize(*args: P.args, **kwargs: P.kwargs) -> Result:
        kwargs["direction"] = "maximize"
        return run(*args, **kwargs)

    maximize.__name__ = maximize.__qualname__ = "maximize"
    maximize.__doc__ = 'Maximize a function within a budget: `minimize` with `direction="maximize"`, else as there.'
    own = signature(run)
    arguments = [argument for name, argument in own.parameters.items() if name != "direction"]
    maximize.__signature__ = own.replace(parameters=arguments)  # type: ignore[attr-defined]
    return refuse_unknown_arguments(maximize)


maximize = _maximizing(minimize)
"""Maximize a function within a budget: `minimize` with `direction="maximize"`, and its other arguments."""


def _functions(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    called = tuple(callbacks) if isinstance(callbacks, Iterable) else (None,)
    if not all(callable(callback) for callback in called):
        rule = "callbacks must be a list of functions of an optimizer and a trial"
        raise InvalidInputError(f"{rule}; got {callbacks!r}; write callbacks=[function]")
    return called


def _file(resume: str | os.PathLike[str]) -> Path:
    try:
        name = os.fsencode(resume)
    except (TypeError, UnicodeEncodeError):
        name = b""
    if not name or b"\0" in name or Path(os.fsdecode(name)).is_dir():
        raise InvalidInputError(f"resume must be the name of a file; got {resume!r}")
    # Absolute, since the function may change the folder it runs in; and whatever links lead there, one run at a time.
    return Path(os.fsdecode(name)).resolve()


def _require_executor(executor: object) -> None:
    if executor is not None and not isinstance(executor, Executor):
        raise InvalidInputError(f"executor must be None or a concurrent.futures.Executor; got {executor!r}")


def _n_succeeded(optimizer: Optimizer) -> int:
    return sum(trial.state is TrialState.COMPLETE and not trial.external for trial in optimizer.trials)
