"""The start: spread out, cheap where the price is known, within its allowance, and from the middle where it is not."""

import math

import numpy as np
import pytest
from engine_fixtures import FINITE, LINE, MIXED, SQUARE, cube, one_thread  # noqa: F401

from pbgi import PBGI, GittinsStop
from pbgi.cost import KnownCost, LearnedCost, UniformCost
from pbgi.gp.config import GPConfig
from pbgi.optimizer import Optimizer
from pbgi.parameter import Categorical, Float, Integer
from pbgi.space import Space
from pbgi.startup import START_SHARE, START_WARINESS, default_n_startup, start_point

UNIFORM = UniformCost().fit(LINE, np.empty((0, 1)), np.empty(0), GPConfig(), None)


def known(space, price):
    return KnownCost(price).fit(space, np.empty((0, space.dimension)), np.empty(0), GPConfig(), None)


def steep(params):
    """From 1 to 1000 along the first parameter."""
    return 1000.0 ** next(iter(params.values()))


def start(space, n, cost, allowance=math.inf, seed=0):
    """A whole start, one point after the other."""
    seen = np.empty((0, space.dimension))
    for k in range(n):
        proposal = start_point(space, seen, cost, allowance, None, np.random.default_rng([seed, k]))
        seen = np.vstack([seen, proposal.x])
    return seen


def least_distance(X):
    gaps = np.linalg.norm(X[:, None] - X[None], axis=2)
    return gaps[np.triu_indices(len(X), 1)].min()


def test_default_number_of_points():
    assert [default_n_startup(cube(d)) for d in (1, 4, 6, 16)] == [3, 3, 3, 8]
    assert default_n_startup(Space({"a": Categorical(list("abcde")), "b": Categorical(list("xy"))})) == 5
    assert default_n_startup(Space({"a": Categorical([str(k) for k in range(50)])})) == 8
    assert default_n_startup(Space({"fixed": 1})) == 3
    assert [default_n_startup(cube(d), stops_early=True) for d in (1, 4, 16)] == [4, 10, 34]


def test_a_run_that_may_stop_early_looks_around_first():
    """A few values on a plain would say that nothing is worth its price."""
    space = {"x": Float(0, 1), "y": Float(0, 1)}
    assert Optimizer(space, policy=PBGI(0.1), seed=0).n_startup_trials == 6
    assert Optimizer(space, budget=10, stop=GittinsStop(0.1), seed=0).n_startup_trials == 6
    assert Optimizer(space, budget=10, seed=0).n_startup_trials == 3


@pytest.mark.parametrize("space", [LINE, cube(3), MIXED, FINITE], ids=["line", "cube", "mixed", "finite"])
@pytest.mark.parametrize("cost", [None, UNIFORM], ids=["unknown", "uniform"])
def test_points_lie_in_the_space(space, cost):
    X = start(space, 6, cost)
    assert ((X >= 0.0) & (X <= 1.0)).all()
    np.testing.assert_array_equal(space.snap(X), X)
    assert len(np.unique(X, axis=0)) == 6


@pytest.mark.parametrize("d", [1, 2, 5])
def test_points_are_spread_out(d):
    """Farther apart than random points, and than a third of the best that can be on a line."""
    n = 2 * (d + 1)
    ours = [least_distance(start(cube(d), n, UNIFORM, seed=seed)) for seed in range(10)]
    rng = np.random.default_rng(0)
    random = [least_distance(rng.random((n, d))) for _ in range(200)]
    assert min(ours) > np.quantile(random, 0.95)
    if d == 1:
        assert min(ours) > 1 / 3 / (n - 1)


def test_same_state_same_point_other_seed_other_point():
    seen = np.array([[0.3, 0.6]])
    a, b, c = (start_point(SQUARE, seen, UNIFORM, math.inf, None, np.random.default_rng(s)).x for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_categories_count_as_far_apart():
    """Once a choice has been tried, any other is as good: the ends of the list are no farther than its neighbors."""
    space = Space({"x": Float(0.0, 1.0), "c": Categorical(list("abcdefghijkl"))})
    levels = space.grids[1]
    seen = np.array([[0.0, levels[5]], [0.5, levels[5]], [1.0, levels[5]]])
    chosen = [start_point(space, seen, UNIFORM, math.inf, None, np.random.default_rng(s)).x[1] for s in range(20)]
    assert levels[5] not in chosen
    assert not set(chosen) <= {levels[0], levels[11]}


# Costs ----------------------------------------------------------------------------------------------------------------


def test_cheap_points_are_preferred():
    """Against the same start with a uniform cost; and still spread out."""
    price = known(SQUARE, steep)
    for seed in range(5):
        cheap, blind = (start(SQUARE, 6, cost, seed=seed) for cost in (price, UNIFORM))
        assert (1000.0 ** cheap[:, 0]).mean() < 0.7 * (1000.0 ** blind[:, 0]).mean()
        assert least_distance(cheap) > 0.1


@pytest.mark.parametrize("allowance", [300.0, 10.0, 1.5])
@pytest.mark.parametrize("space", [LINE, SQUARE, cube(4)], ids=["line", "square", "cube"])
def test_allowance_is_kept(space, allowance):
    price = known(space, steep)
    seen = np.empty((0, space.dimension))
    for k in range(6):
        proposal = start_point(space, seen, price, allowance, None, np.random.default_rng(k))
        assert proposal.predicted_cost == pytest.approx(1000.0 ** proposal.x[0], rel=1e-9)
        assert proposal.predicted_cost <= allowance * (1 + 1e-12)
        seen = np.vstack([seen, proposal.x])
    assert len(np.unique(seen, axis=0)) == 6


@pytest.mark.parametrize("allowance", [0.99, 0.0, -1.0])
def test_nothing_fits(allowance):
    assert (
        start_point(SQUARE, np.empty((0, 2)), known(SQUARE, steep), allowance, None, np.random.default_rng(0)) is None
    )


def test_an_affordable_corner_is_found_however_small():
    """Of 512 candidates none lies where the mean of four coordinates is below 1/1000."""
    space = cube(4)
    price = known(space, lambda p: 1.0 + 1000.0 * sum(p.values()) / 4)
    proposal = start_point(space, np.full((1, 4), 0.5), price, 2.0, None, np.random.default_rng(0))
    assert proposal.predicted_cost <= 2.0
    assert proposal.x.mean() <= 0.001 + 1e-12


def test_middle_first_when_nothing_is_known_of_the_cost():
    for space in (LINE, cube(3), MIXED):
        nothing = np.empty((0, space.dimension))
        proposal = start_point(space, nothing, None, 5.0, None, np.random.default_rng(0))
        np.testing.assert_array_equal(proposal.x, space.snap(np.full(space.dimension, 0.5)))
        assert proposal.predicted_cost is None


def test_no_need_for_the_middle_without_a_budget():
    places = {
        float(start_point(LINE, np.empty((0, 1)), None, math.inf, None, np.random.default_rng(seed)).x[0])
        for seed in range(10)
    }
    assert len(places) == 10


def test_unknown_cost_promises_nothing():
    """The second of two points started before any cost came in: no price to hold it to, and none promised."""
    proposal = start_point(SQUARE, np.full((1, 2), 0.5), None, 1e-9, None, np.random.default_rng(0))
    assert proposal.predicted_cost is None
    assert np.linalg.norm(proposal.x - 0.5) > 0.5


def test_learned_cost_must_fit_with_room_for_surprises():
    """One trial in the middle cost 1: how far out the next may go depends on the room left for surprises."""
    cost = LearnedCost().fit(SQUARE, np.full((1, 2), 0.5), np.array([1.0]), GPConfig(), None)
    reach = []
    for allowance in (4.0, 20.0, 1e9):
        x = start_point(SQUARE, np.full((1, 2), 0.5), cost, allowance, None, np.random.default_rng(0)).x[None]
        mean = (cost.log_moment(x, 1.0) - cost.log_moment(x, -1.0)) / 2
        variance = cost.log_moment(x, 1.0) + cost.log_moment(x, -1.0)
        assert math.exp(mean[0] + START_WARINESS * 2.5 * math.sqrt(variance[0])) <= allowance * (1 + 1e-9)
        reach.append(np.linalg.norm(x - 0.5))
    assert reach[0] < reach[1] < reach[2]


def test_unit_of_cost_does_not_matter():
    for unit in (1e-3, 60.0):
        here = start(SQUARE, 5, known(SQUARE, steep), 20.0)
        there = start(SQUARE, 5, known(SQUARE, lambda p, unit=unit: unit * steep(p)), 20.0 * unit)
        np.testing.assert_array_equal(here, there)


# Excluded points ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [None, UNIFORM], ids=["unknown", "uniform"])
def test_finite_space_is_gone_through_without_repetition(cost):
    seen = np.empty((0, 2))
    for k in range(12):
        proposal = start_point(FINITE, seen, cost, math.inf, seen, np.random.default_rng(k))
        assert not (seen == proposal.x).all(axis=1).any()
        seen = np.vstack([seen, proposal.x])
    assert start_point(FINITE, seen, cost, math.inf, seen, np.random.default_rng(99)) is None


def test_the_only_affordable_point_left():
    """Nine of ten levels are excluded or too dear."""
    space = Space({"n": Integer(1, 10)})
    levels = space.grids[0][:, None]
    price = known(space, lambda p: float(p["n"]))
    proposal = start_point(space, levels[:4], price, 5.0, levels[:4], np.random.default_rng(0))
    assert space.from_unit(proposal.x) == {"n": 5}
    assert start_point(space, levels[:5], price, 5.0, levels[:5], np.random.default_rng(0)) is None


def test_one_point_left_of_many():
    """Far more points than candidates: the last one is found among all of them."""
    space = Space({"a": Integer(1, 50), "b": Integer(1, 50)})
    X = np.array([[a, b] for a in space.grids[0] for b in space.grids[1]])
    keep = 1234
    excluded = np.delete(X, keep, axis=0)
    proposal = start_point(space, excluded, UNIFORM, math.inf, excluded, np.random.default_rng(0))
    np.testing.assert_array_equal(proposal.x, X[keep])


def started(dear, seed, budget=100.0):
    """A run as far as its start goes, with a learned cost; the category "c" costs so many times what "a" does."""
    factor = {"a": 1.0, "b": 1.5, "c": dear}
    space = {"x": Float(0, 1), "y": Float(0, 1), "kind": Categorical(list(factor))}
    optimizer = Optimizer(space, budget=budget, seed=seed)
    for _ in range(2 * (3 + 1)):
        trial = optimizer.ask()
        optimizer.tell(trial, trial.params["x"], cost=factor[trial.params["kind"]] * (1.0 + trial.params["y"]))
    return optimizer


@pytest.mark.parametrize("seed", range(5))
def test_every_category_is_tried_although_nothing_is_known_of_its_cost(seed):
    assert {trial.params["kind"] for trial in started(2.0, seed).trials} == {"a", "b", "c"}


@pytest.mark.parametrize("seed", range(5))
def test_a_category_that_turns_out_dear_surprises_the_start_once(seed):
    """It costs from a tenth to a fifth of the budget, and nothing had told so."""
    optimizer = started(10.0, seed)
    start = [trial for trial in optimizer.trials if "index" not in trial.record]
    assert sum(trial.params["kind"] == "c" for trial in start) <= 1
    assert sum(trial.charged for trial in start) <= START_SHARE * optimizer.budget + 20.0
