"""Values standardized, and the linear algebra of covariance matrices."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.linalg import blas, lapack

from pbgi.arrays import Bools, Floats
from pbgi.errors import InvalidInputError
from pbgi.gp.config import LOG_2PI, Hyperparameters

SMALLEST, LARGEST = float(np.finfo(np.float64).smallest_subnormal), float(np.finfo(np.float64).max)

# Standardized values are rounded to multiples of this. It is far below any noise, and it makes the fit of
# a * y + b the fit of y bit for bit, where rounding errors would otherwise send the search along another path.
QUANTUM = 2.0**-36
# Added to the diagonal, relative to it, until the matrix has a Cholesky factor.
JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4)
# Sizes of a triangle, and of what it is multiplied with, up to which its zeros are not worth leaving out.
SMALL_TRIANGLE, SMALL_ROWS = 64, 1024


class Data(NamedTuple):
    """A checked design; the values told are center + scale * values."""

    X: Floats
    categorical: Bools
    values: Floats
    center: float
    scale: float
    spread: Floats | None = None  # (n, n) covariance of errors that are known, of standardized values


def prepare(
    X: ArrayLike, y: ArrayLike, categorical: ArrayLike | None, *, standardize: bool, spread: ArrayLike | None = None
) -> Data:
    """Points and values as arrays, checked, the values standardized if asked."""
    X, y = np.array(X, dtype=np.float64), np.array(y, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape or y.shape != X.shape[:1]:
        raise InvalidInputError(f"X must be (n, d) and y (n,), n and d at least 1; got {X.shape} and {y.shape}")
    for name, array in (("X", X), ("y", y)):
        if not np.isfinite(array).all():
            raise InvalidInputError(f"{name} must be finite; got {array[~np.isfinite(array)][0]}")
    mask = np.zeros(X.shape[1], dtype=np.bool_) if categorical is None else np.array(categorical)
    if mask.dtype != np.bool_ or mask.shape != X.shape[1:]:
        raise InvalidInputError(f"categorical must be {X.shape[1]} booleans, one per input; got {categorical!r}")
    values, center, scale = _standardize(y) if standardize else (y, 0.0, 1.0)
    known = None if spread is None else np.asarray(spread, dtype=np.float64) / scale**2
    return Data(X, mask, values, center, scale, known)


def require_dimension(hyperparameters: Hyperparameters, d: int) -> None:
    """Raise unless there is a length scale for each of the d inputs."""
    got = len(hyperparameters.length_scales)
    if got != d:
        raise InvalidInputError(f"hyperparameters must have {d} length scales, one per input; got {got}")


def _standardize(y: Floats) -> tuple[Floats, float, float]:
    """(values with mean 0 and sample variance 1, center, scale); values all alike have scale 1.

    The largest value is first brought near one by a power of two, which is exact and keeps squares from overflowing,
    and one of the values is subtracted, which is exact where a large offset hides small differences.
    """
    exponent = int(np.frexp(np.abs(y).max())[1])
    offsets = np.ldexp(y, -exponent)
    reference = offsets[0]
    offsets = offsets - reference
    middle = offsets.mean()
    offsets -= middle
    spread = math.sqrt(float(offsets @ offsets) / max(len(y) - 1, 1))
    center = float(np.ldexp(reference + middle, exponent))
    if spread == 0.0:
        return np.zeros_like(y), center, 1.0
    scale = float(np.ldexp(spread, exponent))
    return rounded(offsets / spread), center, min(max(scale, SMALLEST), LARGEST)


def rounded(x: Floats, quantum: float = QUANTUM) -> Floats:
    """Numbers of order one to multiples of a power of two: what is made of a * y + b is then what is made of y."""
    return np.asarray(np.round(x / quantum) * quantum)


# Matrices are row-major lower triangles; LAPACK sees their transpose, column-major upper triangles, without a copy.


def cholesky(matrix: Floats) -> tuple[Floats, float]:
    """Lower factor of a covariance matrix, and what was added to its diagonal to get one. Never fails.

    A matrix that no jitter makes definite is replaced by the nearest one whose eigenvalues are at least 1e-10 of its
    largest.
    """
    level = float(np.abs(np.diagonal(matrix)).max())
    for jitter in JITTERS:
        trial = matrix.copy()
        trial.flat[:: len(matrix) + 1] += jitter * level
        factor, info = lapack.dpotrf(trial.T, lower=0, clean=1, overwrite_a=1)
        if info == 0:
            return factor.T, jitter * level
    values, vectors = linalg.eigh(matrix)
    values = np.maximum(values, 1e-10 * max(float(values[-1]), level))
    upper = np.linalg.qr(np.sqrt(values)[:, None] * vectors.T, mode="r")
    return np.ascontiguousarray((upper * np.copysign(1.0, np.diagonal(upper))[:, None]).T), 0.0


def inverse_factor(factor: Floats) -> Floats:
    """Inverse of a lower triangle."""
    inverse, _ = lapack.dtrtri(factor.T, lower=0)
    return np.asarray(inverse.T)


def times_transposed(rows: Floats, inverse: Floats) -> Floats:
    """The product rows @ inverse.T for a lower triangle; large rows are overwritten."""
    if is_small(rows, inverse):
        return rows @ inverse.T
    return np.asarray(blas.dtrmm(1.0, inverse.T, rows.T, trans_a=1, overwrite_b=1).T)


def times(rows: Floats, inverse: Floats) -> Floats:
    """The product rows @ inverse for a lower triangle."""
    if is_small(rows, inverse):
        return rows @ inverse
    return np.asarray(blas.dtrmm(1.0, inverse.T, rows.T).T)


def is_small(rows: Floats, triangle: Floats) -> bool:
    """Whether a full product takes less time than one that leaves out the zeros of the triangle."""
    return len(triangle) <= SMALL_TRIANGLE or rows.size <= SMALL_ROWS


class Solution(NamedTuple):
    """K = factor factor', with the profiled mean and alpha = K^-1 (y - mean)."""

    mean: float
    residual: Floats
    alpha: Floats
    log_likelihood: float


def solve(factor: Floats, y: Floats, mean: float | None) -> Solution:
    """Solve for the mean (unless it is given), the weights and the log likelihood."""
    n = len(y)
    columns = np.empty((n, 2), order="F")
    columns[:, 0], columns[:, 1] = y, 1.0
    solved, _ = lapack.dpotrs(factor.T, columns, lower=0, overwrite_b=1)
    if mean is None:
        mean = float(solved[:, 0].sum() / solved[:, 1].sum())
    residual, alpha = y - mean, solved[:, 0] - mean * solved[:, 1]
    log_determinant = 2.0 * float(np.log(np.diagonal(factor)).sum())
    return Solution(mean, residual, alpha, -0.5 * (float(residual @ alpha) + log_determinant + n * LOG_2PI))
