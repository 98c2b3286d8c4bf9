"""The acquisition functions for BoTorch: values, derivatives, shapes, costs of every kind, and a whole search."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("botorch.acquisition")

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions import UnsupportedError
from botorch.models import EnsembleMapSaasSingleTaskGP, ModelListGP
from botorch.models.cost import AffineFidelityCostModel
from botorch.models.deterministic import GenericDeterministicModel, PosteriorMeanModel
from botorch.models.transforms.outcome import Log, Standardize
from botorch.optim import optimize_acqf
from botorch.utils.testing import BotorchTestCase, MockModel, MockPosterior
from botorch_fixtures import DEVICES, candidates, fitted, log_cost, moments, objective, points, twins, unfitted
from engine_fixtures import expected_improvement, index_by_bisection
from engine_fixtures import one_thread as one_thread

from pbgi import InvalidInputError, gittins_index
from pbgi.acquisition import GittinsIndex
from pbgi.botorch import LogExpectedImprovementPerCost, PandorasBoxGittinsIndex
from pbgi.cost import KnownCost
from pbgi.gp.config import GPConfig
from pbgi.parameter import Float
from pbgi.search.maximize import build_pool, search
from pbgi.space import Space

SCALE = 0.05


def linear_cost(X):
    return 1.0 + 20.0 * X.mean(dim=-1)


LINEAR_COST_MODEL = GenericDeterministicModel(lambda X: linear_cost(X).unsqueeze(-1))


@pytest.fixture(scope="module")
def model():
    X = points(14)
    return fitted(X, objective(X))


@pytest.fixture(scope="module")
def cost_model():
    X = points(14)
    return fitted(X, log_cost(X) + 0.3 * torch.as_tensor(np.random.default_rng(3).standard_normal((14, 1))))


@pytest.fixture
def both(model):
    """One function of each kind, with a cost that varies."""
    return [
        PandorasBoxGittinsIndex(model, SCALE, linear_cost),
        LogExpectedImprovementPerCost(model, 120.0, linear_cost, 0.7),
    ]


def numpy(x):
    return x.detach().cpu().numpy()


# Values --------------------------------------------------------------------------------------------------------------


def test_index_of_a_fitted_model_solves_its_equation(model):
    """In the original units of the objective, by bisection on the textbook formula."""
    X = candidates(40)
    index = numpy(PandorasBoxGittinsIndex(model, SCALE, linear_cost)(X))
    mean, std = moments(model, X)
    np.testing.assert_allclose(index, index_by_bisection(mean, std, SCALE * numpy(linear_cost(X[:, 0]))), rtol=1e-10)
    assert 50 < mean.mean() < 150


def test_uniform_cost_is_one(model):
    X = candidates(10)
    mean, std = moments(model, X)
    index = numpy(PandorasBoxGittinsIndex(model, SCALE)(X))
    np.testing.assert_allclose(index, gittins_index(mean, std, np.log(SCALE)), rtol=1e-12)


def test_same_values_and_gradients_as_the_engine():
    """Two implementations of one posterior, one of its index."""
    theirs, ours = twins()
    cost = KnownCost(lambda p: 1.0 + 10.0 * (p["x"] + p["y"])).fit(
        Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}), np.empty((0, 2)), np.empty(0), GPConfig(), None
    )
    X = candidates(30).requires_grad_()
    index = PandorasBoxGittinsIndex(theirs, SCALE, linear_cost)(X)
    (gradient,) = torch.autograd.grad(index.sum(), X)
    value, slope = GittinsIndex(ours, cost, SCALE).value_and_grad(numpy(X)[:, 0])
    np.testing.assert_allclose(numpy(index), value, rtol=1e-8)
    np.testing.assert_allclose(numpy(gradient)[:, 0], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("maximize", [True, False])
def test_without_cost_it_is_botorchs_log_expected_improvement(model, maximize):
    X, best = candidates(40), 110.0
    theirs = LogExpectedImprovement(model, best, maximize=maximize)(X)
    for exponent, cost in ((0.0, linear_cost), (1.0, None)):
        ours = LogExpectedImprovementPerCost(model, best, cost, exponent, maximize=maximize)(X)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("exponent", [1.0, 0.3])
def test_known_costs_divide(model, exponent):
    X, best = candidates(20), 110.0
    mean, std = moments(model, X)
    true = np.log(expected_improvement(mean, std, best)) - exponent * np.log(numpy(linear_cost(X[:, 0])))
    ours = LogExpectedImprovementPerCost(model, best, linear_cost, exponent)(X)
    np.testing.assert_allclose(numpy(ours), true, rtol=1e-6, atol=1e-6)


def test_mirrored_problem_has_the_same_values():
    X = points(12)
    up, down = unfitted(X, -objective(X)), unfitted(X, objective(X))
    at = candidates(25)
    index = PandorasBoxGittinsIndex(down, SCALE, linear_cost, maximize=False)(at)
    torch.testing.assert_close(index, PandorasBoxGittinsIndex(up, SCALE, linear_cost)(at), rtol=1e-10, atol=1e-10)
    value = LogExpectedImprovementPerCost(down, 90.0, linear_cost, maximize=False)(at)
    torch.testing.assert_close(value, LogExpectedImprovementPerCost(up, -90.0, linear_cost)(at), rtol=1e-10, atol=1e-10)


class TestMocks(BotorchTestCase):
    """BoTorch's own way of testing: a posterior that is given, and every dtype."""

    def test_values(self):
        for dtype in (torch.float32, torch.float64):
            mean, variance = (torch.tensor(x, dtype=dtype).reshape(2, 1, 1) for x in ((-0.5, 0.3), (0.25, 4.0)))
            mock = MockModel(MockPosterior(mean=mean, variance=variance))
            X = torch.empty(2, 1, 3, dtype=dtype)
            index = PandorasBoxGittinsIndex(mock, 0.1)(X)
            assert index.dtype == dtype
            true = torch.tensor(gittins_index([-0.5, 0.3], [0.5, 2.0], np.log(0.1)), dtype=dtype)
            self.assertAllClose(index, true, rtol=1e-5)
            z = (np.array([-0.5, 0.3]) - 0.1) / [0.5, 2.0]
            improvement = np.array([0.5, 2.0]) * (stats.norm.pdf(z) + z * stats.norm.cdf(z))
            value = LogExpectedImprovementPerCost(mock, 0.1, None)(X)
            assert value.dtype == dtype
            self.assertAllClose(value, torch.tensor(np.log(improvement), dtype=dtype), rtol=1e-5)

    def test_no_spread_left(self):
        mean = torch.tensor([[[1.5]]], dtype=torch.float64, requires_grad=True)
        variance = torch.zeros(1, 1, 1, dtype=torch.float64, requires_grad=True)
        mock = MockModel(MockPosterior(mean=mean, variance=variance))
        X = torch.empty(1, 1, 2, dtype=torch.float64)
        index = PandorasBoxGittinsIndex(mock, 0.1)(X)
        self.assertAllClose(index, torch.tensor([1.4], dtype=torch.float64))
        value = LogExpectedImprovementPerCost(mock, 2.0, None)(X)
        for output in (index, value):
            gradients = torch.autograd.grad(output.sum(), (mean, variance))
            assert all(bool(gradient.isfinite().all()) for gradient in gradients)

    def test_several_outputs_need_a_transform(self):
        mock = MockModel(MockPosterior(mean=torch.zeros(2, 1, 2), variance=torch.ones(2, 1, 2)))
        with pytest.raises(UnsupportedError, match="posterior transform"):
            PandorasBoxGittinsIndex(mock, 0.1)


# Derivatives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [True, False])
def test_derivatives_through_model_and_learned_cost(model, cost_model, maximize):
    X = candidates(3).requires_grad_()
    for acquisition in (
        PandorasBoxGittinsIndex(model, SCALE, cost_model, maximize=maximize),
        LogExpectedImprovementPerCost(model, 110.0, cost_model, 0.5, maximize=maximize),
    ):
        assert torch.autograd.gradcheck(acquisition, (X,), eps=1e-6, rtol=1e-4)


def test_second_derivatives(both):
    X = candidates(2).requires_grad_()
    for acquisition in both:
        assert torch.autograd.gradgradcheck(acquisition, (X,), eps=1e-5, rtol=1e-3, atol=1e-3)


# Shapes, dtypes, devices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (2, 1, 4)])
def test_any_batch_shape(both, batch):
    X = candidates(*batch)
    for acquisition in both:
        value = acquisition(X)
        assert value.shape == (batch or (1,))  # as BoTorch's own functions
        one_by_one = torch.stack([acquisition(x) for x in X.reshape(-1, 1, 1, 2)]).reshape(value.shape)
        torch.testing.assert_close(value, one_by_one, rtol=1e-9, atol=1e-9)


def test_batched_model_and_numbers_per_batch():
    X = torch.stack([points(8, seed=k) for k in range(3)])
    batched = unfitted(X, torch.stack([objective(x) for x in X]))
    at = candidates(4, 3)
    scales, best = torch.tensor([0.01, 0.1, 1.0]), torch.tensor([90.0, 100.0, 110.0])
    index = PandorasBoxGittinsIndex(batched, scales, linear_cost)(at)
    value = LogExpectedImprovementPerCost(batched, best, linear_cost)(at)
    mean, std = moments(batched, at)
    price = numpy(scales) * numpy(linear_cost(at[..., 0, :]))
    np.testing.assert_allclose(numpy(index), gittins_index(mean, std, np.log(price)), rtol=1e-6)
    true = np.log(expected_improvement(mean, std, numpy(best)) / numpy(linear_cost(at[..., 0, :])))
    np.testing.assert_allclose(numpy(value), true, rtol=1e-6)


def test_more_than_one_point_at_a_time_is_refused(both):
    for acquisition in both:
        with pytest.raises(AssertionError, match="q=1"):
            acquisition(points(3).reshape(1, 3, 2))


def test_pending_points_are_refused(both):
    for acquisition in both:
        with pytest.raises(UnsupportedError, match="X_pending"):
            acquisition.set_X_pending(points(1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.filterwarnings("ignore:The model inputs are of type")
def test_dtype_and_device_are_kept(dtype, device):
    X = points(10, dtype=dtype, device=device)
    there = unfitted(X, objective(X))
    at = candidates(6, dtype=dtype, device=device)
    for cost in (None, linear_cost, LINEAR_COST_MODEL, unfitted(X, log_cost(X))):
        for acquisition in (
            PandorasBoxGittinsIndex(there, SCALE, cost),
            LogExpectedImprovementPerCost(there, 110.0, cost),
        ):
            value = acquisition(at.requires_grad_())
            (gradient,) = torch.autograd.grad(value.sum(), at)
            assert (value.dtype, value.device.type) == (gradient.dtype, gradient.device.type) == (dtype, device)
            assert bool(gradient.isfinite().all())
    mean, std = there.posterior(at).mean, there.posterior(at).variance.sqrt()
    true = gittins_index(*(numpy(x.double())[:, 0, 0] for x in (mean, std)), np.log(SCALE))
    np.testing.assert_allclose(numpy(PandorasBoxGittinsIndex(there, SCALE)(at)), true, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:The model inputs are of type")
def test_numbers_are_buffers(both):
    index, value = both
    assert index.state_dict()["cost_scale"].item() == SCALE  # to the last digit of float64
    assert value.state_dict()["best_f"].item() == 120.0
    moved = PandorasBoxGittinsIndex(unfitted(points(5), objective(points(5))), SCALE, LINEAR_COST_MODEL)
    moved.load_state_dict({**moved.state_dict(), "cost_scale": torch.tensor(0.25)})
    assert moved.cost_scale.item() == 0.25
    moved.to(torch.float32)
    assert moved.cost_scale.dtype == torch.float32
    assert moved(candidates(3, dtype=torch.float32)).dtype == torch.float32


def test_a_cost_of_another_precision_does_not_change_that_of_the_value(model):
    index = PandorasBoxGittinsIndex(model, SCALE, lambda X: linear_cost(X).float())(candidates(3))
    assert index.dtype == torch.float64


# Costs ---------------------------------------------------------------------------------------------------------------


def test_deterministic_models_are_costs(model):
    X = candidates(2, 5)
    by_function = PandorasBoxGittinsIndex(model, SCALE, linear_cost)(X)
    torch.testing.assert_close(PandorasBoxGittinsIndex(model, SCALE, LINEAR_COST_MODEL)(X), by_function)
    affine = AffineFidelityCostModel({0: 10.0, 1: 10.0}, fixed_cost=1.0)
    torch.testing.assert_close(PandorasBoxGittinsIndex(model, SCALE, affine)(X), by_function)


def test_other_models_are_of_the_log_cost(model, cost_model):
    """Moments of a log-normal variable: those of SciPy."""
    X = candidates(15)
    (mean, std), (m, s) = moments(model, X), moments(cost_model, X)
    assert s.min() > 0.01
    law = stats.lognorm(s, scale=np.exp(m))
    index = PandorasBoxGittinsIndex(model, SCALE, cost_model)(X)
    np.testing.assert_allclose(numpy(index), gittins_index(mean, std, np.log(SCALE * law.mean())), rtol=1e-9)
    for exponent in (1.0, 0.4):
        inverse = stats.lognorm(exponent * s, scale=np.exp(-exponent * m))  # the law of c^-exponent
        value = LogExpectedImprovementPerCost(model, 110.0, cost_model, exponent)(X)
        true = np.log(expected_improvement(mean, std, 110.0) * inverse.mean())
        np.testing.assert_allclose(numpy(value), true, rtol=1e-6)


def test_a_model_list_with_one_output_chosen(model, cost_model):
    """Objective and log cost side by side, each used where it belongs."""
    X = candidates(6)
    side_by_side = ModelListGP(model, cost_model)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0], dtype=torch.float64))
    index = PandorasBoxGittinsIndex(side_by_side, SCALE, side_by_side.models[1], posterior_transform=first)(X)
    torch.testing.assert_close(index, PandorasBoxGittinsIndex(model, SCALE, cost_model)(X))
    value = LogExpectedImprovementPerCost(side_by_side, 110.0, linear_cost, posterior_transform=first)(X)
    torch.testing.assert_close(value, LogExpectedImprovementPerCost(model, 110.0, linear_cost)(X))


def test_an_outcome_transform_does_not_change_the_units():
    """The index scales and shifts with the objective: g(a f + b, a cost_scale) = a g(f, cost_scale) + b."""
    X, at = points(12), candidates(8)
    Y = objective(X)
    by_hand = unfitted(X, (Y - Y.mean()) / Y.std(), outcome_transform=None)
    inside = unfitted(X, Y, outcome_transform=Standardize(m=1))
    index = PandorasBoxGittinsIndex(by_hand, SCALE / Y.std(), linear_cost)(at) * Y.std() + Y.mean()
    torch.testing.assert_close(PandorasBoxGittinsIndex(inside, SCALE, linear_cost)(at), index, rtol=1e-10, atol=0)


# Ensembles -----------------------------------------------------------------------------------------------------------


def fully_bayesian(X, Y):
    """As fitted by NUTS, with three draws that are given."""
    pytest.importorskip("jax")
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

    model = SaasFullyBayesianSingleTaskGP(X, Y, outcome_transform=Standardize(m=1))
    rng = np.random.default_rng(0)
    draws = {"mean": 0.1, "outputscale": 1.0, "noise": 0.01, "lengthscale": 0.5}
    shapes = {"lengthscale": (3, X.shape[-1])}
    model.load_mcmc_samples(
        {name: torch.as_tensor(scale * np.exp(rng.normal(size=shapes.get(name, 3)))) for name, scale in draws.items()}
    )
    return model.eval()


def map_ensemble(X, Y):
    taus = torch.tensor([0.01, 0.1, 1.0], dtype=torch.float64)
    return EnsembleMapSaasSingleTaskGP(X, Y, num_taus=3, taus=taus).eval()


@pytest.mark.parametrize("ensemble", [fully_bayesian, map_ensemble])
@pytest.mark.parametrize("batch", [(4,), (2, 3)])
def test_ensembles_are_averaged(ensemble, batch):
    X, at = points(10), candidates(*batch)
    values, costs = ensemble(X, objective(X)), ensemble(X, log_cost(X))
    (mean, std), (m, s) = moments(values, at), moments(costs, at)
    assert mean.shape == m.shape == (*batch, 3)
    expected_cost = np.exp(m + 0.5 * s**2).mean(axis=-1, keepdims=True)
    index = PandorasBoxGittinsIndex(values, SCALE, costs)(at)
    assert index.shape == batch
    np.testing.assert_allclose(
        numpy(index), gittins_index(mean, std, np.log(SCALE * expected_cost)).mean(axis=-1), rtol=1e-9
    )
    value = LogExpectedImprovementPerCost(values, 110.0, costs)(at)
    true = expected_improvement(mean, std, 110.0).mean(axis=-1) * np.exp(0.5 * s**2 - m).mean(axis=-1)
    np.testing.assert_allclose(numpy(value), np.log(true), rtol=1e-6)


def test_an_ensemble_with_a_number_per_point():
    X, at = points(10), candidates(4)
    values = map_ensemble(X, objective(X))
    scales = torch.tensor([0.01, 0.1, 1.0, 10.0], dtype=torch.float64)
    each = [PandorasBoxGittinsIndex(values, float(scales[k]))(at[k : k + 1]) for k in range(4)]
    torch.testing.assert_close(PandorasBoxGittinsIndex(values, scales)(at), torch.cat(each))


# In a search ---------------------------------------------------------------------------------------------------------


def test_search_finds_what_the_engine_finds():
    theirs, ours = twins()
    cost = KnownCost(lambda p: 1.0 + 10.0 * (p["x"] + p["y"])).fit(
        Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}), np.empty((0, 2)), np.empty(0), GPConfig(), None
    )
    acquisition = PandorasBoxGittinsIndex(theirs, SCALE, linear_cost)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    x, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=64, options={"seed": 0})
    rng = np.random.default_rng(0)
    found = search(GittinsIndex(ours, cost, SCALE), build_pool(2, rng), rng=rng)
    assert value.item() == pytest.approx(found.value, abs=1e-6)
    np.testing.assert_allclose(numpy(x)[0], found.x, atol=1e-3)


def test_search_by_improvement_per_cost_prefers_the_cheap(model):
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)

    def price(exponent):
        acquisition = LogExpectedImprovementPerCost(model, 100.0, linear_cost, exponent)
        x, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=64, options={"seed": 0})
        return linear_cost(x).item()

    assert price(2.0) < price(0.0)


# Rules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost_scale": 0.0}, "cost_scale must be positive; got 0.0"),
        ({"cost_scale": -1}, "cost_scale must be positive; got -1"),
        ({"cost_scale": torch.tensor([1.0, torch.inf])}, "cost_scale must be finite; got tensor"),
        ({"cost_scale": "large"}, "cost_scale must be a number or a tensor; got 'large'"),
        ({"cost_scale": True}, "cost_scale must be a number or a tensor; got True"),
        ({"cost_scale": 1.0, "cost_model": 3.0}, "cost_model must be None, a function of X.*got 3.0"),
        ({"cost_scale": 1.0, "maximize": "no"}, "maximize must be True or False; got 'no'"),
    ],
)
def test_bad_arguments_of_the_index_are_refused(model, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        PandorasBoxGittinsIndex(model, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"best_f": float("nan"), "cost_model": None}, "best_f must be finite; got nan"),
        ({"best_f": None, "cost_model": None}, "best_f must be a number or a tensor; got None"),
        ({"best_f": 0.0, "cost_model": None, "exponent": -1.0}, "exponent must be a finite number, not negative"),
        ({"best_f": 0.0, "cost_model": None, "exponent": "1"}, "exponent must be a finite number.*got '1'"),
    ],
)
def test_bad_arguments_of_improvement_per_cost_are_refused(model, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        LogExpectedImprovementPerCost(model, **arguments)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda X: X[..., 0] - 2.0, "costs must be positive and finite; got -"),
        (lambda X: X[..., 0] * torch.nan, "costs must be positive and finite; got nan"),
        (lambda X: X[..., 0] / 0.0, "costs must be positive and finite; got inf"),
        (lambda X: X[..., :1] + 1.0, r"points of shape \(4, 2\) costs of shape \(4,\); got shape \(4, 1\)"),
        (lambda X: 1.0, "must return a tensor.*got 1.0"),  # noqa: ARG005
    ],
)
def test_costs_that_are_none_are_refused(model, cost, message):
    for acquisition in (
        PandorasBoxGittinsIndex(model, SCALE, cost),
        LogExpectedImprovementPerCost(model, 110.0, cost),
    ):
        with pytest.raises(InvalidInputError, match=message):
            acquisition(candidates(4))


def test_a_log_cost_in_disguise_is_refused(model):
    """The mean of a log cost is not a cost; where it is negative that shows."""
    X = points(8)
    disguised = PosteriorMeanModel(unfitted(X, -3.0 - log_cost(X)))
    with pytest.raises(InvalidInputError, match="log cost is passed as it is"):
        PandorasBoxGittinsIndex(model, SCALE, disguised)(candidates(4))


@pytest.mark.filterwarnings("ignore:Data .outcome observations. is not standardized")
def test_a_log_transform_is_refused(model):
    X = points(8)
    costs = unfitted(X, log_cost(X).exp(), outcome_transform=Log())
    for acquisition in (PandorasBoxGittinsIndex(model, SCALE, costs), PandorasBoxGittinsIndex(costs, SCALE)):
        with pytest.raises(InvalidInputError, match="posterior must be Gaussian; got that of a SingleTaskGP"):
            acquisition(candidates(4))


def test_a_cost_with_several_outputs_is_refused(model, cost_model):
    with pytest.raises(InvalidInputError, match="one output; got 2"):
        PandorasBoxGittinsIndex(model, SCALE, ModelListGP(cost_model, cost_model))


# The package ---------------------------------------------------------------------------------------------------------


def test_no_global_state_is_touched(both):
    def state():
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002 (the global state is the subject)
        return (
            torch.get_rng_state().tolist(),
            torch.get_default_dtype(),
            (kind, keys.tolist(), *rest),
            torch.is_grad_enabled(),
        )

    before = state()
    for acquisition in both:
        acquisition(candidates(3).requires_grad_()).sum().backward()
    assert state() == before


def test_names_are_imported_when_used():
    code = "import sys, pbgi.botorch; print('torch' in sys.modules, dir(pbgi.botorch) == pbgi.botorch.__all__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False True"
    import pbgi.botorch

    assert sorted(pbgi.botorch.__all__) == pbgi.botorch.__all__
    assert all(hasattr(pbgi.botorch, name) for name in pbgi.botorch.__all__)
    with pytest.raises(AttributeError, match=r"'pbgi.botorch' has no attribute 'qPandora'"):
        _ = pbgi.botorch.qPandora
