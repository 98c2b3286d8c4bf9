"""How much of what the objective does goes with each parameter, as the model believes, with an interval.

The measure is Sobol's main effect: of all variation over the space, the share that a parameter makes by itself,
whatever the others are. What parameters make only together belongs to none of them, so shares add up to at most one.
It is worked out for functions drawn from the model: what the model does not know is spread over all parameters and
their interactions, which makes shares small and intervals wide. The total effect, interactions included, would
give what is unknown to every parameter.

A function is valued at points all over the space, which are sorted into bins along each parameter; the share is that of
the variance between the bins, less what chance alone would make of it (omega squared). A parameter that only some
points have counts by the difference that it makes between these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.search import build_pool
from pbgi.snapshot import Snapshot

N_POINTS, N_DRAWS = 512, 24
N_BINS = 16  # of a continuous parameter; of others at most so many, in the order of their values
TENTHS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Importance:
    """How much of the objective's variation over the space goes with a parameter.

    Attributes:
        name: Of the parameter.
        share: Of the variance, by itself and not together with others: in the middle of what is believed.
        low: The lower end of an 80 % interval.
        high: Its upper end.
    """

    name: str
    share: float
    low: float
    high: float


def importance_of(snapshot: Snapshot) -> tuple[Importance, ...]:
    """The importance of each parameter that varies, in the order of the space."""
    space = snapshot.space
    X = space.snap(build_pool(space.dimension, np.random.default_rng(0), n_sobol=N_POINTS))
    mask = np.ones(X.shape, dtype=np.bool_) if space.conditions is None else space.conditions.mask(X)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(N_DRAWS):
        values = snapshot.warp.to_values(snapshot.model.sample_path(rng)(X)[0])
        drawn.append([main_effect(column, values, there) for column, there in zip(X.T, mask.T, strict=True)])
    low, middle, high = np.quantile(drawn, TENTHS, axis=0)
    parts: Sequence[tuple[float, ...]] = np.stack([middle, low, high], axis=1).tolist()
    return tuple(Importance(name, *part) for name, part in zip(space.coordinates, parts, strict=True))


def main_effect(column: Floats, values: Floats, there: Bools | None = None) -> float:
    """The share of the variance of values (n,) between the bins of a coordinate (n,).

    Args:
        column: The coordinate.
        values: The values.
        there: Which points have the parameter; by default all. Only between these does it make a difference.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # In units of the largest, whose square neither overflows nor vanishes.
        scaled = values / (float(np.max(np.abs(values))) or 1.0)
        total = float(np.sum((scaled - scaled.mean()) ** 2))
        if not 0.0 < total < np.inf:
            return 0.0
        inside = slice(None) if there is None else there
        column, scaled = column[inside], scaled[inside]
        if not len(column):
            return 0.0
        centered = scaled - scaled.mean()
        bins = _bins(column)
        sizes = np.bincount(bins)
        between = float(np.sum(np.bincount(bins, centered) ** 2 / np.maximum(sizes, 1)))
        n_bins, n = int(np.count_nonzero(sizes)), len(centered)
        by_chance = (float(centered @ centered) - between) / max(n - n_bins, 1)
        return max((between - (n_bins - 1) * by_chance) / (total + by_chance), 0.0)


def _bins(column: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which bin each number is in: the levels, if these are few, else bins of equally many."""
    levels, which = np.unique(column, return_inverse=True)
    if len(levels) <= N_BINS:
        return which
    return np.argsort(np.argsort(column, kind="stable")) * N_BINS // len(column)
