"""What the trials of a study cost: one rule, for the sampler, the callbacks and the summary.

A finished trial is charged, in this order,

    its user attribute `cost`            a finite number, positive or 0
    its price                            where the sampler knows prices beforehand
    what was predicted for it            if it failed or was pruned in a study whose trials tell their costs, if its
                                         worker vanished, so that nobody knows how long it worked, or if its attribute
                                         `cost` is something else: text, negative, NaN
    its duration, in seconds             less what choosing its point took, and waiting for the choices of others

and nothing if there is none of these: a trial added from elsewhere without a cost informs and is free. No model learns
from the duration of a trial whose attribute `cost` is no cost: costs may have another unit. A running trial
holds what was predicted for it; where nothing was, what a completed trial has cost on average, or while there is none
the most that a pruned one has cost. Where a running trial tells what its steps have cost (`pbgi tune`), it is charged
that, and holds the rest. A trial that goes on with a stopped one takes its place: of the two, it alone has an account.

Finished trials from elsewhere are free where a ledger is of a study by name: those that were not suggested in it,
because they were added to it or are older than its sampler.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from optuna.trial import FrozenTrial, TrialState

from pbgi.checks import check_cost
from pbgi.errors import InvalidInputError
from pbgi.study import attributes
from pbgi.study.reports import step_costs
from pbgi.study.suggestion import Suggestion, suggestion_of

# Nobody knows how far a pruned trial had come: while no other is known, a whole one may cost so many times as much.
WHOLE_FACTOR = 5.0


@dataclass(frozen=True)
class Account:
    """What one trial costs.

    Attributes:
        trial: The trial.
        observed: What it was seen to cost, if it was: of one that gave a value, what a model of costs may learn from.
        charged: What the budget pays for it.
        reserved: What is held for it while it runs.
        predicted: What it was expected to cost; None if nothing was.
        suggestion: What the sampler kept of it.
        begun_again: Whether it was stopped and its checkpoint was lost, so that another trial tries its point anew.
    """

    trial: FrozenTrial
    observed: float | None
    charged: float
    reserved: float
    predicted: float | None
    suggestion: Suggestion | None
    begun_again: bool = False

    @property
    def expected(self) -> float:
        """What a running trial will have cost in the end, as far as anybody knows."""
        return self.charged + self.reserved


@dataclass(frozen=True)
class Ledger:
    """The accounts of all trials but those that wait, and those in whose place another trial stands; by number."""

    accounts: Mapping[int, Account]

    @property
    def spent(self) -> float:
        """Charged for finished trials, and for what running ones have reported."""
        return total(account.charged for account in self.accounts.values())

    @property
    def spent_on_finished(self) -> float:
        """Charged for finished trials alone."""
        return total(a.charged for a in self.accounts.values() if a.trial.state.is_finished())

    @property
    def reserved(self) -> float:
        """Held for running trials."""
        return total(account.reserved for account in self.accounts.values())

    @property
    def needed_in_the_dark(self) -> float:
        """What must be left for a trial while only pruned trials say what trials cost; else 0."""
        known = self.accounts.values()
        return 0.0 if _usual(known) else WHOLE_FACTOR * _paid_in_part(known)


def total(costs: Iterable[float]) -> float:
    """The sum of costs, correctly rounded; beyond the largest float it is that float, which JSON can hold."""
    try:
        return math.fsum(costs)
    except OverflowError:
        return sys.float_info.max


def told_cost(trial: FrozenTrial) -> float | None:
    """The user attribute `cost`, if it is one: a positive number, or 0 for a trial that was free."""
    told = trial.user_attrs.get(attributes.COST)
    try:
        return 0.0 if told == 0 and not isinstance(told, bool) else check_cost(told)
    except InvalidInputError:
        return None


def misstates_cost(trial: FrozenTrial) -> bool:
    """Whether its user attribute `cost` is something else than a cost; None says that it is not known."""
    return trial.user_attrs.get(attributes.COST) is not None and told_cost(trial) is None


def misstated(trial: FrozenTrial, charged: str) -> str:
    """A sentence about such a trial, and what it is charged instead."""
    rule = f"the attribute 'cost' of trial {trial.number} must be a finite number that is not negative"
    way_out = "write trial.set_user_attr('cost', number)"
    return f"{rule}; got {trial.user_attrs[attributes.COST]!r}; {charged} is charged instead; {way_out}"


PriceOf: TypeAlias = Callable[[FrozenTrial], float | None]
"""What a trial costs, where that is known beforehand."""


def ledger_of(trials: Iterable[FrozenTrial]) -> Ledger:
    """The accounts of all trials of a study."""
    return AccountBook().ledger(trials)


class AccountBook:
    """Makes ledgers; the accounts of finished trials, which do not change, are made once."""

    def __init__(self) -> None:
        self._of: tuple[bool, str | None] = (False, None)
        self._settled: dict[int, Account] = {}

    def ledger(
        self, trials: Iterable[FrozenTrial], price_of: PriceOf | None = None, suggested_in: str | None = None
    ) -> Ledger:
        """The accounts of these trials.

        Args:
            trials: All trials of a study.
            price_of: What a running trial will cost, where that is known.
            suggested_in: The name of the study: finished trials that were not suggested in it are then free.
        """
        known = list(trials)
        superseded = {number for trial in known for number in superseded_by(trial)}
        begun = [t for t in known if t.state != TrialState.WAITING and t.number not in superseded]
        tells = any(trial.state.is_finished() and attributes.COST in trial.user_attrs for trial in begun)
        if (tells, suggested_in) != self._of:
            self._of, self._settled = (tells, suggested_in), {}
        accounts = {trial.number: self._account(trial, price_of) for trial in begun}
        running = [n for n, account in accounts.items() if account.trial.state == TrialState.RUNNING]
        if running:
            usual = _usual(accounts.values()) or _paid_in_part(accounts.values())
            accounts |= {number: _reserving(accounts[number], usual) for number in running}
        lost = {t.system_attrs[attributes.BEGUN_AGAIN] for t in begun if attributes.BEGUN_AGAIN in t.system_attrs}
        return Ledger(accounts | {n: replace(accounts[n], begun_again=True) for n in lost if n in accounts})

    def _account(self, trial: FrozenTrial, price_of: PriceOf | None) -> Account:
        settled = self._settled.get(trial.number)
        if settled is not None and settled.trial is trial:
            return settled
        tells, study_name = self._of
        account = _account(trial, tells, price_of)
        if trial.state.is_finished():
            if study_name is not None and _is_from_elsewhere(account, study_name):
                # Beside costs that were told seconds are of another unit.
                observed = None if tells and told_cost(trial) is None else account.observed
                account = replace(account, observed=observed, charged=0.0, predicted=None)
            self._settled[trial.number] = account
        return account


def _account(trial: FrozenTrial, tells: bool, price_of: PriceOf | None) -> Account:
    suggestion = suggestion_of(trial)
    if suggestion is not None and suggestion.refused is not None:
        return Account(trial, None, 0.0, 0.0, None, suggestion)
    price = trial.system_attrs.get(attributes.PRICE)
    predicted = price if price is not None or suggestion is None else suggestion.predicted_cost
    if trial.state == TrialState.RUNNING:
        known = price_of(trial) if predicted is None and price_of is not None else predicted
        return Account(trial, None, 0.0, 0.0, known or None, suggestion)
    told = told_cost(trial)
    priced = price is not None or (suggestion is not None and suggestion.priced)
    observed: float | None
    if told is not None:
        observed, charged = _observed(trial, told), told
    elif priced or (predicted is not None and _says_nothing(trial, tells)):
        observed, charged = None, predicted or 0.0
    else:
        charged = _seconds(trial, suggestion)
        observed = None if misstates_cost(trial) else charged
    # Free trials say nothing of what others cost.
    return Account(trial, observed or None, charged, 0.0, predicted or None if charged else None, suggestion)


def _is_from_elsewhere(account: Account, study_name: str) -> bool:
    if account.suggestion is None:  # a worker that vanished while it chose leaves none, and was charged here
        return attributes.PRICE not in account.trial.system_attrs
    return account.suggestion.study not in (None, study_name)


def _observed(trial: FrozenTrial, told: float) -> float:
    """What a trial was seen to cost; 0 if nobody saw it."""
    observed = trial.user_attrs.get(attributes.OBSERVED, told)
    real = isinstance(observed, int | float) and not isinstance(observed, bool)
    return float(observed) if real and 0.0 <= observed < math.inf else told


def _says_nothing(trial: FrozenTrial, tells: bool) -> bool:
    """Whether the duration of a trial is no measure of its cost."""
    vanished = trial.state == TrialState.FAIL and attributes.ENDED not in trial.system_attrs
    return misstates_cost(trial) or (trial.state != TrialState.COMPLETE and (tells or vanished))


def _seconds(trial: FrozenTrial, suggestion: Suggestion | None) -> float:
    has_notes_of_another = attributes.RETRIED in trial.system_attrs
    choosing = 0.0 if suggestion is None or has_notes_of_another else suggestion.seconds
    return 0.0 if trial.duration is None else max(trial.duration.total_seconds() - choosing, 0.0)


def _paid_in_part(accounts: Iterable[Account]) -> float:
    """The most that a pruned trial was charged: a whole one costs at least that."""
    return max((a.charged for a in accounts if a.trial.state == TrialState.PRUNED), default=0.0)


def _usual(accounts: Iterable[Account]) -> float:
    """What a completed trial has cost on average; 0 if none has."""
    known = [a.charged or a.observed or 0.0 for a in accounts if a.trial.state == TrialState.COMPLETE]
    paid = [cost for cost in known if cost > 0.0]
    return total(paid) / len(paid) if paid else 0.0


def _reserving(account: Account, usual: float) -> Account:
    refused = account.suggestion is not None and account.suggestion.refused is not None
    expected = 0.0 if refused else usual if account.predicted is None else account.predicted
    used = _reported(account.trial)
    return replace(account, charged=used, reserved=max(expected - used, 0.0))


def _reported(trial: FrozenTrial) -> float:
    """What a running trial is known to have cost: by its reports, or by what all earlier runs have cost together."""
    told = max(step_costs(trial).values(), default=0.0)
    return max(told, total(a["cost"] for a in trial.user_attrs.get(attributes.ATTEMPTS) or ())) if told else 0.0


def superseded_by(trial: FrozenTrial) -> list[int]:
    """The numbers of the trials in whose place a trial stands: one whose result it is, those that it goes on with."""
    late = trial.system_attrs.get(attributes.LATE)
    return [*([] if late is None else [late]), *trial.system_attrs.get(attributes.GOES_ON, ())]


def remaining(budget: float | None, ledger: Ledger) -> float | None:
    """What is left of a budget after reservations, not below 0."""
    return None if budget is None else max(budget - ledger.spent - ledger.reserved, 0.0)
