"""From the trials of a study to the next one: an `Optimizer` with their history.

Nothing is remembered between two suggestions but the trials, so every process that asks gets what an undisturbed run
would have got. The notes of the policy travel with the trials.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from optuna.trial import FrozenTrial

from pbgi.cli.study import StudyBook
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


def hand_out(book: StudyBook, notes: Mapping[str, Any], used: Used = lambda _: {}) -> FrozenTrial | StopReason:
    """Choose the next trial and add it, with these notes, before anyone else looks; or why there is none."""
    token = secrets.token_hex(4)

    def choose() -> FrozenTrial | StopReason:
        trials = book.trials()
        kept = next((trial for trial in trials if trial.user_attrs.get(attributes.TOKEN) == token), None)
        if kept is not None:  # the connection broke, but not before the trial was there
            return kept
        optimizer = optimizer_of(book.settings, trials, used)
        reason = optimizer.should_stop()
        return book.add(optimizer.ask(), {**notes, attributes.TOKEN: token}) if reason is None else reason

    return book.exclusively(choose)


def recommended_of(settings: StudySettings, trials: Sequence[FrozenTrial]) -> Recommendation | None:
    """The trial to choose now, numbered as in the study; None while no trial has a value."""
    optimizer, numbers = _optimizer(settings, trials)
    found = optimizer.recommended
    return None if found is None else replace(found, trial=replace(found.trial, number=numbers[found.trial.number]))


def _holding(account: Account, used: Mapping[int, float]) -> Account:
    more = used.get(account.trial.number, 0.0)
    return account if more <= account.reserved else replace(account, reserved=more)
