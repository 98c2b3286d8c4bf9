"""What the engine believes of values and costs, as functions that torch can differentiate."""

from typing import Any

import torch
from torch import Tensor

from pbgi.botorch.bridge import Surrogate, as_tensor
from pbgi.cost import CostModel


class Belief:
    """Mean and covariance of a surrogate's function at points that are looked at together, with gradients in them.

    The same as the model's posterior, in a fraction of the time: one product with the inverse Cholesky factor, and
    only those covariances that are asked for.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        training = surrogate.training
        self._kernel = surrogate.model.covar_module
        self._X, self._inverse = as_tensor(training.X), as_tensor(training.inverse)
        residual = training.values - training.mean
        self._alpha = as_tensor(training.inverse.T @ (training.inverse @ residual))
        self._mean = training.mean
        self.noise = training.noise
        self.prior_variance = float(self._kernel.outputscale)

    def mean_and_explained(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `(*batch, q)` at X `(*batch, q, d)`, and E `(*batch, q, N)` with covariance k(X, X') - E E'."""
        cross = self.prior(X, self._X)
        return self._mean + cross @ self._alpha, cross @ self._inverse.T

    def prior(self, X: Tensor, other: Tensor) -> Tensor:
        """Covariance before any data, `(*batch, q, m)`."""
        covariance: Tensor = self._kernel(X, other).to_dense()
        return covariance


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
