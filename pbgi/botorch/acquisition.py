"""Cost-aware acquisition functions for BoTorch: the Gittins index, and log expected improvement per cost.

Both are analytic (one point at a time, Gaussian posterior) and made of the same three numbers per point: mean and
standard deviation of the objective, in its original units, and a moment of the cost. What a cost may be described by is
in `pbgi.botorch.cost`. Derivatives come from closed forms (`pbgi.index`), of any order.
"""

import math
from typing import NamedTuple

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble, t_batch_mode_transform
from torch import Tensor

from pbgi.botorch.cost import CostModel, log_moment, require_cost_model
from pbgi.botorch.posterior import log_mean_exp, mean_and_variance
from pbgi.checks import unboxed
from pbgi.errors import InvalidInputError
from pbgi.index import gittins_index, log_h


class Beliefs(NamedTuple):
    """What is believed of points: `(*batch)` each, and `(*batch, s)` for an ensemble of s models."""

    mean: Tensor  # of the objective, or of its negative if that is maximized
    std: Tensor
    log_moment: Tensor  # of the cost


class CostAwareAcquisitionFunction(AnalyticAcquisitionFunction):
    """What the acquisition functions of this module share: a model, a cost and a direction.

    Args:
        model: A fitted model with one output and a Gaussian posterior.
        cost_model: What a point costs; see `pbgi.botorch.cost`.
        posterior_transform: Makes one output of several.
        maximize: Whether large values of the objective are good.
    """

    def __init__(
        self,
        model: Model,
        cost_model: CostModel,
        posterior_transform: PosteriorTransform | None,
        maximize: bool,
    ) -> None:
        super().__init__(model=model, posterior_transform=posterior_transform)
        if not isinstance(maximize, bool):
            raise InvalidInputError(f"maximize must be True or False; got {maximize!r}")
        self.cost_model = require_cost_model(cost_model)
        self.maximize = maximize

    def beliefs(self, X: Tensor, power: float) -> Beliefs:
        """Mean and standard deviation of the objective, signed so that larger is better, and log E[c^power].

        Args:
            X: `(*batch, 1, d)` Points.
            power: Of the cost.
        """
        mean, variance = mean_and_variance(self.model, X, self.posterior_transform)
        # A variance of zero would have a slope without bound. So small a floor counts in no units of the objective,
        # and its inverse can still be squared.
        std = variance.clamp_min(torch.finfo(variance.dtype).tiny ** 0.5).sqrt()
        moment = log_moment(self.cost_model, X, power).to(mean.dtype)
        return Beliefs(mean if self.maximize else -mean, std, self._like_members(moment))

    def _like_members(self, x: Tensor) -> Tensor:
        """Ready to meet what each member of an ensemble believes."""
        return x.unsqueeze(-1) if is_ensemble(self.model) else x


class PandorasBoxGittinsIndex(CostAwareAcquisitionFunction):
    """The Gittins index of a point: the sure value that would be worth as much as the right to pay for a look at it.

    It is the g that solves E max(f(x) - g, 0) = cost_scale * E[c(x)], in the units of the objective. The next point to
    evaluate is the one with the highest index, and once no index exceeds the best value seen, none is worth its price
    (`gittins_stopping`). Requires q = 1. An ensemble (a fully Bayesian model) has the average of its members' indices.

    Args:
        model: A fitted model with one output and a Gaussian posterior.
        cost_scale: How much of the objective one unit of cost is worth: a positive number, or a tensor of them that
            broadcasts with the batch shape.
        cost_model: None (all points cost 1), a function of points `(*batch, d)` that returns costs `(*batch)`, a
            `DeterministicModel` of the cost, or, which any other `Model` is taken for, a model of the log cost.
        posterior_transform: Makes one output of several.
        maximize: Whether large values of the objective are good. If not, the acquisition value is minus the index
            of the minimization problem: larger is better here in both cases.

    Raises:
        InvalidInputError: An argument breaks its rule; from `forward`, a cost that is not positive and finite.

    Example:
        >>> acquisition = PandorasBoxGittinsIndex(model, cost_scale=1e-3, cost_model=lambda X: 1 + X.sum(-1))
        >>> candidate, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=256)
    """

    cost_scale: Tensor

    def __init__(
        self,
        model: Model,
        cost_scale: float | Tensor,
        cost_model: CostModel = None,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        super().__init__(model, cost_model, posterior_transform, maximize)
        scale = as_buffer("cost_scale", cost_scale)
        if not bool((scale > 0).all()):
            raise InvalidInputError(
                f"cost_scale must be positive; got {cost_scale!r}; a tiny one says that cost hardly counts"
            )
        self.register_buffer("cost_scale", scale)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]  # BoTorch's type asks for every acquisition function
    def forward(self, X: Tensor) -> Tensor:
        """The index, `(*batch)`, of points `(*batch, 1, d)`."""
        mean, std, log_cost = self.beliefs(X, 1.0)
        index: Tensor = gittins_index(mean, std, log_cost + self._like_members(self.cost_scale.log().to(std)))
        return index.mean(dim=-1) if is_ensemble(self.model) else index


class LogExpectedImprovementPerCost(CostAwareAcquisitionFunction):
    """Log expected improvement per cost: log EI(x) + log E[c(x)^-exponent].

    With `exponent=1` this is LogEIPC; with an exponent that falls from 1 to 0 as the budget is used up, cost cooling;
    with 0, log expected improvement. Requires q = 1. For an ensemble, EI is averaged over its members.

    Args:
        model: A fitted model with one output and a Gaussian posterior.
        best_f: The best value seen so far: a finite number, or a tensor of them that broadcasts with the batch shape.
        cost_model: None (all points cost 1), a function of points `(*batch, d)` that returns costs `(*batch)`, a
            `DeterministicModel` of the cost, or, which any other `Model` is taken for, a model of the log cost.
        exponent: How much cost counts; finite, not negative.
        posterior_transform: Makes one output of several.
        maximize: Whether large values of the objective are good.

    Raises:
        InvalidInputError: An argument breaks its rule; from `forward`, a cost that is not positive and finite.
    """

    best_f: Tensor

    def __init__(
        self,
        model: Model,
        best_f: float | Tensor,
        cost_model: CostModel,
        exponent: float = 1.0,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        super().__init__(model, cost_model, posterior_transform, maximize)
        power = unboxed(exponent)
        if isinstance(power, bool) or not isinstance(power, int | float) or not 0 <= power < math.inf:
            raise InvalidInputError(f"exponent must be a finite number, not negative; got {exponent!r}")
        self.exponent = float(power)
        self.register_buffer("best_f", as_buffer("best_f", best_f))

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]  # BoTorch's type asks for every acquisition function
    def forward(self, X: Tensor) -> Tensor:
        """Its value, `(*batch)`, at points `(*batch, 1, d)`."""
        mean, std, log_per_cost = self.beliefs(X, -self.exponent)
        best = self._like_members(self.best_f.to(std))
        z = (mean - (best if self.maximize else -best)) / std
        value: Tensor = log_h(z) + std.log() + log_per_cost
        return log_mean_exp(value) if is_ensemble(self.model) else value


def as_buffer(name: str, value: float | Tensor) -> Tensor:
    """A finite number, or a tensor of them, as a tensor that keeps the digits it came with."""
    number = unboxed(value)
    if isinstance(value, Tensor):
        tensor = value if value.is_floating_point() else value.to(torch.float64)
    elif isinstance(number, int | float) and not isinstance(number, bool):
        tensor = torch.tensor(number, dtype=torch.float64)
    else:
        raise InvalidInputError(f"{name} must be a number or a tensor; got {value!r}")
    if not bool(tensor.isfinite().all()):
        raise InvalidInputError(f"{name} must be finite; got {value!r}")
    return tensor
