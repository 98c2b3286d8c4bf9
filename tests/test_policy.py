"""Policies: one suite that all of them pass, and what each of them promises, against brute force on dense grids."""

import dataclasses
import json
import math
import random

import numpy as np
import pytest
from engine_fixtures import (
    FINITE,
    LINE,
    MIXED,
    SQUARE,
    add_trial,
    awkward_values,
    build_snapshot,
    cube,
    expected_improvement,
    index_by_bisection,
    one_thread,  # noqa: F401
)
from scipy import stats

from pbgi import InvalidInputError
from pbgi.cost import KnownCost, LearnedCost
from pbgi.gp.config import GPConfig
from pbgi.history import History
from pbgi.parameter import Categorical, Float, Integer
from pbgi.policy import (
    EI,
    EIPC,
    PBGI,
    PBGID,
    POLICIES,
    UCB,
    LogEI,
    LogEICC,
    LogEIPC,
    RandomSearch,
    Thompson,
)
from pbgi.search.maximize import build_pool
from pbgi.serialization import from_plain, to_plain
from pbgi.space import Space

ALL = [
    PBGI(0.1),
    PBGID(),
    PBGID(initial_cost_scale=0.1, decay=3.0),
    LogEIPC(),
    LogEICC(),
    EIPC(),
    LogEI(),
    EI(),
    UCB(),
    Thompson(),
    RandomSearch(),
]
every_policy = pytest.mark.parametrize("policy", ALL, ids=lambda p: type(p).__name__ + str(len(repr(p))))
BUDGET = 100.0
DENSE = np.linspace(0.0, 1.0, 1_001)[:, None]
FINE = np.linspace(0.0, 1.0, 20_001)[:, None]


def seeded(seed=0):
    return np.random.default_rng([17, seed])


def wave(X):
    return np.sin(7 * X[:, 0]) - ((X - 0.4) ** 2).sum(axis=1)


def typical(space, n=8, seed=0, **fields):
    X = space.snap(np.random.default_rng(seed).random((n, space.dimension)))
    fields = {"budget": BUDGET, "cost": LearnedCost(), "costs": np.exp(2 * X[:, 0])} | fields
    return build_snapshot(space, X, wave(X), **fields)


def assert_valid(proposal, space):
    assert proposal.x.shape == (space.dimension,)
    assert ((proposal.x >= 0.0) & (proposal.x <= 1.0)).all()
    for coordinate, grid in zip(proposal.x, space.grids, strict=True):
        assert grid is None or coordinate in grid
    np.testing.assert_array_equal(space.snap(proposal.x), proposal.x)
    assert 0.0 < proposal.predicted_cost < math.inf
    History().add_running(space.from_unit(proposal.x), proposal.predicted_cost, proposal.record)  # takes the record


# All policies ---------------------------------------------------------------------------------------------------------


@every_policy
def test_frozen_hashable_and_survives_json(policy):
    copy = from_plain("policy", json.loads(json.dumps(to_plain(policy))), POLICIES)
    assert copy == policy
    assert hash(copy) == hash(policy)
    assert type(copy) is type(policy)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        policy.cost_scale = 3.0


def test_every_policy_is_in_the_suite():
    assert {type(policy) for policy in ALL} == set(POLICIES)


@every_policy
@pytest.mark.parametrize("space", [LINE, cube(3), MIXED], ids=["line", "cube", "mixed"])
def test_same_snapshot_and_seed_same_point_to_the_bit(policy, space):
    first, second = (policy.propose(typical(space), seeded()) for _ in range(2))
    assert_valid(first, space)
    assert first.x.tobytes() == second.x.tobytes()
    assert (first.predicted_cost, first.record) == (second.predicted_cost, second.record)


@every_policy
def test_no_global_random_state(policy):
    snapshot = typical(LINE)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    first = policy.propose(snapshot, seeded())
    after = random.getstate(), np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    np.random.seed(2)  # noqa: NPY002
    random.seed(2)
    np.testing.assert_array_equal(policy.propose(snapshot, seeded()).x, first.x)


@every_policy
@awkward_values
def test_awkward_values(policy, X, values):
    snapshot = build_snapshot(SQUARE, X, values, budget=BUDGET, cost=LearnedCost(), costs=np.arange(1.0, len(X) + 1))
    proposal = policy.propose(snapshot, seeded())
    assert_valid(proposal, SQUARE)
    if not isinstance(policy, UCB):  # the bound may be highest at a point told before, where the noise is large
        assert (np.abs(snapshot.X - proposal.x).max(axis=1) > 0.0).all()


@every_policy
@pytest.mark.parametrize("space", [SQUARE, MIXED], ids=["square", "mixed"])
def test_failed_and_pending_points(policy, space):
    rng = np.random.default_rng(5)
    failed, pending = space.snap(rng.random((3, space.dimension))), space.snap(rng.random((4, space.dimension)))
    snapshot = typical(space, failed=failed, pending=pending)
    for seed in range(2):
        proposal = policy.propose(snapshot, seeded(seed))
        assert_valid(proposal, space)
        apart = np.where(space.categorical, failed != proposal.x, np.abs(failed - proposal.x) >= 0.05)
        assert apart.any(axis=1).all()


@pytest.mark.parametrize("policy", [PBGI(0.3), LogEIPC(), EIPC()], ids=repr)
def test_failures_make_their_side_dear(policy):
    """The right half is better by a hair; five failures there, none at the peak itself, send the search left."""
    X, values = np.array([[0.2], [0.5], [0.8]]), [1.0, 0.0, 1.001]
    failed = np.array([[0.66], [0.72], [0.88], [0.94], [1.0]])
    assert policy.propose(build_snapshot(LINE, X, values), seeded()).x[0] > 0.5
    assert policy.propose(build_snapshot(LINE, X, values, failed=failed), seeded()).x[0] < 0.5


@every_policy
def test_tries_near_failures_when_there_is_nowhere_else(policy):
    """Failures every 0.08 leave no point of the line untouched."""
    proposal = policy.propose(typical(LINE, failed=np.arange(0.0, 1.04, 0.08).clip(max=1.0)[:, None]), seeded())
    assert_valid(proposal, LINE)


@every_policy
def test_finite_space_down_to_the_last_point(policy):
    levels = np.array([[a, b] for a in FINITE.grids[0] for b in FINITE.grids[1]])
    assert len(levels) == 12
    rng = np.random.default_rng(2)
    for n_left in (11, 3, 1):
        order = rng.permutation(12)
        excluded, left = levels[order[n_left:]], levels[order[:n_left]]
        snapshot = build_snapshot(FINITE, excluded, wave(excluded), budget=BUDGET, excluded=excluded)
        for seed in range(3):
            proposal = policy.propose(snapshot, seeded(seed))
            assert_valid(proposal, FINITE)
            assert (left == proposal.x).all(axis=1).any()
    snapshot = build_snapshot(FINITE, levels, wave(levels), budget=BUDGET, excluded=levels)
    assert policy.propose(snapshot, seeded()) is None


@every_policy
def test_finite_space_of_which_all_left_has_failed(policy):
    """Failed points are not excluded from what may be tried unless they are named so; there is nothing else."""
    levels = np.array([[a, b] for a in FINITE.grids[0] for b in FINITE.grids[1]])
    snapshot = build_snapshot(
        FINITE, levels[:6], wave(levels[:6]), failed=levels[6:], budget=BUDGET, excluded=levels[:6]
    )
    proposal = policy.propose(snapshot, seeded())
    assert (levels[6:] == proposal.x).all(axis=1).any()


def mean_price(params):
    return 1.0 + 20.0 * np.mean(list(params.values()))


@every_policy
@pytest.mark.parametrize("affordable", [15.0, 4.0, 1.3])
def test_never_more_than_is_affordable(policy, affordable):
    for seed in range(2):
        snapshot = typical(cube(3), cost=KnownCost(mean_price), affordable=affordable, seed=seed)
        proposal = policy.propose(snapshot, seeded(seed))
        assert_valid(proposal, cube(3))
        assert proposal.predicted_cost == pytest.approx(1.0 + 20.0 * proposal.x.mean(), rel=1e-9)
        assert proposal.predicted_cost <= affordable * (1 + 1e-12)


@every_policy
@pytest.mark.parametrize("affordable", [0.999, 1e-9, 0.0, -2.0])
def test_nothing_is_affordable(policy, affordable):
    assert policy.propose(typical(cube(3), cost=KnownCost(mean_price), affordable=affordable), seeded()) is None


@every_policy
def test_finds_the_affordable_corner_however_small(policy):
    """A pool of points has none in a corner of 1/1000 of each side; that there is one must be found by searching."""
    snapshot = typical(cube(4), cost=KnownCost(lambda p: 1.0 + 1000.0 * np.mean(list(p.values()))), affordable=2.0)
    proposal = policy.propose(snapshot, seeded())
    assert proposal.predicted_cost <= 2.0 * (1 + 1e-12)
    assert (proposal.x <= 0.004 + 1e-12).all()


@every_policy
def test_many_dimensions(policy):
    assert_valid(policy.propose(typical(cube(30), n=5), seeded()), cube(30))


@pytest.mark.parametrize("space", [cube(3), cube(12)], ids=["few", "many"])
@every_policy
def test_a_search_begins_beside_the_best_points_too(policy, space, monkeypatch):
    begun_from, snapshot = [], dataclasses.replace(typical(space, n=5), budget=BUDGET)

    def spied(*arguments, incumbents=None, **others):
        begun_from.append(incumbents)
        return build_pool(*arguments, incumbents=incumbents, **others)

    monkeypatch.setattr("pbgi.best_point.build_pool", spied)
    policy.propose(snapshot, seeded())
    best = snapshot.X[np.argsort(-snapshot.warped, kind="stable")[:3]]
    n_searches = 0 if isinstance(policy, RandomSearch) else 2 if policy == PBGID() else 1
    assert len(begun_from) == n_searches
    for incumbents in begun_from:
        np.testing.assert_array_equal(incumbents, best)


# Against brute force --------------------------------------------------------------------------------------------------


def textbook(policy, snapshot, X):
    """What the policy maximizes, from SciPy's normal distribution and the posteriors alone."""
    mean, std = snapshot.model.posterior(X)
    log_mean = (snapshot.cost.log_moment(X, 1.0) - snapshot.cost.log_moment(X, -1.0)) / 2  # of a log-normal
    log_variance = snapshot.cost.log_moment(X, 1.0) + snapshot.cost.log_moment(X, -1.0)
    improvement = expected_improvement(mean, std, snapshot.warped.max())
    if isinstance(policy, PBGI):
        return index_by_bisection(mean, std, policy.cost_scale * np.exp(log_mean + log_variance / 2))
    if isinstance(policy, PBGID):
        return index_by_bisection(mean, std, policy.initial_cost_scale * np.exp(log_mean + log_variance / 2))
    if isinstance(policy, UCB):
        t, d = snapshot.spent + 1.0, X.shape[1]
        return mean + np.sqrt(2.0 * np.log(d * t**2 * np.pi**2 / (6.0 * 0.1)) / 5.0) * std
    a = {
        LogEI: 0.0,
        EI: 0.0,
        LogEIPC: 1.0,
        EIPC: 1.0,
        LogEICC: max((snapshot.budget - snapshot.spent) / snapshot.budget, 0.0),
    }[type(policy)]
    return improvement * np.exp(-a * log_mean + a**2 * log_variance / 2)


@pytest.mark.parametrize(
    ("policy", "spent"),
    [(p, 40.0) for p in (PBGI(1e-3), PBGI(0.3), PBGI(30.0), PBGID(0.1), LogEIPC(), EIPC(), LogEI(), EI())]
    + [(p, spent) for p in (LogEICC(), UCB()) for spent in (0.0, 40.0, 80.0, 130.0)],
    ids=repr,
)
def test_proposal_maximizes_the_textbook_function(policy, spent):
    for seed in range(3):
        snapshot = typical(LINE, n=6, seed=seed, spent=spent)
        proposal = policy.propose(snapshot, seeded(seed))
        reached, dense = textbook(policy, snapshot, proposal.x[None])[0], textbook(policy, snapshot, DENSE)
        assert reached >= dense.max() - 1e-6 * np.ptp(dense)
        assert reached <= dense.max() + 1e-3 * np.ptp(dense)
        expected_cost = math.exp(snapshot.cost.log_moment(proposal.x[None], 1.0)[0])
        assert proposal.predicted_cost == pytest.approx(expected_cost, rel=1e-12)


@pytest.mark.parametrize("policy", [PBGI(0.1), UCB(), LogEIPC()], ids=repr)
def test_proposal_is_a_maximum_in_two_dimensions(policy):
    """On a grid, and among its neighbors: the weight of UCB depends on the dimension."""
    axis = np.linspace(0, 1, 101)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    for seed in range(3):
        snapshot = typical(SQUARE, n=7, seed=seed, spent=3.0)
        x = policy.propose(snapshot, seeded(seed)).x
        around = np.clip(x + 2e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), 0.0, 1.0)
        reached = textbook(policy, snapshot, x[None])[0]
        assert reached >= textbook(policy, snapshot, np.concatenate([X, around])).max() - 1e-12


def test_weight_of_the_bound_grows_with_what_was_spent():
    """Else the comparison above would not notice a wrong schedule."""
    X = np.array([[0.1], [0.4], [0.95]])
    places = [
        UCB().propose(build_snapshot(LINE, X, [0.0, 2.0, 1.0], spent=spent), seeded()).x[0] for spent in (0.0, 1e6)
    ]
    assert abs(places[0] - places[1]) > 0.05


def test_cooling_needs_a_budget():
    with pytest.raises(InvalidInputError, match=r"LogEICC cools with the budget.*budget=None"):
        LogEICC().propose(typical(LINE, budget=None), seeded())


def test_cooling_goes_from_per_cost_to_blind():
    for spent, like in ((0.0, LogEIPC()), (100.0, LogEI()), (250.0, LogEI())):
        snapshot = typical(LINE, spent=spent)
        np.testing.assert_array_equal(LogEICC().propose(snapshot, seeded()).x, like.propose(snapshot, seeded()).x)
    blind, thrifty = (policy.propose(typical(LINE), seeded()).x for policy in (LogEI(), LogEIPC()))
    assert abs(blind - thrifty) > 1e-3


def test_thompson_maximizes_the_drawn_path():
    places = []
    snapshot = typical(LINE, n=3)
    for seed in range(5):
        path, _ = snapshot.model.sample_path(seeded(seed))(DENSE)
        proposal = Thompson().propose(snapshot, seeded(seed))
        reached = snapshot.model.sample_path(seeded(seed))(proposal.x[None])[0][0]
        assert reached >= path.max() - 1e-3 * np.ptp(path)
        places.append(proposal.x[0])
    assert np.ptp(places) > 0.1


@pytest.mark.parametrize("policy", [PBGI(0.02), PBGID(), PBGID(0.02), LogEIPC(), EIPC()], ids=repr)
def test_of_two_equal_regions_the_cheap_one_is_preferred(policy):
    """The dear half is better by a hair: those blind to cost go there, the others do not."""
    X = np.array([[0.2], [0.5], [0.8]])
    step = KnownCost(lambda p: 1.0 if p["x"] < 0.5 else 50.0)
    snapshot = build_snapshot(LINE, X, [1.0, 0.0, 1.001], cost=step, budget=BUDGET)
    assert policy.propose(snapshot, seeded()).x[0] < 0.5
    for blind in (LogEI(), EI(), UCB(), LogEICC()):
        spent_up = dataclasses.replace(snapshot, spent=BUDGET)
        assert blind.propose(spent_up, seeded()).x[0] > 0.5


# Random search --------------------------------------------------------------------------------------------------------


def test_random_search_is_uniform_on_the_square():
    snapshot = typical(SQUARE)
    X = np.array([RandomSearch().propose(snapshot, seeded(seed)).x for seed in range(1600)])
    counts, _, _ = np.histogram2d(X[:, 0], X[:, 1], bins=4, range=[[0, 1], [0, 1]])
    assert stats.chisquare(counts.ravel()).pvalue > 1e-4
    assert len(np.unique(X, axis=0)) == 1600


def test_random_search_is_uniform_over_levels():
    space = Space({"x": Float(0.0, 1.0), "n": Integer(1, 5), "c": Categorical(["a", "b", "c"])})
    snapshot = typical(space)
    X = np.array([RandomSearch().propose(snapshot, seeded(seed)).x for seed in range(750)])
    counts = np.histogram2d(X[:, 1], X[:, 2], bins=(5, 3), range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(counts.ravel()).pvalue > 1e-4


def test_random_search_is_uniform_over_what_is_left_of_a_finite_space():
    levels = np.array([[a, b] for a in FINITE.grids[0] for b in FINITE.grids[1]])
    snapshot = build_snapshot(FINITE, levels[:5], wave(levels[:5]), excluded=levels[:5])
    draws = [RandomSearch().propose(snapshot, seeded(seed)).x for seed in range(700)]
    counts = [sum((x == level).all() for x in draws) for level in levels[5:]]
    assert sum(counts) == 700
    assert stats.chisquare(counts).pvalue > 1e-4


def test_random_search_ignores_values():
    a, b = typical(SQUARE), typical(SQUARE)
    b = build_snapshot(SQUARE, b.X, -10 * b.warped, budget=BUDGET)
    np.testing.assert_array_equal(RandomSearch().propose(a, seeded()).x, RandomSearch().propose(b, seeded()).x)


# PBGI-D ---------------------------------------------------------------------------------------------------------------


def rate_of(policy, history, sign=1.0):
    """The rate at which the policy proposes after this history."""
    done = [t for t in history.trials if t.value is not None]
    X = LINE.to_unit_many([t.params for t in done])
    snapshot = build_snapshot(LINE, X, [sign * t.value for t in done], sign=sign)
    proposal = policy.propose(dataclasses.replace(snapshot, trials=history.trials), seeded())
    assert proposal.record["initial_cost_scale"] == 0.8
    return proposal.record["cost_scale"]


def record(index):
    return {"index": index, "initial_cost_scale": 0.8, "cost_scale": 0.1}


def history_of(*entries, sign=1.0):
    """Trials from (index or None, value): None for a value means failed, "running" that it is."""
    history = History()
    for k, (index, value) in enumerate(entries):
        noted = {} if index is None else record(index)
        params = {"x": (k + 0.5) / len(entries)}
        if isinstance(value, float):
            add_trial(history, params, sign * value, record=noted)
        else:
            number = history.add_running(params, 1.0, noted).number
            if value is None:
                history.fail(number, 1.0)
    return history


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("entries", "fired"),
    [
        ([(None, 1.0)], 0),  # a start, without an index
        ([(None, 1.0), (2.0, 0.0)], 0),  # index above the best
        ([(None, 1.0), (1.0, 0.0)], 0),  # equal is not below
        ([(None, 1.0), (0.9, 0.0)], 1),  # below the best so far
        ([(None, 1.0), (2.0, 3.0)], 1),  # below its own value
        ([(None, 1.0), (3.0, 3.0)], 0),  # equal to its own value
        ([(None, 1.0), (2.0, 0.0), (1.5, 9.0)], 1),  # a later best does not count for an earlier trial
        ([(None, 1.0), (0.5, 0.0), (0.4, 0.0), (0.3, 0.0)], 3),  # once per trial
        ([(None, 1.0), (0.5, None)], 0),  # failed
        ([(None, 1.0), (0.5, "running")], 0),  # running
        ([(None, 1.0), (5.0, None), (0.5, 0.0), (5.0, "running")], 1),
        ([(0.5, 0.0), (None, 4.0), (3.0, 1.0)], 1),  # one without a record raises the bar
    ],
)
def test_rate_falls_when_the_index_was_below_the_best_value(entries, fired, sign):
    history = history_of((9.0, 0.0), *entries, sign=sign)  # carries the initial rate, and never fires
    assert rate_of(PBGID(), history, sign) == pytest.approx(0.8 * 0.5**fired, rel=1e-15)
    assert rate_of(PBGID(initial_cost_scale=5.0, decay=10.0), history, sign) == pytest.approx(0.8 * 0.1**fired)


def test_rate_by_a_plain_count_over_random_histories():
    rng = np.random.default_rng(0)
    total = 0
    for _ in range(20):
        entries = [(9.0, 0.0)]
        for _ in range(6):
            index = None if rng.random() < 0.3 else float(rng.normal())
            entries.append((index, rng.choice([float(rng.normal()), None, "running"], p=[0.7, 0.15, 0.15])))
        expected = sum(
            index is not None
            and isinstance(value, float)
            and index < max(v for _, v in entries[: k + 1] if isinstance(v, float))
            for k, (index, value) in enumerate(entries)
        )
        assert rate_of(PBGID(), history_of(*entries)) == 0.8 * 0.5**expected
        total += expected
    assert total > 20


def test_trials_of_another_policy_do_not_fire():
    """Their index, if any, was computed at a rate that is not this policy's; their values count."""
    history = history_of((9.0, 0.0), (None, 1.0))
    add_trial(history, {"x": 0.9}, 0.0, record={"index": -5.0, "cost_scale": 1.0})
    assert rate_of(PBGID(), history) == 0.8


def test_a_rate_found_among_values_all_alike_is_not_kept():
    """They say nothing of the unit of the objective."""
    alike, apart = (build_snapshot(LINE, [[0.2], [0.7]], values) for values in ([5.0, 5.0], [5.0, 5.1]))
    assert "initial_cost_scale" not in PBGID().propose(alike, seeded()).record
    assert "initial_cost_scale" in PBGID().propose(apart, seeded()).record
    assert PBGID(0.3).propose(alike, seeded()).record["initial_cost_scale"] == 0.3


def test_rate_after_very_many_falls_stays_positive():
    history = history_of((9.0, 0.0), *[(-1.0, 0.0)] * 5)
    assert 0.0 < rate_of(PBGID(decay=1e200), history) < 1e-300


def test_index_of_the_proposal_is_recorded():
    snapshot = typical(LINE)
    for policy in (PBGI(0.2), PBGID(0.2)):
        proposal = policy.propose(snapshot, seeded())
        mean, std = snapshot.model.posterior(proposal.x[None])
        expected = index_by_bisection(mean[0], std[0], 0.2 * proposal.predicted_cost)
        assert proposal.record["index"] == pytest.approx(expected, rel=1e-9)
        assert proposal.record["cost_scale"] == 0.2
    assert proposal.record["initial_cost_scale"] == 0.2


@pytest.mark.parametrize("seed", range(5))
def test_first_rate_is_a_share_of_the_largest_improvement_per_cost(seed):
    snapshot = typical(LINE, n=5, seed=seed)
    mean, std = snapshot.model.posterior(FINE)
    per_cost = expected_improvement(mean, std, snapshot.warped.max()) / np.exp(snapshot.cost.log_moment(FINE, 1.0))
    for policy, share in ((PBGID(), 0.05), (PBGID(initial_share=0.5), 0.5)):
        rate = policy.propose(snapshot, seeded()).record["initial_cost_scale"]
        assert rate == pytest.approx(share * per_cost.max(), rel=1e-5)


def test_first_rate_in_two_dimensions():
    axis = np.linspace(0, 1, 401)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    snapshot = typical(SQUARE, cost=KnownCost(mean_price))
    mean, std = snapshot.model.posterior(X)
    per_cost = expected_improvement(mean, std, snapshot.warped.max()) / (1.0 + 20.0 * X.mean(axis=1))
    rate = PBGID().propose(snapshot, seeded()).record["initial_cost_scale"]
    assert 0.05 * per_cost.max() * (1 - 1e-9) <= rate <= 0.05 * per_cost.max() * 1.01


def test_first_rate_is_kept():
    """What the first trial with a rate recorded is the initial rate, whatever the model says now."""
    snapshot = typical(LINE, records=[{}, record(50.0), {**record(50.0), "initial_cost_scale": 7.0}, *[{}] * 5])
    assert PBGID().propose(snapshot, seeded()).record["initial_cost_scale"] == 0.8


@pytest.mark.parametrize(("cost_unit", "value_unit", "offset"), [(3600.0, 1.0, 0.0), (1e-6, 1e9, 5.0), (1.0, 1e-9, 0)])
def test_units_do_not_matter_to_the_default(cost_unit, value_unit, offset):
    snapshot = typical(cube(3), n=10)
    costs = np.array([t.cost for t in snapshot.trials])
    moved = typical(cube(3), n=10)
    moved = build_snapshot(
        cube(3), moved.X, value_unit * (moved.warped + offset), cost=LearnedCost(), costs=cost_unit * costs
    )
    here, there = (PBGID().propose(s, seeded()) for s in (snapshot, moved))
    np.testing.assert_allclose(there.x, here.x, atol=1e-6)
    assert there.record["cost_scale"] == pytest.approx(here.record["cost_scale"] * value_unit / cost_unit, rel=1e-5)


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", None])
def test_bad_settings_are_refused(bad):
    with pytest.raises(InvalidInputError, match="cost_scale must be a positive, finite number; got"):
        PBGI(bad)
    if bad is not None:
        with pytest.raises(InvalidInputError, match="initial_cost_scale must be a positive, finite number; got"):
            PBGID(bad)
    with pytest.raises(InvalidInputError, match="decay must be a positive, finite number; got"):
        PBGID(decay=bad)


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_decay_must_make_the_rate_fall(decay):
    with pytest.raises(InvalidInputError, match="decay must be greater than 1; got"):
        PBGID(decay=decay)


@pytest.mark.parametrize("number", [np.float32(0.5), np.int64(3), np.float64(0.5), 2])
def test_numpy_numbers_survive_json(number):
    for policy in (PBGI(number), PBGID(number, decay=2 * number + 1)):
        assert from_plain("policy", json.loads(json.dumps(to_plain(policy))), POLICIES) == policy


def test_another_kind_of_policy_is_refused():
    with pytest.raises(InvalidInputError, match="kind of policy must be one of"):
        from_plain("policy", {"kind": "Guess"}, POLICIES)
    with pytest.raises(InvalidInputError, match="cost_scale must be a positive"):
        from_plain("policy", {"kind": "PBGI", "cost_scale": -1.0}, POLICIES)


def test_noise_free_model_too():
    """The paper's model, whose noise is fixed: the same suite's basics."""
    for policy in ALL:
        assert_valid(policy.propose(typical(SQUARE, config=GPConfig.paper()), seeded()), SQUARE)
