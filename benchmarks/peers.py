"""Optimizers of other packages, and ours, behind one small interface: ask for parameters, tell a value and a cost.

Every one of them minimizes, with the settings that its package gives by default; what had to be decided is said at its
class. A package is imported when its optimizer is made, so that those that are missing are missed by nobody else.
Points that were not asked for may be told too: that is how an optimizer gets a past.
"""

import random
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pbgi


@dataclass(frozen=True)
class Task:
    """What an optimizer is told at the beginning.

    Attributes:
        space: Names to parameters.
        budget: What may be spent.
        n_trials: How many trials of average cost that is: for optimizers that count trials.
        seed: Of all randomness.
    """

    space: Mapping[str, Any]
    budget: float
    n_trials: int
    seed: int


class Peer(ABC):
    """An optimizer that is asked and told, one trial at a time."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @abstractmethod
    def ask(self) -> dict[str, Any] | None:
        """Parameters to try next; None to stop."""

    @abstractmethod
    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:
        """What the parameters gave: those asked for last, or any others if none are being waited for."""

    def remember(self, trials: Sequence[tuple[Mapping[str, Any], float, float]]) -> None:
        """Parameters, values and costs from elsewhere."""
        for params, value, cost in trials:
            self.tell(params, value, cost)


class RandomPeer(Peer):
    """Uniform over the coordinates of the space: logarithmic where a parameter says so."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._space, self._rng = pbgi.Space(task.space), np.random.default_rng(task.seed)

    def ask(self) -> dict[str, Any] | None:
        """A random point."""
        return self._space.from_unit(self._rng.random(self._space.dimension))

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:
        """Makes no difference."""


class PbgiPeer(Peer):
    """The default: decaying Gittins index, cost learned, nothing started that is not expected to fit."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._optimizer = pbgi.Optimizer(task.space, budget=task.budget, seed=task.seed)
        self._trial: Any = None

    def ask(self) -> dict[str, Any] | None:
        """The next trial, if one fits."""
        if self._optimizer.should_stop() is not None:
            return None
        self._trial = self._optimizer.ask()
        return dict(self._trial.params)

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:
        """Value and cost."""
        trial, self._trial = self._trial, None
        self._optimizer.tell(dict(params) if trial is None else trial, value, cost=cost)


class OptunaPeer(Peer):
    """A study with one of Optuna's samplers; it has no use for costs."""

    sampler = "TPESampler"

    def __init__(self, task: Task) -> None:
        import optuna

        super().__init__(task)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._make_trial = optuna.trial.create_trial
        self._space = {name: self._distribution(p) for name, p in task.space.items()}
        self._study = optuna.create_study(sampler=getattr(optuna.samplers, self.sampler)(seed=task.seed))
        self._trial: Any = None

    @staticmethod
    def _distribution(parameter: Any) -> Any:
        from optuna import distributions

        if isinstance(parameter, pbgi.Categorical):
            return distributions.CategoricalDistribution(list(parameter.choices))
        floats = isinstance(parameter, pbgi.Float)
        kind = distributions.FloatDistribution if floats else distributions.IntDistribution
        return kind(parameter.low, parameter.high, log=parameter.log)

    def ask(self) -> dict[str, Any] | None:
        """The sampler's next trial."""
        self._trial = self._study.ask(self._space)
        return dict(self._trial.params)

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:  # noqa: ARG002
        """The value."""
        trial, self._trial = self._trial, None
        if trial is not None:
            self._study.tell(trial, value)
        else:
            self._study.add_trial(self._make_trial(params=dict(params), distributions=self._space, value=value))


class OptunaGPPeer(OptunaPeer):
    """Optuna's Gaussian process."""

    sampler = "GPSampler"


class AxPeer(Peer):
    """Ax's `Client` with the generation strategy it chooses by itself; it has no use for costs."""

    def __init__(self, task: Task) -> None:
        import logging

        from ax.api.client import Client

        super().__init__(task)
        logging.getLogger("ax").setLevel(logging.ERROR)
        self._client = Client(random_seed=task.seed)
        self._client.configure_experiment(parameters=[self._parameter(*item) for item in task.space.items()])
        self._client.configure_optimization(objective="-value")
        self._index: int | None = None

    @staticmethod
    def _parameter(name: str, parameter: Any) -> Any:
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        if isinstance(parameter, pbgi.Categorical):
            choices: list[Any] = list(parameter.choices)
            return ChoiceParameterConfig(name=name, parameter_type="str", values=choices, is_ordered=False)
        return RangeParameterConfig(
            name=name,
            parameter_type="float" if isinstance(parameter, pbgi.Float) else "int",
            bounds=(parameter.low, parameter.high),
            scaling="log" if parameter.log else "linear",
        )

    def ask(self) -> dict[str, Any] | None:
        """The next trial of the experiment."""
        ((self._index, params),) = self._client.get_next_trials(max_trials=1).items()
        return dict(params)

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:  # noqa: ARG002
        """The value."""
        index, self._index = self._index, None
        if index is None:
            index = self._client.attach_trial(parameters=dict(params))
        self._client.complete_trial(index, raw_data={"value": value})


class SmacPeer(Peer):
    """SMAC's facade for the kind of space: Gaussian process where all is continuous, random forest where it is not.

    Told that values are exact, and no costs: no facade uses the acquisition function that would take them.
    """

    def __init__(self, task: Task) -> None:
        from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario

        super().__init__(task)
        continuous = all(isinstance(p, pbgi.Float) for p in task.space.values())
        self._facade = BlackBoxFacade if continuous else HyperparameterOptimizationFacade
        self._configspace = self._space_of(task)
        self._folder = tempfile.TemporaryDirectory()  # it writes down every trial
        self._scenario = Scenario(
            self._configspace,
            deterministic=True,
            n_trials=task.n_trials,
            seed=task.seed,
            output_directory=self._folder.name,
        )
        self._smac = self._make(None)
        self._info: Any = None

    def _make(self, initial_design: Any) -> Any:
        return self._facade(
            self._scenario,
            target_function=lambda config, seed: 0.0,  # noqa: ARG005 (never called)
            initial_design=initial_design,
            logging_level=False,
            overwrite=True,
        )

    @staticmethod
    def _space_of(task: Task) -> Any:
        from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

        space = ConfigurationSpace(seed=task.seed)
        for name, p in task.space.items():
            if isinstance(p, pbgi.Categorical):
                space.add(Categorical(name, list(p.choices)))
            else:
                space.add((Float if isinstance(p, pbgi.Float) else Integer)(name, (p.low, p.high), log=p.log))
        return space

    def ask(self) -> dict[str, Any] | None:
        """The next trial; plain types, since choices come as NumPy strings."""
        self._info = self._smac.ask()
        return plain(self._info.config)

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:  # noqa: ARG002
        """The value, which SMAC calls cost."""
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo, TrialValue

        info, self._info = self._info, None
        if info is None:
            info = TrialInfo(Configuration(self._configspace, values=dict(params)), seed=self.task.seed)
        self._smac.tell(info, TrialValue(cost=value))

    def remember(self, trials: Sequence[tuple[Mapping[str, Any], float, float]]) -> None:
        """With no initial design: it would go through its own first, whatever it is told."""
        self._smac = self._make(self._facade.get_initial_design(self._scenario, n_configs=0))
        super().remember(trials)


class SkoptPeer(Peer):
    """scikit-optimize's `Optimizer`: a Gaussian process and a hedge of three acquisition functions."""

    acquisition = "gp_hedge"

    def __init__(self, task: Task) -> None:
        from skopt import Optimizer

        super().__init__(task)
        dimensions = [self._dimension(*item) for item in task.space.items()]
        self._optimizer = Optimizer(dimensions, acq_func=self.acquisition, random_state=task.seed)

    @staticmethod
    def _dimension(name: str, parameter: Any) -> Any:
        from skopt.space import Categorical, Integer, Real

        if isinstance(parameter, pbgi.Categorical):
            return Categorical(list(parameter.choices), name=name)
        kind = Real if isinstance(parameter, pbgi.Float) else Integer
        return kind(parameter.low, parameter.high, prior="log-uniform" if parameter.log else "uniform", name=name)

    def ask(self) -> dict[str, Any] | None:
        """The point that the last `tell` found."""
        return plain(dict(zip(self.task.space, self._optimizer.ask(), strict=True)))

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:
        """The value, with the cost where the acquisition function is per second."""
        self._optimizer.tell(list(params.values()), self._outcome(value, cost))

    def remember(self, trials: Sequence[tuple[Mapping[str, Any], float, float]]) -> None:
        """All at once: one by one, each would be fitted."""
        points = [list(params.values()) for params, _, _ in trials]
        self._optimizer.tell(points, [self._outcome(value, cost) for _, value, cost in trials])

    def _outcome(self, value: float, cost: float) -> Any:
        return (value, cost) if self.acquisition.endswith("ps") else value


class SkoptPerSecondPeer(SkoptPeer):
    """The same with expected improvement per second, the cost being the seconds."""

    acquisition = "EIps"


class NepsPeer(Peer):
    """NePS's Bayesian optimization by its ask-and-tell wrapper.

    It takes no seed and draws from the global generators, so these are seeded: the process is its own.
    """

    cost_aware = False

    def __init__(self, task: Task) -> None:
        import neps
        import torch
        from neps.optimizers.algorithms import bayesian_optimization

        super().__init__(task)
        random.seed(task.seed)
        np.random.seed(task.seed)  # noqa: NPY002 (the one it draws from)
        torch.manual_seed(task.seed)
        parameters = {name: self._parameter(p) for name, p in task.space.items()}
        space = type("PeerSpace", (neps.PipelineSpace,), parameters)()
        self._peer = neps.AskAndTell(bayesian_optimization(space, cost_aware=self.cost_aware))
        self._trial: Any = None
        self._spent = 0.0

    @staticmethod
    def _parameter(parameter: Any) -> Any:
        import neps

        if isinstance(parameter, pbgi.Categorical):
            return neps.Categorical(tuple(parameter.choices))
        kind = neps.Float if isinstance(parameter, pbgi.Float) else neps.Integer
        return kind(parameter.low, parameter.high, log=parameter.log)

    def ask(self) -> dict[str, Any] | None:
        """The next trial, given how much of the budget is gone."""
        from neps.state.optimizer import BudgetInfo

        budget = BudgetInfo(worker_cost_to_spend=self.task.budget, used_cost_budget=self._spent)
        self._trial = self._peer.ask(budget_info=budget)
        return {name: self._trial.config[name] for name in self.task.space}

    def tell(self, params: Mapping[str, Any], value: float, cost: float) -> None:
        """Value and cost."""
        trial, self._trial = self._trial, None
        result = {"objective_to_minimize": value, "cost": cost}
        if trial is None:
            self._peer.tell_custom(config_id=str(len(self._peer.trials) + 1), config=dict(params), result=result)
        else:
            self._spent += cost
            self._peer.tell(trial, result)


class NepsCostPeer(NepsPeer):
    """The same with `cost_aware=True`: improvement per cost, the power of the cost falling as the budget is used."""

    cost_aware = True


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Builtins instead of NumPy scalars."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in dict(params).items()}


@dataclass(frozen=True)
class Entry:
    """A contestant: its class, what it is called in tables, and the distribution and module that it needs."""

    make: type[Peer]
    title: str
    distribution: str
    module: str


PEERS = {
    "pbgi": Entry(PbgiPeer, "pbgi", "pbgi", "pbgi"),
    "random": Entry(RandomPeer, "random search", "pbgi", "pbgi"),
    "optuna-tpe": Entry(OptunaPeer, "Optuna, TPE", "optuna", "optuna"),
    "optuna-gp": Entry(OptunaGPPeer, "Optuna, GP", "optuna", "torch"),
    "ax": Entry(AxPeer, "Ax", "ax-platform", "ax"),
    "smac": Entry(SmacPeer, "SMAC3", "smac", "smac"),
    "skopt": Entry(SkoptPeer, "scikit-optimize", "scikit-optimize", "skopt"),
    "skopt-eips": Entry(SkoptPerSecondPeer, "scikit-optimize, EIps", "scikit-optimize", "skopt"),
    "neps": Entry(NepsPeer, "NePS", "neural-pipeline-search", "neps"),
    "neps-cost": Entry(NepsCostPeer, "NePS, cost-aware", "neural-pipeline-search", "neps"),
}
