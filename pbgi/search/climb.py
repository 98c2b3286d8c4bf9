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
from typing import NamedTuple, Protocol, TypeAlias

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
# A race (see `maximize_batch`) saves half of the evaluations and more. A stricter one, which compares more often or
# trusts climbs less, takes up to a seventh fewer ticks and misses more maxima (`benchmarks/quality_search.py`).
RACE_FROM = 4  # ticks before a climb may be abandoned: earlier its predictions are guesses
RACE_EVERY = 2  # ticks between two comparisons of all climbs with each other
HOPE = 1.5  # times its present gain a climb is trusted to rise
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

    def keep(self, rows: Ints) -> None:
        """Forget all climbs but `rows`."""


class _DenseCurvature:
    """BFGS with one d x d matrix per row."""

    def __init__(self, scale: Floats, metric: Floats):
        self._metric = metric
        self._first = np.diag(metric)
        self._h = scale[:, None, None] * self._first  # (m, d, d)
        self._fresh = np.ones(len(scale), dtype=bool)
        self._any_fresh = True

    def times(self, v: Floats, moving: Bools) -> Floats:
        product: Floats = np.matmul(self._h, v[:, :, None])[:, :, 0]
        product *= moving
        return product

    def learn(self, s: Floats, y: Floats, sy: Floats, good: Bools) -> None:
        if self._any_fresh:
            first = self._fresh & good  # Nocedal and Wright, eq. 6.20: the first pair sets the scale
            self._h[first] = (sy[first] / np.vecdot(y[first] * self._metric, y[first]))[:, None, None] * self._first
            self._fresh &= ~first
            self._any_fresh = bool(self._fresh.any())
        hy = np.matmul(self._h, y[:, :, None])[:, :, 0]
        yhy = np.vecdot(y, hy)
        all_good = bool(good.all())
        inverse = 1.0 / sy if all_good else good / np.where(good, sy, 1.0)
        # Where a step shows less curvature than expected, all directions are taken to be flatter (self-scaling,
        # upwards only): an eighth fewer evaluations at d = 8 and 16 than without. Downwards it takes half as many more.
        stretch = sy / yhy if all_good else sy * good / yhy  # 0 / 0 where a climb has not moved
        stretch = np.minimum(np.fmax(stretch, 1.0, out=stretch), MAX_STRETCH, out=stretch)
        # With H the stretched matrix, H + w s' + s w' is the BFGS update (eq. 6.17) multiplied out.
        stretched = inverse * stretch
        yhy *= stretched
        yhy += 1.0
        yhy *= 0.5 * inverse
        hy *= stretched[:, None]
        pair = np.empty((2, *s.shape))
        pair[0] = s
        np.subtract(np.multiply(yhy[:, None], s, out=pair[1]), hy, out=pair[1])
        self._h *= stretch[:, None, None]
        self._h += np.matmul(pair.transpose(1, 2, 0), pair[::-1].transpose(1, 0, 2))

    def grow(self, rows: Bools) -> None:
        self._h[rows] *= GROWTH

    def keep(self, rows: Ints) -> None:
        self._h, self._fresh = self._h.take(rows, axis=0), self._fresh.take(rows)


class _LimitedCurvature:
    """L-BFGS: the last `MEMORY` pairs of each row, oldest first; a pair of zeros is an empty place."""

    def __init__(self, scale: Floats, metric: Floats):
        self._metric = metric
        self._s = np.zeros((MEMORY, len(scale), len(metric)))
        self._y = np.zeros((MEMORY, len(scale), len(metric)))
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
        out *= self._scale[:, None] * self._metric
        for k in range(MEMORY):
            out += (a[k] - inverse[k] * np.vecdot(y[k], out))[:, None] * s[k]
        return out

    def learn(self, s: Floats, y: Floats, sy: Floats, good: Bools) -> None:
        for memory, new in ((self._s, s), (self._y, y)):
            memory[:-1, good] = memory[1:, good]
            memory[-1, good] = new[good]
        self._scale[good] = sy[good] / np.vecdot(y[good] * self._metric, y[good])

    def grow(self, rows: Bools) -> None:
        # In directions that the pairs span the product hardly depends on the scale, so the pairs have to go.
        self._s[:, rows] = 0.0
        self._scale[rows] *= GROWTH

    def keep(self, rows: Ints) -> None:
        self._s, self._y, self._scale = self._s[:, rows], self._y[:, rows], self._scale[rows]


def _is_curved(s: Floats, y: Floats, sy: Floats) -> Bools:
    least = np.vecdot(s, s)
    least *= np.vecdot(y, y)
    np.sqrt(least, out=least)
    least *= CURVATURE
    return np.asarray(sy > least)


@dataclass
class _Climbs:
    """The climbs under way, one per row; gradients and gains are in units of the scale of the function."""

    row: Ints  # which start
    x: Floats
    value: Floats
    grad: Floats
    shortening: Floats  # factor on the next step; 1 unless the last trial point was refused
    gain: Floats  # of the last step taken

    def keep(self, rows: Ints) -> None:
        self.row, self.value, self.gain = self.row.take(rows), self.value.take(rows), self.gain.take(rows)
        self.x, self.grad = self.x.take(rows, axis=0), self.grad.take(rows, axis=0)
        self.shortening = self.shortening.take(rows)


class _Proposal(NamedTuple):
    """What the climbs try next."""

    moving: Bools  # which coordinates
    trial: Floats  # the point
    step: Floats  # from here to there
    promise: Floats  # the gain, to first order

    def keep(self, rows: Ints) -> "_Proposal":
        """Only those of the climbs in `rows`."""
        trial, step = self.trial.take(rows, axis=0), self.step.take(rows, axis=0)
        return _Proposal(self.moving.take(rows, axis=0), trial, step, self.promise.take(rows))


def maximize_batch(
    f: ValueAndGrad,
    starts: Floats,
    *,
    free: Bools | None = None,
    scale: float | None = None,
    lengths: Floats | None = None,
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
        lengths: How far (d,) `f` goes before it changes, along each coordinate, e.g. the length scales of a model: the
            first guess of its curvature. By default equally far along all of them.
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
        metric = _metric(lengths, d)
        steepest = np.abs(climbs.grad * metric).max(axis=1, where=movable, initial=0.0)
        first_step = FIRST_STEP / np.maximum(steepest, TINY)
        curvature: _Curvature = (_DenseCurvature if d <= DENSE_UP_TO else _LimitedCurvature)(first_step, metric)
        best = values.max()
        for tick in range(max_iterations):
            proposal = _propose(climbs, curvature, movable)
            ended = _ended(climbs, proposal.promise, tolerance)
            if race and tick >= RACE_FROM and tick % RACE_EVERY == 0:
                best = max(best, climbs.value.max())
                beaten = _beaten(climbs, proposal.promise, (best - climbs.value) / unit)
                ended = beaten if ended is None else ended | beaten
            if ended is not None and ended.any():
                going = np.flatnonzero(~ended)
                X[climbs.row], values[climbs.row] = climbs.x, climbs.value
                climbs.keep(going)
                curvature.keep(going)
                proposal = proposal.keep(going)
            if not len(climbs.row):
                break
            _advance(climbs, curvature, f, unit, movable, proposal)
        X[climbs.row], values[climbs.row] = climbs.x, climbs.value
    return X, values


def _propose(climbs: _Climbs, curvature: _Curvature, movable: Bools | bool) -> _Proposal:
    """The quasi-Newton step of every climb, clipped to the cube."""
    x, grad = climbs.x, climbs.grad
    moving: Bools = np.where(grad > 0.0, x < 1.0, x > 0.0)  # not held by a face
    if movable is not True:
        moving &= movable
    slope = np.where(moving, grad, 0.0)
    trial = curvature.times(slope, moving)
    trial *= climbs.shortening[:, None]
    trial += x
    trial = _in_cube(trial)
    step = trial - x
    promise = np.vecdot(slope, step)
    if not promise.min(initial=np.inf) > 0.0:
        # Nothing moves, or clipping has turned the step downhill: take the gradient, which clipping cannot turn.
        lost = ~(promise > 0.0)
        length = FIRST_STEP * climbs.shortening[lost] / np.maximum(np.abs(slope[lost]).max(axis=1), TINY)
        trial[lost] = _in_cube(x[lost] + length[:, None] * slope[lost])
        step[lost] = trial[lost] - x[lost]
        promise[lost] = np.vecdot(slope[lost], step[lost])
    return _Proposal(moving, trial, step, promise)


def _in_cube(x: Floats) -> Floats:
    """The points clipped to the cube, in place."""
    return np.minimum(np.maximum(x, 0.0, out=x), 1.0, out=x)


def _ended(climbs: _Climbs, promise: Floats, tolerance: float) -> Bools | None:
    """Climbs that have arrived, have nowhere to go, or would go on shortening a step for less than the tolerance.

    None where all go on: the rule, and quickly found.
    """
    if promise.min(initial=np.inf) > tolerance:
        return None
    idle = (climbs.gain <= tolerance) | (climbs.shortening < 1.0)
    return ~(promise > np.where(idle, tolerance, 0.0))


def _beaten(climbs: _Climbs, promise: Floats, behind: Floats) -> Bools:
    """Climbs too far behind the best value found, and climbs that have come near a better one."""
    beaten: Bools = behind > HOPE * np.maximum(promise, climbs.gain)
    if len(climbs.row) == 1:
        return beaten
    near: Bools = np.asarray((np.abs(climbs.x[:, None, :] - climbs.x) < NEAR).all(axis=2))
    if np.count_nonzero(near) > len(near):  # not only to themselves
        order = np.argsort(behind, kind="stable")
        beaten[order] |= np.tril(near[np.ix_(order, order)], -1).any(axis=1)
    return beaten


def _advance(
    climbs: _Climbs, curvature: _Curvature, f: ValueAndGrad, unit: float, movable: Bools | bool, proposal: _Proposal
) -> None:
    """Evaluate one trial point per climb; move there and learn, or shorten the step."""
    moving, trial, step, promise = proposal
    value, grad = f(trial)
    finite = _is_finite(value, grad, movable)
    grad = grad / unit
    gain = value - climbs.value
    gain /= unit
    shortening = np.ones(len(trial))
    moved = gain >= ARMIJO * promise
    moved &= finite
    if not moved.all():
        shortening = np.where(moved, 1.0, climbs.shortening * share_to_keep(promise, np.where(finite, gain, -np.inf)))
        column = moved[:, None]
        trial, grad = np.where(column, trial, climbs.x), np.where(column, grad, climbs.grad)
        value, gain = np.where(moved, value, climbs.value), np.where(moved, gain, climbs.gain)
    y = np.where(moving, climbs.grad - grad, 0.0)  # nothing where the climb has not moved
    sy = np.vecdot(step, y)
    good = _is_curved(step, y, sy)
    curvature.learn(step, y, sy, good)
    moved &= ~good
    if moved.any():
        curvature.grow(moved)
    climbs.x, climbs.value, climbs.grad, climbs.gain, climbs.shortening = trial, value, grad, gain, shortening


def share_to_keep(promise: Floats | float, gain: Floats | float) -> Floats:
    """How much of a step to keep that has brought too little of what its slope promised.

    The parabola with this slope at the start and this gain at the end has its top at that share of the step; where the
    gain is no number, or the top is next to the start, a tenth.
    """
    return np.minimum(np.fmax(0.5 * promise / (promise - gain), 0.1), 0.5)


def _is_finite(value: Floats, grad: Floats, movable: Bools | bool) -> Bools:
    # A sum is finite only if all its terms are; where finite terms overflow, the point is of no use either.
    sums = np.add.reduce(grad, axis=1, where=movable)
    sums += value
    return np.asarray(np.isfinite(sums))


def _metric(lengths: Floats | None, d: int) -> Floats:
    """Squared lengths, relative to each other: inverse second derivatives are expected in proportion to them."""
    return np.ones(d) if lengths is None else np.asarray(np.exp(2.0 * (np.log(lengths) - np.log(lengths).mean())))


def _unit(values: Floats, scale: float | None) -> float:
    if scale is None:
        scale = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0))
    return scale if TINY < scale < np.inf else 1.0


def _checked(starts: Floats, free: Bools | None) -> tuple[Floats, Bools | bool]:
    """The starts as an array, and which coordinates may move: True if all may, which numpy takes for such a mask."""
    X = np.array(starts, dtype=np.float64)
    if X.ndim != 2 or not ((X >= 0.0) & (X <= 1.0)).all():
        raise InvalidInputError(f"starts must be points (m, d) of the unit cube; got {starts!r}")
    movable = np.ones(X.shape[1], dtype=bool) if free is None else np.asarray(free)
    if movable.shape != (X.shape[1],) or movable.dtype != np.bool_:
        raise InvalidInputError(f"free must be a boolean mask of shape ({X.shape[1]},); got {free!r}")
    return X, bool(movable.all()) or movable
