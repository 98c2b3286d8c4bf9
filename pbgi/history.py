"""What has been tried: the trials, in the order of their numbers, and what they cost.

The history is all the state of a run. Nothing else is remembered between two suggestions, so a run that is loaded from
JSON goes on as if it had never stopped. A trial is a frozen record; the history replaces it when its outcome is told:

    add_running -> RUNNING --complete--> COMPLETE      a finite value
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
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NoReturn

from pbgi.checks import check_charge, check_cost, check_outcomes, check_value, set_fields
from pbgi.display.notebook import heading, params_table
from pbgi.errors import InvalidInputError, TrialStateError, UnknownTrialError
from pbgi.notes import Note
from pbgi.serialization import Value, plain_value, require_fields


class TrialState(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


# What is shown of a trial where it is known.
_TOLD = ("value", "cost", "charge", "predicted_cost", "external", "message")
WITHOUT_VALUE = (TrialState.FAILED, TrialState.INTERRUPTED)
NO_OUTCOMES: Mapping[str, float] = MappingProxyType({})


class Params(dict[str, Value]):
    """A point, read-only; `dict(params)` is a copy that can be changed. A dict, so that `json.dumps` takes it."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError("the params of a trial are read-only; change a copy: dict(trial.params)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Params, (dict(self),)  # the default would fill the copy item by item


@dataclass(frozen=True)
class Trial:
    """One point that was handed out or reported, and what became of it; checked when it is made.

    Attributes:
        number: Position in the history, from 0.
        params: The point, read-only.
        state: Where it stands.
        value: The outcome; None unless COMPLETE.
        cost: What it cost; None while RUNNING and where it was not told. That of a COMPLETE trial is an observation of
            what a success costs, that of others is not.
        predicted_cost: What it was expected to cost when it was handed out; None if nothing was predicted.
        external: An observation from elsewhere: it informs the models and is not charged.
        message: Why it failed, if that is known.
        record: What the policy noted when it proposed the point, by name; part of the state of a run.
        charge: What the budget pays for it where that is not its cost: nobody saw what it cost, or it is the last of
            several attempts. Nothing is learned from it.
        constraints: Outcomes that conditions are about, by name, read-only; one that failed may have some of them.
    """

    number: int
    params: Mapping[str, Value] = field(hash=False)
    state: TrialState
    value: float | None = None
    cost: float | None = None
    predicted_cost: float | None = None
    external: bool = False
    message: str | None = None
    record: Mapping[str, Note] = field(default_factory=dict, hash=False)
    charge: float | None = None
    constraints: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        """What is known of it; `record` has the rest."""
        known = {name: value for name in _TOLD if (value := getattr(self, name)) not in (None, False)}
        told = "".join(f", {name}={value!r}" for name, value in known.items())
        return f"Trial({self.number}, {dict(self.params)!r}, {self.state.value}{told})"

    def _repr_html_(self) -> str:
        """For a notebook."""
        known = {name: value for name in _TOLD if (value := getattr(self, name)) not in (None, False)}
        return heading(f"Trial {self.number}, {self.state.value}") + params_table({**self.params, **known})

    def __post_init__(self) -> None:
        where = f"trial {self.number}"
        set_fields(
            self,
            params=Params(_check_params(f"params of {where}", self.params)),
            value=None if self.value is None else check_value(self.value, f"value of {where}"),
            cost=check_cost(self.cost, f"cost of {where}"),
            predicted_cost=check_cost(self.predicted_cost, f"predicted_cost of {where}"),
            record=_check_record(f"record of {where}", self.record),
            charge=check_charge(self.charge, f"charge of {where}"),
            constraints=check_outcomes(self.constraints, f"constraints of {where}"),
        )
        _require_consistent(where, self)

    @property
    def charged(self) -> float:
        """What the budget pays for this trial: nothing while it runs or if it is external.

        A finished trial is charged its charge, its cost, or where neither was told its predicted cost: what was
        reserved for it stays taken, since a crash that reports no cost was not free. Without any of them it is free.
        """
        if self.external or self.state is TrialState.RUNNING:
            return 0.0
        known = (self.charge, self.cost, self.predicted_cost)
        return next((amount for amount in known if amount is not None), 0.0)

    @property
    def reserved(self) -> float:
        """What is held back for this trial: its predicted cost while it runs."""
        return (self.predicted_cost or 0.0) if self.state is TrialState.RUNNING else 0.0


class History:
    """The trials of a run. Records are added and replaced by the methods below, never removed."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._trials = list(trials)
        for position, trial in enumerate(self._trials):
            _require_position(position, trial.number)

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
        checked, predicted_cost = _check_params("params", params), check_cost(predicted_cost, "predicted_cost")
        notes = _check_record("record", record or {})
        return self._put(Trial(len(self), checked, TrialState.RUNNING, predicted_cost=predicted_cost, record=notes))

    def add_external(
        self,
        params: Mapping[str, Value],
        value: float,
        cost: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        """Record an observation from elsewhere; one without a finite value is recorded as failed."""
        checked, value, cost = _check_params("params", params), check_value(value), check_cost(cost)
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
        charge: float | None = None,
        constraints: Mapping[str, float] = NO_OUTCOMES,
    ) -> Trial:
        """Record the outcome of a trial; a value that is NaN or infinite fails the trial.

        Args:
            number: Which trial; trials may end in any order. One that ended without a value takes it late.
            value: The outcome, a real number.
            cost: What it cost, positive and finite, or None: not known.
            charge: What the budget pays for it, if that is not its cost; not negative.
            constraints: Outcomes that conditions are about, by name.

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

    def to_plain(self) -> dict[str, Any]:
        """The history as plain JSON values."""
        return {"trials": [_plain(trial) for trial in self._trials]}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> "History":
        """The history that `to_plain` wrote.

        Raises:
            InvalidInputError: Something else was found; the message names the trial and the field.
        """
        require_fields("history", data, ("trials",))
        if not isinstance(data["trials"], list):
            raise InvalidInputError(f"trials of a history must be a list; got {data['trials']!r}")
        return cls(_read(position, entry) for position, entry in enumerate(data["trials"]))

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


def _said(trial: Trial) -> tuple[object, ...]:
    return trial.state, trial.value, trial.cost, trial.constraints


# Rules for what is noted ---------------------------------------------------------------------------------------------


def _check_params(name: str, params: object) -> dict[str, Value]:
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise InvalidInputError(f"{name} must be a mapping from names to values; got {params!r}")
    return {key: plain_value(f"{name}[{key!r}]", value) for key, value in params.items()}


def _check_record(name: str, record: object) -> dict[str, Note]:
    """A copy of a mapping from names to finite numbers or lists of them."""
    if not isinstance(record, Mapping) or not all(isinstance(key, str) for key in record):
        raise InvalidInputError(f"{name} must be a mapping from names to numbers; got {record!r}")
    for key, value in record.items():
        for number in value if isinstance(value, list) else [value]:
            if type(number) not in (int, float) or not math.isfinite(number):
                raise InvalidInputError(f"{name}[{key!r}] must be a finite number or a list of them; got {value!r}")
    return {key: list(value) if isinstance(value, list) else value for key, value in record.items()}


def _not_finite(value: float) -> str:
    return f"the value of a trial must be finite; got {value!r}"


def _outcome(trial: Trial) -> str:
    others = f", constraints={dict(trial.constraints)!r}" if trial.constraints else ""
    return f"{trial.state.value} with value={trial.value!r}, cost={trial.cost!r}{others}"


def _total(costs: Iterable[float]) -> float:
    try:
        return math.fsum(costs)
    except OverflowError:
        return math.inf


def _plain(trial: Trial) -> dict[str, Any]:
    own = {"params": dict(trial.params), "state": trial.state.value, "constraints": dict(trial.constraints)}
    return asdict(trial) | own


# Reading -----------------------------------------------------------------------------------------------------------

FIELDS = tuple(f.name for f in fields(Trial))


def _read(position: int, entry: Any) -> Trial:
    """The trial at a position of the list, every field checked."""
    if isinstance(entry, Mapping):
        # What was written before there were charges and conditions has none.
        entry = {"charge": None, "constraints": {}, **entry}
    require_fields(f"trials[{position}]", entry, FIELDS)
    _require_position(position, entry["number"])
    if entry["state"] not in [state.value for state in TrialState]:
        states = ", ".join(state.value for state in TrialState)
        raise InvalidInputError(f"state of trial {position} must be one of {states}; got {entry['state']!r}")
    return Trial(**{**entry, "state": TrialState(entry["state"])})


def _require_position(position: int, number: object) -> None:
    if type(number) is not int or number != position:
        rule = "numbers of trials must be 0, 1, 2, ... without gap or repetition"
        raise InvalidInputError(f"{rule}; got number {number!r} at position {position}")


def _require_consistent(where: str, trial: Trial) -> None:
    """Raise unless the fields could have been written by `History`."""
    running, complete = trial.state is TrialState.RUNNING, trial.state is TrialState.COMPLETE
    said = type(trial.message) is str and trial.state in WITHOUT_VALUE
    has_value = trial.value is not None and math.isfinite(trial.value)
    rules = {
        "value": (has_value if complete else trial.value is None, "a finite number if complete, else null"),
        "cost": (not running or trial.cost is None, "null while running"),
        "charge": (not running or trial.charge is None, "null while running"),
        "constraints": (not running or not trial.constraints, "empty while running"),
        "external": (type(trial.external) is bool and not (running and trial.external), "a bool, false while running"),
        "message": (trial.message is None or said, "null, or a str if it ended without a value"),
    }
    for name, (holds, rule) in rules.items():
        if not holds:
            got = getattr(trial, name)
            raise InvalidInputError(f"{name} of {where} must be {rule}; got {got!r} ({trial.state.value})")
