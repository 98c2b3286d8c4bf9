"""Costs: log E[c^p] against the log-normal formula, a Gaussian process by hand and simulation; gradients; refusals."""

import dataclasses
import json
import math

import numpy as np
import pytest
from engine_fixtures import LINE, MIXED, SQUARE, central_difference, cube, one_thread  # noqa: F401

from pbgi import InvalidInputError
from pbgi.cost.affordable import fits
from pbgi.cost.models import (
    PRIOR_LENGTH_SCALE,
    PRIOR_LOG_NOISE_STD,
    PRIOR_LOG_STD,
    KnownCost,
    LearnedCost,
    UniformCost,
    least_costs,
    posterior_and_cost,
)
from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.gp.fit import fit_gp
from pbgi.gp.posterior import GP
from pbgi.gp.trend import fit_trend
from pbgi.parameter import Categorical, Float, Integer
from pbgi.serialization import from_plain, to_plain
from pbgi.space import Space

POWERS = [1.0, -1.0, -0.3, 0.0]


def design(space, n, seed=0):
    return space.snap(np.random.default_rng(seed).random((n, space.dimension)))


def some_costs(X, seed=0):
    noise = np.random.default_rng(seed).normal(size=len(X))
    return np.exp(1.0 + 3.0 * X[:, 0] - 2.0 * X[:, -1] ** 2 + 0.3 * noise)


def fit(cost, space, X, costs):
    return cost.fit(space, X, np.asarray(costs, dtype=float), GPConfig(), None)


def price_of_mixed(params):
    return params["layers"] * {"relu": 1.0, "tanh": 2.0, "gelu": 5.0}[params["act"]] / math.sqrt(params["lr"])


# Against formulas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", POWERS)
def test_uniform_cost_is_one(power):
    X = design(MIXED, 7)
    model = fit(UniformCost(), MIXED, X, some_costs(X))
    value, gradient = model.log_moment_and_grad(X, power)
    np.testing.assert_array_equal(model.log_moment(X, power), np.zeros(7))
    np.testing.assert_array_equal(value, np.zeros(7))
    np.testing.assert_array_equal(gradient, np.zeros((7, 4)))


@pytest.mark.parametrize("power", POWERS)
def test_known_cost_is_a_power_of_the_price(power):
    X = design(MIXED, 20)
    expected = [power * math.log(price_of_mixed(MIXED.from_unit(x))) for x in X]
    model = fit(KnownCost(price_of_mixed), MIXED, X, some_costs(X))  # what was paid is not asked
    np.testing.assert_allclose(model.log_moment(X, power), expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(model.log_moment_and_grad(X, power)[0], expected, rtol=1e-14, atol=1e-14)


def line_and_process(space, X, costs, Z):
    """Mean and variance of the logarithm, and the noise: the line, and the process of the logarithms around it."""
    logs = np.log(costs)
    line = fit_trend(X, logs, space.categorical)
    fitted = fit_gp(X, logs, GPConfig(), categorical=space.categorical).hyperparameters
    unit = logs.var(ddof=1)
    parameters = Hyperparameters(fitted.length_scales, unit * fitted.output_scale, unit * fitted.noise)
    around = GP.with_hyperparameters(X, logs - line(X), parameters, categorical=space.categorical, standardize=False)
    residual, std = around.posterior(Z)
    return line(Z) + residual, std**2, unit * fitted.noise


@pytest.mark.parametrize("power", POWERS)
def test_learned_cost_is_log_normal(power):
    X, Z = design(MIXED, 15), design(MIXED, 40, seed=1)
    costs = some_costs(X)
    mean, variance, _ = line_and_process(MIXED, X, costs, Z)
    model = fit(LearnedCost(), MIXED, X, costs)
    np.testing.assert_allclose(model.log_moment(Z, power), power * mean + 0.5 * power**2 * variance, atol=1e-6)
    np.testing.assert_allclose(model.log_moment_and_grad(Z, power)[0], model.log_moment(Z, power), atol=1e-12)


@pytest.mark.parametrize("power", POWERS)
def test_without_a_trend_the_logarithm_is_a_process_as_in_the_paper(power):
    X, Z = design(MIXED, 15), design(MIXED, 40, seed=1)
    costs = some_costs(X)
    mean, std = fit_gp(X, np.log(costs), GPConfig(), categorical=MIXED.categorical).posterior(Z)
    model = fit(LearnedCost(trend=False), MIXED, X, costs)
    np.testing.assert_allclose(model.log_moment(Z, power), power * mean + 0.5 * power**2 * std**2, atol=1e-6)


@pytest.mark.parametrize("z", [0.0, 1.0, 2.0])
def test_upper_quantile_counts_noise_and_how_few_costs_there_are(z):
    X, Z = design(SQUARE, 15), design(SQUARE, 40, seed=1)
    costs = some_costs(X) * np.exp(0.2 * np.random.default_rng(3).standard_normal(15))
    mean, variance, noise = line_and_process(SQUARE, X, costs, Z)
    expected = mean + z * (1 + 1.5 / 15) * np.sqrt(variance + noise)
    np.testing.assert_allclose(fit(LearnedCost(), SQUARE, X, costs).log_upper(Z, z), expected, atol=1e-6)


def test_upper_quantile_of_what_is_known_is_the_cost():
    X = design(MIXED, 9)
    expected = [math.log(price_of_mixed(params)) for params in MIXED.from_unit_many(X)]
    model = fit(KnownCost(price_of_mixed), MIXED, X, some_costs(X))
    np.testing.assert_allclose(model.log_upper(X, 2.0), expected, rtol=1e-14)
    np.testing.assert_array_equal(fit(UniformCost(), MIXED, X, some_costs(X)).log_upper(X, 2.0), np.zeros(9))


def test_a_steep_cost_is_known_beyond_what_was_paid():
    """From 1 to 1000 along x, paid for in the cheaper two thirds only: the far end is not taken for an average one."""
    X = design(SQUARE, 12) * [0.65, 1.0]
    model = fit(LearnedCost(), SQUARE, X, 10.0 ** (3.0 * X[:, 0]))
    corners = np.array([[1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(model.log_upper(corners, 0.0), math.log(1000.0), atol=math.log(1.5))
    assert (model.log_upper(corners, 2.0) > math.log(1000.0)).all()
    assert not fits(model, corners, 500.0).any()
    assert fits(model, X[X[:, 0] < 0.3], 500.0).all()


@pytest.mark.parametrize("factor", [None, price_of_mixed])
def test_costs_that_are_all_alike_are_certain(factor):
    X, Z = design(MIXED, 3), design(MIXED, 20, seed=1)
    known = [1.0 if factor is None else factor(params) for params in MIXED.from_unit_many(X)]
    model = fit(LearnedCost(factor), MIXED, X, 0.1 * np.array(known))
    expected = [math.log(0.1 * (1.0 if factor is None else factor(params))) for params in MIXED.from_unit_many(Z)]
    for z in (0.0, 2.0):
        np.testing.assert_allclose(model.log_upper(Z, z), expected, rtol=1e-9, atol=1e-9)
    for power in POWERS:
        np.testing.assert_allclose(model.log_moment(Z, power), power * np.array(expected), rtol=1e-9, atol=1e-9)
    two = fit(LearnedCost(factor), MIXED, X[:2], 0.1 * np.array(known[:2]))
    assert (two.log_upper(Z, 2.0) > two.log_upper(Z, 0.0)).all()


@pytest.mark.parametrize("power", [1.0, -1.0, -0.3])
def test_moments_by_simulation(power):
    X, Z = design(SQUARE, 8), design(SQUARE, 5, seed=1)
    costs = some_costs(X)
    mean, variance, _ = line_and_process(SQUARE, X, costs, Z)
    std = np.sqrt(variance)
    assert (std > 0.05).all()  # else the variance term would not be tested
    n = 400_000
    draws = np.exp(power * (mean[:, None] + std[:, None] * np.random.default_rng(2).standard_normal((5, n))))
    moments = np.exp(fit(LearnedCost(), SQUARE, X, costs).log_moment(Z, power))
    assert (np.abs(draws.mean(axis=1) - moments) < 5 * draws.std(axis=1) / math.sqrt(n)).all()


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("n", [2, 12])
def test_known_factor_multiplies_what_is_learned(power, n):
    X, Z = design(MIXED, n), design(MIXED, 30, seed=1)
    prices = np.array([price_of_mixed(params) for params in MIXED.from_unit_many(X)])
    durations = some_costs(X)
    model = fit(LearnedCost(known_factor=price_of_mixed), MIXED, X, prices * durations)
    learned = fit(LearnedCost(), MIXED, X, durations).log_moment(Z, power)
    known = [power * math.log(price_of_mixed(params)) for params in MIXED.from_unit_many(Z)]
    np.testing.assert_allclose(model.log_moment(Z, power), learned + known, atol=1e-8)
    np.testing.assert_allclose(model.log_moment_and_grad(Z, power)[0], learned + known, atol=1e-8)


# Few observations -----------------------------------------------------------------------------------------------------


def matern(A, B, length_scale):
    r = math.sqrt(5.0) * np.linalg.norm(A[:, None] - B[None], axis=2) / length_scale
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


@pytest.mark.parametrize("n", [1, 2, 4, least_costs(2) - 1])
def test_few_costs_give_an_assumed_process_by_hand(n):
    """A Matern-5/2 process around the line; the assumed variance counts like two observations."""
    X, Z = design(SQUARE, n), design(SQUARE, 25, seed=1)
    logs = np.log(some_costs(X))
    line = fit_trend(X, logs, SQUARE.categorical)
    left = logs - line(X)
    prior = (2 * PRIOR_LOG_STD**2 + (left**2).sum()) / (2 + n)
    gram = prior * matern(X, X, PRIOR_LENGTH_SCALE) + PRIOR_LOG_NOISE_STD**2 * np.eye(n)
    cross = prior * matern(Z, X, PRIOR_LENGTH_SCALE)
    mean = line(Z) + cross @ np.linalg.solve(gram, left)
    variance = prior - np.einsum("ij,ji->i", cross, np.linalg.solve(gram, cross.T))
    variance *= 1.0 + line.variance_and_grad(Z)[0] / prior
    model = fit(LearnedCost(), SQUARE, X, np.exp(logs))
    for power in POWERS:
        np.testing.assert_allclose(model.log_moment(Z, power), power * mean + 0.5 * power**2 * variance, atol=1e-8)
    assert model.hyperparameters is None  # nothing was fitted, so the next fit has no warm start


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6])
def test_few_costs_make_a_log_normal_that_knows_what_was_paid(n):
    """p m + p^2 v / 2 for one m and v: near the logarithm paid and sure there, unsure far away."""
    X = 0.3 * design(SQUARE, n)
    costs = some_costs(X)
    model = fit(LearnedCost(), SQUARE, X, costs)
    Z = np.concatenate([X, design(SQUARE, 20, seed=1), [[1.0, 1.0]]])
    up, down = model.log_moment(Z, 1.0), model.log_moment(Z, -1.0)
    mean, variance = (up - down) / 2, up + down
    np.testing.assert_allclose(model.log_moment(Z, -0.3), -0.3 * mean + 0.045 * variance, atol=1e-9)
    np.testing.assert_array_equal(model.log_moment(Z, 0.0), 0.0)
    assert (np.abs(mean[:n] - np.log(costs)) < 0.2).all()
    assert (variance[:n] < 3.0 * PRIOR_LOG_NOISE_STD**2).all()
    assert variance[-1] > 0.5


def test_enough_costs_start_the_fit():
    X = design(SQUARE, least_costs(2))
    logs = np.log(some_costs(X))
    model = fit(LearnedCost(), SQUARE, X, np.exp(logs))
    expected = fit_gp(X, logs).hyperparameters.length_scales
    np.testing.assert_allclose(model.hyperparameters.length_scales, expected, rtol=1e-4)
    start = model.hyperparameters
    assert LearnedCost().fit(SQUARE, X, np.exp(logs), GPConfig(), start).hyperparameters is not None


def test_without_costs_only_the_known_factor_speaks():
    X = design(MIXED, 9)
    none = np.empty((0, 4))
    np.testing.assert_array_equal(fit(LearnedCost(), MIXED, none, []).log_moment(X, 1.0), np.zeros(9))
    factor = fit(LearnedCost(price_of_mixed), MIXED, none, [])
    expected = [math.log(price_of_mixed(params)) for params in MIXED.from_unit_many(X)]
    np.testing.assert_allclose(factor.log_moment(X, 1.0), expected, rtol=1e-14)
    assert factor.hyperparameters is None


@pytest.mark.parametrize("n", [1, 2, 4, 5, 8])
def test_one_point_paid_for_again_and_again(n):
    X = np.full((n, 2), 0.3)
    costs = np.geomspace(0.5, 2.0, n) if n > 1 else np.array([1.0])
    model = fit(LearnedCost(), SQUARE, X, costs)
    assert abs(model.log_moment(X[:1], 1.0)[0]) < 0.5  # the geometric mean is 1
    value, gradient = model.log_moment_and_grad(design(SQUARE, 30), -1.0)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


# Scale ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 5, 12])
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("unit", [1e-9, 0.37, 3600.0, 1e12])
def test_another_unit_of_cost_shifts_the_logarithm(n, power, unit):
    X, Z = design(SQUARE, n), design(SQUARE, 30, seed=1)
    costs = some_costs(X)
    here, there = (fit(LearnedCost(), SQUARE, X, k * costs).log_moment(Z, power) for k in (1.0, unit))
    np.testing.assert_allclose(there - here, power * math.log(unit), atol=1e-7)


@pytest.mark.parametrize("n", [3, 13])
def test_costs_over_twelve_orders_of_magnitude(n):
    X = np.linspace(0.0, 1.0, n)[:, None]
    costs = 10.0 ** (12.0 * X[:, 0] - 6.0)
    model = fit(LearnedCost(), LINE, X, costs)
    # At the points that were paid for, the price is known: to a tenth of an order, given the assumed noise.
    np.testing.assert_allclose(model.log_moment(X, 1.0), np.log(costs), atol=math.log(10) / 10)
    between = np.linspace(0.0, 1.0, 201)[:, None]
    for power in POWERS:
        value, gradient = model.log_moment_and_grad(between, power)
        assert np.isfinite(gradient).all()
        assert (np.abs(value) < 2 * math.log(1e6)).all()
    # A straight line in the logarithm is learned as one.
    if n == 13:
        expected = math.log(10) * (12.0 * between[:, 0] - 6.0)
        np.testing.assert_allclose(model.log_moment(between, 1.0), expected, atol=math.log(10) / 10)


# Gradients ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("n", [3, 15])
def test_gradient_of_a_learned_cost(power, n):
    X, Z = design(cube(3), n), 0.01 + 0.98 * design(cube(3), 20, seed=1)
    model = fit(LearnedCost(), cube(3), X, some_costs(X))
    expected = central_difference(lambda points: model.log_moment(points, power), Z, 1e-5)
    np.testing.assert_allclose(model.log_moment_and_grad(Z, power)[1], expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("power", [1.0, -0.3])
@pytest.mark.parametrize("known_factor", [None, lambda params: 1.0 + params["x0"]])
@pytest.mark.parametrize("kind", [LearnedCost, UniformCost])
def test_values_and_costs_asked_together_are_both(power, known_factor, kind):
    space = cube(3)
    X, Z = design(space, 15), design(space, 20, seed=1)
    cost = fit(kind() if known_factor is None or kind is UniformCost else kind(known_factor), space, X, some_costs(X))
    values = [fit_gp(X[:n], np.sin(5.0 * X[:n, 0]) - X[:n, 1]) for n in (15, 12)]
    for model in (*values, values[0]):  # on the same design, on another, and back
        posterior, moment = posterior_and_cost(model, cost, Z, power)
        for got, expected in zip(posterior, model.posterior_with_grad(Z), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)
        for got, expected in zip(moment, cost.log_moment_and_grad(Z, power), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(cost.log_moment(Z, power), moment[0], rtol=1e-9, atol=1e-10)


def test_a_learned_cost_forgets_points_that_have_changed():
    X, Z = design(cube(3), 15), design(cube(3), 20, seed=1)
    model, other = (fit(LearnedCost(), cube(3), X, some_costs(X)) for _ in range(2))
    model.log_moment(Z, 1.0)
    Z[:] = design(cube(3), 20, seed=2)
    np.testing.assert_array_equal(model.log_moment(Z, 1.0), other.log_moment(Z, 1.0))
    np.testing.assert_array_equal(model.log_moment(Z, -1.0), other.log_moment(Z, -1.0))


def test_gradient_of_a_learned_cost_is_zero_in_categories():
    X = design(MIXED, 15)
    gradient = fit(LearnedCost(), MIXED, X, some_costs(X)).log_moment_and_grad(design(MIXED, 20, seed=1), 1.0)[1]
    np.testing.assert_array_equal(gradient[:, MIXED.categorical], 0.0)
    assert (gradient[:, 0] != 0.0).all()


@pytest.mark.parametrize("power", POWERS)
def test_gradient_of_a_known_price_by_hand(power):
    """log price = a + log(1 + b) + log n, with a = 4 u - 1 and log10 b = 3 v - 2; faces included."""
    space = Space(
        {"a": Float(-1.0, 3.0), "b": Float(0.01, 10.0, log=True), "n": Integer(1, 5), "c": Categorical(["x", "y"])}
    )
    U = np.array([[0.3, 0.6, 0.1, 0.25], [0.0, 0.0, 0.5, 0.75], [1.0, 1.0, 0.9, 0.25], [0.999, 1e-7, 0.3, 0.75]])
    model = fit(KnownCost(lambda p: math.exp(p["a"]) * (1.0 + p["b"]) * p["n"]), space, U, np.ones(4))
    b = 0.01 * 1000.0 ** U[:, 1]
    expected = np.zeros((4, 4))
    expected[:, 0] = 4.0 * power
    expected[:, 1] = power * b / (1.0 + b) * math.log(1000.0)
    np.testing.assert_allclose(model.log_moment_and_grad(U, power)[1], expected, atol=1e-4)


def test_gradient_of_a_known_price_of_an_integer_too_fine_for_a_grid():
    """Treated as continuous: the price of n is n, so d log(price)/du = range / n."""
    space = Space({"n": Integer(1, 100_000), "x": Float(0.0, 1.0)})
    U = np.array([[0.2, 0.5], [0.5, 0.1], [0.9, 0.9], [0.999999, 0.0], [1.0, 1.0]])
    gradient = fit(KnownCost(lambda p: p["n"]), space, U, np.ones(5)).log_moment_and_grad(U, 1.0)[1]
    np.testing.assert_allclose(gradient[:, 0], 1.0 / U[:, 0], rtol=1e-3)
    np.testing.assert_array_equal(gradient[:, 1], 0.0)


def test_gradient_of_a_known_price_within_one_wide_level_is_zero():
    """On a log scale the first of a million levels owns 5 % of the range: in it the price does not move."""
    space = Space({"n": Integer(1, 1_000_000, log=True)})
    model = fit(KnownCost(lambda p: p["n"]), space, np.array([[0.03]]), np.ones(1))
    np.testing.assert_array_equal(model.log_moment_and_grad(np.array([[0.03]]), 1.0)[1], [[0.0]])
    # Far up, levels are dense: log n = u log(2e6 + 1) - log 2.
    slope = model.log_moment_and_grad(np.array([[0.9]]), 1.0)[1]
    np.testing.assert_allclose(slope, [[math.log(2e6)]], rtol=1e-3)


# Prices of many points at once ----------------------------------------------------------------------------------------


def price_by_columns(params):
    """`price_of_mixed`'s kin, for numbers and arrays alike: a formula, a choice and a fixed value."""
    surcharge = np.where(np.asarray(params["act"] == "relu"), 1.0, 3.0)
    return (1.0 + np.log(params["width"])) * params["layers"] * surcharge * params["fixed"] * 10.0 ** (2 + params["lr"])


@pytest.mark.parametrize("make", [KnownCost, LearnedCost])
def test_a_vectorized_price_is_the_same_price(make):
    X, Z = design(MIXED, 12), design(MIXED, 40, seed=1)
    one, many = (
        fit(make(price, vectorized=vectorized), MIXED, X, some_costs(X))
        for price, vectorized in ((lambda p: float(price_by_columns(p)), False), (price_by_columns, True))
    )
    for power in POWERS:
        np.testing.assert_allclose(many.log_moment(Z, power), one.log_moment(Z, power), rtol=1e-12, atol=1e-12)
        for a, b in zip(many.log_moment_and_grad(Z, power), one.log_moment_and_grad(Z, power), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_a_vectorized_price_is_called_once_for_a_gradient():
    calls = []
    cost = fit(KnownCost(lambda p: calls.append(len(p["x0"])) or 1.0 + p["x0"], vectorized=True), cube(5), [], [])
    _, gradient = cost.log_moment_and_grad(np.full((7, 5), 0.5), 1.0)
    assert calls == [7 * 6]
    np.testing.assert_allclose(gradient, [[1.0 / 1.5, 0.0, 0.0, 0.0, 0.0]] * 7, rtol=1e-6)


@pytest.mark.parametrize(
    "bad", [lambda p: p["x"] - 0.5, lambda _: np.ones(3), lambda p: p["x"] * 1j, lambda _: np.array(["a", "b"])]
)
def test_bad_vectorized_prices_are_refused(bad):
    X = np.array([[0.75], [0.25]])
    with pytest.raises(InvalidInputError, match=r"positive, finite number; at {'x': 0.25}|as many real numbers"):
        fit(KnownCost(bad, vectorized=True), LINE, X, [1.0, 1.0]).log_moment(X, 1.0)


# Refusals and frozen values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [0, 0.0, -1.0, math.nan, math.inf, True, np.bool_(True), "3", None, 1j, np.complex128(1), 10**400, [1.0]]
)
@pytest.mark.parametrize("make", [KnownCost, LearnedCost])
def test_bad_prices_are_refused(make, bad):
    X = np.array([[0.25], [0.5]])
    with pytest.raises(InvalidInputError, match="positive, finite number") as refusal:
        fit(make(lambda params: bad if params["x"] == 0.5 else 1.0), LINE, X, [1.0, 1.0]).log_moment(X, 1.0)
    assert "{'x': 0.5}" in str(refusal.value)
    assert repr(bad) in str(refusal.value)


@pytest.mark.parametrize("make", [lambda: KnownCost(None), lambda: KnownCost(3.0), lambda: LearnedCost({"x": 1.0})])
def test_a_price_that_cannot_be_called_is_refused_at_once(make):
    with pytest.raises(InvalidInputError, match="must be a function of the parameters, a dict; got"):
        make()


@pytest.mark.parametrize("good", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_numbers_of_all_kinds_are_prices(good):
    model = fit(KnownCost(lambda _: good), LINE, np.empty((0, 1)), [])
    np.testing.assert_allclose(model.log_moment(np.array([[0.1]]), -1.0), [-math.log(2)], rtol=1e-15)


def test_price_function_sees_whole_points_of_builtins():
    seen = []
    fit(KnownCost(lambda params: seen.append(params) or 1.0), MIXED, np.empty((0, 4)), []).log_moment(
        design(MIXED, 1), 1.0
    )
    assert list(seen[0]) == ["lr", "layers", "width", "act", "fixed"]
    assert [type(value) for value in seen[0].values()] == [float, int, int, str, int]
    assert seen[0]["fixed"] == 7


@pytest.mark.parametrize("cost", [UniformCost(), LearnedCost(), KnownCost(price_of_mixed), LearnedCost(price_of_mixed)])
def test_costs_are_frozen_values(cost):
    assert dataclasses.replace(cost) == cost
    assert hash(dataclasses.replace(cost)) == hash(cost)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        cost.price = None


def test_costs_survive_json_unless_they_hold_a_function():
    for cost in (UniformCost(), LearnedCost()):
        assert from_plain("cost", json.loads(json.dumps(to_plain(cost))), (UniformCost, LearnedCost)) == cost
    for cost in (KnownCost(price_of_mixed), LearnedCost(price_of_mixed)):
        with pytest.raises(InvalidInputError, match="function cannot be written"):
            to_plain(cost)
