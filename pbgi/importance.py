"""How much of what the objective does goes with each parameter, as the model believes, with an interval.

The measure is the total effect of Sobol and Homma: of all variation over the space, the share that goes when a
parameter is drawn anew, alone or together with others; Jansen's estimator takes d + 1 values per point. It is worked
out for functions that are drawn from the model, so that what the model does not know widens the interval. Shares add up
to more than one where parameters act together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats
from pbgi.search import build_pool
from pbgi.snapshot import Snapshot

MOST_VALUES, N_DRAWS = 640, 24  # of a function; functions
TENTHS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Importance:
    """How much of the objective's variation over the space goes with a parameter.

    Attributes:
        name: Of the parameter.
        share: Of the variance, alone and together with other parameters: in the middle of what is believed.
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
    n = max(MOST_VALUES // (space.dimension + 1), 16)
    first, second = _two_designs(space.dimension, n)
    points = [first] + [_with_column(first, second, k) for k in range(space.dimension)]
    X = np.concatenate([space.snap(each) for each in points])
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(N_DRAWS):
        values = snapshot.warp.to_values(snapshot.model.sample_path(rng)(X)[0])
        drawn.append(total_effects(values.reshape(-1, n)))
    low, middle, high = np.quantile(drawn, TENTHS, axis=0)
    parts: Sequence[tuple[float, ...]] = np.stack([middle, low, high], axis=1).tolist()
    return tuple(Importance(name, *part) for name, part in zip(space.coordinates, parts, strict=True))


def total_effects(values: Floats) -> Floats:
    """Jansen's estimate from values (d + 1, n): at n points, and with each coordinate in turn drawn anew."""
    variance = float(np.var(values))
    if not variance > 0.0:
        return np.zeros(len(values) - 1)
    return np.asarray(np.minimum(0.5 * np.mean((values[1:] - values[0]) ** 2, axis=1) / variance, 1.0))


def _two_designs(dimension: int, n: int) -> tuple[Floats, Floats]:
    """Two sets of points that fill the cube, independent of each other."""
    both = build_pool(2 * dimension, np.random.default_rng(0), n_sobol=n)
    return both[:, :dimension], both[:, dimension:]


def _with_column(first: Floats, second: Floats, k: int) -> Floats:
    changed = first.copy()
    changed[:, k] = second[:, k]
    return changed
