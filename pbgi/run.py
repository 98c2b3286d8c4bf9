"""One call that runs a whole search: `minimize(fun, space, budget=...)`."""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TextIO

import numpy as np

from pbgi.arguments import refuse_unknown_arguments
from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig
from pbgi.history import Trial
from pbgi.model import ModelKind
from pbgi.optimizer import Optimizer
from pbgi.parameter import Parameter
from pbgi.plain import Value, require_count
from pbgi.policy import Policy
from pbgi.prediction import Recommendation
from pbgi.space import Space
from pbgi.stopping import StopReason, StopRule

Params = Mapping[str, Value]

LEAST_SECONDS = 1e-9  # a cost is positive, however fast the function
# Where suggesting takes so many times longer than the function, a budget of measured seconds is hardly what was meant.
OVERHEAD, OVERHEAD_TRIALS = 20.0, 50


@dataclass(frozen=True, eq=False)
class Result:
    """What a search found.

    Attributes:
        params: The best parameters; None if no trial succeeded.
        fun: Their value.
        nfev: How many trials were run.
        success: Whether there is a value at all.
        message: Why it ended, in words.
        spent: What was charged.
        stop_reason: Why it ended; None if it was interrupted.
        trials: Every trial.
    """

    params: dict[str, Value] | None
    fun: float | None
    nfev: int
    success: bool
    message: str
    spent: float
    stop_reason: StopReason | None
    trials: tuple[Trial, ...] = field(repr=False)
    optimizer: Optimizer = field(repr=False)

    @property
    def recommended(self) -> Recommendation | None:
        """The trial to go with where values are noisy; without noise the best one, see `Optimizer.recommended`."""
        return self.optimizer.recommended

    def to_dataframe(self) -> Any:
        """The trials as a pandas DataFrame, a column per parameter; needs pandas."""
        import pandas as pd

        columns = ("number", "state", "value", "cost", "predicted_cost", "external", "message")
        return pd.DataFrame([{**t.params, **{name: getattr(t, name) for name in columns}} for t in self.trials])


class _Outcome(NamedTuple):
    """What a worker brings back."""

    returned: Any
    seconds: float
    error: str | None


@refuse_unknown_arguments
def minimize(
    fun: Callable[[dict[str, Value]], Any],
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
    callbacks: Sequence[Callable[[Optimizer, Trial], None]] = (),
    x0: Iterable[Params | tuple[Params, float] | tuple[Params, float, float]] = (),
    progress: bool = False,
) -> Result:
    """Minimise a function within a budget.

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
        callbacks: Called with the optimizer and the trial whenever a trial ends.
        x0: Points to begin with: parameters to try first, or (params, value) or (params, value, cost) already known.
        progress: Show what is spent, the best value and how many trials are expected to fit, on stderr.

    Returns:
        The result; after Ctrl-C, what there is by then.
    """
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
    )
    if optimizer.endless:
        raise InvalidInputError(
            "a search must end: give budget=..., stop=MaxTrials(n) or policy=PBGI(cost_scale=...); got none of them"
        )
    require_count("n_workers", n_workers)
    first = _known_points(optimizer, x0)
    shown = _Progress(sys.stderr if progress else None)
    run = _Run(optimizer, fun, isinstance(cost, KnownCost | UniformCost), callbacks, shown, first)
    reason: StopReason | None = None
    try:
        if executor is None and n_workers == 1:
            reason = run.alone()
        else:
            with ThreadPoolExecutor(n_workers) if executor is None else nullcontext(executor) as workers:
                reason = run.together(workers, n_workers)
    except KeyboardInterrupt:
        pass
    finally:
        shown.close()
    return _result(optimizer, reason, run.last_error)


def _known_points(optimizer: Optimizer, x0: Iterable[Any]) -> list[dict[str, Value]]:
    """Tell what is known already; return what is to be tried first."""
    first = []
    for point in x0:
        if isinstance(point, Mapping):
            first.append(optimizer.space.check(point))
        elif isinstance(point, tuple) and len(point) in (2, 3):
            optimizer.tell(point[0], point[1], cost=point[2] if len(point) == 3 else None)
        else:
            raise InvalidInputError(f"x0 must hold params, (params, value) or (params, value, cost); got {point!r}")
    return first


class _Run:
    """One search under way."""

    def __init__(
        self,
        optimizer: Optimizer,
        fun: Callable[[dict[str, Value]], Any],
        has_own_unit: bool,
        callbacks: Sequence[Callable[[Optimizer, Trial], None]],
        shown: "_Progress",
        first: list[dict[str, Value]],
    ) -> None:
        self._optimizer, self._fun, self._has_own_unit = optimizer, fun, has_own_unit
        self._callbacks, self._shown, self._first = callbacks, shown, first
        self.last_error: str | None = None
        self._started, self._told_of_overhead = time.perf_counter(), False

    def alone(self) -> StopReason:
        while (reason := self._optimizer.should_stop()) is None:
            trial = self._ask()
            self._finish(trial, _timed(self._fun, dict(trial.params)))
        return reason

    def together(self, workers: Executor, n_workers: int) -> StopReason:
        """Keep all workers busy: whenever a trial ends, the next one starts."""
        running: dict[Future[_Outcome], Trial] = {}
        while True:
            reason = None
            while len(running) < n_workers and (reason := self._optimizer.should_stop()) is None:
                trial = self._ask()
                running[workers.submit(_timed, self._fun, dict(trial.params))] = trial
            if not running:
                return reason or StopReason("Interrupted", "nothing was started")
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda f: running[f].number):
                lost = future.exception()
                if lost is not None:  # the function's own errors come back as outcomes: this is the workers'
                    return self._give_up(running, f"{type(lost).__name__}: {lost}")
                self._finish(running.pop(future), future.result())

    def _give_up(self, running: dict[Future[_Outcome], Trial], why: str) -> StopReason:
        for trial in running.values():
            self._optimizer.fail(trial, cost=None if self._has_own_unit else LEAST_SECONDS, message=why)
        self.last_error = why
        return StopReason("WorkersLost", f"the workers could not run the function: {why}")

    def _ask(self) -> Trial:
        trial: Trial = self._optimizer.enqueue(self._first.pop(0)) if self._first else self._optimizer.ask()
        return trial

    def _finish(self, trial: Trial, outcome: _Outcome) -> None:
        try:
            if outcome.error is not None:
                raise _FailedError(outcome.error)
            value, cost = _read(outcome.returned)
            self._has_own_unit = self._has_own_unit or cost is not None
            paid = cost if self._has_own_unit else max(outcome.seconds, LEAST_SECONDS)
            ended = self._optimizer.tell(trial, value, cost=paid)
        except (_FailedError, InvalidInputError) as error:
            ended = self._fail(trial, str(error), outcome.seconds)
        for callback in self._callbacks:
            callback(self._optimizer, ended)
        self._shown.update(self._optimizer)
        self._warn_of_overhead()

    def _warn_of_overhead(self) -> None:
        spent, n = self._optimizer.spent, len(self._optimizer.trials)
        if self._has_own_unit or self._told_of_overhead or n < OVERHEAD_TRIALS:
            return
        elapsed = time.perf_counter() - self._started
        if elapsed > OVERHEAD * spent:
            self._told_of_overhead = True
            warnings.warn(
                f"{n} trials took {spent:.2g} s of the function and {elapsed:.2g} s in all; the budget counts the "
                "first: use cost=UniformCost() to make it a number of trials",
                RuntimeWarning,
                stacklevel=5,
            )

    def _fail(self, trial: Trial, message: str, seconds: float) -> Trial:
        if self.last_error is None:
            warnings.warn(f"trial {trial.number} failed and is charged: {message}", RuntimeWarning, stacklevel=5)
        self.last_error = message
        # Where the function reports costs in a unit of its own, seconds are not one: the expected cost is charged.
        cost = None if self._has_own_unit else max(seconds, LEAST_SECONDS)
        return self._optimizer.fail(trial, cost=cost, message=message)


class _FailedError(Exception):
    """The function raised."""


def _timed(fun: Callable[[dict[str, Value]], Any], params: dict[str, Value]) -> _Outcome:
    """Run the function where the worker is; what it raises comes back as text, since not every error can travel."""
    start = time.perf_counter()
    try:
        returned, error = fun(params), None
    except Exception as raised:
        returned, error = None, f"{type(raised).__name__}: {raised}"
    return _Outcome(returned, time.perf_counter() - start, error)


def _read(returned: Any) -> tuple[Any, float | None]:
    """Value and cost from what the function returned."""
    if isinstance(returned, Mapping):
        unknown = sorted(set(returned) - {"value", "cost"})
        if "value" not in returned or unknown:
            raise InvalidInputError(f"a returned mapping must have 'value' and may have 'cost'; got {sorted(returned)}")
        return returned["value"], returned.get("cost")
    if isinstance(returned, tuple):
        if len(returned) != 2:
            raise InvalidInputError(f"a returned tuple must be (value, cost); got {returned!r}")
        return returned
    return returned, None


def _result(optimizer: Optimizer, reason: StopReason | None, last_error: str | None) -> Result:
    best = optimizer.best
    message = "interrupted" if reason is None else reason.message
    if best is None and last_error is not None:
        message += f"; no trial succeeded, the last error was: {last_error}"
    return Result(
        params=None if best is None else dict(best.params),
        fun=None if best is None else best.value,
        nfev=sum(not trial.external for trial in optimizer.trials),
        success=best is not None,
        message=message,
        spent=optimizer.spent,
        stop_reason=reason,
        trials=optimizer.trials,
        optimizer=optimizer,
    )


class _Progress:
    """One line that is written over: what is spent, the best value, and how many trials are expected to fit."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._width = stream, 0

    def update(self, optimizer: Optimizer) -> None:
        if self._stream is None:
            return
        line = describe(optimizer)
        self._width = max(self._width, len(line))
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()

    def close(self) -> None:
        if self._stream is not None and self._width:
            self._stream.write("\n")


def describe(optimizer: Optimizer) -> str:
    """Where a run stands, in one line."""
    best = "none yet" if optimizer.best is None else f"{optimizer.best.value:.6g}"
    if optimizer.budget is None:
        return f"{len(optimizer.trials)} trials, spent {optimizer.spent:.4g}, best {best}"
    done = min(optimizer.spent / optimizer.budget, 1.0)
    bar = "#" * round(20 * done)
    paid = [t.charged for t in optimizer.trials if t.charged > 0]
    left = optimizer.remaining or 0.0
    # The latest trials say best what the next ones will cost: the search has gone where it pays.
    n_left = "?" if not paid else f"{math.floor(left / float(np.mean(paid[-10:])))}"
    return (
        f"[{bar:<20}] {optimizer.spent:.4g} of {optimizer.budget:.4g} spent, best {best}, "
        f"{len(optimizer.trials)} trials, about {n_left} left"
    )
