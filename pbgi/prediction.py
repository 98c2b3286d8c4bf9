"""What is believed of points, in users' units: medians, intervals and costs, and which trial to go with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats
from pbgi.history import Trial
from pbgi.snapshot import Snapshot

# Variance of the noise, in units of the standardized values, below which a value is taken to be exact (as the paper's).
NOISELESS = 1e-4
INTERVAL_Z = 1.2815515655446004  # standard deviations: an 80 % interval of a Gaussian


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is believed of m points.

    Attributes:
        median: (m,) Values that are as likely to be exceeded as not, in the units and the direction of the values told.
        low: (m,) The lower end of an 80 % interval of each value, noise not included.
        high: (m,) Its upper end.
        cost: (m,) Expected costs; one each while nothing is known of costs.
        chance: (m,) How likely all conditions on outcomes are kept; one each without conditions.
    """

    median: Floats
    low: Floats
    high: Floats
    cost: Floats
    chance: Floats


@dataclass(frozen=True)
class Recommendation:
    """The trial to go with: of all points tried the one that the model believes to be the best.

    Under noise the best value that was told is a lucky one more often than not. Without noise this is that trial.

    Attributes:
        trial: A completed trial that keeps all conditions.
        median: The value believed to lie there, noise not included, in the units of the values told.
        low: The lower end of an 80 % interval of that value.
        high: Its upper end.
    """

    trial: Trial
    median: float
    low: float
    high: float


def predict(snapshot: Snapshot, X: Floats) -> Prediction:
    """What is believed of the points X (m, d)."""
    mean, std = snapshot.model.posterior(X)
    quantiles = (snapshot.warp.to_values(mean + z * std) for z in (0.0, -INTERVAL_Z, INTERVAL_Z))
    median, *ends = (snapshot.sign * quantile for quantile in quantiles)
    low, high = np.sort(ends, axis=0)
    feasibility = snapshot.feasibility
    chance = np.ones(len(X)) if feasibility is None else np.exp(feasibility.log_chance(X))
    return Prediction(median, low, high, np.exp(snapshot.cost.log_moment(X, 1.0)), chance)


def recommend(snapshot: Snapshot, completed: Sequence[Trial], X: Floats, best: Trial) -> Recommendation:
    """The trial to go with, of those completed at the points X (n, d); `best` where the values show no noise."""
    believed, fitted = predict(snapshot, X), snapshot.model.hyperparameters
    exact = fitted is not None and fitted.noise <= NOISELESS
    at = completed.index(best) if exact else int(np.argmax(snapshot.sign * believed.median))
    return Recommendation(completed[at], *(float(part[at]) for part in (believed.median, believed.low, believed.high)))
