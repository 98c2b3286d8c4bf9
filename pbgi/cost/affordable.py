"""Which points fit what is left of a budget, and what it must reckon with where a category has never been paid for.

The model of costs takes another category to cost about as much as those it knows: a guess that is good for weighing
points and bad for a budget. So until a trial of a category was paid for, it must fit what is left also if it costs a
multiple of that guess: a small one while most of the budget is left, so that categories are tried early, then a large
one.
"""

import math
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.condition import ABSENT_CATEGORY
from pbgi.cost.models import CostModel

# A trial is started if it fits what is left of a budget with a probability of 98 %.
WARINESS = 2.0
# What a category that nobody has paid for is reckoned to cost, as a multiple of the guess: while more than EARLY of the
# budget is left, and after that.
EARLY = 0.5
EARLY_FACTOR, LATE_FACTOR = 3.0, 10.0


@dataclass(frozen=True, eq=False)
class Unseen:
    """How much more than expected a category may cost that nobody has paid for.

    Attributes:
        paid: (d,) Per coordinate the levels that were paid for; None for numbers.
        log_factors: (d,) Logarithm of the multiple of the guess to reckon with.
    """

    paid: tuple[Floats | None, ...]
    log_factors: Floats

    @classmethod
    def of(cls, X: Floats, categorical: Bools, cost: CostModel, share_left: float) -> "Unseen":
        """What follows from the points X (n, d) that were paid for, n at least one.

        Args:
            X: The points.
            categorical: (d,) Which coordinates are categories.
            cost: What is believed of costs.
            share_left: The share of the budget that is left.
        """
        columns = [np.unique(X[:, j]) if is_category else None for j, is_category in enumerate(categorical)]
        paid = tuple(None if c is None else c[c != ABSENT_CATEGORY] for c in columns)
        least = math.log(EARLY_FACTOR if share_left > EARLY else LATE_FACTOR)
        return cls(paid, np.array([max(least, _dearest(X[0], j, levels, cost)) for j, levels in enumerate(paid)]))

    def log_factor(self, X: Floats) -> Floats:
        """(m,) Logarithm of the multiple at points X (m, d); of several unseen categories the squares add up."""
        squares = np.zeros(len(X))
        for j, levels in enumerate(self.paid):
            if levels is not None:
                squares += self.log_factors[j] ** 2 * ~np.isin(X[:, j], [*levels, ABSENT_CATEGORY])
        return np.sqrt(squares)


def fits(cost: CostModel, X: Floats, affordable: float, z: float = WARINESS, unseen: Unseen | None = None) -> Bools:
    """Which points (m, d) cost no more than what is affordable, as likely as a Gaussian is below z deviations."""
    if math.isinf(affordable):
        return np.ones(len(X), dtype=np.bool_)
    upper = cost.log_upper(X, z)
    more = np.zeros(len(X)) if unseen is None else unseen.log_factor(X)
    if more.any():
        upper = np.where(more > 0.0, np.maximum(upper, cost.log_upper(X, 0.0) + more), upper)
    return np.asarray(upper <= (math.log(affordable) if affordable > 0 else -math.inf))


def _dearest(point: Floats, j: int, levels: Floats | None, cost: CostModel) -> float:
    """How far the dearest known category of a parameter is above their mean, at a point that was paid for."""
    if levels is None or len(levels) < 2:
        return 0.0
    alike = np.repeat(point[None], len(levels), axis=0)
    alike[:, j] = levels
    medians = cost.log_upper(alike, 0.0)
    return float(medians.max() - medians.mean())
