"""Robot Pushing: two hands push a square and a disc over a table, seen from above, towards two targets.

Each hand starts somewhere, strives for a velocity and a spin for a while, and is then left to come to rest; friction
with the table slows everything. The hands strive up and to the right (or stay) while the targets are down and to the
left, so most points move nothing the right way, and good ones use the spin.

The world is Box2D's. What a hand strives for is off by a little noise, the same in every evaluation: a problem has no
noise, and `seed` says which one it is. An evaluation takes about three milliseconds.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pbgi.cost import Cost, KnownCost, LearnedCost, UniformCost
from pbgi.parameter import Float
from pbgi.problems.box2d import import_with_box2d
from pbgi.problems.problem import Outcome, Problem
from pbgi.problems.unit_cube import checked_seed, chosen
from pbgi.space import Space

TIME_STEP = 0.01
N_ITERATIONS = 10  # of Box2D's solver, for velocities and for positions alike
STEPS_PER_DURATION = 10
STEPS_OF_REST = 100
# Where the objects start, and where they should be: the square first, then the disc.
STARTS = (0.0, 2.0), (0.0, -2.0)
TARGETS = (-4.4185, -4.3709), (-3.7641, -4.4742)
TABLE_HALF_SIDE = 500.0
SQUARE_HALF_SIDE = 0.5
DISC_RADIUS = 1.0
HAND_HALF_SIDES = 1.0, 0.3
GAIN = 30.0  # force and torque per unit of mass and of missing speed
NOISE_STD = 0.01  # of each component of the velocity that a hand strives for
LEAST_DISTANCE = 0.1  # keeps the cost of hands that do not move positive


def _hand(i: int) -> dict[str, Float]:
    names = {"x": (-5.0, 5.0), "y": (-5.0, 5.0), "vx": (0.0, 5.0), "vy": (0.0, 5.0)}
    names |= {"duration": (1.0, 30.0), "angle": (0.0, 2.0 * math.pi)}
    return {f"{name}{i}": Float(low, high) for name, (low, high) in names.items()}


SPACE = Space(_hand(1) | _hand(2) | {f"torque{i}": Float(0.0, 2.0 * math.pi) for i in (1, 2)})


def longest_duration(params: Mapping[str, Any]) -> Any:
    """How long the longer of the two hands pushes; of numbers or of arrays."""
    return np.maximum(params["duration1"], params["duration2"])


# What the paper spends, and what an optimizer may know of the cost.
SETTINGS: dict[str, tuple[float, Cost]] = {
    "uniform": (200.0, UniformCost()),
    "known": (600.0, KnownCost(longest_duration, vectorized=True)),
    "unknown": (800.0, LearnedCost()),
}


class Scene(NamedTuple):
    """The table as it is now: Box2D's world and the bodies on it, which change as it goes on."""

    world: Any
    square: Any
    disc: Any
    hands: tuple[Any, Any]


def robot_pushing(*, cost: str = "uniform", seed: int = 0) -> Problem:
    """Two hands push two objects; maximize minus the sum of the objects' final distances from their targets.

    A hand has a start (x1, y1) and an angle there (angle1), a velocity (vx1, vy1) and an angular velocity (torque1, by
    custom) that it strives for, and a time for which it does so (duration1, in tenths of a second). The other hand has
    x2 and so on.

    Args:
        cost: "uniform": one unit per evaluation, 200 of them. "known": the longer of the two durations, for a budget of
            600. "unknown": how far the hands end from where they started, plus 0.1, to be learned, for a budget of 800.
        seed: Which noise on the velocities the problem has.

    Raises:
        ImportError: Box2D is not installed.
    """
    budget, known = chosen("cost", cost, SETTINGS)
    _box2d()  # better missed now than in the middle of a run
    evaluate = partial(_evaluate, cost=cost, seed=checked_seed(seed))
    return Problem("Robot Pushing", SPACE, evaluate, "maximize", known, budget)


def push(params: Mapping[str, Any], *, seed: int = 0) -> Iterator[Scene]:
    """The scene at the start, then after every step: each time the same one, gone on."""
    scene = _scene(params)
    yield scene
    n_steps = [int(STEPS_PER_DURATION * params[f"duration{i}"]) for i in (1, 2)]
    velocities = np.array([[params[f"vx{i}"], params[f"vy{i}"]] for i in (1, 2)])
    noise = np.random.default_rng(seed).normal(0.0, NOISE_STD, velocities.shape)
    goals = (velocities + noise).tolist()
    spins = params["torque1"], params["torque2"]
    for step in range(max(n_steps) + STEPS_OF_REST):
        for hand, last, goal, spin in zip(scene.hands, n_steps, goals, spins, strict=True):
            if step < last:
                _strive(hand, goal, spin)
        scene.world.Step(TIME_STEP, N_ITERATIONS, N_ITERATIONS)
        yield scene


def _strive(hand: Any, goal: list[float], spin: float) -> None:
    """Push a hand towards the velocity and the angular velocity it should have."""
    gain, velocity = GAIN * hand.mass, hand.linearVelocity
    hand.ApplyTorque(gain * (spin - hand.angularVelocity), True)
    hand.ApplyForceToCenter((gain * (goal[0] - velocity.x), gain * (goal[1] - velocity.y)), True)


def _scene(params: Mapping[str, Any]) -> Scene:
    box2d = _box2d()
    rectangle, circle = box2d.b2PolygonShape, box2d.b2CircleShape
    world = box2d.b2World(gravity=(0.0, 0.0), doSleep=True)
    table = world.CreateStaticBody(shapes=rectangle(box=(TABLE_HALF_SIDE, TABLE_HALF_SIDE)))

    def add(shape: Any, position: tuple[float, float], angle: float, *, hand: bool) -> Any:
        body = world.CreateDynamicBody(position=position, angle=angle)
        density, friction, force = (0.1, 0.1, 2.0) if hand else (0.05, 0.01, 5.0)
        body.CreateFixture(shape=shape, density=density, friction=friction)
        # Bodies that a joint connects do not collide: so all of them lie in the table's rectangle and slide over it.
        world.CreateFrictionJoint(bodyA=table, bodyB=body, maxForce=force, maxTorque=2.0)
        return body

    square = add(rectangle(box=(SQUARE_HALF_SIDE, SQUARE_HALF_SIDE)), STARTS[0], 0.0, hand=False)
    disc = add(circle(radius=DISC_RADIUS), STARTS[1], 0.0, hand=False)
    first, second = _hand_starts(params)
    hand_1 = add(rectangle(box=HAND_HALF_SIDES), first, params["angle1"], hand=True)
    hand_2 = add(rectangle(box=HAND_HALF_SIDES), second, params["angle2"], hand=True)
    return Scene(world, square, disc, (hand_1, hand_2))


def _evaluate(params: Mapping[str, Any], *, cost: str, seed: int) -> Outcome:
    checked = SPACE.check(params)
    for scene in push(checked, seed=seed):  # noqa: B007 (the last one is read)
        pass
    ends = tuple(scene.square.position), tuple(scene.disc.position)
    value = -sum(map(math.dist, ends, TARGETS))
    if cost == "uniform":
        return Outcome(value, 1.0)
    if cost == "known":
        return Outcome(value, float(longest_duration(checked)))
    moved = sum(math.dist(start, hand.position) for start, hand in zip(_hand_starts(checked), scene.hands, strict=True))
    return Outcome(value, moved + LEAST_DISTANCE)


def _hand_starts(params: Mapping[str, Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    return (params["x1"], params["y1"]), (params["x2"], params["y2"])


def _box2d() -> Any:
    return import_with_box2d("Box2D", "Robot Pushing")
