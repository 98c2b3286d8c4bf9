"""The next trial of a study, whether one goes on, and which to choose: what an optimizer says that knows its trials."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from optuna.trial import FrozenTrial

from pbgi.cli.study import JobStudy
from pbgi.history import Trial, TrialState
from pbgi.optimizer import Optimizer
from pbgi.prediction import Recommendation
from pbgi.stopping import StopReason
from pbgi.study import attributes
from pbgi.study.engine import StudyEngine
from pbgi.study.ledger import Account, Ledger, ledger_of
from pbgi.study.settings import StudySettings
from pbgi.study.spaces import NamedSpace

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
