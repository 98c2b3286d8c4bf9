"""A trial as a box that is paid in instalments: what each stage costs, and what its end says of the last value.

At the end of stage r a trial has told its last value with an error of variance 1 / p_r. So where the model is uncertain
by sigma beforehand, it is by V_r with 1 / V_r = 1 / sigma^2 + p_r afterwards, and by nothing at the end. What a stage
reveals moves the mean by a Gaussian of variance V_(r-1) - V_r, and the index of such a box is
`pbgi.index.instalment_index`.
"""

import math
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats
from pbgi.cost import CostModel, posterior_and_cost
from pbgi.index import instalment_index, instalment_index_and_grad
from pbgi.model import Model

LEAST = 1e-6  # of the deviation: a stage that reveals nothing is taken to reveal this


@dataclass(frozen=True, eq=False)
class Instalments:
    """The stages of a trial.

    Attributes:
        precisions: (R - 1,) What the ends of all stages but the last say of the last value, rising.
        shares: (R,) Of the whole cost, that of each stage.
    """

    precisions: Floats
    shares: Floats

    def stds(self, std: Floats, done: int = 0) -> tuple[Floats, Floats]:
        """Deviations (m, R - done) by which the stages that are left move a mean uncertain by `std` (m,), with slopes.

        The first `done` stages have ended, and the model knows what they said.
        """
        known = self.precisions[done - 1] if done else 0.0
        gained = np.maximum(self.precisions[done:] - known, 0.0)
        variance = (std**2)[:, None]
        shrinking = 1.0 / (1.0 + gained * variance)
        ones, zeros = np.ones_like(variance), np.zeros_like(variance)
        left = np.concatenate([variance, variance * shrinking, zeros], axis=1)
        slopes = np.concatenate([ones, shrinking**2, zeros], axis=1)  # in the variance
        moves = np.sqrt(np.maximum(left[:, :-1] - left[:, 1:], LEAST**2 * variance))
        return moves, (slopes[:, :-1] - slopes[:, 1:]) * std[:, None] / moves

    def log_shares(self, done: int = 0, part_left: float = 1.0) -> Floats:
        """(R - done,) Logarithms of the shares that are left, of the first of which only a part is to be paid."""
        shares = self.shares[done:].copy()
        shares[0] *= part_left
        return np.log(np.maximum(shares, 1e-12))

    def index(self, mean: Floats, std: Floats, log_cost: Floats, done: int = 0, part_left: float = 1.0) -> Floats:
        """The index (m,) of what is left of trials with these means, deviations and logarithms of whole costs."""
        log_costs = log_cost[:, None] + self.log_shares(done, part_left)
        return np.asarray(instalment_index(mean, self.stds(std, done)[0], log_costs))


@dataclass(frozen=True, eq=False)
class InstalmentIndex:
    """The Gittins index of new trials that are paid in instalments."""

    model: Model
    cost: CostModel
    cost_scale: float
    instalments: Instalments

    def value(self, X: Floats) -> Floats:
        """The index."""
        mean, std = self.model.posterior(X)
        return self.instalments.index(mean, std, math.log(self.cost_scale) + self.cost.log_moment(X, 1.0))

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The index and its gradient."""
        (mean, std, dmean, dstd), (log_cost, dlog_cost) = posterior_and_cost(self.model, self.cost, X, 1.0)
        stds, slopes = self.instalments.stds(std)
        log_costs = (math.log(self.cost_scale) + log_cost)[:, None] + self.instalments.log_shares()
        index, by_stds, by_log_costs = instalment_index_and_grad(mean, stds, log_costs)
        by_std = (by_stds * slopes).sum(axis=1)
        return index, dmean + by_std[:, None] * dstd + by_log_costs.sum(axis=1)[:, None] * dlog_cost
