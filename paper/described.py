"""What the paper's text says where its published figures were made otherwise: each run's twin "as described".

- PBGI-D: the text compares the index with the best value before the trial, the figures with the best after it.
- Bayesian regret with varying costs: the text fixes the model at the true prior, the figures fitted it.
- The 1-D examples: the text's model is the prior of the function, the figures took its amplitude for a variance.
- Levy and Rosenbrock: the text multiplies by 100 and 1e5, the figures were made with functions divided by them.
- Costs of synthetic problems: the text has 1 + 20 |x|_1, the figures 1 + 20 mean(x), which is less by the factor d.
  No budget is stated in the text, and the published one would buy a handful of such evaluations: the twin's budget is
  larger by the ratio of the prices of an average point. (Draws from a prior keep the published cost, so that their
  twin differs in the model alone.)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paper.policies import DescribedPBGID, SearchedFromSobol, SearchedNearBest
from paper.specification import FittedModel, ProblemSpec, Run, TrueModel
from pbgi.cost import KnownCost
from pbgi.policy import PBGID
from pbgi.problems import Outcome, Problem
from pbgi.problems.unit_cube import BASE_PRICE, MEAN_PRICE

# The text multiplies by what the published functions are divided by: the square lies between them.
FACTORS = {"ackley": 1.0, "levy": 100.0**2, "rosenbrock": 1e5**2}


def with_twins(runs: Iterator[Run]) -> Iterator[Run]:
    """Each run, followed by its twin as described if that is another one."""
    for run in runs:
        yield run
        twin = _twin(run)
        if twin is not None:
            yield twin


def _twin(run: Run) -> Run | None:
    spec = run.specification
    described = replace(spec, policy=_policy(spec.policy), model=_model(run), problem=_problem(spec.problem, run.cost))
    return None if described == spec else replace(run, specification=described, variant="as_described")


def _policy(policy: Any) -> Any:
    if isinstance(policy, SearchedFromSobol | SearchedNearBest):
        return replace(policy, policy=_policy(policy.policy))
    if isinstance(policy, PBGID) and policy.initial_cost_scale is not None:
        return DescribedPBGID(policy.initial_cost_scale, policy.decay)
    return policy


def _model(run: Run) -> Any:
    spec = run.specification
    arguments = dict(spec.problem.arguments)
    if spec.problem.function == "gp_draw" and isinstance(spec.model, FittedModel):
        return TrueModel(str(arguments["kernel"]), float(arguments["length_scale"] or 0.0))
    return spec.model


def _problem(problem: ProblemSpec, cost: str) -> ProblemSpec:
    arguments = dict(problem.arguments)
    if "model" in arguments:
        return replace(problem, arguments=tuple((arguments | {"model": "prior"}).items()))
    if problem.function not in FACTORS:
        return problem
    return replace(problem, factor=FACTORS[problem.function], price="norm" if cost == "varying" else "own")


@dataclass(frozen=True)
class Multiplied:
    """An objective times a number."""

    evaluate: Any
    factor: float

    def __call__(self, params: Mapping[str, Any]) -> Outcome:
        """The value times the factor, at the same cost."""
        value, cost = self.evaluate(params)
        return Outcome(self.factor * value, cost)


def multiplied(problem: Problem, factor: float) -> Problem:
    """The same problem with values times `factor`; what is plotted stays the same."""
    optimum = None if problem.optimum is None else factor * problem.optimum
    evaluate = Multiplied(problem.evaluate, factor)
    return replace(problem, evaluate=evaluate, optimum=optimum, unit=problem.unit / factor)


def norm_price(params: Mapping[str, Any]) -> Any:
    """The price in the paper's text: 1 + 20 |x|_1 on the unit cube."""
    return BASE_PRICE + MEAN_PRICE * sum(params.values())


@dataclass(frozen=True)
class NormPriced:
    """An objective at the price of the text."""

    evaluate: Any

    def __call__(self, params: Mapping[str, Any]) -> Outcome:
        """The same value, at another cost."""
        return Outcome(self.evaluate(params).value, float(norm_price(params)))


def norm_priced(problem: Problem) -> Problem:
    """The same problem at the price of the text, with a budget that buys as many average points."""
    average = BASE_PRICE + MEAN_PRICE / 2.0
    described = BASE_PRICE + MEAN_PRICE / 2.0 * problem.space.dimension
    return replace(
        problem,
        evaluate=NormPriced(problem.evaluate),
        cost=KnownCost(norm_price, vectorized=True),
        budget=problem.budget * described / average,
    )
