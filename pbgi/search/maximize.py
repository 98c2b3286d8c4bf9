"""The inner search: the point of the unit cube where an acquisition function is largest.

A search evaluates a pool of points (`build_pool`), picks starts from it that are good and far apart (`choose_starts`),
climbs from all of them together (`maximize_batch`) and returns the best point and those where climbs ended. Integer
and categorical coordinates live on grids: `maximize_mixed` alternates climbs in the continuous coordinates with exact
sweeps over the levels of each grid, and a finite space no larger than a pool is simply evaluated.

Numbers that had to be chosen were chosen on random Gaussian process posteriors (d = 1 to 16, three acquisition
functions) by comparing the maximum reached with the best of 10 d L-BFGS-B runs from the best of 200 d Sobol points.
"""

import math
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pbgi.arrays import Bools, Floats, Ints
from pbgi.errors import InvalidInputError
from pbgi.search.climb import NEAR, maximize_batch
from pbgi.search.grids import Grids, finite, maximize_mixed, snap

NEIGHBOR_SCALES = (1e-1, 1e-2, 1e-3)
N_NEIGHBORS = 4  # per incumbent, scale and kind
MOVED_COORDINATES = 2.0  # how many coordinates, on average, a sparse neighbor differs in
SPACING = 0.3  # first distance asked between starts, in units of sqrt(d)
SOBOL_BITS = 30
RESOLUTION = 2.0**-40  # points closer than this in every continuous coordinate are the same point
TOLERANCE = 1e-8  # of the spread: what a climb may leave, a hundredth of what is asked of the search
TIE = 1e-12  # of the spread: values that differ by less are equal but for rounding
FINITE_UP_TO = 4096  # grid points that are evaluated one and all


class Acquisition(Protocol):
    """What is maximized. Both methods take points (m, d)."""

    def value(self, X: Floats) -> Floats:
        """Values (m,)."""

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """Values (m,) and gradients (m, d)."""


class Activity(Protocol):
    """Coordinates that matter only where others have certain values. All methods take points (m, d)."""

    def settle(self, X: Floats) -> Floats:
        """The points with coordinates that do not matter at their one place."""

    def mask(self, X: Floats) -> Bools:
        """Which coordinates (m, d) matter."""

    def decisions(self, X: Floats) -> Ints:
        """By which values (m, k) of other coordinates that is decided."""


class SearchResult(NamedTuple):
    """The result of a search.

    `x` (d,) is None when every point visited is excluded; its value is then minus infinity. `X_all` (k, d) are the
    distinct points where climbs ended, in falling order of `values_all` (k,) and without excluded ones: local maxima,
    and points on the way to lower ones. In a small finite space they are its best points.
    """

    x: Floats | None
    value: float
    X_all: Floats
    values_all: Floats


def default_n_starts(dimension: int) -> int:
    """Climbs of a search, see `benchmarks/quality_search.py` for the share of maxima that they find.

    In few dimensions a climb is short and a basin is missed more easily: there are more of them than the number of
    coordinates asks for.
    """
    return min(max(6 + dimension, 14 + dimension // 2), 40)


def default_n_sobol(dimension: int) -> int:
    """Sobol points in the pool."""
    return min(max(256, 32 * dimension), 1024)


@dataclass(frozen=True)
class Search:
    """How much a search looks at, and where it begins.

    Args:
        n_points_per_dimension: Sobol points in the pool; by default `default_n_sobol`.
        n_climbs_per_dimension: Climbs; by default `default_n_starts`.
        near_best: Whether it begins around the best points tried, too.
    """

    n_points_per_dimension: int | None = None
    n_climbs_per_dimension: int | None = None
    near_best: bool = True

    def n_points(self, dimension: int) -> int:
        """Sobol points in the pool."""
        each = self.n_points_per_dimension
        return default_n_sobol(dimension) if each is None else each * dimension

    def n_climbs(self, dimension: int) -> int:
        """Climbs."""
        each = self.n_climbs_per_dimension
        return default_n_starts(dimension) if each is None else each * dimension


# The pool ------------------------------------------------------------------------------------------------------------


def build_pool(
    dimension: int,
    rng: np.random.Generator,
    n_sobol: int | None = None,
    incumbents: ArrayLike | None = None,
    former_maximizers: ArrayLike | None = None,
) -> Floats:
    """Points worth evaluating: Sobol points, incumbents with their neighbors, maximizers of earlier searches.

    Args:
        dimension: Number of coordinates, d.
        rng: Source of all randomness.
        n_sobol: Number of Sobol points; by default `default_n_sobol(dimension)`.
        incumbents: Good points (k, d); each brings neighbors at three scales, half of which differ from it in a
            few coordinates only (in many dimensions a step in all of them hardly ever improves).
        former_maximizers: Points (k, d) taken as they are.

    Returns:
        Points of the unit cube, one per row.
    """
    n_sobol = default_n_sobol(dimension) if n_sobol is None else n_sobol
    centers = _as_points(incumbents, dimension)
    pool = [_as_points(former_maximizers, dimension), centers, _sobol(dimension, n_sobol, rng)]
    if len(centers):
        kinds = [1.0] if dimension <= MOVED_COORDINATES else [1.0, MOVED_COORDINATES / dimension]
        scale = np.repeat(NEIGHBOR_SCALES, N_NEIGHBORS * len(kinds))[:, None, None]
        share = np.tile(kinds, N_NEIGHBORS * len(NEIGHBOR_SCALES))[:, None, None]
        shape = (len(scale), *centers.shape)
        steps = scale * rng.standard_normal(shape) * (rng.random(shape) < share)
        pool.append((centers + steps).reshape(-1, dimension))
    return np.asarray(np.clip(np.concatenate(pool), 0.0, 1.0), dtype=np.float64)


def _as_points(X: ArrayLike | None, dimension: int) -> Floats:
    return np.empty((0, dimension)) if X is None else np.asarray(X, dtype=np.float64).reshape(-1, dimension)


def _sobol(dimension: int, n: int, rng: np.random.Generator) -> Floats:
    """Sobol points under a random digital shift, which leaves their spread as it is."""
    shift = rng.integers(0, 1 << SOBOL_BITS, size=dimension)
    return (_sobol_digits(dimension, n) ^ shift).astype(np.float64) / (1 << SOBOL_BITS)


@lru_cache(maxsize=16)
def _sobol_digits(dimension: int, n: int) -> NDArray[np.int64]:
    """Digits of scrambled Sobol points; scrambling takes longer than a whole search, so it is done once."""
    from scipy.stats import qmc  # half a second, which a mere import of this package should not take

    engine = qmc.Sobol(dimension, scramble=True, bits=SOBOL_BITS, rng=np.random.default_rng(dimension))
    points = engine.random_base2(max(n - 1, 0).bit_length())[:n]
    digits: NDArray[np.int64] = (points * 2.0**SOBOL_BITS).astype(np.int64)
    digits.setflags(write=False)
    return digits


def choose_starts(values: Floats, X: Floats, n_starts: int, rng: np.random.Generator) -> Ints:
    """Pick rows of an evaluated pool to climb from: the best first, then the best of those far from all before.

    The distance asked for is halved whenever no row is left that keeps it. Taking the best without a distance reached
    the target less often, and drawing rows with probability exp(value / spread) took more evaluations.

    Args:
        values: Values (m,) of the pool; rows whose value is not finite are never picked.
        X: The pool (m, d).
        n_starts: Number of rows to pick, at most.
        rng: Decides between equal values.

    Returns:
        Positions of the rows picked, the best value first.
    """
    order = np.lexsort((rng.random(len(values)), -np.where(np.isfinite(values), values, -np.inf)))
    order = order[np.isfinite(values[order])]
    points, ones = X[order], np.ones((len(order), 1))
    norms = np.vecdot(points, points)[:, None]
    # The squared distance of two rows is the product of one of these with one of those.
    these, those = np.hstack([points, norms, ones]), np.hstack([-2.0 * points, ones, norms])
    distance = np.full(len(order), np.inf)  # squared, to the nearest row picked
    spacing, picked = SPACING**2 * X.shape[1], list[int]()
    while len(picked) < min(n_starts, len(order)):
        row = int((distance >= spacing).argmax())
        if distance[row] < spacing:
            # At the resolution of the finest neighbors spacing has lost its meaning: rows picked have -1, others 0.
            spacing = spacing / 4 if spacing > 1e-8 else -0.5
            continue
        picked.append(row)
        np.minimum(distance, these @ those[row], out=distance)
        distance[row] = -1.0
    return order[picked]


# The search ----------------------------------------------------------------------------------------------------------


def search(
    acquisition: Acquisition,
    pool: ArrayLike,
    *,
    rng: np.random.Generator,
    n_starts: int | None = None,
    grids: Grids | None = None,
    excluded: ArrayLike | None = None,
    lengths: Floats | None = None,
    activity: Activity | None = None,
) -> SearchResult:
    """Find the point of the unit cube (or of the grids in it) where the acquisition function is largest.

    Args:
        acquisition: What is maximized; values that are not finite count as minus infinity.
        pool: Points (m, d), at least one, e.g. from `build_pool`.
        rng: Decides between equal values.
        n_starts: Climbs; by default `default_n_starts(d)`.
        grids: One entry per coordinate, None for a continuous one; by default all are continuous.
        excluded: Points (k, d) that must not be returned, e.g. those already evaluated in a finite space.
        lengths: How far (d,) the function goes before it changes, see `maximize_batch`.
        activity: Which coordinates matter where; by default all do everywhere. The function is asked at settled points.

    Returns:
        The best point that is not excluded among all visited ones, and where the climbs ended. A finite space with at
        most 4096 points is visited completely.
    """
    X, grids = _checked(pool, grids)
    n_starts = default_n_starts(X.shape[1]) if n_starts is None else n_starts
    is_excluded = _Excluded(_as_points(excluded, X.shape[1]), grids, activity)
    everything = _all_points(grids)
    X = snap(X, grids) if everything is None else everything
    if activity is not None:
        X, acquisition = activity.settle(X), _Settled(acquisition, activity)
    values = finite(acquisition.value(X))
    if everything is None:
        # A climb may well start from an excluded row: its neighbors are often the best points left.
        rows = choose_starts(values, X, n_starts, rng)
        if activity is not None:
            rows = np.union1d(rows, _best_of_each(activity.decisions(X), values, n_starts))
        scale = _spread(values)
        tops, top_values = _climb(acquisition, X[rows], grids, is_excluded, scale, lengths, activity)
        X, values, n_tops = np.concatenate([tops, X]), np.concatenate([top_values, values]), len(tops)
        values = _with_ties(values, scale)
    else:
        order = np.lexsort((rng.random(len(values)), -values))
        X, values, n_tops = X[order], values[order], len(order)
    tops_allowed = np.flatnonzero(~is_excluded(X[:n_tops]))
    X_all, values_all = _distinct(X[tops_allowed], values[tops_allowed], n_starts)
    # Of the pool only rows as good as that need be looked at.
    others = n_tops + np.flatnonzero(values[n_tops:] >= values[tops_allowed].max(initial=-np.inf))
    allowed = np.concatenate([tops_allowed, others[~is_excluded(X[others])]])
    if not len(allowed):
        return SearchResult(None, -np.inf, X_all, values_all)
    best = allowed[values[allowed].argmax()]
    return SearchResult(X[best].copy(), float(values[best]), X_all, values_all)


def _climb(
    acquisition: Acquisition,
    starts: Floats,
    grids: Grids,
    is_excluded: "_Excluded",
    scale: float | None,
    lengths: Floats | None,
    activity: Activity | None,
) -> tuple[Floats, Floats]:
    if all(grid is None for grid in grids) or not len(starts):
        climb = partial(maximize_batch, scale=scale, lengths=lengths, tolerance=TOLERANCE, race=True)
        return climb(acquisition.value_and_grad, starts)

    def value_only(X: Floats) -> Floats:
        return np.where(is_excluded(X), -np.inf, acquisition.value(X))

    f = acquisition.value_and_grad
    mask = None if activity is None else activity.mask
    tops, values = maximize_mixed(f, value_only, starts, grids, scale=scale, lengths=lengths, race=True, mask=mask)
    return tops if activity is None else activity.settle(tops), values


class _Settled:
    """A function asked at settled points, which does not change along coordinates that do not matter."""

    def __init__(self, of: Acquisition, activity: Activity) -> None:
        self._of, self._activity = of, activity

    def value(self, X: Floats) -> Floats:
        return self._of.value(self._activity.settle(X))

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        value, gradient = self._of.value_and_grad(self._activity.settle(X))
        return value, np.where(self._activity.mask(X), gradient, 0.0)


def _best_of_each(decisions: Ints, values: Floats, most: int) -> Ints:
    """The best row of each branch, of the best `most` branches: in each there is a climb."""
    order = np.argsort(-values, kind="stable")
    _, first = np.unique(decisions[order], axis=0, return_index=True)
    best = order[np.sort(first)][:most]
    return best[np.isfinite(values[best])]


class _Excluded:
    """Tells which points are among those excluded."""

    def __init__(self, excluded: Floats, grids: Grids, activity: Activity | None):
        self._grids, self._activity = grids, activity
        self._form = _random_form(len(grids))
        self._hashes = self._hash(excluded) if len(excluded) else None

    def __call__(self, X: Floats) -> Bools:
        return np.zeros(len(X), dtype=bool) if self._hashes is None else np.isin(self._hash(X), self._hashes)

    def _hash(self, X: Floats) -> NDArray[np.int64]:
        X = X if self._activity is None else self._activity.settle(X)
        codes = [
            np.rint(x / RESOLUTION).astype(np.int64) if grid is None else grid.nearest(x)
            for x, grid in zip(X.T, self._grids, strict=True)
        ]
        return np.asarray(np.stack(codes, axis=1) @ self._form, dtype=np.int64)


@lru_cache(maxsize=16)
def _random_form(dimension: int) -> NDArray[np.int64]:
    """Rows are compared by a hash: a random linear form of their codes, modulo 2^64."""
    return np.random.default_rng(0).integers(1, 1 << 62, size=dimension, dtype=np.int64) | 1


def _all_points(grids: Grids) -> Floats | None:
    """All points of a small finite space; None for others."""
    discrete = [grid for grid in grids if grid is not None]
    if len(discrete) < len(grids) or math.prod(grid.n_levels for grid in discrete) > FINITE_UP_TO:
        return None
    levels = [grid.at(np.arange(grid.n_levels)) for grid in discrete]
    return np.stack([axis.ravel() for axis in np.meshgrid(*levels, indexing="ij")], axis=1)


def _distinct(X: Floats, values: Floats, n: int) -> tuple[Floats, Floats]:
    """The best `n` rows, without those near a better one and those of no value."""
    order = np.argsort(-values, kind="stable")[: np.count_nonzero(np.isfinite(values))][: 8 * n]
    X, values = X[order], values[order]
    near = (np.abs(X[:, None, :] - X[None, :, :]) < NEAR).all(axis=2)
    keep = np.flatnonzero(~np.tril(near, -1).any(axis=1))[:n]
    return X[keep], values[keep]


def _with_ties(values: Floats, scale: float | None) -> Floats:
    """The values, the best of which are equal if they differ by rounding alone: the first of them is the best then.

    Climbs to one maximum end a little apart. Which of them is the best by the last bit would depend on the units.
    """
    top = values.max()
    return np.where(values >= top - TIE * (scale or 0.0), top, values)


def _spread(values: Floats) -> float | None:
    """From the upper quartile to the top: the lower tail of a log improvement says nothing about its peaks."""
    ascending = np.sort(values[np.isfinite(values)])
    if not len(ascending):
        return None
    quartile, top = ascending[3 * len(ascending) // 4], ascending[-1]
    with np.errstate(over="ignore"):
        spread = float(top - quartile) or float(top - ascending[0])
    return min(spread, sys.float_info.max) or None


def _checked(pool: ArrayLike, grids: Grids | None) -> tuple[Floats, Grids]:
    X = np.array(pool, dtype=np.float64)
    if X.ndim != 2 or not X.size or not ((X >= 0.0) & (X <= 1.0)).all():
        raise InvalidInputError(f"pool must be points (m, d) of the unit cube, at least one; got {pool!r}")
    grids = [None] * X.shape[1] if grids is None else grids
    if len(grids) != X.shape[1]:
        raise InvalidInputError(f"grids must have one entry per coordinate, {X.shape[1]}; got {len(grids)}")
    return X, grids
