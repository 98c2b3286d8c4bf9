"""Lunar Lander: twelve weights of a landing controller, scored by the mean reward of fifty flights.

The lander is gymnasium's. Version 2 of it, which the paper used, and version 3, which there is now, fly alike here.
Version 3 makes a new world for every flight, as the paper did by hand; it leaves out the exhaust, which touches nothing
but the ground; its other changes are to wind, which does not blow here, and to bounds that nobody checks. A flight
is a function of the weights and its seed, and so an evaluation one of the weights.

An evaluation takes as long as its flights: a fifth of a second for weights that crash, several seconds for weights that
hover until time is up. More than half of it is Box2D's; the rest was halved by two stand-ins that change no result, one
for the check of actions (`_AnyAction`) and one for the noise of the engines (`_NoiseInBlocks`).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pbgi.checks import require_count
from pbgi.cost import Cost, LearnedCost, UniformCost
from pbgi.parameter import Float
from pbgi.problems.box2d import import_with_box2d
from pbgi.problems.problem import Outcome, Problem
from pbgi.problems.unit_cube import chosen
from pbgi.space import Space

N_WEIGHTS = 12
N_FLIGHTS = 50
MAX_STEPS = 5000
# The paper counts time as if sixteen flights were flown side by side.
N_SIDE_BY_SIDE = 16
SPACE = Space({f"w{i}": Float(0.0, 1.0) for i in range(N_WEIGHTS)})
# What the paper spends, and what an optimizer may know of the cost.
SETTINGS: dict[str, tuple[float, Cost]] = {"uniform": (200.0, UniformCost()), "unknown": (3200.0, LearnedCost())}
# gymnasium's actions.
NOTHING, LEFT_ENGINE, MAIN_ENGINE, RIGHT_ENGINE = range(4)
# Two random numbers a step: a block lasts a crash and a half.
NOISE_BLOCK = 256


class Step(NamedTuple):
    """One step of a flight.

    Attributes:
        state: Position (2), velocity (2), angle, angular velocity, left and right leg on the ground; after the step.
        reward: What the step was worth.
    """

    state: list[float]
    reward: float


def lunar_lander(*, cost: str = "uniform", n_flights: int = N_FLIGHTS) -> Problem:
    """The weights w0 to w11 in [0, 1] of a controller that lands; maximize the mean total reward of all flights.

    Args:
        cost: "uniform": one unit per evaluation, 200 of them. "unknown": the mean number of steps of a flight over
            16, to be learned, for a budget of 3200.
        n_flights: Flights of an evaluation, with the seeds 0, 1, ...; fewer than the paper's 50 are a quicker, rougher
            problem.

    Raises:
        ImportError: gymnasium or Box2D is not installed.
    """
    budget, known = chosen("cost", cost, SETTINGS)
    _lander_class()  # better missed now than in the middle of a run
    evaluate = partial(_evaluate, uniform=cost == "uniform", n_flights=require_count("n_flights", n_flights))
    return Problem("Lunar Lander", SPACE, evaluate, "maximize", known, budget)


def new_environment() -> Any:
    """A lander without the wrappers of `gymnasium.make`, to be used for any number of flights, one at a time."""
    environment = _lander_class()()
    environment.action_space = _AnyAction()
    return environment


def fly(environment: Any, weights: Sequence[float], seed: int) -> Iterator[Step]:
    """The steps of one flight, until the lander crashes, leaves, comes to rest, or 5000 steps are over."""
    observation, _ = environment.reset(seed=seed)
    environment.np_random = _NoiseInBlocks(environment.np_random)
    state = observation.tolist()
    for _ in range(MAX_STEPS):
        observation, reward, ended, _, _ = environment.step(action(state, weights))
        state = observation.tolist()
        yield Step(state, float(reward))
        if ended:
            return


def action(state: Sequence[float], weights: Sequence[float]) -> int:
    """What the controller does: tilt towards the pad, and keep a height that falls as the pad comes near."""
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11 = weights
    x, y, vx, vy, tilt, spin, left_leg, right_leg = state
    if left_leg or right_leg:
        turn, lift = w8, -vy * w9
    else:
        tilt_target = min(max(x * w0 + vx * w1, -w2), w2)
        turn = (tilt_target - tilt) * w4 - spin * w5
        lift = (w3 * abs(x) - y) * w6 - vy * w7
    if lift > abs(turn) and lift > w10:
        return MAIN_ENGINE
    if turn < -w11:
        return RIGHT_ENGINE
    return LEFT_ENGINE if turn > w11 else NOTHING


def _evaluate(params: Mapping[str, Any], *, uniform: bool, n_flights: int) -> Outcome:
    weights = tuple(SPACE.check(params).values())
    environment = new_environment()  # not kept between calls, which may come from several threads
    reward, n_steps = 0.0, 0
    for seed in range(n_flights):
        for step in fly(environment, weights, seed):
            reward += step.reward
            n_steps += 1
    return Outcome(reward / n_flights, 1.0 if uniform else n_steps / n_flights / N_SIDE_BY_SIDE)


def _lander_class() -> Any:
    return import_with_box2d("gymnasium.envs.box2d.lunar_lander", "Lunar Lander").LunarLander


class _AnyAction:
    """Stands in for the space of actions: `action` returns valid ones, and the check took a fifth of the time."""

    def contains(self, _: object) -> bool:
        return True


class _NoiseInBlocks:
    """Stands in for the generator of a flight: the same numbers in the same order, drawn many at a time."""

    def __init__(self, rng: Any) -> None:
        self._rng = rng
        self._block: Iterator[float] = iter(())

    def uniform(self, low: float, high: float) -> float:
        """As `numpy.random.Generator.uniform` computes it."""
        unit = next(self._block, None)
        if unit is None:
            self._block = iter(self._rng.random(NOISE_BLOCK).tolist())
            unit = next(self._block)
        return low + (high - low) * unit
