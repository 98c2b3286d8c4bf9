"""The lander against gymnasium itself, with its wrappers and its own heuristic, and against free fall."""

import math
import pickle
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("Box2D")

import gymnasium
from gymnasium.envs.box2d.lunar_lander import heuristic

from pbgi.cost import LearnedCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.problems.lunar_lander import SPACE, action, fly, lunar_lander, new_environment

# The weights for which the controller is gymnasium's heuristic.
HEURISTIC = (0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.0, 0.5, 0.05, 0.05)
# The same controller, taught to brake whenever it falls and never to come down.
HOVERING = (0.5, 1.0, 0.4, 1.0, 0.5, 1.0, 0.0, 0.9, 0.0, 0.5, 0.0, 0.05)
RANDOM = tuple(np.random.default_rng(0).random(12).tolist())
N_FEW = 3


def as_params(weights):
    return dict(zip(SPACE.names, weights, strict=True))


def as_specified(s, w):
    """The controller once more, as the formulas stand, on the raw observation."""
    angle_target = np.clip(s[0] * w[0] + s[2] * w[1], -w[2], w[2])
    angle = w[8] if s[6] or s[7] else (angle_target - s[4]) * w[4] - s[5] * w[5]
    hover = -s[3] * w[9] if s[6] or s[7] else (w[3] * abs(s[0]) - s[1]) * w[6] - s[3] * w[7]
    if hover > abs(angle) and hover > w[10]:
        return 2
    return 3 if angle < -w[11] else 1 if angle > w[11] else 0


def flown_with_wrappers(controller, seed, max_steps=5000):
    environment = gymnasium.make("LunarLander-v3", max_episode_steps=max_steps)
    observation, _ = environment.reset(seed=seed)
    rewards, ended = [], False
    while not ended:
        observation, reward, crashed_or_landed, out_of_time, _ = environment.step(controller(observation))
        rewards.append(float(reward))
        ended = crashed_or_landed or out_of_time
    return rewards


@pytest.mark.parametrize("weights", [HEURISTIC, RANDOM])
def test_every_reward_is_that_of_the_wrapped_environment(weights):
    environment = new_environment()
    for seed in range(N_FEW):
        rewards = flown_with_wrappers(lambda s: as_specified(s.astype(np.float64), weights), seed)
        assert [step.reward for step in fly(environment, weights, seed)] == rewards


def test_controller_is_the_heuristic_of_gymnasium():
    environment = gymnasium.make("LunarLander-v3").unwrapped
    rng = np.random.default_rng(1)
    states = rng.normal(0.0, 0.5, (500, 8))
    states[:, 6:] = rng.random((500, 2)) < 0.2
    actions = [action(s.tolist(), HEURISTIC) for s in states]
    assert actions == [heuristic(environment, s) for s in states]
    assert set(actions) == {0, 1, 2, 3}


def test_controller_is_as_specified():
    rng = np.random.default_rng(2)
    states = rng.normal(0.0, 0.5, (500, 8))
    states[:, 6:] = rng.random((500, 2)) < 0.2
    for s, w in zip(states, rng.random((500, 12)), strict=True):
        assert action(s.tolist(), w.tolist()) == as_specified(s, w)


def test_heuristic_lands():
    value, cost = lunar_lander().evaluate(as_params(HEURISTIC))
    assert value > 200.0  # what gymnasium calls a solution
    assert cost == 1.0


def test_without_weights_the_lander_falls():
    steps = list(fly(new_environment(), (0.0,) * 12, 0))
    fall = np.diff([step.state[3] for step in steps[:-3]])
    # 10 units per second squared, in fiftieths of a second, times the observation's 400 / 30 / 2 / 50.
    assert np.median(fall) == pytest.approx(-10.0 / 50 * 400 / 30 / 2 / 50, rel=1e-3)  # the legs tug a little
    assert steps[-1].reward == -100.0


def test_value_and_cost_are_means_of_the_flights():
    flights = [flown_with_wrappers(lambda s: as_specified(s.astype(np.float64), RANDOM), seed) for seed in range(N_FEW)]
    value, cost = lunar_lander(cost="unknown", n_flights=N_FEW).evaluate(as_params(RANDOM))
    assert value == pytest.approx(np.mean([sum(rewards) for rewards in flights]), rel=1e-12)
    assert cost == np.mean([len(rewards) for rewards in flights]) / 16


def test_a_flight_ends_after_5000_steps():
    environment = new_environment()
    assert sum(1 for _ in fly(environment, HOVERING, 0)) == 5000


def test_an_environment_may_be_used_again():
    used = new_environment()
    for _ in zip(range(30), fly(used, RANDOM, 5), strict=False):  # left in the middle of a flight
        pass
    for seed in range(N_FEW):
        assert list(fly(used, HEURISTIC, seed)) == list(fly(new_environment(), HEURISTIC, seed))


def test_decoration_does_not_change_a_flight():
    """Version 2 put the exhaust of the engines into the world; so does version 3 when it is to be drawn."""
    plain, decorated = new_environment(), new_environment()
    decorated.render_mode = "rgb_array"
    for seed in range(N_FEW):
        assert list(fly(decorated, HEURISTIC, seed)) == list(fly(plain, HEURISTIC, seed))
    assert len(decorated.particles) > 0


def test_same_in_another_process_and_in_threads():
    code = (
        "from pbgi.problems.lunar_lander import lunar_lander\n"
        f"print(tuple(lunar_lander(cost='unknown', n_flights={N_FEW}).evaluate({as_params(RANDOM)})))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    evaluate = pickle.loads(pickle.dumps(lunar_lander(cost="unknown", n_flights=N_FEW).evaluate))  # noqa: S301 (our own)
    assert printed.strip() == str(tuple(evaluate(as_params(RANDOM))))
    with ThreadPoolExecutor(2) as pool:
        assert len({*pool.map(evaluate, [as_params(RANDOM)] * 4)}) == 1


def test_global_random_state_is_left_alone():
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002 (read, not used)
    lunar_lander(n_flights=N_FEW).evaluate(as_params(RANDOM))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_what_an_optimizer_is_told():
    uniform, unknown = lunar_lander(), lunar_lander(cost="unknown")
    assert (uniform.budget, uniform.cost, unknown.budget, unknown.cost) == (200.0, UniformCost(), 3200.0, LearnedCost())
    assert uniform.direction == unknown.direction == "maximize"
    assert uniform.space.dimension == 12


def test_refuses():
    with pytest.raises(InvalidInputError, match="cost must be one of"):
        lunar_lander(cost="known")
    with pytest.raises(InvalidInputError, match="n_flights"):
        lunar_lander(n_flights=0)
    with pytest.raises(InvalidInputError, match="w11"):
        lunar_lander().evaluate(as_params(HEURISTIC) | {"w11": 1.5})
    with pytest.raises(InvalidInputError, match="w3"):
        lunar_lander().evaluate(as_params(HEURISTIC) | {"w3": math.nan})


@pytest.mark.parametrize("missing", ["Box2D", "gymnasium.envs.box2d.lunar_lander"])
def test_says_what_to_install(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"pip install 'gymnasium\[box2d\]'"):
        lunar_lander()
