"""The engine's Gaussian process as a model of BoTorch: same data, same hyperparameters, same posterior.

`botorch_model` is for anyone who wants to go on in BoTorch with what the engine has learned: its posterior is in the
units of the values told. The policies in this package use `surrogate_of` instead, which stays in standardised units:
what they weigh does not depend on the unit, but BoTorch's constants (a smallest variance, say) suit numbers of order
one, and the error of its estimates of information from samples depends on the unit.

Three things about the translation are not obvious. The noise is a parameter of a plain Gaussian likelihood that
nobody fits, because BoTorch's likelihood for fixed noise lifts everything below 1e-6. Parameters are stored without a
transform, so that they are the engine's to the last bit. And running trials are data here, at the value that is
expected of them, which leaves the mean as it is and takes variance away: what `GP.condition_on_pending` does.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from torch import Tensor

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError
from pbgi.gp.algebra import Data, cholesky, inverse_factor, prepare, solve
from pbgi.gp.kernel import CrossCovariance, kernel_named
from pbgi.gp.posterior import GP
from pbgi.history import TrialState
from pbgi.snapshot import Snapshot

# In units of the standardised values: how far the posterior mean may be off before the data cannot be the model's own.
SAME_DATA = 1e-6


class Training(NamedTuple):
    """What a Gaussian process is conditioned on, running trials included, in standardised units.

    The values told are centre + scale * values, and `inverse` is that of the lower Cholesky factor of their covariance.
    """

    X: Floats  # (N, d)
    values: Floats  # (N,)
    mean: float
    noise: float  # with jitter
    inverse: Floats  # (N, N)
    centre: float
    scale: float


class Surrogate(NamedTuple):
    """The model of a snapshot, in standardised units.

    Attributes:
        model: For acquisition functions of BoTorch.
        gp: The same, of the engine.
        training: What it is conditioned on.
        best_value: The largest value seen, running trials not included.
    """

    model: SingleTaskGP
    gp: GP
    training: Training
    best_value: float


def botorch_model(gp: GP, X: Floats, values: Floats, pending: Floats | None = None) -> SingleTaskGP:
    """A BoTorch model with the posterior of `gp`, in the units of the values.

    Args:
        gp: Of continuous inputs, with a fitted constant mean; conditioned on `pending` or not.
        X: (n, d) The points it was fitted to.
        values: (n,) Their values.
        pending: (k, d) Points that are being evaluated.

    Returns:
        A model in evaluation mode, float64, whose parameters take no gradient.

    Raises:
        InvalidInputError: The Gaussian process was fitted to something else.
    """
    training = training_of(gp, X, values, pending)
    return _model(gp, training, _standardised(training))


def surrogate_of(snapshot: Snapshot) -> Surrogate:
    """The model of a snapshot, in standardised units, given running trials too.

    Raises:
        InvalidInputError: The space has categories, or the model is no Gaussian process of this package.
    """
    categories = [n for n, c in zip(snapshot.space.coordinates, snapshot.space.categorical, strict=True) if c]
    if categories:
        raise InvalidInputError(
            f"policies on BoTorch need numbers, not categories; got {', '.join(categories)} in the space; "
            "use a policy of pbgi.policy"
        )
    if not isinstance(snapshot.model, GP):
        raise InvalidInputError(
            f"policies on BoTorch need the Gaussian process of a GPConfig; got {type(snapshot.model).__name__}"
        )
    running = [trial.params for trial in snapshot.trials if trial.state is TrialState.RUNNING]
    pending = snapshot.space.to_unit_many(running) if running else None
    training = training_of(snapshot.model, snapshot.X, snapshot.warped, pending)
    best_value = float(training.values[: len(snapshot.warped)].max())
    return Surrogate(_model(snapshot.model, training, None), snapshot.model, training, best_value)


def training_of(gp: GP, X: Floats, values: Floats, pending: Floats | None = None) -> Training:
    """What `gp` is conditioned on, worked out from its hyperparameters and the data it was fitted to.

    Raises:
        InvalidInputError: The Gaussian process was fitted to something else.
    """
    data = prepare(X, values, None, standardise=gp.config.outputs != "plain")
    if len(gp.hyperparameters.length_scales) != data.X.shape[1] or gp.n != len(data.X):
        raise InvalidInputError(
            f"X and values must be those that the Gaussian process was fitted to, ({gp.n}, "
            f"{len(gp.hyperparameters.length_scales)}) and ({gp.n},); got {data.X.shape} and {data.values.shape}"
        )
    factor, jitter = cholesky(_covariance(gp, data.X, gp.hyperparameters.noise))
    mean, noise = solve(factor, data.values, None).mean, gp.hyperparameters.noise + jitter
    if pending is not None and len(pending):
        expected = (gp.posterior(pending)[0] - data.centre) / data.scale
        data = data._replace(X=np.concatenate([data.X, pending]), values=np.concatenate([data.values, expected]))
        factor, _ = cholesky(_covariance(gp, data.X, noise))
    training = Training(data.X, data.values, mean, noise, inverse_factor(factor), data.centre, data.scale)
    _require_same_data(gp, data, training)
    return training


def _covariance(gp: GP, X: Floats, noise: float) -> Floats:
    """Of noisy values at X: (N, N)."""
    parameters, numbers = gp.hyperparameters, np.zeros(X.shape[1], dtype=np.bool_)
    length_scales = np.array(parameters.length_scales)
    kernel = CrossCovariance(kernel_named(gp.config.kernel), X, numbers, length_scales, parameters.output_scale)
    matrix = kernel.value(X)
    matrix.flat[:: len(X) + 1] = parameters.output_scale + noise
    return matrix


def _require_same_data(gp: GP, data: Data, training: Training) -> None:
    """Raise unless the posterior mean at the first point is the one that the data give."""
    inverse = training.inverse
    alpha = inverse.T @ (inverse @ (data.values - training.mean))
    here = training.mean + _covariance(gp, data.X, 0.0)[0] @ alpha
    there = (gp.posterior(data.X[:1])[0][0] - data.centre) / data.scale
    rounding = np.spacing(max(abs(data.centre), data.scale)) / data.scale  # of what it says, in units of the values
    if not abs(here - there) <= SAME_DATA * max(1.0, abs(here)) + 8.0 * rounding:
        raise InvalidInputError(
            "X and values must be those that the Gaussian process was fitted to, with numbers for inputs and a fitted "
            f"mean; at the first point they give {here:.6g} in standardised units, and it says {there:.6g}"
        )


# In BoTorch's terms ---------------------------------------------------------------------------------------------------


def as_tensor(array: Any) -> Tensor:
    """A float64 tensor with a memory of its own."""
    return torch.tensor(np.asarray(array), dtype=torch.float64)


def _model(gp: GP, training: Training, transform: Standardize | None) -> SingleTaskGP:
    parameters, d = gp.hyperparameters, training.X.shape[1]
    likelihood = GaussianLikelihood(noise_constraint=Positive(transform=None))
    kernel = ScaleKernel(_kernel(gp.config.kernel, d), outputscale_constraint=Positive(transform=None))
    mean = ConstantMean()
    with warnings.catch_warnings():
        # Values that are not standardised, or all alike: as the engine has them.
        warnings.simplefilter("ignore")
        model = SingleTaskGP(
            as_tensor(training.X),
            as_tensor(training.values)[:, None],
            likelihood=likelihood,
            covar_module=kernel,
            mean_module=mean,
            outcome_transform=None,
        )
    kernel.base_kernel.initialize(lengthscale=as_tensor([parameters.length_scales]))
    kernel.initialize(outputscale=as_tensor(parameters.output_scale))
    likelihood.initialize(noise=as_tensor(training.noise))
    mean.initialize(constant=as_tensor(training.mean))
    if transform is not None:
        model.outcome_transform = transform  # now, since the constructor would have it learn centre and scale anew
    model.requires_grad_(False)
    model.eval()
    return model


def _kernel(name: str, d: int) -> Kernel:
    free = Positive(transform=None)
    if name == "rbf":
        return RBFKernel(ard_num_dims=d, lengthscale_constraint=free)
    smoothness = {"matern52": 2.5, "matern32": 1.5}
    return MaternKernel(nu=smoothness[name], ard_num_dims=d, lengthscale_constraint=free)


def _standardised(training: Training) -> Standardize:
    """A transform that knows centre and scale already: in evaluation mode it learns nothing."""
    transform = Standardize(m=1).to(torch.float64)
    scale = as_tensor([[training.scale]])
    known = {"means": as_tensor([[training.centre]]), "stdvs": scale, "_stdvs_sq": scale**2}
    transform.load_state_dict({**known, "_is_trained": torch.tensor(True)})
    transform.eval()
    return transform
