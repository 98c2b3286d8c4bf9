"""A straight line through logarithms of costs: what is learned first, and what holds where nothing was paid yet.

Costs multiply: twice the epochs, twice the samples, half the batch size. On logarithmic axes that is a straight line,
and a Gaussian process alone, which returns to its mean away from the data, would take the far corner of the space for
an average one. So the logarithm of a cost is a line in the coordinates plus a Gaussian process; this is the line, by
Bayesian linear regression with the intercept free:

    y = w0 + w'(x - 1/2) + e,     w ~ N(0, PRIOR_STD^2 * 4/d),     e ~ N(0, s^2),

whose prior deviation at a corner is PRIOR_STD whatever the dimension d. The deviation s is learned: the estimate from
the residuals, with the assumed one counting like ASSUMED_COUNT observations.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pbgi.arrays import Bools, Floats

# Before anything is paid for, a corner may cost e^2.5, twelve times, as much as the middle, or as little.
PRIOR_STD = 2.5
ASSUMED_STD, ASSUMED_COUNT = 0.5, 2.0
N_ROUNDS = 5  # of estimating the deviation and the line in turn


@dataclass(frozen=True, eq=False)
class Trend:
    """A line with its uncertainty.

    Attributes:
        slopes: (d,) By coordinate; zero for categories.
        center: The height in the middle of the cube.
        covariance: (d + 1, d + 1) Of the center and the slopes.
        noise: Variance of what the line leaves.
    """

    slopes: Floats
    center: float
    covariance: Floats
    noise: float

    @classmethod
    def none(cls, d: int) -> "Trend":
        """A level line that is certain."""
        return cls(np.zeros(d), 0.0, np.zeros((d + 1, d + 1)), 0.0)

    def certain(self) -> "Trend":
        """The same line, as if nothing about it were uncertain."""
        return replace(self, covariance=np.zeros_like(self.covariance))

    def raised(self, by: float) -> "Trend":
        """The same line, so much higher."""
        return replace(self, center=self.center + by)

    @cached_property
    def is_uncertain(self) -> bool:
        """Whether it has a variance."""
        return bool(self.covariance.any())

    def __call__(self, X: Floats) -> Floats:
        """Heights (m,) at the points X (m, d)."""
        return np.asarray(self.center + (X - 0.5) @ self.slopes)

    def variance_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """How uncertain the heights are (m,), and the gradient (m, d) of that."""
        inputs = np.column_stack([np.ones(len(X)), X - 0.5])
        half = inputs @ self.covariance
        return np.vecdot(inputs, half), 2.0 * half[:, 1:]


def fit_trend(X: Floats, y: Floats, categorical: Bools) -> Trend:
    """The line through logarithms y (n,), n at least one, of costs at the points X (n, d)."""
    n, d = X.shape
    numbers = np.flatnonzero(~categorical)
    inputs = np.column_stack([np.ones(n), X[:, numbers] - 0.5])
    prior = 4.0 * PRIOR_STD**2 / max(len(numbers), 1)
    precision = np.diag(np.append(0.0, np.full(len(numbers), 1.0 / prior)))

    def posterior(variance: float) -> tuple[Floats, Floats]:
        covariance: Floats = np.asarray(np.linalg.inv(inputs.T @ inputs / variance + precision), dtype=np.float64)
        return covariance @ (inputs.T @ y) / variance, covariance

    variance = ASSUMED_STD**2
    for _ in range(N_ROUNDS):
        weights, covariance = posterior(variance)
        residual = y - inputs @ weights
        # As many observations as the line has taken up are no longer free to tell the deviation.
        free = max(n - float(np.sum((inputs @ covariance) * inputs)) / variance, 0.0)
        variance = (ASSUMED_COUNT * ASSUMED_STD**2 + float(residual @ residual)) / (ASSUMED_COUNT + free)
    weights, covariance = posterior(variance)
    columns = np.append(0, 1 + numbers)
    full = np.zeros((d + 1, d + 1))
    full[np.ix_(columns, columns)] = covariance
    slopes = np.zeros(d)
    slopes[numbers] = weights[1:]
    return Trend(slopes, float(weights[0]), full, variance)
