"""What the engine believes of values and costs, as functions that torch can differentiate.

A covariance is computed by the engine's kernel, value and slope in one pass, and its gradient by matrix products. Torch
would go through the operations of a kernel one by one, and back again: most of the time of a knowledge gradient.
"""

from typing import Any

import torch
from torch import Tensor

from pbgi.botorch.bridge import Surrogate, as_tensor
from pbgi.cost import CostModel
from pbgi.gp.kernel import Kernel, kernel_named


class Belief:
    """Mean and covariance of a surrogate's function at points that are looked at together, with gradients in them.

    The same as the model's posterior, in a fraction of the time: one product with the inverse Cholesky factor, and
    only those covariances that are asked for.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        training, parameters = surrogate.training, surrogate.gp.hyperparameters
        self._kernel = kernel_named(surrogate.gp.config.kernel)
        self._length_scales = as_tensor(parameters.length_scales)
        self._X, self._inverse = as_tensor(training.X), as_tensor(training.inverse)
        residual = training.values - training.mean
        self._alpha = as_tensor(training.inverse.T @ (training.inverse @ residual))
        self._mean = training.mean
        self.noise = training.noise
        self.prior_variance = float(parameters.output_scale)

    def mean_and_explained(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `(*batch, q)` at X `(*batch, q, d)`, and E `(*batch, q, N)` with covariance k(X, X') - E E'."""
        cross = self.prior(X, self._X)
        return self._mean + cross @ self._alpha, cross @ self._inverse.T

    def first_and_others(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The variance `(*batch)` of the first point; of the others mean and covariance with it, `(*batch, q - 1)`."""
        first, others = X[..., :1, :], X[..., 1:, :]
        explained = self.prior(first, self._X) @ self._inverse.T
        variance = self.prior_variance - explained.squeeze(-2).square().sum(-1)
        weights = (explained @ self._inverse).squeeze(-2)
        # One product for both, since its gradient is as large as all covariances of the others with the data.
        both = self.prior(others, self._X) @ torch.stack([self._alpha.expand_as(weights), weights], dim=-1)
        covariance = self.prior(first, others).squeeze(-2) - both[..., 1]
        return variance, self._mean + both[..., 0], covariance

    def prior(self, X: Tensor, other: Tensor) -> Tensor:
        """Covariance before any data, `(*batch, q, m)`."""
        scaled = X / self._length_scales, other / self._length_scales
        covariance: Tensor = _Covariance.apply(*scaled, self._kernel, self.prior_variance)  # type: ignore[no-untyped-call]
        return covariance


class _Covariance(torch.autograd.Function):
    """Of points `(*batch, q, d)` with others `(*batch, m, d)` or `(m, d)`, both in units of their length scales."""

    @staticmethod
    def forward(ctx: Any, Z: Tensor, others: Tensor, kernel: Kernel, variance: float) -> Tensor:
        lengths = Z.square().sum(-1, keepdim=True) + others.square().sum(-1).unsqueeze(-2)
        r2 = lengths.sub_(Z @ others.transpose(-1, -2), alpha=2.0).clamp_min_(0.0)
        value, slope = map(torch.from_numpy, kernel.value_and_slope(r2.numpy()))
        ctx.save_for_backward(Z, others, slope.mul_(2.0 * variance))
        return value.mul_(variance)

    @staticmethod
    def backward(ctx: Any, output: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        Z, others, slope = ctx.saved_tensors
        weights = output * slope
        of_points = of_others = None
        if ctx.needs_input_grad[0]:
            of_points = weights.sum(-1, keepdim=True) * Z - weights @ others
        if ctx.needs_input_grad[1]:
            turned = weights.transpose(-1, -2)
            of_others = turned.sum(-1, keepdim=True) * others - turned @ Z
            of_others = of_others.sum_to_size(others.shape)
        return of_points, of_others, None, None


def log_moment(cost: CostModel, X: Tensor, power: float) -> Tensor:
    """Logarithm of E[c^power], `(*batch)`, of the engine's cost at points `(*batch, d)`, with its gradient."""
    moment: Tensor = _LogMoment.apply(X, cost, power)  # type: ignore[no-untyped-call]
    return moment


class _LogMoment(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, cost: CostModel, power: float) -> Tensor:
        points = X.detach().reshape(-1, X.shape[-1]).numpy()
        if not ctx.needs_input_grad[0]:
            return as_tensor(cost.log_moment(points, power)).reshape(X.shape[:-1])
        moment, gradient = cost.log_moment_and_grad(points, power)
        ctx.save_for_backward(as_tensor(gradient).reshape(X.shape))
        return as_tensor(moment).reshape(X.shape[:-1])

    @staticmethod
    def backward(ctx: Any, output: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return output[..., None] * gradient, None, None
