"""The same numerics on torch tensors: values, dtypes, devices and derivatives of every order asked for."""

import numpy as np
import pytest

from pbgi import InvalidInputError, gittins_index, gittins_index_and_grad, inverse_log_h, log_h

torch = pytest.importorskip("torch")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]
FUNCTIONS_OF_ONE = [log_h, inverse_log_h]


def leaf(values, device="cpu"):
    return torch.tensor(values, dtype=torch.float64, device=device, requires_grad=True)


@pytest.mark.parametrize("device", DEVICES)
def test_same_numbers_as_numpy(device):
    rng = np.random.default_rng(0)
    mean, std, log_cost = rng.normal(size=2000), np.exp(rng.normal(size=2000)), rng.uniform(-900, 30, 2000)
    tensors = [torch.as_tensor(x, device=device) for x in (mean, std, log_cost)]
    for ours, theirs in zip(gittins_index_and_grad(*tensors), gittins_index_and_grad(mean, std, log_cost), strict=True):
        assert ours.device.type == device
        assert ours.dtype == torch.float64
        np.testing.assert_allclose(ours.cpu().numpy(), theirs, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("device", DEVICES)
def test_float32_is_kept_and_accurate(device):
    """The float64 promise with the eps of float32: 4 eps of the conditioning, for the index itself."""
    rng = np.random.default_rng(1)
    std = np.exp(rng.normal(size=2000)).astype(np.float32)
    log_cost = rng.uniform(-500, 5, 2000).astype(np.float32)
    index, dstd, dlog_cost = gittins_index_and_grad(
        torch.zeros(2000, device=device), torch.as_tensor(std, device=device), torch.as_tensor(log_cost, device=device)
    )
    true, true_dstd, true_dlog_cost = gittins_index_and_grad(0.0, std, log_cost)
    assert index.dtype == dstd.dtype == dlog_cost.dtype == torch.float32
    eps = np.finfo(np.float32).eps
    spread = np.abs(log_cost) + np.abs(np.log(std))
    allowed = 4 * eps * (std + np.abs(true) + spread * np.abs(true_dlog_cost))
    assert np.all(np.abs(index.cpu().numpy() - true) <= allowed)
    np.testing.assert_allclose(dstd.cpu().numpy(), true_dstd, rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(dlog_cost.cpu().numpy(), true_dlog_cost, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", FUNCTIONS_OF_ONE)
def test_derivatives_of_the_inverse(function, device):
    x = leaf([-200.0, -40.0, -9.0, -7.9, -2.0, -0.9, -0.5, 0.3, 1.5, 3.0], device)
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize("device", DEVICES)
def test_derivatives_of_the_index(device):
    mean = leaf([0.0, 1.0, -3.0, 2.0, 0.5, 0.1, 0.0], device)
    std = leaf([1.0, 0.1, 2.0, 5.0, 0.7, 1.0, 1.5], device)
    log_cost = leaf([-300.0, -20.0, -7.0, -1.0, 0.3, 2.0, 0.5], device)
    assert torch.autograd.gradcheck(gittins_index, (mean, std, log_cost))
    assert torch.autograd.gradgradcheck(gittins_index, (mean, std, log_cost))
    assert torch.autograd.gradcheck(gittins_index_and_grad, (mean, std, log_cost))


def test_autograd_gives_the_returned_derivatives():
    std, log_cost = leaf([1.0, 0.3, 1e-8, 0.0]), leaf([-3.0, 1.0, 2.0, 0.5])
    index, dstd, dlog_cost = gittins_index_and_grad(0.0, std, log_cost)
    grads = torch.autograd.grad(index.sum(), (std, log_cost), create_graph=True)
    torch.testing.assert_close(grads[0], dstd, rtol=1e-14, atol=0)
    torch.testing.assert_close(grads[1], dlog_cost, rtol=1e-14, atol=0)
    second = torch.autograd.grad(grads[0].sum() + grads[1].sum(), (std, log_cost))
    assert all(bool(torch.isfinite(x).all()) for x in second)


def test_third_derivative_is_right():
    x = leaf([-2.5])
    (first,) = torch.autograd.grad(inverse_log_h(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)

    def curvature(point):
        y = leaf([point])
        (slope,) = torch.autograd.grad(inverse_log_h(y), y, create_graph=True)
        return torch.autograd.grad(slope, y)[0].item()

    assert third.item() == pytest.approx((curvature(-2.5 + 1e-5) - curvature(-2.5 - 1e-5)) / 2e-5, rel=1e-7)


def test_gradients_reach_broadcast_inputs():
    mean, std = leaf([[0.0], [1.0]]), leaf([1.0, 2.0, 3.0])
    gittins_index(mean, std, -2.0).sum().backward()
    assert mean.grad.tolist() == [[3.0], [3.0]]
    assert std.grad.shape == (3,)


def test_mixed_arguments_become_tensors():
    index = gittins_index(np.zeros(3), torch.ones(3, dtype=torch.float64), -2)
    assert index.dtype == torch.float64
    np.testing.assert_allclose(index.numpy(), gittins_index(0, 1, -2), rtol=1e-14)
    assert gittins_index(torch.zeros(3), torch.ones(3, dtype=torch.float64), -2).dtype == torch.float64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.tensor([0.0, torch.nan]), 1.0, 0.0), r"mean must be finite; got nan at \(1,\)"),
        ((0.0, torch.tensor(-1.0), 0.0), "std must be finite and not negative; got -1.0"),
        ((0.0, 1.0, torch.tensor(-torch.inf)), "log_cost must be finite.*got -inf"),
        ((torch.zeros(2), torch.ones(3), 0.0), r"shapes must broadcast.*mean \(2,\), std \(3,\)"),
        (
            (torch.zeros(2, dtype=torch.int64), 1.0, 0.0),
            "mean must be a float32 or float64 tensor; got dtype torch.int64",
        ),
        ((torch.zeros(2), "wide", 0.0), "std must be a real number"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        gittins_index(*arguments)
