"""The inner search against brute force, SciPy, and what it promises about grids, exclusions and randomness."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import qmc

import pbgi.search.maximize
from pbgi import InvalidInputError, gittins_index_and_grad, log_h
from pbgi.search.climb import maximize_batch
from pbgi.search.grids import FineGrid, Grid, maximize_mixed
from pbgi.search.maximize import build_pool, choose_starts, default_n_starts, search

SQRT5 = np.sqrt(5.0)


def matern(A, B):
    """Matern-5/2 correlation and (dk/dr)/r at the distances between rows."""
    r = np.sqrt(np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T, 0.0))
    decay = np.exp(-SQRT5 * r)
    return (1 + SQRT5 * r + 5 / 3 * r**2) * decay, -5 / 3 * (1 + SQRT5 * r) * decay


class Posterior:
    """A Gaussian process given random data drawn from it, with an acquisition function on top."""

    def __init__(self, d, n, seed, kind):
        rng = np.random.default_rng([d, n, seed])
        self.lengths = np.exp(rng.uniform(np.log(0.2), np.log(1.5), d))
        X = rng.random((n, d))
        if seed % 2:  # late in a run: half of the data around one point
            X[n // 2 :] = np.clip(rng.random(d) + 0.1 * rng.standard_normal((n - n // 2, d)), 0, 1)
        K = matern(X / self.lengths, X / self.lengths)[0] + 1e-4 * np.eye(n)
        y = np.linalg.cholesky(K) @ rng.standard_normal(n)
        self.data, self.inverse, self.weights = X / self.lengths, np.linalg.inv(K), np.linalg.solve(K, y)
        self.kind, self.best, self.log_scale = kind, y.max(), rng.uniform(np.log(1e-5), np.log(0.1))
        self.incumbents, self.d = X[np.argsort(-y)[:4]], d

    def value(self, X):
        return self.value_and_grad(X)[0]

    def value_and_grad(self, X):
        A = X / self.lengths
        k, w = matern(A, self.data)
        solved = k @ self.inverse
        mean, std = k @ self.weights, np.sqrt(np.maximum(1 - np.vecdot(k, solved), 1e-12))
        dmean = self._pull(w * self.weights, A)
        dstd = -self._pull(w * solved, A) / std[:, None]
        return self._acquisition(X, mean, std, dmean, dstd)

    def _pull(self, weighted, A):
        return (A * weighted.sum(axis=1)[:, None] - weighted @ self.data) / self.lengths

    def _acquisition(self, X, mean, std, dmean, dstd):
        if self.kind == "gittins":
            cost = 1 + 20 * X.mean(axis=1)
            g, lam, dlog_cost = gittins_index_and_grad(mean, std, self.log_scale + np.log(cost))
            return g, dmean + lam[:, None] * dstd + (dlog_cost * 20 / self.d / cost)[:, None]
        if self.kind == "ucb":
            return mean + 2 * std, dmean + 2 * dstd
        z = (mean - self.best) / std
        slope = np.exp(log_ndtr(z) - log_h(z))  # (log h)' = Phi / h
        return np.log(std) + log_h(z), (dstd + slope[:, None] * (dmean - z[:, None] * dstd)) / std[:, None]


KINDS = ("gittins", "log_ei", "ucb")


def scipy_maximum(acquisition, d, seed):
    """Best of 10 d L-BFGS-B runs from the best of 200 d Sobol points, and the spread of values over those."""
    points = qmc.Sobol(d, rng=np.random.default_rng(seed)).random(256 * d)[: 200 * d]
    values = acquisition.value(points)

    def loss(x):
        value, grad = acquisition.value_and_grad(x[None])
        return -value[0], -grad[0]

    starts = points[np.argsort(-values)[: 10 * d]]
    runs = [minimize(loss, x, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * d) for x in starts]
    return -min(run.fun for run in runs), np.ptp(values)


def levels(n, ordered=True):
    return Grid(np.linspace(0, 1, n), ordered)


def all_points(grids):
    return np.array(list(itertools.product(*[grid.levels for grid in grids])))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_the_test_bench(kind):
    acquisition, X = Posterior(3, 12, 1, kind), np.random.default_rng(0).random((5, 3))
    steps = 1e-5 * np.eye(3)
    numeric = np.stack([(acquisition.value(X + s) - acquisition.value(X - s)) / 2e-5 for s in steps], axis=1)
    np.testing.assert_allclose(acquisition.value_and_grad(X)[1], numeric, rtol=1e-4, atol=1e-4)


def test_as_good_as_scipy():
    """The target of the engine: within 1e-6 of the spread in 95 % of random states."""
    reached = []
    for d, n, count in ((1, 8, 10), (2, 16, 12), (4, 32, 15), (8, 48, 3)):
        for seed in range(count):
            acquisition, rng = Posterior(d, n, seed, KINDS[seed % 3]), np.random.default_rng([d, seed])
            best, spread = scipy_maximum(acquisition, d, seed)
            found = search(acquisition, build_pool(d, rng, incumbents=acquisition.incumbents), rng=rng)
            reached.append(found.value >= best - 1e-6 * spread)
    assert len(reached) == 40
    assert np.mean(reached) >= 0.95


# The pool ------------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(0, 70), st.integers(0, 3), st.integers(0, 3), st.integers(0, 10**6))
def test_pool_holds_what_it_is_given(d, n_sobol, n_incumbents, n_former, seed):
    rng = np.random.default_rng(seed)
    incumbents, former = rng.random((n_incumbents, d)), rng.random((n_former, d))
    pool = build_pool(d, rng, n_sobol, incumbents, former)
    assert ((pool >= 0) & (pool <= 1)).all()
    for point in (*incumbents, *former):
        assert (pool == point).all(axis=1).any()
    assert len(pool) >= n_sobol + n_incumbents + n_former


def test_sobol_part_is_balanced_and_random():
    """Every half, quarter, ... of each axis holds its share of points: the digital shift keeps the net a net."""
    pools = [build_pool(5, np.random.default_rng(seed), 64) for seed in (0, 1)]
    for pool in pools:
        assert pool.shape == (64, 5)
        for column in pool.T:
            np.testing.assert_array_equal(np.bincount((column * 64).astype(int), minlength=64), 1)
    assert not np.isclose(pools[0], pools[1]).any(axis=1).all()


def test_neighbors_are_near_and_some_share_most_coordinates():
    center = np.full((1, 20), 0.5)
    pool = build_pool(20, np.random.default_rng(0), 0, center)
    distances = np.abs(pool - center).max(axis=1)
    for scale in (1e-1, 1e-2, 1e-3):
        assert ((distances > scale) & (distances < 5 * scale)).any()
    changed = (pool != center).sum(axis=1)
    assert ((changed > 0) & (changed < 8)).sum() >= 6


def test_starts_begin_with_the_best_and_are_distinct():
    rng = np.random.default_rng(0)
    X, values = rng.random((200, 3)), rng.standard_normal(200)
    values[:5] = [np.nan, np.inf, -np.inf, 9.0, np.nan]
    rows = choose_starts(values, X, 20, rng)
    assert rows[0] == 3
    assert len(set(rows.tolist())) == 20
    assert not set(rows.tolist()) & {0, 1, 2, 4}
    assert len(choose_starts(values[:5], X[:5], 20, rng)) == 1
    assert len(choose_starts(values[:3], X[:3], 20, rng)) == 0


def test_starts_cover_two_peaks():
    """A hundred points on the higher peak do not push out the lower one."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.2 + 0.02 * rng.random((100, 2)), 0.8 + 0.02 * rng.random((5, 2))])
    values = np.concatenate([10 + rng.random(100), rng.random(5)])
    assert (choose_starts(values, X, 4, rng) >= 100).any()


def test_starts_from_copies_of_one_point():
    assert sorted(choose_starts(np.zeros(6), np.full((6, 2), 0.5), 4, np.random.default_rng(0)).tolist()) != []
    assert len(set(choose_starts(np.zeros(6), np.full((6, 2), 0.5), 6, np.random.default_rng(0)).tolist())) == 6


# Mixed spaces --------------------------------------------------------------------------------------------------------

SMALL = {
    "integers": [levels(5), levels(4), levels(7)],
    "categories": [levels(3, False), levels(4, False), levels(2, False), levels(5, False)],
    "both": [levels(6), levels(3, False), levels(1), levels(9)],
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("exhaustive", [True, False])
def test_finite_spaces_against_enumeration(name, exhaustive, monkeypatch):
    if not exhaustive:
        monkeypatch.setattr(pbgi.search.maximize, "FINITE_UP_TO", 0)
    grids, reached = SMALL[name], []
    points = all_points(grids)
    for seed in range(15):
        acquisition, rng = Posterior(len(grids), 12, seed, KINDS[seed % 3]), np.random.default_rng(seed)
        found = search(acquisition, build_pool(len(grids), rng), rng=rng, grids=grids)
        assert (np.abs(points - found.x).max(axis=1) == 0).any()
        reached.append(found.value >= acquisition.value(points).max() - 1e-9)
    assert np.mean(reached) >= (1.0 if exhaustive else 0.93)


def test_mixed_space_against_every_combination():
    grids, reached = [levels(3, False), None, levels(6), None], []
    combinations = np.array(list(itertools.product(grids[0].levels, grids[2].levels)))
    for seed in range(10):
        acquisition, rng = Posterior(4, 20, seed, KINDS[seed % 3]), np.random.default_rng(seed)
        found = search(acquisition, build_pool(4, rng, incumbents=acquisition.incumbents), rng=rng, grids=grids)
        assert found.x[0] in grids[0].levels
        assert found.x[2] in grids[2].levels
        best, values = -np.inf, acquisition.value(rng.random((200, 4)))
        for first, second in combinations:

            def loss(x, first=first, second=second, acquisition=acquisition):
                value, grad = acquisition.value_and_grad(np.array([[first, x[0], second, x[1]]]))
                return -value[0], -grad[0, [1, 3]]

            for x in itertools.product((0.2, 0.8), repeat=2):
                best = max(best, -minimize(loss, x, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * 2).fun)
        reached.append(found.value >= best - 1e-6 * np.ptp(values))
    assert np.mean(reached) >= 0.9


@pytest.mark.parametrize("n_levels", [65, 1000, 100_000])
def test_long_grids(n_levels):
    """A function with one top: its best level is known."""
    grids = [levels(n_levels), None]
    target = 0.7312

    class Peak:
        def value(self, X):
            return -((X[:, 0] - target) ** 2) - (X[:, 1] - 0.25) ** 2

        def value_and_grad(self, X):
            return self.value(X), -2 * (X - [target, 0.25])

    rng = np.random.default_rng(0)
    found = search(Peak(), build_pool(2, rng), rng=rng, grids=grids)
    assert found.x[0] == grids[0].levels[np.abs(grids[0].levels - target).argmin()]
    assert found.x[1] == pytest.approx(0.25, abs=1e-3)


def test_long_grid_where_gradients_mislead():
    """Only the values on the grid count: a gradient of zero everywhere leaves the sweeps to find the top."""
    grid = levels(500)
    X, values = maximize_mixed(
        lambda X: (-np.abs(X[:, 0] - 0.4), np.zeros_like(X)),
        lambda X: -np.abs(X[:, 0] - 0.4),
        np.array([[0.9], [0.1]]),
        [grid],
    )
    best = -np.abs(grid.levels - 0.4).min()
    np.testing.assert_array_equal(values, best)
    assert np.isin(X, grid.levels).all()


def test_two_coordinates_that_must_change_together():
    """No single change improves on (0, 0), yet (1, 1) is better."""
    grids = [levels(2, False)] * 2

    def value(X):
        return np.where(X.sum(axis=1) == 2, 5.0, -X.sum(axis=1))

    X, values = maximize_mixed(lambda X: (value(X), np.zeros_like(X)), value, np.zeros((1, 2)), grids)
    np.testing.assert_array_equal(X, [[1.0, 1.0]])
    np.testing.assert_array_equal(values, [5.0])


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 10**6))
def test_mixed_never_leaves_the_grid_and_never_gets_worse(sizes, seed):
    rng = np.random.default_rng(seed)
    grids = [None if n == 0 else Grid(np.sort(rng.random(n)), bool(n % 2)) for n in sizes]
    d, frequency = len(sizes), rng.uniform(1, 15, len(sizes))

    def f(X):
        phase = (X * frequency).sum(axis=1)  # not a matrix product, whose last bit depends on the number of rows
        return np.sin(phase), np.cos(phase)[:, None] * frequency

    starts = rng.random((4, d))
    for j, grid in enumerate(grids):
        if grid is not None:
            starts[:, j] = rng.choice(grid.levels, 4)
    X, values = maximize_mixed(f, lambda X: f(X)[0], starts, grids)
    for j, grid in enumerate(grids):
        assert grid is None or np.isin(X[:, j], grid.levels).all()
    assert ((X >= 0) & (X <= 1)).all()
    assert (values >= f(starts)[0]).all()
    np.testing.assert_array_equal(values, f(X)[0])


@pytest.mark.parametrize("n", [5, 100, 3000])
def test_a_grid_given_by_functions_is_searched_like_a_list_of_its_levels(n):
    listed = Grid((np.arange(n) + 0.5) / n)
    fine = FineGrid(n, lambda i: (i + 0.5) / n, lambda x: np.clip(np.floor(x * n), 0, n - 1).astype(int))
    acquisition, pool = Posterior(2, 15, 1, "ucb"), np.random.default_rng(0).random((64, 2))
    found = [search(acquisition, pool, rng=np.random.default_rng(0), grids=[grid, None]) for grid in (listed, fine)]
    np.testing.assert_array_equal(found[0].x, found[1].x)
    assert found[0].value == found[1].value


# Exclusions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [4096, 0])
def test_excluded_points_one_after_the_other(limit, monkeypatch):
    """Excluding each answer walks through the whole space without a repetition; then nothing is left."""
    monkeypatch.setattr(pbgi.search.maximize, "FINITE_UP_TO", limit)
    grids = [levels(3), levels(4, False), levels(2)]
    points, acquisition, seen = all_points(grids), Posterior(3, 10, 0, "ucb"), []
    for step in range(len(points)):
        rng = np.random.default_rng(step)
        found = search(acquisition, build_pool(3, rng), rng=rng, grids=grids, excluded=seen or None)
        left = [p for p in points.tolist() if p not in seen]
        assert found.x.tolist() in left
        if limit:
            assert found.value == pytest.approx(acquisition.value(np.array(left)).max(), abs=1e-12)
        assert all(x not in seen for x in found.X_all.tolist())
        seen.append(found.x.tolist())
    rng = np.random.default_rng(0)
    found = search(acquisition, build_pool(3, rng), rng=rng, grids=grids, excluded=seen)
    assert found.x is None
    assert found.value == -np.inf
    assert len(found.X_all) == 0


def test_excluded_in_a_large_finite_space():
    grids = [levels(12)] * 5
    acquisition, rng = Posterior(5, 20, 3, "gittins"), np.random.default_rng(0)
    seen = np.empty((0, 5))
    for _ in range(6):
        found = search(acquisition, build_pool(5, rng, incumbents=seen), rng=rng, grids=grids, excluded=seen)
        assert not (seen == found.x).all(axis=1).any()
        seen = np.vstack([seen, found.x])


def test_excluded_corner_of_a_continuous_space():
    class Sum:
        def value(self, X):
            return X.sum(axis=1)

        def value_and_grad(self, X):
            return X.sum(axis=1), np.ones_like(X)

    rng = np.random.default_rng(0)
    pool = build_pool(2, rng)
    assert search(Sum(), pool, rng=rng).x.tolist() == [1.0, 1.0]
    found = search(Sum(), pool, rng=rng, excluded=[[1.0, 1.0]])
    assert found.value == pool.sum(axis=1).max()  # all climbs end in the corner; the best of the rest is in the pool


# The search ----------------------------------------------------------------------------------------------------------


def test_all_maxima_are_sorted_distinct_and_correctly_valued():
    acquisition, rng = Posterior(2, 30, 0, "ucb"), np.random.default_rng(0)
    found = search(acquisition, build_pool(2, rng), rng=rng)
    assert found.values_all[0] == found.value
    np.testing.assert_array_equal(found.X_all[0], found.x)
    assert (np.diff(found.values_all) <= 0).all()
    np.testing.assert_allclose(acquisition.value(found.X_all), found.values_all, rtol=1e-9)
    gaps = np.abs(found.X_all[:, None] - found.X_all).max(axis=2) + np.eye(len(found.X_all))
    assert gaps.min() > 1e-3


def test_former_maximizers_are_never_lost():
    """Hand back the maxima and the next search on the same function is at least as good, with a single start."""
    for seed in range(5):
        acquisition, rng = Posterior(6, 40, seed, KINDS[seed % 3]), np.random.default_rng(seed)
        first = search(acquisition, build_pool(6, rng), rng=rng)
        again = search(acquisition, build_pool(6, rng, former_maximizers=first.X_all), rng=rng, n_starts=1)
        assert again.value >= first.value - 1e-9 * abs(first.value)


@pytest.mark.parametrize("grids", [None, [levels(4), None, levels(3, False), None]])
def test_same_generator_same_answer(grids):
    acquisition, answers = Posterior(4, 20, 0, "gittins"), []
    for _ in range(2):
        rng = np.random.default_rng(5)
        answers.append(search(acquisition, build_pool(4, rng), rng=rng, grids=grids))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_global_random_state_is_left_alone():
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002 (the global state is the subject)
    rng = np.random.default_rng(0)
    search(Posterior(2, 8, 0, "ucb"), build_pool(2, rng), rng=rng, grids=[None, levels(3)])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


class Constant:
    def __init__(self, level):
        self.level = level

    def value(self, X):
        return np.full(len(X), self.level)

    def value_and_grad(self, X):
        return self.value(X), np.zeros_like(X)


@pytest.mark.parametrize("level", [0.0, -1e5, np.nan, -np.inf, np.inf])
@pytest.mark.parametrize("grids", [None, [None, levels(3)], [levels(100), levels(100)], [levels(3), levels(2)]])
def test_constant_and_useless_functions(level, grids):
    """Some point of the space comes back, and over several generators not always the same one."""
    answers = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = search(Constant(level), build_pool(2, rng), rng=rng, grids=grids)
        assert ((found.x >= 0) & (found.x <= 1)).all()
        assert found.value == (level if np.isfinite(level) else -np.inf)
        answers.add(tuple(found.x))
    assert len(answers) > 1


@pytest.mark.parametrize("d", [1, 100])
def test_one_and_a_hundred_dimensions(d):
    center = np.random.default_rng(d).uniform(-0.2, 1.2, d)

    class Bowl:
        def value(self, X):
            return -((X - center) ** 2).sum(axis=1)

        def value_and_grad(self, X):
            return self.value(X), -2 * (X - center)

    rng = np.random.default_rng(0)
    found = search(Bowl(), build_pool(d, rng, incumbents=np.full((1, d), 0.5)), rng=rng)
    np.testing.assert_allclose(found.x, np.clip(center, 0, 1), atol=1e-3)


def test_all_starts_climb_together():
    """The number of calls does not depend on the number of starts."""
    acquisition, rng = Posterior(4, 20, 0, "ucb"), np.random.default_rng(0)
    starts = rng.random((200, 4))
    calls = []

    def f(X):
        calls.append(len(X))
        return acquisition.value_and_grad(X)

    maximize_batch(f, starts)
    assert len(calls) <= 201
    assert calls[0] == 200
    assert default_n_starts(4) < 40


def test_refusals():
    rng = np.random.default_rng(0)
    for pool in (np.empty((0, 2)), [[0.5, 2.0]], [0.5, 0.5], [[np.nan, 0.0]]):
        with pytest.raises(InvalidInputError, match="pool must be points"):
            search(Constant(0.0), pool, rng=rng)
    with pytest.raises(InvalidInputError, match="one entry per coordinate, 2; got 3"):
        search(Constant(0.0), [[0.5, 0.5]], rng=rng, grids=[None] * 3)
    for bad in ([], [0.5, 0.5], [0.7, 0.2], [-0.1, 0.5], [0.5, 1.1], [np.nan], [[0.1, 0.2]]):
        with pytest.raises(InvalidInputError, match="levels must be ascending"):
            Grid(np.array(bad))
