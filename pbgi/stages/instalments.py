"""A trial as a box that is paid in instalments: what each stage costs, and what its end says of the last value.

At the end of stage r a trial has told its last value with an error of variance 1 / p_r. So where the model is uncertain
by sigma beforehand, it is by V_r with 1 / V_r = 1 / sigma^2 + p_r afterwards, and by nothing at the end. What a stage
reveals moves the mean by a Gaussian of variance V_(r-1) - V_r, and the index of such a box is
`pbgi.index.instalment_index`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from pbgi.arrays import Floats
from pbgi.cost import CostModel, posterior_and_cost
from pbgi.index import gittins_index, gittins_index_and_grad, instalment_index, log_h
from pbgi.model import Model

# The table of discounts: nodes in each direction, which keep prices to about half a percent; how far down from the
# largest deviation it reaches, and a margin.
N_NODES, WIDEST, MARGIN = 6, 5.0, 0.05
RATIOS = (-15.0, 5.0)  # of log(cost / std)


@dataclass(frozen=True, eq=False)
class Instalments:
    """The stages of a trial.

    Attributes:
        precisions: (R - 1,) What the ends of all stages but the last say of the last value, rising.
        shares: (R,) Of the whole cost, that of each stage.
    """

    precisions: Floats
    shares: Floats

    def stds(self, std: Floats, done: int = 0) -> Floats:
        """Deviations (m, R - done) by which the stages that are left move a mean uncertain by `std` (m,).

        The first `done` stages have ended, and the model knows what they said.
        """
        known = self.precisions[done - 1] if done else 0.0
        gained = np.maximum(self.precisions[done:] - known, 0.0)
        variance = (std**2)[:, None]
        left = np.concatenate([variance, variance / (1.0 + gained * variance), np.zeros_like(variance)], axis=1)
        moves: Floats = np.sqrt(np.maximum(left[:, :-1] - left[:, 1:], 0.0))
        return moves

    def log_shares(self, done: int = 0, part_left: float = 1.0) -> Floats:
        """(R - done,) Logarithms of the shares that are left, of the first of which only a part is to be paid."""
        shares = self.shares[done:].copy()
        shares[0] *= part_left
        return np.log(np.maximum(shares, 1e-12))

    def index(self, mean: Floats, std: Floats, log_cost: Floats, done: int = 0, part_left: float = 1.0) -> Floats:
        """The index (m,) of what is left of trials with these means, deviations and logarithms of whole costs."""
        log_costs = log_cost[:, None] + self.log_shares(done, part_left)
        return np.asarray(instalment_index(mean, self.stds(std, done), log_costs))


@dataclass(frozen=True, eq=False)
class Discount:
    """What may stop early is like something cheaper: the price that, paid at once, makes a trial worth as much.

    The logarithm of price over cost, between that of the smallest share and 0, is a smooth function of two numbers,
    log(cost / std) and log std. Searches ask for it at thousands of points, so it is interpolated from a few.

    Attributes:
        low, high: (2,) Where these two numbers lie; beyond, the discount is that at the border.
        coefficients: (k, k) Of the Chebyshev polynomials.
        slopes: (k - 1, k) and (k, k - 1) Of its derivatives in the two numbers.
    """

    low: Floats
    high: Floats
    coefficients: Floats
    slopes: tuple[Floats, Floats]

    @classmethod
    def of(cls, instalments: Instalments, std: Floats, log_cost: Floats) -> "Discount":
        """The discount for trials like these, (m,) each."""
        log_std = np.log(std)
        top = float(log_std.max())
        bottom = max(float(log_std.min()), top - WIDEST) - MARGIN
        ratio = np.clip(log_cost - log_std, *RATIOS)
        low, high = (
            np.array([float(ratio.min()) - MARGIN, bottom]),
            np.array([float(ratio.max()) + MARGIN, top + MARGIN]),
        )
        nodes = np.cos(np.pi * (np.arange(N_NODES) + 0.5) / N_NODES)
        ratios, log_stds = (low[:, None] + 0.5 * (nodes + 1.0) * (high - low)[:, None]).tolist()
        r, s = (grid.ravel() for grid in np.meshgrid(ratios, log_stds, indexing="ij"))
        offset = instalments.index(np.zeros(len(r)), np.exp(s), r + s)
        found = (log_h(-offset * np.exp(-s)) - r).reshape(N_NODES, N_NODES)
        fit = chebyshev.chebvander(nodes, N_NODES - 1).T * (2.0 / N_NODES)
        fit[0] *= 0.5
        coefficients = fit @ found @ fit.T
        by_ratio, by_std = (chebyshev.chebder(coefficients, axis=axis) * 2.0 / (high - low)[axis] for axis in (0, 1))
        return cls(low, high, coefficients, (by_ratio, by_std))

    def __call__(self, std: Floats, log_cost: Floats) -> tuple[Floats, Floats, Floats]:
        """The logarithm (m,), and its slopes in log std and log cost."""
        log_std = np.log(std)
        at = np.stack([log_cost - log_std, log_std])
        width = (self.high - self.low)[:, None]
        inside = (at > self.low[:, None]) & (at < self.high[:, None])
        u = np.clip(2.0 * (at - self.low[:, None]) / width - 1.0, -1.0, 1.0)
        first, second = (chebyshev.chebvander(each, N_NODES - 1) for each in u)
        by_ratio = np.vecdot(first[:, :-1] @ self.slopes[0], second) * inside[0]
        by_log_std = np.vecdot(first @ self.slopes[1], second[:, :-1]) * inside[1]
        found = np.minimum(np.vecdot(first @ self.coefficients, second), 0.0)
        return found, by_log_std - by_ratio, by_ratio


class InstalmentIndex:
    """The index of new trials that are paid in instalments: that of trials with a discount, paid at once.

    Args:
        model: What is believed of warped values.
        cost: What is believed of costs.
        cost_scale: The exchange rate, in warped units.
        instalments: What the stages of a trial cost and say.
    """

    def __init__(self, model: Model, cost: CostModel, cost_scale: float, instalments: Instalments) -> None:
        self._model, self._cost, self._log_scale = model, cost, math.log(cost_scale)
        self._instalments = instalments
        self._discount: Discount | None = None

    def value(self, X: Floats) -> Floats:
        """The index."""
        mean, std = self._model.posterior(X)
        log_cost = self._log_scale + self._cost.log_moment(X, 1.0)
        discount, _, _ = self._discounted(std, log_cost)
        index: Floats = gittins_index(mean, std, log_cost + discount)
        return index

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The index and its gradient."""
        (mean, std, dmean, dstd), (log_cost, dlog_cost) = posterior_and_cost(self._model, self._cost, X, 1.0)
        log_cost = self._log_scale + log_cost
        discount, by_log_std, slope = self._discounted(std, log_cost)
        index, by_std, by_price = gittins_index_and_grad(mean, std, log_cost + discount)
        by_std = by_std + by_price * by_log_std / std
        return index, dmean + by_std[:, None] * dstd + (by_price * (1.0 + slope))[:, None] * dlog_cost

    def _discounted(self, std: Floats, log_cost: Floats) -> tuple[Floats, Floats, Floats]:
        if self._discount is None:  # a search begins with its pool
            self._discount = Discount.of(self._instalments, std, log_cost)
        return self._discount(std, log_cost)
