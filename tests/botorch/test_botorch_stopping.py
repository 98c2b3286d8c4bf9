"""Stopping on a model and a pool: the verdict, its reasons, and both directions."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("botorch.acquisition")

import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import ModelListGP
from botorch_fixtures import DEVICES, fitted, log_cost, moments, objective, points, unfitted
from engine_fixtures import expected_improvement, index_by_bisection
from engine_fixtures import one_thread as one_thread

from pbgi import InvalidInputError
from pbgi.botorch import StopSignal, gittins_stopping

POOL = points(60, seed=5)


def cost(X):
    return 1.0 + 20.0 * X.mean(dim=-1)


@pytest.fixture(scope="module")
def model():
    X = points(14)
    return fitted(X, objective(X))


@pytest.mark.parametrize("cost_scale", [1e-4, 0.05, 0.7, 3.0])
@pytest.mark.parametrize("maximize", [True, False])
def test_reasons_are_those_of_the_textbook(model, cost_scale, maximize):
    sign = 1.0 if maximize else -1.0
    best = sign * (sign * objective(points(14))).max().item()
    signal = gittins_stopping(model, POOL, best, cost_scale, cost, maximize=maximize)
    mean, std = moments(model, POOL[:, None])
    costs = cost(POOL).numpy()
    index = index_by_bisection(sign * mean, std, cost_scale * costs)
    improvement = expected_improvement(sign * mean, std, sign * best)
    assert signal.row == index.argmax()
    assert signal.index == pytest.approx(sign * index.max(), rel=1e-10)
    assert signal.best_value == best
    assert signal.predicted_cost == pytest.approx(costs[signal.row], rel=1e-12)
    net = improvement[signal.row] - cost_scale * costs[signal.row]
    assert signal.net_gain == pytest.approx(net, rel=1e-6, abs=1e-10)
    # Without a root: no point's expected improvement exceeds its price.
    assert signal.stop == bool((improvement <= cost_scale * costs).all())
    assert signal.stop == (signal.net_gain <= 0)


def test_both_verdicts_occur(model):
    best = objective(points(14)).max()
    cheap, dear = (gittins_stopping(model, POOL, best, scale, cost) for scale in (1e-6, 10.0))
    assert (cheap.stop, dear.stop) == (False, True)
    assert str(cheap).startswith("go on: a point is worth its price; row ")
    assert str(dear).startswith("stop: no point is worth its price; row ")
    assert cheap.net_gain > 0 > dear.net_gain


def test_equal_is_a_reason_to_stop(model):
    index = gittins_stopping(model, POOL, 0.0, 0.05, cost).index
    assert gittins_stopping(model, POOL, index, 0.05, cost).stop
    assert not gittins_stopping(model, POOL, index - 1e-9, 0.05, cost).stop


def test_mirrored_problem():
    X = points(12)
    up = gittins_stopping(unfitted(X, -objective(X)), POOL, -80.0, 0.05, cost)
    down = gittins_stopping(unfitted(X, objective(X)), POOL, 80.0, 0.05, cost, maximize=False)
    assert (down.stop, down.row) == (up.stop, up.row)
    for name, factor in {"index": -1, "best_value": -1, "predicted_cost": 1, "net_gain": 1}.items():
        assert getattr(down, name) == pytest.approx(factor * getattr(up, name), rel=1e-9)


def test_learned_cost_and_chosen_output(model):
    X = points(14)
    log_costs = fitted(X, log_cost(X))
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0], dtype=torch.float64))
    signal = gittins_stopping(ModelListGP(model, log_costs), POOL, 120.0, 0.05, log_costs, posterior_transform=first)
    assert signal == gittins_stopping(model, POOL, 120.0, 0.05, log_costs)
    m, s = moments(log_costs, POOL[:, None])
    assert signal.predicted_cost == pytest.approx(np.exp(m + s**2 / 2)[signal.row], rel=1e-9)


def test_nothing_is_left_behind(model):
    """No gradient is recorded, whatever the pool asks for, and the record does not change."""
    signal = gittins_stopping(model, POOL.clone().requires_grad_(), torch.tensor([120.0]), torch.tensor(0.05), cost)
    assert torch.is_grad_enabled()
    kinds = {"stop": bool, "row": int}
    for field in dataclasses.fields(StopSignal):
        assert type(getattr(signal, field.name)) is kinds.get(field.name, float)
    with pytest.raises(dataclasses.FrozenInstanceError):
        signal.stop = True


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore:The model inputs are of type")
def test_float32_and_devices(device):
    X = points(12, dtype=torch.float32, device=device)
    signal = gittins_stopping(unfitted(X, objective(X)), POOL.to(X), 110.0, 0.05, cost)
    true = gittins_stopping(unfitted(points(12), objective(points(12))), POOL, 110.0, 0.05, cost)
    assert (signal.stop, signal.row) == (true.stop, true.row)
    assert signal.index == pytest.approx(true.index, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pool": POOL[0]}, r"pool must be a tensor \(m, d\) of at least one point; got shape \(2,\)"),
        ({"pool": POOL[:0]}, r"at least one point; got shape \(0, 2\)"),
        ({"pool": [[0.5, 0.5]]}, r"pool must be a tensor.*got \[\[0.5, 0.5\]\]"),
        ({"best_f": float("inf")}, "best_f must be one finite number; got inf"),
        ({"best_f": torch.zeros(2)}, "best_f must be one finite number; got tensor"),
        ({"cost_scale": 0.0}, "cost_scale must be a positive, finite number; got 0.0"),
        ({"cost_model": "free"}, "cost_model must be None, a function of X.*got 'free'"),
        ({"cost_model": lambda X: 0.0 * X[..., 0]}, "costs must be positive and finite; got 0.0"),
    ],
)
def test_bad_input_is_refused(model, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        gittins_stopping(**{"model": model, "pool": POOL, "best_f": 100.0, "cost_scale": 0.05} | arguments)
