"""What is noted of a trial when it is proposed: every name and its type, in one place.

A trial's record maps these names to numbers or lists of numbers, which is all that survives JSON. It is part of the
state of a run: what a policy, a stop rule or a fit must remember of a trial is here and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Note: TypeAlias = float | list[float]
"""What is remembered of a trial under a name."""


class _HasRecord(Protocol):
    @property
    def record(self) -> Mapping[str, Note]: ...


@dataclass(frozen=True)
class NumberNote:
    """A number under a name."""

    name: str

    def of(self, trial: _HasRecord) -> float | None:
        """What a trial has noted under the name, or None."""
        return self.among(trial.record)

    def among(self, notes: Mapping[str, Note]) -> float | None:
        """The same of notes that belong to no trial yet."""
        found = notes.get(self.name)
        if type(found) is float:  # as a rule, and asked for every trial at every step
            return found
        return float(found) if isinstance(found, int | float) else None


@dataclass(frozen=True)
class ListNote:
    """A list of numbers under a name."""

    name: str

    def of(self, trial: _HasRecord) -> list[float] | None:
        """What a trial has noted under the name, or None."""
        found = trial.record.get(self.name)
        return found if isinstance(found, list) else None


# Of a policy: the index of the point, the exchange rate it was found at (both in users' units), and the first rate.
INDEX, COST_SCALE, INITIAL_COST_SCALE = (NumberNote(name) for name in ("index", "cost_scale", "initial_cost_scale"))
# Of GittinsStop, on the point most worth its cost: log(EI / E[c]), its coordinates, log cost and index.
WORTH, WORTH_LOG_COST, WORTH_INDEX = (NumberNote(name) for name in ("worth", "worth_log_cost", "worth_index"))
WORTH_POINT = ListNote("worth_x")
# Of the fits: hyperparameters (length scales, output scale, noise), and how many trials they were fitted to.
VALUE_MODEL, COST_MODEL = ListNote("value_model"), ListNote("cost_model")
VALUE_MODEL_SIZE, COST_MODEL_SIZE = NumberNote("value_model_size"), NumberNote("cost_model_size")


def outcome_model(name: str) -> ListNote:
    """The hyperparameters of the model of an outcome that a condition is about."""
    return ListNote(f"outcome_model.{name}")


def outcome_model_size(name: str) -> NumberNote:
    """How many outcomes it was fitted to."""
    return NumberNote(f"outcome_model_size.{name}")


# Of a policy that looks several steps ahead: its path, point after point, and what it may cost.
PATH, WINDOW = ListNote("path"), NumberNote("window")
