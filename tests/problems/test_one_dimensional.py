"""The two problems on a line, and the model they bring: against dense algebra, differences and the paper's figure."""

from dataclasses import replace

import numpy as np
import pytest
from engine_fixtures import central_difference, one_thread  # noqa: F401 (a fixture that is used by its name)
from scipy import optimize

from pbgi import PBGI, InvalidInputError, LogEIPC, Optimizer
from pbgi.problems import ModulatedGP, hard_for_ei, hard_for_eipc
from pbgi.problems.modulated_gp import Bump
from pbgi.problems.one_dimensional import HARD_FOR_EI, HARD_FOR_EIPC, START, ModulatedDraw, highest_value
from pbgi.stopping import BudgetSpent

# z, amplitude and cost as they are drawn in the paper's figure (where it is hard for EI per cost).
FIGURE = [
    (0.0, 1.0, 10.0),
    (0.5, 0.323066, 3.23067),
    (-0.5, 0.323064, 3.23065),
    (1.0, 0.019899, 0.198999),
    (1.5, 0.0100305, 0.100308),
    (5.0, 0.00999988, 0.099997),
]
AMPLITUDE = Bump(0.1, 0.9, 0.4)
MODEL = ModulatedGP(AMPLITUDE, -2.0, 2.0, length_scale=0.3, noise=1e-4)


def matern52(distance):
    s = np.sqrt(5.0) * np.abs(distance)
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


def dense_posterior(model, X, values, Z, mean=None):
    """Mean and std of f at Z from the covariance matrix of f itself, by the textbook."""

    def covariance(A, B):
        a, b = model.low + (model.high - model.low) * A[:, 0], model.low + (model.high - model.low) * B[:, 0]
        return np.outer(model.amplitude(a), model.amplitude(b)) * matern52((a[:, None] - b) / model.length_scale)

    K = covariance(X, X) + model.noise * np.eye(len(X))
    if mean is None:
        ones = np.ones(len(X))
        mean = ones @ np.linalg.solve(K, values) / (ones @ np.linalg.solve(K, ones))
    k = covariance(Z, X)
    variance = np.diag(covariance(Z, Z)) - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    return mean + k @ np.linalg.solve(K, values - mean), np.sqrt(variance)


def data(n=9, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 1)), rng.normal(size=n), rng.random((30, 1))


# The model ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [1.0, 0.5])
@pytest.mark.parametrize("mean", [None, 0.0, 1.3])
def test_posterior_is_that_of_dense_algebra(mean, exponent):
    model = replace(MODEL, mean=mean, amplitude=replace(AMPLITUDE, exponent=exponent))
    X, values, Z = data()
    found = model.fit(X, values).posterior(Z)
    np.testing.assert_allclose(found, dense_posterior(model, X, values, Z, mean), rtol=1e-7)
    np.testing.assert_allclose(model.fit(X, values).posterior_with_grad(Z)[:2], found, rtol=1e-12)


def test_prior_far_from_data():
    posterior = replace(MODEL, mean=0.5).fit(np.array([[0.0]]), np.array([0.6]))
    mean, std = posterior.posterior(np.array([[0.5], [1.0]]))  # z = 0 and 2, seven and thirteen length scales away
    np.testing.assert_allclose(mean, 0.5, atol=1e-4)
    np.testing.assert_allclose(std, AMPLITUDE(np.array([0.0, 2.0])), rtol=1e-4)


@pytest.mark.parametrize("exponent", [1.0, 0.5])
def test_gradients_are_those_of_differences(exponent):
    model = replace(MODEL, amplitude=replace(AMPLITUDE, exponent=exponent))
    X, values, Z = data()
    posterior = model.fit(X, values)
    _, _, dmean, dstd = posterior.posterior_with_grad(Z)
    np.testing.assert_allclose(dmean, central_difference(lambda A: posterior.posterior(A)[0], Z), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dstd, central_difference(lambda A: posterior.posterior(A)[1], Z), rtol=1e-5, atol=1e-6)


def test_gradients_on_the_whole_line():
    """A length scale is a ten-thousandth of the unit interval there."""
    model = hard_for_eipc_model()
    X = np.array([[0.0], [0.4998], [0.50005], [0.7]])
    posterior = model.fit(X, np.array([0.01, 0.2, -0.6, 0.0]))
    Z = np.array([[0.4999], [0.50001], [0.5004], [0.70003], [0.3]])
    _, _, dmean, dstd = posterior.posterior_with_grad(Z)
    for gradient, k in ((dmean, 0), (dstd, 1)):
        expected = central_difference(lambda A, k=k: posterior.posterior(A)[k], Z, step=1e-9)
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-2)  # of slopes up to several thousand


def hard_for_eipc_model():
    return ModulatedGP(replace(HARD_FOR_EIPC, exponent=0.5), -500.0, 500.0, noise=1e-4)


def test_pending_points_leave_the_mean_and_shrink_the_spread():
    X, values, Z = data()
    pending = np.array([[0.31], [0.77]])
    posterior = MODEL.fit(X, values)
    after = posterior.condition_on_pending(pending)
    np.testing.assert_allclose(after.posterior(Z)[0], posterior.posterior(Z)[0], rtol=1e-8)
    _, std = dense_posterior(MODEL, np.vstack([X, pending]), np.zeros(len(X) + 2), Z, mean=0.0)
    np.testing.assert_allclose(after.posterior(Z)[1], std, rtol=1e-7)
    assert (after.posterior(pending)[1] < 0.5 * posterior.posterior(pending)[1]).all()
    assert posterior.condition_on_pending(np.empty((0, 1))) is posterior


def test_paths_have_the_mean_and_spread_of_the_posterior():
    X, values, _ = data(5)
    Z = np.array([[0.1], [0.45], [0.5], [0.9]])
    posterior = MODEL.fit(X, values)
    rng = np.random.default_rng(3)
    draws = np.array([posterior.sample_path(rng)(Z)[0] for _ in range(1500)])
    mean, std = posterior.posterior(Z)
    assert (np.abs(draws.mean(axis=0) - mean) < 4 * std / np.sqrt(1500)).all()
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.1)


def test_paths_go_through_the_data_and_know_their_slope():
    X, values, Z = data()
    path = replace(MODEL, noise=1e-10).fit(X, values).sample_path(np.random.default_rng(1))
    np.testing.assert_allclose(path(X)[0], values, atol=1e-3)
    np.testing.assert_allclose(path(Z)[1], central_difference(lambda A: path(A)[0], Z), rtol=1e-5, atol=1e-5)


def test_one_point_and_equal_points():
    X = np.array([[0.2], [0.2], [0.2]])
    values = np.array([1.0, 1.0, 3.0])
    one = MODEL.fit(X[:1], values[:1])
    assert one.mean == pytest.approx(1.0)
    assert one.hyperparameters is None
    three = MODEL.fit(X, values)
    assert all(np.isfinite(part).all() for part in three.posterior_with_grad(X))
    assert three.posterior(X[:1])[0][0] == pytest.approx(5 / 3)


# The problems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("z", "amplitude", "cost"), FIGURE)
def test_amplitude_and_cost_are_those_of_the_figure(z, amplitude, cost):
    assert HARD_FOR_EIPC(z) == pytest.approx(amplitude, rel=1e-4)
    assert hard_for_eipc(seed=0).evaluate({"z": z}).cost == pytest.approx(cost, rel=1e-4)
    assert hard_for_ei(seed=0).evaluate({"z": z}).cost == pytest.approx(cost, rel=1e-4)


def test_hard_for_ei_varies_nearly_as_much_everywhere():
    assert HARD_FOR_EI(0.0) == 1.0
    assert HARD_FOR_EI(100.0) == 0.81


def test_values_have_the_amplitude():
    z = np.array([-400.0, 0.0, 0.5])
    draws = [ModulatedDraw(ModulatedGP(HARD_FOR_EIPC, -500.0, 500.0), seed) for seed in range(1500)]
    std = np.sqrt(np.mean([draw.values(z) ** 2 for draw in draws], axis=0))
    np.testing.assert_allclose(std, HARD_FOR_EIPC(z), rtol=4 / np.sqrt(2 * 1500))


def test_optimum_is_that_of_a_finer_grid():
    problem = hard_for_eipc(seed=2)
    z = np.linspace(-2.0, 2.0, 4001)
    values = problem.evaluate.values(z)
    best = z[values.argmax()]
    climbed = optimize.minimize_scalar(
        lambda place: -problem.evaluate.values(np.array([place]))[0],
        bounds=(best - 1e-3, best + 1e-3),
        method="bounded",
    )
    assert problem.optimum == pytest.approx(-climbed.fun, abs=1e-7)
    assert problem.optimum == highest_value(problem.evaluate)


def test_optimum_of_hard_for_ei_is_above_random_places():
    problem = hard_for_ei(seed=2)
    z = np.random.default_rng(0).uniform(-500.0, 500.0, 20_000)
    assert problem.evaluate.values(z).max() <= problem.optimum


def test_models_on_offer():
    published, prior = (hard_for_eipc(seed=0, model=name).model for name in ("published", "prior"))
    assert float(published.amplitude(np.array(300.0))) == pytest.approx(0.1)  # the root of 0.01
    assert float(prior.amplitude(np.array(300.0))) == pytest.approx(0.01)
    with pytest.raises(InvalidInputError, match="model must be one of published, prior"):
        hard_for_eipc(seed=0, model="other")
    with pytest.raises(InvalidInputError, match="seed"):
        hard_for_ei(seed=-1)


@pytest.mark.parametrize(("policy", "goes_there"), [(PBGI(1e-4), True), (LogEIPC(), False)])
def test_the_index_goes_to_the_bump_and_improvement_per_cost_does_not(policy, goes_there):
    """The paper's claim: it takes the index a few cheap points, and EI per cost never goes there in 40 of them."""
    problem = hard_for_eipc(seed=5)
    optimizer = Optimizer(
        problem.space,
        direction=problem.direction,
        cost=problem.cost,
        budget=problem.budget,
        policy=policy,
        stop=BudgetSpent(overshoot=True),
        model=problem.model,
        n_startup_trials=1,
        seed=5,
    )
    optimizer.tell(START, *problem.evaluate(START)[:1])
    places = []
    while len(places) < 40 and optimizer.spent < problem.budget:
        trial = optimizer.ask()
        value, cost = problem.evaluate(trial.params)
        optimizer.tell(trial, value, cost=cost)
        places.append(trial.params["z"])
    assert any(abs(z) < 1.0 for z in places) == goes_there
