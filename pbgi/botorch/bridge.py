"""The engine's Gaussian process as a model of BoTorch: same data, same hyperparameters, same posterior.

`botorch_model` is for anyone who wants to go on in BoTorch with what the engine has learned: its posterior is in the
units of the values told. The policies in this package use `surrogate_of` instead, which stays in standardized units:
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

from pbgi.errors import InvalidInputError
from pbgi.gp import GP, Training
from pbgi.snapshot import Snapshot


class Surrogate(NamedTuple):
    """The model of a snapshot, in standardized units.

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


def botorch_model(gp: GP) -> SingleTaskGP:
    """A BoTorch model with the posterior of `gp`, in the units of the values told, pending points included.

    Returns:
        A model in evaluation mode, float64, whose parameters take no gradient.

    Raises:
        InvalidInputError: Some inputs are categories.
    """
    if gp.has_categories:
        raise InvalidInputError("a model of BoTorch is made of numbers; the Gaussian process has categories")
    training = gp.training
    return _model(gp, training, _standardized(training))


def surrogate_of(snapshot: Snapshot) -> Surrogate:
    """The model of a snapshot, in standardized units, given running trials too.

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
    training = snapshot.model.training
    best_value = float(training.values[: snapshot.model.n].max())
    return Surrogate(_model(snapshot.model, training, None), snapshot.model, training, best_value)


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
        # Values that are not standardized, or all alike: as the engine has them.
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
        model.outcome_transform = transform  # now, since the constructor would have it learn center and scale anew
    model.requires_grad_(False)
    model.eval()
    return model


def _kernel(name: str, d: int) -> Kernel:
    free = Positive(transform=None)
    if name == "rbf":
        return RBFKernel(ard_num_dims=d, lengthscale_constraint=free)
    smoothness = {"matern52": 2.5, "matern32": 1.5}
    return MaternKernel(nu=smoothness[name], ard_num_dims=d, lengthscale_constraint=free)


def _standardized(training: Training) -> Standardize:
    """A transform that knows center and scale already: in evaluation mode it learns nothing."""
    transform = Standardize(m=1).to(torch.float64)
    scale = as_tensor([[training.scale]])
    known = {"means": as_tensor([[training.center]]), "stdvs": scale, "_stdvs_sq": scale**2}
    transform.load_state_dict({**known, "_is_trained": torch.tensor(True)})
    transform.eval()
    return transform
