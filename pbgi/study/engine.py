"""From the ledger of a study to an optimizer that knows its trials: for the sampler, the command line and reports.

A trial of the study is one of the engine once all its parameters in the space are known. Trials without such a point
teach nothing; what they cost is taken off the budget that the engine sees. All that the engine must remember is in the
records of its trials, which are stored with those of the study: so every process makes the same optimizer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from optuna.distributions import BaseDistribution
from optuna.trial import TrialState as StudyState

from pbgi.constraints.constraint import Constraints
from pbgi.cost import Cost
from pbgi.gp.config import GPConfig
from pbgi.history import Trial, TrialState
from pbgi.model import length_of_note
from pbgi.notes import VALUE_MODEL, Note
from pbgi.optimizer import Optimizer
from pbgi.serialization import Value
from pbgi.settings import Settings
from pbgi.space import Space
from pbgi.study import attributes
from pbgi.study.ledger import Account, Ledger, total
from pbgi.study.moving import Share, has_taken, params_with_shares
from pbgi.study.outcomes import constraints_of, outcomes_of
from pbgi.study.pruned import estimated_values
from pbgi.study.reports import Lengths, state_of
from pbgi.study.suggestion import external, suggested_params

LEAST_BUDGET = 1e-300  # where trials without a point have used up all of it


class StudySpace(Protocol):
    """A space of the engine, and what the trials of a study are in it; see `spaces.py`."""

    @property
    def space(self) -> Space:
        """As the engine knows it."""

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """As Optuna knows it."""

    def to_engine(self, params: Mapping[str, Any]) -> dict[str, Value] | None:
        """The engine's point for the params of a trial, or None if it is none of this space."""

    def cost_in_values(self, cost: Cost | None) -> Cost | None:
        """The cost, as a function of the engine's values."""


@dataclass(frozen=True, eq=False)
class _Read:
    """What was made of an account: a trial, if it has a point, and whether that point is all there is to it."""

    account: Account
    trial: Trial | None
    has_more: bool


class StudyEngine:
    """The optimizer of a study, made anew when its trials have changed: until then what it has worked out is kept."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lengths = None if settings.steps is None else Lengths(1, settings.steps.last)
        self._space: StudySpace | None = None
        self._read: dict[int, _Read] = {}  # finished trials do not change: each is read once
        self._made_for: tuple[Any, ...] = ()
        self._optimizer: Optimizer | None = None
        self._numbers: tuple[int, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers in the study of the optimizer's trials, in its order."""
        return self._numbers

    def optimizer(self, space: StudySpace, direction: str, ledger: Ledger) -> Optimizer:
        """An optimizer that knows these trials, with what the budget leaves for them."""
        if self._space is None or self._space != space:
            self._space, self._read = space, {}
        read = [self._reading(self._space, account) for account in _in_order(ledger)]
        inside = [one for one in read if one.trial is not None]
        # Where it is known how long a trial is, there is a better model of curves.
        finals = {} if self._lengths else estimated_values((one.account.trial for one in inside), direction)
        trials = tuple(_numbered(_informing(one, finals), i) for i, one in enumerate(inside))
        constraints = constraints_of(self._settings.constraints, (one.account.trial for one in inside))
        has_more = any(one.has_more for one in inside)
        made_for = (self._space, direction, self._budget_inside(read), has_more, constraints)
        if self._optimizer is None or made_for != self._made_for or self._optimizer.trials != trials:
            settings = self._settings_for(self._space, *made_for[2:])
            self._optimizer = Optimizer.of(self._space.space, direction, settings, trials)
            self._made_for = made_for
        self._numbers = tuple(one.account.trial.number for one in inside)
        return self._optimizer

    def _reading(self, space: StudySpace, account: Account) -> _Read:
        before = self._read.get(account.trial.number)
        if before is not None and (before.account is account or before.account == account):
            return before
        trial = engine_trial(space, account, self._lengths)
        read = _Read(account, trial, trial is not None and _has_more(trial, account))
        if account.trial.state.is_finished():
            self._read[account.trial.number] = read
        return read

    def _budget_inside(self, read: Iterable[_Read]) -> float | None:
        """The budget less what the engine does not count."""
        if self._settings.budget is None:
            return None
        outside = total(one.account.expected for one in read if one.trial is None)
        return max(self._settings.budget - outside, min(self._settings.budget, LEAST_BUDGET))

    def _settings_for(
        self, space: StudySpace, budget: float | None, has_more: bool, constraints: Constraints | None
    ) -> Settings:
        model = self._settings.model
        if has_more and isinstance(model, GPConfig):
            model = replace(model, noisy=True)  # one point may give different values, by what it says nothing of
        cost = space.cost_in_values(self._settings.cost)
        return replace(self._settings, budget=budget, cost=cost, model=model, constraints=constraints)


def _in_order(ledger: Ledger) -> list[Account]:
    """The accounts by number; one that goes on with a stopped trial stands where that stood, as it does in a run."""
    goes_on = attributes.GOES_ON
    return sorted(ledger.accounts.values(), key=lambda a: a.trial.system_attrs.get(goes_on, [a.trial.number])[0])


def trial_of_account(
    account: Account, params: Mapping[str, Value], record: Mapping[str, Note], lengths: Lengths | None = None
) -> Trial:
    """A trial of the study with its own number, charged as the ledger says; with its reports, if lengths are known."""
    reports = () if lengths is None else lengths.reports(account.trial, None)
    state, message = _outcome(account, reported=bool(reports))
    running = state is TrialState.RUNNING
    return Trial(
        number=account.trial.number,
        params=params,
        state=state,
        value=account.trial.value if state is TrialState.COMPLETE else None,
        cost=None if running else account.observed,
        predicted_cost=(account.expected or None) if running else account.predicted,
        message=message,
        record=record,
        charge=None if running or account.observed == account.charged else account.charged,
        constraints=outcomes_of(account.trial),
        reports=reports,
    )


def engine_trial(space: StudySpace, account: Account, lengths: Lengths | None = None) -> Trial | None:
    """The trial as the engine sees it; None if it has no point. One that nobody paid for is an observation."""
    suggestion = account.suggestion
    if suggestion is not None and suggestion.refused is not None:
        return None
    point = space.to_engine(suggested_params(account.trial, space.distributions))
    if point is None:
        return None
    trial = trial_of_account(account, point, _record(space, account, point), lengths)
    free = trial.state in (TrialState.COMPLETE, TrialState.FAILED) and account.charged == 0.0
    return replace(trial, external=True, record={}, predicted_cost=None, charge=None) if free else trial


def _informing(one: _Read, finals: Mapping[int, float]) -> Trial:
    """The trial of a reading that has one; a pruned one with the value that it would have had, if that is known."""
    assert one.trial is not None  # noqa: S101 (for the type checker)
    value = finals.get(one.account.trial.number)
    if value is None:
        return one.trial
    charge = None if one.trial.external else one.account.charged
    return replace(one.trial, state=TrialState.COMPLETE, value=value, cost=None, charge=charge, message=None)


def _numbered(trial: Trial, number: int) -> Trial:
    return trial if trial.number == number else replace(trial, number=number)


def _outcome(account: Account, *, reported: bool) -> tuple[TrialState, str | None]:
    """Where the trial stands, and why it failed. A pruned one has no final value, an infinite value is a failure."""
    trial = account.trial
    state = state_of(trial, reports=reported)
    if state in (TrialState.RUNNING, TrialState.COMPLETE):
        return state, None
    if trial.state == StudyState.COMPLETE and trial.value is not None:
        return state, f"the value of a trial must be finite; got {trial.value!r}"
    if state is TrialState.STOPPED and account.begun_again:  # nobody can go on with it
        state = TrialState.INTERRUPTED
    message = trial.user_attrs.get(attributes.MESSAGE)
    return state, message if isinstance(message, str) else None


def _has_more(trial: Trial, account: Account) -> bool:
    """Whether a trial of the study has values of parameters that its point in the space does not have."""
    theirs = account.trial.distributions
    others = theirs.keys() - trial.params.keys()
    return account.trial.state == StudyState.COMPLETE and any(not theirs[name].single() for name in others)


def _record(space: StudySpace, account: Account, point: Mapping[str, Value]) -> Mapping[str, Note]:
    """What was noted of the trial, if it was of this point in this space: a user may have fixed some parameters.

    What was noted in a narrower range says little of a wider one: length scales, a rate that has fallen, that nothing
    was worth its price. Nor does what was noted when fewer parameters were known, or others.
    """
    suggestion, known = account.suggestion, space.distributions
    chosen = {} if suggestion is None else external(suggestion, known)
    if suggestion is None or not {n for n in point if not known[n].single()} <= chosen.keys():
        return {}
    fitted = VALUE_MODEL.of(suggestion)
    if fitted is not None and len(fitted) != length_of_note(space.space.dimension):
        return {}
    ranges = account.trial.distributions.items()
    if any(theirs != known.get(n, theirs) and not isinstance(known[n], Share) for n, theirs in ranges):
        return {}
    named = suggestion.params.keys() | suggestion.shares.keys()
    if not named <= chosen.keys() or not has_taken(account.trial, suggestion.shares):
        return {}
    values = {name: value for name, value in chosen.items() if name not in suggestion.shares}
    taken = chosen | params_with_shares(account.trial, known) | values
    return suggestion.record if space.to_engine(taken) == point else {}
