"""`pbgi tune`: ask, run, tell, until the budget is spent or a rule says stop.

One thread talks to the storage and the terminal. Commands run beside it, `parallel` at a time, each watched by a thread
that only waits. A result is first saved beside its log, then told to the storage, then shown: what was shown is
recorded.

A command that is ended by a signal to this process, or because the storage has failed, says nothing of its point. Its
trial is put back: it stays as it is and has another attempt in the next run.
"""

import contextlib
import os
import shutil
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from pbgi.cli.choosing import StageWatch, Way, checkpoint_of, hand_out, has_checkpoint
from pbgi.cli.errors import ExitCode, InterruptedRunError, JobError, StartError, StorageError
from pbgi.cli.job import Job
from pbgi.cli.private import write_json
from pbgi.cli.processes import Guard, Interruption, identity
from pbgi.cli.program.command import GRACE, Attempt, Plan, start
from pbgi.cli.program.result import LEAST_COST, Outcome
from pbgi.cli.progress import Display, Standing, goes_on_with, standing, was_stopped
from pbgi.cli.running import RESULT, BudgetWatch, Earlier, Running, earlier, folder_of, recover, until_next_beat
from pbgi.cli.study import JobStudy, predicted_cost, settings_of
from pbgi.errors import InvalidInputError, TrialStateError
from pbgi.stopping import StopReason
from pbgi.study import attributes
from pbgi.study.ledger import total

TICK = 0.25


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    code: int
    reason: str
    standing: Standing


def require_runnable(job: Job) -> None:
    """Raise unless the job can be run, and would end; to be called before anything is made for it."""
    if not job.command:
        raise JobError.at(
            job.path, None, 'command: must be given; write command = ["python", "train.py", "--lr", "{lr}"]'
        )
    program = job.program
    if "{" not in program and shutil.which(job.folder / program if "/" in program else program) is None:
        raise JobError.at(job.path, None, f"command: the program must be one that can be run; got {program!r}")
    if settings_of(job).engine.is_endless_in(job.space):
        way_out = 'budget = 60.0, trials = 100, or policy = { kind = "PBGI", cost_scale = 0.01 }'
        raise JobError.at(job.path, None, f"budget: a search must end; write {way_out}")


class Tuner:
    """One run of `tune`."""

    def __init__(self, job: Job, study: JobStudy, display: Display) -> None:
        self._job, self._study, self._display = job, study, display
        self._events: SimpleQueue[Attempt | None] = SimpleQueue()
        self._running: dict[int, Running] = {}
        self._watch = BudgetWatch(job, study, self._running)
        self._stages = StageWatch(study, self._running, self._watch.used)
        self._taken_over: list[FrozenTrial] = []
        self._reason: str | None = None
        self._trouble: StartError | None = None
        self._failed_in_a_row, self._has_worked, self._reclaim = 0, False, False

    def run(self, *, reclaim: bool = False) -> Ended:
        """Run until there is no reason to go on; the job must be one that can be run."""
        self._reclaim = reclaim
        guard = _guard()
        interruption = Interruption(self._woken, self._hurried)
        try:
            with interruption:
                self._loop(guard, interruption)
            return self._ended(interruption)
        except StorageError as error:
            # The signal may have come in the middle of a wait for the storage: it is still why the trials ended.
            stopped = interruption.signal is not None
            self._abandon(f"{interruption.reason} while it ran" if stopped else "killed because the storage failed")
            if interruption.signal is None:
                raise
            message = f"{interruption.reason}; what ran is taken up by the next run, since the storage is away: {error}"
            raise InterruptedRunError(message, interruption.signal) from None
        finally:
            self._kill_all()
            guard.close()
            self._display.close()

    def _woken(self) -> None:
        self._study.storage.hurry()
        self._events.put(None)

    def _hurried(self) -> None:
        self._study.storage.hurry(0.0)
        self._kill_all()

    def _ended(self, interruption: Interruption) -> Ended:
        now = standing(self._study.settings, self._study.trials())
        if interruption.signal is not None:
            return Ended(128 + interruption.signal, interruption.reason, now)
        if self._trouble is not None:
            return Ended(ExitCode.STORAGE, str(self._trouble), now)
        code = ExitCode.DONE if now.best is not None else ExitCode.NOTHING_FOUND
        return Ended(code, self._reason or "", now)

    def _loop(self, guard: Guard, interruption: Interruption) -> None:
        while True:
            if interruption.signal is None:
                self._fill(guard, interruption)
            else:
                for running in self._running.values():
                    running.attempt.stop(f"{interruption.reason} while it ran", interrupted=True)
            if not self._running:
                return
            self._watch.look()
            self._stages.look()
            with contextlib.suppress(Empty):
                attempt = self._events.get(timeout=TICK)
                if attempt is not None:
                    self._attempt_ended(self._running[attempt.plan.number], guard, interruption)
            self._beat()

    # Starting --------------------------------------------------------------------------------------------------------

    def _fill(self, guard: Guard, interruption: Interruption) -> None:
        """Start trials until all places are taken or there is a reason not to."""
        while len(self._running) < self._job.parallel and interruption.signal is None and self._trouble is None:
            self._recover()
            trial = self._next_trial()
            if trial is None:
                return
            self._start(trial, earlier(trial), guard, self._way_of(trial))
            self._watch.look()  # choosing the next one takes time
            self._update()

    def _recover(self) -> None:
        """Before every trial: another worker of this study may have died meanwhile, and what it held is free again."""
        under_way = {*self._running, *(trial.number for trial in self._taken_over)}
        finished, taken_over = recover(self._job, self._study, reclaim=self._reclaim, under_way=under_way)
        self._taken_over += taken_over
        for trial in finished:
            self._show(trial)

    def _next_trial(self) -> FrozenTrial | None:
        if self._taken_over:
            return self._taken_over.pop(0)
        if self._failed_in_a_row >= self._job.most_failures(has_worked=self._has_worked):
            which = "last" if self._has_worked else "first"
            self._reason = f"the {which} {self._failed_in_a_row} trials failed; mend the command, or raise max_failures"
            return None
        notes = {attributes.WORKER: identity(os.getpid())}
        added = hand_out(self._study, notes, self._watch.used, partial(has_checkpoint, self._job))
        if isinstance(added, StopReason):
            self._reason = added.message
            return None
        if (lost := added.system_attrs.get(attributes.BEGUN_AGAIN)) is not None:
            self._display.say(f"trial {lost}: its checkpoint is gone, so it begins again as trial {added.number}")
        return added

    def _way_of(self, trial: FrozenTrial, before: Way | None = None) -> Way | None:
        """How far a trial has come that is to be run now."""
        way = Way.of(self._job, trial, before)
        if way is not None and way.is_lost:
            self._display.say(f"trial {trial.number}: its checkpoint is gone; it begins again, what it cost is charged")
        return way

    def _start(self, trial: FrozenTrial, paid: Earlier, guard: Guard, way: Way | None) -> None:
        point, folder = self._study.settings.space.check(trial.params), folder_of(self._job, trial)
        plan = Plan(self._job, trial.number, point, folder)
        if way is not None:
            plan = replace(plan, checkpoint=checkpoint_of(self._job, trial), step=way.step)
        try:
            attempt = start(plan, len(paid.attempts))
        except InvalidInputError as error:
            self._finish(trial, paid, way, Outcome(None, 0.0, None, str(error)))
            return
        except StartError as error:
            # What runs may end; this trial is left for the next run.
            self._trouble = error
            if paid.attempts:
                self._put_back(trial, paid.attempts)
            return
        self._running[trial.number] = Running(trial, attempt, paid, way)
        began = time.time()
        attempt.wait(self._events.put, guard, lambda: self._events.put(None))
        self._study.set_note(trial.number, attributes.COMMAND, {**identity(attempt.process.pid), "time": began})

    # Ending ----------------------------------------------------------------------------------------------------------

    def _attempt_ended(self, running: Running, guard: Guard, interruption: Interruption) -> None:
        self._stages.look()  # what it said last
        if running.way is not None:
            running.way.store(self._study, running.trial.number)
        outcome, attempt = running.attempt.outcome(), running.attempt
        failed = outcome.value is None and attempt.killed_for is None
        has_another = attempt.interrupted or (
            failed and len(running.paid.attempts) - running.paid.n_interrupted < self._job.retries
        )
        if has_another and interruption.signal is None:
            self._retry(running, outcome, guard)
            return
        del self._running[running.trial.number]
        if not has_another:
            self._finish(running.trial, running.paid, running.way, outcome)
        else:
            self._put_back(running.trial, self._attempts(running, outcome))

    def _attempts(self, running: Running, outcome: Outcome) -> list[dict[str, Any]]:
        """All attempts of a trial; one that was ended from outside is no failure."""
        cost = self._charge(running.trial, running.way, outcome)
        last = {"seconds": outcome.seconds, "cost": cost, "interrupted": running.attempt.interrupted}
        return [*running.paid.attempts, last]

    def _retry(self, running: Running, outcome: Outcome, guard: Guard) -> None:
        number, attempts = running.trial.number, self._attempts(running, outcome)
        self._study.set_note(number, attributes.ATTEMPTS, attempts)
        self._display.say(f"trial {number}: attempt {len(attempts)} failed, trying again: {outcome.message}")
        del self._running[number]
        self._start(running.trial, Earlier(attempts), guard, self._way_of(running.trial, running.way))

    def _put_back(self, trial: FrozenTrial, attempts: list[dict[str, Any]]) -> None:
        """Leave a trial to the next run; it is charged what these attempts have cost when it ends."""
        self._save_attempts(trial, attempts)
        if self._study.exclusively(lambda: self._study.put_back(trial.number, attempts)).state.is_finished():
            return  # somebody has told how it ended
        so_far = f"cost so far {Earlier(attempts).cost_or_zero:.4g}"
        self._display.say(f"trial {trial.number}: not ended, {so_far}; the next run tries its point again")
        self._update()

    def _finish(self, trial: FrozenTrial, paid: Earlier, way: Way | None, outcome: Outcome) -> None:
        total = self._total(trial, paid, way, outcome)
        self._save(trial, total)
        try:
            ended = self._study.exclusively(lambda: self._study.finish(trial.number, total))
        except TrialStateError as error:  # somebody told it something else, or reclaimed it
            self._display.say(str(error))
            return
        if ended.number != trial.number:
            self._display.say(f"trial {trial.number} had been given up; its result is trial {ended.number}")
        failed = ended.state is TrialState.FAIL
        # That the budget is used up is not the fault of the command.
        self._failed_in_a_row = self._failed_in_a_row + (not total.overrun) if failed else 0
        self._has_worked |= not failed
        self._show(ended)

    def _total(self, trial: FrozenTrial, paid: Earlier, way: Way | None, outcome: Outcome) -> Outcome:
        cost = total([paid.cost_or_zero, self._charge(trial, way, outcome)])
        # What attempts that failed have cost says nothing of what a success costs.
        observed = None
        if paid.attempts or outcome.cost is None:
            observed = 0.0 if outcome.cost is None else total([outcome.cost, 0.0 if way is None else way.base])
        return replace(outcome, cost=cost, seconds=paid.seconds + (outcome.seconds or 0.0), observed=observed)

    def _charge(self, trial: FrozenTrial, way: Way | None, outcome: Outcome) -> float:
        """What an attempt costs: where that is not known, what was expected of it."""
        if outcome.cost is not None:
            return outcome.cost
        share = 1.0
        if way is not None:
            share = way.share(until=way.reports[-1].step if outcome.stopped else way.steps.last)
        return (predicted_cost(trial) or 0.0) * share or LEAST_COST

    def _save(self, trial: FrozenTrial, outcome: Outcome) -> None:
        """Keep the outcome beside the log until the storage has it; a full disk must not stop us from telling it."""
        self._save_beside_log(trial, {"outcome": asdict(outcome)})

    def _save_attempts(self, trial: FrozenTrial, attempts: list[dict[str, Any]]) -> None:
        """The same for a trial that has no outcome yet."""
        self._save_beside_log(trial, {"attempts": attempts})

    def _save_beside_log(self, trial: FrozenTrial, found: dict[str, Any]) -> None:
        token = trial.user_attrs.get(attributes.TOKEN)
        with contextlib.suppress(OSError):
            write_json(folder_of(self._job, trial) / RESULT, {"token": token, **found})

    def _abandon(self, why: str) -> None:
        """The storage is gone: end what runs and leave what is known of it where the next run finds it."""
        for running in self._running.values():
            running.attempt.stop(why, interrupted=True)
        deadline = time.monotonic() + GRACE + 1.0
        for running in self._running.values():
            while running.attempt.process.returncode is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if running.attempt.process.returncode is not None:
                self._keep(running)

    def _keep(self, running: Running) -> None:
        outcome = running.attempt.outcome()
        if running.attempt.interrupted:
            self._save_attempts(running.trial, self._attempts(running, outcome))
        else:
            self._save(running.trial, self._total(running.trial, running.paid, running.way, outcome))

    def _kill_all(self) -> None:
        for running in self._running.values():
            running.attempt.kill()

    # Showing ---------------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Note how long trials have run, in case nobody is left to say it later."""
        for number, running in self._running.items():
            running.attempt.trim_logs()
            seconds = running.attempt.seconds
            if seconds >= running.next_beat:
                if running.way is not None:
                    running.way.store(self._study, number)
                self._study.set_note(number, attributes.BEAT, {"seconds": seconds, "time": time.time()})
                running.next_beat = seconds + until_next_beat(seconds)

    def _show(self, trial: FrozenTrial) -> None:
        self._display.say(line_about(trial))
        self._update()

    def _update(self) -> None:
        self._display.update(standing(self._study.settings, self._study.trials()))


def _guard() -> Guard:
    try:
        return Guard()
    except OSError as error:
        raise StartError(f"the process that guards the commands could not be started: {error}") from None


def line_about(trial: FrozenTrial) -> str:
    """A finished trial in one line, and why it failed if it did."""
    charged, before = f", cost {trial.user_attrs.get(attributes.COST, 0.0):.4g}", goes_on_with(trial)
    name = f"trial {trial.number}" if before is None else f"trial {trial.number} (going on with {before})"
    if trial.state is TrialState.COMPLETE:
        return f"{name}: value {trial.value:.6g}{charged}"
    if was_stopped(trial) and trial.last_step is not None:
        value = trial.intermediate_values[trial.last_step]
        return f"{name}: stopped at step {trial.last_step}, value {value:.6g}{charged}"
    return f"{name}: failed{charged}: {trial.user_attrs.get(attributes.MESSAGE, 'no reason known')}"
