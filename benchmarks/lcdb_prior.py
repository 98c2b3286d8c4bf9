"""What is believed of the vector of a data set, learned from those of others with gaps: a multivariate t distribution.

All of a data set's accuracies differ from the means by little if it is easy and by much if it is hard, so a normal
distribution is sure of far too much. With a t distribution each data set has its own unknown scale, and what has been
seen of it says how large that is. Mean and scale matrix are maximum likelihood, by expectation maximization (Liu and
Rubin, 1995), with correlations shrunk as if by `shrunk` uncorrelated data sets. Degrees of freedom and shrinkage are
those under which vectors left out are likeliest.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from pbgi.arrays import Bools, Floats, Ints

Kind = tuple[float, float]  # degrees of freedom and shrinkage
FREEDOMS, SHRINKAGES = (3.0, 4.0, 6.0, 15.0, np.inf), (0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 4
N_STEPS = 25  # of expectation maximization


class Normal(NamedTuple):
    """Mean and covariance of a vector."""

    mean: Floats
    covariance: Floats


class Student(NamedTuple):
    """A t distribution; a normal one with infinite degrees of freedom."""

    mean: Floats
    scale: Floats
    freedom: float

    def given(self, where: list[int], values: Floats) -> Normal:
        """Mean and covariance once some of the vector is known."""
        gain, whitened = self._whitened(where, values)
        distance = float(whitened @ whitened)
        widened = 1.0
        if np.isfinite(self.freedom):
            widened = (self.freedom + distance) / (self.freedom + len(where) - 2.0)
        return Normal(self.mean + whitened @ gain, widened * (self.scale - gain.T @ gain))

    def log_density(self, values: Floats) -> float:
        """Of what there is of a vector."""
        known = np.flatnonzero(~np.isnan(values))
        n, nu = len(known), self.freedom
        factor = np.linalg.cholesky(self.scale[np.ix_(known, known)])
        whitened = linalg.solve_triangular(factor, (values - self.mean)[known], lower=True)
        distance, log_root = float(whitened @ whitened), float(np.log(np.diag(factor)).sum())
        if np.isinf(nu):
            return float(-0.5 * (distance + n * np.log(2 * np.pi)) - log_root)
        constant = special.gammaln(0.5 * (nu + n)) - special.gammaln(0.5 * nu) - 0.5 * n * np.log(nu * np.pi)
        return float(constant - log_root - 0.5 * (nu + n) * np.log1p(distance / nu))

    def _whitened(self, where: list[int], values: Floats) -> tuple[Floats, Floats]:
        """Of the known part: its covariance with all over its deviations, and its values in these."""
        factor = np.linalg.cholesky(self.scale[np.ix_(where, where)])
        gain, whitened = (
            linalg.solve_triangular(factor, side, lower=True)
            for side in (self.scale[where], np.asarray(values) - self.mean[where])
        )
        return gain, whitened


def fitted(samples: Floats, freedom: float, shrunk: float) -> Student:
    """From samples by dimensions with gaps."""
    samples = samples[~np.isnan(samples).all(axis=1)]
    believed = Student(np.nanmean(samples, axis=0), np.diag(np.nanvar(samples, axis=0)), freedom)
    groups: dict[bytes, list[int]] = defaultdict(list)
    known: Bools = ~np.isnan(samples)
    for i, row in enumerate(known):
        groups[row.tobytes()].append(i)
    for _ in range(N_STEPS):
        believed = _step(believed, samples, [np.array(rows) for rows in groups.values()], known, shrunk)
    return believed


def _step(believed: Student, samples: Floats, groups: list[Ints], known: Bools, shrunk: float) -> Student:
    """One step of expectation maximization; rows of a group know the same dimensions."""
    mean, scale, freedom = believed
    rest, weights, unknown = np.empty(samples.shape), np.ones(len(samples)), np.zeros(scale.shape)
    for rows in groups:
        there, gaps = (np.flatnonzero(known[rows[0]] == is_there) for is_there in (True, False))
        factor = np.linalg.cholesky(scale[np.ix_(there, there)])
        own = samples[np.ix_(rows, there)] - mean[there]
        whitened = linalg.solve_triangular(factor, own.T, lower=True)
        if np.isfinite(freedom):
            weights[rows] = (freedom + len(there)) / (freedom + np.sum(whitened**2, axis=0))
        gain = linalg.solve_triangular(factor, scale[np.ix_(there, gaps)], lower=True)
        rest[np.ix_(rows, there)], rest[np.ix_(rows, gaps)] = own, whitened.T @ gain
        unknown[np.ix_(gaps, gaps)] += len(rows) * (scale[np.ix_(gaps, gaps)] - gain.T @ gain)
    moved = weights @ rest / weights.sum()
    rest -= moved
    total = (rest.T * weights) @ rest + unknown
    n = len(samples)
    return Student(mean + moved, (total + shrunk / n * np.diag(np.diag(total))) / (n + shrunk), freedom)


def likeliest(samples: Floats, freedoms: Sequence[float]) -> Kind:
    """Of these degrees of freedom, and all shrinkages, those under which samples left out are likeliest."""
    samples = samples[~np.isnan(samples).all(axis=1)]
    folds = np.arange(len(samples)) % FOLDS

    def log_likelihood(choice: Kind) -> float:
        total = 0.0
        for fold in range(FOLDS):
            believed = fitted(samples[folds != fold], *choice)
            total += sum(believed.log_density(row) for row in samples[folds == fold])
        return total

    return max(itertools.product(freedoms, SHRINKAGES), key=log_likelihood)
