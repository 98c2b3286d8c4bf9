"""What Ax hands to the acquisition functions of this package: BoTorch's input constructors.

Ax knows one model with an output per metric, the data it was fitted to, and the objective as a weighted sum of metrics.
Out of these come the model of the objective, that of the cost, and numbers of order one (see `pbgi.integrations.ax`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.models.model import Model
from botorch.utils.datasets import SupervisedDataset
from torch import Tensor

from pbgi.botorch.cost import CostModel
from pbgi.checks import require_positive
from pbgi.errors import InvalidInputError

Datasets: TypeAlias = SupervisedDataset | Mapping[Any, SupervisedDataset] | Iterable[SupervisedDataset]

# How close to 0 and 1 mean and standard deviation must be to tell values that Ax has standardized.
STANDARDIZED = 1e-6


class Outcomes(NamedTuple):
    """What the model of all metrics and its data say of the objective, in the user's units.

    Attributes:
        model: Of the metrics that are part of the objective, in this order.
        weights: Of each: the objective, which is maximized, is their weighted sum.
        values: `(n,)` of the objective.
    """

    model: Model
    weights: Tensor
    values: Tensor

    def standardized(self) -> tuple[ScalarizedPosteriorTransform, float, float]:
        """The objective in units of order one, and the mean and standard deviation that make it so."""
        center = self.values.mean().item()
        scale = self.values.std().item() if len(self.values) > 1 else 0.0
        scale = scale if scale > 0 else 1.0
        return ScalarizedPosteriorTransform(self.weights / scale, offset=-center / scale), center, scale


def gittins_inputs(
    model: Model,
    training_data: Datasets,
    cost_scale: float,
    cost_metric: str | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    constraints: object = None,
    ref_point: object = None,
) -> dict[str, Any]:
    """Arguments of `PandorasBoxGittinsIndex`, from what Ax has.

    The index comes in standard deviations of the objective from its mean; the larger the better.

    Args:
        model: One output per metric, in the units of the data, the cost's being that of its logarithm.
        training_data: What it was fitted to.
        cost_scale: How much of the objective one unit of cost is worth, in the units of the data.
        cost_metric: Which metric is the log cost. None: all points cost 1.
        posterior_transform: The objective, to be maximized, as a weighted sum of metrics.
        X_pending: Points of running trials. They count as data, at the values expected of them.
        constraints: Refused.
        ref_point: Refused.

    Raises:
        InvalidInputError: The problem has outcome constraints or several objectives, or Ax has standardized the data.
    """
    outcomes = _objective(model, training_data, posterior_transform, constraints, ref_point)
    transform, _, scale = outcomes.standardized()
    return {
        "model": with_pending(outcomes.model, X_pending),
        "cost_scale": require_positive("cost_scale", cost_scale) / scale,
        "cost_model": cost_model_of(model, training_data, cost_metric),
        "posterior_transform": transform,
    }


def improvement_per_cost_inputs(
    model: Model,
    training_data: Datasets,
    cost_metric: str | None = None,
    exponent: float = 1.0,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    constraints: object = None,
    ref_point: object = None,
) -> dict[str, Any]:
    """Arguments of `LogExpectedImprovementPerCost`, from what Ax has; see `gittins_inputs`."""
    outcomes = _objective(model, training_data, posterior_transform, constraints, ref_point)
    transform, center, scale = outcomes.standardized()
    return {
        "model": with_pending(outcomes.model, X_pending),
        "best_f": (outcomes.values.max().item() - center) / scale,
        "cost_model": cost_model_of(model, training_data, cost_metric),
        "exponent": exponent,
        "posterior_transform": transform,
    }


def outcomes_of(model: Model, training_data: Datasets, weights: Mapping[str, float] | Tensor) -> Outcomes:
    """The objective's part of a model of all metrics.

    Args:
        model: One output per metric.
        training_data: What it was fitted to, in the order of the outputs.
        weights: Of the metrics in the objective, which is maximized: by name, or one per output.

    Raises:
        InvalidInputError: The outputs are not the metrics of the data, or the data are standardized.
    """
    columns = _columns(training_data)
    if isinstance(weights, Mapping):
        weights = torch.tensor([weights.get(name, 0.0) for name in columns], dtype=torch.float64)
    if not len(columns) == len(weights) == model.num_outputs:
        raise InvalidInputError(
            f"the model must have one output per metric ({', '.join(columns)}); got {model.num_outputs}; "
            "make the generator by pbgi.integrations.ax.generator_spec, which keeps Ax from leaving outputs away"
        )
    chosen = [row for row, weight in enumerate(weights) if weight != 0]
    parts = [column for row, column in enumerate(columns.values()) if row in chosen]
    if any(not torch.equal(part.X, parts[0].X) for part in parts[1:]):
        raise InvalidInputError("the metrics of the objective must be reported together; a trial lacks one of them")
    values = torch.stack([part.values for part in parts], dim=-1)
    _refuse_standardized(values)
    used = weights[chosen].to(values)
    part_of_model = model if len(columns) == 1 else model.subset_output(chosen)
    return Outcomes(part_of_model, used, values @ used)


def cost_model_of(model: Model, training_data: Datasets, cost_metric: str | None) -> CostModel:
    """The model of the log cost, or None if there is no such metric.

    Raises:
        InvalidInputError: The metric is not one of the data.
    """
    if cost_metric is None:
        return None
    names = list(_columns(training_data))
    if cost_metric not in names:
        raise InvalidInputError(
            f"cost_metric must be a metric that trials report ({', '.join(names)}); got {cost_metric!r}"
        )
    return model.subset_output([names.index(cost_metric)])


def with_pending(model: Model, X: Tensor | None) -> Model:
    """The model as if points had been evaluated and had turned out as expected, which takes variance away."""
    if X is None or not len(X):
        return model
    with torch.no_grad():
        posterior: Any = model.posterior(X)
        believing: Model = model.condition_on_observations(X, posterior.mean)
    return believing


class _Column(NamedTuple):
    X: Tensor  # (n, d)
    values: Tensor  # (n,)


def _columns(training_data: Datasets) -> dict[str, _Column]:
    """The data metric by metric, in the order of the model's outputs."""
    if isinstance(training_data, SupervisedDataset):
        training_data = [training_data]
    datasets = training_data.values() if isinstance(training_data, Mapping) else training_data
    return {
        name: _Column(dataset.X, dataset.Y[..., column])
        for dataset in datasets
        for column, name in enumerate(dataset.outcome_names)
    }


def _objective(
    model: Model, training_data: Datasets, transform: PosteriorTransform | None, constraints: object, ref_point: object
) -> Outcomes:
    if constraints is not None:
        raise InvalidInputError("outcome constraints are not supported; make them part of the objective, as a penalty")
    if ref_point is not None:
        raise InvalidInputError("several objectives are not supported; make one of them, as a weighted sum")
    if transform is None:
        return outcomes_of(model, training_data, torch.ones(1, dtype=torch.float64))
    if not isinstance(transform, ScalarizedPosteriorTransform):
        raise InvalidInputError(f"the objective must be a weighted sum of metrics; got a {type(transform).__name__}")
    weights: Any = transform.weights
    return outcomes_of(model, training_data, weights)


def _refuse_standardized(values: Tensor) -> None:
    if len(values) < 2:
        return
    std, mean = torch.std_mean(values, dim=0)
    if bool(((mean.abs() < STANDARDIZED) & ((std - 1).abs() < STANDARDIZED)).any()):
        raise InvalidInputError(
            "cost_scale is in your units, so the data must be, too; got values with mean 0 and standard deviation 1, "
            "as Ax's StandardizeY makes them; make the generator by pbgi.integrations.ax.generator_spec"
        )
