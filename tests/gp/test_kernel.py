"""Kernels against Bessel functions in 40 digits, matrices against double loops, gradients against differences."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pbgi.errors import InvalidInputError
from pbgi.gp.kernel import CATEGORY_DISTANCE, KERNELS, CrossCovariance, Gram, PriorDraw, kernel_named

NAMES = sorted(KERNELS)
SMOOTHNESS = {"matern32": mpmath.mpf(3) / 2, "matern52": mpmath.mpf(5) / 2}


def exact(name, r2):
    """rho by its definition: the Matern form with the modified Bessel function K_nu, or the squared exponential."""
    r2 = mpmath.mpf(r2)
    if name == "rbf":
        return mpmath.exp(-r2 / 2)
    nu = SMOOTHNESS[name]
    s = mpmath.sqrt(2 * nu * r2)
    return 2 ** (1 - nu) / mpmath.gamma(nu) * s**nu * mpmath.besselk(nu, s)


def textbook(name, r):
    if name == "rbf":
        return math.exp(-0.5 * r * r)
    if name == "matern32":
        return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)


def correlation(name, a, b, ell, categorical):
    """rho of two points, coordinate by coordinate."""
    r2 = 0.0
    for k in range(len(a)):
        delta = CATEGORY_DISTANCE * float(a[k] != b[k]) if categorical[k] else a[k] - b[k]
        r2 += (delta / ell[k]) ** 2
    return textbook(name, math.sqrt(r2))


def matrix(name, A, B, ell, categorical):
    return np.array([[correlation(name, a, b, ell, categorical) for b in B] for a in A])


def mixed_points(rng, n):
    """Three numbers and two categories, with codes that are no integers."""
    X = rng.random((n, 5))
    X[:, 1] = rng.choice([0.0, 0.3, 1.0], n)
    X[:, 4] = rng.choice([-2.5, 7.0], n)
    return X


MIXED = np.array([False, True, False, False, True])
ELL = np.array([0.3, 0.8, 1.1, 0.15, 2.0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("r", [1e-9, 1e-6, 1e-3, 0.1, 0.7, 1.0, 3.0, 10.0, 30.0])
def test_value_and_slope_against_bessel_functions(name, r):
    value, slope = KERNELS[name].value_and_slope(np.array([r * r]))
    with mpmath.workdps(40):
        expected = exact(name, r * r)
        step = mpmath.mpf(r * r) * mpmath.mpf("1e-12")
        expected_slope = (exact(name, mpmath.mpf(r * r) + step) - exact(name, mpmath.mpf(r * r) - step)) / (2 * step)
    assert value[0] == pytest.approx(float(expected), rel=1e-13)
    # exp(-s) carries the relative error of its argument: s eps.
    assert slope[0] == pytest.approx(float(expected_slope), rel=1e-11)


@pytest.mark.parametrize(("name", "slope"), [("matern52", -5 / 6), ("matern32", -3 / 2), ("rbf", -1 / 2)])
def test_at_distance_zero(name, slope):
    value, got = KERNELS[name].value_and_slope(np.zeros(1))
    assert value[0] == 1.0
    assert got[0] == pytest.approx(slope, rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_far_away_nothing_is_left_and_nothing_warns(name):
    value, slope = KERNELS[name].value_and_slope(np.array([1e8, 1e16, 1e300]))
    assert (value == 0.0).all()
    assert (slope == 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_argument_is_left_alone(name):
    r2 = np.array([0.0, 0.5, 2.0])
    KERNELS[name].value_and_slope(r2)
    assert r2.tolist() == [0.0, 0.5, 2.0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 17, 300])  # 300 takes more than one block
def test_gram_matrix_against_double_loop(name, n):
    X = mixed_points(np.random.default_rng(1), n)
    rows = np.arange(n) if n < 100 else np.array([0, 63, 64, 150, 217, 218, 299])
    got = Gram(KERNELS[name], X, MIXED).correlation(ELL)
    for i in rows:
        expected = matrix(name, X[i : i + 1], X[: i + 1], ELL, MIXED)[0]
        np.testing.assert_allclose(got[i, : i + 1], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 12, 300])
def test_gradient_in_log_length_scales_against_differences(name, n):
    rng = np.random.default_rng(2)
    X = mixed_points(rng, n)
    weights = rng.standard_normal(n)
    inverse = rng.standard_normal((n, n))
    inverse = inverse + inverse.T
    gram = Gram(KERNELS[name], X, MIXED)

    def total(log_ell):
        lower = np.tril(gram.correlation(np.exp(log_ell)), -1)
        # The diagonal of rho is constant; the rest counts twice.
        return 2.0 * float(np.sum((np.outer(weights, weights) - inverse) * lower))

    log_ell, h = np.log(ELL), 1e-5
    expected = [(total(log_ell + h * e) - total(log_ell - h * e)) / (2 * h) for e in np.eye(5)]
    gram.correlation(ELL)
    # The diagonal does not count, however large.
    got = gram.log_length_gradient(weights, inverse + 1e12 * np.eye(n))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8 * n)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 12, 300])
def test_products_with_derivatives_in_log_length_scales_against_differences(name, n):
    rng = np.random.default_rng(3)
    X, U = mixed_points(rng, n), rng.standard_normal((n, 4))
    gram = Gram(KERNELS[name], X, MIXED)

    def product(log_ell):
        lower = np.tril(gram.correlation(np.exp(log_ell)), -1)
        return (lower + lower.T) @ U  # the diagonal of rho is constant

    log_ell, h = np.log(ELL), 1e-5
    expected = [(product(log_ell + h * e) - product(log_ell - h * e)) / (2 * h) for e in np.eye(5)]
    gram.correlation(ELL)
    np.testing.assert_allclose(gram.log_length_products(U), expected, rtol=1e-5, atol=1e-8 * n)


@pytest.mark.parametrize("name", NAMES)
def test_cross_covariance_against_double_loop(name):
    rng = np.random.default_rng(3)
    X, Q = mixed_points(rng, 9), mixed_points(rng, 6)
    Q[0, 1], Q[1, 4] = 0.77, -8.0  # codes that the design does not have
    Q[2] = X[2]
    got = CrossCovariance(KERNELS[name], X, MIXED, ELL, 2.5).value(Q)
    np.testing.assert_allclose(got, 2.5 * matrix(name, Q, X, ELL, MIXED), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_several_covariances_at_once_are_each_of_them(name):
    rng = np.random.default_rng(7)
    X, Q = mixed_points(rng, 9), mixed_points(rng, 6)
    scales, sizes = np.array([ELL, 2.0 * ELL[::-1], 0.3 + ELL]), np.array([2.5, 0.1, 7.0])
    together = CrossCovariance(KERNELS[name], X, MIXED, scales, sizes)
    weights = rng.standard_normal((2, 3, 6, 9))
    pulled = together.pull(Q, weights)
    for k, (ell, size) in enumerate(zip(scales, sizes, strict=True)):
        alone = CrossCovariance(KERNELS[name], X, MIXED, ell, size)
        for got, expected in zip(together.value_and_slope(Q), alone.value_and_slope(Q), strict=True):
            np.testing.assert_allclose(got[k], expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(pulled[:, k], alone.pull(Q, weights[:, k]), rtol=1e-11, atol=1e-11)


def test_extended_design_distinguishes_codes_not_seen_before():
    X = np.array([[0.0, 0.1], [1.0, 0.4]])
    new = np.array([[2.0, 0.1], [3.0, 0.1]])
    mask, ell = np.array([True, False]), np.array([0.7, 0.5])
    got = CrossCovariance(KERNELS["rbf"], X, mask, ell, 1.0).extended(new).value(new)
    np.testing.assert_allclose(got, matrix("rbf", new, np.vstack([X, new]), ell, mask), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_pull_against_differences(name):
    rng = np.random.default_rng(4)
    X, Q = mixed_points(rng, 9), mixed_points(rng, 4)
    weights = rng.standard_normal(9)
    covariance = CrossCovariance(KERNELS[name], X, MIXED, ELL, 2.5)
    _, slope = covariance.value_and_slope(Q)
    got = covariance.pull(Q, slope * weights)
    h = 1e-6
    for k in np.flatnonzero(~MIXED):
        step = h * np.eye(5)[k]
        expected = (covariance.value(Q + step) - covariance.value(Q - step)) @ weights / (2 * h)
        np.testing.assert_allclose(got[:, k], expected, rtol=1e-7, atol=1e-7)
    assert (got[:, MIXED] == 0.0).all()


@settings(max_examples=60)
@given(st.sampled_from(NAMES), st.floats(-2.0, 2.0), st.integers(0, 2**32 - 1))
def test_covariance_is_symmetric_bounded_and_blind_to_translation(name, shift, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((6, 3))
    ell = rng.uniform(0.05, 3.0, 3)
    none = np.zeros(3, dtype=bool)
    got = CrossCovariance(KERNELS[name], X, none, ell, 1.0).value(X)
    np.testing.assert_allclose(got, got.T, rtol=0, atol=1e-12)
    assert got.min() >= 0.0
    assert got.max() <= 1.0 + 1e-15
    np.testing.assert_allclose(np.diag(got), 1.0, rtol=0, atol=1e-12)
    moved = CrossCovariance(KERNELS[name], X + shift, none, ell, 1.0).value(X + shift)
    np.testing.assert_allclose(moved, got, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_prior_draws_have_the_covariance_of_the_kernel(name):
    rng = np.random.default_rng(5)
    Q = mixed_points(rng, 5)
    Q[1] = Q[0] + 0.1 * ~MIXED
    Q[2] = np.where(MIXED, Q[2], Q[0])
    covariance = CrossCovariance(KERNELS[name], Q, MIXED, ELL, 2.0)
    n_draws = 3000
    draws = np.array([PriorDraw(rng, covariance, 64)(Q) for _ in range(n_draws)])
    expected = 2.0 * matrix(name, Q, Q, ELL, MIXED)
    # The product of two such values has a standard deviation of at most about sqrt(2) times the variance.
    tolerance = 5.0 * 2.0 * math.sqrt(2.1 / n_draws)
    np.testing.assert_allclose(draws.T @ draws / n_draws, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, rtol=0, atol=5.0 * math.sqrt(2.0 / n_draws))


def test_prior_draw_has_gradients_and_does_not_depend_on_the_order_of_questions():
    rng = np.random.default_rng(6)
    Q = mixed_points(rng, 7)
    Q[0, 1] = 0.55
    draw = PriorDraw(rng, CrossCovariance(KERNELS["matern52"], Q, MIXED, ELL, 2.0), 100)
    value, gradient = draw.value_and_gradient(Q)
    np.testing.assert_allclose(draw(Q[::-1])[::-1], value, rtol=0, atol=1e-12)
    np.testing.assert_allclose([draw(q[None])[0] for q in Q], value, rtol=0, atol=1e-12)
    h = 1e-6
    for k in np.flatnonzero(~MIXED):
        step = h * np.eye(5)[k]
        np.testing.assert_allclose(gradient[:, k], (draw(Q + step) - draw(Q - step)) / (2 * h), rtol=1e-5, atol=1e-6)
    assert (gradient[:, MIXED] == 0.0).all()


def test_unknown_kernel_is_refused_with_the_list_of_known_ones():
    with pytest.raises(InvalidInputError, match=r"matern52, matern32, rbf; got 'matern'"):
        kernel_named("matern")
