"""When to stop a BoTorch loop: once no point of a pool is worth its price.

A point is worth its price as long as its Gittins index exceeds the best value seen. The pool should hold what the inner
search found now and in earlier steps, neighbors of the best point and points spread over the space: a maximum that the
search missed looks like a reason to stop. Ask for the signal several times in a row before believing it.
"""

import math
from dataclasses import dataclass

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from pbgi.botorch.acquisition import LogExpectedImprovementPerCost, PandorasBoxGittinsIndex
from pbgi.botorch.cost import CostModel, log_moment
from pbgi.checks import require_positive, unboxed
from pbgi.errors import InvalidInputError


@dataclass(frozen=True)
class StopSignal:
    """Whether to stop, and why.

    Attributes:
        stop: Whether no point of the pool is worth its price: no index beats the best value.
        index: The best index in the pool, in the units of the objective.
        best_value: What it was compared with.
        predicted_cost: The expected cost of the point with that index.
        net_gain: What evaluating this point is expected to gain, less cost_scale times its expected cost.
        row: Which row of the pool it is.
    """

    stop: bool
    index: float
    best_value: float
    predicted_cost: float
    net_gain: float
    row: int

    def __str__(self) -> str:
        verdict = "stop: no point is worth its price" if self.stop else "go on: a point is worth its price"
        return (
            f"{verdict}; row {self.row} has the best index, {self.index:g}, against the best value, "
            f"{self.best_value:g}; it would cost {self.predicted_cost:g} and gain {self.net_gain:g} net"
        )


@torch.no_grad()
def gittins_stopping(
    model: Model,
    pool: Tensor,
    best_f: float | Tensor,
    cost_scale: float | Tensor,
    cost_model: CostModel = None,
    posterior_transform: PosteriorTransform | None = None,
    maximize: bool = True,
) -> StopSignal:
    """Whether no point of the pool is worth its price.

    With an ensemble the index is the average over its members, as in `PandorasBoxGittinsIndex`, while `net_gain` is
    that of the mixture; only there can the two disagree.

    Args:
        model: A model fitted to all values seen, the newest included, with one output and a Gaussian posterior.
        pool: `(m, d)` Points that could be evaluated next.
        best_f: The best value seen so far.
        cost_scale: How much of the objective one unit of cost is worth.
        cost_model: What a point costs; see `PandorasBoxGittinsIndex`.
        posterior_transform: Makes one output of several.
        maximize: Whether large values of the objective are good.

    Raises:
        InvalidInputError: An argument breaks its rule, or a cost is not positive and finite.
    """
    if not isinstance(pool, Tensor) or pool.ndim != 2 or len(pool) == 0:
        got = f"shape {tuple(pool.shape)}" if isinstance(pool, Tensor) else repr(pool)
        raise InvalidInputError(f"pool must be a tensor (m, d) of at least one point; got {got}")
    scale, best = require_positive("cost_scale", _number(cost_scale)), _finite("best_f", _number(best_f))
    index = PandorasBoxGittinsIndex(model, scale, cost_model, posterior_transform, maximize)(pool.unsqueeze(-2))
    row = int(index.argmax())
    x = pool[row].reshape(1, 1, -1)
    log_improvement = LogExpectedImprovementPerCost(model, best, None, 0.0, posterior_transform, maximize)(x)
    cost = log_moment(cost_model, x, 1.0).exp().item()
    sign = 1.0 if maximize else -1.0
    best_index = sign * float(index[row])
    return StopSignal(
        stop=sign * best_index <= sign * best,
        index=best_index,
        best_value=best,
        predicted_cost=cost,
        net_gain=math.exp(log_improvement.item()) - scale * cost,
        row=row,
    )


def _number(value: float | Tensor) -> object:
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else unboxed(value)


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInputError(f"{name} must be one finite number; got {value!r}")
    return float(value)
