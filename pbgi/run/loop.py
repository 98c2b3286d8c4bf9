"""A search under way: ask, evaluate, tell, until there is a reason to stop."""

import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from pbgi.checks import check_cost
from pbgi.cost import LearnedCost
from pbgi.errors import InvalidInputError, StopRun
from pbgi.history import Trial, TrialState
from pbgi.optimizer import Optimizer
from pbgi.run.checkpoint import Beginning, Checkpoint
from pbgi.run.ending import STOPPED, EndedError, Failures, stopped
from pbgi.run.evaluation import Function, Outcome, cost_in, evaluate, in_a_line, read
from pbgi.run.log import LOG, warn
from pbgi.run.progress import Progress, describe
from pbgi.run.result import Result, result_of
from pbgi.stopping import StopReason

Callback: TypeAlias = Callable[[Optimizer, Trial], bool | None]

LEAST_SECONDS = 1e-9  # a cost is positive, however fast the function
# Where suggesting takes so many times longer than the function, a budget of measured seconds is hardly what was meant.
OVERHEAD, OVERHEAD_TRIALS = 20.0, 50
# Seconds: a signal that comes in the moment before a thread goes to sleep is noticed when it wakes up.
LOOK_UP = 0.5


@runtime_checkable
class _ToldOfTheEnd(Protocol):
    """A callback that wants to know when and why the run has ended."""

    def end(self, reason: StopReason | None) -> None: ...


@dataclass(frozen=True)
class _Evaluation:
    """A trial under way, since when, and the future of its outcome where a worker runs it."""

    trial: Trial
    begun: float
    future: Future[Outcome] | None = None


class Run:
    """One search under way.

    Args:
        begun: Where it begins: the optimizer, and points to be tried first.
        fun: The function.
        callbacks: Called when a trial ends.
        shown: The line that says where it stands.
        failures: Counts failures.
        checkpoint: The file to keep the run in, if there is one.
        seconds: How long trials may be started, from now on; None for as long as it takes.
    """

    def __init__(
        self,
        begun: Beginning,
        fun: Function,
        *,
        callbacks: Sequence[Callback],
        shown: Progress,
        failures: Failures,
        checkpoint: Checkpoint | None,
        seconds: float | None,
    ) -> None:
        self._optimizer, self._fun, self._has_own_unit = begun.optimizer, fun, begun.has_own_unit
        self._again, self._points = list(begun.again), list(begun.points)
        self._callbacks, self._shown = callbacks, shown
        self._failures, self._checkpoint, self._seconds = failures, checkpoint, seconds
        self._running: dict[int, _Evaluation] = {}
        self._started, self._told_of_overhead = time.perf_counter(), False

    def result(self, workers: Executor | None, n_workers: int) -> Result:
        """Run until there is a reason to stop, and say what came of it."""
        try:
            reason = self._until_stopped(workers, n_workers)
        finally:
            self._shown.close()
        found = result_of(self._optimizer, reason, self._failures.last)
        LOG.info("the run ended: %s; %s", found.message, describe(self._optimizer))
        for callback in self._callbacks:
            if isinstance(callback, _ToldOfTheEnd):
                callback.end(reason)
        return found

    def _until_stopped(self, workers: Executor | None, n_workers: int) -> StopReason | None:
        """Run until there is a reason to stop; None if it was interrupted.

        What goes wrong on the way is raised while there is nothing to lose. Later it ends the run with what there is.
        """
        try:
            self._save()
            return self._alone() if workers is None else self._together(workers, n_workers)
        except EndedError as ended:
            self._leave_running(ended.reason.message)
            return ended.reason
        except KeyboardInterrupt:
            self._leave_running("interrupted")
            return None
        except SystemExit:
            raise
        except BaseException as error:  # among them cancellations, which are no Exception
            if not self._failures.n_succeeded:
                raise
            why = in_a_line(error)
            self._leave_running(why)
            warn(f"the search ended early, with what there is:\n{traceback.format_exc()}")
            return StopReason("Error", f"the search ended early: {why}")

    def _alone(self) -> StopReason:
        while (reason := self._reason_to_stop()) is None:
            trial = self._ask()
            self._save()
            self._running[trial.number] = _Evaluation(trial, time.perf_counter())
            self._finish(trial, evaluate(self._fun, dict(trial.params)))
        return reason

    def _together(self, workers: Executor, n_workers: int) -> StopReason:
        """Keep all workers busy: whenever a trial ends, the next one starts."""
        while True:
            reason = None
            while len(self._running) < n_workers and (reason := self._reason_to_stop()) is None:
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
        self._save()
        self._running[trial.number] = _Evaluation(trial, time.perf_counter())
        future = workers.submit(evaluate, self._fun, dict(trial.params))
        self._running[trial.number] = replace(self._running[trial.number], future=future)

    def _reason_to_stop(self) -> StopReason | None:
        """What the clock says before and after the next point is chosen, which may take a while, and the rules."""
        return self._out_of_time() or self._optimizer.should_stop() or self._out_of_time()

    def _out_of_time(self) -> StopReason | None:
        elapsed = time.perf_counter() - self._started
        if self._seconds is None or elapsed < self._seconds:
            return None
        return StopReason("Seconds", f"Reached the limit of {self._seconds:g} seconds", {"seconds": elapsed})

    def _save(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.save(self._optimizer, self._points, self._has_own_unit)

    def _leave_running(self, why: str) -> None:
        """Tell what has ended meanwhile, and charge the rest: nobody waits for it."""
        for trial in self._optimizer.trials:
            if trial.state is TrialState.RUNNING:
                self._leave(trial, self._running.get(trial.number), why)
        self._running.clear()
        try:
            self._save()
        except OSError as error:
            warn(f"the end of the run could not be written: {error}")

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
        while self._again:
            trial = self._again.pop(0)
            remaining = self._optimizer.remaining
            if remaining is None or (trial.predicted_cost or 0.0) <= remaining:
                return self._take_up(trial)
        if self._points:
            enqueued = self._optimizer.enqueue(self._points[0])
            del self._points[0]
            return enqueued
        return self._optimizer.ask()

    def _take_up(self, trial: Trial) -> Trial:
        """The point of an interrupted trial once more, with what was expected and noted of it."""
        optimizer = self._optimizer
        again = Trial(
            len(optimizer.trials),
            trial.params,
            TrialState.RUNNING,
            predicted_cost=trial.predicted_cost,
            record=trial.record,
        )
        trials = (*optimizer.trials, again)
        self._optimizer = Optimizer.of(optimizer.space, optimizer.direction, optimizer.settings, trials)
        return again

    def _finish(self, trial: Trial, outcome: Outcome) -> None:
        ended = self._record(trial, outcome)
        del self._running[trial.number]
        self._save()
        self._shown.update(self._optimizer)
        LOG.info("trial %d %s: %s", ended.number, ended.state.value, describe(self._optimizer))
        self._failures.require_sense(ended, outcome)
        self._call_back(ended)
        self._warn_of_overhead()

    def _call_back(self, ended: Trial) -> None:
        """Call all callbacks; one of them may say that this is enough."""
        try:
            said = [callback(self._optimizer, ended) for callback in self._callbacks]
        except StopRun as stop:
            raise stopped(str(stop)) from None
        if any(isinstance(each, bool | np.bool_) and each for each in said):
            raise stopped(STOPPED)

    def _record(self, trial: Trial, outcome: Outcome) -> Trial:
        """Tell the optimizer how a trial ended."""
        if outcome.stopped is not None:
            message = outcome.stopped or STOPPED
            return self._optimizer.interrupt(trial, cost=self._cost_of_nothing(outcome.seconds), message=message)
        if outcome.error is not None:
            return self._fail(trial, outcome.error, outcome)
        try:
            value, cost, outcomes = read(outcome.returned, self._optimizer.settings.constraints or {})
            self._has_own_unit = self._has_own_unit or check_cost(cost) is not None
            paid = cost if self._has_own_unit else max(outcome.seconds, LEAST_SECONDS)
            charge = self._charge_without(paid, trial)
            ended = self._optimizer.tell(trial, value, cost=paid, charge=charge, constraints=outcomes)
        except InvalidInputError as error:
            return self._fail(trial, str(error), outcome, error)
        if ended.value is None:
            self._failures.no_number(ended)
        else:
            self._failures.success()
        return ended

    def _charge_without(self, cost: float | None, trial: Trial) -> float | None:
        """What a trial is charged that tells no cost where others have: what was expected."""
        if cost is not None or not isinstance(self._optimizer.settings.cost, LearnedCost | None):
            return None
        return self._optimizer.typical_cost if trial.predicted_cost is None else trial.predicted_cost

    def _fail(self, trial: Trial, message: str, outcome: Outcome, error: Exception | None = None) -> Trial:
        try:
            cost = check_cost(cost_in(outcome.returned))
        except InvalidInputError:
            cost = None
        self._has_own_unit = self._has_own_unit or cost is not None
        paid = cost or self._cost_of_nothing(outcome.seconds)
        ended = self._optimizer.fail(trial, cost=paid, message=message)
        self._failures.failure(trial, message, outcome, error)
        return ended

    def _cost_of_nothing(self, seconds: float) -> float | None:
        """What a trial without a value costs: its seconds, or where these are not the unit, what was expected of it."""
        return None if self._has_own_unit else max(seconds, LEAST_SECONDS)

    def _warn_of_overhead(self) -> None:
        spent, n = self._optimizer.spent, len(self._optimizer.trials)
        if self._has_own_unit or self._told_of_overhead or n < OVERHEAD_TRIALS:
            return
        elapsed = time.perf_counter() - self._started
        if elapsed > OVERHEAD * spent:
            self._told_of_overhead = True
            warn(
                f"{n} trials took {spent:.2g} s of the function and {elapsed:.2g} s in all; the budget counts the "
                "first: use cost=UniformCost() to make it a number of trials"
            )


def _outcome(future: Future[Outcome]) -> Outcome:
    """What a worker brings back.

    Raises:
        KeyboardInterrupt: It was raised there.
        EndedError: The workers could not run the function.
    """
    lost = future.exception()
    if lost is None:
        return future.result()
    if isinstance(lost, KeyboardInterrupt):
        raise lost
    # The function's own errors come back as outcomes: this is the workers'.
    raise EndedError(StopReason("WorkersLost", f"the workers could not run the function: {in_a_line(lost)}"))
