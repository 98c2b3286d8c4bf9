"""When a run ends, and why: each rule is a frozen value that gives a `StopReason` or None.

Rules look at the history and at what the next trial would be. `a | b` stops when either does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from pbgi.acquisition import LogExpectedImprovement, UnwarpedIndex
from pbgi.arrays import Floats
from pbgi.best_point import best_point
from pbgi.checks import checks_arguments, require_count, require_positive, set_fields
from pbgi.constraints.constraint import Constraints, is_feasible
from pbgi.errors import InvalidInputError
from pbgi.history import Trial
from pbgi.notes import WORTH, WORTH_INDEX, WORTH_LOG_COST, WORTH_POINT, Note
from pbgi.snapshot import Snapshot, cost_of


@dataclass(frozen=True)
class StopReason:
    """Why a run ended: the rule, the reason in words, and its numbers."""

    rule: str
    message: str
    numbers: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.message


class NothingLeft(Enum):
    """Why there is no next trial."""

    EXHAUSTED = "every point of the space has been tried"
    UNAFFORDABLE = "no trial is expected to fit what is left of the budget"


@dataclass(frozen=True, eq=False)
class Situation:
    """What a rule may look at.

    Attributes:
        trials: The history.
        budget: What may be spent, or None.
        spent: Charged so far.
        reserved: Held for running trials.
        sign: 1 if the user maximizes, else -1.
        note: What the rules noted of the next trial.
        nothing_left: Why there is no next trial, or None if there is one.
        constraints: Conditions on outcomes, or None.
    """

    trials: tuple[Trial, ...]
    budget: float | None
    spent: float
    reserved: float
    sign: float
    note: Mapping[str, Note]
    nothing_left: NothingLeft | None = None
    constraints: Constraints | None = None


class StopRule(Protocol):
    """When a run ends."""

    def note(self, snapshot: Snapshot, rng: np.random.Generator) -> dict[str, Note]:
        """Numbers about the next trial, kept in its record: what the rule must remember."""

    def reason(self, situation: Situation) -> StopReason | None:
        """The reason to stop now, or None."""


class _Combinable:
    def __or__(self, other: "StopRule") -> "AnyOf":
        return AnyOf((*rules_of(self), *rules_of(other)))


def rules_of(rule: Any) -> tuple[Any, ...]:
    """The rules that a combination is made of, however nested; a single one of itself."""
    return tuple(part for inner in rule.rules for part in rules_of(inner)) if isinstance(rule, AnyOf) else (rule,)


@checks_arguments
@dataclass(frozen=True)
class AnyOf(_Combinable):
    """Stops when one of its rules does."""

    rules: tuple[Any, ...]

    def __post_init__(self) -> None:
        set_fields(self, rules=tuple(self.rules))
        for rule in self.rules:
            if isinstance(rule, type) or not all(callable(getattr(rule, name, None)) for name in ("reason", "note")):
                raise InvalidInputError(f"rules must be stop rules, objects with reason() and note(); got {rule!r}")

    def note(self, snapshot: Snapshot, rng: np.random.Generator) -> dict[str, Note]:
        """What all rules noted."""
        return {name: number for rule in self.rules for name, number in rule.note(snapshot, rng).items()}

    def reason(self, situation: Situation) -> StopReason | None:
        """The first reason."""
        return next((found for rule in self.rules if (found := rule.reason(situation))), None)


@checks_arguments
@dataclass(frozen=True)
class MaxTrials(_Combinable):
    """Stops when so many trials have been handed out; observations from elsewhere do not count."""

    n: int

    def __post_init__(self) -> None:
        set_fields(self, n=require_count("n", self.n))

    def note(self, snapshot: Snapshot, rng: np.random.Generator) -> dict[str, Note]:
        """Nothing to remember."""
        return {}

    def reason(self, situation: Situation) -> StopReason | None:
        """Enough trials."""
        n = sum(not trial.external for trial in situation.trials)
        if n < self.n:
            return None
        return StopReason("MaxTrials", f"Reached the limit of {n} trials", {"trials": float(n)})


@checks_arguments
@dataclass(frozen=True)
class BudgetSpent(_Combinable):
    """Stops when the budget is spent, or when nothing is expected to fit what is left of it.

    Args:
        overshoot: Start trials as long as anything is left, as in the paper; the last one may cost more.
    """

    overshoot: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.overshoot, bool):
            raise InvalidInputError(f"overshoot must be True or False; got {self.overshoot!r}")

    def note(self, snapshot: Snapshot, rng: np.random.Generator) -> dict[str, Note]:
        """Nothing to remember."""
        return {}

    def reason(self, situation: Situation) -> StopReason | None:
        """Nothing left, or too little."""
        if situation.budget is None:
            return None
        left = situation.budget - situation.spent - situation.reserved
        numbers = {"budget": situation.budget, "spent": situation.spent, "reserved": situation.reserved, "left": left}
        if left <= 0:
            message = f"the budget of {situation.budget:g} is spent: {situation.spent:g}"
            held = f", and {situation.reserved:g} held for running trials" if situation.reserved else ""
            return StopReason("BudgetSpent", message + held, numbers)
        if not self.overshoot and situation.nothing_left is NothingLeft.UNAFFORDABLE:
            message = f"no trial is expected to fit the {left:g} that is left of the budget of {situation.budget:g}"
            return StopReason("BudgetSpent", message, numbers)
        return None


# A point that was the best to try once may still be: as many former ones are looked at again, besides a fresh search.
N_FORMER = 16


@checks_arguments
@dataclass(frozen=True)
class GittinsStop(_Combinable):
    """Stops when no point is worth its price: no expected improvement exceeds cost_scale times the expected cost.

    Args:
        cost_scale: How much of the objective one unit of cost is worth.
        patience: How many trials in a row must find that; a maximum missed once is then not yet a reason.
    """

    cost_scale: float
    patience: int = 3

    def __post_init__(self) -> None:
        set_fields(self, cost_scale=require_positive("cost_scale", self.cost_scale))
        set_fields(self, patience=require_count("patience", self.patience))

    def note(self, snapshot: Snapshot, rng: np.random.Generator) -> dict[str, Note]:
        """The point most worth its price, whatever the exchange rate: log(EI / E[c]), its cost, and its index."""
        per_cost = LogExpectedImprovement(snapshot.model, snapshot.price, snapshot.best_warped, cost_power=1.0)
        found = best_point(snapshot, per_cost, rng, former_maximizers=_former_maximizers(snapshot))
        if found.x is None or not math.isfinite(found.value):
            return {}
        index = UnwarpedIndex(snapshot.model, snapshot.price, self.cost_scale, snapshot.warp).value(found.x[None])
        return {
            # Above the best value a step of the model's is one of the user's times the slope there.
            WORTH.name: found.value + math.log(snapshot.warp.top_slope),
            WORTH_POINT.name: found.x.tolist(),
            WORTH_LOG_COST.name: float(snapshot.cost.log_moment(found.x[None], 1.0)[0]),
            WORTH_INDEX.name: float(snapshot.warp.to_values(index)[0]),
        }

    def reason(self, situation: Situation) -> StopReason | None:
        """Not worth it, `patience` times in a row."""
        asked = [worth for trial in situation.trials if (worth := WORTH.of(trial)) is not None]
        worth, log_cost, index = (note.among(situation.note) for note in (WORTH, WORTH_LOG_COST, WORTH_INDEX))
        if worth is None or log_cost is None or index is None:
            return None
        recent = [*asked[len(asked) - self.patience + 1 :], worth]
        log_scale = math.log(self.cost_scale)
        if len(asked) < self.patience - 1 or max(recent) > log_scale:
            return None
        values = [situation.sign * t.value for t in situation.trials if t.value is not None]
        kept = [t for t in situation.trials if is_feasible(t, situation.constraints)]
        # Without a feasible one the least value stands for it, as in the model.
        best = max((situation.sign * (t.value or 0.0) for t in kept), default=min(values))
        index, best, cost = situation.sign * index, situation.sign * best, cost_of(log_cost)
        # Of the improvement only what is likely to succeed counts: p EI - cost_scale E[c], with p = cost / price.
        gain = cost_of(log_scale + log_cost) * math.expm1(worth - log_scale)
        known = "best value" if kept else "worst value, none being feasible"
        message = (
            f"no further trial is worth its price: the most promising one has index {index:g}, which does not beat the "
            f"{known}, {best:g}; it would cost {cost:g} and lose {abs(gain):g} net"
        )
        numbers = {"index": index, "best_value": best, "predicted_cost": cost, "net_gain": gain}
        return StopReason("GittinsStop", message, numbers)


def _former_maximizers(snapshot: Snapshot) -> Floats:
    """The latest points (k, d) that were most worth their price."""
    points = [point for trial in snapshot.trials if (point := WORTH_POINT.of(trial)) is not None]
    return np.array(points[-N_FORMER:], dtype=np.float64).reshape(-1, snapshot.space.dimension)


STOP_RULES: tuple[type, ...] = (AnyOf, BudgetSpent, GittinsStop, MaxTrials)
