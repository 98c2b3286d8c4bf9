"""Climbing where some coordinates live on grids: integers and categories.

Climbs in the continuous coordinates alternate with exact sweeps over the levels of each grid.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from typing import ClassVar, TypeAlias

import numpy as np

from pbgi.arrays import Bools, Floats, Ints
from pbgi.errors import InvalidInputError
from pbgi.search.climb import ValueAndGrad, maximize_batch

ValueOnly: TypeAlias = Callable[[Floats], Floats]
"""Maps points (m, d) to values (m,)."""

MAX_SWEPT_LEVELS = 64  # ordered grids with more levels are searched coarse to fine
COARSE_LEVELS = 32  # points per pass of that search
PAIR_LEVELS = 8  # longest grids that are also swept in pairs
MAX_PAIRS = 200
MAX_ROUNDS = 12  # of climbs and sweeps


@dataclass(frozen=True, eq=False)
class Grid:
    """The values a discrete coordinate can take.

    Args:
        levels: Ascending values in [0, 1].
        ordered: Whether neighboring levels are alike (integers) or not (categories).
    """

    levels: Floats
    ordered: bool = True

    def __post_init__(self) -> None:
        levels = np.array(self.levels, dtype=np.float64)
        ascending = levels.ndim == 1 and len(levels) > 0 and (np.diff(levels) > 0.0).all()
        if not (ascending and levels[0] >= 0.0 and levels[-1] <= 1.0):
            raise InvalidInputError(f"levels must be ascending values in [0, 1], at least one; got {self.levels!r}")
        levels.setflags(write=False)
        object.__setattr__(self, "levels", levels)

    @property
    def n_levels(self) -> int:
        """How many there are."""
        return len(self.levels)

    def at(self, positions: Ints) -> Floats:
        """The levels at these positions."""
        return np.asarray(self.levels[positions])

    def nearest(self, x: Floats) -> Ints:
        """Positions of the levels nearest to `x`."""
        return np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, x)


@dataclass(frozen=True, eq=False)
class FineGrid:
    """A grid of more levels than are worth listing, given by its functions: neighbors are alike.

    Args:
        n_levels: How many there are.
        at: The levels at positions.
        nearest: Positions of the levels to which coordinates belong.
    """

    n_levels: int
    at: Callable[[Ints], Floats]
    nearest: Callable[[Floats], Ints]
    ordered: ClassVar[bool] = True


Grids: TypeAlias = Sequence[Grid | FineGrid | None]
"""One entry per coordinate; None for a continuous one."""


def maximize_mixed(
    f: ValueAndGrad,
    value_only: ValueOnly,
    starts: Floats,
    grids: Grids,
    *,
    scale: float | None = None,
    lengths: Floats | None = None,
    max_rounds: int = MAX_ROUNDS,
    tolerance: float = 1e-9,
    race: bool = False,
    mask: Callable[[Floats], Bools] | None = None,
) -> tuple[Floats, Floats]:
    """Climb from every start where some coordinates live on grids.

    Sweeps over the levels of each grid alternate with climbs in the continuous coordinates until neither improves.

    Args:
        f: Values and gradients of points (m, d).
        value_only: Values of points (m, d); minus infinity where a point must not be returned.
        starts: Points (m, d); discrete coordinates are moved to the nearest level first.
        grids: One entry per coordinate.
        max_rounds: Sweeps and climbs that a start may go through.
        scale, lengths, tolerance, race: As for `maximize_batch`.
        mask: Which coordinates (m, d) of points (m, d) matter: others are not swept. All of them by default.

    Returns:
        Points (m, d) on the grids and their values (m,), never below the value at the start.
    """
    X = snap(np.array(starts, dtype=np.float64), grids)
    continuous = np.array([grid is None for grid in grids])
    # A long grid of neighbors that are alike is climbed first as if it were continuous: sweeps then begin near the top.
    relaxed = np.array([grid is None or (grid.ordered and grid.n_levels > MAX_SWEPT_LEVELS) for grid in grids])
    values = finite(value_only(X))
    climb_all = partial(maximize_batch, scale=scale, lengths=lengths, tolerance=tolerance, race=race)

    def climb(rows: Ints, free: Bools) -> None:
        if free.any():
            climbed, _ = climb_all(f, X[rows], free=free)
            _move(X, values, rows, snap(climbed, grids)[:, None, :], value_only)

    rows = np.arange(len(X))
    climb(rows, relaxed)
    for _ in range(max_rounds if len(X) else 0):
        before = values[rows]
        for j, grid in enumerate(grids):
            if grid is not None and grid.n_levels > 1:
                matters = rows if mask is None else rows[mask(X[rows])[:, j]]
                _sweep(X, values, matters, j, grid, value_only)
        climb(rows, continuous)
        # A row that gained nothing in a whole round would gain nothing in the next one either.
        rows = rows[values[rows] > before + tolerance * (scale or 0.0)]
        if not len(rows):
            # Where two choices are only good together, one at a time never gets there.
            rows = _sweep_pairs(X, values, grids, value_only)
        if not len(rows):
            break
    return X, values


def _move(X: Floats, values: Floats, rows: Ints, candidates: Floats, value_only: ValueOnly) -> Ints:
    """Move each row to the best of its candidates (m, k, d) where that is better; the rows that moved."""
    m, k, d = candidates.shape
    table = finite(value_only(candidates.reshape(m * k, d))).reshape(m, k)
    best = table.argmax(axis=1)
    better = table[np.arange(m), best] > values[rows]
    moved: Ints = rows[better]
    best = best[better]
    X[moved], values[moved] = candidates[better, best], table[better, best]
    return moved


def _sweep(X: Floats, values: Floats, rows: Ints, j: int, grid: Grid | FineGrid, value_only: ValueOnly) -> None:
    """Set coordinate `j` of each row to its best level, the others being as they are."""
    if not len(rows):
        return
    for positions in _passes(X, rows, j, grid):  # (m, levels)
        candidates = np.repeat(X[rows][:, None, :], positions.shape[1], axis=1)
        candidates[:, :, j] = grid.at(positions)
        _move(X, values, rows, candidates, value_only)


def _sweep_pairs(X: Floats, values: Floats, grids: Grids, value_only: ValueOnly) -> Ints:
    """Change two short grids at once in the best row, if that helps; the rows that moved."""
    row = np.flatnonzero(values == values.max())[:1]  # pairs of all rows would take as long as the search itself
    small = [(j, g) for j, g in enumerate(grids) if g is not None and 1 < g.n_levels <= PAIR_LEVELS]
    short = [(j, grid.at(np.arange(grid.n_levels))) for j, grid in small]
    blocks = [X[row]]  # there is something to compare with, also where no two grids are short
    for (i, first), (j, second) in islice(combinations(short, 2), MAX_PAIRS):
        block = np.repeat(X[row], len(first) * len(second), axis=0)
        block[:, i], block[:, j] = np.repeat(first, len(second)), np.tile(second, len(first))
        blocks.append(block)
    return _move(X, values, row, np.concatenate(blocks)[None], value_only)


def _passes(X: Floats, rows: Ints, j: int, grid: Grid | FineGrid) -> Iterator[Ints]:
    """Positions of the levels to try for each row: all, or on a long ordered grid ever closer around the best."""
    n = grid.n_levels
    if not grid.ordered or n <= MAX_SWEPT_LEVELS:
        yield np.broadcast_to(np.arange(n), (len(rows), n))
        return
    # The acquisition is smooth along such a grid, so a level between two coarse ones is found from the better of them.
    stride = math.ceil(n / COARSE_LEVELS)
    coarse = np.unique(np.append(np.arange(0, n, stride), n - 1))
    yield np.broadcast_to(coarse, (len(rows), len(coarse)))
    while True:  # X changes between passes: each looks around the best level of the one before
        finer = max(1, math.ceil(2 * stride / COARSE_LEVELS))
        offsets = np.arange(-max(stride, 2), max(stride, 2) + 1, finer)
        yield np.clip(grid.nearest(X[rows, j])[:, None] + offsets, 0, n - 1)
        if finer == 1:
            return
        stride = finer


def snap(X: Floats, grids: Grids) -> Floats:
    """Move discrete coordinates to the nearest level, in place."""
    for j, grid in enumerate(grids):
        if grid is not None:
            X[:, j] = grid.at(grid.nearest(X[:, j]))
    return X


def finite(values: Floats) -> Floats:
    """The values, with minus infinity for what is not finite."""
    return np.where(np.isfinite(values), values, -np.inf)
