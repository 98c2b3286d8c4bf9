"""How good a point is to try next: closed-form acquisition functions with their gradients.

Each is an object with `value(X)` and `value_and_grad(X)` on points (m, d) of the unit cube; larger is better. `Model`
and `CostModel` say what is believed of values and costs; the functions here only combine them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.condition import Conditions
from pbgi.cost import CostModel, posterior_and_cost
from pbgi.cost.success import Success
from pbgi.gp.warp import Warp
from pbgi.index import gittins_index, gittins_index_and_grad, log_h, log_h_and_grad
from pbgi.model import Model, Path
from pbgi.search import Acquisition

# (mean - best) / std may overflow where std is next to nothing; below, the slope of log h grows with it.
LOWEST_Z = -1e100
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class GittinsIndex:
    """The Pandora's Box Gittins index: the g with EI(x; g) = cost_scale * E[c(x)] (paper, eq. 8)."""

    model: Model
    cost: CostModel
    cost_scale: float

    def value(self, X: Floats) -> Floats:
        """The index."""
        mean, std = self.model.posterior(X)
        index: Floats = gittins_index(mean, std, math.log(self.cost_scale) + self.cost.log_moment(X, 1.0))
        return index

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The index and its gradient: dg = dmean + (phi/Phi) dstd - std (h/Phi) dlog c."""
        (mean, std, dmean, dstd), (log_cost, dlog_cost) = posterior_and_cost(self.model, self.cost, X, 1.0)
        index, by_std, by_log_cost = gittins_index_and_grad(mean, std, math.log(self.cost_scale) + log_cost)
        return index, dmean + by_std[:, None] * dstd + by_log_cost[:, None] * dlog_cost


@dataclass(frozen=True, eq=False)
class UnwarpedIndex:
    """The index of values in users' units, where the model sees warped ones: the g with E[(y - g)+] = cost_scale E[c].

    Its values are warped indices T(g), which rank points as the indices themselves do.
    """

    model: Model
    cost: CostModel
    cost_scale: float
    warp: Warp

    def value(self, X: Floats) -> Floats:
        """The warped index."""
        mean, std = self.model.posterior(X)
        return self.warp.index(mean, std, math.log(self.cost_scale) + self.cost.log_moment(X, 1.0))

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The warped index and its gradient."""
        (mean, std, dmean, dstd), (log_cost, dlog_cost) = posterior_and_cost(self.model, self.cost, X, 1.0)
        index, *slopes = self.warp.index_and_grad(mean, std, math.log(self.cost_scale) + log_cost)
        parts = zip(slopes, (dmean, dstd, dlog_cost), strict=True)
        return index, sum((slope[:, None] * part for slope, part in parts), np.zeros(X.shape))


@dataclass(frozen=True, eq=False)
class LogExpectedImprovement:
    """log EI(x; best), weighed by cost: plus log E[c^p] for a negative power p, minus it for a positive one.

    A power of -1 is expected improvement per cost, -a its cooled form. A power of 1 gives log(EI / E[c]), which says
    whether a point is worth its price: it is when that exceeds the logarithm of the cost_scale.
    """

    model: Model
    cost: CostModel
    best_value: float
    cost_power: float = 0.0

    def value(self, X: Floats) -> Floats:
        """The logarithm."""
        mean, std = self.model.posterior(X)
        value: Floats = np.log(std) + log_h(self._z(mean, std))
        if self.cost_power != 0:
            value = value - math.copysign(1.0, self.cost_power) * self.cost.log_moment(X, self.cost_power)
        return value

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The logarithm and its gradient."""
        if self.cost_power != 0:
            posterior, (moment, dmoment) = posterior_and_cost(self.model, self.cost, X, self.cost_power)
        else:
            posterior = self.model.posterior_with_grad(X)
        mean, std, dmean, dstd = posterior
        z = self._z(mean, std)
        value, slope = log_h_and_grad(z)
        value = value + np.log(std)
        gradient = (slope[:, None] * (dmean - z[:, None] * dstd) + dstd) / std[:, None]
        if self.cost_power != 0:
            sign = math.copysign(1.0, self.cost_power)
            value, gradient = value - sign * moment, gradient - sign * dmoment
        return value, gradient

    def _z(self, mean: Floats, std: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip((mean - self.best_value) / std, LOWEST_Z, LARGEST)


@dataclass(frozen=True, eq=False)
class Exponential:
    """exp of another acquisition function: the same maximizers, another landscape to climb."""

    of: Acquisition

    def value(self, X: Floats) -> Floats:
        """The exponential."""
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(np.exp(self.of.value(X)), LARGEST)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The exponential and its gradient."""
        log_value, dlog_value = self.of.value_and_grad(X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            value = np.minimum(np.exp(log_value), LARGEST)
            return value, value[:, None] * dlog_value


@dataclass(frozen=True, eq=False)
class UpperConfidenceBound:
    """mean + weight * std."""

    model: Model
    weight: float

    def value(self, X: Floats) -> Floats:
        """The bound."""
        mean, std = self.model.posterior(X)
        return np.asarray(mean + self.weight * std)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The bound and its gradient."""
        mean, std, dmean, dstd = self.model.posterior_with_grad(X)
        return mean + self.weight * std, dmean + self.weight * dstd


@dataclass(frozen=True, eq=False)
class PathValue:
    """The value of one function, drawn from the posterior for Thompson sampling."""

    path: Path

    def value(self, X: Floats) -> Floats:
        """The value."""
        return self.path(X)[0]

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The value and its gradient."""
        return self.path(X)


@dataclass(frozen=True, eq=False)
class Cheapness:
    """Minus the logarithm of the expected cost."""

    cost: CostModel

    def value(self, X: Floats) -> Floats:
        """The logarithm."""
        return -self.cost.log_moment(X, 1.0)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The logarithm and its gradient."""
        log_cost, dlog_cost = self.cost.log_moment_and_grad(X, 1.0)
        return -log_cost, -dlog_cost


@dataclass(frozen=True, eq=False)
class Restricted:
    """Another acquisition function where points are allowed, minus infinity elsewhere.

    Args:
        of: The function.
        is_affordable: Which points fit what may be spent; None allows all.
        avoid: (k, d) Points that failed.
        radius: Of each: points closer than this, in every coordinate, are not allowed; one number serves for all.
        categorical: (d,) Which coordinates are categories: close there means equal.
        success: Points more likely to fail than not are not allowed; None allows all.
    """

    of: Acquisition
    is_affordable: Callable[[Floats], Bools] | None
    avoid: Floats
    radius: Floats | float
    categorical: Bools
    success: Success | None = None

    def value(self, X: Floats) -> Floats:
        """The value, or minus infinity."""
        return np.where(self.allowed(X), self.of.value(X), -np.inf)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The value, or minus infinity, and the gradient."""
        value, gradient = self.of.value_and_grad(X)
        return np.where(self.allowed(X), value, -np.inf), gradient

    def allowed(self, X: Floats) -> Bools:
        """Which points are allowed."""
        allowed = np.ones(len(X), dtype=np.bool_)
        if self.is_affordable is not None:
            allowed &= self.is_affordable(X)
        if self.success is not None:
            allowed &= self.success.is_likely(X)
        if not len(self.avoid):
            return allowed
        for center, radius in zip(self.avoid, np.broadcast_to(self.radius, len(self.avoid)), strict=True):
            apart = np.where(self.categorical, center != X, np.abs(X - center) >= radius)
            allowed &= apart.any(axis=1)
        return allowed


@dataclass(frozen=True, eq=False)
class InBranch:
    """Another acquisition function in one branch of a space with conditions, minus infinity elsewhere.

    Args:
        of: The function.
        conditions: Of the space.
        branch: What the first parents must have decided, by position.
    """

    of: Acquisition
    conditions: Conditions
    branch: tuple[int, ...]

    def value(self, X: Floats) -> Floats:
        """The value, or minus infinity."""
        return np.where(self.conditions.is_in(self.branch, X), self.of.value(X), -np.inf)

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The value, or minus infinity, and the gradient."""
        value, gradient = self.of.value_and_grad(X)
        return np.where(self.conditions.is_in(self.branch, X), value, -np.inf), gradient
