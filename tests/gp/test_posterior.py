"""The Gaussian process against textbook formulas written out here, finite differences and many random draws."""

import dataclasses
import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

from pbgi.errors import InvalidInputError
from pbgi.gp.algebra import cholesky
from pbgi.gp.config import GammaPrior, GPConfig, Hyperparameters, LogNormalPrior, LogPrior
from pbgi.gp.fit import MapObjective, fit_gp
from pbgi.gp.kernel import CATEGORY_DISTANCE
from pbgi.gp.posterior import GP, Pair

KERNELS = ["matern52", "matern32", "rbf"]
MIXED = np.array([False, True, False])
CONFIGS = [GPConfig(), GPConfig.paper(), GPConfig(kernel="matern32", length_scale_prior=LogNormalPrior(0.0, 1.0))]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices on several threads take many times longer on a busy machine."""
    with threadpool_limits(1):
        yield


def rho(kernel, r):
    if kernel == "rbf":
        return np.exp(-0.5 * r**2)
    s = math.sqrt(5.0 if kernel == "matern52" else 3.0) * r
    return (1 + s + (s**2 / 3 if kernel == "matern52" else 0.0)) * np.exp(-s)


def covariance(kernel, A, B, hyper, categorical):
    """The definition, from the array of all differences."""
    delta = A[:, None, :] - B[None, :, :]
    delta = np.where(categorical, CATEGORY_DISTANCE * (delta != 0.0), delta)
    return hyper.output_scale * rho(kernel, np.sqrt(((delta / np.array(hyper.length_scales)) ** 2).sum(axis=-1)))


def textbook(kernel, X, y, Q, hyper, categorical, mean=None):
    """Posterior mean and covariance of the function at Q by direct solves."""
    K = covariance(kernel, X, X, hyper, categorical) + hyper.noise * np.eye(len(X))
    cross = covariance(kernel, Q, X, hyper, categorical)
    one = np.ones(len(X))
    if mean is None:
        mean = (one @ np.linalg.solve(K, y)) / (one @ np.linalg.solve(K, one))
    posterior = covariance(kernel, Q, Q, hyper, categorical) - cross @ np.linalg.solve(K, cross.T)
    return mean + cross @ np.linalg.solve(K, y - mean), posterior


def mixed_data(seed, n=12):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    X[:, 1] = rng.integers(0, 3, n)
    return X, np.sin(5 * X[:, 0]) + 0.7 * (X[:, 1] == 2) - X[:, 2] ** 2 + 0.05 * rng.standard_normal(n)


def smooth_data(rng, n, d, kind):
    """Random problems of four kinds: a bowl, a noisy ridge, a sharp peak, an exponential."""
    X, center, weights = rng.random((n, d)), rng.random(d), rng.gamma(1.0, 1.0, d)
    if kind == 0:
        return X, -((X - center) ** 2) @ weights
    if kind == 1:
        return X, np.sin(5 * X @ weights / math.sqrt(d)) + 0.1 * rng.standard_normal(n)
    if kind == 2:
        return X, np.exp(-1.6 * np.sqrt(((X - center) ** 2).mean(axis=1))) + np.cos(6 * (X - center)).mean(axis=1)
    return X, np.exp(2 * np.sin(4 * X[:, 0]) + X.mean(axis=1))


HYPER = Hyperparameters((0.4, 0.9, 0.7), 1.7, 1e-2)


def given_gp(X, y, hyper=HYPER, kernel="matern52", categorical=MIXED, **options):
    config = GPConfig(kernel=kernel, noise=hyper.noise)
    return GP.with_hyperparameters(X, y, hyper, config, categorical=categorical, **options)


# Posterior -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("mean", [None, 0.0, 3.5])
def test_posterior_is_the_textbook_formula(kernel, mean):
    X, y = mixed_data(0)
    Q = np.vstack([mixed_data(1, 30)[0], X[:3], [[0.2, 9.0, 0.3]]])
    got_mean, got_std = given_gp(X, y, kernel=kernel, mean=mean, standardize=False).posterior(Q)
    expected, posterior = textbook(kernel, X, y, Q, HYPER, MIXED, mean)
    np.testing.assert_allclose(got_mean, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(got_std, np.sqrt(np.diag(posterior)), rtol=1e-9)


def test_posterior_in_forty_digits():
    X, y = np.array([[0.1], [0.4], [0.45], [0.9]]), np.array([1.0, -0.5, -0.3, 2.0])
    hyper = Hyperparameters((0.6,), 3.0, 1e-6)
    got_mean, got_std = given_gp(X, y, hyper, categorical=None, standardize=False, mean=0.25).posterior([[0.6]])

    def k(a, b):
        s = mpmath.sqrt(5) * abs(mpmath.mpf(a) - mpmath.mpf(b)) / mpmath.mpf(0.6)
        return 3 * (1 + s + s**2 / 3) * mpmath.exp(-s)

    with mpmath.workdps(40):
        points = [float(x) for x in X[:, 0]]
        K = mpmath.matrix([[k(a, b) + (mpmath.mpf(1e-6) if a == b else 0) for b in points] for a in points])
        cross = mpmath.matrix([k(0.6, b) for b in points])
        solved = mpmath.lu_solve(K, cross)
        mean = mpmath.mpf(0.25) + sum(solved[i] * (mpmath.mpf(float(y[i])) - mpmath.mpf(0.25)) for i in range(4))
        std = mpmath.sqrt(3 - sum(solved[i] * cross[i] for i in range(4)))
    assert got_mean[0] == pytest.approx(float(mean), rel=1e-10)
    assert got_std[0] == pytest.approx(float(std), rel=1e-9)


def test_posterior_of_many_points_is_that_of_each():
    X, y = mixed_data(0, 150)
    gp = given_gp(X, y)
    Q = mixed_data(1, 3000)[0]
    for together in (gp.posterior(Q), gp.posterior_with_grad(Q)[:2]):
        for i in (0, 872, 873, 874, 2999):
            alone = gp.posterior(Q[i : i + 1])
            assert together[0][i] == pytest.approx(alone[0][0], rel=1e-10)
            assert together[1][i] == pytest.approx(alone[1][0], rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pending", [False, True])
def test_posterior_gradients_against_differences(kernel, pending):
    X, y = mixed_data(0)
    gp = given_gp(X, 1e3 * y + 7.0, kernel=kernel)
    if pending:
        gp = gp.condition_on_pending([[0.5, 1.0, 0.5], [0.1, 7.0, 0.2]])
    Q = mixed_data(1, 20)[0]
    mean, std, dmean, dstd = gp.posterior_with_grad(Q)
    np.testing.assert_allclose(gp.posterior(Q), (mean, std), rtol=1e-10)
    h = 1e-5
    for k in (0, 2):
        up, down = gp.posterior(Q + h * np.eye(3)[k]), gp.posterior(Q - h * np.eye(3)[k])
        np.testing.assert_allclose(dmean[:, k], (up[0] - down[0]) / (2 * h), rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(dstd[:, k], (up[1] - down[1]) / (2 * h), rtol=1e-5, atol=1e-3)
    assert (dmean[:, 1] == 0.0).all()
    assert (dstd[:, 1] == 0.0).all()


OTHER = Hyperparameters((0.9, 0.4, 2.2), 0.6, 1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("n", "m", "unit"),
    [
        pytest.param(12, 12, 1.0, id="one design"),
        pytest.param(12, 12, 1e300, id="huge values"),
        pytest.param(150, 150, 1.0, id="one large design"),
        pytest.param(12, 9, 1.0, id="two designs"),
    ],
)
def test_a_pair_says_what_both_say_alone(kernel, n, m, unit):
    X, y = mixed_data(0, n)
    first = given_gp(X, unit * y, kernel=kernel)
    second = given_gp(X[:m], 7.0 - 3.0 * y[:m] ** 2, OTHER, kernel=kernel)
    Q = np.vstack([mixed_data(1, 20)[0], X[:2], [[0.2, 9.0, 0.3]]])
    for got, gp in zip(Pair(first, second).posterior_with_grad(Q), (first, second), strict=True):
        for together, alone in zip(got, gp.posterior_with_grad(Q), strict=True):
            size = float(np.abs(alone).max())
            np.testing.assert_allclose(together / size, alone / size, rtol=0, atol=1e-9)


def test_a_pair_of_different_kernels_is_asked_one_by_one():
    X, y = mixed_data(0)
    gps = given_gp(X, y), given_gp(X, y, kernel="rbf")
    for got, gp in zip(Pair(*gps).posterior_with_grad(X), gps, strict=True):
        np.testing.assert_array_equal(got[0], gp.posterior_with_grad(X)[0])


def test_no_points_have_no_posterior():
    mean, std = given_gp(*mixed_data(0)).posterior(np.empty((0, 3)))
    assert mean.shape == std.shape == (0,)


def test_std_has_a_floor_with_gradient_zero_at_a_point_told_without_noise():
    X, y = mixed_data(0)
    gp = given_gp(X, y, Hyperparameters((0.4, 0.9, 0.7), 1.7, 0.0), standardize=False)
    mean, std, dmean, dstd = gp.posterior_with_grad(X)
    np.testing.assert_allclose(mean, y, rtol=0, atol=1e-9)
    assert (std >= 0.999e-6 * math.sqrt(1.7)).all()
    assert (std < 1e-5).all()
    assert np.isfinite(dmean).all()
    assert (dstd[std == std.min()] == 0.0).all()


# Likelihood and its gradient -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_log_posterior_against_scipy_densities(kernel):
    X, y = mixed_data(0)
    config = GPConfig(kernel=kernel, length_scale_prior=LogNormalPrior(-0.5, 0.8))
    gp = GP.with_hyperparameters(X, y, HYPER, config, categorical=MIXED, mean=0.3, standardize=False)
    K = covariance(kernel, X, X, HYPER, MIXED) + HYPER.noise * np.eye(len(X))
    expected = stats.multivariate_normal.logpdf(y, mean=np.full(len(X), 0.3), cov=K)
    expected += stats.lognorm.logpdf(HYPER.length_scales, 0.8, scale=math.exp(-0.5)).sum()
    expected += stats.gamma.logpdf(1.7, 2.0, scale=1 / 0.15) + stats.gamma.logpdf(1e-2, 1.1, scale=1 / 20.0)
    assert gp.log_posterior == pytest.approx(expected, rel=1e-11)


def test_estimated_mean_maximizes_the_likelihood():
    X, y = mixed_data(0)
    estimated = given_gp(X, y, standardize=False).log_posterior
    found = optimize.minimize_scalar(lambda m: -given_gp(X, y, mean=m, standardize=False).log_posterior)
    assert estimated == pytest.approx(-found.fun, abs=1e-9)
    assert estimated > given_gp(X, y, mean=found.x + 0.1, standardize=False).log_posterior


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("n", [1, 2, 25, 200])
def test_gradient_of_the_objective_against_differences(config, n):
    X, y = mixed_data(3, n)
    objective = MapObjective(X, y, MIXED, config)
    parameters = np.log([0.3, 1.2, 0.6, 1.9, 0.02])[: 5 if config.noise is None else 4]
    value, gradient = objective(parameters)
    h = 1e-5
    steps = h * np.eye(len(parameters))
    expected = [(objective(parameters + e)[0] - objective(parameters - e)[0]) / (2 * h) for e in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    scales = np.exp(parameters)
    hyper = Hyperparameters(tuple(scales[:3]), scales[3], 0.02 if config.noise is None else config.noise)
    told = GP.with_hyperparameters(X, y, hyper, config, categorical=MIXED, standardize=False)
    assert value == pytest.approx(-told.log_posterior, rel=1e-11)


@pytest.mark.parametrize("config", CONFIGS)
def test_information_is_an_estimate_of_the_expected_second_derivatives(config):
    """F_tu = trace(K^-1 dK_t K^-1 dK_u) / 2, from dense matrices and differences, plus the prior's curvature."""
    X, y = mixed_data(3, 40)
    objective = MapObjective(X, y, MIXED, config)
    parameters = np.log([0.3, 1.2, 0.6, 1.9, 0.02])[: 5 if config.noise is None else 4]

    def dense(p):
        hyper = Hyperparameters(tuple(np.exp(p[:3])), np.exp(p[3]), 1.0)
        noise = np.exp(p[4]) if config.noise is None else config.noise
        return covariance(config.kernel, X, X, hyper, MIXED) + noise * np.eye(len(X))

    h, units = 1e-5, np.eye(len(parameters))
    solved = [
        np.linalg.solve(dense(parameters), (dense(parameters + h * e) - dense(parameters - h * e)) / (2 * h))
        for e in units
    ]
    fisher = 0.5 * np.array([[np.trace(a @ b) for b in solved] for a in solved])
    prior = LogPrior(3, config)
    bend = -np.diagonal([(prior(parameters + h * e)[1] - prior(parameters - h * e)[1]) / (2 * h) for e in units])
    exact = fisher + np.diag(np.maximum(bend, 1e-3))
    value, gradient, estimate = objective.with_information(parameters)
    assert value == objective(parameters)[0]
    np.testing.assert_array_equal(gradient, objective(parameters)[1])
    # 12 draws of v estimate a trace to tens of percent; as a metric, what counts is that no direction is far off.
    ratios = np.linalg.eigvals(np.linalg.solve(exact, estimate)).real
    assert ratios.min() > 0.4
    assert ratios.max() < 2.5


def test_gradient_without_noise_at_repeated_points_against_differences():
    X, y = np.vstack([mixed_data(3, 10)[0]] * 3), np.tile(mixed_data(3, 10)[1], 3)
    objective = MapObjective(X, y, MIXED, GPConfig(noise=0.0))
    parameters, h = np.log([0.3, 1.2, 0.6, 1.9]), 1e-2
    steps = h * np.eye(4)
    expected = [(objective(parameters + e)[0] - objective(parameters - e)[0]) / (2 * h) for e in steps]
    # Twenty eigenvalues are the jitter of 1e-10 alone: six digits of them are right.
    np.testing.assert_allclose(objective(parameters)[1], expected, rtol=0, atol=2e-2)


@pytest.mark.parametrize("t", [-14.0, -1.0, 0.0, 2.0])
def test_log_prior_against_scipy_densities(t):
    config = GPConfig(output_scale_prior=LogNormalPrior(0.3, 0.7))
    parameters = np.array([t, -0.2, 0.4, -3.0])
    value, gradient = LogPrior(2, config)(parameters)

    def expected(t):
        scale = np.exp(t)
        return (
            stats.gamma.logpdf(scale[:2], 3.0, scale=1 / 6.0).sum()
            + stats.lognorm.logpdf(scale[2], 0.7, scale=math.exp(0.3))
            + stats.gamma.logpdf(scale[3], 1.1, scale=1 / 20.0)
        )

    assert value == pytest.approx(expected(parameters), rel=1e-12)
    steps = 1e-5 * np.eye(4)
    differences = [(expected(parameters + e) - expected(parameters - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)


# Fit -----------------------------------------------------------------------------------------------------------------


def five_start_fit(X, y, config, rng):
    """The best log posterior of five long L-BFGS-B runs from random starts."""
    standardized = (y - y.mean()) / y.std(ddof=1)
    objective = MapObjective(X, standardized, np.zeros(X.shape[1], dtype=bool), config)
    d = X.shape[1]
    bounds = [config.length_scale_bounds] * d + [config.output_scale_bounds]
    bounds += [config.noise_bounds] if config.noise is None else []
    best = -math.inf
    for _ in range(5):
        start = np.log([*rng.gamma(3.0, 1 / 6.0, d), rng.gamma(2.0, 3.0), 10.0 ** rng.uniform(-5, -1)])[: len(bounds)]
        found = optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=np.log(bounds), options={"ftol": 1e-13, "gtol": 1e-8}
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("config", CONFIGS[:2])
def test_one_search_is_as_good_as_five(config):
    rng = np.random.default_rng(7)
    short = []
    for i in range(30):
        n, d = int(rng.choice([4, 8, 15, 30, 60])), int(rng.choice([1, 2, 4, 8]))
        X, y = smooth_data(rng, n + 1, d, i % 4)
        warm = fit_gp(X[:-1], y[:-1], config).hyperparameters
        best = five_start_fit(X, y, config, rng)
        short += [best - fit_gp(X, y, config).log_posterior, best - fit_gp(X, y, config, start=warm).log_posterior]
    assert np.mean(np.array(short) > 1e-3) <= 0.05


@pytest.mark.parametrize("standardize", [True, False])
def test_known_hyperparameters_are_taken_as_they_are(standardize):
    X, y = mixed_data(3)
    y = 5.0 + 3.0 * y
    known = Hyperparameters((0.3, 0.7, 0.2), 1.7, 0.01)
    gp = fit_gp(
        X, y, GPConfig(hyperparameters=known, outputs="standardized" if standardize else "plain"), categorical=MIXED
    )
    assert gp.hyperparameters == known
    scale = y.std(ddof=1) if standardize else 1.0
    Q = np.random.default_rng(0).random((5, 3))
    mean, posterior = textbook("matern52", X, y / scale, Q, known, MIXED)
    np.testing.assert_allclose(gp.posterior(Q)[0], mean * scale, rtol=1e-7)
    np.testing.assert_allclose(gp.posterior(Q)[1], np.sqrt(np.diagonal(posterior)) * scale, rtol=1e-7)
    with pytest.raises(InvalidInputError, match="3 length scales"):
        fit_gp(X, y, GPConfig(hyperparameters=Hyperparameters((0.3,), 1.0, 0.01)))


def test_fit_recovers_which_input_matters_and_how_much_noise_there_is():
    rng = np.random.default_rng(8)
    X = rng.random((80, 3))
    y = np.sin(6 * X[:, 1]) + 0.2 * rng.standard_normal(80)
    hyper = fit_gp(X, y).hyperparameters
    assert 3 * hyper.length_scales[1] < min(hyper.length_scales[0], hyper.length_scales[2])
    assert hyper.noise * y.var() == pytest.approx(0.04, rel=0.5)


def test_learned_noise_of_a_smooth_function_goes_to_nothing():
    X, y = smooth_data(np.random.default_rng(9), 40, 2, 0)
    assert fit_gp(X, y).hyperparameters.noise < 1e-4


def test_fitted_noise_is_the_fixed_one_and_bounds_hold():
    X, y = smooth_data(np.random.default_rng(9), 20, 2, 3)
    assert fit_gp(X, y, GPConfig.paper()).hyperparameters.noise == 1e-4
    config = GPConfig(length_scale_bounds=(0.2, 0.21), output_scale_bounds=(2.0, 2.1), noise_bounds=(0.5, 0.6))
    outside = Hyperparameters((5.0, 1e-5), 77.0, 0.0)
    hyper = fit_gp(X, y, config, start=outside).hyperparameters
    assert all(0.2 - 1e-12 <= ell <= 0.21 + 1e-12 for ell in hyper.length_scales)
    assert 2.0 - 1e-12 <= hyper.output_scale <= 2.1 + 1e-12
    assert 0.5 - 1e-12 <= hyper.noise <= 0.6 + 1e-12


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("scale", "shift"), [(2.0**40, 0.0), (1e-300, 0.0), (1e290, 0.0), (3.7, 5.1), (1.0, 1e3)])
def test_fit_of_scaled_and_shifted_values_is_the_fit(config, scale, shift):
    X, y = mixed_data(4, 20)
    gp, moved = fit_gp(X, y, config, categorical=MIXED), fit_gp(X, scale * y + shift, config, categorical=MIXED)
    # Bit for bit: the search sees the same standardized values, and goes the same way.
    assert moved.hyperparameters == gp.hyperparameters
    Q = mixed_data(5, 10)[0]
    results, expected = moved.posterior_with_grad(Q), gp.posterior_with_grad(Q)
    np.testing.assert_allclose((results[0] - shift) / scale, expected[0], rtol=1e-9, atol=1e-9)
    for got, want in zip(results[1:], expected[1:], strict=True):
        np.testing.assert_allclose(got / scale, want, rtol=1e-9, atol=1e-12)


def test_a_large_offset_hides_nothing_that_the_values_still_show():
    X, _ = mixed_data(4, 20)
    y = np.random.default_rng(4).integers(-50, 50, 20).astype(float)  # exact, also next to the offset
    gp, moved = fit_gp(X, y, categorical=MIXED), fit_gp(X, y + 2.0**40, categorical=MIXED)
    assert moved.hyperparameters == gp.hyperparameters
    assert (moved.posterior(X)[1] == gp.posterior(X)[1]).all()


def test_predictions_come_back_in_the_units_of_the_values():
    X, y = mixed_data(4, 20)
    y = 250.0 + 40.0 * y
    scale = y.std(ddof=1)
    gp = given_gp(X, y)
    Q = mixed_data(5, 10)[0]
    expected, posterior = textbook("matern52", X, (y - y.mean()) / scale, Q, HYPER, MIXED)
    mean, std = gp.posterior(Q)
    np.testing.assert_allclose(mean, y.mean() + scale * expected, rtol=1e-9)
    np.testing.assert_allclose(std, scale * np.sqrt(np.diag(posterior)), rtol=1e-9)


def awkward_values():
    base = np.array([0.3, -1.2, 0.8, 2.0, 0.1, -0.4])
    yield "tiny", 1e-300 * base
    yield "subnormal", np.array([5e-324, 0.0, 1e-323, 0.0, 5e-324, 0.0])
    yield "huge", 1e300 * base
    yield "the whole range", np.array([-1.7e308, 1.7e308, 0.0, 1.0, 1e200, -1e-300])
    yield "shifted", 1e12 + base
    yield "constant", np.full(6, 3.3)
    yield "constant and huge", np.full(6, -1.7e308)
    yield "zero", np.zeros(6)
    yield "outlier", np.append(base[:5], 1e30)


@pytest.mark.parametrize("config", [*CONFIGS, GPConfig(noise=0.0, kernel="rbf")])
@pytest.mark.parametrize(("name", "y"), list(awkward_values()))
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_any_finite_values_fit_and_predict(config, name, y, copies, n):
    rng = np.random.default_rng(10)
    X = np.tile(rng.random((1, 2)), (n, 1)) if copies else rng.random((n, 2))
    y = y[-n:]
    with np.errstate(all="raise", under="ignore"):
        gp = fit_gp(X, y, config)
        Q = np.vstack([X, rng.random((5, 2))])
        for model in (gp, gp.condition_on_pending(Q[-3:])):
            mean, std, dmean, dstd = model.posterior_with_grad(Q)
            assert all(np.isfinite(a).all() for a in (mean, std, dmean, dstd))
            assert (std > 0.0).all()
            assert all(np.isfinite(a).all() for a in model.sample_path(rng, 64)(Q))
    assert math.isfinite(gp.log_posterior)
    if name.startswith("constant"):
        np.testing.assert_allclose(mean, y[0], rtol=1e-12)


def test_twenty_copies_of_one_point_average_their_values():
    rng = np.random.default_rng(11)
    X, y = np.full((20, 3), 0.4), rng.standard_normal(20)
    mean, _ = fit_gp(X, y).posterior(X[:1])
    assert mean[0] == pytest.approx(y.mean(), abs=1e-6)


@pytest.mark.parametrize("d", [1, 100])
def test_few_and_many_inputs(d):
    X, y = smooth_data(np.random.default_rng(12), 15, d, 0)
    mean, std = fit_gp(X, y).posterior(X)
    assert np.corrcoef(mean, y)[0, 1] > 0.9
    assert (std > 0.0).all()


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=8),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_whatever_is_told_predictions_are_finite(values, seed, paper):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (len(values), 3)) / 2.0
    config = GPConfig.paper() if paper else GPConfig()
    gp = fit_gp(X, values, config, categorical=MIXED)
    results = gp.posterior_with_grad(np.vstack([X, rng.random((4, 3))]))
    assert all(np.isfinite(a).all() for a in results)
    assert (results[1] > 0.0).all()


def test_same_data_same_fit_and_the_data_are_copied():
    X, y = mixed_data(4, 20)
    first, second = fit_gp(X, y, categorical=MIXED), fit_gp(X, y, categorical=MIXED)
    assert first.hyperparameters == second.hyperparameters
    question = X.copy()
    before = first.sample_path(np.random.default_rng(0))(question)[0]
    X[:], y[:] = 0.0, 0.0
    assert (first.sample_path(np.random.default_rng(0))(question)[0] == before).all()


# Pending points ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("mean", [None, 0.4])
def test_pending_points_act_as_if_told_at_their_expected_value(kernel, mean):
    X, y = mixed_data(0)
    pending = np.array([[0.5, 1.0, 0.5], [0.1, 7.0, 0.2], [0.1, 8.0, 0.2], X[0]])
    gp = given_gp(X, y, kernel=kernel, mean=mean, standardize=False)
    Q = np.vstack([mixed_data(1, 30)[0], pending])
    expected, _ = textbook(kernel, X, y, pending, HYPER, MIXED, mean)
    both = textbook(kernel, np.vstack([X, pending]), np.append(y, expected), Q, HYPER, MIXED, mean)
    got_mean, got_std = gp.condition_on_pending(pending[:1]).condition_on_pending(pending[1:]).posterior(Q)
    np.testing.assert_allclose(got_mean, both[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(got_std, np.sqrt(np.diag(both[1])), rtol=1e-8)
    np.testing.assert_allclose(got_mean, gp.posterior(Q)[0], rtol=0, atol=1e-12)
    assert (got_std <= gp.posterior(Q)[1] * (1 + 1e-9)).all()
    assert (gp.condition_on_pending(pending).n, gp.n) == (12, 12)


def test_no_pending_points_change_nothing():
    X, y = mixed_data(0)
    gp = given_gp(X, y)
    assert gp.condition_on_pending(np.empty((0, 3))) is gp


# Draws ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pending", [False, True])
def test_sample_paths_have_the_mean_and_covariance_of_the_posterior(kernel, pending):
    X, y = mixed_data(0, 8)
    Q = np.vstack([mixed_data(1, 4)[0], [[0.2, 9.0, 0.3], [0.2, 8.0, 0.3]], X[:1]])
    extra = np.array([[0.3, 1.0, 0.6], [0.9, 2.0, 0.1]])
    Q = np.vstack([Q, extra])
    gp = given_gp(X, y, kernel=kernel, standardize=False)
    expected, posterior = textbook(kernel, X, y, Q, HYPER, MIXED)
    if pending:
        gp = gp.condition_on_pending(extra)
        told = np.append(y, textbook(kernel, X, y, extra, HYPER, MIXED)[0])
        expected, posterior = textbook(kernel, np.vstack([X, extra]), told, Q, HYPER, MIXED)
    rng = np.random.default_rng(13)
    n_draws = 1500
    draws = np.array([gp.sample_path(rng, 128)(Q)[0] for _ in range(n_draws)])
    std = np.sqrt(np.diag(posterior))
    assert (np.abs(draws.mean(axis=0) - expected) < 5.0 * std / math.sqrt(n_draws)).all()
    # Given its frequencies a draw is Gaussian; that they are random too widens the spread of a product a little.
    error = np.abs(np.cov(draws.T) - posterior)
    assert (error < 5.0 * 1.1 * math.sqrt(2.0 / n_draws) * np.outer(std, std) + 1e-3 * HYPER.output_scale).all()


def test_sample_path_goes_through_values_told_without_noise_and_has_gradients():
    X, y = mixed_data(0, 8)
    gp = given_gp(X, 1e3 * y, Hyperparameters((0.4, 0.9, 0.7), 1.7, 1e-10))
    path = gp.sample_path(np.random.default_rng(14), 512)
    np.testing.assert_allclose(path(X)[0], 1e3 * y, rtol=0, atol=1.0)
    Q = mixed_data(1, 300)[0]
    value, gradient = path(Q)
    assert value[7] == pytest.approx(path(Q[7:8])[0][0], rel=1e-9)
    h = 1e-6
    for k in (0, 2):
        step = h * np.eye(3)[k]
        np.testing.assert_allclose(
            gradient[:, k], (path(Q + step)[0] - path(Q - step)[0]) / (2 * h), rtol=1e-4, atol=1e-2
        )
    assert (gradient[:, 1] == 0.0).all()


def test_sample_paths_follow_their_generator_alone():
    X, y = mixed_data(0, 8)
    gp = given_gp(X, y)
    one, same, other = (gp.sample_path(np.random.default_rng(seed))(X)[0] for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


# Linear algebra, records and refusals --------------------------------------------------------------------------------


def test_cholesky_adds_nothing_where_nothing_is_needed():
    A = np.random.default_rng(15).standard_normal((6, 6))
    factor, jitter = cholesky(A @ A.T + np.eye(6))
    np.testing.assert_allclose(factor @ factor.T, A @ A.T + np.eye(6), rtol=0, atol=1e-12)
    assert jitter == 0.0
    assert (np.triu(factor, 1) == 0.0).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_cholesky_of_a_singular_matrix_has_a_small_jitter(scale):
    factor, jitter = cholesky(scale * np.ones((5, 5)))
    assert 0.0 < jitter <= 1e-8 * scale
    np.testing.assert_allclose(factor @ factor.T, scale * (np.ones((5, 5)) + jitter / scale * np.eye(5)), rtol=1e-12)


def test_cholesky_of_an_indefinite_matrix_is_that_of_the_nearest_definite_one():
    factor, _ = cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))  # eigenvalues 3 and -1
    np.testing.assert_allclose(factor @ factor.T, [[1.5, 1.5], [1.5, 1.5]], rtol=0, atol=1e-9)
    assert (np.diag(factor) > 0.0).all()


def test_config_is_plain_data():
    plain = json.loads(json.dumps(dataclasses.asdict(GPConfig.paper())))
    assert plain["kernel"] == "matern52"
    assert plain["noise"] == 1e-4
    assert plain["length_scale_prior"] == {"concentration": 3.0, "rate": 6.0}
    assert plain["output_scale_prior"] == {"concentration": 2.0, "rate": 0.15}
    assert GPConfig() == GPConfig()
    assert hash(GPConfig()) == hash(GPConfig())
    with pytest.raises(dataclasses.FrozenInstanceError):
        GPConfig().noise = 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GPConfig(kernel="cubic"), "kernel must be one of .* got 'cubic'"),
        (lambda: GPConfig(noise=-1.0), "noise must be None, or finite and not negative; got -1.0"),
        (lambda: GPConfig(noise=math.nan), "noise must be .* got nan"),
        (lambda: GPConfig(noise_bounds=(1.0, 0.5)), "noise_bounds must be .* got \\(1.0, 0.5\\)"),
        (lambda: GPConfig(length_scale_bounds=(0.0, 0.5)), "length_scale_bounds must be"),
        (lambda: GPConfig(output_scale_bounds=(0.1, math.inf)), "output_scale_bounds must be"),
        (lambda: GammaPrior(0.0, 1.0), "concentration must be positive and finite; got 0.0"),
        (lambda: GammaPrior(1.0, math.inf), "rate must be positive and finite; got inf"),
        (lambda: LogNormalPrior(math.nan, 1.0), "location must be finite; got nan"),
        (lambda: LogNormalPrior(0.0, -1.0), "scale must be positive and finite; got -1.0"),
        (lambda: GammaPrior("1", 1.0), "concentration must be positive and finite; got 1"),
        (lambda: LogNormalPrior(0.0, 1e-200), "a prior must have a density that floats can hold"),
        (lambda: GPConfig(kernel=["rbf"]), r"kernel must be one of .* got \['rbf'\]"),
        (lambda: GPConfig(noise="1"), "noise must be None, or finite and not negative; got 1"),
        (lambda: GPConfig(noise_bounds=1.0), "noise_bounds must be finite with 0 < low < high; got 1.0"),
        (lambda: GPConfig(noise_bounds=(1.0, "2")), "noise_bounds must be finite with 0 < low < high"),
        (lambda: GPConfig(noise_prior=None), "noise_prior must be a GammaPrior or LogNormalPrior; got None"),
        (lambda: GPConfig(hyperparameters=3), "hyperparameters must be None or Hyperparameters; got 3"),
        (lambda: GPConfig(noisy="yes"), "noisy must be true or false; got 'yes'"),
        (lambda: Hyperparameters("12", 1.0, 0.0), "length_scales must be a tuple of numbers; got '12'"),
        (lambda: Hyperparameters(3.0, 1.0, 0.0), "length_scales must be a tuple of numbers; got 3.0"),
        (lambda: Hyperparameters((1.0, -2.0), 1.0, 0.0), "length_scales must be positive and finite; got -2.0"),
        (lambda: Hyperparameters((1.0,), 0.0, 0.0), "output_scale must be positive"),
        (lambda: Hyperparameters((1.0,), 1.0, -1e-9), "noise must be finite and not negative; got -1e-09"),
        (lambda: fit_gp(np.zeros((3, 2)), np.zeros(2)), r"X must be \(n, d\) and y \(n,\).*got \(3, 2\) and \(2,\)"),
        (lambda: fit_gp(np.zeros((0, 2)), np.zeros(0)), "n and d at least 1"),
        (lambda: fit_gp(np.zeros(3), np.zeros(3)), "X must be"),
        (lambda: fit_gp([[0.0], [math.nan]], [0.0, 1.0]), "X must be finite; got nan"),
        (lambda: fit_gp([[0.0], [1.0]], [0.0, math.inf]), "y must be finite; got inf"),
        (lambda: fit_gp(np.zeros((3, 2)), np.zeros(3), categorical=[True]), "categorical must be 2 booleans"),
        (lambda: fit_gp(np.zeros((3, 2)), np.zeros(3), categorical=[0, 1]), "categorical must be 2 booleans"),
        (lambda: fit_gp(np.zeros((3, 2)), np.zeros(3), start=HYPER), "must have 2 length scales.*got 3"),
        (lambda: given_gp(*mixed_data(0), mean=math.inf), "mean must be finite; got inf"),
        (lambda: given_gp(*mixed_data(0)).posterior(np.zeros((2, 2))), r"X must be \(m, 3\); got shape \(2, 2\)"),
        (lambda: given_gp(*mixed_data(0)).posterior(np.full((2, 3), math.nan)), "X must be finite; got nan"),
    ],
)
def test_refusals_name_the_rule_and_the_value(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
