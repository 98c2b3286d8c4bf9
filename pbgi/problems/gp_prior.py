"""Functions drawn from a Gaussian process prior: the paper's Bayesian regret experiments.

A draw is a sum of 1024 random waves (`pbgi.gp.kernel.PriorDraw`), with covariance exactly that of the kernel, amplitude
one, and a seed that fixes it. Its highest value is not known in closed form: it is searched for once per draw and
process, with the paper's effort, so that regrets can be compared with its figures. That is not always enough: at d = 8
and length scale 0.1, three times the points and four times the climbs found values 0.2 to 0.7 higher for five draws of
six. Whoever computes a regret should take `max(problem.optimum, best value seen)`, as the paper does.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from pbgi.arrays import Floats
from pbgi.checks import require_positive
from pbgi.gp.kernel import CrossCovariance, PriorDraw, kernel_named, row_blocks
from pbgi.problems.problem import Problem
from pbgi.problems.unit_cube import PricedFunction, checked_seed, chosen, mean_cost, unit_cube
from pbgi.search.climb import maximize_batch

N_FEATURES = 1024  # Appendix D
# The search for the highest value, per dimension: points looked at, and those of them climbed from.
N_POINTS, N_CLIMBS = 1024, 20
# Second number of the seed of draws. An optimizer seeds with (seed, number of trials): its streams are others.
PRIOR_STREAM = 2**32 - 1
# Budget per dimension by length scale: evaluations where costs are uniform, by smoothness; and where costs vary.
UNIFORM_MATERN = {0.1: 25.0, 0.5: 15.0, 1.0: 10.0}
UNIFORM_SQUARED_EXPONENTIAL = {0.1: 20.0, 0.5: 10.0, 1.0: 5.0}
VARYING = {0.1: 50.0, 0.5: 40.0, 1.0: 25.0}
VARYING_FROM_32 = {0.1: 25.0, 0.5: 25.0, 1.0: 25.0}


@dataclass(frozen=True)
class GPDraw:
    """One function on the unit cube; equal settings are equal functions.

    Attributes:
        dimension: Number of inputs.
        seed: Which of the functions.
        kernel: "matern32", "matern52" or "rbf" (squared exponential).
        length_scale: Of every input.
    """

    dimension: int
    seed: int
    kernel: str
    length_scale: float

    def __call__(self, x: Floats) -> float:
        """The value at x (d,)."""
        return float(waves(self)(x[None])[0])


def gp_draw(
    dimension: int,
    *,
    seed: int,
    kernel: str = "matern52",
    length_scale: float = 0.1,
    cost: str = "uniform",
    find_optimum: bool = True,
) -> Problem:
    """A function drawn from a Gaussian process prior of mean zero and variance one, to be maximized.

    Args:
        dimension: Number of parameters; the paper has 4, 8, 16 and 32.
        seed: Which function. In the paper the seed of the run.
        kernel: "matern32", "matern52" or "rbf" (squared exponential).
        length_scale: Of every input; the paper has 0.1, 0.5 and 1. Others get the budget of the nearest of these.
        cost: "uniform", or "varying": 1 + 20 mean(x), known to the optimizer.
        find_optimum: Whether to search for the highest value, which takes seconds in many dimensions; else the
            problem's `optimum` is None.
    """
    space = unit_cube(dimension)
    known, price = mean_cost(cost)
    kernel_named(kernel)
    length_scale = require_positive("length_scale", length_scale)
    draw = GPDraw(space.dimension, checked_seed(seed), kernel, length_scale)
    return Problem(
        name=f"GP sample ({kernel}, length scale {length_scale:g})",
        space=space,
        evaluate=PricedFunction(space, draw, price),
        direction="maximize",
        cost=known,
        budget=_budget_per_dimension(draw, cost) * dimension,
        optimum=highest_value(draw) if find_optimum else None,
    )


@lru_cache(maxsize=256)
def waves(draw: GPDraw) -> PriorDraw:
    """The function as a sum of waves, with gradients."""
    d = draw.dimension
    # A covariance knows its design; the draw takes from it all but that.
    anywhere, numbers = np.zeros((1, d)), np.zeros(d, dtype=np.bool_)
    length_scales = np.full(d, draw.length_scale)
    covariance = CrossCovariance(kernel_named(draw.kernel), anywhere, numbers, length_scales, 1.0)
    return PriorDraw(np.random.default_rng([draw.seed, PRIOR_STREAM]), covariance, N_FEATURES)


@lru_cache(maxsize=256)
def highest_value(draw: GPDraw) -> float:
    """The highest value found from 1024 d random points and climbs from the best 20 d of them."""
    d, function = draw.dimension, waves(draw)
    X = np.random.default_rng([draw.seed, PRIOR_STREAM, d]).random((N_POINTS * d, d))
    with threadpool_limits(limits=1):  # the same bits whatever the machine, and many small products
        values = np.concatenate([function(X[rows]) for rows in row_blocks(len(X), N_FEATURES)])
        starts = X[np.argsort(-values, kind="stable")[: N_CLIMBS * d]]
        _, tops = maximize_batch(function.value_and_gradient, starts, scale=1.0)
    return float(tops.max())


def _budget_per_dimension(draw: GPDraw, cost: str) -> float:
    smooth = math.isinf(kernel_named(draw.kernel).freedom)
    uniform = UNIFORM_SQUARED_EXPONENTIAL if smooth else UNIFORM_MATERN
    varying = VARYING_FROM_32 if draw.dimension >= 32 else VARYING
    table = chosen("cost", cost, {"uniform": uniform, "varying": varying})
    return table[min(table, key=lambda known: abs(math.log(known / draw.length_scale)))]
