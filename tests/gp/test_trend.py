"""The line through logarithms of costs, against textbook formulas."""

import numpy as np
import pytest
from engine_fixtures import central_difference

from pbgi.gp.trend import ASSUMED_STD, PRIOR_STD, Trend, fit_trend

NUMBERS = np.zeros(3, dtype=bool)


def design(n, d=3, seed=0):
    return np.random.default_rng(seed).random((n, d))


def test_a_line_is_found():
    X = design(60)
    slopes = np.array([4.0, -1.0, 0.0])
    line = fit_trend(X, 2.0 + X @ slopes, NUMBERS)
    np.testing.assert_allclose(line.slopes, slopes, atol=0.1)
    np.testing.assert_allclose(line(X), 2.0 + X @ slopes, atol=0.1)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_posterior_is_that_of_a_gaussian_process_with_a_linear_kernel(n):
    """Bayesian linear regression is a Gaussian process; at the deviation that was learned, both must agree."""
    X, Z = design(n), design(20, seed=1)
    y = 1.0 + X @ [2.0, 0.0, -3.0] + 0.3 * np.random.default_rng(2).standard_normal(n)
    line = fit_trend(X, y, NUMBERS)
    slope_variance, flat = 4.0 * PRIOR_STD**2 / 3.0, 1e8  # a flat prior of the height

    def kernel(A, B):
        return flat + slope_variance * (A - 0.5) @ (B - 0.5).T

    gram = kernel(X, X) + line.noise * np.eye(n)
    np.testing.assert_allclose(line(Z), kernel(Z, X) @ np.linalg.solve(gram, y), atol=1e-4)
    expected = np.diag(kernel(Z, Z) - kernel(Z, X) @ np.linalg.solve(gram, kernel(X, Z)))
    np.testing.assert_allclose(line.variance_and_grad(Z)[0], expected, rtol=1e-3, atol=1e-4)


def test_the_deviation_is_learned():
    X, noise = design(400), np.random.default_rng(3).standard_normal(400)
    for deviation in (0.1, 0.5, 2.0):
        line = fit_trend(X, X[:, 0] + deviation * noise, NUMBERS)
        assert np.sqrt(line.noise) == pytest.approx(deviation, rel=0.15)


def test_one_cost_says_nothing_of_slopes():
    """In the corner the deviation is the assumed one beside that of the height, whatever the dimension."""
    for d in (1, 4, 16):
        line = fit_trend(np.full((1, d), 0.5), np.array([3.0]), np.zeros(d, dtype=bool))
        np.testing.assert_array_equal(line.slopes, np.zeros(d))
        corner = line.variance_and_grad(np.ones((1, d)))[0][0]
        assert corner == pytest.approx(PRIOR_STD**2 + ASSUMED_STD**2, rel=1e-9)


def test_gradient_of_the_variance():
    X, Z = design(6), design(10, seed=1)
    line = fit_trend(X, X[:, 0], NUMBERS)
    expected = central_difference(lambda P: line.variance_and_grad(P)[0], Z, 1e-5)
    np.testing.assert_allclose(line.variance_and_grad(Z)[1], expected, atol=1e-6)


def test_categories_have_no_slope():
    X = design(30)
    line = fit_trend(X, 5.0 * X[:, 1] + X[:, 0], np.array([False, True, False]))
    assert line.slopes[1] == 0.0
    assert not line.covariance[2].any()
    only = fit_trend(X, X[:, 0], np.ones(3, dtype=bool))
    np.testing.assert_allclose(only(X), X[:, 0].mean())


def test_no_line_is_level_and_certain():
    line = Trend.none(2)
    assert not line(design(4, 2)).any()
    assert not line.variance_and_grad(design(4, 2))[0].any()
    np.testing.assert_array_equal(line.raised(1.5)(design(4, 2)), np.full(4, 1.5))
