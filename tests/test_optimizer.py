"""Ask and tell: bookkeeping, determinism, invariance, budgets, and everything that must not break it."""

import itertools
import json
import math
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pbgi
from pbgi import Categorical, Float, Integer, InvalidInputError, Optimizer, Space
from pbgi.gp.config import Hyperparameters
from pbgi.history import Trial, TrialState
from pbgi.settings import Settings

SPACE = {"lr": Float(1e-5, 1e-1, log=True), "layers": Integer(1, 8), "act": Categorical(["relu", "tanh"]), "fixed": 3}
PLANE = {"x": Float(0, 1), "y": Float(-2, 2)}


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 1) ** 2


def price(params):
    return 1.0 + 20.0 * params["x"]


def run(optimizer, n, value=bowl, cost=price):
    """Run n trials and return their params."""
    points = []
    for _ in range(n):
        trial = optimizer.ask()
        points.append(trial.params)
        optimizer.tell(trial, value(trial.params), cost=cost(trial.params) if cost else None)
    return points


def distance(a, b, space):
    """Largest difference of two points, as a share of the range."""
    return float(np.max(np.abs(space.to_unit(a) - space.to_unit(b))))


# The loop of the README -----------------------------------------------------------------------------------------------


def test_the_loop_ends_within_the_budget():
    optimizer = Optimizer(SPACE, budget=60, seed=0)
    while (reason := optimizer.should_stop()) is None:
        trial = optimizer.ask()
        assert set(trial.params) == set(SPACE)
        assert trial.params["fixed"] == 3
        optimizer.tell(trial, math.log(trial.params["lr"]) ** 2, cost=1.0 + trial.params["layers"])
    assert reason.rule == "BudgetSpent"
    assert optimizer.spent == pytest.approx(sum(1.0 + t.params["layers"] for t in optimizer.trials))
    assert optimizer.spent <= 60 * 1.05
    assert optimizer.best.value == min(t.value for t in optimizer.trials)


def test_it_finds_the_minimum_and_the_maximum():
    down, up = Optimizer(PLANE, seed=1), Optimizer(PLANE, direction="maximize", seed=1)
    run(down, 30)
    run(up, 30, value=lambda p: -bowl(p))
    assert down.best.value < 1e-3
    assert up.best.value == -down.best.value  # the mirror image, to the bit
    assert [t.params for t in up.trials] == [t.params for t in down.trials]


def test_it_goes_where_it_is_cheap_first():
    """Two equally deep holes, one twenty times as dear: the cheap one is found, the dear one left alone."""

    def holes(params):
        return min((params["x"] - 0.1) ** 2, (params["x"] - 0.9) ** 2) * 10 + (params["y"] - 1) ** 2

    optimizer = Optimizer(PLANE, budget=100, cost=pbgi.KnownCost(lambda p: 1 + 40 * p["x"]), seed=0)
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        optimizer.tell(trial, holes(trial.params))
    assert optimizer.best.value < 0.01
    assert optimizer.best.params["x"] < 0.3
    assert np.mean([t.params["x"] < 0.4 for t in optimizer.trials]) > 0.7


# Determinism ----------------------------------------------------------------------------------------------------------

STORY = """
import sys, pbgi
space = {"x": pbgi.Float(0, 1), "k": pbgi.Integer(1, 9), "c": pbgi.Categorical(["u", "v"])}
optimizer = pbgi.Optimizer(space, budget=50, seed=7)
trials = []
for i in range(14):
    trials.append(optimizer.ask())
    if i % 3 == 2:
        for trial in reversed(trials):
            if trial.number % 5 == 4:
                optimizer.fail(trial, cost=0.5, message="lost")
            else:
                optimizer.tell(trial, (trial.params["x"] - 0.4) ** 2 + trial.params["k"], cost=1 + trial.params["x"])
        trials = []
    if i == SAVE_AT:
        optimizer = pbgi.Optimizer.from_json(optimizer.to_json())
print(optimizer.to_json())
"""


def test_same_history_and_seed_same_suggestion_bit_for_bit():
    """In another process, and saved and loaded at any moment."""
    plain = STORY.replace("SAVE_AT", "-1")
    saved = STORY.replace("i == SAVE_AT", "True")
    outputs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for code in (plain, plain, saved)
    }
    assert len(outputs) == 1


def test_asking_again_without_telling_gives_another_point():
    optimizer = Optimizer(PLANE, seed=0)
    trials = optimizer.ask(6)
    assert len({(t.params["x"], t.params["y"]) for t in trials}) == 6
    run(optimizer, 10)
    later = optimizer.ask(5)
    points = np.array([optimizer.space.to_unit(t.params) for t in later])
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(5, 1)]
    assert gaps.min() > 1e-4


def test_different_seeds_differ_and_none_is_random():
    first = [Optimizer(PLANE, seed=s).ask().params for s in (0, 1)]
    assert first[0] != first[1]
    assert Optimizer(PLANE).ask().params != Optimizer(PLANE).ask().params


def test_should_stop_changes_nothing():
    a, b = Optimizer(PLANE, budget=100, seed=3), Optimizer(PLANE, budget=100, seed=3)
    for _ in range(10):
        for _ in range(2):
            assert a.should_stop() is None
        ta, tb = a.ask(), b.ask()
        assert ta.params == tb.params
        a.tell(ta, bowl(ta.params), cost=1.5)
        b.tell(tb, bowl(tb.params), cost=1.5)


# Units ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e6])
def test_multiplying_costs_changes_nothing(scale):
    plain = Optimizer(PLANE, budget=1000, seed=5)
    scaled = Optimizer(PLANE, budget=1000 * scale, seed=5)
    for a, b in zip(run(plain, 16), run(scaled, 16, cost=lambda p: scale * price(p)), strict=True):
        assert distance(a, b, plain.space) <= 1e-6


@pytest.mark.parametrize("policy", [None, pbgi.LogEIPC(), pbgi.Thompson()])
@pytest.mark.parametrize(
    ("scale", "shift"),
    [(1e-6, 0.0), (3.0, -40.0), (1e6, 0.0), (1e5, 1e6), (1e6, 1e6), (1.0, 1e6), (1.0, 100.0), (-0.1, 7.0)],
)
def test_rescaling_and_shifting_the_objective_changes_nothing(scale, shift, policy):
    plain = Optimizer(PLANE, budget=1000, policy=policy, seed=6)
    direction = "minimize" if scale > 0 else "maximize"
    moved = Optimizer(PLANE, budget=1000, policy=policy, direction=direction, seed=6)
    there = run(moved, 16, value=lambda p: scale * bowl(p) + shift)
    for a, b in zip(run(plain, 16), there, strict=True):
        assert distance(a, b, plain.space) <= 1e-9


@pytest.mark.parametrize("rate", [1e-2, 1e-3])
def test_shifting_the_objective_changes_nothing_at_a_rate_of_the_users(rate):
    """What a unit of cost is worth there is found from differences of values that have lost ten of their digits."""
    rule = {"policy": pbgi.PBGI(rate), "stop": pbgi.BudgetSpent(), "budget": 1000, "seed": 6}
    plain, moved = Optimizer(PLANE, **rule), Optimizer(PLANE, **rule)
    there = run(moved, 12, value=lambda p: bowl(p) - 1e6)
    assert max(distance(a, b, plain.space) for a, b in zip(run(plain, 12), there, strict=True)) <= 1e-9


# Budgets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [3, -3])
def test_the_start_is_expected_to_use_at_most_a_quarter_of_the_budget(slope):
    """Costs over three orders of magnitude, unknown beforehand; the expectation is over seeds."""
    shares = []
    for seed in range(10):
        optimizer = Optimizer(PLANE, budget=2000, seed=seed)
        while not any("index" in t.record for t in optimizer.trials):
            trial = optimizer.ask()
            exponent = slope * trial.params["x"] if slope > 0 else slope * (trial.params["x"] - 1)
            optimizer.tell(trial, bowl(trial.params), cost=10.0**exponent)
        shares.append(sum(t.cost for t in optimizer.trials if "index" not in t.record) / 2000)
    assert np.mean(shares) <= 0.25


def test_known_costs_start_cheap():
    cheap = Optimizer(PLANE, budget=200, cost=pbgi.KnownCost(lambda p: 10.0 ** (3 * p["x"])), seed=0)
    run(cheap, 6, cost=None)
    assert cheap.spent <= 50
    assert max(t.params["y"] for t in cheap.trials) - min(t.params["y"] for t in cheap.trials) > 2


def test_no_trial_is_started_that_is_expected_not_to_fit():
    known = pbgi.KnownCost(price)
    optimizer = Optimizer(PLANE, budget=60, cost=known, seed=2)
    while (reason := optimizer.should_stop()) is None:
        trial = optimizer.ask()
        assert trial.predicted_cost == pytest.approx(price(trial.params), rel=1e-9)
        assert trial.predicted_cost <= 60 - optimizer.spent + 1e-9
        optimizer.tell(trial, bowl(trial.params))
    assert optimizer.spent <= 60 * (1 + 1e-12)
    assert reason.numbers["left"] == pytest.approx(60 - optimizer.spent)
    with pytest.raises(pbgi.NothingLeftError, match="fit"):
        optimizer.ask()


def test_overshoot_is_the_rule_of_the_paper():
    optimizer = Optimizer(PLANE, budget=60, cost=pbgi.KnownCost(price), stop=pbgi.BudgetSpent(overshoot=True), seed=2)
    while optimizer.should_stop() is None:
        before = optimizer.spent
        trial = optimizer.ask()
        optimizer.tell(trial, bowl(trial.params))
    assert before < 60 <= optimizer.spent


def test_running_trials_reserve_what_they_are_expected_to_cost():
    optimizer = Optimizer(PLANE, budget=100, cost=pbgi.KnownCost(price), seed=0)
    trials = optimizer.ask(3)
    assert optimizer.reserved == pytest.approx(sum(price(t.params) for t in trials))
    assert optimizer.remaining == pytest.approx(100 - optimizer.reserved)
    optimizer.tell(trials[1], 1.0, cost=2.0)
    optimizer.fail(trials[0], cost=7.0)
    assert optimizer.spent == 9.0
    assert optimizer.reserved == pytest.approx(price(trials[2].params))


def test_price_list_times_learned_duration():
    """The known factor alone varies: what is learned is the constant duration."""
    cost = pbgi.LearnedCost(known_factor=lambda p: 1.0 if p["machine"] == "small" else 8.0)
    space = {"x": Float(0, 1), "machine": Categorical(["small", "big"])}
    optimizer = Optimizer(space, cost=cost, budget=500, seed=0)
    for _ in range(14):
        trial = optimizer.ask()
        factor = 1.0 if trial.params["machine"] == "small" else 8.0
        optimizer.tell(trial, (trial.params["x"] - 0.5) ** 2, cost=3.0 * factor)
    trial = optimizer.ask()
    expected = 3.0 if trial.params["machine"] == "small" else 24.0
    assert trial.predicted_cost == pytest.approx(expected, rel=0.2)


def test_observations_from_elsewhere_inform_and_cost_nothing():
    optimizer = Optimizer(PLANE, budget=100, seed=0)
    for x in np.linspace(0, 1, 6):
        for y in (-1.0, 0.5, 1.5):
            optimizer.tell({"x": float(x), "y": y}, bowl({"x": x, "y": y}), cost=price({"x": x}))
    assert optimizer.spent == 0
    assert all(t.external for t in optimizer.trials)
    trial = optimizer.ask()
    assert "index" in trial.record  # no start needed any more
    assert trial.predicted_cost == pytest.approx(price(trial.params), rel=0.2)


def test_stops_when_no_trial_is_worth_its_price():
    optimizer = Optimizer(PLANE, policy=pbgi.PBGI(cost_scale=0.02), cost=pbgi.UniformCost(), seed=0)
    while (reason := optimizer.should_stop()) is None:
        trial = optimizer.ask()
        optimizer.tell(trial, bowl(trial.params))
        assert len(optimizer.trials) < 60
    assert reason.rule == "GittinsStop"
    assert reason.numbers["net_gain"] <= 0
    assert reason.numbers["best_value"] == optimizer.best.value
    assert reason.numbers["index"] >= optimizer.best.value  # minimizing: what the best box is worth is no better
    assert "worth its price" in str(reason)
    dearer = Optimizer(PLANE, policy=pbgi.PBGI(cost_scale=2.0), cost=pbgi.UniformCost(), seed=0)
    while dearer.should_stop() is None:
        trial = dearer.ask()
        dearer.tell(trial, bowl(trial.params))
    assert len(dearer.trials) < len(optimizer.trials)


# Spaces ---------------------------------------------------------------------------------------------------------------


def test_finite_spaces_do_not_repeat_and_end():
    space = {"a": Integer(1, 3), "b": Categorical(["u", "v"]), "c": Integer(0, 4, step=2)}
    optimizer = Optimizer(space, seed=0)
    points = []
    while (reason := optimizer.should_stop()) is None:
        trial = optimizer.ask()
        points.append(tuple(trial.params.values()))
        optimizer.tell(trial, trial.params["a"] * (trial.params["b"] == "u") + trial.params["c"], cost=1.0)
    assert len(points) == len(set(points)) == 18
    assert reason.rule == "SpaceExhausted"
    assert "every one of the 18 points" in reason.message
    with pytest.raises(pbgi.NothingLeftError, match="18 points"):
        optimizer.ask()


@pytest.mark.parametrize(
    "parameter",
    [
        Integer(0, 2000),
        Integer(0, 10**5, step=50),
        Integer(1, 5000, log=True),
        Integer(1, 10**6, log=True),
        Integer(0, 10**6),
    ],
)
@pytest.mark.parametrize("beside", [{}, {"c": Categorical(["a", "b"])}, {"y": Float(0, 1)}])
def test_integers_of_many_levels_do_not_repeat(parameter, beside):
    optimizer = Optimizer({"k": parameter, **beside}, cost=pbgi.UniformCost(), seed=0)
    best = optimizer.space.from_unit(np.full(optimizer.space.dimension, 0.3))
    for _ in range(40):
        trial = optimizer.ask()
        x, top = (optimizer.space.to_unit(params) for params in (trial.params, best))
        optimizer.tell(trial, float(((x - top) ** 2).sum()))
    assert len({tuple(trial.params.items()) for trial in optimizer.trials}) == 40
    assert optimizer.best.value < 1e-3


def test_running_trials_of_many_levels_do_not_repeat():
    optimizer = Optimizer({"k": Integer(0, 1500)}, cost=pbgi.UniformCost(), seed=0)
    for k in (0, 700, 760, 800, 1500):
        optimizer.tell({"k": k}, (k - 750.0) ** 2)
    assert len({trial.params["k"] for trial in optimizer.ask(30)} | {0, 700, 760, 800, 1500}) == 35


def test_noisy_finite_spaces_may_repeat():
    optimizer = Optimizer({"a": Integer(1, 3)}, model=pbgi.GPConfig(noisy=True), seed=0)
    run(optimizer, 8, value=lambda p: float(p["a"]), cost=None)
    assert len(optimizer.trials) == 8
    assert optimizer.should_stop() is None


@pytest.mark.parametrize(
    "space",
    [
        {"x": Float(2.0, 2.0)},
        {"x": Categorical(["only"])},
        {"x": Float(0, 1), "same": Float(3.0, 3.0), "one": Categorical([None])},
        {"x": 5},
        {f"x{i}": Float(0, 1) for i in range(100)},
        {"n": Integer(1, 10**6, log=True)},
        {"n": Integer(-5, 10**5)},
    ],
    ids=["point", "one choice", "partly fixed", "all fixed", "d=100", "log integer", "wide integer"],
)
def test_odd_spaces(space):
    optimizer = Optimizer(space, seed=0)
    n = 0
    while optimizer.should_stop() is None and n < 12:
        trial = optimizer.ask()
        optimizer.space.check(trial.params)
        optimizer.tell(trial, float(n), cost=1.0)
        n += 1
    assert n == min(12, optimizer.space.n_points)


# What must not break it -----------------------------------------------------------------------------------------------


def test_constant_objective_keeps_moving():
    optimizer = Optimizer(PLANE, seed=0)
    points = run(optimizer, 40, value=lambda _: 1.0)
    assert len({(p["x"], p["y"]) for p in points}) >= 36


@pytest.mark.parametrize(
    "transform",
    [
        lambda v, _: v * 1e-300,
        lambda v, _: v * 1e300,
        lambda v, _: v + 1e12,
        lambda v, i: 1e30 if i == 5 else v,
        lambda v, i: -1e30 if i == 5 else v,
        lambda v, i: 0.0 if i < 8 else v,
    ],
    ids=["tiny", "huge", "shifted", "outlier", "good outlier", "zeros first"],
)
def test_wild_values(transform):
    optimizer = Optimizer(PLANE, seed=0, budget=1000)
    for i in range(20):
        trial = optimizer.ask()
        optimizer.tell(trial, transform(bowl(trial.params), i), cost=price(trial.params))
    assert len({(t.params["x"], t.params["y"]) for t in optimizer.trials}) >= 18


LARGEST_VALUE = 1.7e308


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("policy", [pbgi.PBGID(), pbgi.PBGI(1e-3), pbgi.PBGI(1e300), pbgi.LogEI(), pbgi.Thompson()])
@pytest.mark.parametrize(
    "value",
    [
        lambda x, i: LARGEST_VALUE,  # noqa: ARG005
        lambda x, i: LARGEST_VALUE * (2.0 * x - 1.0),  # noqa: ARG005
        lambda x, i: LARGEST_VALUE if i == 3 else x,
        lambda x, i: -LARGEST_VALUE if i == 3 else x,
        lambda x, i: 5e-324 * round(10.0 * x),  # noqa: ARG005
        lambda x, i: 10.0 ** (600.0 * x - 300.0),  # noqa: ARG005
    ],
)
def test_values_at_the_end_of_the_scale_need_no_warning(value, policy, direction):
    optimizer = Optimizer({"x": Float(0, 1)}, direction=direction, policy=policy, cost=pbgi.UniformCost(), seed=0)
    with np.errstate(all="raise"):  # nor do users who turn all of them into errors see one
        for i in range(10):
            trial = optimizer.ask()
            optimizer.tell(trial, value(trial.params["x"], i))
        belief = optimizer.predict([trial.params for trial in optimizer.trials])
        chosen = optimizer.recommended
    for numbers in (belief.median, belief.low, belief.high, [chosen.low, chosen.high]):
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize("start", [1.7e308, -1.7e308, 1e200, 1e38])
@pytest.mark.parametrize("last", [lambda x: x, lambda _: 5e-205])
def test_trials_may_begin_anywhere(start, last):
    """A loss before the first step of training, say, where the last ones are close together or all alike."""
    optimizer = Optimizer({"x": Float(0, 1)}, steps=[1, 3, 9], cost=pbgi.UniformCost(), seed=0)
    for i in range(5):
        trial = optimizer.ask()
        optimizer.report(trial, 1, start if i % 2 else 1.0)
        optimizer.tell(trial, last(trial.params["x"]))
    running = optimizer.enqueue({"x": 0.5})
    optimizer.report(running, 1, -start)
    assert optimizer.should_continue(running) in (True, False)
    assert math.isfinite(optimizer.ask().params["x"])


@pytest.mark.parametrize("costs", [(5e-324, 1.7e308, 1.7e308), (1.7e308, 5e-324, 5e-324)])
def test_steps_may_cost_more_than_their_trial(costs):
    """Whatever a program reports on its way: trials held elsewhere come as they are."""
    whole, first, second = costs
    told = [
        Trial(i, {"x": i / 4}, TrialState.COMPLETE, i / 4, whole, reports=((1, i / 4, first), (3, i / 4, second)))
        for i in range(4)
    ]
    running = Trial(4, {"x": 0.9}, TrialState.RUNNING, reports=((1, 0.5, first),))
    with np.errstate(all="raise"):
        space = pbgi.Space({"x": Float(0, 1)})
        optimizer = Optimizer.of(space, "minimize", Settings(steps=[1, 3, 9], seed=0), [*told, running])
        optimizer.should_stop()
    assert 0.0 < optimizer.typical_cost < math.inf


@pytest.mark.parametrize("cost", [None, pbgi.LearnedCost(lambda _: 1e300), pbgi.LearnedCost(lambda _: 1e-300)])
@pytest.mark.parametrize("costs", [[1e-320, 1e308], [1e-300, 1e300, 1.7e308], [10.0**k for k in range(-320, 308, 40)]])
def test_points_of_the_users_choice_cost_what_a_float_holds(cost, costs):
    optimizer = Optimizer({"x": Float(0, 1)}, cost=cost, budget=1e300, seed=0)
    for i, paid in enumerate(costs):
        optimizer.tell(optimizer.enqueue({"x": i / len(costs)}), float(i), cost=paid)
    assert 0.0 < optimizer.enqueue({"x": 1.0}).predicted_cost < math.inf
    assert 0.0 < optimizer.enqueue({"x": 0.0}).predicted_cost < math.inf


@pytest.mark.parametrize("budget", [5e-324, 1e-310, 1e308])
def test_budgets_at_the_ends_of_the_scale(budget):
    optimizer = Optimizer({"x": Float(0, 1)}, budget=budget, seed=0)
    trial = optimizer.ask()
    optimizer.tell(trial, 1.0, cost=budget / 2.0 or budget)
    assert optimizer.should_stop() is None or optimizer.should_stop().rule == "BudgetSpent"


def test_costs_over_twelve_orders_of_magnitude():
    optimizer = Optimizer(PLANE, seed=0, budget=1e9)
    for _ in range(20):
        trial = optimizer.ask()
        optimizer.tell(trial, bowl(trial.params), cost=10.0 ** (12 * trial.params["x"] - 6))
    assert optimizer.spent < 1e9


def test_copies_of_one_point_with_different_values():
    optimizer = Optimizer(PLANE, seed=0)
    for i in range(20):
        optimizer.tell({"x": 0.5, "y": 0.5}, float(i % 7), cost=1.0 + i % 3)
    trials = optimizer.ask(4)
    assert len({(t.params["x"], t.params["y"]) for t in trials}) == 4


def test_a_loop_around_a_broken_function_ends_quickly():
    """Said once for each failure, so that a loop may go on once the function is mended, also after a restart."""
    optimizer = Optimizer(PLANE, seed=0, max_failures=3)
    for n in range(3):
        optimizer.fail(optimizer.ask(), message=f"KeyError: 'rate' in line {n}")
    what = r"the first 3 trials failed.*Optimizer\(max_failures=None\); the last: KeyError: 'rate' in line 2"
    with pytest.raises(pbgi.BrokenFunctionError, match=what):
        optimizer.ask()
    again = Optimizer.from_json(optimizer.to_json())
    assert again.ask().params == optimizer.ask().params
    again.tell(again.trials[-1], float("nan"))
    with pytest.raises(pbgi.BrokenFunctionError, match=r"the first 4 trials failed.* must be finite; got nan"):
        again.ask(2)
    optimizer.tell(optimizer.trials[-1], 1.0)
    optimizer.fail(optimizer.ask())
    assert optimizer.ask().number == 5, "one success, and failures are those of points"
    with pytest.raises(InvalidInputError, match="max_failures must be a positive whole number; got 0"):
        Optimizer(PLANE, max_failures=0)


def test_all_first_trials_fail():
    optimizer = Optimizer(PLANE, seed=0, budget=100, max_failures=None)
    for _ in range(12):
        optimizer.fail(optimizer.ask(), cost=1.0, message="boom")
    points = np.array([optimizer.space.to_unit(t.params) for t in optimizer.trials])
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(12, 1)]
    assert gaps.min() > 0.05
    run(optimizer, 5)
    assert optimizer.best is not None
    assert optimizer.spent > 12


def test_failing_regions_are_left_alone():
    """Everything right of 0.5 fails, where the objective would be best."""
    optimizer = Optimizer(PLANE, seed=1)
    n_failed = 0
    for _ in range(40):
        trial = optimizer.ask()
        if trial.params["x"] > 0.5:
            optimizer.fail(trial, cost=1.0)
            n_failed += 1
        else:
            optimizer.tell(trial, (trial.params["x"] - 0.7) ** 2 + (trial.params["y"] - 1) ** 2, cost=1.0)
    failed = [t for t in optimizer.trials if t.state is TrialState.FAILED]
    assert len(failed) == n_failed
    for earlier, later in itertools.combinations(failed, 2):
        if later.number - earlier.number <= 30:  # not at once: at half the distance after thirty trials
            assert distance(earlier.params, later.params, optimizer.space) >= 0.025
    assert optimizer.best.value < 0.3**2  # at the border it is 0.2^2: it came closer than 0.1


@pytest.mark.parametrize("n_attempts", [1, 2])
def test_a_point_that_gave_a_value_as_well_is_not_left_alone(n_attempts):
    """The worker of the best point was killed, and the point run again: the parabola's minimum is next to it."""
    optimizer = Optimizer({"x": Float(-10.0, 10.0)}, seed=0, cost=pbgi.UniformCost())
    for x in (7.6, -0.5, -10.0, 2.8):
        optimizer.tell({"x": x}, (x - 1.0) ** 2)
    for _ in range(n_attempts):
        optimizer.fail(optimizer.enqueue({"x": 1.05}))
    for _ in range(n_attempts):
        optimizer.tell(optimizer.enqueue({"x": 1.05}), 0.05**2)
    for _ in range(6):
        trial = optimizer.ask()
        optimizer.tell(trial, (trial.params["x"] - 1.0) ** 2)
    assert optimizer.best.value < 1e-3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_values_that_are_not_finite_fail_the_trial_not_the_run(value):
    optimizer = Optimizer(PLANE, seed=0)
    trial = optimizer.tell(optimizer.ask(), value, cost=1.0)
    assert trial.state is TrialState.FAILED
    assert "finite" in trial.message
    assert optimizer.best is None
    assert optimizer.spent == 1.0
    run(optimizer, 2)


def test_telling_twice():
    optimizer = Optimizer(PLANE, seed=0)
    a, b = optimizer.ask(2)
    done = optimizer.tell(b.number, 2.0, cost=1.0)
    assert optimizer.tell(b, 2.0, cost=1.0) == done
    with pytest.raises(pbgi.TrialStateError, match=r"2\.0"):
        optimizer.tell(b, 3.0, cost=1.0)
    with pytest.raises(pbgi.UnknownTrialError):
        optimizer.tell(7, 1.0)
    foreign = Optimizer(PLANE, seed=99).ask()
    with pytest.raises(pbgi.UnknownTrialError, match="other params"):
        optimizer.tell(foreign, 1.0)
    assert optimizer.trials[a.number].state is TrialState.RUNNING


@pytest.mark.parametrize("value", [None, "1", [1.0], 1j, True])
def test_values_of_other_types_are_refused_before_anything_changes(value):
    optimizer = Optimizer(PLANE, seed=0)
    trial = optimizer.ask()
    before = optimizer.to_json()
    with pytest.raises(InvalidInputError, match="value must be a real number"):
        optimizer.tell(trial, value, cost=1.0)
    assert optimizer.to_json() == before


@pytest.mark.parametrize("cost", [0, -1.0, math.nan, math.inf, "2", True])
def test_costs_that_are_not_positive_are_refused(cost):
    optimizer = Optimizer(PLANE, seed=0)
    trial = optimizer.ask()
    with pytest.raises(InvalidInputError, match="cost must be a positive, finite number"):
        optimizer.tell(trial, 1.0, cost=cost)


class OnlyReason:
    """Half a stop rule."""

    def reason(self, _):
        return None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "minimise"}, "direction must be 'minimize' or 'maximize'; got 'minimise'"),
        ({"budget": 0}, "budget must be a positive, finite number; got 0"),
        ({"budget": -3.0}, "budget must be a positive, finite number; got -3.0"),
        ({"budget": math.nan}, "budget must be a positive"),
        ({"budget": "60s"}, "budget must be a positive"),
        ({"cost": lambda _: 1.0}, "cost must be None or an object with fit"),
        ({"policy": "PBGI"}, "policy must be None or an object with propose"),
        ({"policy": pbgi.PBGID}, "policy must be None or an object with propose"),
        ({"stop": 10}, "stop must be None or an object with reason"),
        ({"stop": OnlyReason()}, r"stop must be None or an object with reason\(\) and note"),
        ({"policy": pbgi.LogEICC()}, "LogEICC needs budget=..., with which it cools; got budget=None"),
        ({"model": "rbf"}, "model must be a GPConfig.*got 'rbf'"),
        ({"n_startup_trials": -1}, "whole number that is not negative; got -1"),
        ({"seed": -1}, "seed must be a whole number that is not negative; got -1"),
        ({"seed": 1.5}, "seed must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Optimizer(PLANE, **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Optimizer(PLANE, bugdet=3), "Unknown argument 'bugdet'; did you mean 'budget'?"),
        (lambda: pbgi.minimize(bowl, PLANE, wibble=3), "Unknown argument 'wibble'; there are fun, space"),
        (lambda: Optimizer(PLANE).tell(0, 1.0, costs=2.0), "Unknown argument 'costs'; did you mean 'cost'?"),
        (lambda: Optimizer(PLANE).fail(0, msg="x"), "Unknown argument 'msg'; did you mean 'message'?"),
        (lambda: Optimizer(PLANE).ask(num=3), "Unknown argument 'num'; did you mean 'n'?|there are n"),
        (lambda: Optimizer(PLANE).enqueue(param={}), "Unknown argument 'param'; did you mean 'params'?"),
        (lambda: Optimizer(PLANE).predict(point=[]), "Unknown argument 'point'; did you mean 'points'?"),
        (lambda: Optimizer.from_json("{}", costs=None), "Unknown argument 'costs'; did you mean 'cost'?"),
        (lambda: pbgi.PBGI(scale=0.1), "Unknown argument 'scale'; did you mean 'cost_scale'?"),
        (lambda: pbgi.PBGID(decays=2.0), "Unknown argument 'decays'; did you mean 'decay'?"),
        (lambda: pbgi.LogEI(xi=0.1), "Unknown argument 'xi'; it takes none"),
        (lambda: pbgi.KnownCost(bowl, vectorised=True), "Unknown argument 'vectorised'; did you mean 'vectorized'?"),
        (
            lambda: pbgi.LearnedCost(known_factors=bowl),
            "Unknown argument 'known_factors'; did you mean 'known_factor'?",
        ),
        (lambda: pbgi.GittinsStop(0.1, patients=3), "Unknown argument 'patients'; did you mean 'patience'?"),
        (lambda: pbgi.MaxTrials(trials=3), "Unknown argument 'trials'; there are n"),
        (lambda: pbgi.BudgetSpent(overshot=True), "Unknown argument 'overshot'; did you mean 'overshoot'?"),
        (lambda: pbgi.GPConfig(kernal="rbf"), "Unknown argument 'kernal'; did you mean 'kernel'?"),
        (
            lambda: Float(0, 1, logarithmic=True),
            "'logarithmic'; did you mean 'log'|there are low, high, log",
        ),
        (lambda: Integer(0, 8, stpe=2), "Unknown argument 'stpe'; did you mean 'step'?"),
        (lambda: Categorical(choice=["a"]), "Unknown argument 'choice'; did you mean 'choices'?"),
    ],
)
def test_unknown_keyword_is_refused(call, message):
    with pytest.raises(pbgi.UnknownArgumentError, match=message) as refusal:
        call()
    assert isinstance(refusal.value, TypeError)  # as Python's own would be


@pytest.mark.parametrize("cost", [None, pbgi.KnownCost(lambda _: 0.1)])
def test_trials_of_one_cost_use_up_a_budget_that_is_a_multiple_of_it(cost):
    """Ten times 0.1 is not 1 in floating point, and a learned cost is known to a few digits only."""
    optimizer = Optimizer(PLANE, budget=1.0, cost=cost, seed=0)
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        optimizer.tell(trial, bowl(trial.params), cost=0.1)
    assert len(optimizer.trials) == 10
    assert optimizer.spent == pytest.approx(1.0)


@pytest.mark.parametrize("budget", [20, 30, 40, 49, 50])
def test_start_takes_its_share_of_a_small_budget_where_all_trials_cost_the_same(budget):
    """Ten starting points are asked for; a fifth of the budget may buy fewer, yet not none."""
    space = {f"x{k}": Float(0, 1) for k in range(4)}
    optimizer = Optimizer(space, budget=budget, cost=pbgi.UniformCost(), n_startup_trials=10, seed=0)
    while "index" not in (trial := optimizer.ask()).record:
        optimizer.tell(trial, sum(trial.params.values()))
    assert trial.number == min(10, budget // 5)


def test_budget_needs_costs():
    optimizer = Optimizer(PLANE, budget=10, seed=0)
    with pytest.raises(InvalidInputError, match="cost must be told, since the budget counts it"):
        optimizer.tell(optimizer.ask(), 1.0)
    with pytest.raises(InvalidInputError, match="nothing is known of costs yet"):
        optimizer.fail(0)
    optimizer.fail(0, cost=2.0)
    optimizer.fail(optimizer.ask())  # now there is something to charge
    assert optimizer.spent > 2.0
    counted = Optimizer(PLANE, budget=10, cost=pbgi.UniformCost(), seed=0)
    run(counted, 10, cost=None)
    assert counted.spent == 10
    assert counted.should_stop().rule == "BudgetSpent"


def test_decimals_are_numbers():
    space = {"x": Float(Decimal("0.0"), Decimal("1.5"))}
    price = pbgi.KnownCost(lambda _: Decimal("0.25"))
    optimizer = Optimizer(space, budget=Decimal("10.0"), cost=price, seed=0)
    trial = optimizer.enqueue({"x": Decimal("0.5")})
    told = optimizer.tell(trial, Decimal("0.125"), cost=Decimal("0.25"))
    assert (told.params["x"], told.value, told.cost, optimizer.budget) == (0.5, 0.125, 0.25, 10.0)
    assert optimizer.ask().predicted_cost == pytest.approx(0.25)
    assert pbgi.PBGI(Decimal("0.5")).cost_scale == 0.5
    with pytest.raises(InvalidInputError, match="budget must be a positive, finite number"):
        Optimizer(space, budget=Decimal("sNaN"))
    with pytest.raises(InvalidInputError, match="low must be finite"):
        Float(Decimal("-Infinity"), 1.0)


# Charges that are no observations -----------------------------------------------------------------------------------


def steep_cost(trial):
    return 10.0 ** (3.0 * trial.params["x"])


@pytest.mark.parametrize("end", [Optimizer.fail, Optimizer.interrupt])
@pytest.mark.parametrize("seed", range(8))
def test_a_cheap_crash_does_not_make_everything_look_free(end, seed):
    optimizer = Optimizer({"x": pbgi.Float(0, 1)}, budget=1000, seed=seed)
    end(optimizer, optimizer.ask(), cost=1e-9, message="crash")
    following = optimizer.ask()
    assert following.predicted_cost is None  # of what a success costs nothing is known
    assert steep_cost(following) < 0.2 * 1000


def test_costs_of_failures_are_charged_and_not_learned():
    points = [{"x": x} for x in (0.1, 0.5, 0.9)]
    told = Optimizer({"x": pbgi.Float(0, 1)}, budget=1000, seed=0)
    crashed = Optimizer({"x": pbgi.Float(0, 1)}, budget=1000, seed=0)
    for optimizer in (told, crashed):
        for x in (0.2, 0.5, 0.8):
            trial = optimizer.enqueue({"x": x})
            optimizer.tell(trial, x, cost=steep_cost(trial))
    for x in (0.3, 0.6, 0.9):
        crashed.fail(crashed.enqueue({"x": x}), cost=1e-3)
    assert crashed.spent == pytest.approx(told.spent + 3e-3, rel=1e-12)
    np.testing.assert_array_equal(crashed.predict(points).cost, told.predict(points).cost)


def test_a_charge_is_paid_and_not_learned():
    optimizer = Optimizer({"x": pbgi.Float(0, 1)}, budget=1000, seed=0)
    for x in (0.2, 0.5, 0.8):
        optimizer.tell(optimizer.enqueue({"x": x}), x, cost=10.0)
    optimizer.tell(optimizer.enqueue({"x": 0.4}), 0.4, charge=500.0)
    assert optimizer.spent == 530.0
    assert optimizer.predict([{"x": 0.4}]).cost == pytest.approx(10.0, rel=1e-6)
    with pytest.raises(InvalidInputError, match="charge must be None for an observation from elsewhere"):
        optimizer.tell({"x": 0.1}, 1.0, charge=1.0)


def test_a_failure_without_any_cost_is_charged_what_successes_cost():
    optimizer = Optimizer({"x": pbgi.Float(0, 1)}, budget=1000, seed=0)
    first, second = optimizer.ask(2)
    assert second.predicted_cost is None
    optimizer.tell(first, 1.0, cost=40.0)
    assert optimizer.typical_cost == 40.0
    assert optimizer.fail(second).charged == 40.0


def test_values_from_elsewhere_without_costs_do_not_send_the_first_trial_into_a_corner():
    optimizer = Optimizer({"x": pbgi.Float(0, 1)}, budget=1000, seed=0)
    for x in (0.0, 0.3, 0.6, 0.9, 1.0):
        optimizer.tell({"x": x}, -x)  # the best lies where a trial would cost all there is
    assert steep_cost(optimizer.ask()) < 0.2 * 1000


def test_an_interrupted_trial_says_nothing_of_its_point():
    optimizer = Optimizer({"k": pbgi.Integer(1, 3)}, cost=pbgi.UniformCost(), budget=10, seed=0)
    first = optimizer.ask()
    optimizer.interrupt(first, message="Ctrl-C")
    assert optimizer.spent == 1.0
    tried = []
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        tried.append(trial.params["k"])
        optimizer.tell(trial, 1.0)
    assert sorted(tried) == [1, 2, 3]
    again = Optimizer.from_json(optimizer.to_json())
    assert again.trials == optimizer.trials


def test_interruptions_do_not_keep_the_search_from_a_region():
    def run_with(end):
        optimizer = Optimizer({"x": pbgi.Float(0, 1)}, seed=0)
        for x in (0.0, 0.4, 1.0):
            optimizer.tell({"x": x}, (x - 0.7) ** 2, cost=1.0)
        for x in (0.66, 0.7, 0.74):
            end(optimizer, optimizer.enqueue({"x": x}), cost=1.0)
        return min(abs(optimizer.ask().params["x"] - x) for x in (0.66, 0.7, 0.74))

    assert run_with(Optimizer.fail) >= 0.045  # FAILURE_RADIUS, a little less by age
    assert run_with(Optimizer.interrupt) < 0.045


def test_a_late_value_is_taken():
    optimizer = Optimizer({"x": pbgi.Float(0, 1)}, budget=100, seed=0)
    trial = optimizer.ask()
    optimizer.fail(trial, cost=3.0, message="not heard of for an hour")
    late = optimizer.tell(trial, 0.5, cost=4.0)
    assert (late.value, optimizer.spent, optimizer.best) == (0.5, 4.0, late)
    assert optimizer.should_stop() is None


@pytest.mark.parametrize(("n", "budget"), [(10, 7), (10, 1)])
def test_a_batch_that_runs_out_is_short(n, budget):
    optimizer = Optimizer(PLANE, cost=pbgi.UniformCost(), budget=budget, seed=0)
    batch = optimizer.ask(n)
    assert batch == list(optimizer.trials)
    assert len(batch) == budget
    with pytest.raises(pbgi.NothingLeftError):
        optimizer.ask(n)
    assert len(optimizer.trials) == budget


def test_a_batch_of_a_small_space_is_short():
    optimizer = Optimizer({"k": pbgi.Integer(1, 3)}, seed=0)
    assert sorted(trial.params["k"] for trial in optimizer.ask(10)) == [1, 2, 3]


def test_a_price_that_breaks_in_the_middle_of_a_batch_loses_no_trial():
    calls = []

    def price(params):
        calls.append(params)
        if broken:
            raise KeyError("region")
        return 1.0

    broken = False
    optimizer = Optimizer(PLANE, cost=pbgi.KnownCost(price), budget=100, seed=0)
    original, asked = optimizer.ask, []

    def ask(n=None):
        nonlocal broken
        broken = n is None and len(asked) == 2
        trial = original(n)
        if n is None:
            asked.append(trial)
        return trial

    optimizer.ask = ask
    assert optimizer.ask(5) == asked == list(optimizer.trials)
    assert len(asked) == 2


# Saving ---------------------------------------------------------------------------------------------------------------


def test_json_holds_everything():
    stop = pbgi.BudgetSpent() | pbgi.MaxTrials(9)
    optimizer = Optimizer(SPACE, budget=50, direction="maximize", policy=pbgi.LogEICC(), stop=stop, seed=4)
    run(optimizer, 5, value=lambda p: p["lr"], cost=lambda _: 1.0)
    again = Optimizer.from_json(optimizer.to_json())
    assert again.to_json() == optimizer.to_json()
    assert again.trials == optimizer.trials
    assert again.ask().params == optimizer.ask().params


class Flat:
    """A model of other making: everything is believed to be like the mean of what was seen."""

    noisy = False
    hyperparameters = None

    def fit(self, X, values, *, categorical, start):
        assert categorical.tolist() == [False, False]
        assert start is None
        self.seen = X, values.mean()
        return self

    def posterior(self, X):
        return np.full(len(X), self.seen[1]), np.ones(len(X)) + 0.1 * X[:, 0]

    def posterior_with_grad(self, X):
        return *self.posterior(X), np.zeros(X.shape), np.array([[0.1, 0.0]] * len(X))

    def condition_on_pending(self, X):  # noqa: ARG002
        return self


def test_a_model_of_other_making_decides_and_must_be_given_again():
    optimizer = Optimizer(PLANE, policy=pbgi.UCB(), cost=pbgi.UniformCost(), model=Flat(), n_startup_trials=3, seed=0)
    run(optimizer, 3)
    assert optimizer.ask().params["x"] == 1.0  # where it is least sure
    text = optimizer.to_json()
    with pytest.raises(InvalidInputError, match="model must be given again, a Flat"):
        Optimizer.from_json(text)
    again = Optimizer.from_json(text, model=Flat())
    assert again.ask().params == optimizer.ask().params


class Corner:
    def propose(self, snapshot, rng):  # noqa: ARG002
        return pbgi.snapshot.Proposal(np.array([1.0, 0.0]), 1.0)


@pytest.mark.parametrize("ends", ["failed", "told"])
def test_one_trial_says_too_little_of_others_to_end_the_run(ends):
    """Two choices, nothing in between: what the other one costs is as likely below what the first cost as above."""
    optimizer = Optimizer({"x": pbgi.Integer(1, 2)}, budget=20, seed=0)
    first = optimizer.ask()
    optimizer.fail(first, cost=6.0) if ends == "failed" else optimizer.tell(first, 1.0, cost=6.0)
    assert optimizer.should_stop() is None
    second = optimizer.ask()
    assert second.params != first.params
    if ends == "failed":  # what a crash has cost says nothing of what a success costs
        assert second.predicted_cost is None
    else:
        assert second.predicted_cost == pytest.approx(6.0, rel=1e-3)


def test_few_trials_of_one_cost_use_up_the_budget():
    optimizer = Optimizer({f"x{k}": pbgi.Float(0, 1) for k in range(4)}, budget=6, seed=0)
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        optimizer.tell(trial, trial.params["x0"], cost=1.0)
    assert optimizer.spent == 6.0


def test_a_policy_of_other_making_decides_and_must_be_given_again():
    optimizer = Optimizer(PLANE, policy=Corner(), cost=pbgi.UniformCost(), n_startup_trials=3, seed=0)
    run(optimizer, 3)
    text = optimizer.to_json()
    corner = optimizer.ask().params
    assert corner["x"] == 1.0
    with pytest.raises(InvalidInputError, match="policy must be given again, a Corner"):
        Optimizer.from_json(text)
    with pytest.raises(InvalidInputError, match="policy must be given again, a Corner"):
        Optimizer.from_json(text, policy=pbgi.UCB())
    assert Optimizer.from_json(text, policy=Corner()).ask().params == corner


def test_known_hyperparameters_survive_json_and_are_not_fitted():
    known = Hyperparameters((0.3, 0.4), 2.0, 1e-4)
    optimizer = Optimizer(PLANE, model=pbgi.GPConfig(hyperparameters=known, outputs="plain"), seed=0)
    run(optimizer, 8)
    trial = optimizer.ask()
    assert trial.record["value_model"] == [0.3, 0.4, 2.0, 1e-4]
    again = Optimizer.from_json(optimizer.to_json())
    assert again.to_json() == optimizer.to_json()
    assert again.ask().params == optimizer.ask().params


def test_functions_must_be_given_again():
    optimizer = Optimizer(PLANE, cost=pbgi.KnownCost(price), seed=0)
    run(optimizer, 7, cost=None)
    text = optimizer.to_json()
    with pytest.raises(InvalidInputError, match="cost must be given again, a KnownCost"):
        Optimizer.from_json(text)
    assert Optimizer.from_json(text, cost=pbgi.KnownCost(price)).ask().params == optimizer.ask().params


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("seed"), "missing: 'seed'"),
        (lambda d: d.update(surprise=1), "unknown: 'surprise'"),
        (lambda d: d.update(format=99), "format must be 1; got 99"),
        (lambda d: d["policy"].update(kind="os.system"), "kind of policy must be one of"),
        (lambda d: d["policy"].update(decay=0.5), "decay must be greater than 1"),
        (lambda d: d["model"].update(kernel="linear"), "kernel"),
        (lambda d: d["history"]["trials"][0].update(value="1"), "value of trial 0"),
        (lambda d: d["history"]["trials"][0]["params"].update(x=3.0), "x"),
        (lambda d: d["policy"].update(kind=[1]), r"kind of policy must be one of .* got \[1\]"),
        (lambda d: d["model"].update(noise_prior="none"), "noise_prior must be a GammaPrior or LogNormalPrior; got 'n"),
        (lambda d: d["model"]["noise_prior"].update(concentration=1e308), "a density that floats can hold"),
        (lambda d: d["model"].update(hyperparameters=True), "hyperparameters must be None or Hyperparameters"),
        (lambda d: d["history"]["trials"][0]["record"].update(seen=10**400), "must be a finite number or a list"),
    ],
)
def test_json_from_elsewhere_is_checked(change, message):
    optimizer = Optimizer(PLANE, seed=0)
    run(optimizer, 2)
    data = json.loads(optimizer.to_json())
    change(data)
    with pytest.raises(InvalidInputError, match=message):
        Optimizer.from_json(json.dumps(data))
    for text in ("not json", "[" * 100_000, '{"a":' * 100_000):
        with pytest.raises(InvalidInputError, match="text must be what to_json wrote"):
            Optimizer.from_json(text)


def test_a_number_too_large_for_an_array_of_floats_is_a_note_all_the_same():
    optimizer = Optimizer(PLANE, seed=0)
    run(optimizer, 4)
    data = json.loads(optimizer.to_json())
    trials = data["history"]["trials"]
    noted = [trial["record"]["value_model"] for trial in trials if "value_model" in trial["record"]]
    noted[-1][-1] = 10**30
    assert Optimizer.from_json(json.dumps(data)).ask().number == 4


# Whatever comes -------------------------------------------------------------------------------------------------------

parameters = st.one_of(
    st.builds(Float, st.floats(-1e3, 0), st.floats(0.1, 1e3)),
    st.builds(Float, st.floats(1e-6, 1e-3), st.floats(1e-2, 1e3), log=st.just(True)),
    st.builds(Integer, st.integers(-5, 0), st.integers(0, 30)),
    st.builds(Categorical, st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True)),
)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
spaces = st.dictionaries(names, parameters, min_size=1, max_size=4)


@settings(max_examples=25)
@given(spaces, st.data())
def test_any_space_and_history(space, data):
    optimizer = Optimizer(space, seed=data.draw(st.integers(0, 100)), budget=data.draw(st.none() | st.floats(1, 100)))
    running, expected = [], 0.0
    for _ in range(data.draw(st.integers(1, 12))):
        if optimizer.should_stop() is not None:
            break
        running.append(optimizer.ask())
        optimizer.space.check(running[-1].params)
        if data.draw(st.booleans()):
            trial = running.pop(data.draw(st.integers(0, len(running) - 1)))
            cost = data.draw(st.floats(1e-3, 1e3))
            expected += cost
            if data.draw(st.integers(0, 4)):
                optimizer.tell(trial, data.draw(st.floats(-1e9, 1e9)), cost=cost)
            else:
                optimizer.fail(trial, cost=cost)
    assert optimizer.spent == pytest.approx(expected, rel=1e-12)
    assert Optimizer.from_json(optimizer.to_json()).trials == optimizer.trials
    if math.isfinite(optimizer.space.n_points):
        keys = [optimizer.space.key(t.params) for t in optimizer.trials]
        assert len(keys) == len(set(keys))


# What a user relies on ------------------------------------------------------------------------------------------------


# One door -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_trials_from_elsewhere_are_a_history(direction):
    """The trials of one optimizer make another that goes on the same, to the bit."""
    optimizer = Optimizer({"x": Float(0, 1), "k": Integer(1, 5)}, direction=direction, budget=30.0, seed=4)
    for n in range(7):
        trial = optimizer.ask()
        if n == 3:
            optimizer.fail(trial, cost=0.5, message="broken")
        elif n == 5:
            optimizer.interrupt(trial, cost=0.25)
        elif n != 6:
            optimizer.tell(trial, trial.params["x"] * trial.params["k"], cost=1.0 + trial.params["x"])
    same = Optimizer.of(optimizer.space, direction, optimizer.settings, optimizer.trials)
    assert (same.trials, same.spent, same.reserved) == (optimizer.trials, optimizer.spent, optimizer.reserved)
    assert same.ask() == optimizer.ask()
    assert same.to_json() == optimizer.to_json()


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([(1, {"x": 0.5})], "numbers of trials must be 0, 1, 2, ... without gap or repetition; got number 1"),
        ([(0, {"x": 0.5}), (0, {"x": 0.5})], "got number 0 at position 1"),
        ([(0, {"x": 1.5})], "parameter 'x' must be"),
        ([(0, {"y": 0.5})], "missing: 'x'"),
    ],
)
def test_a_history_of_other_trials_is_refused(trials, message):
    made = [Trial(number, params, TrialState.RUNNING) for number, params in trials]
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        Optimizer.of(Space({"x": Float(0, 1)}), "minimize", Settings(seed=0), made)


def test_another_direction_is_refused():
    with pytest.raises(InvalidInputError, match="direction must be 'minimize' or 'maximize'; got 'up'"):
        Optimizer.of(Space({"x": Float(0, 1)}), "up", Settings())


def test_without_noise_the_best_trial_is_recommended():
    optimizer = Optimizer(PLANE, cost=pbgi.UniformCost(), seed=0)
    assert optimizer.recommended is None
    for _ in range(15):
        trial = optimizer.ask()
        optimizer.tell(trial, bowl(trial.params))
    recommended = optimizer.recommended
    assert recommended.trial == optimizer.best
    assert recommended.low <= recommended.median <= recommended.high
    assert recommended.median == pytest.approx(optimizer.best.value, abs=0.05)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_lucky_value_is_best_and_not_recommended(sign):
    """Ten noisy values at a good point and one at a bad point that was lucky."""
    direction = "minimize" if sign > 0 else "maximize"
    optimizer = Optimizer({"x": Float(0, 1)}, direction=direction, model=pbgi.GPConfig(noisy=True), seed=0)
    noise = np.random.default_rng(0)
    for x in np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 8):
        optimizer.tell({"x": float(x)}, sign * ((x - 0.3) ** 2 + 0.1 * noise.standard_normal()))
    optimizer.tell({"x": 0.9}, sign * -0.4)
    assert optimizer.best.params["x"] == 0.9
    assert optimizer.recommended.trial.params["x"] != 0.9
    assert optimizer.recommended.low < sign * 0.0 + 0.1
    assert optimizer.recommended.high - optimizer.recommended.low < 0.3


def test_one_point_is_recommended_without_a_model():
    optimizer = Optimizer({"x": 1}, seed=0)
    optimizer.tell({"x": 1}, 3.0)
    recommended = optimizer.recommended
    assert (recommended.median, recommended.low, recommended.high) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("seed", range(4))
def test_every_choice_is_tried_early(seed):
    space = {"kind": Categorical(list("abcde")), "x": Float(0, 1)}
    optimizer = Optimizer(space, cost=pbgi.UniformCost(), budget=100, seed=seed)
    for _ in range(7):
        trial = optimizer.ask()
        optimizer.tell(trial, trial.params["x"])
    assert {t.params["kind"] for t in optimizer.trials} == set("abcde")


@pytest.mark.parametrize("seed", range(4))
def test_a_choice_is_not_left_for_good_after_one_bad_look(seed):
    """Choice b is the better one at its best x and was first seen far from it."""
    optimizer = Optimizer({"kind": Categorical(["a", "b"]), "x": Float(0, 1)}, cost=pbgi.UniformCost(), seed=seed)
    optimizer.tell({"kind": "a", "x": 0.5}, 0.3, cost=1.0)
    optimizer.tell({"kind": "b", "x": 0.9}, 2.0, cost=1.0)
    for _ in range(20):
        trial = optimizer.ask()
        kind, x = trial.params["kind"], trial.params["x"]
        optimizer.tell(trial, 0.25 + (x - 0.5) ** 2 if kind == "a" else 4.0 * (x - 0.2) ** 2, cost=1.0)
    assert optimizer.best.params["kind"] == "b"


@pytest.mark.parametrize("seed", range(4))
def test_with_a_small_budget_the_first_trials_do_not_sit_on_one_spot(seed):
    """The middle costs an eighth of the budget; no two of the first five trials are near each other."""
    space = {"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1), "kind": Categorical(["x", "y"])}
    optimizer = Optimizer(space, budget=8.0, seed=seed)
    points = []
    for _ in range(5):
        trial = optimizer.ask()
        points.append([trial.params[name] for name in "abc"])
        optimizer.tell(trial, trial.params["a"] ** 2, cost=0.5 + trial.params["b"])
    for i, here in enumerate(points):
        for there in points[i + 1 :]:
            assert max(abs(p - q) for p, q in zip(here, there, strict=True)) > 0.1


@pytest.mark.parametrize("budget", [300.0, 1000.0])
def test_a_learned_cost_does_not_overdraw_the_budget(budget):
    """Costs from 1 to 1000, not known beforehand: in eight runs at most one may overspend, and by little."""
    shares = []
    for seed in range(8):
        optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, budget=budget, seed=seed)
        while optimizer.should_stop() is None:
            trial = optimizer.ask()
            x, y = trial.params.values()
            optimizer.tell(trial, (x - 0.4) ** 2 + (y - 0.6) ** 2, cost=10.0 ** (3 * x))
        shares.append(optimizer.spent / budget)
    assert sum(share > 1.0 + 1e-9 for share in shares) <= 1
    assert max(shares) < 1.1
    assert np.mean(shares) > 0.95


@pytest.mark.parametrize("late", [0, 1])
def test_a_trial_that_began_before_costs_were_known_is_held_at_a_typical_cost(late):
    # Two at a time, each costs 1; one of the first two outlasts all others, and must still fit the budget of 8.
    optimizer = Optimizer({"x": Float(0, 1)}, budget=8, seed=0)
    first = [optimizer.ask(), optimizer.ask()]
    slow = first[late]
    assert optimizer.reserved == 0.0
    optimizer.tell(first[1 - late], 0.5, cost=1.0)
    assert optimizer.reserved == 1.0
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        optimizer.tell(trial, trial.params["x"], cost=1.0)
    optimizer.tell(slow, 0.1, cost=1.0)
    assert optimizer.spent == 8.0
