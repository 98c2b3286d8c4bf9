"""Two problems on a line, one on which expected improvement per cost fails and one on which expected improvement does.

After Astudillo et al. (2021), as the paper has them (Figure 2, and its twin in Appendix A). Around z = 0 a narrow bump
is a hundred times as dear as elsewhere. Where it is hard for EI per cost, functions vary a hundred times as much there,
and what could be found is worth the price; points elsewhere are cheap, and worth nothing. Where it is hard for EI,
they vary hardly more there than elsewhere, and the price is wasted.

The prior is not stationary, and the policies are told so: each problem brings its model. The published curves were
made with a model whose standard deviation is the square root of the amplitude that functions are drawn with, and that
matters. Told the prior itself, expected improvement per cost goes to the bump after a few points: both places promise
the same per cost at first, and the cheap one soon promises less. A run begins with one point, `START`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize
from threadpoolctl import threadpool_limits

from pbgi.arrays import Floats
from pbgi.cost import KnownCost
from pbgi.gp.kernel import PriorDraw, row_blocks
from pbgi.parameter import Float
from pbgi.problems.modulated_gp import N_FEATURES, Bump, ModulatedGP, stationary_draw
from pbgi.problems.problem import Outcome, Problem
from pbgi.problems.unit_cube import checked_seed, chosen
from pbgi.space import Space

LOW, HIGH = -500.0, 500.0
SPACE = Space({"z": Float(LOW, HIGH)})
START = {"z": LOW}
BUDGET = 40.0
# The bump falls to a hundredth of its height at z = -1 and z = 1: exp(-1 / (2 w^2)) = 0.01.
WIDTH = 1.0 / math.sqrt(2.0 * math.log(100.0))
COST = Bump(0.1, 9.9, WIDTH)
HARD_FOR_EIPC = Bump(0.01, 0.99, WIDTH)
HARD_FOR_EI = Bump(0.81, 0.19, WIDTH)
# Variance of the noise that the model assumes: a hundredth of the least variance of values, which is 0.01 in the
# published model of `hard_for_eipc` and 1e-4 in its prior. With 1e-4 there too, half of a value would count as noise.
PUBLISHED_NOISE, PRIOR_NOISE = 1e-4, 1e-6
# Second number of the seed of draws. An optimizer seeds with (seed, number of trials): its streams are others.
DRAW_STREAM = 2**32 - 2
# The search for the highest value: a grid twice as fine as the length scale, and climbs from the best of it.
GRID_STEP, N_CLIMBS = 0.05, 200


def hard_for_eipc(*, seed: int, model: str = "published") -> Problem:
    """A function on a line whose only good values are in an expensive region; to be maximized.

    Args:
        seed: Of the function, which is drawn from the prior; in the paper the seed of the run.
        model: What the problem says of values: "published", or "prior", from which they are drawn.
    """
    return _problem("hard_for_eipc", HARD_FOR_EIPC, seed, model)


def hard_for_ei(*, seed: int, model: str = "published") -> Problem:
    """A function on a line with an expensive region that is hardly better than the rest; to be maximized.

    Args:
        seed: Of the function, which is drawn from the prior; in the paper the seed of the run.
        model: What the problem says of values: "published", or "prior", from which they are drawn.
    """
    return _problem("hard_for_ei", HARD_FOR_EI, seed, model)


def _problem(name: str, amplitude: Bump, seed: int, model: str) -> Problem:
    prior = ModulatedGP(amplitude, LOW, HIGH, noise=PRIOR_NOISE)
    published = replace(prior, amplitude=replace(amplitude, exponent=0.5), noise=PUBLISHED_NOISE)
    draw = ModulatedDraw(prior, checked_seed(seed))
    return Problem(
        name=name,
        space=SPACE,
        evaluate=draw,
        direction="maximize",
        cost=KnownCost(price, vectorized=True),
        budget=BUDGET,
        optimum=highest_value(draw),
        model=chosen("model", model, {"published": published, "prior": prior}),
    )


def price(params: Mapping[str, Any]) -> Any:
    """The price of a place, or of many if z is an array: 0.1, and as much as 10 around zero."""
    return COST(params["z"])


@dataclass(frozen=True)
class ModulatedDraw:
    """A function drawn from the prior; equal settings are equal functions.

    Attributes:
        prior: What it is drawn from; the mean is zero.
        seed: Which of the functions.
    """

    prior: ModulatedGP
    seed: int

    def __call__(self, params: Mapping[str, Any]) -> Outcome:
        """The value and the cost at a place."""
        checked = SPACE.check(params)
        return Outcome(float(self.values(np.array([checked["z"]]))[0]), float(price(checked)))

    def values(self, z: Floats) -> Floats:
        """Values (m,) at the places z (m,)."""
        return np.asarray(self.prior.amplitude(z) * _stationary_part(self)(z[:, None]))


@lru_cache(maxsize=256)
def _stationary_part(draw: ModulatedDraw) -> PriorDraw:
    rng = np.random.default_rng([draw.seed, DRAW_STREAM])
    return stationary_draw(rng, draw.prior.kernel, draw.prior.length_scale)


@lru_cache(maxsize=256)
def highest_value(draw: ModulatedDraw) -> float:
    """The highest value, from a fine grid over the whole line and climbs from the best points of it."""
    prior = draw.prior
    z = np.linspace(prior.low, prior.high, round((prior.high - prior.low) / GRID_STEP) + 1)
    with threadpool_limits(limits=1):  # the same bits whatever the machine
        values = np.concatenate([draw.values(z[rows]) for rows in row_blocks(len(z), N_FEATURES)])
        best = z[np.argsort(-values, kind="stable")[:N_CLIMBS]]
        tops = [_climb(draw, place) for place in best]
    return max(float(values.max()), *tops)


def _climb(draw: ModulatedDraw, place: float) -> float:
    """The highest value within a step of the grid."""
    bounds = max(place - GRID_STEP, draw.prior.low), min(place + GRID_STEP, draw.prior.high)
    found = optimize.minimize_scalar(
        lambda z: -draw.values(np.array([z]))[0], bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    return -float(found.fun)
