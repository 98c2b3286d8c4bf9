"""Conditions on outcomes: what a trial must keep, besides having a good value, and which trials do.

A trial is feasible if every condition has an outcome that keeps it. One whose outcome was not told is not known to.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pbgi.arrays import Floats
from pbgi.checks import as_float, check_outcomes, check_value, checks_arguments, is_real, set_fields, unboxed
from pbgi.errors import InvalidInputError
from pbgi.gp.algebra import LARGEST
from pbgi.history import Trial, TrialState

RESERVED = ("value", "cost")  # what functions and programs report under these names is no outcome
# A condition binds where the best trial keeps it by no more than this share of the spread of its outcomes.
CLOSE = 0.05


@checks_arguments
@dataclass(frozen=True)
class AtMost:
    """An outcome must not be above a limit.

    Args:
        limit: The largest outcome that is allowed.
    """

    limit: float

    def __post_init__(self) -> None:
        set_fields(self, limit=_checked_limit(self.limit))

    def margin(self, outcome: float) -> float:
        """How far an outcome is within the limit; negative beyond it."""
        return _difference(self.limit, outcome)

    def __str__(self) -> str:
        return f"at most {self.limit:g}"


@checks_arguments
@dataclass(frozen=True)
class AtLeast:
    """An outcome must not be below a limit.

    Args:
        limit: The smallest outcome that is allowed.
    """

    limit: float

    def __post_init__(self) -> None:
        set_fields(self, limit=_checked_limit(self.limit))

    def margin(self, outcome: float) -> float:
        """How far an outcome is within the limit; negative beyond it."""
        return _difference(outcome, self.limit)

    def __str__(self) -> str:
        return f"at least {self.limit:g}"


Condition: TypeAlias = AtMost | AtLeast
Constraints: TypeAlias = Mapping[str, Condition]
CONDITIONS: tuple[type, ...] = (AtMost, AtLeast)


def checked_constraints(constraints: Any) -> dict[str, Condition] | None:
    """Names of outcomes with their conditions; None of none.

    Raises:
        InvalidInputError: It is something else.
    """
    rule = "constraints must map names of outcomes to pbgi.AtMost(limit) or pbgi.AtLeast(limit)"
    if constraints is None:
        return None
    if not isinstance(constraints, Mapping):
        raise InvalidInputError(f"{rule}; got {constraints!r}")
    for name, condition in constraints.items():
        if not isinstance(name, str) or not name or name in RESERVED:
            reserved = " and ".join(map(repr, RESERVED))
            raise InvalidInputError(f"{rule}; a name must be a text other than {reserved}; got {name!r}")
        if not isinstance(condition, CONDITIONS):
            raise InvalidInputError(f"{rule}; got {condition!r} for {name!r}")
    return dict(constraints) or None


def is_feasible(trial: Trial, constraints: Constraints | None) -> bool:
    """Whether a trial has a value and is known to keep all conditions."""
    if trial.state is not TrialState.COMPLETE:
        return False
    told = trial.constraints
    return all(name in told and condition.margin(told[name]) >= 0.0 for name, condition in (constraints or {}).items())


def margins(constraints: Constraints, trials: Sequence[Trial]) -> dict[str, Floats]:
    """Of each condition (n,) how far the trials are within its limit; NaN where nothing was told."""
    return {
        name: np.array([condition.margin(trial.constraints.get(name, math.nan)) for trial in trials], dtype=np.float64)
        for name, condition in constraints.items()
    }


@dataclass(frozen=True)
class ConditionStatus:
    """How a condition stands.

    Attributes:
        name: Of the outcome.
        condition: What it must keep.
        n_told: How many trials have told it.
        n_broken: How many of them break it.
        outcome: Of the best feasible trial, or of the one that is nearest to being feasible; None if there is none.
        binds: Whether it is what keeps the search from better values: the best trial is close to its limit or, while no
            trial is feasible, the nearest one breaks it.
    """

    name: str
    condition: Condition
    n_told: int
    n_broken: int
    outcome: float | None
    binds: bool

    def __str__(self) -> str:
        outcome = "no outcome yet" if self.outcome is None else f"{self.outcome:g}"
        broken = f"broken by {self.n_broken} of {self.n_told} trials"
        return f"{self.name}: {outcome}, {self.condition}; {broken}{'; binds' if self.binds else ''}"


def statuses(
    constraints: Constraints | None, trials: Sequence[Trial], best: Trial | None
) -> tuple[ConditionStatus, ...]:
    """How the conditions stand, given the best feasible trial, if there is one."""
    if not constraints:
        return ()
    known = margins(constraints, trials)
    shown = nearest(constraints, trials) if best is None else best
    return tuple(_status(name, constraints[name], known[name], shown, best) for name in constraints)


def beyond_limits(constraints: Constraints, trials: Sequence[Trial]) -> Floats:
    """(n,) How far trials are beyond the limit that they break the most, in units of the spread of its outcome.

    Zero where all conditions are kept, infinite where an outcome was not told.
    """
    known = margins(constraints, trials).values()
    with np.errstate(over="ignore"):  # what is beyond by more than a float holds is infinitely far
        beyond = [np.where(np.isnan(margin), np.inf, np.maximum(-margin, 0.0)) / _spread(margin) for margin in known]
    return np.asarray(np.max(beyond, axis=0), dtype=np.float64)


def nearest(constraints: Constraints, trials: Sequence[Trial]) -> Trial | None:
    """The trial that is beyond the limits by the least; None if none has told all outcomes."""
    beyond = beyond_limits(constraints, trials) if trials else np.empty(0)
    return trials[int(np.argmin(beyond))] if np.isfinite(beyond).any() else None


def _status(name: str, condition: Condition, known: Any, shown: Trial | None, best: Trial | None) -> ConditionStatus:
    outcome = None if shown is None else shown.constraints.get(name)
    limit = 0.0 if best is None else CLOSE * _spread(known)
    margin = math.inf if outcome is None else condition.margin(outcome)
    told = known[~np.isnan(known)]
    return ConditionStatus(
        name=name,
        condition=condition,
        n_told=len(told),
        n_broken=int((told < 0.0).sum()),
        outcome=outcome,
        binds=margin < 0.0 if best is None else margin <= limit,
    )


def _difference(a: float, b: float) -> float:
    """Their difference, or the largest float where it is more; NaN of NaN."""
    difference = a - b
    return math.copysign(LARGEST, difference) if math.isinf(difference) else difference


def _spread(known: Any) -> float:
    """The standard deviation of what was told; one where that says nothing."""
    told = known[~np.isnan(known)]
    with np.errstate(over="ignore"):
        spread = float(told.std()) if len(told) else 0.0
    return spread if 0.0 < spread < math.inf else 1.0


def _checked_limit(limit: Any) -> float:
    plain = unboxed(limit)
    if not is_real(plain) or not math.isfinite(as_float(plain)):
        raise InvalidInputError(f"limit must be a finite number; got {limit!r}")
    return as_float(plain)


def told_outcomes(
    conditions: Constraints | None, told: Mapping[str, float], value: float | None
) -> Mapping[str, float]:
    """The outcomes, if they are those of the conditions: all of them where there is a value."""
    outcomes, wanted = check_outcomes(told), conditions or {}
    unknown = [name for name in outcomes if name not in wanted]
    if unknown:
        there = f"there are {', '.join(map(repr, wanted))}" if wanted else "there are no conditions"
        raise InvalidInputError(f"constraints must be outcomes that conditions are about; {there}; got {unknown[0]!r}")
    missing = [name for name in wanted if name not in outcomes]
    if missing and value is not None and math.isfinite(check_value(value)):
        raise InvalidInputError(
            f"constraints must have the outcome {missing[0]!r}, which a condition is about; got {dict(told)!r}"
        )
    return outcomes
