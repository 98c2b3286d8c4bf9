"""Ax: the Gittins index as the acquisition function of a generation strategy, with a cost that Ax learns from a metric.

    client.configure_optimization("-loss")
    client.configure_tracking_metrics(["seconds"])
    client.set_generation_strategy(generation_strategy(cost_scale=1e-4, cost_metric="seconds"))

Units are the point of this module. Ax standardizes what it learns from (`StandardizeY`), and an acquisition function
is never told by how much, so a `cost_scale` passed to it directly would mean something else after every trial.
`generator_spec` leaves that transform out and lets BoTorch's model standardize on its own, which knows the way back.
The input constructors (`ax_inputs`) then see values in the user's units. They hand the acquisition function both the
values and `cost_scale` divided by the standard deviation of the objective: the same index in units of order one, so
that the tolerances of BoTorch's search suit objectives of any size.

A learned cost is a tracking metric that trials report. `LogCost` takes its logarithm before a model is fitted, and
`pbgi.botorch` takes the model for what it then is, one of the log cost.

Importing this module changes nothing in Ax or BoTorch; `register` does, and the functions here call it.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pbgi.errors import InvalidInputError, MissingPackageError

try:
    import ax  # noqa: F401 (is it there?)
except ImportError as error:
    raise MissingPackageError("pbgi.integrations.ax needs Ax: pip install ax-platform") from error

from ax.adapter.data_utils import ExperimentData
from ax.adapter.registry import Generators, MBM_X_trans
from ax.adapter.torch import TorchAdapter
from ax.adapter.transforms.log_y import LogY
from ax.adapter.transforms.winsorize import Winsorize
from ax.core.observation import ObservationFeatures
from ax.core.trial_status import TrialStatus
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig
from ax.storage.botorch_modular_registry import register_acquisition_function
from ax.storage.transform_registry import register_transform
from ax.utils.common.random import with_rng_seed
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.transforms.outcome import Standardize
from torch import Tensor

from pbgi.botorch.acquisition import (
    CostAwareAcquisitionFunction,
    LogExpectedImprovementPerCost,
    PandorasBoxGittinsIndex,
)
from pbgi.botorch.cost import CostModel
from pbgi.botorch.stopping import StopSignal, gittins_stopping
from pbgi.checks import require_count, require_positive
from pbgi.integrations.ax_inputs import (
    Outcomes,
    cost_model_of,
    gittins_inputs,
    improvement_per_cost_inputs,
    outcomes_of,
)

__all__ = ["generation_strategy", "generator_spec", "register", "stop_signal"]

STARTUP_NODE, SEARCH_NODE = "Startup", "PBGI"


@cache
def register() -> None:
    """Tell BoTorch how Ax makes the acquisition functions of this package, and Ax how to save and load them.

    A program that loads what another one saved calls this before it loads. Calling it again does nothing.
    """
    acqf_input_constructor(PandorasBoxGittinsIndex)(gittins_inputs)
    acqf_input_constructor(LogExpectedImprovementPerCost)(improvement_per_cost_inputs)
    register_acquisition_function(PandorasBoxGittinsIndex)
    register_acquisition_function(LogExpectedImprovementPerCost)
    register_transform(LogCost)


def generation_strategy(
    *, cost_scale: float, cost_metric: str | None = None, n_startup_trials: int = 5, seed: int | None = None
) -> GenerationStrategy:
    """A generation strategy for `Client.set_generation_strategy`: quasi-random points, then the Gittins index.

    Args:
        cost_scale: How much of the objective one unit of cost is worth, both in the units that trials report. With a
            budget instead of an exchange rate, about 1e-4 of the range of the objective.
        cost_metric: The tracking metric that holds what a trial cost, from which the cost is learned. None: all points
            cost 1.
        n_startup_trials: Trials before the first model. Trials that were attached count.
        seed: For the quasi-random points. The search for the best index draws from torch's generator, which
            `Client(random_seed=...)` seeds.

    Raises:
        InvalidInputError: An argument breaks its rule.
    """
    startup = _startup_node(require_count("n_startup_trials", n_startup_trials), seed)
    options = {"cost_scale": require_positive("cost_scale", cost_scale)}
    search = GenerationNode(
        name=SEARCH_NODE,
        generator_specs=[generator_spec(PandorasBoxGittinsIndex, options, cost_metric=cost_metric)],
        should_deduplicate=True,
    )
    return GenerationStrategy(name=f"{STARTUP_NODE}+{SEARCH_NODE}", nodes=[startup, search])


def _startup_node(n_trials: int, seed: int | None) -> GenerationNode:
    """Quasi-random points until enough trials have been started and half of them have reported."""
    failed = [TrialStatus.FAILED, TrialStatus.ABANDONED]
    return GenerationNode(
        name=STARTUP_NODE,
        generator_specs=[GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": seed})],
        transition_criteria=[
            MinTrials(n_trials, SEARCH_NODE, not_in_statuses=failed, use_all_trials_in_exp=True),
            MinTrials(
                (n_trials + 1) // 2,
                SEARCH_NODE,
                only_in_statuses=[TrialStatus.COMPLETED],
                use_all_trials_in_exp=True,
                count_only_trials_with_data=True,
            ),
        ],
        should_deduplicate=True,
    )


def generator_spec(
    botorch_acqf_class: type[CostAwareAcquisitionFunction],
    botorch_acqf_options: Mapping[str, float],
    *,
    cost_metric: str | None = None,
) -> GeneratorSpec:
    """What a `GenerationNode` of your own needs to use an acquisition function of this package in your units.

    Args:
        botorch_acqf_class: `PandorasBoxGittinsIndex` or `LogExpectedImprovementPerCost`.
        botorch_acqf_options: `{"cost_scale": ...}` for the one, `{"exponent": ...}` for the other.
        cost_metric: The tracking metric that holds what a trial cost. None: all points cost 1.

    Raises:
        InvalidInputError: The cost metric is not a name.
    """
    register()
    options: dict[str, Any] = dict(botorch_acqf_options)
    if cost_metric is not None:
        if not isinstance(cost_metric, str) or not cost_metric:
            raise InvalidInputError(f"cost_metric must be the name of a metric, or None; got {cost_metric!r}")
        options["cost_metric"] = cost_metric
    # By default BoTorch leaves values alone that vary by less than 1e-8.
    model = ModelConfig(
        outcome_transform_classes=[Standardize], outcome_transform_options={"Standardize": {"min_stdv": 1e-100}}
    )
    kwargs: dict[str, Any] = {
        "botorch_acqf_class": botorch_acqf_class,
        "botorch_acqf_options": options,
        "acquisition_options": {"subset_model": False},  # the cost is an output of the model, not of the objective
        "surrogate_spec": SurrogateSpec(model_configs=[model], allow_batched_models=False),
        "transforms": [*MBM_X_trans, Winsorize, *([] if cost_metric is None else [LogCost])],
    }
    if cost_metric is not None:
        kwargs["transform_configs"] = {LogCost.__name__: {"metrics": [cost_metric]}}
    return GeneratorSpec(generator_enum=Generators.BOTORCH_MODULAR, generator_kwargs=kwargs)


class LogCost(LogY):
    """Ax's logarithm of a metric, for costs: what is missing or not positive is refused in plain words."""

    def transform_experiment_data(self, experiment_data: ExperimentData) -> ExperimentData:
        """The same data with the logarithm of the cost.

        Raises:
            InvalidInputError: No trial has reported a cost, or one is not positive and finite.
        """
        means = experiment_data.observation_data["mean"]
        for metric in self.metric_signatures:
            costs = means[metric].dropna() if metric in means else []
            if not len(costs):
                raise InvalidInputError(
                    f"the cost is learned from metric {metric!r}, which no trial has reported; "
                    f"complete trials with raw_data={{..., {metric!r}: cost}}"
                )
            wrong = [cost for cost in costs if not 0 < cost < float("inf")]
            if wrong:
                raise InvalidInputError(f"costs must be positive and finite; metric {metric!r} has {wrong[0]}")
        transformed: ExperimentData = super().transform_experiment_data(experiment_data)
        return transformed


def stop_signal(strategy: GenerationStrategy, *, n_points: int = 256, seed: int = 0) -> StopSignal | None:
    """Whether no point is worth its price any more, by the strategy's model of all data so far.

    Looks at quasi-random points of the search space and at the best one that the search finds. Ask for the signal
    several times in a row before believing it: a maximum that the search misses looks like a reason to stop.

    Args:
        strategy: One made by `generation_strategy` that has been handed to a client. The model that is fitted here is
            the one that the next trial comes from, unless there is news until then.
        n_points: How many points to look at.
        seed: For these points.

    Returns:
        The signal, in the units of the objective (of the weighted sum, if that is one), or None as long as there is no
        model.

    Raises:
        InvalidInputError: The strategy uses another acquisition function, or the experiment has no objective.
    """
    experiment = strategy.experiment
    config = experiment.optimization_config
    if config is None:
        raise InvalidInputError("the experiment must have an objective; call client.configure_optimization first")
    with with_rng_seed(seed):
        adapter = strategy.fit(experiment)
        if not isinstance(adapter, TorchAdapter) or not isinstance(adapter.generator, BoTorchGenerator):
            return None
        options = _gittins_options(strategy)
        arms = [*adapter.gen(n=1).arms, *Generators.SOBOL(experiment, seed=seed).gen(n=n_points).arms]
    pool = adapter.transform_observation_features([ObservationFeatures(arm.parameters) for arm in arms])
    data = adapter.generator.surrogate.training_data
    outcomes = outcomes_of(adapter.botorch_model, data, dict(config.objective.metric_weights))
    cost = cost_model_of(adapter.botorch_model, data, options.get("cost_metric"))
    return _signal(outcomes, pool, options["cost_scale"], cost)


def _gittins_options(strategy: GenerationStrategy) -> dict[str, Any]:
    kwargs = strategy.current_node.generator_spec_to_gen_from.generator_kwargs
    if kwargs.get("botorch_acqf_class") is not PandorasBoxGittinsIndex:
        raise InvalidInputError(
            f"the current node must use PandorasBoxGittinsIndex; got {kwargs.get('botorch_acqf_class')!r}; "
            "pass what generation_strategy returns"
        )
    options: dict[str, Any] = kwargs["botorch_acqf_options"]
    return options


def _signal(outcomes: Outcomes, pool: Tensor, cost_scale: float, cost: CostModel) -> StopSignal:
    """Asked in units of order one, told in those of the metric if that is all the objective is, else of the sum."""
    transform, center, scale = outcomes.standardized()
    best = outcomes.values.max().item()
    signal = gittins_stopping(
        outcomes.model, pool, (best - center) / scale, cost_scale / scale, cost, posterior_transform=transform
    )
    sign = -1.0 if outcomes.weights.tolist() == [-1.0] else 1.0
    return replace(
        signal,
        index=sign * (center + scale * signal.index),
        best_value=sign * best,
        net_gain=scale * signal.net_gain,
    )
