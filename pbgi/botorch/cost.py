"""What a point costs, in BoTorch's terms: log E[c(x)^power] from whatever describes the cost.

The kind of description tells what it means:

| `cost_model` | the cost |
|---|---|
| None | 1 everywhere |
| a `DeterministicModel` of BoTorch (`GenericDeterministicModel`, `AffineFidelityCostModel`, ...) | its output |
| any other `Model` of BoTorch (`SingleTaskGP`, fully Bayesian, ...) | exp of a Gaussian with its mean and variance |
| any other callable | what it returns for points `(*batch, d)`: one positive number each, `(*batch)` |

So a Gaussian process is always one of the **logarithm** of the cost, which keeps costs positive and gives every moment
in closed form: log E[c^p] = p m + p^2 v / 2.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

from botorch.models.deterministic import DeterministicModel
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble
from torch import Tensor

from pbgi.botorch.posterior import log_mean_exp, mean_and_variance
from pbgi.errors import InvalidInputError

CostModel: TypeAlias = Model | Callable[[Tensor], Tensor] | None
"""What may describe a cost; see the table at the top of this module."""


def require_cost_model(cost_model: CostModel) -> CostModel:
    """The cost model, if it is one of those in the table at the top of this module."""
    if isinstance(cost_model, Model):
        if cost_model.num_outputs != 1:
            raise InvalidInputError(
                f"a cost model must have one output; got {cost_model.num_outputs}; "
                "add costs of several kinds up first, in a function of X"
            )
    elif cost_model is not None and not callable(cost_model):
        raise InvalidInputError(
            f"cost_model must be None, a function of X, a deterministic model of the cost or a Gaussian process of the "
            f"log cost; got {cost_model!r}"
        )
    return cost_model


def log_moment(cost_model: CostModel, X: Tensor, power: float) -> Tensor:
    """Logarithm of E[c(x)^power].

    Args:
        cost_model: See the table at the top of this module. An ensemble is a mixture: moments are averaged over it.
        X: `(*batch, 1, d)` Points, as an acquisition function gets them.
        power: 1 for the expected cost, -1 for that of its inverse.

    Returns:
        `(*batch)`, or the shape this broadcasts to with the batch shape of a batched model.

    Raises:
        InvalidInputError: A cost is not positive and finite, or costs are not of the shape promised.
    """
    if cost_model is None:
        return X.new_zeros(X.shape[:-2])
    if isinstance(cost_model, Model) and not isinstance(cost_model, DeterministicModel):
        return _log_normal_moment(cost_model, X, power)
    return power * _known_cost(cost_model, X).log()


def _known_cost(cost_model: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    if isinstance(cost_model, DeterministicModel):
        cost = cost_model.posterior(X).mean.squeeze(-1).squeeze(-1)
    else:
        cost = cost_model(X.squeeze(-2))
        if not isinstance(cost, Tensor) or cost.shape != X.shape[:-2]:
            got = f"shape {tuple(cost.shape)}" if isinstance(cost, Tensor) else repr(cost)
            raise InvalidInputError(
                f"a cost function must return a tensor with one cost per point: for points of shape "
                f"{tuple(X.squeeze(-2).shape)} costs of shape {tuple(X.shape[:-2])}; got {got}"
            )
    allowed = (cost > 0) & (cost < math.inf)
    if not bool(allowed.all()):
        raise InvalidInputError(
            f"costs must be positive and finite; got {cost[~allowed][0].item()}; "
            "a Gaussian process of the log cost is passed as it is, not as a function or a deterministic model"
        )
    return cost


def _log_normal_moment(model: Model, X: Tensor, power: float) -> Tensor:
    mean, variance = mean_and_variance(model, X)
    moment = power * mean + (0.5 * power**2) * variance
    return log_mean_exp(moment) if is_ensemble(model) else moment
