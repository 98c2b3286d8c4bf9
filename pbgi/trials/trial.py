"""A trial: one point that was handed out or reported, and what became of it, as a frozen record that checks itself."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NoReturn

from pbgi.checks import as_float, check_charge, check_cost, check_outcomes, check_value, set_fields
from pbgi.display.notebook import heading, params_table, sentence
from pbgi.display.wording import number as short_number
from pbgi.errors import InvalidInputError
from pbgi.notes import Note
from pbgi.serialization import Value, plain_value, require_fields
from pbgi.trials.steps import Report, checked_reports, cost_so_far


class TrialState(StrEnum):
    """The state of a trial."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"


# What is shown of a trial where it is known.
_TOLD = ("value", "cost", "charge", "predicted_cost", "external", "message")
WITHOUT_VALUE = (TrialState.FAILED, TrialState.INTERRUPTED, TrialState.STOPPED)
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
        reports: What it said on its way, in the order of the steps.
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
    reports: tuple[Report, ...] = ()

    def __repr__(self) -> str:
        """What is known of it; `record` has the rest."""
        known = {name: value for name in _TOLD if (value := getattr(self, name)) not in (None, False)}
        told = "".join(f", {name}={value!r}" for name, value in known.items())
        return f"Trial({self.number}, {dict(self.params)!r}, {self.state.value}{told})"

    def _repr_html_(self) -> str:
        """For a notebook."""
        known = {name: getattr(self, name) for name in _TOLD} | dict(self.constraints)
        told = [
            name if value is True else f"{name} {short_number(value)}"
            for name, value in known.items()
            if value not in (None, False) and name != "message"
        ]
        step = [f"at step {self.step}"] if self.reports else []
        words = ", ".join([" ".join([self.state.value, *step]), *(each.replace("_", " ") for each in told)])
        said = "" if self.message is None else sentence(self.message)
        return heading(f"Trial {self.number}: {words}") + params_table(self.params) + said

    def __post_init__(self) -> None:
        where = f"trial {self.number}"
        set_fields(
            self,
            params=Params(check_params(f"params of {where}", self.params)),
            value=None if self.value is None else check_value(self.value, f"value of {where}"),
            cost=check_cost(self.cost, f"cost of {where}"),
            predicted_cost=check_cost(self.predicted_cost, f"predicted_cost of {where}"),
            record=check_record(f"record of {where}", self.record),
            charge=check_charge(self.charge, f"charge of {where}"),
            constraints=check_outcomes(self.constraints, f"constraints of {where}"),
            reports=checked_reports(where, self.reports) if self.reports else (),
        )
        _require_consistent(where, self)

    @property
    def charged(self) -> float:
        """What the budget pays for this trial: nothing if it is external, what it has reported while it runs.

        A finished trial is charged its charge, its cost, or where neither was told its predicted cost: what was
        reserved for it stays taken, since a crash that reports no cost was not free. Without any of them it is free.
        """
        if self.external:
            return 0.0
        if self.state is TrialState.RUNNING:
            return self.used
        known = (self.charge, self.cost, self.predicted_cost)
        return next((amount for amount in known if amount is not None), 0.0)

    @property
    def reserved(self) -> float:
        """What is held back for this trial: what is left of its predicted cost while it runs."""
        return max((self.predicted_cost or 0.0) - self.used, 0.0) if self.state is TrialState.RUNNING else 0.0

    @property
    def used(self) -> float:
        """What it has cost by its last report."""
        return cost_so_far(self.reports)

    @property
    def step(self) -> int:
        """How far it has come: the step of its last report, 0 before that."""
        return self.reports[-1].step if self.reports else 0


# Rules for what is noted ---------------------------------------------------------------------------------------------


def check_params(name: str, params: object) -> dict[str, Value]:
    """A copy of a mapping from names to values that survive JSON."""
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise InvalidInputError(f"{name} must be a mapping from names to values; got {params!r}")
    return {key: plain_value(f"{name}[{key!r}]", value) for key, value in params.items()}


def check_record(name: str, record: object) -> dict[str, Note]:
    """A copy of a mapping from names to finite numbers or lists of them."""
    if not isinstance(record, Mapping) or not all(isinstance(key, str) for key in record):
        raise InvalidInputError(f"{name} must be a mapping from names to numbers; got {record!r}")
    for key, value in record.items():
        for number in value if isinstance(value, list) else [value]:
            if type(number) not in (int, float) or not math.isfinite(as_float(number)):
                raise InvalidInputError(f"{name}[{key!r}] must be a finite number or a list of them; got {value!r}")
    return {key: list(value) if isinstance(value, list) else value for key, value in record.items()}


def plain_trial(trial: Trial) -> dict[str, Any]:
    """A trial as plain JSON values."""
    reports = [list(report) for report in trial.reports]
    own = {"params": dict(trial.params), "state": trial.state.value, "constraints": dict(trial.constraints)}
    return asdict(trial) | own | {"reports": reports}


# Reading -----------------------------------------------------------------------------------------------------------

FIELDS = tuple(f.name for f in fields(Trial))


def read_trial(position: int, entry: Any) -> Trial:
    """The trial at a position of the list, every field checked."""
    if isinstance(entry, Mapping):
        # What was written before there were charges, conditions and reports has none.
        entry = {"charge": None, "constraints": {}, "reports": [], **entry}
    require_fields(f"trials[{position}]", entry, FIELDS)
    require_position(position, entry["number"])
    if entry["state"] not in [state.value for state in TrialState]:
        states = ", ".join(state.value for state in TrialState)
        raise InvalidInputError(f"state of trial {position} must be one of {states}; got {entry['state']!r}")
    return Trial(**{**entry, "state": TrialState(entry["state"])})


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


def require_position(position: int, number: object) -> None:
    """Raise unless a trial at this position of a history has its number."""
    if type(number) is not int or number != position:
        rule = "numbers of trials must be 0, 1, 2, ... without gap or repetition"
        raise InvalidInputError(f"{rule}; got number {number!r} at position {position}")
