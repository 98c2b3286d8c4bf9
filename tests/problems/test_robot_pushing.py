"""The table and its bodies against mechanics that can be done by hand, and against the paper's starting level."""

import itertools
import json
import math
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("Box2D")

from pbgi.cost import KnownCost, LearnedCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.problems.robot_pushing import SPACE, longest_duration, push, robot_pushing

TARGETS = [(-4.4185, -4.3709), (-3.7641, -4.4742)]
# Two hands in corners far from everything, which strive for nothing.
IDLE = dict.fromkeys(SPACE.names, 0.0) | {
    "x1": 5.0, "y1": 5.0, "x2": 5.0, "y2": -5.0, "duration1": 1.0, "duration2": 1.0
}  # fmt: skip
RANDOM = SPACE.from_unit(np.random.default_rng(0).random(14))
START_VALUE = -math.hypot(4.4185, 6.3709) - math.hypot(3.7641, 2.4742)
HAND_MASS = 0.1 * 2.0 * 0.6


def last(params):
    *_, scene = push(params)
    return scene


def test_masses_are_those_of_the_shapes():
    scene = next(push(IDLE))
    assert scene.square.mass == pytest.approx(0.05, rel=1e-6)
    assert scene.disc.mass == pytest.approx(0.05 * math.pi, rel=1e-6)
    assert [hand.mass for hand in scene.hands] == pytest.approx([HAND_MASS] * 2, rel=1e-6)


def test_hands_that_reach_nothing_leave_everything_where_it_is():
    away = IDLE | {"vx1": 5.0, "vy1": 5.0, "duration1": 30.0, "vx2": 5.0, "torque2": 6.0, "duration2": 30.0}
    scene = last(away)
    assert tuple(scene.square.position) == (0.0, 2.0)
    assert tuple(scene.disc.position) == (0.0, -2.0)
    assert robot_pushing().evaluate(away).value == pytest.approx(START_VALUE, rel=1e-15)


def test_a_push_along_the_line_moves_the_square_along_it():
    scene = last(IDLE | {"x1": 0.0, "y1": 0.0, "vy1": 5.0, "duration1": 10.0})
    assert scene.square.position.y > 3.0
    assert abs(scene.square.position.x) < 0.1
    assert tuple(scene.disc.position) == (0.0, -2.0)
    # Hand and square touch, or the square slid on: never one inside the other.
    assert scene.square.position.y - scene.hands[0].position.y > 0.3 + 0.5 - 0.02


def test_a_push_along_the_line_moves_the_disc_along_it():
    params = IDLE | {"x2": -4.0, "y2": -2.0, "vx2": 5.0, "duration2": 12.0, "angle2": math.pi / 2}
    scene = last(params)
    assert scene.disc.position.x > 1.0
    assert abs(scene.disc.position.y + 2.0) < 0.1
    distances = math.dist(scene.disc.position, TARGETS[1]) + math.dist((0.0, 2.0), TARGETS[0])
    assert robot_pushing().evaluate(params).value == pytest.approx(-distances, rel=1e-12)


def test_a_free_hand_reaches_the_speed_at_which_friction_balances_the_push():
    """30 m (goal - v) = 2, and 30 m (goal - w) = 2 for the spin; noise of 0.01 on the goals of velocity."""
    params = IDLE | {"vx1": 5.0, "torque1": 4.0, "duration1": 20.0}
    scene = next(itertools.islice(push(params), 150, None))
    hand = scene.hands[0]
    assert hand.linearVelocity.length == pytest.approx(5.0 - 2.0 / (30.0 * HAND_MASS), abs=0.04)
    inertia = HAND_MASS * (1.0**2 + 0.3**2) / 3.0
    assert hand.inertia == pytest.approx(inertia, rel=1e-5)
    assert hand.angularVelocity == pytest.approx(4.0 - 2.0 / (30.0 * HAND_MASS), abs=1e-3)


def test_a_hand_left_alone_slides_to_rest():
    """Friction of 2 takes 2 / m off the speed every second: a distance of v^2 m / 4."""
    scenes = push(IDLE | {"vx1": 5.0, "duration1": 10.0})
    at_release = next(itertools.islice(scenes, 100, None)).hands[0]
    start, speed = tuple(at_release.position), at_release.linearVelocity.length
    for scene in scenes:
        end = tuple(scene.hands[0].position)
    assert scene.hands[0].linearVelocity.length == 0.0
    assert math.dist(start, end) == pytest.approx(speed**2 * HAND_MASS / 4.0, abs=speed * 0.01)


def test_as_many_steps_as_the_longer_duration_and_a_hundred_more():
    assert sum(1 for _ in push(IDLE | {"duration1": 2.57, "duration2": 12.99})) == 1 + 129 + 100


def test_known_cost_is_the_longer_duration_and_the_price_says_so():
    problem = robot_pushing(cost="known")
    points = SPACE.from_unit_many(np.random.default_rng(1).random((20, 14)))
    costs = [problem.evaluate(params).cost for params in points]
    assert costs == [max(params["duration1"], params["duration2"]) for params in points]
    assert isinstance(problem.cost, KnownCost)
    columns = {name: np.array([params[name] for params in points]) for name in SPACE.names}
    np.testing.assert_array_equal(longest_duration(columns), costs)
    model = problem.cost.fit(SPACE, np.empty((0, 14)), np.empty(0), None, None)
    np.testing.assert_allclose(model.log_moment(SPACE.to_unit_many(points), 1.0), np.log(costs), rtol=1e-12)


def test_unknown_cost_is_the_distance_of_the_hands_from_their_starts():
    problem = robot_pushing(cost="unknown")
    scene = last(RANDOM)
    moved = [math.dist((RANDOM[f"x{i}"], RANDOM[f"y{i}"]), scene.hands[i - 1].position) for i in (1, 2)]
    assert problem.evaluate(RANDOM).cost == pytest.approx(sum(moved) + 0.1, rel=1e-12)
    # A hand that wants 0.01 at most is held by friction.
    assert problem.evaluate(IDLE).cost == pytest.approx(0.1, abs=1e-3)


def test_durations_bound_the_unknown_cost():
    """A free hand is never faster than what it strives for, and slides on for v^2 m / 4 at most."""
    problem, rng = robot_pushing(cost="unknown"), np.random.default_rng(2)
    for vx, vy, duration in zip(*rng.uniform(1.0, 5.0, (2, 10)), rng.uniform(1.0, 30.0, 10), strict=True):
        params = IDLE | {"x1": 5.0, "y1": 5.0, "vx1": vx, "vy1": vy, "duration1": duration}
        speed = math.hypot(vx, vy) + 0.1
        assert 0.1 < problem.evaluate(params).cost < 0.1 + speed * duration / 10.0 + speed**2 * HAND_MASS / 4.0


def test_starting_level_is_that_of_the_paper():
    """The median of the best of 30 random points is their 0.5^(1/30) quantile: published as -12.0105 of 16 runs.

    A median of 16 such runs lies within 0.09 of the true one 19 times of 20; the best of 230 (-11.8141) within 0.05.
    """
    evaluate = robot_pushing().evaluate
    points = SPACE.from_unit_many(np.random.default_rng(5).random((600, 14)))
    values = np.array([evaluate(params).value for params in points])
    assert np.quantile(values, 0.5 ** (1 / 30)) == pytest.approx(-12.0105, abs=0.09)
    assert np.quantile(values, 0.5 ** (1 / 230)) == pytest.approx(-11.8141, abs=0.08)
    assert np.median(values) == pytest.approx(START_VALUE)  # most hands miss


def test_same_again_and_in_another_process():
    problem = robot_pushing(cost="unknown")
    first = problem.evaluate(RANDOM)
    robot_pushing().evaluate(IDLE)
    assert pickle.loads(pickle.dumps(problem.evaluate))(RANDOM) == first  # noqa: S301 (our own)
    code = (
        "import json; from pbgi.problems.robot_pushing import robot_pushing\n"
        f"print(json.dumps(robot_pushing(cost='unknown').evaluate({RANDOM})))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == list(first)


def test_seed_is_the_noise_on_the_velocities():
    free = IDLE | {"x1": 5.0, "y1": 0.0, "vx1": 3.0, "duration1": 20.0}
    costs = [robot_pushing(cost="unknown", seed=seed).evaluate(free).cost for seed in range(5)]
    assert len(set(costs)) == 5
    assert np.ptp(costs) < 2 * 3 * 0.01 * 2.0 + 0.01  # two standard errors of three, over the two seconds of the push


def test_global_random_state_is_left_alone():
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002 (read, not used)
    robot_pushing().evaluate(RANDOM)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_what_an_optimizer_is_told():
    uniform, known, unknown = (robot_pushing(cost=cost) for cost in ("uniform", "known", "unknown"))
    assert (uniform.budget, known.budget, unknown.budget) == (200.0, 600.0, 800.0)
    assert (uniform.cost, unknown.cost) == (UniformCost(), LearnedCost())
    assert uniform.evaluate(RANDOM).cost == 1.0
    assert uniform.direction == "maximize"
    order = ["x", "y", "vx", "vy", "duration", "angle"]
    assert SPACE.names == (*(f"{name}{i}" for i in (1, 2) for name in order), "torque1", "torque2")


def test_refuses():
    with pytest.raises(InvalidInputError, match="cost must be one of"):
        robot_pushing(cost="free")
    with pytest.raises(InvalidInputError, match="seed"):
        robot_pushing(seed=None)
    with pytest.raises(InvalidInputError, match="duration2"):
        robot_pushing().evaluate(RANDOM | {"duration2": 0.5})


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(ImportError, match=r"pip install 'gymnasium\[box2d\]'"):
        robot_pushing()


@pytest.mark.parametrize("problem", ["robot_pushing", "lunar_lander"])
def test_can_be_made_where_warnings_are_errors(problem):
    """Box2D's bindings warn while they are imported, and do not survive it if that is an error."""
    if problem == "lunar_lander":
        pytest.importorskip("gymnasium")
    code = f"from pbgi.problems.{problem} import {problem}; print({problem}().budget)"
    printed = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert printed.stdout.strip() == "200.0"
