"""What is expected of points, with gradients: by one Gaussian process, or by several on one design in one pass.

A search asks for a few points hundreds of times. On arrays that small an operation takes longer to start than to run,
so that two processes asked together take little longer than one.
"""

from collections.abc import Sequence

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.gp.algebra import LARGEST, SMALLEST, is_small, times, times_transposed
from pbgi.gp.kernel import CrossCovariance, row_blocks

# Variance below this fraction of the prior variance is rounding error.
VARIANCE_FLOOR = 1e-12
# Products of a few numbers below this, and of their inverses, are far from overflow.
MODERATE = 1e50
# Larger designs are asked one by one: there the time goes into products, and the factors would be copied.
TOGETHER_UP_TO = 256


class Predictor:
    """Mean and standard deviation of points, and their gradients, in the units of the values told.

    Of g processes all arrays have one more axis, the first, and a number is an array (g,).

    Args:
        covariance: Between points and the design of n points.
        inverse: (n, n) Inverse of the lower Cholesky factor.
        alpha: (n,) K^-1 (y - mean), y standardized.
        mean: Of standardized values.
        scale: Values told are center + scale * standardized ones.
        center: See `scale`.
    """

    def __init__(
        self,
        covariance: CrossCovariance,
        inverse: Floats,
        alpha: Floats,
        mean: Floats | float,
        scale: Floats | float,
        center: Floats | float,
    ) -> None:
        self.covariance, self.inverse, self.alpha = covariance, inverse, alpha
        numbers = (mean, scale, center, covariance.output_scale)
        self.mean, self.scale, self.center, self._prior = (np.asarray(x)[..., None] for x in numbers)
        self._floor = VARIANCE_FLOOR * self._prior
        # Several small triangles are multiplied with in full, and faster as rows.
        self._transposed = None if inverse.ndim == 2 else np.ascontiguousarray(inverse.mT)
        # Whether all numbers told are so far from the largest and the smallest that no prediction is near them.
        sizes = np.concatenate([self.scale, self._prior, covariance.length_scales], axis=-1)
        levels = np.concatenate([self.mean, self.center, alpha, sizes], axis=-1)
        self._moderate = bool(np.abs(levels).max() < MODERATE and sizes.min() > 1.0 / MODERATE)

    @classmethod
    def together(cls, members: Sequence["Predictor"]) -> "Predictor | None":
        """One for all of them; None unless they stand on one small design and have the same kernel."""
        first = members[0].covariance
        if len(first.X) > TOGETHER_UP_TO or not all(first.is_like(member.covariance) for member in members):
            return None
        scales = [(member.covariance.length_scales, member.covariance.output_scale) for member in members]
        length_scales, output_scales = (np.array(x) for x in zip(*scales, strict=True))
        covariance = CrossCovariance(first.kernel, first.X, first.categorical, length_scales, output_scales)
        inverse, alpha = np.stack([m.inverse for m in members]), np.stack([m.alpha for m in members])
        units = ([float(x[0]) for x in (m.mean, m.scale, m.center)] for m in members)
        return cls(covariance, inverse, alpha, *np.array(list(units)).T)

    def __call__(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and standard deviations (m,) at the points X (m, d)."""
        blocks = [self._explain(X[rows]) for rows in row_blocks(len(X), self.alpha.shape[-1])]
        mean, explained = (np.concatenate(part, axis=-1) for part in zip(*blocks, strict=True))
        return self.value(mean), self._spread(self._std(explained)[0])

    def with_grad(self, X: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Means and standard deviations (m,), and their gradients (m, d)."""
        blocks = [self._explain_with_grad(X[rows]) for rows in row_blocks(len(X), self.alpha.shape[-1])]
        if len(blocks) == 1:
            mean, explained, gradients = blocks[0]
        else:
            means, parts, pulled = zip(*blocks, strict=True)
            mean, explained = np.concatenate(means, axis=-1), np.concatenate(parts, axis=-1)
            gradients = np.concatenate(pulled, axis=-2)
        std, free = self._std(explained)
        dmean, dstd = gradients
        dstd *= (free / -std)[..., None]
        gradients *= self.scale[..., None]
        return self.value(mean), self._spread(std), self.bounded(dmean), self.bounded(dstd)

    def value(self, standardized: Floats) -> Floats:
        """Back to the units of the values told; the constant mean is added."""
        return self.bounded((self.mean + standardized) * self.scale + self.center)

    def bounded(self, x: Floats) -> Floats:
        """The same without infinite numbers."""
        return x if self._moderate else np.minimum(np.maximum(x, -LARGEST), LARGEST)

    def _explain(self, X: Floats) -> tuple[Floats, Floats]:
        """Mean and explained variance, standardized."""
        covariance = self.covariance.value(X)
        mean = np.vecdot(covariance, self.alpha[..., None, :])
        whitened = self._whitened(covariance)
        return mean, np.vecdot(whitened, whitened)

    def _explain_with_grad(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """The same, and the gradients (2, m, d) of the mean and of half the explained variance."""
        covariance, slope = self.covariance.value_and_slope(X)
        alpha = self.alpha[..., None, :]
        mean = np.vecdot(covariance, alpha)
        whitened = self._whitened(covariance)
        explained = np.vecdot(whitened, whitened)
        back = self._back(whitened)
        weights = np.empty((2, *slope.shape))
        np.multiply(slope, alpha, out=weights[0])
        np.multiply(slope, back, out=weights[1])
        return mean, explained, self.covariance.pull(X, weights)

    def _whitened(self, covariance: Floats) -> Floats:
        """Rows L^-1 k, which may overwrite those that come in."""
        if self._transposed is None:
            return times_transposed(covariance, self.inverse)
        if is_small(covariance[0], self.inverse[0]):
            return np.asarray(covariance @ self._transposed)
        return np.stack([times_transposed(*pair) for pair in zip(covariance, self.inverse, strict=True)])

    def _back(self, whitened: Floats) -> Floats:
        """Rows K^-1 k of rows L^-1 k."""
        if self._transposed is None:
            return times(whitened, self.inverse)
        if is_small(whitened[0], self.inverse[0]):
            return np.asarray(whitened @ self.inverse)
        return np.stack([times(*pair) for pair in zip(whitened, self.inverse, strict=True)])

    def _std(self, explained: Floats) -> tuple[Floats, Bools]:
        """Standardized deviation from the variance that the data explain, and where it is above its floor."""
        variance = self._prior - explained
        return np.sqrt(np.maximum(variance, self._floor)), variance > self._floor

    def _spread(self, std: Floats) -> Floats:
        std = std * self.scale
        return std if self._moderate else np.minimum(np.maximum(std, SMALLEST), LARGEST)
