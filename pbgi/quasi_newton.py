"""Climb from many starting points at once: a bound-constrained quasi-Newton method whose loop is over steps only.

Every row of the batch is a climb of its own on [0, 1]^d, with its own curvature, step length and end. One *tick*
evaluates one trial point of each climb still under way: a climb whose trial point is good enough moves there and
learns from the change of its gradient, one whose point is not shortens its step and tries again in the next tick. No
climb waits for another one's line search, and the function is called once per tick with all the trial points.

Bounds are handled by projection (Bertsekas 1982, "Projected Newton methods for optimization problems with simple
constraints"): coordinates on a face towards which the gradient points are held for the step, a quasi-Newton step is
taken in the others and clipped to the cube, and the Armijo condition is asked of the clipped step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from pbgi.arrays import Bools, Floats, Ints
from pbgi.errors import InvalidInputError

ValueAndGrad: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Maps points (m, d) to values (m,) and gradients (m, d)."""

# Up to this dimension a dense inverse Hessian per climb is cheaper than the two loops over a limited memory.
DENSE_UP_TO = 32
MEMORY = 12  # pairs that the limited memory keeps
ARMIJO = 1e-4  # share of the gain promised by the slope that a step must bring
FIRST_STEP = 0.2  # largest coordinate of a step along the gradient when nothing is known of the curvature
GROWTH = 4.0  # after a step without curvature (convex, for a maximum) the next one is this much longer
MAX_STRETCH = 10.0  # in one update, of the whole matrix; see `_DenseCurvature.learn`
CURVATURE = 1e-8  # s'y must be this share of |s||y| for a step to be learnt from
# A race (see `maximize_batch`) saves two fifths of the evaluations at d = 4 and three fifths of them at d = 16; on 170
# Gaussian process posteriors, d = 2 to 16, it reached the best known maximum as often as a race half as hasty.
RACE_FROM = 4  # ticks before a climb may be abandoned: earlier its predictions are guesses
RACE_EVERY = 2  # ticks between two comparisons of all climbs with each other
HOPE = 5.0  # times its present gain a climb is trusted to rise
NEAR = 0.03  # climbs this near (in each coordinate) to a better one are going to the same maximum
TINY = 1e-300


class _Curvature(Protocol):
    """What the climbs know of their second derivatives: the inverse Hessian of minus the function, per row."""

    def times(self, v: Floats, moving: Bools) -> Floats:
        """Inverse Hessian times `v`, in the moving coordinates; `v` is zero in the others, and so is the product."""

    def learn(self, s: Floats, y: Floats, sy: Floats, good: Bools) -> None:
        """Take in steps `s` along which the gradient fell by `y`, with sy = s'y > 0, for the rows in `good`."""

    def grow(self, rows: Bools) -> None:
        """Lengthen the next step of `rows`."""

    def keep(self, rows: Bools) -> None:
        """Forget all climbs but `rows`."""


class _DenseCurvature:
    """BFGS with one d x d matrix per row."""

    def __init__(self, scale: Floats, d: int):
        self._eye = np.eye(d)
        self._h = scale[:, None, None] * self._eye  # (m, d, d)
        self._fresh = np.ones(len(scale), dtype=bool)

    def times(self, v: Floats, moving: Bools) -> Floats:
        product: Floats = np.matmul(self._h, v[:, :, None])[:, :, 0]
        return product * moving

    def learn(self, s: Floats, y: Floats, sy: Floats, good: Bools) -> None:
        if self._fresh.any():
            first = self._fresh & good  # Nocedal and Wright, eq. 6.20: the first pair sets the scale
            self._h[first] = (sy[first] / np.vecdot(y[first], y[first]))[:, None, None] * self._eye
            self._fresh &= ~first
        hy = np.matmul(self._h, y[:, :, None])[:, :, 0]
        yhy = np.vecdot(y, hy)
        inverse = good / np.where(good, sy, 1.0)
        # Where a step shows less curvature than expected, all directions are taken to be flatter (self-scaling,
        # upwards only): an eighth fewer evaluations at d = 8 and 16 than without. Downwards it takes half as many more.
        stretch = np.where(good, np.minimum(np.maximum(1.0, sy / np.maximum(yhy, TINY)), MAX_STRETCH), 1.0)
        # With H the stretched matrix, H + w s' + s w' is the BFGS update (eq. 6.17) multiplied out.
        half = 0.5 * inverse * (1.0 + inverse * stretch * yhy)
        w = half[:, None] * s - (inverse * stretch)[:, None] * hy
        update = w[:, :, None] * s[:, None, :]
        self._h *= stretch[:, None, None]
        self._h += update
        self._h += update.transpose(0, 2, 1)

    def grow(self, rows: Bools) -> None:
        self._h[rows] *= GROWTH

    def keep(self, rows: Bools) -> None:
        self._h, self._fresh = self._h[rows], self._fresh[rows]


class _LimitedCurvature:
    """L-BFGS: the last `MEMORY` pairs of each row, oldest first; a pair of zeros is an empty place."""

    def __init__(self, scale: Floats, d: int):
        self._s = np.zeros((MEMORY, len(scale), d))
        self._y = np.zeros((MEMORY, len(scale), d))
        self._scale = scale.copy()

    def times(self, v: Floats, moving: Bools) -> Floats:
        # Pairs are cut to the moving coordinates: the product is that of a climb which never knew the others.
        s, y = self._s * moving, self._y * moving
        sy = np.vecdot(s, y)  # (MEMORY, m)
        usable = _is_curved(s, y, sy)
        inverse = usable / np.where(usable, sy, 1.0)
        out, a = v.copy(), np.zeros_like(sy)
        for k in range(MEMORY - 1, -1, -1):
            a[k] = inverse[k] * np.vecdot(s[k], out)
            out -= a[k][:, None] * y[k]
        out *= self._scale[:, None]
        for k in range(MEMORY):
            out += (a[k] - inverse[k] * np.vecdot(y[k], out))[:, None] * s[k]
        return out

    def learn(self, s: Floats, y: Floats, sy: Floats, good: Bools) -> None:
        for memory, new in ((self._s, s), (self._y, y)):
            memory[:-1, good] = memory[1:, good]
            memory[-1, good] = new[good]
        self._scale[good] = sy[good] / np.vecdot(y[good], y[good])

    def grow(self, rows: Bools) -> None:
        # In directions that the pairs span the product hardly depends on the scale, so the pairs have to go.
        self._s[:, rows] = 0.0
        self._scale[rows] *= GROWTH

    def keep(self, rows: Bools) -> None:
        self._s, self._y, self._scale = self._s[:, rows], self._y[:, rows], self._scale[rows]


def _is_curved(s: Floats, y: Floats, sy: Floats) -> Bools:
    curved: Bools = sy > CURVATURE * np.sqrt(np.vecdot(s, s) * np.vecdot(y, y))
    return curved


@dataclass
class _Climbs:
    """The climbs under way, one per row; gradients and gains are in units of the scale of the function."""

    row: Ints  # which start
    x: Floats
    value: Floats
    grad: Floats
    shortening: Floats  # factor on the next step; 1 unless the last trial point was refused
    gain: Floats  # of the last step taken

    def keep(self, rows: Bools) -> None:
        self.row, self.x, self.value, self.grad = self.row[rows], self.x[rows], self.value[rows], self.grad[rows]
        self.shortening, self.gain = self.shortening[rows], self.gain[rows]


def maximize_batch(
    f: ValueAndGrad,
    starts: Floats,
    *,
    free: Bools | None = None,
    scale: float | None = None,
    max_iterations: int = 200,
    tolerance: float = 1e-9,
    race: bool = False,
) -> tuple[Floats, Floats]:
    """Climb from every start to a local maximum of `f` on [0, 1]^d, all of them together.

    Args:
        f: Maps points (m, d) to values (m,) and gradients (m, d). Called with the climbs still under way only. A value
            or gradient that is not finite counts as minus infinity.
        starts: Points (m, d) of the unit cube.
        free: Mask (d,) of the coordinates that may move; all of them by default.
        scale: A difference of values that matters, e.g. the spread of `f` over the cube. By default the largest
            absolute value at the starts.
        max_iterations: Evaluations that one climb may use besides that of its start.
        tolerance: A climb ends when neither its last step brought nor its next one promises more than
            `tolerance * scale`.
        race: Only the best maximum is wanted: abandon climbs that fall hopelessly behind or come near a better one.

    Returns:
        Points (m, d) in the unit cube and their values (m,), never below the value at the start. A start whose value
        is not finite stays where it is, with value minus infinity.

    Raises:
        InvalidInputError: The starts are not points of the unit cube, or `free` is not a mask of their coordinates.
    """
    X, movable = _checked(starts, free)
    if not len(X):
        return X, np.empty(0)
    with np.errstate(all="ignore"):
        value, grad = f(X.copy())
        values = np.where(np.isfinite(value), value, -np.inf)
        unit = _unit(values, scale)
        row = np.flatnonzero(_is_finite(value, grad, movable))
        m, d = len(row), X.shape[1]
        climbs = _Climbs(row, X[row], values[row], grad[row] / unit, np.ones(m), np.zeros(m))
        first_step = FIRST_STEP / np.maximum(np.abs(climbs.grad).max(axis=1, where=movable, initial=0.0), TINY)
        curvature: _Curvature = (_DenseCurvature if d <= DENSE_UP_TO else _LimitedCurvature)(first_step, d)
        for tick in range(max_iterations):
            moving, step, promise = _propose(climbs, curvature, movable)
            ended = _ended(climbs, promise, tolerance)
            if race and tick >= RACE_FROM and tick % RACE_EVERY == 0:
                values[climbs.row] = climbs.value
                ended |= _beaten(climbs, promise, (values.max() - climbs.value) / unit)
            if ended.any():
                X[climbs.row], values[climbs.row] = climbs.x, climbs.value
                going = ~ended
                climbs.keep(going)
                curvature.keep(going)
                moving, step, promise = moving[going], step[going], promise[going]
            if not len(climbs.row):
                break
            _advance(climbs, curvature, f, unit, movable, moving, step, promise)
        X[climbs.row], values[climbs.row] = climbs.x, climbs.value
    return X, values


def _propose(climbs: _Climbs, curvature: _Curvature, movable: Bools) -> tuple[Bools, Floats, Floats]:
    """For every climb the coordinates that move, the clipped step and the gain it promises (to first order)."""
    x, grad = climbs.x, climbs.grad
    moving = movable & (_clipped(x, grad) != 0.0)  # not held by a face (nor by a gradient lost in rounding)
    slope = np.where(moving, grad, 0.0)
    step = _clipped(x, climbs.shortening[:, None] * curvature.times(slope, moving))
    promise = np.vecdot(slope, step)
    lost = ~(promise > 0.0)
    if lost.any():
        # Nothing moves, or clipping has turned the step downhill: take the gradient, which clipping cannot turn.
        length = FIRST_STEP * climbs.shortening[lost] / np.maximum(np.abs(slope[lost]).max(axis=1), TINY)
        step[lost] = _clipped(x[lost], length[:, None] * slope[lost])
        promise[lost] = np.vecdot(slope[lost], step[lost])
    return moving, step, promise


def _clipped(x: Floats, step: Floats) -> Floats:
    """The part of the step that stays in the cube."""
    return np.minimum(np.maximum(x + step, 0.0), 1.0) - x


def _ended(climbs: _Climbs, promise: Floats, tolerance: float) -> Bools:
    """Climbs that have arrived, have nowhere to go, or would go on shortening a step for less than the tolerance."""
    idle = (climbs.gain <= tolerance) | (climbs.shortening < 1.0)
    return ~(promise > 0.0) | (idle & (promise <= tolerance))


def _beaten(climbs: _Climbs, promise: Floats, behind: Floats) -> Bools:
    """Climbs too far behind the best value found, and climbs that have come near a better one."""
    order = np.argsort(-climbs.value, kind="stable")
    x = climbs.x[order]
    near = (np.abs(x[:, None, :] - x[None, :, :]) < NEAR).all(axis=2)
    merged = np.empty(len(x), dtype=bool)
    merged[order] = np.tril(near, -1).any(axis=1)
    return merged | (behind > HOPE * np.maximum(promise, climbs.gain))


def _advance(
    climbs: _Climbs,
    curvature: _Curvature,
    f: ValueAndGrad,
    unit: float,
    movable: Bools,
    moving: Bools,
    step: Floats,
    promise: Floats,
) -> None:
    """Evaluate one trial point per climb; move there and learn, or shorten the step."""
    trial = np.minimum(np.maximum(climbs.x + step, 0.0), 1.0)
    value, grad = f(trial)
    finite = _is_finite(value, grad, movable)
    grad = grad / unit
    gain = (value - climbs.value) / unit
    moved = finite & (gain >= ARMIJO * promise)
    everyone = bool(moved.all())
    y = np.where(moving & moved[:, None], climbs.grad - grad, 0.0)
    if not everyone:
        # The parabola with this slope at the start and this gain at the trial point has its top at `share` of the step.
        share = 0.5 * promise / (promise - gain)
        share = np.where(finite, np.clip(share, 0.1, 0.5), 0.1)
    sy = np.vecdot(step, y)
    good = moved & _is_curved(step, y, sy)
    curvature.learn(step, y, sy, good)
    straight = moved & ~good
    if straight.any():
        curvature.grow(straight)
    if everyone:
        climbs.x, climbs.value, climbs.grad, climbs.gain = trial, value, grad, gain
        climbs.shortening = np.ones(len(trial))
        return
    column = moved[:, None]
    climbs.x, climbs.grad = np.where(column, trial, climbs.x), np.where(column, grad, climbs.grad)
    climbs.value, climbs.gain = np.where(moved, value, climbs.value), np.where(moved, gain, climbs.gain)
    climbs.shortening = np.where(moved, 1.0, climbs.shortening * share)


def _is_finite(value: Floats, grad: Floats, movable: Bools) -> Bools:
    # A sum is finite only if all its terms are; where finite terms overflow, the point is of no use either.
    finite: Bools = np.isfinite(value + grad.sum(axis=1, where=movable))
    return finite


def _unit(values: Floats, scale: float | None) -> float:
    if scale is None:
        scale = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0))
    return scale if TINY < scale < np.inf else 1.0


def _checked(starts: Floats, free: Bools | None) -> tuple[Floats, Bools]:
    X = np.array(starts, dtype=np.float64)
    if X.ndim != 2 or not ((X >= 0.0) & (X <= 1.0)).all():
        raise InvalidInputError(f"starts must be points (m, d) of the unit cube; got {starts!r}")
    movable = np.ones(X.shape[1], dtype=bool) if free is None else np.asarray(free)
    if movable.shape != (X.shape[1],) or movable.dtype != np.bool_:
        raise InvalidInputError(f"free must be a boolean mask of shape ({X.shape[1]},); got {free!r}")
    return X, movable
