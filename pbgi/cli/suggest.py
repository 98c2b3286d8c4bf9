"""From the trials of a study to the next one: an `Optimizer` with their history.

Nothing is remembered between two suggestions but the trials, so every process that asks gets what an undisturbed run
would have got. The notes of the policy travel with the trials.
"""

import json
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from optuna.trial import FrozenTrial, TrialState

from pbgi.cli import attributes
from pbgi.cli.settings import StudySettings
from pbgi.cli.study import StudyBook, distributions_of
from pbgi.errors import InvalidInputError
from pbgi.history import TrialState as State
from pbgi.integrations.optuna.ledger import Account, ledger_of, total
from pbgi.optimizer import Optimizer
from pbgi.prediction import Recommendation
from pbgi.space import Space
from pbgi.stopping import StopReason

Used: TypeAlias = Callable[[Sequence[FrozenTrial]], Mapping[int, float]]
"""Says what the running ones of these trials have used so far, by number, where that is known."""

_LEAST_BUDGET = 1e-300
_STATES = {TrialState.RUNNING: State.RUNNING, TrialState.COMPLETE: State.COMPLETE}


def optimizer_of(settings: StudySettings, trials: Sequence[FrozenTrial], used: Used = lambda _: {}) -> Optimizer:
    """An optimizer that knows these trials.

    Trials that other tools added with other parameters teach it nothing; what they cost is taken from the budget. For a
    running trial that has used more than was expected of it, what it has used is held.
    """
    so_far = used(trials)
    accounts = [_holding(account, so_far) for account in ledger_of(trials).accounts.values()]
    own = _own(settings.space, accounts)
    saved: dict[str, Any] = json.loads(settings.optimizer().to_json())
    if saved["budget"] is not None and len(own) < len(accounts):
        held = total(a.charged + a.reserved for a in accounts if not _fits(settings.space, a.trial))
        saved["budget"] = max(saved["budget"] - held, _LEAST_BUDGET)
    saved["history"] = {"trials": [_entry(i, settings.space, account) for i, account in enumerate(own)]}
    return Optimizer.from_json(json.dumps(saved))


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
    found = optimizer_of(settings, trials).recommended
    if found is None:
        return None
    account = _own(settings.space, ledger_of(trials).accounts.values())[found.trial.number]
    return replace(found, trial=replace(found.trial, number=account.trial.number))


def _own(space: Space, accounts: Iterable[Account]) -> list[Account]:
    """The accounts of the trials that an optimizer knows, in its order."""
    return [account for account in accounts if _fits(space, account.trial)]


def _fits(space: Space, trial: FrozenTrial) -> bool:
    try:
        space.check(trial.params)
    except InvalidInputError:
        return False
    return True


def _holding(account: Account, used: Mapping[int, float]) -> Account:
    more = used.get(account.trial.number, 0.0)
    return account if more <= account.reserved else replace(account, reserved=more)


def _entry(position: int, space: Space, account: Account) -> dict[str, Any]:
    """A trial as a history writes it."""
    trial, suggestion = account.trial, account.suggestion
    state = _STATES.get(trial.state, State.FAILED)
    if trial.value is not None and not math.isfinite(trial.value):  # other tools may call that complete
        state = State.FAILED
    if account.interrupted:  # it says what was left of the budget, and nothing of its point
        state = State.INTERRUPTED
    predicted = (account.reserved or None) if state is State.RUNNING else account.predicted
    paid_otherwise = state is not State.RUNNING and account.observed != account.charged
    # What was noted in a narrower space (length scales, a rate that has fallen, that nothing was worth its price) says
    # little of a wider one.
    same_ranges = trial.distributions == distributions_of(space)
    return {
        "number": position,
        "params": space.check(trial.params),
        "state": state.value,
        "value": trial.value if state is State.COMPLETE else None,
        "cost": account.observed,
        "predicted_cost": predicted,
        "external": False,
        "message": None if state in (State.RUNNING, State.COMPLETE) else trial.user_attrs.get(attributes.MESSAGE),
        "record": {} if suggestion is None or not same_ranges else dict(suggestion.record),
        "charge": account.charged if paid_otherwise else None,
    }
