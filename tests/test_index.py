"""The index against exact arithmetic, its own symmetries and its limits."""

import csv
import itertools
import math
from pathlib import Path

import high_precision as exact
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pbgi import InvalidInputError, gittins_index, gittins_index_and_grad, inverse_log_h, log_h
from pbgi.index import CLEARLY_BELOW, FRACTION_FROM, LOG_SQRT_2PI, TABLE_FROM, TABLE_STEP, TABLE_TO

EPS = np.finfo(np.float64).eps
REFERENCE = list(csv.DictReader((Path(__file__).parent / "data" / "index_reference.csv").read_text().splitlines()))

# Where the code changes its formula: the sign of z, and the two sides of the continued fraction.
Z_JOINTS = [0.0, -FRACTION_FROM, FRACTION_FROM]
LOG_RATIO_JOINTS = [float(exact.log_h(z)) for z in Z_JOINTS]


def ulps_around(x: float, n: int = 100) -> np.ndarray:
    """x and its n neighbors on either side."""
    out = [x]
    for direction in (-np.inf, np.inf):
        y = x
        for _ in range(n):
            y = float(np.nextafter(y, direction))
            out.append(y)
    return np.array(out)


def hard_log_ratios() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate(
        [
            -np.exp(rng.uniform(np.log(1e-3), np.log(1e12), 900)),
            rng.uniform(-60, 8, 900),
            rng.uniform(0, 700, 300),
            rng.normal(-LOG_SQRT_2PI, 1e-6, 100),
            [-1e12, -745.2, -708.4, -1e-300, 0.0, 1e-300, 1.0, 700.0],
            *[ulps_around(x) for x in LOG_RATIO_JOINTS],
        ]
    )


def assert_root(log_ratio: float, z: float, dstd: float, dlog_cost: float) -> None:
    """The accuracy promised: z to 4 eps of its conditioning, derivatives (at std = 1) to 1e-13 relative."""
    true = exact.root(log_ratio, z)
    allowed = 4 * EPS * (max(1, abs(true.z)) + abs(log_ratio) * true.r)
    assert abs(mp.mpf(z) - true.z) <= allowed, (log_ratio, z, float(true.z))
    # z carries |log_ratio| r eps from the input alone; for z > 20 that alone moves lam = phi/Phi by more than 1e-13.
    lam_allowed = 1e-13 * true.lam + true.lam * true.r * allowed + mp.mpf(2) ** -1074
    assert abs(mp.mpf(dstd) - true.lam) <= lam_allowed, (log_ratio, dstd, float(true.lam))
    assert abs(mp.mpf(-dlog_cost) - true.r) <= 1e-13 * true.r, (log_ratio, dlog_cost, float(true.r))


def test_reference_table():
    for row in REFERENCE:
        log_ratio = float(row["log_ratio"])
        z, r = mp.mpf(row["z"]), -mp.mpf(row["dindex_dlogcost_over_std"])
        index, dstd, dlog_cost = gittins_index_and_grad(0.0, 1.0, log_ratio)
        assert abs(mp.mpf(float(inverse_log_h(log_ratio))) - z) <= 4 * EPS * (max(1, abs(z)) + abs(log_ratio) * r)
        assert float(index) == pytest.approx(-float(z), rel=4 * EPS * (1 + abs(log_ratio)))
        assert float(dstd) == pytest.approx(float(row["dindex_dstd"]), rel=1e-13, abs=1e-300)
        assert float(dlog_cost) == pytest.approx(float(row["dindex_dlogcost_over_std"]), rel=1e-13)


def test_root_and_derivatives_against_exact_arithmetic():
    log_ratios = hard_log_ratios()
    roots = inverse_log_h(log_ratios)
    _, dstd, dlog_cost = gittins_index_and_grad(0.0, 1.0, log_ratios)
    for case in zip(log_ratios, roots, dstd, dlog_cost, strict=True):
        assert_root(*map(float, case))


def test_root_at_the_ends_and_the_nodes_of_its_table():
    nodes = [TABLE_FROM, TABLE_FROM + TABLE_STEP, -3.0, -1.625, TABLE_TO - TABLE_STEP, TABLE_TO]
    log_ratios = np.concatenate([ulps_around(x, 5) for x in nodes] + [np.array(nodes) + 0.5 * TABLE_STEP])
    roots = inverse_log_h(log_ratios)
    _, dstd, dlog_cost = gittins_index_and_grad(0.0, 1.0, log_ratios)
    for case in zip(log_ratios, roots, dstd, dlog_cost, strict=True):
        assert_root(*map(float, case))


def test_log_h_against_exact_arithmetic():
    rng = np.random.default_rng(1)
    z = np.concatenate(
        [rng.uniform(-50, 50, 500), -np.exp(rng.uniform(0, 14, 300)), *[ulps_around(x) for x in Z_JOINTS]]
    )
    for z_, value in zip(z, log_h(z), strict=True):
        true = exact.log_h(float(z_))
        # Moving z by one rounding moves log h by eps |z| / r; that, and the rounding of the result, is the floor.
        slope = mp.ncdf(float(z_)) / exact.h(float(z_))
        assert abs(mp.mpf(float(value)) - true) <= 4 * EPS * (1 + abs(true) + slope * max(1, abs(z_)))


def test_log_h_inverts_its_inverse():
    log_ratios = np.linspace(-100, 50, 5001)
    np.testing.assert_allclose(log_h(inverse_log_h(log_ratios)), log_ratios, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "points",
    [
        np.linspace(-60, 10, 1_000_000),
        np.sort(np.random.default_rng(2).uniform(-40, 4, 1_000_000)),
        np.concatenate([-np.geomspace(1e12, 1e-8, 500_000), np.geomspace(1e-8, 700, 500_000)]),
        *[x + np.linspace(-1e-6, 1e-6, 1_000_000) for x in LOG_RATIO_JOINTS],
    ],
)
def test_root_is_monotone(points):
    assert np.all(np.diff(inverse_log_h(points)) >= 0)


@pytest.mark.parametrize("center", [*LOG_RATIO_JOINTS, -1e9, -300.0, -3.0, 0.5, 300.0])
def test_root_of_neighboring_floats_is_monotone_to_rounding(center):
    """Closer than rounding error, two roots may tie or swap, but by no more than the promised error."""
    points = np.sort(ulps_around(center, 1000))
    z = inverse_log_h(points)
    _, _, dlog_cost = gittins_index_and_grad(0.0, 1.0, center)
    assert np.all(np.diff(z) >= -4 * EPS * (np.maximum(1, np.abs(z[1:])) + abs(center * dlog_cost)))


EXTREMES = [1e-300, 1e-200, 1e-100, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e100, 1e200, 1e300]


def test_finite_over_the_whole_range():
    cost_scale, cost, std = map(np.array, zip(*itertools.product(EXTREMES, repeat=3), strict=True))
    for result in gittins_index_and_grad(0.0, std, np.log(cost_scale) + np.log(cost)):
        assert np.all(np.isfinite(result))


def test_certain_prize_is_worth_its_value_minus_its_price():
    index, dstd, dlog_cost = gittins_index_and_grad([3.0, -2.0], 0.0, np.log([0.5, 4.0]))
    np.testing.assert_allclose(index, [2.5, -6.0], rtol=1e-15)
    np.testing.assert_array_equal(dstd, 0.0)
    np.testing.assert_allclose(dlog_cost, [-0.5, -4.0], rtol=1e-15)


def test_vanishing_spread_approaches_the_certain_prize():
    np.testing.assert_allclose(gittins_index(3.0, np.array([1e-5, 1e-30, 1e-300]), 0.0), 2.0, rtol=1e-15)


def test_small_price_limit_is_a_confidence_bound():
    """Paper, eq. (small lambda): mean + std sqrt(2 log(std / cost)), approached from below."""
    log_cost = np.array([-1e4, -1e6, -1e8])
    ratio = (gittins_index(0.0, 2.0, log_cost)) / (2.0 * np.sqrt(2 * (np.log(2.0) - log_cost)))
    assert np.all(np.diff(ratio) > 0)
    np.testing.assert_allclose(ratio[-1], 1.0, rtol=1e-6)


def test_index_solves_its_equation():
    """EI(index) = cost, with the expected improvement in its textbook form."""
    rng = np.random.default_rng(3)
    mean, std, log_cost = rng.normal(size=1000), np.exp(rng.normal(size=1000)), rng.uniform(-5, 2, 1000)
    u = (mean - gittins_index(mean, std, log_cost)) / std
    phi, cdf = np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi), 0.5 * (1 + np.vectorize(math.erf)(u / math.sqrt(2)))
    np.testing.assert_allclose(std * (phi + u * cdf), np.exp(log_cost), rtol=1e-11)


def test_gradient_is_the_papers_closed_form():
    """Paper, Proposition (Gradient of PBGI), with d cost = cost dlog_cost."""
    rng = np.random.default_rng(4)
    std, log_cost = np.exp(rng.normal(size=500)), rng.uniform(-5, 2, 500)
    index, dstd, dlog_cost = gittins_index_and_grad(0.0, std, log_cost)
    u = -index / std
    phi, cdf = np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi), 0.5 * (1 + np.vectorize(math.erf)(u / math.sqrt(2)))
    np.testing.assert_allclose(dstd, phi / cdf, rtol=1e-9)
    np.testing.assert_allclose(dlog_cost, -np.exp(log_cost) / cdf, rtol=1e-9)


def test_gradient_against_finite_differences():
    rng = np.random.default_rng(5)
    std, log_cost, step = np.exp(rng.normal(size=500)), rng.uniform(-30, 5, 500), 1e-5
    _, dstd, dlog_cost = gittins_index_and_grad(0.7, std, log_cost)
    for derivative, ds, dl in ((dstd, step * std, 0.0), (dlog_cost, 0.0, step)):
        rise = gittins_index(0.7, std + ds, log_cost + dl) - gittins_index(0.7, std - ds, log_cost - dl)
        run = 2 * (ds if np.any(ds) else dl)
        np.testing.assert_allclose(rise / run, derivative, rtol=1e-7, atol=1e-8)


means = st.floats(-1e6, 1e6)
stds = st.floats(1e-6, 1e6)
log_costs = st.floats(-1000, 13)


def close(a: float, b: float, scale: float) -> bool:
    return abs(a - b) <= 64 * EPS * scale


@given(means, stds, log_costs, means)
def test_shift_equivariance(mean, std, log_cost, shift):
    moved, index = gittins_index(mean + shift, std, log_cost), gittins_index(mean, std, log_cost)
    assert close(moved, index + shift, abs(index) + abs(mean) + abs(shift))


@given(means, stds, log_costs, st.floats(1e-6, 1e6))
def test_scale_equivariance(mean, std, log_cost, scale):
    scaled = gittins_index(scale * mean, scale * std, log_cost + math.log(scale))
    index = gittins_index(mean, std, log_cost)
    # log_cost + log(scale) is rounded to eps |log_cost|, which moves the index by at most (std + cost) times that.
    conditioning = (std + math.exp(log_cost)) * (40 + abs(log_cost) + abs(math.log(scale)))
    assert close(scaled, scale * index, scale * (abs(index) + abs(mean) + conditioning))


@given(means, stds, log_costs, st.floats(1.0, 10.0))
def test_monotone_in_mean_std_and_cost(mean, std, log_cost, factor):
    index = gittins_index(mean, std, log_cost)
    slack = 16 * EPS * (abs(mean) + (std + math.exp(log_cost)) * (1 + abs(log_cost)))
    assert gittins_index(mean + (factor - 1), std, log_cost) >= index - slack
    assert gittins_index(mean, std * factor, log_cost) >= index - slack
    assert gittins_index(mean, std, log_cost + math.log(factor)) <= index + slack


def test_shapes_broadcast_and_scalars_stay_scalars():
    index, dstd, dlog_cost = gittins_index_and_grad(np.zeros((4, 1, 3)), np.ones((5, 1)), [-1, -2, -3])
    assert index.shape == dstd.shape == dlog_cost.shape == (4, 5, 3)
    assert index[2, 3, 1] == gittins_index(0, 1, -2)
    assert isinstance(gittins_index(0, 1, -2), np.float64)
    assert gittins_index(np.zeros((0, 3)), 1.0, 0.0).shape == (0, 3)
    assert inverse_log_h(np.float32(-2)).dtype == log_h(1).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((math.nan, 1.0, 0.0), "mean must be finite; got nan"),
        ((math.inf, 1.0, 0.0), "mean must be finite; got inf"),
        ((0.0, -1.0, 0.0), "std must be finite and not negative; got -1.0"),
        ((0.0, math.nan, 0.0), "std must be finite and not negative; got nan"),
        ((0.0, math.inf, 0.0), "std must be finite and not negative; got inf"),
        ((0.0, 1.0, -math.inf), "log_cost must be finite, that is, the logarithm of a positive.*got -inf"),
        ((0.0, 1.0, math.inf), "log_cost must be finite.*got inf"),
        ((0.0, 1.0, math.nan), "log_cost must be finite.*got nan"),
        ((0.0, [[1.0, 2.0], [3.0, -4.0]], 0.0), r"std must be finite and not negative; got -4.0 at \(1, 1\)"),
        ((np.zeros(3), np.ones(2), 0.0), r"shapes must broadcast.*mean \(3,\), std \(2,\), log_cost \(\)"),
        (("one", 1.0, 0.0), "mean must be a real number or an array of them; got 'one'"),
        ((0.0, [[1.0], [1.0, 2.0]], 0.0), "std must be a real number or an array of them"),
        ((0.0, 1.0, 1j), "log_cost must be a real number"),
        ((0.0, None, 0.0), "std must be a real number"),
        ((True, 1.0, 0.0), "mean must be a real number"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    for function in (gittins_index, gittins_index_and_grad):
        with pytest.raises(InvalidInputError, match=message):
            function(*arguments)


@pytest.mark.parametrize(("function", "name"), [(log_h, "z"), (inverse_log_h, "log_ratio")])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_bad_input_of_the_inverse_is_refused(function, name, value):
    with pytest.raises(ValueError, match=f"{name} must be finite; got {value}"):
        function(np.array([0.0, value]))


def test_the_asymptotic_series_would_not_do():
    """Why r = h/Phi is a continued fraction: four terms of its series reach 1e-13 only near t = 100."""

    def error(t: int) -> float:
        with mp.workdps(60):
            series = 1 / mp.mpf(t) - 2 / mp.mpf(t) ** 3 + 10 / mp.mpf(t) ** 5 - 74 / mp.mpf(t) ** 7
            true = exact.h(-t) / mp.ncdf(-t)
            return float(abs(series - true) / true)

    assert 2e-4 < error(6) < 8e-4
    assert error(50) > 1e-13
    assert error(100) < 1e-13


@pytest.mark.parametrize("seed", range(3))
def test_the_short_way_below_zero_is_the_long_way_to_the_bit(seed):
    """One point whose root is not clearly below zero makes all of them go the long way."""
    rng = np.random.default_rng(seed)
    std = 10.0 ** rng.uniform(-3, 3, 100_000)
    log_cost = np.log(std) + CLEARLY_BELOW - 10.0 ** rng.uniform(-12, 12, len(std))
    below = log_cost - np.log(std) < CLEARLY_BELOW
    std, log_cost = std[below], log_cost[below]
    short = gittins_index_and_grad(0.0, std, log_cost)
    long = gittins_index_and_grad(0.0, np.append(std, 1.0), np.append(log_cost, 3.0))
    for a, b in zip(short, long, strict=True):
        np.testing.assert_array_equal(a, b[:-1])
