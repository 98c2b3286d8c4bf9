"""What a point costs: nothing that varies, a known price, or something to be learned from what was paid.

A policy asks a cost one question: log E[c(x)^p], and its gradient. The Gittins index asks p = 1, expected improvement
per cost p = -1, cooling p = -a: so every policy works with every cost, known or not. A budget asks another: what a
trial may cost in a bad case (`log_upper`).
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from pbgi.arrays import Floats
from pbgi.checks import checks_arguments
from pbgi.cost.function import Price, PriceFunction, require_callable
from pbgi.errors import InvalidInputError
from pbgi.gp.algebra import rounded
from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.gp.fit import fit_gp, fit_hyperparameters
from pbgi.gp.kernel import CATEGORY_DISTANCE
from pbgi.gp.posterior import GP, Pair, PosteriorWithGrad
from pbgi.gp.trend import Trend, fit_trend
from pbgi.space import Space

# What is assumed before costs are fitted: that around their trend they vary by a factor of e^0.5, 1.6, either way.
PRIOR_LOG_STD = 0.5
PRIOR_LENGTH_SCALE = 0.5
# Another category is taken to cost about as much as this one: to differ by a factor of two, say. With the length scale
# of numbers it might cost hundreds of times as much, and a start that is wary would try none but the first.
PRIOR_CATEGORY_SCALE = 4.0 * CATEGORY_DISTANCE
PRIOR_LOG_NOISE_STD = 0.1
ALIKE = 3  # costs that are all the same say that all are


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

    def log_upper(self, X: Floats, z: float) -> Floats:
        """Logarithm of what the cost of one trial exceeds with the probability of a Gaussian beyond z deviations."""


@checks_arguments
@dataclass(frozen=True)
class UniformCost:
    """Every trial costs one unit: a budget is a number of trials."""

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Nothing to learn."""
        return _Uniform()


@checks_arguments
@dataclass(frozen=True)
class KnownCost:
    """A price known beforehand.

    Args:
        price: Any function of the parameters (a dict) that returns a positive number.
        vectorized: Whether `price` takes arrays instead: a dict of arrays (m,), for which it returns an array (m,).
            One call then prices many points, which makes suggestions several times faster.
    """

    price: PriceFunction
    vectorized: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        require_callable("price", self.price)

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Nothing to learn."""
        return _Known(Price(space, self.price, self.vectorized))


@checks_arguments
@dataclass(frozen=True)
class LearnedCost:
    """A cost learned from what was paid: the logarithm is a line in the coordinates plus a Gaussian process.

    Args:
        known_factor: The part of the cost that is known, as a function of the parameters: a price list, say, where
            what is learned is the duration that it is multiplied with.
        vectorized: Whether `known_factor` takes a dict of arrays, see `KnownCost`.
        model: What is assumed of the process; `GPConfig()` if not given.
        trend: Whether there is a line; without it the logarithm is a Gaussian process alone, as in the paper.
    """

    known_factor: PriceFunction | None = None
    vectorized: bool = field(default=False, kw_only=True)
    model: GPConfig | None = field(default=None, kw_only=True)
    trend: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if self.known_factor is not None:
            require_callable("known_factor", self.known_factor)
        if not isinstance(self.model, GPConfig | None):
            raise InvalidInputError(f"model must be None or a GPConfig; got {self.model!r}")

    def fit(self, space: Space, X: Floats, costs: Floats, config: GPConfig, start: Hyperparameters | None) -> CostModel:
        """Fit line and process to log(cost / known factor)."""
        factor = None if self.known_factor is None else _Known(Price(space, self.known_factor, self.vectorized))
        if len(costs) == 0:
            return factor or _Uniform()
        if self.model is not None:
            config = replace(self.model, hyperparameters=self.model.hyperparameters or config.hyperparameters)
        log_costs = np.log(costs) - (0.0 if factor is None else factor.log_moment(X, 1.0))
        unit = float(log_costs[0])
        relative = rounded(log_costs - unit)
        if len(costs) >= ALIKE and not relative.any():
            return _Uniform(unit) if factor is None else _Known(factor.price, unit)
        trend = fit_trend(X, relative, space.categorical) if self.trend else Trend.none(X.shape[1])
        if len(costs) < least_costs(X.shape[1]):
            return _Learned(_assumed(space, X, relative - trend(X)), trend.raised(unit), factor, None)
        if not self.trend:
            gp = fit_gp(X, relative, config, categorical=space.categorical, start=start)
            return _Learned(gp, trend.raised(unit), factor, gp.hyperparameters)
        # The covariance is that of the logarithms themselves: where nothing was paid, as uncertain as they vary.
        found, scale = fit_hyperparameters(X, relative, config, categorical=space.categorical, start=start)
        rescaled = Hyperparameters(found.length_scales, found.output_scale * scale**2, found.noise * scale**2)
        gp = _plain_gp(space, X, relative - trend(X), rescaled, config)
        return _Learned(gp, trend.certain().raised(unit), factor, found)


def _assumed(space: Space, X: Floats, residual: Floats) -> GP:
    """What the line leaves of a few costs, whose variance counts like two observations beside those that were made."""
    n = len(X)
    variance = (2.0 * PRIOR_LOG_STD**2 + n * float((residual**2).mean())) / (2.0 + n)
    scales = tuple(PRIOR_CATEGORY_SCALE if is_category else PRIOR_LENGTH_SCALE for is_category in space.categorical)
    assumed = Hyperparameters(scales, variance, PRIOR_LOG_NOISE_STD**2)
    return _plain_gp(space, X, residual, assumed, mean=0.0)


def _plain_gp(
    space: Space,
    X: Floats,
    y: Floats,
    hyperparameters: Hyperparameters,
    config: GPConfig | None = None,
    mean: float | None = None,
) -> GP:
    """A process with hyperparameters in the units of y."""
    return GP.with_hyperparameters(
        X, y, hyperparameters, config, categorical=space.categorical, mean=mean, standardize=False
    )


def least_costs(dimension: int) -> int:
    """With fewer costs than this nothing is fitted: what they say of how costs vary elsewhere is too little."""
    return 2 * (dimension + 1) + 1


class _Asked(Protocol):
    def posterior_with_grad(self, X: Floats) -> PosteriorWithGrad: ...


def posterior_and_cost(
    model: _Asked, cost: CostModel, X: Floats, power: float
) -> tuple[PosteriorWithGrad, tuple[Floats, Floats]]:
    """What a model of values says of points X (m, d), and the `log_moment_and_grad` of their cost.

    Two Gaussian processes answer in one pass.
    """
    if isinstance(cost, _Learned) and isinstance(model, GP):
        return cost.beside(model, X, power)
    return model.posterior_with_grad(X), cost.log_moment_and_grad(X, power)


class _Uniform:
    hyperparameters = None

    def __init__(self, log_unit: float = 0.0) -> None:
        self._log_unit = log_unit

    def log_moment(self, X: Floats, power: float) -> Floats:
        return np.full(len(X), power * self._log_unit)

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        return self.log_moment(X, power), np.zeros(X.shape)

    def log_upper(self, X: Floats, z: float) -> Floats:
        return np.full(len(X), self._log_unit)


class _Known:
    hyperparameters = None

    def __init__(self, price: Price, log_unit: float = 0.0) -> None:
        self.price, self._log_unit = price, log_unit

    def log_moment(self, X: Floats, power: float) -> Floats:
        return power * (self.price.log(X) + self._log_unit)

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        log_price, gradient = self.price.log_and_grad(X)
        return power * (log_price + self._log_unit), power * gradient

    def log_upper(self, X: Floats, z: float) -> Floats:
        return self.price.log(X) + self._log_unit


class _Learned:
    def __init__(self, gp: GP, trend: Trend, factor: _Known | None, hyperparameters: Hyperparameters | None) -> None:
        self._gp, self._trend, self._factor, self.hyperparameters = gp, trend, factor, hyperparameters
        self._last: tuple[Floats, Floats, Floats] | None = None  # points, mean and variance of the logarithm
        self._pair: Pair | None = None

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Log-normal: E[c^p] = exp(p m + p^2 v / 2)."""
        mean, variance = self._posterior(X)
        moment: Floats = power * mean + 0.5 * power**2 * variance
        return moment if self._factor is None else moment + self._factor.log_moment(X, power)

    def log_upper(self, X: Floats, z: float) -> Floats:
        mean, variance = self._posterior(X)
        # Of few costs the deviation itself is hardly known: with three, half as much again is kept clear of.
        upper: Floats = mean + z * (1.0 + 1.5 / self._gp.n) * np.sqrt(variance + self._gp.noise_std**2)
        return upper if self._factor is None else upper + self._factor.log_upper(X, z)

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        return self._moment_and_grad(self._gp.posterior_with_grad(X), X, power)

    def beside(self, gp: GP, X: Floats, power: float) -> tuple[PosteriorWithGrad, tuple[Floats, Floats]]:
        """The posterior of a process of values, and `log_moment_and_grad`: together they take less time than alone."""
        if self._pair is None or self._pair.first is not gp:
            self._pair = Pair(gp, self._gp)
        of_values, of_costs = self._pair.posterior_with_grad(X)
        return of_values, self._moment_and_grad(of_costs, X, power)

    def _moment_and_grad(self, posterior: PosteriorWithGrad, X: Floats, power: float) -> tuple[Floats, Floats]:
        residual, std, dresidual, dstd = posterior
        mean, variance, dvariance = self._trend(X) + residual, std**2, 2.0 * std[:, None] * dstd
        if self._trend.is_uncertain:
            # The line is uncertain as far as what it leaves is: where a cost was paid, both are known together.
            line, dline = self._trend.variance_and_grad(X)
            share = line / self._gp.prior_variance
            dvariance = dvariance * (1.0 + share[:, None]) + variance[:, None] * dline / self._gp.prior_variance
            variance = variance * (1.0 + share)
        self._last = X.copy(), mean, variance
        moment = power * mean + 0.5 * power**2 * variance
        gradient = power * (dresidual + self._trend.slopes) + 0.5 * power**2 * dvariance
        if self._factor is not None:
            known, dknown = self._factor.log_moment_and_grad(X, power)
            moment, gradient = moment + known, gradient + dknown
        return moment, gradient

    def _posterior(self, X: Floats) -> tuple[Floats, Floats]:
        """Of a search the points are asked twice: what they are worth, and whether they can be afforded."""
        last = self._last
        if last is None or last[0].shape != X.shape or not (last[0] == X).all():
            residual, std = self._gp.posterior(X)
            variance = std**2
            if self._trend.is_uncertain:
                variance = variance * (1.0 + self._trend.variance_and_grad(X)[0] / self._gp.prior_variance)
            last = self._last = X.copy(), self._trend(X) + residual, variance
        return last[1], last[2]
