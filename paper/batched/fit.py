"""The likeliest hyperparameters of many runs at once: the log posterior of `pbgi.gp.fit`, climbed from the last fit."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paper.batched.climb import climb
from paper.batched.posterior import KERNELS, Scales, inverse_factor, squared_distances
from pbgi.gp.config import GPConfig, log_bounds
from pbgi.gp.fit import DEFAULT_LENGTH_SCALE, TOLERANCE

FIRST_EVALUATIONS, MAX_EVALUATIONS = 60, 25  # from nowhere, and from the fit of all values but one


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """Log posterior densities as functions of log hyperparameters (b, m, d + 1), given as shares of their ranges."""

    config: GPConfig
    X: Tensor  # (b, n, d)
    y: Tensor  # (b, n) standardized

    def take(self, runs: Tensor) -> "LogPosterior":
        """Of these runs."""
        return LogPosterior(self.config, self.X[runs], self.y[runs])

    def value_and_grad(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """Values (b, 1) and gradients (b, 1, d + 1)."""
        low, high = bounds(self.config, self.X)
        logs = low + shares[:, 0] * (high - low)
        value, grad = self._likelihood(logs)
        prior, dprior = self._prior(logs)
        return (value + prior)[:, None], ((grad + dprior) * (high - low))[:, None]

    def _prior(self, logs: Tensor) -> tuple[Tensor, Tensor]:
        d = self.X.shape[-1]
        priors = [self.config.length_scale_prior] * d + [self.config.output_scale_prior]
        rows = torch.tensor([prior.coefficients() for prior in priors], dtype=logs.dtype, device=logs.device)
        constant, linear, rate, bend = rows.T
        decay = rate * logs.exp()
        value = (constant + linear * logs - decay - bend * logs.square()).sum(1)
        return value, linear - decay - 2.0 * bend * logs

    def _likelihood(self, logs: Tensor) -> tuple[Tensor, Tensor]:
        n, d = self.X.shape[1:]
        output, noise = logs[:, d].exp(), float(self.config.noise or 0.0)
        Z = self.X / logs[:, None, :d].exp()
        rho, slope = KERNELS[self.config.kernel](squared_distances(Z, Z))
        matrix = rho * output[:, None, None]
        matrix.diagonal(dim1=-2, dim2=-1).copy_((output + noise)[:, None])
        factor, inverse = inverse_factor(matrix)
        whitened = inverse @ torch.stack([self.y, torch.ones_like(self.y)], dim=-1)
        ones = whitened[..., 1]
        mean = (whitened[..., 0] * ones).sum(1) / ones.square().sum(1)
        rest = whitened[..., 0] - mean[:, None] * ones
        alpha = (inverse.mT @ rest[..., None])[..., 0]
        fit = rest.square().sum(1)
        log_determinant = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(1)
        value = -0.5 * (fit + log_determinant + n * math.log(2.0 * math.pi))
        by_noise = 0.5 * noise * (alpha.square().sum(1) - inverse.square().sum((1, 2)))
        by_output = 0.5 * (fit - n) - by_noise
        W = (alpha[:, :, None] * alpha[:, None, :] - inverse.mT @ inverse) * slope
        W.diagonal(dim1=-2, dim2=-1).zero_()
        by_length = -2.0 * (Z * (Z * W.sum(-1, keepdim=True) - W @ Z)).sum(1) * output[:, None]
        return value, torch.cat([by_length, by_output[:, None]], dim=1)


def bounds(config: GPConfig, X: Tensor) -> tuple[Tensor, Tensor]:
    """The least and greatest log parameters (d + 1,)."""
    low, high = torch.as_tensor(log_bounds(X.shape[-1], config).T, dtype=X.dtype, device=X.device)
    return low, high


def fitted(config: GPConfig, X: Tensor, y: Tensor, start: Scales | None) -> Scales:
    """The hyperparameters for values y (b, n), standardized, at X (b, n, d)."""
    b, _, d = X.shape
    low, high = bounds(config, X)
    if start is None:
        logs = torch.zeros((b, d + 1), dtype=X.dtype, device=X.device)
        logs[:, :d] = math.log(DEFAULT_LENGTH_SCALE)
    else:
        logs = torch.cat([start.length_scales, start.output_scale[:, None]], dim=1).log()
    shares = ((logs - low) / (high - low)).clamp(0.0, 1.0)
    one = torch.ones(b, dtype=X.dtype, device=X.device)
    posterior = LogPosterior(config, X, y)
    most = FIRST_EVALUATIONS if start is None else MAX_EVALUATIONS
    found, _ = climb(posterior, shares[:, None], scale=one, tolerance=TOLERANCE, race=False, max_iterations=most)
    scales = (low + found[:, 0] * (high - low)).exp()
    return Scales(scales[:, :d], scales[:, d], float(config.noise or 0.0))
