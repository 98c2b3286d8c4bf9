"""The bridge to BoTorch: its posteriors against the engine's, which shares no code with GPyTorch."""

import numpy as np
import pytest

pytest.importorskip("botorch.acquisition")

import torch
from engine_fixtures import LINE, MIXED, SQUARE, build_snapshot, central_difference, cube, one_thread  # noqa: F401

from pbgi.botorch.belief import Belief, log_moment
from pbgi.botorch.bridge import botorch_model, surrogate_of
from pbgi.cost import KnownCost, LearnedCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.gp.fit import fit_gp
from pbgi.gp.posterior import GP

KERNELS = ("matern52", "matern32", "rbf")


def example(d=2, n=12, kernel="matern52", noise=1e-4, standardize=True, seed=0):
    """Data and a Gaussian process with hyperparameters that were not fitted to them."""
    rng = np.random.default_rng([d, n, seed])
    X = rng.random((n, d))
    values = 40.0 + 3.0 * np.sin(5.0 * X[:, 0]) + X.sum(axis=1)
    parameters = Hyperparameters(tuple(np.linspace(0.3, 0.8, d)), 1.7, noise)
    config = GPConfig(kernel=kernel, noise=noise, outputs="standardized" if standardize else "plain")
    gp = GP.with_hyperparameters(X, values, parameters, config, standardize=standardize)
    return gp, X, values, rng.random((40, d))


def mean_and_std(model, X):
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(X))
        return posterior.mean.numpy()[:, 0], posterior.variance.sqrt().numpy()[:, 0]


def assert_same_posterior(gp, model, X, output_scale):
    for ours, theirs in zip(gp.posterior(X), mean_and_std(model, X), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-8 * output_scale)


def output_scale(gp, values):
    return np.sqrt(gp.hyperparameters.output_scale) * (values.std() if gp.config.outputs != "plain" else 1.0)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_same_posterior(kernel, noise, standardize):
    for d in (1, 3, 8):
        gp, _X, values, Z = example(d, 20, kernel, noise, standardize)
        assert_same_posterior(gp, botorch_model(gp), Z, output_scale(gp, values))


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_same_posterior_given_pending_points(kernel, standardize):
    gp, _X, values, Z = example(3, kernel=kernel, standardize=standardize)
    pending = np.random.default_rng(9).random((4, 3))
    model = botorch_model(gp.condition_on_pending(pending))
    assert_same_posterior(gp.condition_on_pending(pending), model, Z, output_scale(gp, values))
    assert (mean_and_std(model, pending)[1] < 0.5 * gp.posterior(pending)[1]).all()


@pytest.mark.parametrize("noise", [1e-8, 1e-10])
def test_noise_below_what_botorch_takes_for_fixed_noise(noise):
    """In one dimension and few points, so that the covariance is definite in floats."""
    gp, _X, values, Z = example(1, 5, "matern32", noise)
    assert_same_posterior(gp, botorch_model(gp), Z, output_scale(gp, values))


def test_copies_without_noise():
    """The engine adds jitter; the bridge must add the same."""
    X = np.array([[0.2], [0.2], [0.2], [0.7], [0.9]])
    values = np.array([1.0, 1.0, 1.0, 2.0, 0.0])
    gp = GP.with_hyperparameters(X, values, Hyperparameters((0.3,), 1.0, 0.0), GPConfig(noise=0.0))
    Z = np.linspace(0, 1, 20)[:, None]
    theirs = mean_and_std(botorch_model(gp), Z)
    np.testing.assert_allclose(theirs, gp.posterior(Z), atol=1e-6)


@pytest.mark.parametrize("n", [1, 2])
def test_few_values(n):
    for values in (np.arange(n) * 3.0 + 7.0, np.full(n, 5.0)):
        X = np.array([[0.3, 0.6], [0.9, 0.1]])[:n]
        gp = fit_gp(X, values, GPConfig())
        assert_same_posterior(gp, botorch_model(gp), np.random.default_rng(0).random((9, 2)), 1.0)


def test_conditioning_in_botorch_is_telling_the_engine():
    """A value told to the BoTorch model, transform and noise included, against a new posterior of the engine."""
    gp, X, values, Z = example(2)
    model = botorch_model(gp)
    mean_and_std(model, Z)  # fills the caches that conditioning starts from
    x, value = np.array([[0.5, 0.25]]), 47.0
    told = model.condition_on_observations(torch.tensor(x), torch.tensor([[value]], dtype=torch.float64))
    spread = values.std(ddof=1)
    # The mean that the engine fitted: the posterior mean far from all data.
    far = gp.posterior(np.full((1, 2), 1e3))[0][0]
    parameters = Hyperparameters(gp.hyperparameters.length_scales, 1.7 * spread**2, 1e-4 * spread**2)
    expected = GP.with_hyperparameters(
        np.concatenate([X, x]), np.append(values, value), parameters, mean=far, standardize=False
    )
    assert_same_posterior(expected, told, Z, output_scale(gp, values))


def test_double_precision_and_nothing_to_train():
    gp, *_ = example()
    before = torch.get_default_dtype()
    model = botorch_model(gp)
    assert torch.get_default_dtype() == before
    assert not model.training
    parameters = list(model.parameters())
    assert parameters
    assert all(p.dtype == torch.float64 and not p.requires_grad for p in parameters)


def test_data_are_copied():
    gp, X, values, Z = example()
    model = botorch_model(gp)
    before = mean_and_std(model, Z)
    X += 1.0
    values += 1.0
    np.testing.assert_array_equal(mean_and_std(model, Z), before)


def test_categories_have_no_model():
    gp = fit_gp(np.array([[0.0, 0.2], [1.0, 0.4]]), np.array([1.0, 2.0]), categorical=np.array([True, False]))
    with pytest.raises(InvalidInputError, match="made of numbers; the Gaussian process has categories"):
        botorch_model(gp)


# Snapshots ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [GPConfig(), GPConfig.paper(), GPConfig(kernel="rbf", outputs="plain")], ids=repr)
def test_surrogate_is_the_snapshots_model_in_standardized_units(config):
    rng = np.random.default_rng(3)
    X, pending, Z = rng.random((9, 3)), rng.random((2, 3)), rng.random((30, 3))
    snapshot = build_snapshot(cube(3), X, 100.0 + 5.0 * np.cos(4 * X[:, 0]), pending=pending, config=config)
    surrogate = surrogate_of(snapshot)
    mean, std = mean_and_std(surrogate.model, Z)
    center, scale = surrogate.training.center, surrogate.training.scale
    expected = snapshot.model.posterior(Z)
    np.testing.assert_allclose(center + scale * mean, expected[0], atol=1e-8 * scale)
    np.testing.assert_allclose(scale * std, expected[1], atol=1e-8 * scale)
    assert center + scale * surrogate.best_value == pytest.approx(snapshot.warped.max(), abs=1e-8 * scale)


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_units_that_no_square_survives(unit):
    X = np.array([[0.1], [0.4], [0.9]])
    small, large = (surrogate_of(build_snapshot(LINE, X, u * np.array([1.0, 3.0, 2.0]))) for u in (1.0, unit))
    Z = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_allclose(mean_and_std(large.model, Z), mean_and_std(small.model, Z), atol=1e-9)


def test_categories_are_refused():
    X = np.random.default_rng(0).random((5, MIXED.dimension))
    with pytest.raises(InvalidInputError, match=r"need numbers, not categories; got act in the space"):
        surrogate_of(build_snapshot(MIXED, X, X.sum(axis=1)))


def test_another_kind_of_model_is_refused():
    class Guess:
        pass

    snapshot = build_snapshot(LINE, [[0.2], [0.8]], [1.0, 2.0])
    object.__setattr__(snapshot, "model", Guess())
    with pytest.raises(InvalidInputError, match="need the Gaussian process of a GPConfig; got Guess"):
        surrogate_of(snapshot)


# Beliefs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_belief_is_the_joint_posterior_of_the_model(kernel):
    X = np.random.default_rng(4).random((8, 2))
    surrogate = surrogate_of(build_snapshot(SQUARE, X, np.sin(6 * X[:, 0]), config=GPConfig(kernel=kernel, noise=1e-4)))
    belief, Z = Belief(surrogate), torch.rand(5, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean, explained = belief.mean_and_explained(Z)
    covariance = belief.prior(Z, Z) - explained @ explained.transpose(-1, -2)
    with torch.no_grad():
        posterior = surrogate.model.posterior(Z)
    np.testing.assert_allclose(mean, posterior.mean.squeeze(-1), atol=1e-8)
    np.testing.assert_allclose(covariance, posterior.distribution.covariance_matrix, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_belief_of_a_first_point_and_others(kernel):
    X = np.random.default_rng(4).random((8, 2))
    surrogate = surrogate_of(build_snapshot(SQUARE, X, np.sin(6 * X[:, 0]), config=GPConfig(kernel=kernel, noise=1e-4)))
    Z = torch.rand(5, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    variance, mean, covariance = Belief(surrogate).first_and_others(Z)
    with torch.no_grad():
        posterior = surrogate.model.posterior(Z)
    joint = posterior.distribution.covariance_matrix
    np.testing.assert_allclose(variance, joint[:, 0, 0], atol=1e-8)
    np.testing.assert_allclose(mean, posterior.mean.squeeze(-1)[:, 1:], atol=1e-8)
    np.testing.assert_allclose(covariance, joint[:, 0, 1:], atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_a_belief(kernel):
    X = np.random.default_rng(4).random((8, 2))
    surrogate = surrogate_of(build_snapshot(SQUARE, X, np.sin(6 * X[:, 0]), config=GPConfig(kernel=kernel, noise=1e-4)))
    belief, generator = Belief(surrogate), torch.Generator().manual_seed(1)
    Z, one, many = (
        torch.rand(*shape, dtype=torch.float64, generator=generator).requires_grad_()
        for shape in [(2, 3, 2), (4, 2), (2, 4, 2)]
    )
    for other in (one, many):  # with others shared by all batches, and with others of its own
        assert torch.autograd.gradcheck(belief.prior, (Z, other))
    assert torch.autograd.gradcheck(belief.mean_and_explained, Z)
    assert torch.autograd.gradcheck(belief.first_and_others, Z)


@pytest.mark.parametrize("cost", [UniformCost(), LearnedCost(), KnownCost(lambda p: 1.0 + p["x"] + p["y"] ** 2)])
@pytest.mark.parametrize("power", [1.0, -1.0])
def test_cost_and_its_gradient_reach_torch(cost, power):
    rng = np.random.default_rng(5)
    X = rng.random((9, 2))
    snapshot = build_snapshot(SQUARE, X, X.sum(axis=1), cost=cost, costs=1.0 + X[:, 0] + X[:, 1] ** 2)
    Z = torch.tensor(0.1 + 0.8 * rng.random((3, 4, 2)), requires_grad=True)
    weights = rng.random((3, 4))
    moment = log_moment(snapshot.cost, Z, power)
    (moment * torch.tensor(weights)).sum().backward()
    points = Z.detach().numpy().reshape(-1, 2)
    np.testing.assert_allclose(moment.detach().numpy().ravel(), snapshot.cost.log_moment(points, power), atol=1e-12)
    slope = central_difference(lambda P: snapshot.cost.log_moment(P, power), points)
    np.testing.assert_allclose(Z.grad.numpy().reshape(-1, 2), weights.reshape(-1, 1) * slope, atol=1e-5)
