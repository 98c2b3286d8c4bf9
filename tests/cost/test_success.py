"""The chance of success: by hand, learned, and what a search makes of it."""

import numpy as np
import pytest
from engine_fixtures import SQUARE, central_difference, cube, one_thread  # noqa: F401

from pbgi import Float, Optimizer
from pbgi.cost import KnownCost, LearnedCost
from pbgi.cost.success import FEW_FAILURES, LENGTH_SCALE, MOST_FITTED, PerSuccess, fit_success
from pbgi.gp.config import GPConfig

POWERS = [1.0, -1.0, -0.3, 0.0]


def design(d, n, seed=0):
    return np.random.default_rng(seed).random((n, d))


def cost_of(space, X):
    costs = np.exp(1.0 + 3.0 * X[:, 0] - 2.0 * X[:, -1] ** 2)
    return LearnedCost().fit(space, X, costs, GPConfig(), None)


def matern(A, B, length_scale):
    """Matern-5/2, written out."""
    r = np.sqrt(5.0) * np.linalg.norm(A[:, None] - B[None], axis=2) / length_scale
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def test_price_per_success_by_hand():
    """c / p, where p is the mean of a process around 1 that saw 1 at successes and 0 at failures; at least 1/1000."""
    succeeded, failed, Z = design(2, 6), design(2, FEW_FAILURES - 1, seed=2), design(2, 50, seed=1)
    cost, X = cost_of(SQUARE, succeeded), np.concatenate([succeeded, failed])
    gram = 0.25 * matern(X, X, LENGTH_SCALE) + 0.01 * np.eye(len(X))
    below = np.linalg.solve(gram, [0.0] * 6 + [-1.0] * len(failed))
    Z = np.concatenate([Z, X])
    chance = np.clip(1.0 + 0.25 * matern(Z, X, LENGTH_SCALE) @ below, 1e-3, 1.0)
    assert chance.min() < 0.1
    assert chance.max() == 1.0
    success = fit_success(SQUARE, succeeded, failed)
    np.testing.assert_allclose(success.chance(Z), chance, atol=1e-10)
    np.testing.assert_array_equal(success.is_likely(Z), chance >= 0.5)
    price = PerSuccess(cost, success)
    for power in POWERS:
        expected = cost.log_moment(Z, power) - power * np.log(chance)
        np.testing.assert_allclose(price.log_moment(Z, power), expected, atol=1e-8)
        np.testing.assert_allclose(price.log_moment_and_grad(Z, power)[0], expected, atol=1e-8)
    assert price.hyperparameters is cost.hyperparameters


@pytest.mark.parametrize("n_failed", [2, 8])
@pytest.mark.parametrize("power", POWERS)
def test_gradient_of_the_price_per_success(power, n_failed):
    succeeded, failed = design(3, 12), design(3, n_failed, seed=2)
    price = PerSuccess(cost_of(cube(3), succeeded), fit_success(cube(3), succeeded, failed))
    Z = 0.01 + 0.98 * design(3, 60, seed=1)
    chance = price.success.gp.posterior(Z)[0]
    Z = Z[(np.abs(chance - 1.0) > 1e-4) & (np.abs(chance - 1e-3) > 1e-4)]  # kinks
    assert len(Z) > 20
    expected = central_difference(lambda points: price.log_moment(points, power), Z, 1e-5)
    np.testing.assert_allclose(price.log_moment_and_grad(Z, power)[1], expected, atol=1e-5, rtol=1e-5)


def test_without_failures_there_is_nothing_to_believe():
    assert fit_success(SQUARE, design(2, 3), np.empty((0, 2))) is None


def test_what_failures_depend_on_is_learned():
    """They have one coordinate of four in common: so has the rest of that half, however far in the others."""
    X = design(4, 40)
    fails = X[:, 2] > 0.6
    success = fit_success(cube(4), X[~fails], X[fails])
    Z = design(4, 400, seed=1)
    clear = np.abs(Z[:, 2] - 0.6) > 0.15
    assert np.mean(success.is_likely(Z[clear]) == (Z[clear, 2] < 0.6)) > 0.95


def test_failures_by_chance_rule_nothing_out_for_good():
    """Every fifth trial fails, wherever it is: between many successes no point is taken to fail."""
    X = design(2, 100)
    fails = np.arange(100) % 5 == 0
    success = fit_success(SQUARE, X[~fails], X[fails])
    assert success.is_likely(design(2, 400, seed=1)).mean() > 0.9


def test_the_chance_counts_all_trials_and_not_only_those_that_lengths_are_learned_from():
    X = design(1, 2 * MOST_FITTED + 50)
    X = X[np.argsort(np.abs(X[:, 0] - 0.9))]  # the first ones, which are not learned from, lie around 0.9
    fails = X[:, 0] > 0.5
    success = fit_success(cube(1), X[~fails], X[fails])
    assert success.chance(np.array([[0.9]]))[0] < 0.1
    assert success.chance(np.array([[0.1]]))[0] > 0.9


@pytest.mark.slow
def test_a_tempting_half_where_everything_fails_is_soon_left_alone():
    """At random four of ten trials would lie deep in it. The best point that there is lies at its border."""
    space = {"x": Float(0, 1), "y": Float(0, 1), "z": Float(0, 1)}
    cost = KnownCost(lambda p: 1.0 + p["x"], vectorized=True)
    later = []
    for seed in range(6):
        optimizer = Optimizer(space, cost=cost, budget=60, n_startup_trials=8, seed=seed)
        while optimizer.should_stop() is None:
            trial = optimizer.ask()
            x, y, z = trial.params.values()
            if x > 0.5:
                optimizer.fail(trial)
            else:
                optimizer.tell(trial, -x + (y - 0.3) ** 2 + (z - 0.6) ** 2)
        assert len(optimizer.trials) > 32
        assert optimizer.best.value == pytest.approx(-0.5, abs=0.03)
        later += optimizer.trials[12:]
    assert sum(trial.params["x"] > 0.6 for trial in later) < 0.4 * len(later) / 2
