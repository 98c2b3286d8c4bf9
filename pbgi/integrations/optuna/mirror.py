"""An optimizer that holds the trials of a study: a function of the study, brought up to date by what has changed.

A trial of the study is one of the engine once all its parameters in the search space are known. Trials without such a
point are charged and no more: what they cost is taken off the budget that the engine sees. A fresh process builds the
same optimizer, since the engine keeps in the records of its trials all that it must remember, and these are stored with
the trials of the study.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as StudyState

from pbgi.cost import Cost, LearnedCost
from pbgi.gp.config import GPConfig
from pbgi.history import Trial, TrialState
from pbgi.integrations.optuna.distributions import SearchSpace
from pbgi.integrations.optuna.kept import suggested_params
from pbgi.integrations.optuna.ledger import Account, Ledger
from pbgi.model import ModelKind
from pbgi.notes import Note
from pbgi.optimizer import Optimizer
from pbgi.plain import Value
from pbgi.policy import Policy
from pbgi.stopping import StopRule


@dataclass(frozen=True)
class EngineSettings:
    """What the optimizer is told besides space and direction; see `pbgi.Optimizer`."""

    budget: float | None
    policy: Policy | None
    cost: Cost | None
    stop: StopRule | None
    model: GPConfig | ModelKind | None
    n_startup_trials: int | None
    seed: int | None

    @property
    def must_tell_cost(self) -> bool:
        """Whether the engine insists on a cost."""
        return self.budget is not None and isinstance(self.cost, LearnedCost | None)


@dataclass(frozen=True)
class Entry:
    """A trial of the study as the engine sees it; an external one is charged outside, if at all."""

    number: int
    point: Mapping[str, Value]
    state: TrialState
    value: float | None = None
    cost: float | None = None
    predicted_cost: float | None = None
    external: bool = False
    record: Mapping[str, Note] = field(default_factory=dict)
    has_more: bool = False  # parameters that are not in the search space
    charge: float | None = None  # what is paid for it, where that is not its cost

    @property
    def paid_in_engine(self) -> float:
        """What the engine counts for it, charged or reserved."""
        known = (self.charge, self.cost, self.predicted_cost)
        return 0.0 if self.external else next((amount for amount in known if amount is not None), 0.0)

    def finishes(self, running: "Entry") -> bool:
        """Whether this is what became of the other."""
        same = (self.number, self.point, self.predicted_cost, self.record)
        then = (running.number, running.point, running.predicted_cost, running.record)
        started = running.state is TrialState.RUNNING and self.state is not TrialState.RUNNING
        return started and not self.external and same == then


class Mirror:
    """The optimizer of a study, and how far it has come."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._made_for: tuple[Any, ...] = ()
        self._optimizer: Optimizer | None = None
        self._entries: list[Entry] = []
        self._seen: dict[int, tuple[Account, Entry | None]] = {}

    def reflect(self, search_space: SearchSpace, direction: str, ledger: Ledger) -> Optimizer:
        """The optimizer with these trials, and with what the budget leaves for them."""
        if not self._made_for or self._made_for[0] != search_space:
            self._seen = {}
        wanted = self._wanted(search_space, ledger)
        budget = self._budget_inside(wanted, ledger)
        made_for = (search_space, direction, budget, any(entry.has_more for entry in wanted))
        if self._optimizer is None or made_for != self._made_for or not self._goes_on(wanted):
            self._optimizer, self._entries = self._fresh(*made_for), []
            self._made_for = made_for
        self._catch_up(self._optimizer, wanted)
        return self._optimizer

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers in the study of the optimizer's trials, in its order."""
        return tuple(entry.number for entry in self._entries)

    def ask(self, number: int) -> Trial:
        """The next trial of the optimizer, for the trial of the study with this number."""
        assert self._optimizer is not None  # noqa: S101 (for the type checker: reflect comes first)
        asked: Trial = self._optimizer.ask()
        predicted, record = asked.predicted_cost, asked.record
        running = Entry(number, asked.params, TrialState.RUNNING, predicted_cost=predicted, record=record)
        self._entries.append(running)
        return asked

    # From the study to the engine ------------------------------------------------------------------------------------

    def _wanted(self, search_space: SearchSpace, ledger: Ledger) -> list[Entry]:
        entries = (self._entry(search_space, account) for account in ledger.accounts.values())
        return [entry for entry in entries if entry is not None]

    def _entry(self, search_space: SearchSpace, account: Account) -> Entry | None:
        """The trial, if it has a point; those of finished trials, which do not change, are kept."""
        number = account.trial.number
        before = self._seen.get(number)
        if before is not None and _is_same(before[0], account):
            return before[1]
        entry = self._new_entry(search_space, account)
        if account.trial.state.is_finished():
            self._seen[number] = account, entry
        return entry

    def _new_entry(self, search_space: SearchSpace, account: Account) -> Entry | None:
        trial, suggestion = account.trial, account.suggestion
        if suggestion is not None and suggestion.refused is not None:
            return None
        point = search_space.to_engine(suggested_params(trial, search_space.distributions))
        if point is None:
            return None
        state, value = _outcome(account)
        external = state is not TrialState.RUNNING and account.charged == 0.0
        if external and state is TrialState.INTERRUPTED:
            return None
        record = {} if external else _record(search_space, account, point)
        predicted = None if external else account.predicted
        cost, has_more = account.observed, state is TrialState.COMPLETE and _has_more(search_space, trial)
        paid_otherwise = state is not TrialState.RUNNING and not external and cost != account.charged
        charge = account.charged if paid_otherwise else None
        return Entry(trial.number, point, state, value, cost, predicted, external, record, has_more, charge)

    def _budget_inside(self, wanted: list[Entry], ledger: Ledger) -> float | None:
        """The budget less what the engine will not count."""
        if self._settings.budget is None:
            return None
        inside = {entry.number: entry.paid_in_engine for entry in wanted}
        accounts = ledger.accounts.items()
        outside = math.fsum(a.charged + a.reserved - inside.get(number, 0.0) for number, a in accounts)
        return self._settings.budget - outside

    # The engine's side -----------------------------------------------------------------------------------------------

    def _fresh(self, search_space: SearchSpace, direction: str, budget: float | None, has_more: bool) -> Optimizer:
        model = GPConfig() if self._settings.model is None else self._settings.model
        if has_more and isinstance(model, GPConfig):
            model = replace(model, noisy=True)  # one point may give different values, by what it says nothing of
        told = {"budget": budget, "cost": search_space.cost_in_values(self._settings.cost), "model": model}
        return Optimizer(search_space.space, direction=direction, **vars(self._settings) | told)

    def _goes_on(self, wanted: list[Entry]) -> bool:
        """Whether the trials so far have at most been finished."""
        if len(wanted) < len(self._entries):
            return False
        pairs = zip(self._entries, wanted, strict=False)
        return all(new is old or new == old or new.finishes(old) for old, new in pairs)

    def _catch_up(self, optimizer: Optimizer, wanted: list[Entry]) -> None:
        for position, entry in enumerate(wanted):
            if position < len(self._entries):
                if entry is not self._entries[position] and entry != self._entries[position]:
                    _finish(optimizer, position, entry)
            elif entry.external:
                value = math.nan if entry.value is None else entry.value
                optimizer.tell(entry.point, value, cost=entry.cost)
            else:
                optimizer.adopt(entry.point, predicted_cost=entry.predicted_cost, record=entry.record)
                _finish(optimizer, position, entry)
        self._entries = wanted


def _finish(optimizer: Optimizer, position: int, entry: Entry) -> None:
    if entry.state is TrialState.COMPLETE and entry.value is not None:
        optimizer.tell(position, entry.value, cost=entry.cost, charge=entry.charge)
    elif entry.state is TrialState.FAILED:
        optimizer.fail(position, cost=entry.charge or entry.cost)
    elif entry.state is TrialState.INTERRUPTED:
        optimizer.interrupt(position, cost=entry.charge or entry.cost)


def _has_more(search_space: SearchSpace, trial: FrozenTrial) -> bool:
    """Whether the trial has parameters, of a branch of its own, say, that the space does not."""
    others = trial.distributions.keys() - search_space.axes.keys()
    return any(not trial.distributions[name].single() for name in others)


def _is_same(before: Account, now: Account) -> bool:
    if before is now:
        return True
    same = before.trial is now.trial and before.observed == now.observed
    return same and before.predicted == now.predicted and before.charged == now.charged


def _outcome(account: Account) -> tuple[TrialState, float | None]:
    """Where the trial stands. A pruned one has no final value, and an infinite value says no more than a failure."""
    trial = account.trial
    if trial.state == StudyState.RUNNING:
        return TrialState.RUNNING, None
    if trial.state == StudyState.COMPLETE and trial.value is not None and math.isfinite(trial.value):
        return TrialState.COMPLETE, trial.value
    return TrialState.INTERRUPTED if account.interrupted else TrialState.FAILED, None


def _record(search_space: SearchSpace, account: Account, point: Mapping[str, Value]) -> Mapping[str, Note]:
    """What was noted of the trial, if it was of this point in this space: a user may have fixed some parameters.

    What was noted in a narrower range says little of a wider one: length scales, a rate that has fallen, that nothing
    was worth its price.
    """
    suggestion, distributions = account.suggestion, search_space.distributions
    if suggestion is None or suggestion.params.keys() != search_space.axes.keys():
        return {}
    if any(
        distribution != distributions.get(name, distribution)
        for name, distribution in account.trial.distributions.items()
    ):
        return {}
    external = {name: distributions[name].to_external_repr(x) for name, x in suggestion.params.items()}
    return suggestion.record if search_space.to_engine(external) == point else {}
