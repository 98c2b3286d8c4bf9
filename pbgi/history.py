"""What has been tried: the trials, in the order of their numbers, and what they cost.

The history is all the state of a run. Nothing else is remembered between two suggestions, so a run that is loaded from
JSON goes on as if it had never stopped. A trial is a frozen record; the history replaces it when its outcome is told:

    add_running -> RUNNING --complete--> COMPLETE      a finite value
                           --report----> RUNNING       a value on its way; the trial is charged what it has cost
                           --stop------> STOPPED       not worth going on: charged what it has cost; --resume--> RUNNING
                           --complete--> FAILED        a value that is NaN or infinite: recorded, never an error
                           --fail------> FAILED
                           --interrupt-> INTERRUPTED   ended from outside: charged, and it says nothing of its point
    add_external -> COMPLETE or FAILED                 an observation from elsewhere: it informs, nobody pays for it

A trial that has a value stays as it is. Telling it the same again changes nothing; telling it something else is an
error. One that ended without a value takes one that comes late: its worker may have been given up too early. Every
method checks all of its arguments before it changes anything.
"""

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pbgi.checks import check_charge, check_cost, check_value
from pbgi.errors import InvalidInputError, TrialStateError, UnknownTrialError
from pbgi.notes import Note
from pbgi.serialization import Value, require_fields
from pbgi.trials.steps import checked_report, require_next
from pbgi.trials.trial import (
    NO_OUTCOMES,
    WITHOUT_VALUE,
    Params,
    Trial,
    TrialState,
    check_params,
    check_record,
    plain_trial,
    read_trial,
    require_position,
)

__all__ = [  # trials are spoken of together with their history
    "NO_OUTCOMES",
    "WITHOUT_VALUE",
    "History",
    "Params",
    "Trial",
    "TrialState",
    "in_state",
    "total_charged",
    "total_reserved",
]


class History:
    """The trials of a run. Records are added and replaced by the methods below, never removed."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._trials = list(trials)
        for position, trial in enumerate(self._trials):
            require_position(position, trial.number)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order of their numbers; a snapshot that later changes do not reach."""
        return tuple(self._trials)

    @property
    def running(self) -> tuple[Trial, ...]:
        """Trials whose outcome is not known yet."""
        return self._in_state(TrialState.RUNNING)

    @property
    def completed(self) -> tuple[Trial, ...]:
        """Trials with a value, external ones included."""
        return self._in_state(TrialState.COMPLETE)

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that ended without a value, external ones included."""
        return self._in_state(TrialState.FAILED)

    @property
    def spent(self) -> float:
        """Total charged for finished trials, see `Trial.charged`; correctly rounded, whatever the order of telling."""
        return total_charged(self._trials)

    @property
    def reserved(self) -> float:
        """Total predicted cost of the running trials."""
        return total_reserved(self._trials)

    def trial(self, number: int) -> Trial:
        """The trial with this number.

        Raises:
            UnknownTrialError: There is none.
        """
        try:
            position = -1 if isinstance(number, bool) else operator.index(number)
        except TypeError:
            position = -1
        if 0 <= position < len(self._trials):
            return self._trials[position]
        known = f"numbers go from 0 to {len(self._trials) - 1}" if self._trials else "there are no trials yet"
        raise UnknownTrialError(f"a trial must be one of this history; got number {number!r}; {known}")

    @property
    def interrupted(self) -> tuple[Trial, ...]:
        """Trials that were ended from outside before they could say anything."""
        return self._in_state(TrialState.INTERRUPTED)

    def add_running(
        self,
        params: Mapping[str, Value],
        predicted_cost: float | None = None,
        record: Mapping[str, Note] | None = None,
    ) -> Trial:
        """Record a point that was handed out, and reserve what it is expected to cost."""
        checked, predicted_cost = check_params("params", params), check_cost(predicted_cost, "predicted_cost")
        notes = check_record("record", record or {})
        return self._put(Trial(len(self), checked, TrialState.RUNNING, predicted_cost=predicted_cost, record=notes))

    def add_external(
        self,
        params: Mapping[str, Value],
        value: float,
        cost: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        """Record an observation from elsewhere; one without a finite value is recorded as failed."""
        checked, value, cost = check_params("params", params), check_value(value), check_cost(cost)
        good, number = math.isfinite(value), len(self)
        state, message = (TrialState.COMPLETE, None) if good else (TrialState.FAILED, _not_finite(value))
        told = value if good else None
        trial = Trial(number, checked, state, told, cost, external=True, message=message, constraints=constraints)
        return self._put(trial)

    def complete(
        self,
        number: int,
        value: float,
        cost: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
        charge: float | None = None,
    ) -> Trial:
        """Record the outcome of a trial; a value that is NaN or infinite fails the trial.

        Args:
            number: Which trial; trials may end in any order. One that ended without a value takes it late.
            value: The outcome, a real number.
            cost: What it cost, positive and finite, or None: not known.
            constraints: Outcomes that conditions are about, by name.
            charge: What the budget pays for it, if that is not its cost; not negative.

        Returns:
            The finished trial; if it was finished with this value and this cost before, as it was.

        Raises:
            UnknownTrialError: There is no such trial.
            InvalidInputError: The value, the cost or the charge breaks its rule.
            TrialStateError: The trial has another value or cost.
        """
        trial, value, cost, charge = self.trial(number), check_value(value), check_cost(cost), check_charge(charge)
        if not math.isfinite(value):
            return self.fail(number, cost, _not_finite(value), charge, constraints)
        if cost is None and charge is None and trial.state in WITHOUT_VALUE:
            charge = trial.charged  # what was charged when it was given up
        if trial.reports and trial.state is not TrialState.COMPLETE:
            cost = _not_below_reported(trial, cost)
        outcome = replace(
            trial,
            state=TrialState.COMPLETE,
            value=value,
            cost=cost,
            charge=charge,
            message=None,
            constraints=constraints,
        )
        return self._finish(trial, outcome)

    def fail(
        self,
        number: int,
        cost: float | None = None,
        message: str | None = None,
        charge: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        """End a trial without a value.

        Arguments, result and errors are those of `complete`. Of two messages for one failure the first stays.
        """
        return self._end_without_value(TrialState.FAILED, number, cost, message, charge, constraints)

    def interrupt(
        self, number: int, cost: float | None = None, message: str | None = None, charge: float | None = None
    ) -> Trial:
        """Record that a trial was ended from outside: it is charged, and says nothing of its point.

        Arguments, result and errors are those of `fail`.
        """
        return self._end_without_value(TrialState.INTERRUPTED, number, cost, message, charge)

    def report(self, number: int, step: int, value: float, cost: float | None = None) -> Trial:
        """Record how far a running trial has come; a value that is NaN or infinite fails the trial.

        Args:
            number: Which trial.
            step: How far it has come; steps rise.
            value: The value there.
            cost: What it has cost so far, all steps together, or None: not known.

        Returns:
            The trial; if its last report said the same, as it was.

        Raises:
            UnknownTrialError: There is no such trial.
            InvalidInputError: A number breaks its rule, the step does not follow the last, or the cost has shrunk.
            TrialStateError: The trial does not run.
        """
        trial, report = self.trial(number), checked_report(step, value, cost)
        if report in trial.reports[-1:]:
            return trial
        _require_running(trial, f"a report of step {report.step}")
        require_next(f"trial {number}", trial.reports, report)
        if not math.isfinite(report.value):
            return self.fail(number, report.cost, _not_finite(report.value), charge=None)
        return self._put(replace(trial, reports=(*trial.reports, report)))

    def stop(self, number: int, charge: float | None = None, message: str | None = None) -> Trial:
        """Record that a running trial was stopped early: it is charged what it has reported, or the charge."""
        trial, charge = self.trial(number), check_charge(charge)
        if trial.state is TrialState.STOPPED:
            return trial
        _require_running(trial, "that it was stopped")
        cost = trial.used or None
        return self._put(replace(trial, state=TrialState.STOPPED, cost=cost, charge=charge, message=message))

    def resume(self, number: int) -> Trial:
        """Record that a stopped trial goes on from where it stood."""
        trial = self.trial(number)
        if trial.state is not TrialState.STOPPED:
            raise TrialStateError(f"only a stopped trial can go on; trial {number} is {trial.state.value}")
        return self._put(replace(trial, state=TrialState.RUNNING, cost=None, charge=None, message=None))

    def to_plain(self) -> dict[str, Any]:
        """The history as plain JSON values."""
        return {"trials": [plain_trial(trial) for trial in self._trials]}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> "History":
        """The history that `to_plain` wrote.

        Raises:
            InvalidInputError: Something else was found; the message names the trial and the field.
        """
        require_fields("history", data, ("trials",))
        if not isinstance(data["trials"], list):
            raise InvalidInputError(f"trials of a history must be a list; got {data['trials']!r}")
        return cls(read_trial(position, entry) for position, entry in enumerate(data["trials"]))

    def __len__(self) -> int:
        return len(self._trials)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self._trials == other._trials

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        counts = f"{len(self.running)} running, {len(self.completed)} complete, {len(self.failed)} failed"
        return f"History({counts}, spent={self.spent!r}, reserved={self.reserved!r})"

    def _in_state(self, state: TrialState) -> tuple[Trial, ...]:
        return in_state(self._trials, state)

    def _put(self, trial: Trial) -> Trial:
        """The only place where the record changes."""
        self._trials[trial.number : trial.number + 1] = [trial]
        return trial

    def _end_without_value(
        self,
        state: TrialState,
        number: int,
        cost: float | None,
        message: str | None,
        charge: float | None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        trial, cost, charge = self.trial(number), check_cost(cost), check_charge(charge)
        if message is not None and not isinstance(message, str):
            raise InvalidInputError(f"message must be a str or None; got {message!r}")
        if trial.reports and trial.state is TrialState.RUNNING and charge is None:
            cost = _not_below_reported(trial, cost)
        outcome = replace(
            trial, state=state, value=None, cost=cost, charge=charge, message=message, constraints=constraints
        )
        return self._finish(trial, outcome)

    def _finish(self, trial: Trial, outcome: Trial) -> Trial:
        late = trial.state in WITHOUT_VALUE and outcome.state is TrialState.COMPLETE and not trial.external
        if trial.state is TrialState.RUNNING or late:
            return self._put(outcome)
        if _said(trial) == _said(outcome) and outcome.charge in (None, trial.charge):
            return trial
        rule = f"trial {trial.number} is finished and stays as it is: {_outcome(trial)}"
        raise TrialStateError(f"{rule}; got {_outcome(outcome)}; report a new observation of the point instead")


def in_state(trials: Iterable[Trial], state: TrialState) -> tuple[Trial, ...]:
    """Those of the trials that are in this state."""
    return tuple(trial for trial in trials if trial.state is state)


def total_charged(trials: Iterable[Trial]) -> float:
    """What finished trials are charged, correctly rounded."""
    return _total(trial.charged for trial in trials)


def total_reserved(trials: Iterable[Trial]) -> float:
    """What is held for running trials."""
    return _total(trial.reserved for trial in trials)


def _require_running(trial: Trial, told: str) -> None:
    if trial.state is not TrialState.RUNNING:
        rule = f"trial {trial.number} does not run and stays as it is: {_outcome(trial)}"
        raise TrialStateError(f"{rule}; got {told}")


def _not_below_reported(trial: Trial, cost: float | None) -> float | None:
    """What a trial has cost in the end: what it reported, if nothing else is told."""
    if cost is not None and cost < trial.used:
        rule = f"the cost of trial {trial.number} must be at least what it has reported, {trial.used!r}"
        raise InvalidInputError(f"{rule}; got {cost!r}; it is that of all steps together")
    return cost or trial.used or None


def _said(trial: Trial) -> tuple[object, ...]:
    return trial.state, trial.value, trial.cost, trial.constraints


def _outcome(trial: Trial) -> str:
    others = f", constraints={dict(trial.constraints)!r}" if trial.constraints else ""
    return f"{trial.state.value} with value={trial.value!r}, cost={trial.cost!r}{others}"


def _not_finite(value: float) -> str:
    return f"the value of a trial must be finite; got {value!r}"


def _total(costs: Iterable[float]) -> float:
    try:
        return math.fsum(costs)
    except OverflowError:
        return math.inf
