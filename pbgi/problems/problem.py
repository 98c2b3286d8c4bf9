"""What a test problem is: a space, an objective that says what it cost, and what is known of both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pbgi.cost import Cost
from pbgi.model import ModelKind
from pbgi.space import Space


class Outcome(NamedTuple):
    """Value and cost of one evaluation; `minimize` takes it as it is."""

    value: float
    cost: float


@dataclass(frozen=True)
class Problem:
    """A problem to optimize, made by one of the functions of `pbgi.problems`.

    Attributes:
        name: As the paper writes it.
        space: Where points lie.
        evaluate: Parameters to `Outcome`; the same parameters give the same outcome.
        direction: "minimize" or "maximize".
        cost: What an optimizer may be told of the cost: `UniformCost()`, `KnownCost(...)` or `LearnedCost()`.
        budget: What the paper spends on it.
        optimum: The best value there is, if it is known.
        unit: How much of the paper's plotted quantity one unit of the value is: Rosenbrock is divided by 1e5 before
            it is optimized, and plotted in its own units.
        model: What an optimizer is told of the values, where the paper has a model for this problem alone.
    """

    name: str
    space: Space
    evaluate: Callable[[Mapping[str, Any]], Outcome]
    direction: str
    cost: Cost
    budget: float
    optimum: float | None = None
    unit: float = 1.0
    model: ModelKind | None = None
