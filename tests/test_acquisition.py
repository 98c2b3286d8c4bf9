"""Acquisition functions against textbook formulas, integrals, 50-digit arithmetic and finite differences."""

import math
from dataclasses import dataclass

import high_precision as hp
import mpmath as mp
import numpy as np
import pytest
from engine_fixtures import (
    build_snapshot,
    central_difference,
    cube,
    expected_improvement,
    index_by_bisection,
    one_thread,  # noqa: F401
)
from scipy import integrate, stats

from pbgi.acquisition import (
    Cheapness,
    Exponential,
    GittinsIndex,
    LogExpectedImprovement,
    PathValue,
    Restricted,
    UpperConfidenceBound,
)
from pbgi.cost import KnownCost, LearnedCost, UniformCost, fits
from pbgi.gp.config import GPConfig

POINT = np.zeros((1, 1))


@dataclass(frozen=True, eq=False)
class Believed:
    """The same mean and deviation everywhere, for values or, as logarithms, for costs."""

    mean: float
    std: float

    def posterior(self, X):
        return np.full(len(X), self.mean), np.full(len(X), self.std)

    def posterior_with_grad(self, X):
        return *self.posterior(X), np.zeros(X.shape), np.zeros(X.shape)

    def log_moment(self, X, power):
        return np.full(len(X), power * self.mean + 0.5 * power**2 * self.std**2)

    def log_moment_and_grad(self, X, power):
        return self.log_moment(X, power), np.zeros(X.shape)


FREE = Believed(0.0, 0.0)  # a cost of one


def improvement_by_integration(mean, std, threshold):
    density = stats.norm(mean, std).pdf
    top = max(mean, threshold) + 12 * std
    points = [p for p in (mean, mean + 3 * std) if threshold < p < top]
    return integrate.quad(
        lambda y: (y - threshold) * density(y), threshold, top, points=points, epsabs=0, epsrel=1e-11
    )[0]


# Values ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "std", "best"), [(0, 1, 0), (1, 0.3, 2), (-2, 5, 1), (3, 0.1, 2), (0.1, 2, 6)])
def test_expected_improvement_by_integration(mean, std, best):
    log_ei = LogExpectedImprovement(Believed(mean, std), FREE, best)
    expected = improvement_by_integration(mean, std, best)
    assert log_ei.value(POINT)[0] == pytest.approx(math.log(expected), abs=1e-9)
    assert log_ei.value_and_grad(POINT)[0][0] == pytest.approx(math.log(expected), abs=1e-9)
    assert Exponential(log_ei).value(POINT)[0] == pytest.approx(expected, rel=1e-9)
    assert Exponential(log_ei).value_and_grad(POINT)[0][0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("std", [1e-300, 1e-12, 1e-3, 1.0, 1e3, 1e150, 1e300])
@pytest.mark.parametrize("z", [-1e6, -40.0, -1.0, 0.0, 2.0, 50.0, 1e6])
def test_log_improvement_in_high_precision(std, z):
    mean = z * std
    value = LogExpectedImprovement(Believed(mean, std), FREE, 0.0).value(POINT)[0]
    expected = float(mp.log(mp.mpf(std)) + hp.log_h(mean / std))
    assert value == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("std", [1e-307, 1e-300, 1e-200])
def test_a_certain_improvement_is_the_difference_of_means(std):
    """However large (mean - best) / std is."""
    log_ei = LogExpectedImprovement(Believed(3.0, std), FREE, 1.0)
    assert log_ei.value(POINT)[0] == pytest.approx(math.log(2.0), abs=1e-12)
    assert np.isfinite(log_ei.value_and_grad(POINT)[1]).all()


@pytest.mark.parametrize("std", [5e-324, 1e-300, 1e-200, 1.0, 1e300])
def test_a_hopeless_point_has_a_finite_log_improvement(std):
    log_ei = LogExpectedImprovement(Believed(-1e300, std), FREE, 1e300)
    value, gradient = log_ei.value_and_grad(POINT)
    assert -math.inf < value[0] < math.log(std) if std < 1e300 else math.isfinite(value[0])
    assert np.isfinite(gradient).all()
    assert 0.0 <= Exponential(log_ei).value(POINT)[0] <= std


def test_exponential_stays_finite():
    """Expected improvement per cost may exceed the largest float: still better than anything below, not nothing."""
    per_cost = Exponential(LogExpectedImprovement(Believed(0.0, 1e300), Believed(-50.0, 0.0), 0.0, cost_power=-1.0))
    assert per_cost.value(POINT)[0] == np.finfo(float).max
    assert per_cost.value_and_grad(POINT)[0][0] == np.finfo(float).max


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (2.0, 0.3), (-1.0, 4.0)])
@pytest.mark.parametrize("cost_scale", [1e-4, 0.1, 1.0, 20.0])
def test_index_is_the_threshold_whose_improvement_pays_the_expected_cost(mean, std, cost_scale):
    log_cost_mean, log_cost_std = 0.4, 0.7
    expected_cost = math.exp(log_cost_mean + log_cost_std**2 / 2)
    index = GittinsIndex(Believed(mean, std), Believed(log_cost_mean, log_cost_std), cost_scale)
    g = index.value(POINT)[0]
    assert improvement_by_integration(mean, std, g) == pytest.approx(cost_scale * expected_cost, rel=1e-8)
    assert g == pytest.approx(index_by_bisection(mean, std, cost_scale * expected_cost), rel=1e-9, abs=1e-9)
    assert index.value_and_grad(POINT)[0][0] == g


@pytest.mark.parametrize("std", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("cost_scale", [1e-300, 1.0, 1e300])
def test_index_at_extreme_deviations_and_rates(std, cost_scale):
    """In 50 digits: g = mean - std z with log h(z) = log(cost_scale / std)."""
    g = GittinsIndex(Believed(0.0, std), FREE, cost_scale).value(POINT)[0]
    log_ratio = math.log(cost_scale) - math.log(std)
    if log_ratio > 50:  # h(z) = z to all digits
        expected = -cost_scale
    else:
        guess = -math.sqrt(-2 * log_ratio) if log_ratio < -1 else 0.3
        expected = -std * float(hp.root(log_ratio, guess).z)
    assert g == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("power", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_cost_power(power):
    """Plus log E[c^p] for negative powers, minus it for positive ones: larger costs always count against a point."""
    m, v = 1.3, 0.8
    value = LogExpectedImprovement(Believed(0.2, 0.5), Believed(m, math.sqrt(v)), 1.0, power).value(POINT)[0]
    log_ei = math.log(expected_improvement(0.2, 0.5, 1.0))
    log_moment = power * m + power**2 * v / 2
    expected = log_ei - log_moment if power > 0 else log_ei + log_moment
    assert value == pytest.approx(expected, abs=1e-12)
    dearer = LogExpectedImprovement(Believed(0.2, 0.5), Believed(m + 1, math.sqrt(v)), 1.0, power).value(POINT)[0]
    assert dearer - value == pytest.approx(-abs(power), abs=1e-12)


def test_upper_confidence_bound():
    assert UpperConfidenceBound(Believed(2.0, 3.0), 1.5).value(POINT)[0] == 6.5
    assert UpperConfidenceBound(Believed(2.0, 3.0), 1.5).value_and_grad(POINT)[0][0] == 6.5


def test_path_value():
    path = PathValue(lambda X: (X.sum(axis=1), np.ones(X.shape)))
    np.testing.assert_array_equal(path.value(np.array([[1.0, 2.0]])), [3.0])
    np.testing.assert_array_equal(path.value_and_grad(np.array([[1.0, 2.0]]))[1], [[1.0, 1.0]])


def test_worth_its_price_either_way():
    """log(EI / E[c]) exceeds log(cost_scale) where, and only where, the index exceeds the best value."""
    rng = np.random.default_rng(0)
    agree = 0
    for mean, log_std, log_cost, log_scale in rng.normal(size=(500, 4)) * [1, 2, 2, 3]:
        model, cost = Believed(mean, math.exp(log_std)), Believed(log_cost, 0.5)
        worth = LogExpectedImprovement(model, cost, 0.0, cost_power=1.0).value(POINT)[0] - log_scale
        index = GittinsIndex(model, cost, math.exp(log_scale)).value(POINT)[0]
        assert (worth > 0) == (index > 0)
        agree += worth > 0
    assert 100 < agree < 400


# Gradients, on a real process -----------------------------------------------------------------------------------------

CUBE = cube(3)
DESIGN = np.random.default_rng(3).random((12, 3))
SMOOTH = build_snapshot(
    CUBE,
    DESIGN,
    np.sin(5 * DESIGN[:, 0]) + DESIGN[:, 1] ** 2 - DESIGN[:, 2],
    cost=LearnedCost(),
    costs=np.exp(2 * DESIGN[:, 0] - 3 * DESIGN[:, 1] * DESIGN[:, 2]),
)
KNOWN = KnownCost(lambda p: 1.0 + 20.0 * p["x0"] * p["x2"] ** 2).fit(CUBE, DESIGN, np.ones(12), GPConfig(), None)
BEST = SMOOTH.best_warped


def below(cost, affordable):
    return lambda X: fits(cost, X, affordable)


ACQUISITIONS = {
    "index": GittinsIndex(SMOOTH.model, SMOOTH.cost, 0.1),
    "index, free": GittinsIndex(SMOOTH.model, SMOOTH.cost, 1e-9),
    "index, dear": GittinsIndex(SMOOTH.model, SMOOTH.cost, 1e3),
    "index, known cost": GittinsIndex(SMOOTH.model, KNOWN, 0.1),
    "log EI": LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST),
    "log EI, hopeless": LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST + 50),
    "log EI, certain": LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST - 50),
    "log EI per cost": LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST, -1.0),
    "log EI per known cost": LogExpectedImprovement(SMOOTH.model, KNOWN, BEST, -1.0),
    "log EI, cooled": LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST, -0.3),
    "log EI over cost": LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST, 1.0),
    "EI": Exponential(LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST)),
    "EI per cost": Exponential(LogExpectedImprovement(SMOOTH.model, SMOOTH.cost, BEST, -1.0)),
    "bound": UpperConfidenceBound(SMOOTH.model, 1.7),
    "path": PathValue(SMOOTH.model.sample_path(np.random.default_rng(0))),
    "cheapness": Cheapness(SMOOTH.cost),
    "restricted": Restricted(
        GittinsIndex(SMOOTH.model, SMOOTH.cost, 0.1), below(SMOOTH.cost, 1e9), DESIGN[:2], 1e-9, np.zeros(3, dtype=bool)
    ),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_gradients_against_differences(name):
    acquisition = ACQUISITIONS[name]
    X = 0.01 + 0.98 * np.random.default_rng(4).random((40, 3))
    value, gradient = acquisition.value_and_grad(X)
    np.testing.assert_allclose(value, acquisition.value(X), rtol=1e-12, atol=1e-12)
    expected = central_difference(acquisition.value, X, 1e-5)
    scale = np.abs(expected).max()
    assert scale > 1e-6  # a flat function would test nothing
    np.testing.assert_allclose(gradient, expected, atol=1e-5 * scale, rtol=1e-4)


def test_cheapness_is_minus_the_log_cost():
    X = np.random.default_rng(5).random((9, 3))
    np.testing.assert_array_equal(Cheapness(SMOOTH.cost).value(X), -SMOOTH.cost.log_moment(X, 1.0))


# Restrictions ---------------------------------------------------------------------------------------------------------


def restricted(cost, affordable, avoid, radius, categorical=(False, False, False)):
    allowed = None if math.isinf(affordable) else below(cost, affordable)
    return Restricted(UpperConfidenceBound(SMOOTH.model, 1.0), allowed, avoid, radius, np.array(categorical))


@pytest.mark.parametrize("affordable", [math.inf, 8.0, 1.5])
def test_restricted_by_brute_force(affordable):
    X = np.random.default_rng(6).random((400, 3))
    avoid = X[[0, 7]] + 0.01
    function = restricted(KNOWN, affordable, avoid, 0.2)
    allowed = [
        1.0 + 20.0 * x[0] * x[2] ** 2 <= affordable
        and not any(all(abs(x[k] - center[k]) < 0.2 for k in range(3)) for center in avoid)
        for x in X
    ]
    assert 10 < sum(allowed) < 400
    bound = function.of.value(X)
    np.testing.assert_array_equal(function.allowed(X), allowed)
    np.testing.assert_array_equal(function.value(X), np.where(allowed, bound, -np.inf))
    value, gradient = function.value_and_grad(X)
    np.testing.assert_array_equal(np.isneginf(value), ~np.array(allowed))
    np.testing.assert_array_equal(gradient, function.of.value_and_grad(X)[1])


def test_each_failure_has_its_own_radius():
    X = np.array([[0.30, 0.5, 0.5], [0.70, 0.5, 0.5]])
    avoid = np.array([[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])
    function = restricted(KNOWN, math.inf, avoid, np.array([0.1, 0.01]))
    np.testing.assert_array_equal(function.allowed(X), [False, True])


def test_a_price_of_exactly_what_is_left_is_affordable():
    uniform = UniformCost().fit(CUBE, DESIGN, np.ones(12), GPConfig(), None)
    X = DESIGN[:3]
    assert restricted(uniform, 1.0, X[:0], 0.1).allowed(X).all()
    assert not restricted(uniform, 1.0 - 1e-9, X[:0], 0.1).allowed(X).any()


@pytest.mark.parametrize("affordable", [0.0, -3.0])
def test_nothing_is_affordable_when_nothing_is_left(affordable):
    function = restricted(KNOWN, affordable, DESIGN[:0], 0.1)
    assert not function.allowed(DESIGN).any()
    assert np.isneginf(function.value(DESIGN)).all()


def test_categories_are_near_only_themselves():
    """Thirty choices lie 1/30 apart on the cube; their order means nothing."""
    X = np.array([[0.5, 0.5, (k + 0.5) / 30] for k in range(30)])
    function = restricted(KNOWN, math.inf, X[[4]], 0.05, (False, False, True))
    np.testing.assert_array_equal(function.allowed(X), np.arange(30) != 4)
    ordered = restricted(KNOWN, math.inf, X[[4]], 0.05)
    np.testing.assert_array_equal(np.flatnonzero(~ordered.allowed(X)), [3, 4, 5])
