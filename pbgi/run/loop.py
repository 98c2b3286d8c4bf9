"""One call that runs a whole search: `minimize(fun, space, budget=...)`."""

import inspect
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.cost import Cost, KnownCost, LearnedCost, UniformCost
from pbgi.errors import BrokenFunctionError, InvalidInputError
from pbgi.gp.config import GPConfig
from pbgi.history import Trial, TrialState, check_cost
from pbgi.model import ModelKind
from pbgi.optimizer import Optimizer
from pbgi.parameter import Parameter
from pbgi.plain import Value
from pbgi.policy import Policy
from pbgi.run.evaluation import Function, NoValueError, Outcome, Threads, cost_in, evaluate, value_and_cost
from pbgi.run.progress import Progress
from pbgi.run.result import Result, result_of
from pbgi.space import Space
from pbgi.stopping import StopReason, StopRule

Params = Mapping[str, Value]

LEAST_SECONDS = 1e-9  # a cost is positive, however fast the function
# Where suggesting takes so many times longer than the function, a budget of measured seconds is hardly what was meant.
OVERHEAD, OVERHEAD_TRIALS = 20.0, 50
# Seconds: a signal that comes in the moment before a thread goes to sleep is noticed when it wakes up.
LOOK_UP = 0.5
# After a success the function is not broken everywhere: so many times as many failures in a row end a run.
LATER_FAILURES = 10


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
    callbacks: Sequence[Callable[[Optimizer, Trial], None]] = (),
    x0: Iterable[Params | tuple[Params, float] | tuple[Params, float, float]] = (),
    progress: bool = False,
    max_failures: int | None = 5,
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
        callbacks: Called with the optimizer and the trial whenever a trial ends.
        x0: Points to begin with: parameters to try first, or (params, value) or (params, value, cost) already known.
        progress: Show what is spent, the best value and how many trials are expected to fit, on stderr.
        max_failures: So many failures before the first success raise the error of the last, and ten times as many in a
            row after it end the run; None to go on whatever happens.

    Returns:
        The result; after Ctrl-C, `sys.exit` in the function or an error in a callback or a price, what there is by
        then. Trials that run on are not waited for; they are charged what they have used.

    Raises:
        BrokenFunctionError: The first `max_failures` trials failed.
        InvalidInputError: An argument breaks its rule, or the function returned no value before the first success.
    """
    if not callable(fun):
        raise InvalidInputError(f"fun must be callable, a function of a dict of parameters; got {fun!r}")
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
    most_failures = None if max_failures is None else require_count("max_failures", max_failures)
    first = _known_points(optimizer, x0)
    workers = executor if executor is not None or n_workers == 1 else Threads()
    shown = Progress(sys.stderr if progress else None)
    has_own_unit = isinstance(cost, KnownCost | UniformCost)
    run = _Run(optimizer, fun, has_own_unit, callbacks, shown, first, most_failures)
    try:
        reason = run.until_stopped(workers, n_workers)
    finally:
        shown.close()
    return result_of(optimizer, reason, run.last_error)


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


@dataclass(frozen=True)
class _Evaluation:
    """A trial under way, since when, and the future of its outcome where a worker runs it."""

    trial: Trial
    begun: float
    future: Future[Outcome] | None = None


class _EndedError(Exception):
    """There is a reason to end the run, beyond the rules of the optimizer."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.message)
        self.reason = reason


class _Run:
    """One search under way."""

    def __init__(
        self,
        optimizer: Optimizer,
        fun: Function,
        has_own_unit: bool,
        callbacks: Sequence[Callable[[Optimizer, Trial], None]],
        shown: Progress,
        first: list[dict[str, Value]],
        max_failures: int | None,
    ) -> None:
        self._optimizer, self._fun, self._has_own_unit = optimizer, fun, has_own_unit
        self._callbacks, self._shown, self._first = callbacks, shown, first
        self._max_failures, self._n_succeeded, self._n_failed_in_a_row = max_failures, 0, 0
        self._running: dict[int, _Evaluation] = {}
        self._missing: NoValueError | None = None
        self.last_error: str | None = None
        self._started, self._told_of_overhead = time.perf_counter(), False

    def until_stopped(self, workers: Executor | None, n_workers: int) -> StopReason | None:
        """Run until there is a reason to stop; None if it was interrupted.

        What goes wrong on the way is raised while there is nothing to lose. Later it ends the run with what there is.
        """
        try:
            return self._alone() if workers is None else self._together(workers, n_workers)
        except _EndedError as ended:
            self._leave_running(ended.reason.message)
            return ended.reason
        except KeyboardInterrupt:
            self._leave_running("interrupted")
            return None
        except Exception as error:
            if not self._n_succeeded:
                raise
            why = f"{type(error).__name__}: {error}"
            self._leave_running(why)
            _warn(f"the search ended early, with what there is:\n{traceback.format_exc()}")
            return StopReason("Error", f"the search ended early: {why}")

    def _alone(self) -> StopReason:
        while (reason := self._optimizer.should_stop()) is None:
            trial = self._ask()
            self._running[trial.number] = _Evaluation(trial, time.perf_counter())
            self._finish(trial, evaluate(self._fun, dict(trial.params)))
        return reason

    def _together(self, workers: Executor, n_workers: int) -> StopReason:
        """Keep all workers busy: whenever a trial ends, the next one starts."""
        while True:
            reason = None
            while len(self._running) < n_workers and (reason := self._optimizer.should_stop()) is None:
                self._start(self._ask(), workers)
            if not self._running:
                return reason or StopReason("Interrupted", "nothing was started")
            futures = {each.future: each.trial for each in self._running.values() if each.future is not None}
            done: set[Future[Outcome]] = set()
            while not done:
                done, _ = wait(futures, timeout=LOOK_UP, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda f: futures[f].number):
                self._finish(futures[future], _outcome(future))

    def _start(self, trial: Trial, workers: Executor) -> None:
        self._running[trial.number] = _Evaluation(trial, time.perf_counter())
        future = workers.submit(evaluate, self._fun, dict(trial.params))
        self._running[trial.number] = replace(self._running[trial.number], future=future)

    def _leave_running(self, why: str) -> None:
        """Tell what has ended meanwhile, and charge the rest: nobody waits for it."""
        for trial in self._optimizer.trials:
            if trial.state is TrialState.RUNNING:
                self._leave(trial, self._running.get(trial.number), why)
        self._running.clear()

    def _leave(self, trial: Trial, under_way: _Evaluation | None, why: str) -> None:
        future = None if under_way is None else under_way.future
        if future is not None and future.done() and not future.cancelled() and future.exception() is None:
            self._record(trial, future.result())
        elif under_way is None or (future is not None and future.cancel()):
            self._optimizer.interrupt(trial, charge=0.0, message=why)  # it never began
        else:
            seconds = time.perf_counter() - under_way.begun
            self._optimizer.interrupt(trial, cost=self._cost_of_nothing(seconds), message=why)

    def _ask(self) -> Trial:
        trial: Trial = self._optimizer.enqueue(self._first.pop(0)) if self._first else self._optimizer.ask()
        return trial

    def _finish(self, trial: Trial, outcome: Outcome) -> None:
        ended = self._record(trial, outcome)
        del self._running[trial.number]
        self._require_sense(ended, outcome)
        for callback in self._callbacks:
            callback(self._optimizer, ended)
        self._shown.update(self._optimizer)
        self._warn_of_overhead()

    def _record(self, trial: Trial, outcome: Outcome) -> Trial:
        """Tell the optimizer how a trial ended."""
        if outcome.error is not None:
            return self._fail(trial, outcome.error, outcome.seconds)
        try:
            value, cost = value_and_cost(outcome.returned)
            self._has_own_unit = self._has_own_unit or check_cost(cost) is not None
            paid = cost if self._has_own_unit else max(outcome.seconds, LEAST_SECONDS)
            ended = self._optimizer.tell(trial, value, cost=paid, charge=self._charge_without(paid, trial))
        except InvalidInputError as error:
            self._missing = error if isinstance(error, NoValueError) else None
            return self._fail(trial, str(error), outcome.seconds, cost_in(outcome.returned))
        if ended.value is None:
            self._count_failure(ended.message or "")
        else:
            self._n_succeeded, self._n_failed_in_a_row = self._n_succeeded + 1, 0
        return ended

    def _charge_without(self, cost: float | None, trial: Trial) -> float | None:
        """What a trial is charged that tells no cost where others have: what was expected."""
        if cost is not None or not isinstance(self._optimizer.settings.cost, LearnedCost | None):
            return None
        return self._optimizer.typical_cost if trial.predicted_cost is None else trial.predicted_cost

    def _fail(self, trial: Trial, message: str, seconds: float, told: Any = None) -> Trial:
        try:
            cost = check_cost(told)
        except InvalidInputError:
            cost = None
        self._has_own_unit = self._has_own_unit or cost is not None
        ended = self._optimizer.fail(trial, cost=cost or self._cost_of_nothing(seconds), message=message)
        if self.last_error is None:
            _warn(f"trial {trial.number} failed and is charged: {message}")
        self._count_failure(message)
        return ended

    def _count_failure(self, message: str) -> None:
        self.last_error, self._n_failed_in_a_row = message, self._n_failed_in_a_row + 1

    def _cost_of_nothing(self, seconds: float) -> float | None:
        """What a trial without a value costs: its seconds, or where these are not the unit, what was expected of it."""
        return None if self._has_own_unit else max(seconds, LEAST_SECONDS)

    def _require_sense(self, ended: Trial, outcome: Outcome) -> None:
        """Raise where going on makes no sense."""
        if outcome.exit_code is not None:
            if not self._n_succeeded:
                raise SystemExit(*outcome.exit_code)
            raise _EndedError(StopReason("FunctionExited", str(outcome.error)))
        if ended.value is not None:
            return
        if not self._n_succeeded and self._missing is not None:
            raise self._missing
        if self._max_failures is None:
            return
        limit = self._max_failures * (LATER_FAILURES if self._n_succeeded else 1)
        if self._n_failed_in_a_row >= limit:
            self._give_up(self._n_failed_in_a_row, outcome.where or self.last_error or "")

    def _give_up(self, n: int, where: str) -> None:
        way_out = "mend the function, or go on whatever happens with max_failures=None"
        if not self._n_succeeded:
            raise BrokenFunctionError(
                f"the first {n} trials failed, and none gave a value; {way_out}; the last:\n{where}"
            )
        raise _EndedError(StopReason("Failures", f"the last {n} trials failed; {way_out}; the last: {self.last_error}"))

    def _warn_of_overhead(self) -> None:
        spent, n = self._optimizer.spent, len(self._optimizer.trials)
        if self._has_own_unit or self._told_of_overhead or n < OVERHEAD_TRIALS:
            return
        elapsed = time.perf_counter() - self._started
        if elapsed > OVERHEAD * spent:
            self._told_of_overhead = True
            _warn(
                f"{n} trials took {spent:.2g} s of the function and {elapsed:.2g} s in all; the budget counts the "
                "first: use cost=UniformCost() to make it a number of trials"
            )


def _outcome(future: Future[Outcome]) -> Outcome:
    """What a worker brings back.

    Raises:
        KeyboardInterrupt: It was raised there.
        _EndedError: The workers could not run the function.
    """
    lost = future.exception()
    if lost is None:
        return future.result()
    if isinstance(lost, KeyboardInterrupt):
        raise lost
    # The function's own errors come back as outcomes: this is the workers'.
    raise _EndedError(
        StopReason("WorkersLost", f"the workers could not run the function: {type(lost).__name__}: {lost}")
    )


def _warn(message: str) -> None:
    """Warn at the line that called this package."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, RuntimeWarning, stacklevel=depth)
