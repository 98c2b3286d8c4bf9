"""Covariance functions of the scaled distance, written so that every gradient is one matrix product.

A stationary kernel with one length scale per input is a function of one number,

    k(x, x') = rho(r2),        r2 = sum_k delta_k^2 / ell_k^2,

where delta_k = x_k - x'_k for a number and delta_k = D [x_k != x'_k] for a category (a Hamming distance). Of rho
only its value and its slope d rho / d r2 are ever needed: both are finite at r2 = 0 for the three kernels here,
also for Matern-3/2, whose derivative in r is not.

Categories are embedded as one-hot vectors of length D/sqrt(2), so that two different codes are at distance D.
After that all inputs are numbers, distances are a matrix product, and for any weights W_ij

    sum_ij W_ij (z_ik - z_jk)^2 = 2 sum_i z_ik (z_ik sum_j W_ij - (W Z)_ik)                    (W symmetric)

needs neither the array of all differences (d n^2 numbers) nor a loop over inputs.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from pbgi.arrays import Bools, Floats
from pbgi.errors import InvalidInputError

# Elementwise work goes in blocks of about this many numbers (1 MB), which stay in the processor's second-level cache.
BLOCK_SIZE = 2**17
# Between two different categories: a little less than between two random numbers of the unit interval (0.41, root mean
# square). Length scales have one prior for both; at a distance of one, each category would be learned by itself.
CATEGORY_DISTANCE = 0.3
MINUS_TWO = np.array([[-2.0]])


class Kernel(NamedTuple):
    """A correlation function rho with its slope, and the law of its frequencies.

    Attributes:
        value_and_slope: r2 -> (rho(r2), d rho / d r2); r2 is not negative, and is left as it is.
        freedom: Degrees of freedom (2 nu) of the multivariate t distribution that is the kernel's spectral measure;
            infinite for the Gaussian one of the squared exponential.
    """

    value_and_slope: Callable[[Floats], tuple[Floats, Floats]]
    freedom: float


def _matern52(r2: Floats) -> tuple[Floats, Floats]:
    """Here rho = (1 + s + s^2/3) exp(-s), slope = -5/6 (1 + s) exp(-s), s^2 = 5 r2."""
    s = np.sqrt(r2)
    s *= math.sqrt(5.0)
    value = np.exp(-s)
    s += 1.0
    s *= value
    value *= r2
    value *= 5.0 / 3.0
    value += s
    s *= -5.0 / 6.0
    return value, s


def _matern32(r2: Floats) -> tuple[Floats, Floats]:
    """Here rho = (1 + s) exp(-s), slope = -3/2 exp(-s), s^2 = 3 r2."""
    s = np.sqrt(r2)
    s *= math.sqrt(3.0)
    slope = np.exp(-s)
    s += 1.0
    s *= slope
    slope *= -1.5
    return s, slope


def _squared_exponential(r2: Floats) -> tuple[Floats, Floats]:
    """Here rho = exp(-r2/2), slope = -rho/2."""
    value = np.exp(-0.5 * r2)
    return value, -0.5 * value


KERNELS = {
    "matern52": Kernel(_matern52, 5.0),
    "matern32": Kernel(_matern32, 3.0),
    "rbf": Kernel(_squared_exponential, math.inf),
}


def kernel_named(name: str) -> Kernel:
    """The kernel of that name: "matern52", "matern32" or "rbf".

    Raises:
        InvalidInputError: There is none of that name.
    """
    if not isinstance(name, str) or name not in KERNELS:
        raise InvalidInputError(f"kernel must be one of {', '.join(KERNELS)}; got {name!r}")
    return KERNELS[name]


@dataclass(frozen=True, eq=False)
class Embedding:
    """Points (n, d) as vectors (n, D) whose squared differences are delta_k^2, summed over the columns of input k.

    Attributes:
        numbers: (c,) Positions of the inputs that are numbers.
        center: (c,) Subtracted from them, so that |z|^2 does not swamp differences.
        codes: For each categorical input its position and the sorted codes seen in the design. Codes not seen there
            share one more column, which puts them at distance one from all that were.
        owner: (D,) The input that a column belongs to.
    """

    numbers: NDArray[np.intp]
    center: Floats
    codes: tuple[tuple[int, Floats], ...]
    owner: NDArray[np.intp]

    @classmethod
    def of(cls, X: Floats, categorical: Bools) -> "Embedding":
        """The embedding for the design X (n, d), with the mask (d,) of categorical inputs."""
        numbers = np.flatnonzero(~categorical)
        if len(numbers) == len(categorical):  # no categories: the rule, and several times as fast
            return cls(numbers, X.mean(axis=0), (), numbers)
        codes = tuple((int(k), np.unique(X[:, k])) for k in np.flatnonzero(categorical))
        owner = np.concatenate([numbers, *(np.full(len(seen) + 1, k) for k, seen in codes)]).astype(np.intp)
        return cls(numbers, X[:, numbers].mean(axis=0), codes, owner)

    def __call__(self, X: Floats) -> Floats:
        """Embed the points X (m, d)."""
        if not self.codes:
            return np.asarray(X - self.center)
        columns = [X[:, self.numbers] - self.center]
        for k, seen in self.codes:
            known = X[:, k, None] == seen
            columns.append(CATEGORY_DISTANCE * math.sqrt(0.5) * np.column_stack([known, ~known.any(axis=1)]))
        return np.concatenate(columns, axis=1)


def _left_wing(Z: Floats, scale: Floats) -> Floats:
    """Rows (-2 z, 4 |z|^2, 1), for -2 z = Z * scale: their products with a right wing's are the squared distances.

    Scales (*batch, 1, D) give as many wings (*batch, n, D + 2).
    """
    n, width = Z.shape
    left = np.empty((*scale.shape[:-2], n, width + 2))
    doubled = np.multiply(Z, scale, out=left[..., :width])
    np.vecdot(doubled, doubled, out=left[..., width])
    left[..., width + 1] = 1.0
    return left


def _right_wing(Z: Floats) -> Floats:
    """Rows (z, 1/4, |z|^2)."""
    *shape, width = Z.shape
    right = np.empty((*shape, width + 2))
    right[..., :width] = Z
    right[..., width] = 0.25
    np.vecdot(Z, Z, out=right[..., width + 1])
    return right


def _squared_distances(left: Floats, right: Floats) -> Floats:
    """r2, with an absolute error of a few eps |z|^2, as rho needs it: rho is linear in r2 at zero."""
    r2: Floats = left @ right.mT
    return np.maximum(r2, 0.0, out=r2)


class Gram:
    """Correlation matrix of a design for changing length scales: the inner loop of a fit.

    All matrices are lower triangles in row-major order (above the diagonal they hold anything), which LAPACK reads as
    upper triangles. The two work matrices belong to this object and are overwritten by the next call.
    """

    def __init__(self, kernel: Kernel, X: Floats, categorical: Bools) -> None:
        self._kernel = kernel
        embedding = Embedding.of(X, categorical)
        self._points = embedding(X)
        self._owner = embedding.owner
        self._n, self._d = X.shape
        self._matrix = np.empty((self._n, self._n))
        self._slope = np.empty((self._n, self._n))
        self._scaled = self._right = self._points

    def correlation(self, length_scales: Floats) -> Floats:
        """The rho of all pairs, (n, n)."""
        self._scaled = self._points / length_scales[self._owner]
        left, self._right = _left_wing(self._scaled, MINUS_TWO), _right_wing(self._scaled)
        for rows, columns in self._blocks():
            r2 = _squared_distances(left[rows], self._right[columns])
            self._matrix[rows, columns], self._slope[rows, columns] = self._kernel.value_and_slope(r2)
        self._matrix.flat[:: self._n + 1] = 1.0
        return self._matrix

    def log_length_gradient(self, weights: Floats, inverse: Floats) -> Floats:
        """sum_ij (weights_i weights_j - inverse_ij) d rho_ij / d log ell_k, (d,), at the last length scales.

        Args:
            weights: (n,).
            inverse: (n, n) Lower triangle; overwritten.
        """
        for rows, columns in self._blocks():
            product = np.multiply.outer(weights[rows], weights[columns])
            product -= inverse[rows, columns]
            np.multiply(product, self._slope[rows, columns], out=inverse[rows, columns])
        # A point is at distance zero from itself: left in, its large weight would only cancel, with rounding.
        inverse.flat[:: self._n + 1] = 0.0
        Z = self._scaled
        product = blas.dsymm(1.0, inverse.T, self._right[:, :-1])  # of the points and of a column of quarters
        gap = Z * (4.0 * product[:, -1:])
        gap -= product[:, :-1]
        spread: Floats = np.vecdot(Z.T, gap.T)
        spread *= -4.0
        if len(spread) == self._d:  # no categories
            return spread
        return np.asarray(np.bincount(self._owner, weights=spread, minlength=self._d), dtype=np.float64)

    def log_length_products(self, U: Floats) -> Floats:
        """sum_j U_jp d rho_ij / d log ell_k, (d, n, p), for U (n, p), at the last length scales."""
        n, p = U.shape
        Z = self._scaled.T[:, :, None]  # (D, n, 1)
        ZU = Z * U
        # (z_i - z_j)^2 multiplied out: one symmetric product with U, z U and z^2 U serves all inputs.
        columns = np.concatenate([U[None], ZU, Z * ZU]).transpose(1, 0, 2).reshape(n, -1)
        product = blas.dsymm(1.0, self._slope.T, columns).T.reshape(-1, p, n).transpose(0, 2, 1)
        first, second = np.split(product[1:], 2)
        spread = Z * (Z * product[0] - 2.0 * first) + second
        spread *= -2.0
        if len(spread) == self._d:  # no categories
            return np.asarray(spread)
        by_input = np.zeros((self._d, n, p))
        np.add.at(by_input, self._owner, spread)
        return by_input

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Blocks of rows that cover the lower triangle."""
        step = max(64, min(BLOCK_SIZE // (2 * self._n), (self._n + 1) // 2))  # two at least: a quarter is left out
        for start in range(0, self._n, step):
            stop = min(start + step, self._n)
            yield slice(start, stop), slice(0, stop)


class CrossCovariance:
    """Covariance output_scale * rho between any points and a design, with gradients in the points.

    Several sets of length scales (*batch, d), with as many output scales (*batch,), give as many covariances.
    """

    def __init__(
        self, kernel: Kernel, X: Floats, categorical: Bools, length_scales: Floats, output_scale: Floats | float
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.categorical = categorical
        self.length_scales = length_scales
        self.output_scale = output_scale
        self._factor = np.asarray(output_scale)[..., None, None]
        self._embedding = Embedding.of(X, categorical)
        embedded, inverse_scales = self._embedding(X), 1.0 / length_scales[..., None, self._embedding.owner]
        self._design = _right_wing(embedded * inverse_scales)
        self._left_scale = -2.0 * inverse_scales
        # What `pull` multiplies: numbers, not scaled, and ones.
        numbers = self._embedding.numbers
        self._pulled = np.ones((len(X), len(numbers) + 1))
        self._pulled[:, :-1] = embedded[:, : len(numbers)]
        self._pull_scale = 2.0 / length_scales[..., None, numbers] ** 2

    def is_like(self, other: "CrossCovariance") -> bool:
        """Whether kernel and design are the same."""
        same_design = np.array_equal(self.X, other.X) and np.array_equal(self.categorical, other.categorical)
        return self.kernel is other.kernel and same_design

    def extended(self, X: Floats) -> "CrossCovariance":
        """The same with the points X (k, d) after those of the design."""
        X = np.concatenate([self.X, X])
        return CrossCovariance(self.kernel, X, self.categorical, self.length_scales, self.output_scale)

    def value(self, X: Floats) -> Floats:
        """Covariances (*batch, m, n) of the points X (m, d) with the design."""
        return self.value_and_slope(X)[0]

    def value_and_slope(self, X: Floats) -> tuple[Floats, Floats]:
        """Covariances (*batch, m, n) and their derivatives in r2, of the same shape."""
        left = _left_wing(self._embedding(X), self._left_scale)
        value, slope = self.kernel.value_and_slope(_squared_distances(left, self._design))
        value *= self._factor
        slope *= self._factor
        return value, slope

    def pull(self, X: Floats, weights: Floats) -> Floats:
        """sum_j weights_ij d r2(x_i, x_j) / d x_i, (..., *batch, m, d); zero for categories.

        Args:
            X: (m, d).
            weights: (..., *batch, m, n) Already times the slope.
        """
        numbers = self._embedding.numbers
        *shape, n = weights.shape
        product = (weights.reshape(-1, n) @ self._pulled).reshape(*shape, -1)  # one product, whatever the batch
        only_numbers = len(numbers) == X.shape[1]
        slope: Floats = (X if only_numbers else X[:, numbers]) - self._embedding.center
        slope = slope * product[..., -1:]
        slope -= product[..., :-1]
        slope *= self._pull_scale
        if only_numbers:
            return slope
        gradient = np.zeros((*shape, X.shape[1]))
        gradient[..., numbers] = slope
        return gradient


class PriorDraw:
    """One function drawn from the zero-mean prior, as a sum of random waves.

    With frequencies w_i from the kernel's spectral measure, uniform phases p_i and Rayleigh amplitudes a_i,

        f(x) = sqrt(output_scale / F) sum_i a_i cos(w_i . x + p_i)

    has exactly the covariance output_scale * rho, and given the frequencies it is Gaussian: a_i cos(. + p_i) is
    a cosine and a sine with independent normal weights. A category enters as its one-hot vector of length D/sqrt(2),
    which has as many directions as there are codes; the frequencies along the direction of a code are drawn when the
    code is met, from a generator seeded by the code, so that the function is the same whatever was asked before.
    """

    def __init__(self, rng: np.random.Generator, covariance: CrossCovariance, n_features: int) -> None:
        freedom = covariance.kernel.freedom
        self.n_features = n_features
        self._numbers = np.flatnonzero(~covariance.categorical)
        self._categories = np.flatnonzero(covariance.categorical)
        self._length_scales = covariance.length_scales
        self._stretch = np.ones(n_features)  # of a normal vector into one that is t distributed
        if math.isfinite(freedom):
            self._stretch = np.sqrt(freedom / rng.chisquare(freedom, n_features))
        normal = rng.standard_normal((len(self._numbers), n_features))
        self._frequencies = normal * self._stretch / self._length_scales[self._numbers, None]
        self._amplitudes = math.sqrt(covariance.output_scale / n_features) * rng.rayleigh(size=n_features)
        self._phases = rng.uniform(0.0, 2.0 * math.pi, n_features)
        self._key = int(rng.integers(2**63))

    def __call__(self, X: Floats) -> Floats:
        """Values (m,) at X (m, d)."""
        return np.asarray(np.cos(self._angles(X)) @ self._amplitudes)

    def value_and_gradient(self, X: Floats) -> tuple[Floats, Floats]:
        """Values (m,) and gradients (m, d), zero for categories."""
        angles = self._angles(X)
        gradient = np.zeros(X.shape)
        gradient[:, self._numbers] = -(np.sin(angles) * self._amplitudes) @ self._frequencies.T
        return np.cos(angles) @ self._amplitudes, gradient

    def _angles(self, X: Floats) -> Floats:
        angles: Floats = X[:, self._numbers] @ self._frequencies + self._phases
        for k in self._categories:
            codes, which = np.unique(X[:, k], return_inverse=True)
            waves = np.stack([self._code_frequencies(int(k), code) for code in codes])
            angles += waves[which]
        return angles

    def _code_frequencies(self, k: int, code: np.float64) -> Floats:
        """Frequencies (F,) along the direction of one code of input k, times the length of its vector."""
        bits = int(np.float64(code + 0.0).view(np.uint64))  # + 0.0: -0.0 and 0.0 are one code
        normal = np.random.default_rng([self._key, k, bits]).standard_normal(len(self._stretch))
        return np.asarray(normal * self._stretch * (CATEGORY_DISTANCE * math.sqrt(0.5) / self._length_scales[k]))


def row_blocks(m: int, width: int) -> Iterator[slice]:
    """Slices of m rows, one at least, such that a block of rows of that width stays in the cache."""
    step = max(64, BLOCK_SIZE // max(width, 1))
    for start in range(0, max(m, 1), step):
        yield slice(start, min(start + step, m))
