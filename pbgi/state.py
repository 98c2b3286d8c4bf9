"""All that the next suggestion depends on: a space, a direction, settings and trials, and what follows from them.

A state is a value. The same state gives the same suggestion, bit for bit, in any process.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pbgi.arrays import Floats
from pbgi.cost import WARINESS, KnownCost, UniformCost
from pbgi.history import Trial, TrialState, in_state, total_charged, total_reserved
from pbgi.settings import DIRECTIONS, Settings
from pbgi.space import Space

# A trial fits what is left of the budget to within this share of it: ten trials of 0.1 fit a budget of 1, whatever
# rounding says, and so do ten trials of a learned cost that has always been the same.
ROUNDING, LEARNING = 1e-12, 1e-4
LAST_SHARE = 0.1  # of the budget: over it wariness doubles, and nothing is tried that may well not fit


@dataclass(frozen=True, eq=False)
class RunState:
    """Where a run stands.

    Attributes:
        space: Where points lie.
        direction: "minimize" or "maximize".
        settings: What the run was told once and for all.
        trials: The history.
        X: (n, d) The points of all trials in the unit cube.
    """

    space: Space
    direction: str
    settings: Settings
    trials: tuple[Trial, ...]
    X: Floats

    @property
    def sign(self) -> float:
        """What a value is multiplied with so that larger is better."""
        return DIRECTIONS[self.direction]

    def points(self, trials: Sequence[Trial]) -> Floats:
        """(k, d) The points of some of the trials in the unit cube."""
        return self.X[[trial.number for trial in trials]]

    @cached_property
    def completed(self) -> tuple[Trial, ...]:
        """Trials with a value, external ones included."""
        return in_state(self.trials, TrialState.COMPLETE)

    @cached_property
    def running(self) -> tuple[Trial, ...]:
        """Trials whose outcome is not known yet."""
        return in_state(self.trials, TrialState.RUNNING)

    @cached_property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that ended without a value, external ones included."""
        return in_state(self.trials, TrialState.FAILED)

    @cached_property
    def paid(self) -> tuple[Trial, ...]:
        """Trials that say what a success costs: a crash after a second says nothing of what the hours after it cost."""
        return tuple(t for t in self.trials if t.cost is not None and t.value is not None)

    @property
    def best(self) -> Trial | None:
        """The completed trial with the best value; the first of equals; None if there is none."""
        return max(self.completed, key=lambda t: (self.sign * (t.value or 0.0), -t.number), default=None)

    # Costs and the budget --------------------------------------------------------------------------------------------

    @cached_property
    def spent(self) -> float:
        """Charged for finished trials, failed ones included."""
        return total_charged(self.trials)

    @cached_property
    def reserved(self) -> float:
        """Expected cost of the running trials."""
        return total_reserved(self.trials)

    @property
    def remaining(self) -> float | None:
        """What is left of the budget after reservations; None without a budget."""
        budget = self.settings.budget
        return None if budget is None else max(budget - self.spent - self.reserved, 0.0)

    @property
    def typical_cost(self) -> float | None:
        """What a trial that gave a value has cost on average; None while none has told its cost."""
        return mean([trial.cost for trial in self.paid if trial.cost is not None])

    @property
    def prices_are_known(self) -> bool:
        """Whether the cost of every point is known beforehand."""
        return isinstance(self.settings.cost, KnownCost | UniformCost)

    @property
    def cost_is_known(self) -> bool:
        """Whether anything can be said of the cost of a point."""
        nothing_said = self.settings.cost is None and self.settings.budget is None
        return bool(self.paid) or self.prices_are_known or nothing_said

    @property
    def in_the_dark(self) -> bool:
        """Whether a budget must hold while nothing is known of costs: values from elsewhere may say none."""
        return math.isfinite(self.affordable) and not self.cost_is_known

    @property
    def affordable(self) -> float:
        """What the next trial may cost; inf if anything."""
        if self.remaining is None or not self.settings.budget_holds:
            return math.inf
        return self.remaining * (1.0 + (ROUNDING if self.prices_are_known else LEARNING))

    @property
    def wariness(self) -> float:
        """How many deviations above its median a cost must fit: twice as many when the last of the budget is spent.

        A search for the best point that just fits finds the one whose cost is underestimated the most. Near the end,
        where that is a trial too many, little is lost by leaving it out.
        """
        if self.settings.budget is None or self.remaining is None:
            return WARINESS
        return WARINESS * (1.0 + max(1.0 - self.remaining / self.settings.budget / LAST_SHARE, 0.0))


def mean(costs: Sequence[float]) -> float | None:
    """The mean of costs, however large they are; None of none."""
    return math.fsum(cost / len(costs) for cost in costs) if costs else None
