"""Runs by the hundred on torch beside the engine in NumPy: the same from the same seed, as far as last digits allow."""

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from paper.batched.acquisition import FORMS, Acquisition  # noqa: E402 (torch first)
from paper.batched.fit import LogPosterior, fitted  # noqa: E402
from paper.batched.posterior import Posterior, Scales, fresh_inverse, grown_inverse  # noqa: E402
from paper.batched.rules import Rule, is_closed_form  # noqa: E402
from paper.batched.runner import by_shape, can_be_batched, run_batched  # noqa: E402
from paper.batched.search import chosen, pools  # noqa: E402
from paper.execution import execute  # noqa: E402
from paper.experiments import EXPERIMENTS  # noqa: E402
from paper.policies import DescribedPBGID  # noqa: E402
from paper.results import Store  # noqa: E402
from pbgi.gp import fit_gp  # noqa: E402
from pbgi.gp.config import GPConfig, Hyperparameters  # noqa: E402
from pbgi.gp.posterior import GP  # noqa: E402
from pbgi.policy import PBGID, UCB, LogEICC, RandomSearch, Thompson  # noqa: E402
from pbgi.search import build_pool  # noqa: E402
from pbgi.search.maximize import choose_starts  # noqa: E402

N, D = 12, 3
NOISE = 1e-4


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((N, D))
    return X, np.sin(4.0 * X.sum(axis=1)) + 0.1 * rng.standard_normal(N)


def tensor(x):
    return torch.as_tensor(np.asarray(x, dtype=np.float64))


def both(kernel="matern52", length_scale=0.4):
    """One posterior by the engine and in a batch of two."""
    X, y = data()
    known = Hyperparameters((length_scale,) * D, 1.5, NOISE)
    gp = GP.with_hyperparameters(X, y, known, GPConfig(kernel=kernel), standardize=False)
    scales = Scales(torch.full((2, D), length_scale, dtype=torch.float64), tensor([1.5, 1.5]), NOISE)
    design = tensor([X, X])
    inverse = fresh_inverse(kernel, design, scales)
    one, zero = tensor([1.0, 1.0]), tensor([0.0, 0.0])
    return gp, Posterior.of(kernel, design, tensor([y, y]), inverse, scales, one, zero)


# Arithmetic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["matern52", "matern32", "rbf"])
def test_posteriors_are_those_of_the_engine(kernel):
    gp, posterior = both(kernel)
    points = np.random.default_rng(1).random((7, D))
    expected = gp.posterior_with_grad(points)
    found = posterior.predict_with_grad(tensor([points, points]))
    for theirs, ours in zip(expected, found, strict=True):
        np.testing.assert_allclose(ours[1].numpy(), theirs, rtol=1e-8, atol=1e-10)
    for theirs, ours in zip(expected[:2], posterior.predict(tensor([points, points])), strict=True):
        np.testing.assert_allclose(ours[0].numpy(), theirs, rtol=1e-8)


def test_a_factor_grows_by_a_point():
    _, posterior = both()
    fewer = fresh_inverse("matern52", posterior.X[:, :-1], posterior.scales)
    grown = grown_inverse("matern52", posterior.X, fewer, posterior.scales)
    np.testing.assert_allclose(grown.numpy(), posterior.inverse.numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_gradients_of_all_forms_are_differences(form):
    _, posterior = both()
    parameter = {0: math.log(1e-2), 1: 1.7, 5: 1e-6}.get(form, 0.7)
    acquisition = Acquisition(
        posterior, torch.tensor([form, form]), tensor([parameter] * 2), tensor([0.3, 0.3]), tensor([0.0, 6.0])
    )
    x = tensor(np.random.default_rng(2).random((2, 5, D)))
    value, grad = acquisition.value_and_grad(x)
    np.testing.assert_allclose(value.numpy(), acquisition.value(x).numpy(), rtol=1e-7)
    step = 1e-6
    for k in range(D):
        ahead, behind = x.clone(), x.clone()
        ahead[..., k] += step
        behind[..., k] -= step
        difference = (acquisition.value(ahead) - acquisition.value(behind)) / (2.0 * step)
        np.testing.assert_allclose(grad[..., k].numpy(), difference.numpy(), rtol=2e-4, atol=1e-6)


def test_hyperparameters_are_as_likely_as_those_of_the_engine():
    X, y = data()
    config = GPConfig(noise=NOISE)
    standardized = (y - y.mean()) / y.std(ddof=1)
    found = fitted(config, tensor([X]), tensor([standardized]), None)
    own = Hyperparameters(tuple(found.length_scales[0].tolist()), float(found.output_scale[0]), NOISE)
    best = fit_gp(X, y, config)
    ours = GP.with_hyperparameters(X, y, own, config)
    assert ours.log_posterior == pytest.approx(best.log_posterior, abs=2e-3)
    posterior = LogPosterior(config, tensor([X]), tensor([standardized]))
    u = tensor([[[0.4, 0.5, 0.6, 0.5]]])
    _, grad = posterior.value_and_grad(u)
    for k in range(D + 1):
        step = torch.zeros_like(u)
        step[..., k] = 1e-6
        difference = posterior.value_and_grad(u + step)[0] - posterior.value_and_grad(u - step)[0]
        assert float(grad[0, 0, k]) == pytest.approx(float(difference) / 2e-6, rel=1e-5, abs=1e-5)


# Search -----------------------------------------------------------------------------------------------------------


def test_pools_and_starts_are_those_of_the_engine():
    found = pools([3, 4], 9, D, 64, torch.device("cpu")).numpy()
    for seed, pool in zip((3, 4), found, strict=True):
        np.testing.assert_array_equal(pool, build_pool(D, np.random.default_rng([seed, 9]), n_sobol=64))
    values = np.random.default_rng(5).random((2, 64))
    rows = chosen(tensor(values), tensor(found), 20).numpy()
    for row, value, pool in zip(rows, values, found, strict=True):
        assert row.tolist() == choose_starts(value, pool, 20, np.random.default_rng(0)).tolist()


@pytest.mark.parametrize(
    ("experiment", "panel", "policies", "digits"),
    [
        ("bayesian_regret", "d=4 uniform", ("PBGI", "LogEI", "UCB", "PBGI-D"), 3e-3),
        ("synthetic", "Rosenbrock d=4 varying", ("PBGI", "LogEIPC", "LogEICC", "PBGI-D"), 3e-2),
    ],
)
def test_the_first_suggestions_are_those_of_the_engine(experiment, panel, policies, digits, tmp_path):
    """Fits end within a tolerance, and values of a rough function differ by more than points do."""
    runs = [run for run in EXPERIMENTS[experiment](1) if panel in run.panel and run.curve in policies]
    runs = [replace(run, specification=replace(run.specification, n_start=30, n_evaluations=1)) for run in runs]
    assert run_batched(runs, Store(tmp_path), device="cpu", n_jobs=1) == len(runs) == 4
    assert run_batched(runs, Store(tmp_path), device="cpu", n_jobs=1) == 0  # they have their results
    kept = {record["key"]: record for record in Store(tmp_path).load()}
    for run in runs:
        record, expected = kept[run.key], execute(run)
        best = max(expected["values"])
        assert record["engine"] == "torch"
        assert record["optimum"] == pytest.approx(expected["optimum"], rel=1e-9)
        assert max(record["values"]) == pytest.approx(best, rel=digits, abs=digits)


# Rules ------------------------------------------------------------------------------------------------------------


def test_which_runs_can_be_done_so():
    by_panel = {run.panel: run for run in EXPERIMENTS["empirical"](1) if run.curve == "PBGI"}
    able = {panel for panel, run in by_panel.items() if can_be_batched(run)}
    assert able == {"Robot Pushing d=14 uniform"}  # elsewhere costs are learned, coordinates are choices or no gain
    assert not any(map(can_be_batched, EXPERIMENTS["engines"](1)))
    assert not any(map(is_closed_form, (RandomSearch(), Thompson(), PBGID())))
    shapes = dict(by_shape([run for run in EXPERIMENTS["bayesian_regret"](1) if can_be_batched(run)], 100))
    assert {(shape.dim, shape.is_fitted) for shape in shapes} == {(d, f) for d in (4, 8, 16, 32) for f in (False, True)}


def test_parameters_by_hand():
    assert Rule(UCB(), 0.0).parameter(0.0, 10.0, 4) == pytest.approx(
        math.sqrt(2.0 * math.log(4 * math.pi**2 / 0.6) / 5.0)
    )
    assert Rule(LogEICC(), 0.0).parameter(4.0, 10.0, 4) == 0.6
    assert Rule(LogEICC(), 0.0).parameter(11.0, 10.0, 4) == 0.0


def test_the_rate_falls_by_the_code_or_by_the_text():
    """An index of 2, best values of 1 before and 3 after: the code looks at the 3, the text at the 1."""
    code, text = Rule(PBGID(0.1, 2.0), 0.0), Rule(DescribedPBGID(0.1, 2.0), 0.0)
    for rule in (code, text):
        rule.tell(2.0, 1.0, 3.0)
    assert (code.fired_at, text.fired_at) == ([0], [])
    for rule in (code, text):
        rule.tell(2.0, 2.0, 2.0)
    assert (code.fired_at, text.fired_at) == ([0], [1])
    assert code.parameter(0.0, 1.0, 4) == pytest.approx(math.log(0.05))
