"""The knowledge gradient: how much the best posterior mean is expected to rise.

BoTorch's one-shot form maximizes over the point x and, together with it, over the best point after each of a fixed
number of imagined values at x. Its own evaluation conditions the model on every imagined value. That is not needed: a
value that is z standard deviations off moves the mean at x' by z cov(f(x'), f(x)) / sqrt(var f(x) + noise), so one
covariance per imagined value says it all. The numbers are the same; only the work is less.

A one-shot search moves many points at once and often ends at one of the lower peaks. That is the baseline as the paper
ran it, so it is left as it is.
"""

import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from pbgi.botorch.belief import Belief
from pbgi.botorch.bridge import Surrogate
from pbgi.gp.predictor import VARIANCE_FLOOR


class OneShotKnowledgeGradient(qKnowledgeGradient):
    """BoTorch's one-shot knowledge gradient for one point at a time, in closed form given the imagined values.

    Args:
        surrogate: What is believed.
        n_fantasies: Imagined values per point.
        seed: Of the imagined values.
    """

    def __init__(self, surrogate: Surrogate, n_fantasies: int, seed: int) -> None:
        sampler = SobolQMCNormalSampler(sample_shape=torch.Size([n_fantasies]), seed=seed)
        super().__init__(surrogate.model, num_fantasies=n_fantasies, sampler=sampler)
        self._belief = Belief(surrogate)
        # What the sampler would draw, in the order in which it would use it.
        self._z = draw_sobol_normal_samples(d=1, n=n_fantasies, dtype=torch.float64, seed=seed)[:, 0]

    @t_batch_mode_transform()  # type: ignore[arg-type]  # BoTorch's type asks for every acquisition function
    def forward(self, X: Tensor) -> Tensor:
        """Expected best mean `(*batch)`; X `(*batch, 1 + n_fantasies, d)` is a point, and the best after each value."""
        belief = self._belief
        variance, mean, covariance = belief.first_and_others(X)
        variance = variance.clamp_min(VARIANCE_FLOOR * belief.prior_variance)
        slope = covariance / (variance + belief.noise).sqrt().unsqueeze(-1)
        value: Tensor = (mean + slope * self._z).mean(dim=-1)
        return value
