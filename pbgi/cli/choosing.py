"""What comes next: a trial of a study, or an end; and whether a trial that runs goes on.

At the end of a stage what a trial has said is stored, and then it is decided. In between it makes no difference, so it
is stored now and then only, with the signs of life.

A trial may take several runs of its command: one that was stopped goes on from its checkpoint, one that was ended from
outside is run again. Steps that an earlier run has reported are not taken again. What a step cost is counted as in one
undisturbed run, from the step on that the run goes on from; what else was paid is charged, and says nothing of what
steps cost.
"""

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from optuna.trial import FrozenTrial

from pbgi.cli.job import Job
from pbgi.cli.program.command import Attempt
from pbgi.cli.study import JobStudy, folder_name, predicted_cost
from pbgi.history import Trial, TrialState
from pbgi.optimizer import Optimizer
from pbgi.prediction import Recommendation
from pbgi.stopping import StopReason
from pbgi.study import attributes
from pbgi.study.engine import StudyEngine
from pbgi.study.ledger import Account, Ledger, ledger_of
from pbgi.study.reports import Lengths
from pbgi.study.settings import StudySettings
from pbgi.study.spaces import NamedSpace
from pbgi.trials.steps import Report, Steps, cost_so_far

Used: TypeAlias = Callable[[Sequence[FrozenTrial]], Mapping[int, float]]
"""Says what the running ones of these trials have used so far, by number, where that is known."""


def optimizer_of(settings: StudySettings, trials: Sequence[FrozenTrial], used: Used = lambda _: {}) -> Optimizer:
    """An optimizer that knows these trials.

    For a running trial that has used more than was expected of it, what it has used is held.
    """
    return _optimizer(settings, trials, used)[0]


def _optimizer(
    settings: StudySettings, trials: Sequence[FrozenTrial], used: Used = lambda _: {}
) -> tuple[Optimizer, tuple[int, ...]]:
    """The same, with the numbers in the study of its trials."""
    so_far, engine = used(trials), StudyEngine(settings.engine)
    accounts = {number: _holding(account, so_far) for number, account in ledger_of(trials).accounts.items()}
    optimizer = engine.optimizer(NamedSpace(settings.space), settings.direction, Ledger(accounts))
    return optimizer, engine.numbers


def _holding(account: Account, used: Mapping[int, float]) -> Account:
    more = used.get(account.trial.number, 0.0)
    return account if more <= account.expected else replace(account, reserved=more - account.charged)


def hand_out(
    study: JobStudy,
    notes: Mapping[str, Any],
    used: Used = lambda _: {},
    has_checkpoint: Callable[[FrozenTrial], bool] = lambda _: True,
) -> FrozenTrial | StopReason:
    """Choose the next trial and add it, with these notes, before anyone else looks; or why there is none.

    Args:
        study: The study.
        notes: Attributes of the trial.
        used: What running trials have used so far.
        has_checkpoint: Whether a stopped trial can go on from where it stood. One that cannot begins again.
    """
    token = secrets.token_hex(4)
    notes = {**notes, attributes.TOKEN: token}

    def choose() -> FrozenTrial | StopReason:
        trials = study.trials()
        there = next((trial for trial in trials if trial.user_attrs.get(attributes.TOKEN) == token), None)
        if there is not None:  # the connection broke, but not before the trial was there
            return there
        optimizer, numbers = _optimizer(study.settings, trials, used)
        while (reason := optimizer.should_stop()) is None:
            trials_before = optimizer.trials
            asked = optimizer.ask()
            if asked.number == len(numbers):
                return study.add(asked, notes)
            stopped = trials[numbers[asked.number]]
            if has_checkpoint(stopped):
                return study.go_on(stopped, notes)
            optimizer, again = _without_checkpoint(optimizer, trials_before[asked.number])
            if again is not None:
                return study.add(again, notes, begins_again=stopped)
        return reason

    return study.exclusively(choose)


def _without_checkpoint(optimizer: Optimizer, lost: Trial) -> tuple[Optimizer, Trial | None]:
    """An optimizer for which a stopped trial cannot go on, and that one begun again, if the whole of it can be paid."""
    interrupted = replace(lost, state=TrialState.INTERRUPTED)
    trials = [interrupted if trial.number == lost.number else trial for trial in optimizer.trials]
    told = (optimizer.space, optimizer.direction, optimizer.settings)
    optimizer = Optimizer.of(*told, trials)
    left, again = optimizer.remaining, optimizer.enqueue(lost.params)
    if left is None or (again.predicted_cost or 0.0) <= left:
        return optimizer, again
    return Optimizer.of(*told, trials), None


def goes_on(study: JobStudy, number: int, used: Used = lambda _: {}) -> bool:
    """Whether a running trial that has just ended a stage is worth going on with."""
    optimizer, numbers = _optimizer(study.settings, study.trials(), used)
    return number not in numbers or optimizer.should_continue(numbers.index(number))


def recommended_of(settings: StudySettings, trials: Sequence[FrozenTrial]) -> Recommendation | None:
    """The trial to choose now, numbered as in the study; None while no trial has a value."""
    optimizer, numbers = _optimizer(settings, trials)
    found = optimizer.recommended
    return None if found is None else replace(found, trial=replace(found.trial, number=numbers[found.trial.number]))


# Trials that may stop early -------------------------------------------------------------------------------------------


CHECKPOINT = "checkpoint"


def checkpoint_of(job: Job, trial: FrozenTrial) -> Path:
    """The folder for the checkpoints of a trial: that of the one that it goes on with, if it does."""
    return job.trials_folder / str(trial.user_attrs.get(attributes.CHECKPOINT, folder_name(trial))) / CHECKPOINT


def has_checkpoint(job: Job, trial: FrozenTrial) -> bool:
    """Whether there is anything to go on from."""
    with contextlib.suppress(OSError):
        return any(checkpoint_of(job, trial).iterdir())
    return False


def reports_of(steps: Steps, trial: FrozenTrial) -> list[Report]:
    """What a trial has said so far."""
    return list(Lengths(1, steps.last).reports(trial, None))


@dataclass(eq=False)
class Way:
    """How far a trial has come, over all its runs.

    Attributes:
        steps: How long it is.
        reports: What it has said.
        step: The step that the present run goes on from.
        base: What it had cost by then.
        price: What a whole trial costs, where that is known beforehand.
        n_stored: How many of the reports need not be stored any more.
        n_heard: How many reports of the present run were taken in.
    """

    steps: Steps
    reports: list[Report]
    step: int = 0
    base: float = 0.0
    price: float | None = None
    n_stored: int = 0
    n_heard: int = 0

    @classmethod
    def of(cls, job: Job, trial: FrozenTrial, before: "Way | None" = None) -> "Way | None":
        """Where a trial stands that is to be run now, or again after a run; None where trials have no steps."""
        if job.steps is None:
            return None
        reports = reports_of(job.steps, trial) if before is None else before.reports
        goes_on = job.steps.resumable and bool(reports) and has_checkpoint(job, trial)
        price = predicted_cost(trial) if job.formula is not None else None
        stood = (reports[-1].step, cost_so_far(reports)) if goes_on else (0, 0.0)
        return cls(job.steps, reports, *stood, price, n_stored=len(reports))

    @property
    def is_lost(self) -> bool:
        """Whether it could go on from where it stood, if its checkpoint were there."""
        return self.steps.resumable and bool(self.reports) and not self.step

    @property
    def why_stopped(self) -> str:
        """Why it is stopped now, in words."""
        return f"what was left after step {self.reports[-1].step} of {self.steps.last} was not worth its price"

    def share(self, *, until: int) -> float:
        """The share of a whole trial's work from where this run goes on."""
        return max(until - self.step, 0) / self.steps.last

    def hear(self, attempt: Attempt) -> Report | None:
        """Take in the next report of a run that goes beyond what was reported before; None if there is none."""
        said = attempt.listener.reports if attempt.listener is not None else []
        while self.n_heard < len(said):
            report = said[self.n_heard]
            self.n_heard += 1
            if report.step > (self.reports[-1].step if self.reports else 0):
                self.reports.append(report._replace(cost=self._cost(report)))
                return self.reports[-1]
        return None

    def _cost(self, report: Report) -> float | None:
        if self.price is not None:
            return self.price * report.step / self.steps.last
        return None if report.cost is None else max(self.base + report.cost, cost_so_far(self.reports))

    def ends_stage(self, i: int) -> bool:
        """Whether a report ended a stage."""
        before = self.reports[i - 1].step if i else 0
        return self.steps.n_stages_at(self.reports[i].step) > self.steps.n_stages_at(before)

    def store(self, study: JobStudy, number: int) -> None:
        """Write what is not stored yet: the last report, and those that ended a stage."""
        if self.n_stored == len(self.reports):
            return
        last = len(self.reports) - 1
        told = [i for i in range(last + 1) if i == last or self.ends_stage(i)]
        costs = {r.step: r.cost for r in (self.reports[i] for i in told) if r.cost is not None}
        study.report(number, [self.reports[i] for i in told if i >= self.n_stored], costs)
        self.n_stored = len(self.reports)


class Listened(Protocol):
    """A trial under way."""

    attempt: Attempt
    way: Way | None


class StageWatch:
    """Listens to the commands of one process and decides which trials go on.

    Args:
        study: The study.
        running: The trials under way in this process, by number; it may change between two calls.
        used: What running trials have used so far.
    """

    def __init__(self, study: JobStudy, running: Mapping[int, Listened], used: Used) -> None:
        self._study, self._running, self._used = study, running, used

    def look(self) -> None:
        """Take in what was said, and stop what is not worth going on with."""
        for number, running in self._running.items():
            self._look_at(number, running.attempt, running.way)

    def _look_at(self, number: int, attempt: Attempt, way: Way | None) -> None:
        if way is None:
            return
        while way.hear(attempt) is not None:
            if way.ends_stage(len(way.reports) - 1):
                way.store(self._study, number)
            undecided = attempt.ended is None and attempt.killed_for is None
            if undecided and way.steps.is_decision(way.reports) and not goes_on(self._study, number, self._used):
                attempt.stop(way.why_stopped, early=True)
        if attempt.listener is not None and attempt.listener.problem is not None:
            attempt.stop(attempt.listener.problem)
