"""One run, from its specification to its record.

The start is a function of the seed alone, so that all policies share it. It is told as observations from elsewhere:
it informs the models and is not charged. Then a point is evaluated as long as anything of the budget is left; the last
one may cost more than that. The Gittins stop is not used: the paper spends its budgets.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import pbgi.problems
from paper.described import multiplied, norm_priced
from paper.specification import DefaultModel, FittedModel, ProblemSpec, Run, Specification, TrueModel
from paper.starts import published_start
from pbgi.cost import Cost, LearnedCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.model import ModelKind
from pbgi.notes import COST_SCALE
from pbgi.optimizer import Optimizer
from pbgi.policy import RandomSearch
from pbgi.problems import Problem
from pbgi.stopping import BudgetSpent

NOISE = 1e-4  # of the true prior, as of the fitted one (the paper's code)


@dataclass
class _Evaluations:
    """What was evaluated, in order."""

    problem: Problem
    values: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def __call__(self, params: Mapping[str, Any]) -> tuple[float, float]:
        value, cost = self.problem.evaluate(params)
        if not (math.isfinite(value) and math.isfinite(cost)):
            raise InvalidInputError(f"values and costs must be finite; got {value!r}, {cost!r} at {dict(params)!r}")
        self.values.append(float(value))
        self.costs.append(float(cost))
        return self.values[-1], self.costs[-1]


def execute(run: Run) -> dict[str, Any]:
    """The record of a run."""
    begin = time.perf_counter()
    spec = run.specification
    with threadpool_limits(limits=1):  # small products: more threads make them slower, and results depend on them
        problem = build_problem(spec.problem)
        evaluations = _Evaluations(problem)
        n_start, suggest_seconds, lowered = _optimize(spec, problem, evaluations)
    return {
        "key": run.key,
        "experiment": spec.experiment,
        **run.labels,
        "engine": "numpy",
        "seed": spec.seed,
        "budget": problem.budget,
        "n_start": n_start,
        "values": evaluations.values,
        "costs": evaluations.costs,
        "optimum": problem.optimum,
        "unit": problem.unit,
        "direction": problem.direction,
        "lowered": lowered,
        "suggest_seconds": suggest_seconds,
        "wall_seconds": time.perf_counter() - begin,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _optimize(spec: Specification, problem: Problem, evaluate: _Evaluations) -> tuple[int, list[float], list[int]]:
    """Spend the budget; the size of the start, processor seconds of suggestions, and which of them lowered a rate."""
    start = start_points(spec, problem)
    optimizer = Optimizer(
        problem.space,
        direction=problem.direction,
        cost=assumed_cost(spec, problem),
        budget=problem.budget,
        policy=spec.policy,
        stop=BudgetSpent(overshoot=True),
        model=build_model(spec, problem),
        n_startup_trials=len(start),
        seed=spec.seed,
    )
    for params in start:
        value, cost = evaluate(params)
        optimizer.tell(params, value, cost=cost)
    seconds: list[float] = []
    most = math.inf if spec.n_evaluations is None else spec.n_evaluations
    while len(seconds) < most:
        begin = time.process_time()
        if optimizer.should_stop() is not None:
            break
        trial = optimizer.ask()
        seconds.append(time.process_time() - begin)
        value, cost = evaluate(trial.params)
        optimizer.tell(trial, value, cost=cost)
    return len(start), seconds, _lowered([COST_SCALE.of(trial) for trial in optimizer.trials[len(start) :]])


def _lowered(rates: Sequence[float | None]) -> list[int]:
    """Trials (0, 1, ...) after which the next one had a lower rate."""
    pairs = enumerate(pairwise(rates))
    return [k for k, (rate, following) in pairs if rate is not None and following is not None and following < rate]


def assumed_cost(spec: Specification, problem: Problem) -> Cost:
    """What the optimizer is told of the cost.

    One to be learned is learned as the paper does, the logarithm by the model that it has for values; or as the package
    does, if the model is the package's too.
    """
    if isinstance(problem.cost, LearnedCost) and not isinstance(spec.model, DefaultModel):
        return replace(problem.cost, model=GPConfig.paper(), trend=False)
    return problem.cost


def start_points(spec: Specification, problem: Problem) -> list[dict[str, Any]]:
    """The start: 2 (d + 1) points by the seed, the published ones, or those that are given."""
    d = problem.space.dimension
    if spec.start is not None:
        return problem.space.from_unit_many(np.array(spec.start).reshape(-1, d))
    n = 2 * (d + 1) if spec.n_start is None else spec.n_start
    return problem.space.from_unit_many(published_start(spec.seed, n, d))


def build_problem(spec: ProblemSpec) -> Problem:
    """The problem that is meant."""
    if spec.function not in pbgi.problems.__all__ or not spec.function.islower():
        raise InvalidInputError(f"function must be a problem of pbgi.problems; got {spec.function!r}")
    problem: Problem = getattr(pbgi.problems, spec.function)(**dict(spec.arguments))
    problem = norm_priced(problem) if spec.price == "norm" else problem
    return problem if spec.factor == 1.0 else multiplied(problem, spec.factor)


def build_model(spec: Specification, problem: Problem) -> GPConfig | ModelKind:
    """What the optimizer is given as its model."""
    d = problem.space.dimension
    if isinstance(spec.policy, RandomSearch):  # looks at no model: the cheapest there is gives the same points
        return GPConfig(hyperparameters=Hyperparameters((1.0,) * d, 1.0, 1.0))
    if isinstance(spec.model, FittedModel):
        return replace(
            GPConfig.paper(), kernel=spec.model.kernel, outputs="standardized" if spec.model.standardize else "plain"
        )
    if isinstance(spec.model, TrueModel):
        true = Hyperparameters((spec.model.length_scale,) * d, 1.0, NOISE)
        return GPConfig(kernel=spec.model.kernel, hyperparameters=true, outputs="plain")
    if isinstance(spec.model, DefaultModel):
        return GPConfig()
    if problem.model is None:
        raise InvalidInputError(f"a run with OwnModel() needs a problem that brings a model; got {problem.name}")
    return problem.model
