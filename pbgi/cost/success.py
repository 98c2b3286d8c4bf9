"""How likely a trial is to give a value, learned from those that did and those that did not.

The chance of success is the mean of a Gaussian process that saw 1 at successes and 0 at failures, and is 1 far from
both. It enters in two ways. A success has its price, c / p: that is what acquisition functions weigh. And where a trial
is more likely to fail than not, nothing is tried while anything else is left: a rate that falls makes every price
small in the end, and what lies where nothing ever succeeded stays unknown, so the price alone would not keep a search
from trying there again and again.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.cost.models import CostModel
from pbgi.gp.config import GammaPrior, GPConfig, Hyperparameters
from pbgi.gp.fit import fit_gp
from pbgi.gp.kernel import CATEGORY_DISTANCE
from pbgi.gp.posterior import GP
from pbgi.space import Space

# A point is never ruled out by its price.
LEAST_CHANCE = 1e-3
# Below this a trial is more likely to fail than not.
LIKELY = 0.5
# With few failures one is remembered about this far, in every direction.
FEW_FAILURES = 3
LENGTH_SCALE = 0.3
ASSUMED_VARIANCE, ASSUMED_NOISE = 0.25, 0.01
# With more, what they depend on is learned: few parameters, as a rule, so long length scales are welcome. Short ones
# are not: of a sharp border they would be learned, and say nothing of what lies beyond it.
LEARNED = GPConfig(
    length_scale_prior=GammaPrior(1.5, 0.5),
    length_scale_bounds=(0.1, 100.0),
    output_scale_prior=GammaPrior(2.0, 4.0),
    noise_bounds=(1e-3, 0.1),
    outputs="plain",
)
# The latest of each kind suffice for that; the chance itself counts all trials.
MOST_FITTED = 125


@dataclass(frozen=True, eq=False)
class Success:
    """What is believed of the chance of success."""

    gp: GP

    def chance(self, X: Floats) -> Floats:
        """Probability (m,) that trials at X (m, d) give a value."""
        return np.clip(self.gp.posterior(X)[0], LEAST_CHANCE, 1.0)

    def chance_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d)."""
        mean, _, gradient, _ = self.gp.posterior_with_grad(X)
        inside = (mean > LEAST_CHANCE) & (mean < 1.0)
        return np.clip(mean, LEAST_CHANCE, 1.0), np.where(inside[:, None], gradient, 0.0)

    def log_chance(self, X: Floats) -> Floats:
        """Logarithm (m,) of the chance."""
        return np.asarray(np.log(self.chance(X)))

    def log_chance_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d)."""
        chance, gradient = self.chance_and_grad(X)
        return np.log(chance), gradient / chance[:, None]

    def is_likely(self, X: Floats) -> Bools:
        """Which trials are at least as likely to give a value as not."""
        return np.asarray(self.chance(X) >= LIKELY)


def fit_success(space: Space, succeeded: Floats, failed: Floats) -> Success | None:
    """What points (n, d) that gave a value and points (k, d) that did not say of others; None without failures."""
    if not len(failed):
        return None
    # Of another category a failure says nothing yet.
    scales = tuple(LENGTH_SCALE * (CATEGORY_DISTANCE if is_category else 1.0) for is_category in space.categorical)
    hyperparameters = Hyperparameters(scales, ASSUMED_VARIANCE, ASSUMED_NOISE)
    if len(failed) >= FEW_FAILURES:
        X, outcome = _outcomes(succeeded[-MOST_FITTED:], failed[-MOST_FITTED:])
        fitted = fit_gp(X, outcome, LEARNED, categorical=space.categorical, start=hyperparameters)
        hyperparameters = fitted.hyperparameters
    X, outcome = _outcomes(succeeded, failed)
    process = GP.with_hyperparameters(
        X, outcome, hyperparameters, categorical=space.categorical, mean=1.0, standardize=False
    )
    return Success(process)


def _outcomes(succeeded: Floats, failed: Floats) -> tuple[Floats, Floats]:
    outcome = np.concatenate([np.ones(len(succeeded)), np.zeros(len(failed))])
    return np.concatenate([succeeded, failed]), outcome


class Chance(Protocol):
    """How likely trials are to give a value, or one that keeps all conditions."""

    def log_chance(self, X: Floats) -> Floats:
        """Logarithm (m,) of the probability at the points X (m, d)."""

    def log_chance_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d)."""


@dataclass(frozen=True, eq=False)
class PerSuccess:
    """A cost per trial that succeeds, c / p: what a prize costs where trials may fail, or break a condition.

    A box that holds its prize with probability p only is opened 1/p times for each prize: p EI(x; g) = cost_scale c
    is EI(x; g) = cost_scale c / p. So failures make points dear, and need no value of their own.
    """

    cost: CostModel
    success: Chance

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """Those of the cost."""
        return self.cost.hyperparameters

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Logarithm of E[c(x)^power] / p^power."""
        return np.asarray(self.cost.log_moment(X, power) - power * self.success.log_chance(X))

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d)."""
        moment, gradient = self.cost.log_moment_and_grad(X, power)
        log_chance, dlog_chance = self.success.log_chance_and_grad(X)
        return moment - power * log_chance, gradient - power * dlog_chance

    def log_upper(self, X: Floats, z: float) -> Floats:
        """Logarithm of the cost of one trial in a bad case, per success."""
        return np.asarray(self.cost.log_upper(X, z) - self.success.log_chance(X))
