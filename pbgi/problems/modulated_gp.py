"""A Gaussian process on a line whose amplitude varies: the model that belongs to `pbgi.problems.one_dimensional`.

The function is f(z) = m + a(z) g(z), with a known amplitude a and a stationary process g of variance one, so that
f has covariance a(z) a(z') rho(|z - z'| / length_scale). Values of f told with noise are values of g told with the
noise divided by a, and everything is computed for g, whose variance is one everywhere: covariances of f would span
many orders of magnitude. The exact posterior of f is that of g times a, plus m.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pbgi.arrays import Bools, Floats
from pbgi.gp.algebra import cholesky, inverse_factor, times, times_transposed
from pbgi.gp.config import Hyperparameters
from pbgi.gp.kernel import CrossCovariance, PriorDraw, kernel_named
from pbgi.gp.predictor import VARIANCE_FLOOR

N_FEATURES = 1280  # of the paper's draws from this prior


def stationary_draw(rng: np.random.Generator, kernel: str, length_scale: float) -> PriorDraw:
    """A function of variance one drawn from the stationary process; takes points (m, 1) of the line."""
    one = np.ones(1)
    covariance = CrossCovariance(kernel_named(kernel), np.zeros((1, 1)), one < 0.0, length_scale * one, 1.0)
    return PriorDraw(rng, covariance, N_FEATURES)


@dataclass(frozen=True)
class Bump:
    """A positive function of z that rises around zero: (base + height exp(-z^2 / (2 width^2)))^exponent."""

    base: float
    height: float
    width: float
    exponent: float = 1.0

    def __call__(self, z: Floats) -> Floats:
        """Values, of the shape of z."""
        return self.value_and_slope(z)[0]

    def value_and_slope(self, z: Floats) -> tuple[Floats, Floats]:
        """Values and derivatives, of the shape of z."""
        rise = self.height * np.exp(-0.5 * (z / self.width) ** 2)
        value = (self.base + rise) ** self.exponent
        return value, value * self.exponent / (self.base + rise) * rise * -z / self.width**2


@dataclass(frozen=True)
class ModulatedGP:
    """The Gaussian process of the one-dimensional examples, for `model=` of an `Optimizer`.

    Attributes:
        amplitude: Standard deviation of the values, by place.
        low: The z at which the unit interval begins.
        high: The z at which it ends.
        length_scale: Of the stationary process, in units of z.
        kernel: "matern52", "matern32" or "rbf".
        noise: Variance of the noise of values. Fixed; it should be well below the square of the least amplitude.
        mean: The constant m, or None: estimated from the values.
        noisy: Whether one point may give different values.
    """

    amplitude: Bump
    low: float
    high: float
    length_scale: float = 0.1
    kernel: str = "matern52"
    noise: float = 1e-6
    mean: float | None = None
    noisy: bool = False

    def fit(
        self,
        X: Floats,
        values: Floats,
        *,
        categorical: Bools | None = None,  # noqa: ARG002 (a line has no categories)
        start: Hyperparameters | None = None,  # noqa: ARG002 (nothing is searched for)
    ) -> "ModulatedPosterior":
        """The posterior given `values` (n,) at the points X (n, 1) of the unit interval."""
        z = self.line(X)
        unit = 1.0 / self.amplitude(z)
        inverse = self._inverse_factor(z)
        mean = self.mean
        if mean is None:  # the most likely one: generalized least squares, K^-1 = inverse' inverse
            one, seen = inverse @ unit, inverse @ (unit * values)
            mean = float(one @ seen / (one @ one))
        return ModulatedPosterior(self, mean, z, unit * (values - mean), inverse)

    def conditioned(self, mean: float, z: Floats, residual: Floats) -> "ModulatedPosterior":
        """The posterior for a given mean and residuals of g (n,) at the places z (n,)."""
        return ModulatedPosterior(self, mean, z, residual, self._inverse_factor(z))

    def line(self, X: ArrayLike) -> Floats:
        """Places z (m,) of the points X (m, 1)."""
        return np.asarray(self.low + (self.high - self.low) * np.asarray(X, dtype=np.float64)[:, 0])

    def correlation(self, z: Floats, others: Floats) -> tuple[Floats, Floats]:
        """Correlations (m, n) between places, and their derivatives in the first."""
        difference = (z[:, None] - others[None, :]) / self.length_scale
        value, slope = kernel_named(self.kernel).value_and_slope(difference**2)
        return value, 2.0 * slope * difference / self.length_scale

    def _inverse_factor(self, z: Floats) -> Floats:
        matrix, _ = self.correlation(z, z)
        matrix.flat[:: len(z) + 1] += self.noise / self.amplitude(z) ** 2
        return inverse_factor(cholesky(matrix)[0])


class ModulatedPosterior:
    """What is believed of values now; never changes. Made by `ModulatedGP.fit`.

    Attributes:
        kind: What was assumed.
        mean: The constant m.
        hyperparameters: None: nothing is searched for, so the next fit needs no start.
    """

    hyperparameters: Hyperparameters | None = None

    def __init__(self, kind: ModulatedGP, mean: float, z: Floats, residual: Floats, inverse: Floats) -> None:
        self.kind, self.mean = kind, mean
        self._z, self._residual = z, residual  # (n,) places told, and (f - m) / a there
        self._inverse = inverse  # (n, n) of the lower factor of the covariance of residuals
        self._alpha = inverse.T @ (inverse @ residual)

    def posterior(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Mean (m,) and standard deviation (m,) of f, without noise, at the points X (m, 1)."""
        z = self.kind.line(X)
        a = self.kind.amplitude(z)
        rho, _ = self.kind.correlation(z, self._z)
        mean = rho @ self._alpha
        explained = times_transposed(rho, self._inverse)
        variance = np.maximum(1.0 - np.vecdot(explained, explained), VARIANCE_FLOOR)
        return self.mean + a * mean, a * np.sqrt(variance)

    def posterior_with_grad(self, X: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean (m,), standard deviation (m,) and their gradients (m, 1) in X.

        The standard deviation is never below a millionth of the amplitude, and where it is there, it follows it.
        """
        z = self.kind.line(X)
        a, da = self.kind.amplitude.value_and_slope(z)
        rho, drho = self.kind.correlation(z, self._z)
        mean, dmean = rho @ self._alpha, drho @ self._alpha
        explained = times_transposed(rho, self._inverse)  # (m, n)
        variance = 1.0 - np.vecdot(explained, explained)
        free = variance > VARIANCE_FLOOR
        std = np.sqrt(np.where(free, variance, VARIANCE_FLOOR))
        dstd = np.where(free, -np.vecdot(times(explained, self._inverse), drho) / std, 0.0)
        stretch = self.kind.high - self.kind.low
        gradients = (stretch * (da * mean + a * dmean))[:, None], (stretch * (da * std + a * dstd))[:, None]
        return self.mean + a * mean, a * std, *gradients

    def condition_on_pending(self, X: ArrayLike) -> "ModulatedPosterior":
        """The posterior once the points X (k, 1) have been evaluated too, as if each gave what is expected of it."""
        z = self.kind.line(X)
        if len(z) == 0:
            return self
        expected = self.kind.correlation(z, self._z)[0] @ self._alpha
        return self.kind.conditioned(self.mean, np.append(self._z, z), np.append(self._residual, expected))

    def sample_path(self, rng: np.random.Generator) -> "ModulatedPath":
        """One function drawn from the posterior."""
        draw = stationary_draw(rng, self.kind.kernel, self.kind.length_scale)
        noise = math.sqrt(self.kind.noise) / self.kind.amplitude(self._z) * rng.standard_normal(len(self._z))
        # Matheron's rule: a draw from the prior, moved by what the posterior mean makes of its error at the data.
        error = self._residual - noise - draw(self._z[:, None])
        return ModulatedPath(self, draw, self._z, self._inverse.T @ (self._inverse @ error))


class ModulatedPath:
    """A function drawn from a posterior: `path(X)` gives values (m,) and gradients (m, 1)."""

    def __init__(self, posterior: ModulatedPosterior, draw: PriorDraw, z: Floats, weights: Floats) -> None:
        self._kind, self._mean = posterior.kind, posterior.mean
        self._draw, self._z, self._weights = draw, z, weights

    def __call__(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Values and gradients at the points X (m, 1)."""
        z = self._kind.line(X)
        a, da = self._kind.amplitude.value_and_slope(z)
        rho, drho = self._kind.correlation(z, self._z)
        g, dg = self._draw.value_and_gradient(z[:, None])
        g, slope = g + rho @ self._weights, dg[:, 0] + drho @ self._weights
        stretch = self._kind.high - self._kind.low
        return self._mean + a * g, (stretch * (da * g + a * slope))[:, None]
