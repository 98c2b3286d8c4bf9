"""When the models of a run are fitted anew, what they are then, and what a user can ask them."""

import math

import numpy as np
import pytest
from engine_fixtures import one_thread  # noqa: F401
from scipy import stats

from pbgi import Float, InvalidInputError, KnownCost, LearnedCost, Optimizer
from pbgi.choosing.fitting import MANY_VALUES, VALUE_REFIT, refit_is_due
from pbgi.gp.algebra import rounded
from pbgi.gp.config import GPConfig
from pbgi.gp.fit import MapObjective, fit_gp
from pbgi.gp.posterior import GP
from pbgi.gp.warp import WARP_QUANTUM, fit_warp
from pbgi.notes import VALUE_MODEL, VALUE_MODEL_SIZE

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def told(n, *, direction="minimize", **settings):
    """An optimizer that was told n values of a smooth function at random points, with costs."""
    optimizer = Optimizer(SPACE, direction=direction, seed=0, **settings)
    rng = np.random.default_rng(0)
    for x, y in rng.random((n, 2)).tolist():
        optimizer.tell({"x": x, "y": y}, value({"x": x, "y": y}), cost=price({"x": x, "y": y}))
    return optimizer


def value(point):
    return 40.0 + 3.0 * math.sin(5.0 * point["x"]) + math.cos(4.0 * point["y"])


def price(point):
    return math.exp(point["x"] - 2.0 * point["y"])


def as_arrays(trials):
    return np.array([list(t.params.values()) for t in trials]), np.array([t.value for t in trials])


# When ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_fitted", range(1, 13))
def test_few_values_are_fitted_every_time(n_fitted):
    assert refit_is_due(np.zeros(n_fitted + 1), n_fitted)


@pytest.mark.parametrize(("outputs", "n_fitted"), [("warped", 20), ("standardized", 21)])
def test_values_that_are_not_warped_are_fitted_every_time(outputs, n_fitted):
    optimizer = told(20, model=GPConfig(outputs=outputs))
    optimizer.tell(optimizer.ask(), 100.0, cost=1.0)
    assert VALUE_MODEL_SIZE.of(optimizer.ask()) == n_fitted


def test_many_values_are_fitted_when_they_have_grown():
    n_fitted = 1000
    enough = math.ceil(VALUE_REFIT * n_fitted)
    falling = -np.arange(float(enough))
    assert refit_is_due(falling, n_fitted)
    assert not refit_is_due(falling[:-1], n_fitted)
    assert not refit_is_due(falling[:n_fitted], n_fitted)


def test_a_new_best_value_is_a_reason_to_fit():
    values = np.zeros(1005)
    assert not refit_is_due(values, 1000)
    values[1002] = 1e-9
    assert refit_is_due(values, 1000)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_hyperparameters_stay_until_a_fit_is_due_and_predictions_follow_the_data(direction):
    worse = {"minimize": 100.0, "maximize": -100.0}[direction]
    optimizer = told(MANY_VALUES, direction=direction)
    first = optimizer.ask()
    assert VALUE_MODEL_SIZE.of(first) == MANY_VALUES
    optimizer.tell(first, worse, cost=1.0)
    second = optimizer.ask()
    assert (VALUE_MODEL.of(second), VALUE_MODEL_SIZE.of(second)) == (VALUE_MODEL.of(first), MANY_VALUES)
    better = {"minimize": 30.0, "maximize": 50.0}[direction]
    optimizer.tell(second, better, cost=1.0)
    third = optimizer.ask()
    assert VALUE_MODEL_SIZE.of(third) == MANY_VALUES + 2
    assert VALUE_MODEL.of(third) != VALUE_MODEL.of(first)


def test_a_fit_that_is_left_out_uses_all_values():
    optimizer = told(MANY_VALUES)
    trial = optimizer.ask()
    optimizer.tell(trial, 60.0, cost=1.0)
    X, y = as_arrays([t for t in optimizer.trials if t.value is not None])
    before, after = fit_warp(-y[:-1]), fit_warp(-y)
    hyperparameters = fit_gp(X[:-1], rounded(before.to_warped(-y[:-1]), WARP_QUANTUM)).hyperparameters
    mean, _ = GP.with_hyperparameters(X, rounded(after.to_warped(-y), WARP_QUANTUM), hyperparameters).posterior(X[-1:])
    prediction = optimizer.predict([trial.params])
    assert prediction.median == pytest.approx(-after.to_values(mean), rel=1e-9)


# Predictions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_predictions_are_those_of_the_fitted_process(direction):
    optimizer = told(30, direction=direction)
    sign = {"minimize": -1.0, "maximize": 1.0}[direction]
    X, y = as_arrays(optimizer.trials)
    points = np.random.default_rng(1).random((5, 2))
    warp = fit_warp(sign * y)
    mean, std = fit_gp(X, rounded(warp.to_warped(sign * y), WARP_QUANTUM), GPConfig()).posterior(points)
    prediction = optimizer.predict([{"x": x, "y": y} for x, y in points.tolist()])
    np.testing.assert_allclose(prediction.median, sign * warp.to_values(mean), rtol=1e-9)
    tenth = stats.norm.ppf(0.9) * std
    ends = np.sort([sign * warp.to_values(mean - tenth), sign * warp.to_values(mean + tenth)], axis=0)
    np.testing.assert_allclose([prediction.low, prediction.high], ends, rtol=1e-9)
    # The function is smooth and thirty points tell it well.
    truth = [value({"x": x, "y": y}) for x, y in points.tolist()]
    assert np.all(np.abs(prediction.median - truth) < 5 * (prediction.high - prediction.low) + 1e-3)


def test_plain_outputs_are_not_warped():
    optimizer = told(30, model=GPConfig(outputs="standardized"))
    X, y = as_arrays(optimizer.trials)
    points = np.random.default_rng(1).random((5, 2))
    mean, _ = fit_gp(X, -y, GPConfig()).posterior(points)
    prediction = optimizer.predict([{"x": x, "y": y} for x, y in points.tolist()])
    np.testing.assert_allclose(prediction.median, -mean, rtol=1e-9)


def test_a_known_cost_is_predicted_as_it_is_and_a_learned_one_closely():
    points = [{"x": 0.2, "y": 0.9}, {"x": 0.7, "y": 0.4}]
    expected = [price(point) for point in points]
    known = told(10, cost=KnownCost(price)).predict(points).cost
    np.testing.assert_allclose(known, expected, rtol=1e-12)
    np.testing.assert_allclose(told(40, cost=LearnedCost()).predict(points).cost, expected, rtol=0.05)


def test_asking_for_predictions_changes_nothing():
    plain, asked = told(20, budget=100), told(20, budget=100)
    before = asked.to_json()
    asked.predict([{"x": 0.5, "y": 0.5}])
    assert asked.to_json() == before
    assert asked.ask().params == plain.ask().params


def test_no_points_no_predictions():
    assert told(5).predict([]).median.shape == (0,)


def test_nothing_is_believed_before_the_first_value():
    with pytest.raises(InvalidInputError, match="one completed trial and one parameter that varies; got 0 completed"):
        Optimizer(SPACE).predict([{"x": 0.5, "y": 0.5}])
    with pytest.raises(InvalidInputError, match="x"):
        told(5).predict([{"y": 0.5}])


# Many values ---------------------------------------------------------------------------------------------------------


def test_a_first_fit_to_many_values_looks_at_all_of_them_only_twice(monkeypatch):
    """An evaluation takes the third power of the number of values."""
    sizes, original = [], MapObjective._factor

    def counted(self, parameters):
        sizes.append(len(self._y))
        return original(self, parameters)

    monkeypatch.setattr(MapObjective, "_factor", counted)
    rng = np.random.default_rng(0)
    X = rng.random((1200, 2))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.standard_normal(1200)
    quick = fit_gp(X, y)
    assert sizes.count(1200) <= 2
    assert max(size for size in sizes if size < 1200) <= 750
    # Next to no difference: the noise is known within a few per cent, and so is the function.
    Z = rng.random((200, 2))
    mean, _ = quick.posterior(Z)
    assert quick.noise_std == pytest.approx(0.05, rel=0.1)
    assert np.abs(mean - np.sin(6.0 * Z[:, 0]) - Z[:, 1] ** 2).max() < 0.05


def test_a_run_of_many_values_goes_on_bit_for_bit():
    optimizer = told(1001)
    first = optimizer.ask()
    again = Optimizer.from_json(optimizer.to_json())
    for each in (optimizer, again):
        each.tell(first.number, 50.0, cost=1.0)
    second, same = optimizer.ask(), again.ask()
    assert (second.params, second.record) == (same.params, same.record)
