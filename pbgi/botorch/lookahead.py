"""Multi-step lookahead expected improvement: the improvements that this point and the next few promise together.

The tree of the paper has one branch: every value is imagined to be what is expected of it. Conditioning on such a value
leaves the mean of the process as it is and takes variance away. So a path x_0, ..., x_k of points is worth

    sum_i EI(mean(x_i), std(x_i | x_0, ..., x_{i-1}); max(best, mean(x_0), ..., mean(x_{i-1})))

and needs one joint posterior of its points instead of a chain of conditioned models. The value is that of BoTorch's
tree; the slope is complete, where BoTorch's misses part of what a point does to later ones. The budgeted form weighs
each improvement with the probability that the path can be paid for up to there.
"""

import math

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from pbgi.botorch.belief import Belief, log_moment
from pbgi.botorch.bridge import Surrogate
from pbgi.cost import CostModel
from pbgi.gp.predictor import VARIANCE_FLOOR

# A known cost fits or does not. Climbs need a slope: it is taken to be uncertain by this share of itself.
LEAST_LOG_COST_STD = 1e-3
SMALLEST = 1e-300
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class PathImprovement(AcquisitionFunction):
    """What a path of points is expected to improve on the best value, each value being imagined as expected.

    Args:
        surrogate: What is believed.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        super().__init__(model=surrogate.model)
        self._belief, self._best_value = Belief(surrogate), surrogate.best_value

    @t_batch_mode_transform()  # type: ignore[arg-type]  # BoTorch's type asks for every acquisition function
    def forward(self, X: Tensor) -> Tensor:
        """Its value `(*batch)` for paths X `(*batch, q, d)`."""
        mean, explained = self._belief.mean_and_explained(X)
        covariance = self._belief.prior(X, X) - explained @ explained.transpose(-1, -2)
        std = self._std_along(covariance)
        before = torch.cat([torch.full_like(mean[..., :1], self._best_value), mean[..., :-1]], dim=-1)
        z = (mean - before.cummax(dim=-1).values) / std
        density = torch.exp(-0.5 * z.square() - LOG_SQRT_2PI)
        improvement = std * (density + z * torch.special.ndtr(z))
        value: Tensor = (improvement.clamp_min(0.0) * self._weight(X)).sum(dim=-1)
        return value

    def _std_along(self, covariance: Tensor) -> Tensor:
        """Standard deviations `(*batch, q)`, each given noisy values at the points before."""
        stds: list[Tensor] = []
        for i in range(covariance.shape[-1]):
            variance = covariance[..., i, i].clamp_min(VARIANCE_FLOOR * self._belief.prior_variance)
            stds.append(variance.sqrt())
            column = covariance[..., :, i]
            explained = column.unsqueeze(-1) * column.unsqueeze(-2)
            covariance = covariance - explained / (variance + self._belief.noise)[..., None, None]
        return torch.stack(stds, dim=-1)

    def _weight(self, X: Tensor) -> Tensor:
        return torch.ones_like(X[..., 0])


class BudgetedPathImprovement(PathImprovement):
    """The same, each improvement times the probability that its point still fits the window.

    A cost that was imagined is the exponential of its expected logarithm; what remains uncertain is the cost of the
    point itself.

    Args:
        surrogate: What is believed of values.
        cost: What is believed of costs.
        window: What the path may cost.
    """

    def __init__(self, surrogate: Surrogate, cost: CostModel, window: float) -> None:
        super().__init__(surrogate)
        self._cost, self._window = cost, window

    def _weight(self, X: Tensor) -> Tensor:
        # Of a log-normal cost, log E[c] = m + v/2 and log E[1/c] = -m + v/2.
        of_cost, of_inverse = (log_moment(self._cost, X, power) for power in (1.0, -1.0))
        log_cost = 0.5 * (of_cost - of_inverse)
        log_std = (of_cost + of_inverse).clamp_min(LEAST_LOG_COST_STD**2).sqrt()
        cost = log_cost.exp()
        left = self._window - (cost.cumsum(dim=-1) - cost)
        fitting = torch.special.ndtr((left.clamp_min(SMALLEST).log() - log_cost) / log_std)
        return torch.where(left > 0.0, fitting, torch.zeros_like(fitting))
