"""What a point costs: nothing that varies, a known price, or something to be learned from what was paid.

A cost is asked one question: log E[c(x)^p], and its gradient. The Gittins index asks p = 1, expected improvement per
cost p = -1, cooling p = -a: so every policy works with every cost, known or not.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from pbgi.arrays import Floats
from pbgi.gp import GP
from pbgi.gp_config import GPConfig, Hyperparameters
from pbgi.gp_fit import fit_gp
from pbgi.price import Price, PriceFunction
from pbgi.space import Space

# What is assumed before costs are fitted: that they vary by a factor of e^2.5, twelve, either way.
PRIOR_LOG_STD = 2.5
PRIOR_LENGTH_SCALE = 0.5
# Another category is taken to cost about as much as this one: to differ by a factor of two, say. With the length scale
# of numbers it might cost hundreds of times as much, and a start that is wary would try none but the first.
PRIOR_CATEGORY_SCALE = 4.0
PRIOR_LOG_NOISE_STD = 0.1


class Cost(Protocol):
    """How costs come about; a frozen value."""

    def fit(
        self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None
    ) -> "CostModel":
        """What is believed of costs after paying `costs` (n,) at the points X (n, d).

        Hyperparameters that `config` knows are those of the last fit: it is not time for another.
        """


class CostModel(Protocol):
    """What is believed of costs now."""

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """The warm start of the next fit, if anything was fitted."""

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Logarithm of E[c(x)^power] at the points X (m, d)."""

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d), zero in categories; that of a known price is zero in all grids."""


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
        vectorised: Whether `price` takes arrays instead: a dict of arrays (m,), for which it returns an array (m,).
            One call then prices many points, which makes suggestions several times faster.
    """

    price: PriceFunction
    vectorised: bool = field(default=False, kw_only=True)

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Nothing to learn."""
        return _Known(Price(space, self.price, self.vectorised))


@dataclass(frozen=True)
class LearnedCost:
    """A cost learned from what was paid: the logarithm is a Gaussian process.

    Args:
        known_factor: The part of the cost that is known, as a function of the parameters: a price list, say, where
            what is learned is the duration that it is multiplied with.
        vectorised: Whether `known_factor` takes a dict of arrays, see `KnownCost`.
        model: What is assumed of the logarithm; `GPConfig()` if not given.
    """

    known_factor: PriceFunction | None = None
    vectorised: bool = field(default=False, kw_only=True)
    model: GPConfig | None = field(default=None, kw_only=True)

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Fit the process to log(cost / known factor)."""
        factor = None if self.known_factor is None else _Known(Price(space, self.known_factor, self.vectorised))
        if len(costs) == 0:
            return factor or _Uniform()
        if self.model is not None:
            config = replace(self.model, hyperparameters=self.model.hyperparameters or config.hyperparameters)
        log_costs = np.log(costs) - (0.0 if factor is None else factor.log_moment(X, 1.0))
        return _Learned(_log_cost_gp(space, X, log_costs, config, start), factor)


def _log_cost_gp(space: Space, X: Floats, log_costs: Floats, config: GPConfig, start: Hyperparameters | None) -> GP:
    d = X.shape[1]
    if len(log_costs) >= few(d):
        return fit_gp(X, log_costs, config, categorical=space.categorical, start=start)
    # Far from what was paid for, a trial is taken to cost as much as the dearest so far: begin warily. The assumed
    # spread counts like two observations beside those that were made.
    variance = (2.0 * PRIOR_LOG_STD**2 + len(log_costs) * float(log_costs.var())) / (2.0 + len(log_costs))
    scales = tuple(PRIOR_CATEGORY_SCALE if is_category else PRIOR_LENGTH_SCALE for is_category in space.categorical)
    assumed = Hyperparameters(scales, variance, PRIOR_LOG_NOISE_STD**2)
    return GP.with_hyperparameters(
        X, log_costs, assumed, categorical=space.categorical, mean=float(log_costs.max()), standardise=False
    )


def few(dimension: int) -> int:
    """With fewer costs than this nothing is fitted: what they say of how costs vary elsewhere is too little."""
    return 2 * (dimension + 1) + 1


class _Uniform:
    hyperparameters = None

    def log_moment(self, X: Floats, power: float) -> Floats:
        return np.zeros(len(X))

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        return np.zeros(len(X)), np.zeros(X.shape)


class _Known:
    hyperparameters = None

    def __init__(self, price: Price) -> None:
        self._price = price

    def log_moment(self, X: Floats, power: float) -> Floats:
        return power * self._price.log(X)

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        log_price, gradient = self._price.log_and_grad(X)
        return power * log_price, power * gradient


class _Learned:
    def __init__(self, gp: GP, factor: _Known | None) -> None:
        self._gp, self._factor = gp, factor
        self._last: tuple[Floats, Floats, Floats] | None = None

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        fitted = self._gp.n >= few(len(self._gp.hyperparameters.length_scales))
        return self._gp.hyperparameters if fitted else None

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Log-normal: E[c^p] = exp(p m + p^2 v / 2)."""
        mean, std = self._posterior(X)
        moment: Floats = power * mean + 0.5 * (power * std) ** 2
        return moment if self._factor is None else moment + self._factor.log_moment(X, power)

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        mean, std, dmean, dstd = self._gp.posterior_with_grad(X)
        self._last = X.copy(), mean, std
        moment = power * mean + 0.5 * (power * std) ** 2
        gradient = power * dmean + power**2 * std[:, None] * dstd
        if self._factor is not None:
            known, dknown = self._factor.log_moment_and_grad(X, power)
            moment, gradient = moment + known, gradient + dknown
        return moment, gradient

    def _posterior(self, X: Floats) -> tuple[Floats, Floats]:
        """Of a search the points are asked twice: what they are worth, and whether they can be afforded."""
        if self._last is None or not np.array_equal(self._last[0], X):
            self._last = X.copy(), *self._gp.posterior(X)
        return self._last[1], self._last[2]
