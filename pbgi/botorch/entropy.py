"""Max-value entropy search: how much a value is expected to tell about the largest value there is.

BoTorch estimates the information for given samples of the largest value, and draws those from a Gumbel distribution
that is fitted to independent values at a set of candidates. For that it builds the covariance of all candidates, of
which it uses the diagonal: with 16,000 candidates, 10 GB and a minute and a half. Here the engine is asked for the
diagonal, and BoTorch gets the samples.

The estimate contains log-densities with weights that average to one only in the limit: its error depends on the unit of
the values, and a search finds the largest errors. Units are standardized here, so that a unit makes no difference. (In
the units of the values it is another policy, with other results: `paper.policies`, experiment `units`.)
"""

import math

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from botorch.utils.transforms import t_batch_mode_transform
from scipy.optimize import brentq
from scipy.special import log_ndtr
from torch import Tensor

from pbgi.arrays import Floats
from pbgi.botorch.belief import log_moment
from pbgi.botorch.bridge import Surrogate, as_tensor
from pbgi.cost import CostModel

LEAST_STD = 1e-4  # of a candidate, standardized: BoTorch's smallest variance is its square


def max_value_entropy(
    surrogate: Surrogate, n_candidates: int, n_max_values: int, n_values: int, rng: np.random.Generator
) -> qMaxValueEntropy:
    """BoTorch's max-value entropy search.

    Args:
        surrogate: What is believed, in standardized units.
        n_candidates: Random points that the largest value is sampled from, besides those tried.
        n_max_values: Samples of the largest value.
        n_values: Samples of the value at a point.
        rng: Source of candidates and of the samples of the largest value.
    """
    training = surrogate.training
    candidates = np.concatenate([rng.random((n_candidates, training.X.shape[1])), training.X])
    mean, std = surrogate.gp.posterior(candidates)
    uniform = rng.random(n_max_values)
    maxima = gumbel_maxima((mean - training.center) / training.scale, std / training.scale, uniform)
    entropy = qMaxValueEntropy(
        surrogate.model,
        candidate_set=as_tensor(training.X[:1]),  # what it samples from these is replaced
        num_mv_samples=n_max_values,
        num_y_samples=n_values,
    )
    entropy.posterior_max_values = as_tensor(maxima)[:, None]
    return entropy


class PerCost(AcquisitionFunction):
    """An acquisition function of single points times E[1/c]; where it is negative, by error, divided by that.

    The exception is BoTorch's: an estimate below zero must not look better where points are dear.
    """

    def __init__(self, of: AcquisitionFunction, cost: CostModel) -> None:
        super().__init__(model=of.model)
        self._of, self._cost = of, cost

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]  # BoTorch's type asks for every acquisition function
    def forward(self, X: Tensor) -> Tensor:
        """Its value `(*batch)` at points `(*batch, 1, d)`."""
        value: Tensor = self._of(X)
        per_cost = log_moment(self._cost, X.squeeze(-2), -1.0).exp()
        return torch.where(value > 0, value * per_cost, value / per_cost)


def gumbel_maxima(mean: Floats, std: Floats, uniform: Floats) -> Floats:
    """Samples (m,) of the largest of independent normal values, by a Gumbel distribution with the same quartiles.

    Args:
        mean: (n,) Means.
        std: (n,) Standard deviations.
        uniform: (m,) Uniform on (0, 1): which quantile each sample is.
    """
    std = np.maximum(std, LEAST_STD)
    low, high = float((mean - 3.0 * std).min()), float((mean + 5.0 * std).max())

    def quantile(probability: float) -> float:
        # The brackets hold: all values are below `high` with probability near one, and one of them is not below `low`.
        return float(brentq(lambda y: math.exp(log_ndtr((y - mean) / std).sum()) - probability, low, high))

    quarter, half, three_quarters = (quantile(p) for p in (0.25, 0.5, 0.75))
    scale = (three_quarters - quarter) / (math.log(math.log(4.0)) - math.log(math.log(4.0 / 3.0)))
    location = half + scale * math.log(math.log(2.0))
    return np.asarray(location - scale * np.log(-np.log(uniform)), dtype=np.float64)
