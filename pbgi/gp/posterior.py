"""The posterior of an exact Gaussian process: predictions with gradients, pending points, function draws.

Larger values are better, points live on the unit cube, and everything is float64 with closed-form derivatives.
Values are standardized first; hyperparameters are in standardized units, predictions in the units of the values told.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError
from pbgi.gp.algebra import (
    Data,
    cholesky,
    inverse_factor,
    prepare,
    require_dimension,
    solve,
    times,
    times_transposed,
)
from pbgi.gp.config import GPConfig, Hyperparameters, LogPrior, log_parameters
from pbgi.gp.kernel import CrossCovariance, PriorDraw, kernel_named, row_blocks
from pbgi.gp.predictor import Predictor

PosteriorWithGrad: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Mean (m,), standard deviation (m,) and their gradients (m, d)."""


class Training(NamedTuple):
    """What a posterior is conditioned on, pending points included, in standardized units.

    The values told are center + scale * values, and `inverse` is that of the lower Cholesky factor of their covariance.
    """

    X: Floats  # (N, d)
    values: Floats  # (N,) those of pending points are what is expected of them
    mean: float
    noise: float  # with jitter
    inverse: Floats  # (N, N)
    center: float
    scale: float


def build_gp(data: Data, config: GPConfig, hyperparameters: Hyperparameters, mean: float | None) -> "GP":
    """The posterior for these hyperparameters; the constant mean is estimated if not given."""
    covariance = CrossCovariance(
        kernel_named(config.kernel),
        data.X,
        data.categorical,
        np.array(hyperparameters.length_scales),
        hyperparameters.output_scale,
    )
    matrix = covariance.value(data.X)
    matrix.flat[:: len(matrix) + 1] = hyperparameters.output_scale + hyperparameters.noise
    if data.spread is not None:
        matrix += data.spread
    factor, jitter = cholesky(matrix)
    solution = solve(factor, data.values, mean)
    log_prior, _ = LogPrior(data.X.shape[1], config)(log_parameters(hyperparameters, config))
    return GP(
        config=config,
        hyperparameters=hyperparameters,
        log_posterior=solution.log_likelihood + log_prior,
        n=len(data.X),
        _covariance=covariance,
        _inverse=inverse_factor(factor),
        _alpha=solution.alpha,
        _residual=solution.residual,
        _noise=hyperparameters.noise + jitter,
        _center=data.center,
        _scale=data.scale,
        _mean=solution.mean,
        _spread=data.spread,
    )


@dataclass(frozen=True, eq=False)
class GP:
    """Posterior of a Gaussian process; never changes. Made by `fit_gp` or `GP.with_hyperparameters`.

    Attributes:
        config: What it was told before it saw data.
        hyperparameters: Of the covariance, in standardized units; the warm start of the next fit.
        log_posterior: Log density of the standardized values and of the hyperparameters.
        n: How many values were told; pending points do not count.
    """

    config: GPConfig
    hyperparameters: Hyperparameters
    log_posterior: float
    n: int
    _covariance: CrossCovariance
    _inverse: Floats  # (N, N) inverse of the lower Cholesky factor
    _alpha: Floats  # (N,) K^-1 residual
    _residual: Floats  # (N,) standardized values less the mean
    _noise: float  # with jitter
    _center: float
    _scale: float
    _mean: float
    _spread: Floats | None = None  # (N, N) covariance of errors that is known, standardized

    @classmethod
    def with_hyperparameters(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        hyperparameters: Hyperparameters,
        config: GPConfig | None = None,
        *,
        categorical: ArrayLike | None = None,
        mean: float | None = None,
        standardize: bool = True,
    ) -> "GP":
        """The posterior for known hyperparameters.

        Args:
            X: (n, d) Points of the unit cube.
            y: (n,) Values.
            hyperparameters: Taken as they are, whatever the bounds and the noise of `config`.
            config: Kernel, and priors for `log_posterior`.
            categorical: (d,) Which inputs are categories.
            mean: The constant mean in the units of `y`; estimated if not given.
            standardize: Whether the hyperparameters are in units of standardized values, or in those of `y`.

        Raises:
            InvalidInputError: Shapes do not fit together, or a number is not finite.
        """
        data = prepare(X, y, categorical, standardize=standardize)
        require_dimension(hyperparameters, data.X.shape[1])
        if mean is not None:
            if not math.isfinite(mean):
                raise InvalidInputError(f"mean must be finite; got {mean}")
            mean = (mean - data.center) / data.scale
        with np.errstate(all="ignore"):
            return build_gp(data, config or GPConfig(noise=hyperparameters.noise), hyperparameters, mean)

    @property
    def prior_variance(self) -> float:
        """Of the function, in the units of the values told."""
        return self.hyperparameters.output_scale * self._scale**2

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise, in the units of the values told."""
        return math.sqrt(self.hyperparameters.noise) * self._scale

    @property
    def training(self) -> Training:
        """What it is conditioned on: for whoever builds the same posterior elsewhere."""
        values = self._residual + self._mean
        return Training(self._covariance.X, values, self._mean, self._noise, self._inverse, self._center, self._scale)

    @property
    def has_categories(self) -> bool:
        """Whether some inputs are categories."""
        return bool(self._covariance.categorical.any())

    def posterior(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Mean (m,) and standard deviation (m,) of the function, without noise, at the points X (m, d).

        The standard deviation is never below a millionth of the prior's.
        """
        X = self._points(X)
        with np.errstate(all="ignore"):
            return self._predictor(X)

    def posterior_with_grad(self, X: ArrayLike) -> PosteriorWithGrad:
        """Mean (m,), standard deviation (m,) and their gradients (m, d) in X, which are zero in categories.

        Where the standard deviation is at its floor (a point told without noise) its gradient is given as zero.
        """
        X = self._points(X)
        with np.errstate(all="ignore"):
            return self._predictor.with_grad(X)

    def condition_on_pending(self, X: ArrayLike) -> "GP":
        """The posterior once the points X (k, d) have been evaluated too, before their values are known.

        The mean stays and the spread shrinks, as if each value were going to be what is now expected of it. The
        factor is extended, O(n^2 k); hyperparameters stay.
        """
        X = self._points(X)
        if len(X) == 0:
            return self
        n = len(self._alpha)
        with np.errstate(all="ignore"):
            extended = self._covariance.extended(X)
            rows = extended.value(X)
            cross, own = rows[:, :n].copy(), rows[:, n:]
            own.flat[:: len(X) + 1] = self.hyperparameters.output_scale + self._noise
            expected = cross @ self._alpha
            explained = times_transposed(cross, self._inverse)
            factor, _ = cholesky(own - explained @ explained.T)
            inverse = np.zeros((n + len(X), n + len(X)))
            inverse[:n, :n] = self._inverse
            inverse[n:, n:] = inverse_factor(factor)
            inverse[n:, :n] = -inverse[n:, n:] @ times(explained, self._inverse)
        return replace(
            self,
            _covariance=extended,
            _inverse=inverse,
            _alpha=np.append(self._alpha, np.zeros(len(X))),
            _residual=np.append(self._residual, expected),
            _spread=None if self._spread is None else np.pad(self._spread, (0, len(X))),
        )

    def sample_path(self, rng: np.random.Generator, n_features: int = 1024) -> "SamplePath":
        """One function drawn from the posterior."""
        prior = PriorDraw(rng, self._covariance, n_features)
        noise = math.sqrt(self._noise) * rng.standard_normal(len(self._alpha))
        if self._spread is not None:
            noise = noise + cholesky(self._spread)[0] @ rng.standard_normal(len(noise))
        # Matheron's rule: a draw from the prior, moved by what the posterior mean makes of its error at the data.
        error = self._residual - noise - prior(self._covariance.X)
        return SamplePath(self, prior, (error @ self._inverse.T) @ self._inverse)

    def _points(self, X: ArrayLike) -> Floats:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self._covariance.X.shape[1]:
            raise InvalidInputError(f"X must be (m, {self._covariance.X.shape[1]}); got shape {X.shape}")
        if not math.isfinite(np.vdot(X, X)) and not np.isfinite(X).all():  # the first is fast, and enough as a rule
            raise InvalidInputError(f"X must be finite; got {X[~np.isfinite(X)][0]}")
        return X

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self._covariance, self._inverse, self._alpha, self._mean, self._scale, self._center)


class Pair:
    """Two processes that are asked for the same points, in one pass where they stand on one design.

    Attributes:
        first, second: The processes.
    """

    def __init__(self, first: GP, second: GP) -> None:
        self.first, self.second = first, second
        self._together = Predictor.together([first._predictor, second._predictor])

    def posterior_with_grad(self, X: ArrayLike) -> tuple[PosteriorWithGrad, PosteriorWithGrad]:
        """What `GP.posterior_with_grad` says of both."""
        if self._together is None:
            return self.first.posterior_with_grad(X), self.second.posterior_with_grad(X)
        X = self.first._points(X)
        with np.errstate(all="ignore"):
            mean, std, dmean, dstd = self._together.with_grad(X)
        return (mean[0], std[0], dmean[0], dstd[0]), (mean[1], std[1], dmean[1], dstd[1])


@dataclass(frozen=True, eq=False)
class SamplePath:
    """A function drawn from a posterior: `path(X)` gives values (m,) and gradients (m, d), zero in categories."""

    _gp: GP
    _prior: PriorDraw
    _weights: Floats

    def __call__(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Values and gradients at the points X (m, d), in the units of the values told."""
        gp = self._gp
        X = gp._points(X)
        value, gradient = np.empty(len(X)), np.empty(X.shape)
        with np.errstate(all="ignore"):
            for rows in row_blocks(len(X), max(len(self._weights), self._prior.n_features)):
                covariance, slope = gp._covariance.value_and_slope(X[rows])
                prior, dprior = self._prior.value_and_gradient(X[rows])
                value[rows] = prior + covariance @ self._weights
                gradient[rows] = dprior + gp._covariance.pull(X[rows], slope * self._weights)
            predictor = gp._predictor
            return predictor.value(value), predictor.bounded(gradient * gp._scale)
