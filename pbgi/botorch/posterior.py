"""What a model of BoTorch believes of single points, with the dimensions that say nothing taken away."""

import math

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.transformed import TransformedPosterior
from torch import Tensor

from pbgi.errors import InvalidInputError


def mean_and_variance(
    model: Model, X: Tensor, posterior_transform: PosteriorTransform | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of a model with one output.

    Args:
        model: With a Gaussian posterior.
        X: `(*batch, 1, d)` Points.
        posterior_transform: Makes one output of several.

    Returns:
        `(*batch)` each, or `(*batch, s)` for an ensemble of s models.

    Raises:
        InvalidInputError: An outcome transform has made the posterior something else than Gaussian.
    """
    posterior = model.posterior(X, posterior_transform=posterior_transform)
    if isinstance(posterior, TransformedPosterior):
        raise InvalidInputError(
            f"the posterior must be Gaussian; got that of a {type(model).__name__} whose outcome transform is not "
            "linear; transform the values (a cost to its logarithm) before they are fitted instead"
        )
    moments: list[Tensor] = [getattr(posterior, name) for name in ("mean", "variance")]
    mean, variance = (moment.squeeze(-1).squeeze(-1) for moment in moments)
    return mean, variance


def log_mean_exp(x: Tensor) -> Tensor:
    """Logarithm of the mean of exp(x) over the last dimension, that of an ensemble."""
    return torch.logsumexp(x, dim=-1) - math.log(x.shape[-1])
