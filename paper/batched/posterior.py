"""Gaussian processes of many runs, each on its own points: predictions with gradients at points of its own.

Axes are (runs, points, design). What is computed is what `pbgi.gp` computes for one run, see there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

VARIANCE_FLOOR = 1e-12  # of the prior variance, as in `pbgi.gp.predictor`
BLOCK = 2**28  # numbers in one matrix of covariances: pools are asked in pieces


def _matern52(r2: Tensor) -> tuple[Tensor, Tensor]:
    s = (5.0 * r2).sqrt()
    decay = torch.exp(-s)
    slope = (1.0 + s) * decay
    return torch.addcmul(slope, r2, decay, value=5.0 / 3.0), slope.mul(-5.0 / 6.0)


def _matern32(r2: Tensor) -> tuple[Tensor, Tensor]:
    s = (3.0 * r2).sqrt()
    decay = torch.exp(-s)
    return (1.0 + s) * decay, -1.5 * decay


def _squared_exponential(r2: Tensor) -> tuple[Tensor, Tensor]:
    value = torch.exp(-0.5 * r2)
    return value, -0.5 * value


# Correlation and its slope in the squared scaled distance, as `pbgi.gp.kernel.KERNELS`.
KERNELS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "matern52": _matern52,
    "matern32": _matern32,
    "rbf": _squared_exponential,
}


def squared_distances(A: Tensor, B: Tensor) -> Tensor:
    """Of the rows of A (b, m, d) and B (b, n, d)."""
    norms = A.square().sum(-1, keepdim=True) + B.square().sum(-1)[:, None, :]
    return torch.baddbmm(norms, A, B.mT, alpha=-2.0).clamp_(min=0.0)


@dataclass(frozen=True, eq=False)
class Scales:
    """Hyperparameters of each run: length scales (b, d), variances of the function (b,), and the noise of all."""

    length_scales: Tensor
    output_scale: Tensor
    noise: float

    def take(self, runs: Tensor) -> "Scales":
        """Of these runs."""
        return replace(self, length_scales=self.length_scales[runs], output_scale=self.output_scale[runs])


def covariance(kernel: str, A: Tensor, B: Tensor, scales: Scales) -> Tensor:
    """Covariances (b, m, n) of the functions at A (b, m, d) and B (b, n, d)."""
    lengths = scales.length_scales[:, None, :]
    return KERNELS[kernel](squared_distances(A / lengths, B / lengths))[0] * scales.output_scale[:, None, None]


def inverse_factor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The lower factor of each covariance matrix (b, n, n), and its inverse; not numbers where there is none."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    factor = torch.where((info != 0)[:, None, None], torch.full_like(factor, math.nan), factor)
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
    return factor, torch.linalg.solve_triangular(factor, eye, upper=False)


def fresh_inverse(kernel: str, X: Tensor, scales: Scales) -> Tensor:
    """Inverse factors of the covariance of values at X (b, n, d)."""
    matrix = covariance(kernel, X, X, scales)
    matrix.diagonal(dim1=-2, dim2=-1).copy_((scales.output_scale + scales.noise)[:, None])
    return inverse_factor(matrix)[1]


def grown_inverse(kernel: str, X: Tensor, inverse: Tensor, scales: Scales) -> Tensor:
    """Inverse factors for X (b, n, d), given those of all points but the last."""
    b, n, _ = X.shape
    cross = covariance(kernel, X[:, -1:], X[:, :-1], scales)  # (b, 1, n - 1)
    explained = cross @ inverse.mT
    last = (scales.output_scale + scales.noise - explained.square().sum((1, 2))).clamp(min=1e-300).sqrt()
    grown = torch.zeros((b, n, n), dtype=X.dtype, device=X.device)
    grown[:, :-1, :-1] = inverse
    grown[:, -1, :-1] = -(explained @ inverse)[:, 0] / last[:, None]
    grown[:, -1, -1] = 1.0 / last
    return grown


def solved(inverse: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The mean (b,) by generalized least squares, residuals (b, n), and K^-1 times these, of values y (b, n)."""
    whitened = inverse @ torch.stack([y, torch.ones_like(y)], dim=-1)
    ones = whitened[..., 1]
    mean = (whitened[..., 0] * ones).sum(1) / ones.square().sum(1)
    rest = whitened[..., 0] - mean[:, None] * ones
    return mean, y - mean[:, None], (inverse.mT @ rest[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posteriors of b runs, in the units of the values told, which are center + scale * standardized ones."""

    kernel: str
    X: Tensor  # (b, n, d)
    inverse: Tensor  # (b, n, n)
    alpha: Tensor  # (b, n)
    mean: Tensor  # (b,)
    scales: Scales
    scale: Tensor  # (b,)
    center: Tensor  # (b,)

    @classmethod
    def of(
        cls, kernel: str, X: Tensor, y: Tensor, inverse: Tensor, scales: Scales, scale: Tensor, center: Tensor
    ) -> "Posterior":
        """Given values y (b, n), standardized, and inverse factors."""
        mean, _, alpha = solved(inverse, y)
        return cls(kernel, X, inverse, alpha, mean, scales, scale, center)

    def take(self, runs: Tensor) -> "Posterior":
        """Those of these runs."""
        names = ("X", "inverse", "alpha", "mean", "scale", "center")
        return replace(self, scales=self.scales.take(runs), **{name: getattr(self, name)[runs] for name in names})

    def predict(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations (b, m) at points (b, m, d)."""
        step = max(1, BLOCK // max(1, self.X.shape[0] * self.X.shape[1]))
        pieces = [self._predict(piece) for piece in torch.split(points, step, dim=1)]
        mean, std = (torch.cat(part, dim=1) for part in zip(*pieces, strict=True))
        return mean, std

    def _predict(self, points: Tensor) -> tuple[Tensor, Tensor]:
        cross = covariance(self.kernel, points, self.X, self.scales)
        std, _ = self._std(cross @ self.inverse.mT)
        return self._value((cross @ self.alpha[..., None])[..., 0]), std * self.scale[:, None]

    def predict_with_grad(self, points: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The same, and their gradients (b, m, d)."""
        lengths = self.scales.length_scales[:, None, :]
        A, Z = points / lengths, self.X / lengths
        cross, slope = KERNELS[self.kernel](squared_distances(A, Z))
        factor = self.scales.output_scale[:, None, None]
        cross, slope = cross.mul_(factor), slope.mul_(factor)
        mean = (cross @ self.alpha[..., None])[..., 0]
        whitened = cross @ self.inverse.mT
        std, free = self._std(whitened)
        by_mean = slope * self.alpha[:, None, :]
        by_variance = slope.mul_(whitened @ self.inverse)
        dmean, dhalf = (self._pull(A, Z, weights) / lengths for weights in (by_mean, by_variance))
        scale = self.scale[:, None]
        dstd = dhalf * (-(free * scale) / std)[..., None]
        return self._value(mean), std * scale, dmean * scale[..., None], dstd

    def _pull(self, A: Tensor, Z: Tensor, weights: Tensor) -> Tensor:
        return 2.0 * (A * weights.sum(-1, keepdim=True) - weights @ Z)

    def _value(self, standardized: Tensor) -> Tensor:
        return (self.mean[:, None] + standardized) * self.scale[:, None] + self.center[:, None]

    def _std(self, whitened: Tensor) -> tuple[Tensor, Tensor]:
        prior = self.scales.output_scale[:, None]
        variance = prior - whitened.square().sum(-1)
        floor = VARIANCE_FLOOR * prior
        return torch.maximum(variance, floor).sqrt(), variance > floor
