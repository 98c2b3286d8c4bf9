"""Where curves end: foretold by curves of the same kind, with errors that are as large as they say."""

import numpy as np
import pytest

from pbgi.gp.config import GPConfig
from pbgi.gp.fit import MapObjective
from pbgi.index import gittins_index
from pbgi.parameter import Float
from pbgi.space import Space
from pbgi.stages.curves import Observed, fit_curves
from pbgi.stages.instalments import Discount, Instalments

PLANE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
STEPS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def curves_of(rng, n, noise):
    """Rise towards a last value; how fast depends on x, so that they cross."""
    X = rng.random((n, 2))
    last = np.sin(3.0 * X[:, 0]) - X[:, 1]
    rise = (0.5 + X[:, :1]) * np.exp(-STEPS / 5.0)
    return X, last[:, None] - rise + noise * rng.standard_normal((n, len(STEPS)))


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_last_values_are_foretold_with_the_error_that_is_told(noise):
    rng = np.random.default_rng(0)
    X, values = curves_of(rng, 60, noise)
    reached = np.full(60, 5)
    reached[20:] = 2
    seen = values.copy()
    seen[20:, 2:] = np.nan
    curves = fit_curves(PLANE, Observed(X, seen, reached), None)
    mean, spread = curves.forecast(Observed(X[20:], seen[20:], reached[20:]))
    errors = (mean - values[20:, -1]) / np.sqrt(np.diagonal(spread))
    assert np.abs(mean - values[20:, -1]).mean() < 0.05 + 2.0 * noise
    # Curves without any noise are foretold better than is told: least noise is a share of how increments differ.
    assert (0.2 if noise else 0.0) < np.sqrt((errors**2).mean()) < 1.8
    assert np.linalg.eigvalsh(spread).min() > 0.0
    left = curves.left_after()
    assert (np.diff(left) <= 0.0).all()


def test_what_a_stage_leaves_open_is_what_forecasts_say():
    """The mean of the variances of single forecasts from there, of the latest twenty trials that got so far."""
    rng = np.random.default_rng(3)
    X, values = curves_of(rng, 30, 0.05)
    reached = np.repeat([5, 3, 2], 10)
    values[np.arange(5) >= reached[:, None]] = np.nan
    curves = fit_curves(PLANE, Observed(X, values, reached), None)
    mean, spread = curves.forecast(Observed(X, values, reached))
    alone = curves.forecast(Observed(X, values, reached), joint=False)
    np.testing.assert_allclose(alone, [mean, np.diagonal(spread)], rtol=1e-12)
    left = []
    for stage in range(1, 5):
        rows = np.flatnonzero(reached >= stage)[-20:]
        begun = Observed(X[rows], values[rows], np.full(len(rows), stage))
        left.append(np.diagonal(curves.forecast(begun)[1]).mean())
    np.testing.assert_allclose(curves.left_after(), np.minimum.accumulate(left), rtol=1e-12)


def test_the_slope_of_a_fit_with_known_errors_is_that_of_its_value():
    rng = np.random.default_rng(1)
    X, y = rng.random((12, 2)), rng.standard_normal(12)
    root = rng.standard_normal((12, 3))
    objective = MapObjective(X, y, np.zeros(2, dtype=bool), GPConfig(), root @ root.T + 0.1 * np.eye(12))
    at = np.log([0.4, 0.7, 1.3, 0.02])
    _, gradient = objective(at)
    step = 1e-5
    for k, e in enumerate(step * np.eye(4)):
        difference = (objective(at + e)[0] - objective(at - e)[0]) / (2.0 * step)
        assert gradient[k] == pytest.approx(difference, rel=1e-5, abs=1e-6)


def test_the_discount_gives_the_index_of_the_stages():
    rng = np.random.default_rng(2)
    instalments = Instalments(np.array([0.5, 3.0, 20.0]), np.array([0.05, 0.1, 0.25, 0.6]))
    std, log_cost = np.exp(rng.uniform(-3.0, 0.0, 50)), rng.uniform(-7.0, -2.0, 50)
    discount, by_log_std, by_log_cost = Discount.of(instalments, std, log_cost)(std, log_cost)
    exact = instalments.index(np.zeros(50), std, log_cost)
    assert np.abs(gittins_index(np.zeros(50), std, log_cost + discount) - exact).max() < 0.01
    assert (exact >= gittins_index(np.zeros(50), std, log_cost) - 1e-9).all()
    table, step = Discount.of(instalments, std, log_cost), 1e-6
    difference = (table(std * np.exp(step), log_cost)[0] - table(std * np.exp(-step), log_cost)[0]) / (2 * step)
    inside = np.abs(discount) > 1e-3
    assert by_log_std[inside] == pytest.approx(difference[inside], abs=1e-4)
    difference = (table(std, log_cost + step)[0] - table(std, log_cost - step)[0]) / (2 * step)
    assert by_log_cost[inside] == pytest.approx(difference[inside], abs=1e-4)
