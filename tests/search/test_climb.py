"""Batched climbs against exact solutions and SciPy's L-BFGS-B."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pbgi import InvalidInputError
from pbgi.search.climb import DENSE_UP_TO, maximize_batch


def concave_quadratic(d, seed, condition=100.0):
    """Hessian (minus) with the given condition number, in a random basis."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (basis * np.geomspace(1.0, condition, d)) @ basis.T


def quadratic(A, center):
    def f(X):
        gap = X - center
        return -0.5 * np.vecdot(gap, gap @ A), -(gap @ A)

    return f


def constrained_maximum(A, center):
    """Exact maximum over the cube by enumeration of all faces: the best feasible stationary point of a face."""
    d, best = len(center), (-np.inf, None)
    for face in itertools.product((0.0, 1.0, None), repeat=d):
        free = np.array([side is None for side in face])
        x = np.array([0.0 if side is None else side for side in face])
        if free.any():
            held = A[np.ix_(free, ~free)] @ (x - center)[~free]
            x[free] = center[free] - np.linalg.solve(A[np.ix_(free, free)], held)
        if ((x >= 0) & (x <= 1)).all():
            value = -0.5 * (x - center) @ A @ (x - center)
            best = max(best, (value, x), key=lambda pair: pair[0])
    return best


def rosenbrock(X):
    """Minus the Rosenbrock function on [-1.5, 2.5]^d; maximum 0 where all coordinates are 1."""
    Z = 4.0 * X - 1.5
    head, tail = Z[:, :-1], Z[:, 1:]
    valley = tail - head**2
    grad = np.zeros_like(Z)
    grad[:, :-1] = -400.0 * head * valley - 2.0 * (1.0 - head)
    grad[:, 1:] += 200.0 * valley
    return -(100.0 * valley**2 + (1.0 - head) ** 2).sum(axis=1), -4.0 * grad


def waves(X):
    """Many maxima inside and on the faces."""
    return np.sin(9.0 * X).sum(axis=1) + X.prod(axis=1), 9.0 * np.cos(9.0 * X) + X.prod(axis=1)[:, None] / X


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("seed", range(8))
def test_quadratic_on_the_cube(d, seed):
    A = concave_quadratic(d, seed)
    center = np.random.default_rng(100 + seed).uniform(-0.7, 1.7, d)  # inside, beyond faces, beyond corners
    value, x = constrained_maximum(A, center)
    X, values = maximize_batch(
        quadratic(A, center), np.random.default_rng(seed).random((12, d)), scale=1.0, tolerance=1e-14
    )
    np.testing.assert_allclose(X, np.tile(x, (12, 1)), atol=1e-6)
    np.testing.assert_allclose(values, value, atol=1e-10)


def test_corner_is_reached_exactly():
    A = np.eye(3)
    X, _ = maximize_batch(quadratic(A, np.array([-1.0, 2.0, 5.0])), np.random.default_rng(0).random((9, 3)))
    np.testing.assert_array_equal(X, np.tile([0.0, 1.0, 1.0], (9, 1)))


@pytest.mark.parametrize("d", [DENSE_UP_TO, DENSE_UP_TO + 1, 100])
def test_many_dimensions(d):
    A = concave_quadratic(d, seed=d, condition=50.0)
    center = np.random.default_rng(d).uniform(0.1, 0.9, d)
    X, values = maximize_batch(
        quadratic(A, center), np.random.default_rng(1).random((5, d)), scale=1.0, tolerance=1e-13
    )
    np.testing.assert_allclose(X, np.tile(center, (5, 1)), atol=1e-5)
    np.testing.assert_allclose(values, 0.0, atol=1e-10)


@pytest.mark.parametrize("d", [5, 40])
def test_faces_in_both_memories(d):
    """A separable quadratic has the clipped center as its maximum."""
    rng = np.random.default_rng(d)
    weights, center = np.geomspace(1.0, 30.0, d), rng.uniform(-1.0, 2.0, d)
    X, _ = maximize_batch(quadratic(np.diag(weights), center), rng.random((6, d)), scale=1.0, tolerance=1e-13)
    np.testing.assert_allclose(X, np.tile(np.clip(center, 0.0, 1.0), (6, 1)), atol=1e-5)


@pytest.mark.parametrize("d", [2, 5, 10])
def test_rosenbrock_against_scipy(d):
    starts = np.random.default_rng(d).random((16, d))
    calls = []

    def counted(X):
        calls.append(len(X))
        return rosenbrock(X)

    _, values = maximize_batch(counted, starts, scale=1.0, tolerance=1e-10, max_iterations=1000)
    theirs = [
        minimize(
            lambda x: [-part[0] for part in rosenbrock(x[None])], x, jac=True, method="L-BFGS-B",
            bounds=[(0, 1)] * d, options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9},
        )
        for x in starts
    ]  # fmt: skip
    # For d > 3 there is a second, local maximum near (-1, 1, ..., 1): compare how often each is found.
    assert np.isclose(values, 0.0, atol=1e-6).sum() >= sum(run.fun < 1e-6 for run in theirs) - 2
    assert max(values) > -1e-8
    assert sum(calls) <= 1.6 * sum(run.nfev for run in theirs)


def test_matches_scipy_row_by_row_near_maxima():
    """From starts close to a maximum both methods end in the same one."""
    starts = np.random.default_rng(0).random((40, 3)) * 0.98 + 0.01
    climbed, _ = maximize_batch(waves, starts)
    near = np.clip(climbed + 0.01 * np.random.default_rng(1).standard_normal(climbed.shape), 1e-3, 1.0)
    _, values = maximize_batch(waves, near)
    for x, value in zip(near, values, strict=True):
        run = minimize(lambda x: [-part[0] for part in waves(x[None])], x, jac=True, bounds=[(1e-9, 1)] * 3)
        assert value == pytest.approx(-run.fun, abs=1e-6)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 10**6), st.floats(-300, 300), st.booleans())
def test_stays_in_the_cube_and_never_gets_worse(d, m, seed, exponent, race):
    rng = np.random.default_rng(seed)
    starts, size = rng.random((m, d)), 10.0**exponent
    starts[rng.random((m, d)) < 0.2] = 0.0
    starts[rng.random((m, d)) < 0.2] = 1.0
    frequency, phase = rng.uniform(1, 20, d), rng.uniform(0, 6, d)

    def f(X):
        assert ((X >= 0) & (X <= 1)).all()
        return size * np.sin(frequency * X + phase).sum(axis=1), size * frequency * np.cos(frequency * X + phase)

    X, values = maximize_batch(f, starts, race=race)
    assert ((X >= 0) & (X <= 1)).all()
    assert (values >= f(starts)[0]).all()
    np.testing.assert_array_equal(values, f(X)[0])


def test_one_dimension_finds_the_stationary_point():
    starts = np.linspace(0, 1, 11)[:, None]
    X, _ = maximize_batch(lambda X: (np.sin(7 * X[:, 0]), 7 * np.cos(7 * X)), starts, tolerance=1e-14)
    # sin(7 x) has its top at pi / 14 and still rises where it meets the face x = 1.
    assert np.abs(X - [[np.pi / 14, 1.0]]).min(axis=1).max() < 1e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_walls(bad):
    """The maximum lies behind a wall: climbs stop short of it, and a start behind it stays."""

    def f(X):
        value, grad = X.sum(axis=1), np.ones_like(X)
        return np.where(X[:, 0] > 0.6, bad, value), grad

    X, values = maximize_batch(f, np.array([[0.1, 0.5], [0.59, 0.0], [0.9, 0.9]]))
    assert (X[:2, 0] <= 0.6).all()
    assert (X[:2, 0] > 0.55).all()
    assert (values[:2] >= [0.6, 0.59]).all()
    np.testing.assert_array_equal(X[2], [0.9, 0.9])
    assert values[2] == -np.inf


def test_gradients_that_are_not_finite():
    def f(X):
        return -np.abs(X[:, 0] - 0.5), np.where(np.abs(X - 0.5) < 0.1, np.nan, -np.sign(X - 0.5))

    X, values = maximize_batch(f, np.array([[0.45], [0.1]]))
    assert X[0] == 0.45
    assert values[0] == pytest.approx(-0.05)
    assert -0.4 <= values[1] <= -0.1


def test_plateau_stays():
    starts = np.random.default_rng(0).random((4, 2))
    X, values = maximize_batch(lambda X: (np.full(len(X), 3.0), np.zeros_like(X)), starts)
    np.testing.assert_array_equal(X, starts)
    np.testing.assert_array_equal(values, 3.0)


def test_steep_logarithm():
    """Values from -1e5 to 0, as a log improvement has them."""

    def f(X):
        gap = X - 0.3
        return -1e5 * (gap**2).sum(axis=1), -2e5 * gap

    X, _ = maximize_batch(f, np.random.default_rng(0).random((10, 4)))
    np.testing.assert_allclose(X, 0.3, atol=1e-4)


@pytest.mark.parametrize("d", [3, 40])
def test_free_mask(d):
    rng = np.random.default_rng(0)
    free = rng.random(d) < 0.5
    free[:2] = [True, False]
    starts, center = rng.random((7, d)), rng.uniform(0.1, 0.9, d)

    def f(X):  # what the held coordinates' gradients say must not matter
        value, grad = quadratic(np.eye(d), center)(X)
        return value, np.where(free, grad, np.nan)

    X, _ = maximize_batch(f, starts, free=free, scale=1.0)
    np.testing.assert_array_equal(X[:, ~free], starts[:, ~free])
    np.testing.assert_allclose(X[:, free], np.tile(center[free], (7, 1)), atol=1e-4)
    X, _ = maximize_batch(f, starts, free=np.zeros(d, dtype=bool))
    np.testing.assert_array_equal(X, starts)


def test_only_climbs_under_way_are_evaluated():
    sizes = []

    def f(X):
        sizes.append(len(X))
        return quadratic(np.eye(2), np.array([0.5, 0.5]))(X)

    maximize_batch(f, np.array([[0.5, 0.5], [0.1, 0.9], [0.49, 0.5]]), scale=1.0)
    assert sizes[0] == 3
    assert sizes[1] == 2
    assert sizes == sorted(sizes, reverse=True)


def test_race_keeps_the_best():
    starts = np.random.default_rng(3).random((60, 4)) * 0.98 + 0.01
    evaluations = {}
    best = {}
    for race in (False, True):
        sizes = []

        def f(X, sizes=sizes):
            sizes.append(len(X))
            return waves(np.maximum(X, 1e-9))

        best[race] = maximize_batch(f, starts, race=race)[1].max()
        evaluations[race] = sum(sizes)
    assert best[True] == pytest.approx(best[False], abs=1e-7)
    assert evaluations[True] < evaluations[False]


def test_rows_do_not_depend_on_each_other():
    starts = np.random.default_rng(0).random((8, 3)) * 0.98 + 0.01
    together, _ = maximize_batch(waves, starts, scale=1.0)
    alone = np.concatenate([maximize_batch(waves, row[None], scale=1.0)[0] for row in starts])
    np.testing.assert_allclose(together, alone, atol=1e-9)


def test_starts_are_left_alone_and_may_be_none():
    starts = np.random.default_rng(0).random((3, 2))
    before = starts.copy()
    maximize_batch(quadratic(np.eye(2), np.zeros(2)), starts)
    np.testing.assert_array_equal(starts, before)
    X, values = maximize_batch(quadratic(np.eye(2), np.zeros(2)), np.empty((0, 2)))
    assert X.shape == (0, 2)
    assert values.shape == (0,)


def test_refusals():
    f = quadratic(np.eye(2), np.zeros(2))
    for starts in ([[0.5, 1.5]], [[np.nan, 0.5]], [0.5, 0.5]):
        with pytest.raises(InvalidInputError, match="starts must be points"):
            maximize_batch(f, np.array(starts))
    with pytest.raises(InvalidInputError, match="free must be a boolean mask"):
        maximize_batch(f, np.array([[0.5, 0.5]]), free=np.array([1, 0]))
