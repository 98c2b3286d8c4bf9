"""Conditions: points of random trees against a walk through the tree, and runs that must visit every branch."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pbgi
from pbgi.best_point import grids_of
from pbgi.condition import When
from pbgi.errors import InvalidInputError
from pbgi.search import build_pool, search
from pbgi.startup import neglected_branch

CLASSIFIERS = {
    "scale": pbgi.Float(0.1, 10.0, log=True),
    "model": pbgi.Categorical(["svm", "forest", "none"]),
    "C": pbgi.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "kernel": pbgi.Categorical(["rbf", "poly"], when={"model": "svm"}),
    "degree": pbgi.Integer(2, 5, when={"kernel": "poly"}),
    "depth": pbgi.Integer(1, 20, when={"model": ["forest"]}),
    "tied": pbgi.Categorical([7], when={"model": ["forest", "none"], "scale_kind": [1]}),
    "scale_kind": pbgi.Integer(1, 2, log=True),
}
SPACE = pbgi.Space(CLASSIFIERS)


@st.composite
def trees(draw):
    """Parameters with up to three values, each with conditions on some of those before it."""
    space = {}
    for i in range(draw(st.integers(2, 6))):
        n = draw(st.integers(1, 3))
        parents = draw(st.lists(st.sampled_from(list(space)), max_size=2, unique=True)) if space else []
        when = {
            name: draw(st.lists(st.sampled_from(values_of(space[name])), min_size=1, max_size=2, unique=True))
            for name in parents
        }
        is_integer = draw(st.booleans())
        space[f"p{i}"] = (
            pbgi.Integer(1, n, log=n > 1 and draw(st.booleans()), when=when or None)
            if is_integer
            else pbgi.Categorical([f"c{k}" for k in range(n)], when=when or None)
        )
    names = draw(st.permutations(list(space)))
    return {name: space[name] for name in names}


def values_of(p):
    return list(p.choices) if isinstance(p, pbgi.Categorical) else list(range(p.low, p.high + 1))


def points_of(space):
    """All points, by deciding one parameter after the other wherever its parents are decided."""
    names = sorted(space)  # p0, p1, ...: parents first
    points = [{}]
    for name in names:
        p, grown = space[name], []
        for point in points:
            there = all(parent in point and point[parent] in wanted for parent, wanted in (p.when or {}).items())
            grown += [point | {name: value} for value in values_of(p)] if there else [point]
        points = grown
    return points


@settings(max_examples=60, deadline=None)
@given(trees())
def test_the_points_of_a_tree_are_those_of_a_walk_through_it(parameters):
    space, points = pbgi.Space(parameters), points_of(parameters)
    assert space.n_points == len(points)
    X = space.to_unit_many(points)
    assert len(np.unique(X, axis=0)) == len(points)
    assert space.from_unit_many(X) == [{name: p[name] for name in space.names if name in p} for p in points]
    assert (space.snap(X) == X).all()
    assert len({space.key(p) for p in points}) == len(points)
    mask = space.conditions.mask(X) if space.conditions else np.ones(X.shape, bool)
    assert mask.tolist() == [[name in p for name in space.coordinates] for p in points]


@settings(max_examples=60, deadline=None)
@given(trees(), st.integers(0, 2**32 - 1))
def test_every_corner_of_the_cube_is_a_point(parameters, seed):
    space = pbgi.Space(parameters)
    X = np.random.default_rng(seed).random((20, space.dimension))
    points, snapped = space.from_unit_many(X), space.snap(X)
    assert all(point in points_of(parameters) for point in points)
    assert (space.to_unit_many(points) == snapped).all()
    assert (space.snap(snapped) == snapped).all()
    columns = space.columns(X)
    for i, point in enumerate(points):
        there = {name: column[i] for name, column in columns.items() if not _is_absent(column[i])}
        assert there == point


def _is_absent(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


@settings(max_examples=30, deadline=None)
@given(trees())
def test_json_and_equality(parameters):
    space = pbgi.Space(parameters)
    again = pbgi.Space.from_plain(json.loads(json.dumps(space.to_plain())))
    assert again == space
    assert hash(again) == hash(space)
    assert again.parameters == space.parameters


def test_what_is_written_without_conditions_is_what_was_always_written():
    plain = pbgi.Space({"x": pbgi.Float(0.0, 1.0), "m": pbgi.Categorical(["a", "b"])}).to_plain()
    assert plain["parameters"] == [
        {"name": "x", "kind": "float", "low": 0.0, "high": 1.0, "log": False},
        {"name": "m", "kind": "categorical", "choices": ["a", "b"]},
    ]


def test_a_parameter_shows_its_condition():
    p = pbgi.Float(0, 1, when={"model": "svm"})
    assert repr(p) == "Float(0.0, 1.0, when={'model': ['svm']})"
    assert p == pbgi.Float(0, 1, when={"model": ["svm"]}) != pbgi.Float(0, 1)
    assert hash(p) == hash(pbgi.Float(0, 1, when={"model": ("svm",)}))
    assert When({"a": 1}) != When({"a": True})


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"C": pbgi.Float(0, 1, when={"model": "svm"})}, "must name parameters of the space.*'model'"),
        ({"a": pbgi.Integer(0, 1, when={"b": 1}), "b": pbgi.Integer(0, 1, when={"a": 1})}, "in a circle; got 'a', 'b'"),
        ({"a": pbgi.Integer(0, 1, when={"a": 1})}, "in a circle"),
        ({"x": pbgi.Float(0, 1), "y": pbgi.Float(0, 1, when={"x": 0.5})}, "'x' is Float"),
        (
            {"m": pbgi.Categorical(["a", "b"]), "y": pbgi.Float(0, 1, when={"m": "c"})},
            "when of parameter 'y': 'm' must",
        ),
        ({"m": pbgi.Categorical([1, 2]), "y": pbgi.Float(0, 1, when={"m": True})}, "of the same type"),
        ({"n": pbgi.Integer(1, 65), "y": pbgi.Float(0, 1, when={"n": 3})}, "at most 64 values; 'n' has 65"),
    ],
)
def test_conditions_that_make_no_sense_are_refused(space, message):
    with pytest.raises(InvalidInputError, match=message):
        pbgi.Space(space)


@pytest.mark.parametrize("when", [{}, "model", {"model": []}, {"model": object()}, {1: "a"}])
def test_a_condition_must_be_a_mapping_of_values(when):
    with pytest.raises(InvalidInputError, match="when"):
        pbgi.Float(0, 1, when=when)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 3}, "'depth' exists only where model is 'forest'; got depth=3 with model='svm'"),
        ({"C": None}, "'C' must be given where model is 'svm'"),
        ({"degree": 2}, "'degree' exists only where kernel is 'poly'"),
        ({"speed": 2}, "unknown: 'speed'"),
        ({"kernel": "poly"}, "'degree' must be given where kernel is 'poly'"),
    ],
)
def test_a_point_has_the_active_parameters_and_no_others(change, message):
    point = {"scale": 1.0, "model": "svm", "C": 1.0, "kernel": "rbf", "scale_kind": 1}
    assert SPACE.check(point) == point
    wrong = {name: value for name, value in (point | change).items() if value is not None}
    with pytest.raises(InvalidInputError, match=message):
        SPACE.check(wrong)


def test_several_parents_must_all_hold():
    point = {"scale": 1.0, "model": "none", "scale_kind": 2}
    assert SPACE.check(point) == point
    assert SPACE.check(point | {"scale_kind": 1, "tied": 7})["tied"] == 7


# Searching -----------------------------------------------------------------------------------------------------------


class Bumps:
    """In each branch one smooth maximum; what is not active must never be asked elsewhere than where it belongs."""

    def __init__(self, space, tops):
        self.space, self.tops = space, tops

    def value(self, X):
        return self.value_and_grad(X)[0]

    def value_and_grad(self, X):
        assert (self.space.settle(X) == X).all()
        far = X - self.tops
        return -np.square(far).sum(axis=1), -2.0 * far


@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_the_best_branch_and_moves_active_coordinates_alone(seed):
    rng = np.random.default_rng(seed)
    tops = rng.random(SPACE.dimension)
    pool = SPACE.snap(build_pool(SPACE.dimension, rng, n_sobol=64))
    found = search(Bumps(SPACE, tops), pool, rng=rng, grids=grids_of(SPACE), activity=SPACE.conditions)
    # By brute force: all choices of what has levels, and the best place of the floats in each.
    axes = [[top] if grid is None else list(grid) for top, grid in zip(tops, SPACE.grids, strict=True)]
    every = SPACE.settle(np.array(list(itertools.product(*axes))))
    best = every[np.square(every - tops).sum(axis=1).argmin()]
    assert found.x == pytest.approx(best, abs=1e-3)
    assert (SPACE.settle(found.X_all) == found.X_all).all()


def test_a_search_climbs_in_every_branch():
    space = pbgi.Space({"m": pbgi.Categorical(list("abcdef")), "x": pbgi.Float(0, 1, when={"m": ["b", "f"]})})

    class Narrow:
        def value(self, X):
            return self.value_and_grad(X)[0]

        def value_and_grad(self, X):
            in_f = X[:, 0] > 0.9
            return np.where(in_f, 2.0 - 40.0 * np.square(X[:, 1] - 0.77), 1.0 + X[:, 0] / 10), np.stack(
                [np.zeros(len(X)), np.where(in_f, -80.0 * (X[:, 1] - 0.77), 0.0)], axis=1
            )

    rng = np.random.default_rng(0)
    pool = space.snap(rng.random((30, 2)))
    found = search(Narrow(), pool, rng=rng, grids=grids_of(space), activity=space.conditions, n_starts=6)
    assert space.from_unit(found.x) == {"m": "f", "x": pytest.approx(0.77, abs=1e-4)}


# Running -------------------------------------------------------------------------------------------------------------


def test_every_branch_is_tried_early():
    space = {
        "m": pbgi.Categorical(list("abcd")),
        "big": pbgi.Integer(1, 3, when={"m": "a"}),
        **{f"x{i}": pbgi.Float(0, 1, when={"m": "a", "big": 3}) for i in range(5)},
    }
    optimizer = pbgi.Optimizer(space, cost=pbgi.UniformCost(), seed=0)
    first = [optimizer.ask().params for _ in range(optimizer.n_startup_trials)]
    assert {point["m"] for point in first[:4]} == set("abcd")
    assert len({(point["m"], point.get("big")) for point in first}) == len(first) == 6  # as many as there are branches


@pytest.mark.parametrize("policy", [None, pbgi.RandomSearch(), pbgi.Thompson()])
def test_a_finite_space_is_tried_once_and_whole(policy):
    space = pbgi.Space(
        {
            "m": pbgi.Categorical(["a", "b", "c"]),
            "n": pbgi.Integer(1, 4, when={"m": "b"}),
            "k": pbgi.Categorical([True, False], when={"m": ["b", "c"], "n": [2, 3]}),
        }
    )
    result = pbgi.minimize(
        lambda p: p.get("n", 0) + p.get("k", 0.5), space, cost=pbgi.UniformCost(), policy=policy, seed=1
    )
    assert space.n_points == 1 + (1 + 1 + 2 + 2) + 1
    assert len({space.key(t.params) for t in result.trials}) == len(result.trials) == space.n_points


def test_a_run_with_conditions_goes_on_from_its_json_bit_for_bit():
    def value(p):
        return (p["scale"] - 1.0) ** 2 + {"svm": 0.0, "forest": 0.1, "none": 0.2}[p["model"]] + p.get("degree", 0)

    def told(optimizer, n):
        for _ in range(n):
            trial = optimizer.ask()
            optimizer.tell(trial, value(trial.params), cost=1.0 + trial.params.get("depth", 0))
        return optimizer

    whole = told(pbgi.Optimizer(CLASSIFIERS, budget=500, seed=3), 14)
    half = told(pbgi.Optimizer(CLASSIFIERS, budget=500, seed=3), 9)
    again = told(pbgi.Optimizer.from_json(half.to_json()), 5)
    assert [t.params for t in again.trials] == [t.params for t in whole.trials]
    assert whole.recommended.trial in whole.trials
    prediction = whole.predict([{"scale": 1.0, "model": "none", "scale_kind": 2}])
    assert np.isfinite([prediction.median, prediction.low, prediction.high, prediction.cost]).all()


def test_a_known_price_sees_what_is_active():
    def price(p):
        return 1.0 + p.get("depth", 0)

    def vectorized(columns):
        return 1.0 + np.nan_to_num(columns["depth"])

    costs = []
    for known in (pbgi.KnownCost(price), pbgi.KnownCost(vectorized, vectorized=True)):
        optimizer = pbgi.Optimizer(CLASSIFIERS, cost=known, budget=60, seed=0)
        for _ in range(9):
            trial = optimizer.ask()
            assert trial.predicted_cost == pytest.approx(price(trial.params))
            optimizer.tell(trial, trial.params["scale"])
        costs.append([t.params for t in optimizer.trials])
    assert costs[0] == costs[1]


# Neglected branches --------------------------------------------------------------------------------------------------

TREE = pbgi.Space(
    {
        "m": pbgi.Categorical(["a", "b"]),
        "n": pbgi.Integer(1, 3, when={"m": "b"}),
        "x": pbgi.Float(0, 1, when={"m": "b", "n": 3}),
    }
)


def points(**counts):
    """So many points of each branch: a, b1, b2, b3."""
    kinds = {"a": {"m": "a"}, "b1": {"m": "b", "n": 1}, "b2": {"m": "b", "n": 2}, "b3": {"m": "b", "n": 3, "x": 0.2}}
    return TREE.to_unit_many([kinds[name] for name, count in counts.items() for _ in range(count)])


@pytest.mark.parametrize(
    ("counts", "branch"),
    [
        ({"a": 3, "b1": 3}, ()),  # of 3 in b half an even share of three is 1/2: less than a trial
        ({"a": 6, "b1": 2}, ()),  # 8 trials: half an even share is 2, which b has, and one more would be 3
        ({"a": 11, "b1": 1}, (1,)),  # 12 trials: half an even share is 3, and with one more b has 2
        ({"a": 4, "b1": 6, "b2": 1, "b3": 1}, ()),
        ({"a": 4, "b1": 6, "b2": 1}, (1, 2)),  # of 7 in b none is b3, and half an even share is 7/6
        ({"a": 1, "b1": 12, "b2": 12, "b3": 12}, (0,)),
    ],
)
def test_a_branch_is_neglected_below_half_an_even_share(counts, branch):
    X = points(**counts)
    assert neglected_branch(TREE.conditions, X, np.ones(len(X))) == branch


def test_a_dear_branch_gets_fewer_trials():
    X, charges = points(a=20, b1=2, b2=2, b3=2), np.array([1.0] * 20 + [5.0] * 6)
    assert neglected_branch(TREE.conditions, X, np.ones(26)) == ()
    assert neglected_branch(TREE.conditions, X, charges) == ()
    assert neglected_branch(TREE.conditions, points(a=20, b1=1), np.array([1.0] * 21)) == (1,)
    assert neglected_branch(TREE.conditions, points(a=20, b1=1), np.array([1.0] * 20 + [5.0])) == ()


def test_a_narrow_optimum_in_a_branch_that_looked_bad_is_found():
    def value(p):
        return (
            0.1 + 0.05 * (p["y"] - 0.4) ** 2 if p["m"] == "a" else 1.0 - math.exp(-0.5 * ((p["x"] - 0.8) / 0.06) ** 2)
        )

    space = {
        "m": pbgi.Categorical(["a", "b"]),
        "y": pbgi.Float(0, 1, when={"m": "a"}),
        "x": pbgi.Float(0, 1, when={"m": "b"}),
    }
    best = [
        pbgi.minimize(value, space, cost=pbgi.UniformCost(), stop=pbgi.MaxTrials(40), seed=seed).fun
        for seed in range(3)
    ]
    assert sorted(best)[1] < 0.05
