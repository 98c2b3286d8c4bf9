"""How likely points are to keep all conditions, learned from outcomes: p(x) = prod Phi((mean_k - limit_k) / std_k).

Each outcome has a Gaussian process, of its margin: how far it is within its limit. A box that keeps its prize only
with probability p is opened 1/p times for each prize, as in `success.py`: p EI(x; g) = cost_scale c is
EI = cost_scale c / p.

Outcomes that always move together are one outcome. If a margin is an increasing straight function of another, on at
least three different values, one process serves for both, with the stricter limit: they are kept or broken together,
and a product would count them twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from pbgi.arrays import Floats
from pbgi.model import Model
from pbgi.search import Acquisition

# Margins, standardized, that differ by no more than this are the same: what is left of rounding.
SAME = 1e-6
FEWEST_SAME = 3  # different values: any two are on a straight line
LIKELY = float(np.log(0.5))
# Below all that is likely to keep the conditions, whatever it is worth.
BELOW = 1e9
LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class OutcomeModel:
    """What is believed of the margin of an outcome, as its model sees it.

    Attributes:
        model: Of the margin, the larger the better.
        limit: Where it is zero, in the model's units.
    """

    model: Model
    limit: float


@dataclass(frozen=True, eq=False)
class Feasibility:
    """How likely points are to keep all conditions."""

    outcomes: tuple[OutcomeModel, ...]

    def log_chance(self, X: Floats) -> Floats:
        """Logarithm (m,) of the probability that all conditions are kept at X (m, d)."""
        total = np.zeros(len(X))
        for outcome in self.outcomes:
            mean, std = outcome.model.posterior(X)
            total += log_ndtr((mean - outcome.limit) / std)
        return total

    def log_chance_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d)."""
        total, gradient = np.zeros(len(X)), np.zeros(X.shape)
        for outcome in self.outcomes:
            mean, std, dmean, dstd = outcome.model.posterior_with_grad(X)
            z = (mean - outcome.limit) / std
            log_p = log_ndtr(z)
            hazard = np.exp(-0.5 * z * z - LOG_SQRT_2PI - log_p)
            total += log_p
            gradient += (hazard / std)[:, None] * (dmean - z[:, None] * dstd)
        return total, gradient

    def condition_on_pending(self, X: Floats) -> "Feasibility":
        """The same once the points X (k, d) have been tried too, before their outcomes are known."""
        return Feasibility(tuple(OutcomeModel(o.model.condition_on_pending(X), o.limit) for o in self.outcomes))


@dataclass(frozen=True, eq=False)
class IfFeasible:
    """The logarithm of an expectation that counts only where all conditions are kept: plus log p."""

    of: Acquisition
    feasibility: Feasibility

    def value(self, X: Floats) -> Floats:
        """The logarithm."""
        return self.of.value(X) + self.feasibility.log_chance(X)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The logarithm and its gradient."""
        value, gradient = self.of.value_and_grad(X)
        log_chance, dlog_chance = self.feasibility.log_chance_and_grad(X)
        return value + log_chance, gradient + dlog_chance


@dataclass(frozen=True, eq=False)
class WhereLikely:
    """Another acquisition function where conditions are as likely kept as not; the chance itself, far below, elsewhere.

    For what is no expectation and has no price: upper bounds and drawn paths.
    """

    of: Acquisition
    feasibility: Feasibility

    def value(self, X: Floats) -> Floats:
        """The value, or the chance."""
        log_chance = self.feasibility.log_chance(X)
        return np.where(log_chance >= LIKELY, self.of.value(X), log_chance - BELOW)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The value, or the chance, and its gradient."""
        value, gradient = self.of.value_and_grad(X)
        log_chance, dlog_chance = self.feasibility.log_chance_and_grad(X)
        likely = log_chance >= LIKELY
        return np.where(likely, value, log_chance - BELOW), np.where(likely[:, None], gradient, dlog_chance)


# Outcomes that are one ----------------------------------------------------------------------------------------------


def one_of_each(margins: Mapping[str, Floats]) -> dict[str, float]:
    """The outcomes that are different, each with the margin that it needs for all of those that are the same.

    Args:
        margins: Of each outcome (n,) how far the trials are within its limit; NaN where nothing was told.
    """
    limits: dict[str, float] = {}
    for name, margin in margins.items():
        for first in limits:
            needed = _needed(margins[first], margin)
            if needed is not None:
                limits[first] = max(limits[first], needed)
                break
        else:
            limits[name] = 0.0
    return limits


def _needed(first: Floats, other: Floats) -> float | None:
    """What the first margin is where the other is zero, if they are the same outcome."""
    both = ~(np.isnan(first) | np.isnan(other))
    a, b = first[both], other[both]
    if len(np.unique(a)) < FEWEST_SAME or len(np.unique(b)) < FEWEST_SAME or np.isnan(first[~np.isnan(other)]).any():
        return None
    (mean_a, std_a), (mean_b, std_b) = _moments(a), _moments(b)
    if not np.isfinite([mean_a, std_a, mean_b, std_b]).all() or min(std_a, std_b) <= 0.0:
        return None
    if np.abs((a - mean_a) / std_a - (b - mean_b) / std_b).max() > SAME:
        return None
    return mean_a - std_a * (mean_b / std_b)


def _moments(values: Floats) -> tuple[float, float]:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(values.mean()), float(values.std())
