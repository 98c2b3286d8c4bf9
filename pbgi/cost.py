"""What a point costs: nothing that varies, a known price, or something to be learned from what was paid.

A cost is asked one question: log E[c(x)^p], and its gradient. The Gittins index asks p = 1, expected improvement per
cost p = -1, cooling p = -a: so every policy works with every cost, known or not.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError
from pbgi.gp import GP
from pbgi.gp_config import GPConfig, Hyperparameters
from pbgi.gp_fit import fit_gp
from pbgi.space import Space

PriceFunction = Callable[[Mapping[str, Any]], float]

# With so few costs seen, nothing can be said of how they vary: assume a factor e^1.5 across the space.
FEW = 5
PRIOR_LOG_STD = 1.5
PRIOR_LENGTH_SCALE = 0.5
PRIOR_LOG_NOISE_STD = 0.1
DIFFERENCE = 1e-6


class Cost(Protocol):
    """How costs come about; a frozen value."""

    def fit(
        self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None
    ) -> "CostModel":
        """What is believed of costs after paying `costs` (n,) at the points X (n, d)."""


class CostModel(Protocol):
    """What is believed of costs now."""

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """The warm start of the next fit, if anything was fitted."""

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Logarithm of E[c(x)^power] at the points X (m, d)."""

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d), zero in coordinates that are not continuous."""


@dataclass(frozen=True)
class UniformCost:
    """Every trial costs one unit: a budget is a number of trials."""

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Nothing to learn."""
        return _Uniform()


@dataclass(frozen=True)
class KnownCost:
    """A price known beforehand.

    Args:
        price: Any function of the parameters (a dict) that returns a positive number.
    """

    price: PriceFunction

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Nothing to learn."""
        return _Known(space, self.price)


@dataclass(frozen=True)
class LearnedCost:
    """A cost learned from what was paid: the logarithm is a Gaussian process.

    Args:
        known_factor: The part of the cost that is known, as a function of the parameters: a price list, say, where
            what is learned is the duration that it is multiplied with.
    """

    known_factor: PriceFunction | None = None

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Fit the process to log(cost / known factor)."""
        factor = None if self.known_factor is None else _Known(space, self.known_factor)
        if len(costs) == 0:
            return factor or _Uniform()
        log_costs = np.log(costs) - (0.0 if factor is None else factor.log_moment(X, 1.0))
        return _Learned(_log_cost_gp(space, X, log_costs, config, start), factor)


def _log_cost_gp(space: Space, X: Floats, log_costs: Floats, config: GPConfig, start: Hyperparameters | None) -> GP:
    if len(log_costs) >= FEW:
        return fit_gp(X, log_costs, config, categorical=space.categorical, start=start)
    assumed = Hyperparameters((PRIOR_LENGTH_SCALE,) * X.shape[1], PRIOR_LOG_STD**2, PRIOR_LOG_NOISE_STD**2)
    return GP.with_hyperparameters(
        X, log_costs, assumed, categorical=space.categorical, mean=float(log_costs.mean()), standardise=False
    )


class _Uniform:
    hyperparameters = None

    def log_moment(self, X: Floats, power: float) -> Floats:
        return np.zeros(len(X))

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        return np.zeros(len(X)), np.zeros(X.shape)


class _Known:
    hyperparameters = None

    def __init__(self, space: Space, price: PriceFunction) -> None:
        self._space, self._price = space, price
        self._continuous = [k for k, grid in enumerate(space.grids) if grid is None]

    def log_moment(self, X: Floats, power: float) -> Floats:
        return power * np.array([math.log(self._checked(params)) for params in self._space.from_unit_many(X)])

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        """A price is any Python function: its gradient is taken by central differences, one-sided at the faces."""
        gradient = np.zeros(X.shape)
        for k in self._continuous:
            up, down = X.copy(), X.copy()
            up[:, k] = np.minimum(X[:, k] + DIFFERENCE, 1.0)
            down[:, k] = np.maximum(X[:, k] - DIFFERENCE, 0.0)
            rise = self.log_moment(up, power) - self.log_moment(down, power)
            gradient[:, k] = rise / (up[:, k] - down[:, k])
        return self.log_moment(X, power), gradient

    def _checked(self, params: Mapping[str, Any]) -> float:
        price = self._price(params)
        if isinstance(price, bool) or not isinstance(price, int | float | np.number) or not 0 < price < math.inf:
            raise InvalidInputError(f"a known cost must be a positive, finite number; at {params} it is {price!r}")
        return float(price)


class _Learned:
    def __init__(self, gp: GP, factor: _Known | None) -> None:
        self._gp, self._factor = gp, factor

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        return self._gp.hyperparameters if self._gp.n >= FEW else None

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Log-normal: E[c^p] = exp(p m + p^2 v / 2)."""
        mean, std = self._gp.posterior(X)
        moment: Floats = power * mean + 0.5 * (power * std) ** 2
        return moment if self._factor is None else moment + self._factor.log_moment(X, power)

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        mean, std, dmean, dstd = self._gp.posterior_with_grad(X)
        moment = power * mean + 0.5 * (power * std) ** 2
        gradient = power * dmean + power**2 * std[:, None] * dstd
        if self._factor is not None:
            known, dknown = self._factor.log_moment_and_grad(X, power)
            moment, gradient = moment + known, gradient + dknown
        return moment, gradient
