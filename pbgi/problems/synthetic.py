"""Ackley, Levy and Rosenbrock, as the paper uses them (Appendix D).

The parameters are coordinates of the unit cube, stretched to the domain of the function inside `evaluate`. Values are
maximized, so the functions come negated, and Levy and Rosenbrock divided by 100 and 1e5: the index compares values with
`cost_scale` times a cost, so the size of values matters. (The paper's text multiplies; its figures were made with
functions divided.) Regret times `Problem.unit` is in the units of the function itself, as in the paper's figures.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError
from pbgi.problems.problem import Problem
from pbgi.problems.unit_cube import PricedFunction, chosen, mean_cost, unit_cube

# Evaluations per dimension where costs are uniform, budget per dimension where they vary (the paper's Section 5).
BUDGET_PER_DIMENSION = {"uniform": 10.0, "varying": 25.0}


def ackley_value(z: Floats) -> float:
    """Ackley's function at z (d,): many local minima around the global one, which is 0 at the origin.

    Each of its two terms is written as a difference from its value at the origin, so that none is ever negative.
    """
    valley = -20.0 * np.expm1(-0.2 * np.sqrt(np.mean(z**2)))
    ripples = -math.e * np.expm1(-2.0 * np.mean(np.sin(np.pi * z) ** 2))  # cos(2a) - 1 = -2 sin(a)^2
    return float(valley + ripples)


def levy_value(z: Floats) -> float:
    """Levy's function at z (d,): waves across a bowl, least (0) where all coordinates are 1."""
    w = 1.0 + (z - 1.0) / 4.0
    head = np.sin(np.pi * w[0]) ** 2
    body = np.sum((w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w[:-1] + 1.0) ** 2))
    tail = (w[-1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w[-1]) ** 2)
    return float(head + body + tail)


def rosenbrock_value(z: Floats) -> float:
    """Rosenbrock's function at z (d,), d at least 2: a curved valley, least (0) where all coordinates are 1."""
    return float(np.sum(100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (z[:-1] - 1.0) ** 2))


@dataclass(frozen=True)
class StretchedFunction:
    """Minus a function of the cube [low, high]^d, divided by `unit`, on the unit cube."""

    function: Callable[[Floats], float]
    low: float
    high: float
    unit: float

    def __call__(self, x: Floats) -> float:
        """The value to be maximized at x (d,) of the unit cube."""
        return -self.function(self.low + (self.high - self.low) * x) / self.unit


def ackley(dimension: int, *, cost: str = "uniform") -> Problem:
    """Ackley's function on [-1, 1]^d.

    Args:
        dimension: Number of parameters; the paper has 4, 8 and 16.
        cost: "uniform", or "varying": 1 + 20 mean(x), known to the optimizer.
    """
    return _problem("Ackley", StretchedFunction(ackley_value, -1.0, 1.0, 1.0), dimension, cost)


def levy(dimension: int, *, cost: str = "uniform") -> Problem:
    """Levy's function on [-10, 10]^d, divided by 100.

    Args:
        dimension: Number of parameters; the paper has 4, 8 and 16.
        cost: "uniform", or "varying": 1 + 20 mean(x), known to the optimizer.
    """
    return _problem("Levy", StretchedFunction(levy_value, -10.0, 10.0, 100.0), dimension, cost)


def rosenbrock(dimension: int, *, cost: str = "uniform") -> Problem:
    """Rosenbrock's function on [-5, 10]^d, divided by 1e5.

    Args:
        dimension: Number of parameters, at least 2; the paper has 4, 8 and 16.
        cost: "uniform", or "varying": 1 + 20 mean(x), known to the optimizer.
    """
    if dimension == 1:
        raise InvalidInputError(f"dimension of Rosenbrock's function must be at least 2; got {dimension}")
    return _problem("Rosenbrock", StretchedFunction(rosenbrock_value, -5.0, 10.0, 1e5), dimension, cost)


def _problem(name: str, function: StretchedFunction, dimension: int, cost: str) -> Problem:
    space = unit_cube(dimension)
    known, price = mean_cost(cost)
    return Problem(
        name=name,
        space=space,
        evaluate=PricedFunction(space, function, price),
        direction="maximize",
        cost=known,
        budget=chosen("cost", cost, BUDGET_PER_DIMENSION) * dimension,
        optimum=0.0,
        unit=function.unit,
    )
