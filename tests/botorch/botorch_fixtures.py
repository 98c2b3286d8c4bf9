"""Models that the tests of `pbgi.botorch` share: small, fitted or with known hyperparameters."""

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood

from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.gp.posterior import GP

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]
LENGTH_SCALES = (0.3, 0.5)
OUTPUT_SCALE, NOISE, MEAN = 2.0, 1e-3, 0.5


def points(n, d=2, seed=0, **kind):
    """(n, d), from a generator of its own."""
    return torch.as_tensor(np.random.default_rng(seed).random((n, d))).to(**kind)


def candidates(*batch, d=2, seed=1, **kind):
    """(*batch, 1, d)."""
    return torch.as_tensor(np.random.default_rng(seed).random((*batch, 1, d))).to(**kind)


def objective(X):
    """(n, 1), in units far from standardized ones."""
    return 100.0 + 30.0 * torch.sin(4.0 * X[:, :1]) * torch.cos(3.0 * X[:, -1:])


def log_cost(X):
    return 1.0 + 2.0 * X[:, :1] - X[:, -1:]


def fitted(X, Y):
    model = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def unfitted(X, Y, **options):
    """With the hyperparameters it was born with: enough where values do not matter."""
    return SingleTaskGP(X, Y, **options).eval()


def twins(n=12):
    """The same Gaussian process twice: by BoTorch, and by pbgi's own engine."""
    X = points(n)
    Y = torch.sin(6.0 * X.sum(-1, keepdim=True)) + X[:, :1]
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.tensor(LENGTH_SCALES, dtype=torch.float64), OUTPUT_SCALE
    mean = ConstantMean().double()
    mean.constant.data.fill_(MEAN)
    options = {"mean_module": mean, "covar_module": kernel, "outcome_transform": None}
    theirs = SingleTaskGP(X, Y, torch.full_like(Y, NOISE), **options).eval()
    hyperparameters = Hyperparameters(LENGTH_SCALES, OUTPUT_SCALE, NOISE)
    config = GPConfig(kernel="rbf", noise=NOISE)
    ours = GP.with_hyperparameters(
        X.numpy(), Y.squeeze(-1).numpy(), hyperparameters, config, mean=MEAN, standardize=False
    )
    return theirs, ours


def moments(model, X, **options):
    """Mean and standard deviation as BoTorch gives them, as NumPy arrays of the shape of the batch."""
    with torch.no_grad():
        posterior = model.posterior(X, **options)
        return posterior.mean[..., 0, 0].numpy(), posterior.variance[..., 0, 0].sqrt().numpy()
