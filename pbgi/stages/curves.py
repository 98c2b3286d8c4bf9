"""What a trial's reports say of the value it will end with, learned from how other trials went on.

The value at the end of stage r + 1 is that at the end of stage r plus an increment. Of each stage's increments there is
one model, a Gaussian process over what is known when the stage begins: linear in the last value and in its last
increment, plus a function of the parameters,

    y_(r+1) = y_r + b0 + b1 (y_r - mean) + b2 (y_r - y_(r-1)) + g(x) + noise,

so that curves which cross because some parameters learn slowly are no surprise. Which trials went on was decided by
what these regressions are conditioned on: that the bad ones are missing at later stages biases none of them. Variances
of the function and of the noise are averaged over, weighed by the evidence: while few curves are known, any will do.
Chained from where a trial stands, the stages give mean and variance of its last value.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from pbgi.arrays import Floats, Ints
from pbgi.gp.algebra import cholesky, solve
from pbgi.gp.kernel import CrossCovariance, kernel_named
from pbgi.space import Space

# Standard deviations of the coefficients: warped values are of order one.
INTERCEPT, LEVEL, TREND = 1.0, 0.2, 0.5
# Variances of the function and of the noise, in units of the variance of increments around the mean of their stage.
FUNCTIONS, NOISES = (0.0, 0.3, 3.0), (1e-3, 3e-2, 1.0)
LEAST_VARIANCE = 1e-12
MOST_SEEN = 60  # increments of a stage: the latest
MOST_ASKED = 20  # trials, of which it is asked what the end of a stage leaves open
LEAST_WEIGHT = 1e-2  # below, a process is left out
LENGTH_SCALE = 0.5  # where the model of values has learned none


class Observed(NamedTuple):
    """Curves of n trials with R stages, as the model sees values.

    Attributes:
        X: (n, d) Their points.
        values: (n, R) Values at the ends of stages; NaN where none was reported.
        reached: (n,) Stages that have ended.
    """

    X: Floats
    values: Floats
    reached: Ints

    def of(self, rows: Ints) -> "Observed":
        """Some of the trials."""
        return Observed(self.X[rows], self.values[rows], self.reached[rows])


class _Fit(NamedTuple):
    """A Gaussian process of increments with a weight."""

    weight: float
    function: float
    noise: float
    factor: Floats  # (k, k) Cholesky factor of the covariance
    alpha: Floats  # (k,)


@dataclass(frozen=True, eq=False)
class _Stage:
    """What is known of the increments of a stage."""

    covariance: CrossCovariance
    linear: Floats  # (k, 3) one, the last value less its mean, the last increment; times their deviations
    mean: float
    fits: Sequence[_Fit]
    pull: Floats  # (2,) slopes found, of the last value and of the last increment

    def increment(self, X: Floats, last: Floats, before: Floats, *, joint: bool) -> tuple[Floats, Floats]:
        """Mean (m,) and covariance (m, m) of increments: what is not known of the function they have in common.

        If not joint, each by itself: mean (m,) and variance (m,).
        """
        linear = _linear(last - self.mean, last - before)
        shared, function = linear @ self.linear.T, self.covariance.value(X)
        among_linear = linear @ linear.T if joint else np.vecdot(linear, linear)
        among_function = self._among(X) if joint else np.ones(len(X))
        mean, square = np.zeros(len(X)), np.zeros_like(among_linear)
        own = slice(None, None, len(X) + 1 if joint else 1)
        for fit in self.fits:
            cross = shared + fit.function * function
            expected = cross @ fit.alpha
            whitened = solve_triangular(fit.factor, cross.T, lower=True, check_finite=False)
            within = among_linear + fit.function * among_function
            within -= whitened.T @ whitened if joint else np.vecdot(whitened.T, whitened.T)
            within.flat[own] += fit.noise
            mean = mean + fit.weight * expected
            square += fit.weight * (within + _square(expected, joint=joint))
        square -= _square(mean, joint=joint)
        square.flat[own] += LEAST_VARIANCE
        return mean, square

    def _among(self, X: Floats) -> Floats:
        """Covariance of the function at points (m, d), of unit variance."""
        known = self.covariance
        return CrossCovariance(known.kernel, X, known.categorical, known.length_scales, 1.0).value(X)


@dataclass(frozen=True, eq=False)
class Curves:
    """How values go on, stage by stage."""

    stages: Sequence[_Stage]
    seen: Observed

    def forecast(self, seen: Observed, *, joint: bool = True) -> tuple[Floats, Floats]:
        """Mean (n,) and covariance (n, n) of last values, of trials at least one stage of which has ended.

        If not joint, each by itself: mean (n,) and variance (n,).
        """
        rows, at = np.arange(len(seen.X)), seen.reached - 1
        last = seen.values[rows, at]
        before = np.where(at > 0, seen.values[rows, at - 1], last)
        # Of last values, of these with the ones before, of the latter.
        spread = np.zeros((3, len(rows), len(rows)) if joint else (3, len(rows)))
        for r, stage in enumerate(self.stages):
            on = np.flatnonzero(at <= r)
            if len(on):
                change, covariance = stage.increment(seen.X[on], last[on], before[on], joint=joint)
                block = np.ix_(np.arange(3), on, on) if joint else np.ix_(np.arange(3), on)
                own, mixed, former = spread[block]
                a, b = 1.0 + stage.pull[0] + stage.pull[1], -stage.pull[1]
                turned = a * a * own + a * b * (mixed + mixed.T) + b * b * former + covariance
                spread[block] = np.stack([turned, a * own + b * mixed.T, own])
                last[on], before[on] = last[on] + change, last[on]
        return last, spread[0]

    def left_after(self) -> Floats:
        """(R - 1,) Variance of the last value that the end of a stage leaves open, on average over trials."""
        reported = np.isfinite(self.seen.values[:, :-1])
        rows = [np.flatnonzero(column)[-MOST_ASKED:] for column in reported.T]
        reached = np.repeat(np.arange(len(rows)) + 1, [len(each) for each in rows])
        asked = np.concatenate(rows)
        _, variance = self.forecast(Observed(self.seen.X[asked], self.seen.values[asked], reached), joint=False)
        left = np.bincount(reached - 1, variance) / np.bincount(reached - 1)
        return np.asarray(np.minimum.accumulate(left))


def fit_curves(space: Space, seen: Observed, length_scales: Floats | None) -> Curves:
    """How the values of these trials went on; at least one has come to its end."""
    lengths = np.full(space.dimension, LENGTH_SCALE) if length_scales is None else length_scales
    increments = np.diff(seen.values, axis=1)
    pooled = _pooled(increments)
    n_stages = increments.shape[1]
    return Curves([_fit_stage(space, seen, r, increments[:, r], pooled, lengths) for r in range(n_stages)], seen)


def _pooled(increments: Floats) -> float:
    """The variance of increments around the mean of their stage; one where each has but one."""
    columns = [column[np.isfinite(column)] for column in increments.T]
    square = sum(float(((column - column.mean()) ** 2).sum()) for column in columns if len(column))
    free = sum(max(len(column) - 1, 0) for column in columns)
    return max(square / free, LEAST_VARIANCE) if free else 1.0


def _square(x: Floats, *, joint: bool) -> Floats:
    """The products of all pairs, or the squares."""
    return np.asarray(np.multiply.outer(x, x) if joint else x * x)


def _linear(level: Floats, trend: Floats) -> Floats:
    return np.column_stack([np.full(len(level), INTERCEPT), LEVEL * level, TREND * trend])


def _fit_stage(space: Space, seen: Observed, r: int, increments: Floats, pooled: float, lengths: Floats) -> _Stage:
    """The model of one stage's increments."""
    rows = np.flatnonzero(np.isfinite(increments))[-MOST_SEEN:]
    last, increment = seen.values[rows, r], increments[rows]
    before = seen.values[rows, r - 1] if r > 0 else last
    mean = float(last.mean())
    linear = _linear(last - mean, np.where(np.isfinite(before), last - before, 0.0))
    covariance = CrossCovariance(kernel_named("matern52"), seen.X[rows], space.categorical, lengths, 1.0)
    shared, function = linear @ linear.T, covariance.value(seen.X[rows])
    found = [
        _fit(shared, function, increment, share * pooled, noise * pooled)
        for share, noise in itertools.product(FUNCTIONS, NOISES)
    ]
    evidence = np.array([fit.weight for fit in found])
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    fits = [fit._replace(weight=float(w)) for fit, w in zip(found, weights, strict=True) if w > LEAST_WEIGHT]
    alpha = sum((fit.weight * fit.alpha for fit in fits), np.zeros(len(rows)))
    pull = np.array([LEVEL, TREND]) * (linear[:, 1:].T @ alpha)
    return _Stage(covariance, linear, mean, fits, pull)


def _fit(shared: Floats, function: Floats, increment: Floats, share: float, noise: float) -> _Fit:
    """One process; for its weight the logarithm of its evidence."""
    matrix = shared + share * function
    matrix.flat[:: len(matrix) + 1] += noise
    factor, _ = cholesky(matrix)
    alpha = solve(factor, increment, 0.0).alpha
    evidence = -float(np.log(np.diagonal(factor)).sum()) - 0.5 * float(increment @ alpha)
    return _Fit(evidence, share, noise, factor, alpha)
