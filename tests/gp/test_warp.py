"""The map between values and what the model sees: against SciPy, brute force and simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from engine_fixtures import central_difference, one_thread  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from pbgi import Float, GittinsStop, Optimizer
from pbgi.choosing.choice import snapshot_of
from pbgi.gp.config import GPConfig
from pbgi.gp.warp import IDENTITY, PARAMETERS, Warp, fit_warp, inverse_yeo_johnson, yeo_johnson
from pbgi.policy import PBGI, PBGID


def rng(seed=0):
    return np.random.default_rng(seed)


SAMPLES = {
    "gaussian": rng(1).standard_normal(40),
    "losses": -rng(2).exponential(size=60),
    "heavy": -np.exp(4.0 * rng(3).standard_normal(50)),
    "outlier": np.append(rng(4).standard_normal(20), -1e12),
    "decades": -(10.0 ** rng(5).uniform(-4, 8, 40)),
    "ties": np.repeat([1.0, 2.0, 3.0], [20, 1, 1]),
    "prizes": np.exp(2.0 * rng(6).standard_normal(30)),
    "offset": 1e9 + rng(7).standard_normal(30),
    "two": np.array([1.0, 2.0]),
}
EXTREMES = {
    "one": np.array([3.0]),
    "alike": np.full(5, 7.0),
    "zero": np.zeros(4),
    "largest": np.array([1.7e308, -1.7e308, 0.0, 1e300]),
    "smallest": np.array([5e-324, 1e-323, 2e-323]),
    "last bit": np.array([1.0, 1.0, 1.0 + 2.0**-52]),
}


# The map --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [*SAMPLES.values(), *EXTREMES.values()], ids=[*SAMPLES, *EXTREMES])
def test_there_and_back(values):
    warp = fit_warp(values)
    warped = warp.to_warped(values)
    assert np.isfinite(warped).all()
    assert np.abs(warped).max() < 50.0
    np.testing.assert_allclose(warp.to_values(warped) / 2, values / 2, rtol=1e-6, atol=1e-300)
    order = np.argsort(values, kind="stable")
    assert (np.diff(warped[order]) >= 0.0).all()


@pytest.mark.parametrize("values", [*SAMPLES.values(), *EXTREMES.values()], ids=[*SAMPLES, *EXTREMES])
def test_strictly_increasing_everywhere(values):
    warp = fit_warp(values)
    assert (warp.values[1:] > warp.values[:-1]).all()
    assert (warp.warped[1:] > warp.warped[:-1]).all()
    assert (warp.slopes > 0.0).all()
    far = np.array([-1e3, -10.0, 10.0, 1e3])
    back = warp.to_values(far)
    assert np.isfinite(back).all()
    assert back[0] <= back[1] <= values.min() <= values.max() <= back[2] <= back[3]


@pytest.mark.parametrize("offset", [1e6, -1e6, 1e3])
def test_an_offset_changes_neither_what_is_seen_nor_the_slopes(offset):
    """Where the sum is exact: values are multiples of 2**-30."""
    values = np.ldexp(np.round(np.ldexp(SAMPLES["losses"], 30)), -30)
    warp, moved = fit_warp(values), fit_warp(values + offset)
    np.testing.assert_allclose(moved.to_warped(values + offset), warp.to_warped(values), rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(moved.slopes, warp.slopes, rtol=1e-12)
    assert moved.top_slope == pytest.approx(warp.top_slope, rel=1e-12)
    np.testing.assert_allclose(moved.to_values(warp.warped), offset + warp.to_values(warp.warped), rtol=1e-15)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "ties"])
def test_the_model_sees_mean_zero_and_variance_one(name):
    warped = fit_warp(SAMPLES[name]).to_warped(SAMPLES[name])
    assert abs(warped.mean()) < 0.02
    assert warped.std(ddof=1) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("name", ["losses", "heavy", "decades", "outlier", "prizes"])
def test_tails_are_drawn_in(name):
    """What makes a Gaussian process of the values themselves see little but the tail."""
    values = SAMPLES[name]
    assert abs(stats.skew(fit_warp(values).to_warped(values))) < 0.7 * abs(stats.skew(values))


def test_gaussian_values_stay_nearly_as_they_are():
    values = rng(8).standard_normal(400)
    warped = fit_warp(values).to_warped(values)
    assert np.corrcoef(warped, values)[0, 1] > 0.999


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(("factor", "offset"), [(3.7, 0.0), (1e6, 5.0), (1e-6, 0.0), (2.0**40, 0.0)])
def test_units_do_not_matter(name, factor, offset):
    values = SAMPLES[name]
    there = factor * values + offset  # which is itself rounded
    rounding = 4.0 * np.spacing(np.abs(there).max()) / (np.ptp(np.quantile(there, [0.25, 0.75])) or 1.0)
    found, expected = fit_warp(there).to_warped(there), fit_warp(values).to_warped(values)
    np.testing.assert_allclose(found, expected, atol=1e-8 + (0.0 if np.abs(values).max() > 1e10 else rounding))


@pytest.mark.parametrize("parameter", [-3.0, -0.5, 0.0, 0.7, 1.0, 2.0, 5.0])
def test_yeo_johnson_is_scipys(parameter):
    s = rng(9).standard_normal(50) * 3.0
    z = yeo_johnson(s, parameter)
    np.testing.assert_allclose(z, stats.yeojohnson(s, parameter), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(inverse_yeo_johnson(z, parameter), s, rtol=1e-8, atol=1e-10)


def test_parameter_is_the_likeliest():
    """SciPy's likelihood with the prior, on a fine grid: the parameter found is the nearest of those compared."""
    values = SAMPLES["losses"]
    s = (values - values.mean()) / values.std(ddof=1)
    fine = np.linspace(-3.0, 5.0, 8001)
    score = [stats.yeojohnson_llf(p, s) - 0.125 * (p - 1.0) ** 2 for p in fine]
    likeliest = PARAMETERS[np.abs(PARAMETERS - fine[np.argmax(score)]).argmin()]
    expected = stats.yeojohnson(s, likeliest)
    expected = (expected - expected.mean()) / expected.std(ddof=1)
    np.testing.assert_allclose(fit_warp(values).to_warped(values), expected, atol=2e-3)  # straight between knots


@settings(max_examples=60)
@given(st.lists(st.floats(-1e300, 1e300, allow_nan=False), min_size=1, max_size=30))
def test_any_finite_values(values):
    values = np.array(values)
    warp = fit_warp(values)
    warped = warp.to_warped(values)
    assert np.isfinite(warped).all()
    assert np.isfinite(warp.to_values(warped + 3.0)).all()
    if values.max() > values.min():
        assert warped[values.argmax()] > warped[values.argmin()]


# Improvement and index in users' units --------------------------------------------------------------------------------

BOXES = [(0.0, 1.0), (-1.0, 0.5), (1.0, 0.3), (2.0, 0.1), (-2.0, 0.5), (0.3, 2.0)]


def improvement_by_quadrature(warp, mean, std, value):
    """The integral of Phi((mean - T(t)) / std) over t from the value on, piece by piece."""

    def exceeds(t):
        return stats.norm.cdf((mean - warp.to_warped(np.array([t]))[0]) / std)

    last = warp.to_values(np.array([max(mean, warp.warped[-1]) + 12.0 * std]))[0]
    cuts = [value, *(v for v in warp.values if value < v < last), last]
    return sum(integrate.quad(exceeds, a, b, epsabs=0.0, epsrel=1e-10)[0] for a, b in pairwise(cuts))


@pytest.mark.parametrize("name", ["losses", "heavy", "prizes", "two"])
@pytest.mark.parametrize(("mean", "std"), BOXES[:4])
def test_improvement_by_quadrature(name, mean, std):
    values = SAMPLES[name]
    warp = fit_warp(values)
    for quantile in (0.3, 0.9, 1.0):
        value = float(np.quantile(values, quantile))
        found = math.exp(warp.log_improvement(np.array([mean]), np.array([std]), value)[0])
        assert found == pytest.approx(improvement_by_quadrature(warp, mean, std, value), rel=1e-7)


@pytest.mark.parametrize("name", ["losses", "heavy", "prizes"])
def test_improvement_by_simulation(name):
    warp, n = fit_warp(SAMPLES[name]), 400_000
    value = float(np.quantile(SAMPLES[name], 0.8))
    for mean, std in BOXES[:4]:
        draws = np.maximum(warp.to_values(mean + std * rng(11).standard_normal(n)) - value, 0.0)
        found = math.exp(warp.log_improvement(np.array([mean]), np.array([std]), value)[0])
        assert abs(draws.mean() - found) < 5.0 * draws.std() / math.sqrt(n)


@pytest.mark.parametrize("name", ["losses", "heavy", "prizes", "outlier", "two"])
@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.3, 2.0, 50.0])
def test_index_by_bisection(name, share):
    """The g whose expected improvement is the cost: above the best value, among the values and below them all."""
    values = SAMPLES[name]
    warp = fit_warp(values)
    cost = share * float(np.quantile(values, 0.75) - np.quantile(values, 0.25))
    for mean, std in BOXES:
        box = np.array([mean]), np.array([std])
        found = warp.index(*box, np.log([cost]))

        def excess(w, box=box):
            return warp.log_improvement(*box, float(warp.to_values(np.array([w]))[0]))[0] - math.log(cost)

        expected = optimize.brentq(excess, found[0] - 1.0 - abs(found[0]), found[0] + 1.0 + abs(found[0]), xtol=1e-13)
        assert found[0] == pytest.approx(expected, abs=1e-6 * (1.0 + abs(expected)))


def test_a_straight_warp_gives_the_ordinary_index():
    mean, std = (np.array(part) for part in zip(*BOXES, strict=True))
    log_cost = np.linspace(-20.0, 3.0, len(BOXES))
    from pbgi.index import gittins_index

    np.testing.assert_allclose(IDENTITY.index(mean, std, log_cost), gittins_index(mean, std, log_cost), rtol=1e-14)
    scaled = Warp(np.array([5.0, 12.0]), np.array([0.0, 1.0]))  # y = 5 + 7 z
    expected = gittins_index(5.0 + 7.0 * mean, 7.0 * std, log_cost)
    np.testing.assert_allclose(scaled.to_values(scaled.index(mean, std, log_cost)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["losses", "heavy", "prizes"])
def test_derivatives_of_the_index(name):
    warp = fit_warp(SAMPLES[name])
    scale = float(np.ptp(np.quantile(SAMPLES[name], [0.25, 0.75])))
    inputs = np.array([[mean, std, math.log(share * scale)] for mean, std in BOXES for share in (1e-6, 0.05, 3.0)])
    index, *slopes = warp.index_and_grad(*inputs.T)
    np.testing.assert_array_equal(index, warp.index(*inputs.T))
    expected = central_difference(lambda rows: warp.index(*rows.T), inputs, 1e-6)
    np.testing.assert_allclose(np.column_stack(slopes), expected, rtol=2e-3, atol=2e-4)  # slopes jump at knots


@pytest.mark.parametrize("std", [1e-300, 1e-12, 1e12])
@pytest.mark.parametrize("log_cost", [-700.0, 0.0, 700.0])
def test_extreme_boxes_have_finite_indices(std, log_cost):
    warp = fit_warp(SAMPLES["heavy"])
    mean = np.array([-3.0, 0.0, 3.0])
    found = warp.index_and_grad(mean, np.full(3, std), np.full(3, log_cost))
    assert all(np.isfinite(part).all() for part in found)
    assert np.isfinite(warp.to_values(found[0])).all()


# In an optimizer ------------------------------------------------------------------------------------------------------

PLANE = {"x": Float(0, 1), "y": Float(0, 1)}


def loss(params):
    """Between 0 and e^8: a few bad trials are thousands of times as bad as the good ones."""
    return math.exp(8.0 * abs(params["x"] - 0.3)) - 1.0 + (params["y"] - 0.6) ** 2


def told(n=12, f=loss, **given):
    optimizer = Optimizer(PLANE, seed=0, **given)
    for x, y in rng(20).random((n, 2)).tolist():
        optimizer.tell({"x": x, "y": y}, f({"x": x, "y": y}), cost=1.0)
    return optimizer


def test_the_users_rate_weighs_users_units():
    """The highest index of PBGI on a fine grid, each by bisection on the expected improvement of unwarped values."""
    rate = 0.05
    optimizer = told(policy=PBGI(rate), stop=GittinsStop(1e-9))
    snapshot, _ = snapshot_of(optimizer._state)
    trial = optimizer.ask()
    grid = rng(21).random((300, 2))
    mean, std = snapshot.model.posterior(grid)
    best = -math.inf
    for m, s in zip(mean, std, strict=True):
        box = np.array([m]), np.array([s])

        def excess(g, box=box):
            return snapshot.warp.log_improvement(*box, g)[0] - math.log(rate)

        best = max(best, optimize.brentq(excess, -1e5, 1e5))
    assert trial.record["index"] >= best - 1e-6 * abs(best)
    at = snapshot.space.to_unit(trial.params)[None]
    box = snapshot.model.posterior(at)
    improvement = snapshot.warp.log_improvement(*box, trial.record["index"])[0]
    assert improvement == pytest.approx(math.log(rate), abs=1e-6)


def test_the_stop_rule_weighs_users_units():
    """The noted worth is log(EI / c) of unwarped values at its point, by simulation."""
    optimizer = told(stop=GittinsStop(1e-3, patience=1))
    snapshot, _ = snapshot_of(optimizer._state)
    note = optimizer.ask().record
    mean, std = snapshot.model.posterior(np.array([note["worth_x"]]))
    draws = snapshot.warp.to_values(mean + std * rng(22).standard_normal(400_000))
    gains = np.maximum(draws - -min(t.value for t in optimizer.trials[:-1]), 0.0)
    assert abs(math.exp(note["worth"]) - gains.mean()) < 5.0 * gains.std() / math.sqrt(len(gains))


def test_the_decaying_rate_compares_index_and_values_in_one_unit():
    """Indices are noted in users' units, larger is better: above all values while the search is new."""
    optimizer = told(policy=PBGID())
    trial = optimizer.ask()
    best = max(-t.value for t in optimizer.trials[:-1])
    assert trial.record["index"] > best
    assert trial.record["index"] < best + 1e5


@pytest.mark.parametrize(("factor", "offset"), [(1e6, 0.0), (1e-3, 7.0)])
def test_units_of_values_change_no_suggestion(factor, offset):
    here = told().ask().params
    there = told(f=lambda params: factor * loss(params) + offset).ask().params
    assert there == pytest.approx(here, abs=1e-6)


def test_one_outlier_does_not_ruin_what_is_believed():
    """A value 1e12 away from the rest: predictions elsewhere stay those of a run without it."""
    optimizer = told(20, f=lambda p: (p["x"] - 0.3) ** 2 + (p["y"] - 0.6) ** 2)
    points = [{"x": x, "y": y} for x, y in rng(23).uniform(0.1, 0.6, (20, 2)).tolist()]
    truth = [(p["x"] - 0.3) ** 2 + (p["y"] - 0.6) ** 2 for p in points]
    before = np.abs(optimizer.predict(points).median - truth).max()
    optimizer.tell({"x": 0.99, "y": 0.01}, 1e12, cost=1.0)
    assert np.abs(optimizer.predict(points).median - truth).max() < max(10.0 * before, 0.05)


def test_the_paper_sees_values_as_published():
    optimizer = told(model=GPConfig.paper())
    snapshot, _ = snapshot_of(optimizer._state)
    assert snapshot.warp is IDENTITY
    np.testing.assert_array_equal(snapshot.warped, [-t.value for t in optimizer.trials])


def test_unknown_outputs_are_refused():
    with pytest.raises(ValueError, match="outputs must be one of warped, standardized, plain; got 'log'"):
        GPConfig(outputs="log")
