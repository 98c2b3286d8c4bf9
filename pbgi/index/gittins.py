"""The Gittins index of a box with a Gaussian prize: the scalar inverse on which everything else stands.

A box whose prize is N(mean, std^2) and whose opening costs `cost` has the index g that solves

    EI(g) = std * h((mean - g) / std) = cost_scale * cost,      h(z) = phi(z) + z * Phi(z),            (paper, eq. 7)

so g = mean - std * z, where z is the root of log h(z) = log(cost_scale * cost / std). Working with logarithms keeps
every quantity finite for prices and spreads from 1e-300 to 1e300, and makes one form serve all of them.

Three quantities carry the whole module, writing hazard = phi/Phi and r = h/Phi = z + hazard at the root z:

    dg/dmean = 1        dg/dstd = hazard        dg/dlog_cost = -std * r
    hazard' = -hazard * r     r' = 1 - hazard * r     dz/dlog_ratio = r          (' is d/dz)

The family is closed under differentiation, which is why torch can differentiate it any number of times.

The numerics are written once and run on NumPy arrays (float64) and on torch tensors (float32, float64, any device).
Torch is never imported unless a tensor comes in.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pbgi.index.arguments import LOG_COST_RULE, Array, Backend, finish, numpy_backend, prepare, require_finite

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
SQRT_HALF = math.sqrt(0.5)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)

# Beyond this distance from zero 1/m - a (see `_mills`) has lost two digits, and a continued fraction of
# FRACTION_DEPTH levels is exact to 3e-15; on this side erfcx is the better one.
FRACTION_FROM = 8.0
FRACTION_DEPTH = 14
# Halley triples the digits with each step: two steps from `_start`, which is within 0.13 of the root everywhere. What a
# search meets is in a table of polynomials (`_tabled`), exact to rounding: singularities of the root are at a distance
# of more than one from the real axis, so that 8 nodes to a cell leave (TABLE_STEP / 4)^8 = 4e-15 at worst.
TABLE_FROM, TABLE_TO, TABLE_STEP, TABLE_NODES = -256.0, 4.0, 0.0625, 8
# Where log_ratio is less than this the root, and all steps towards it, are below zero (the root is -0.5 there).
CLEARLY_BELOW = -1.6
# Tensors of up to this many numbers are computed by NumPy: two hundred small operations take torch several times as
# long to start, and a GPU longer still. (At 20 numbers half the time on a CPU, a quarter on a GPU; even at 10,000.)
SMALL = 4096


class _Point(NamedTuple):
    """What is known at z; `a`, `product` and `tail` are about |z|."""

    z: Array
    below: Array  # z <= 0
    a: Array  # |z|
    product: Array  # h(-a) / phi(a)
    tail: Array  # h(-a)
    h_above: Array  # h(a)
    hazard: Array  # phi(z) / Phi(z)
    r: Array  # h(z) / Phi(z)


def log_h(z: Array) -> Array:
    """Logarithm of h(z) = phi(z) + z * Phi(z), the expected improvement of a standard Gaussian over -z.

    Args:
        z: Finite numbers of any shape.

    Returns:
        log h(z), of the shape of `z`. For tensors, differentiable any number of times.
    """
    return log_h_and_grad(z)[0]


def log_h_and_grad(z: Array) -> tuple[Array, Array]:
    """`log_h(z)` and its derivative Phi(z) / h(z)."""
    backend, (z,) = prepare(z=z)
    require_finite("z", z, backend)
    with np.errstate(all="ignore"):
        value, derivative, _ = _run(backend, _log_h_outputs, _log_h_partials, z)
    return finish(value), finish(derivative)


def inverse_log_h(log_ratio: Array) -> Array:
    """The z with log h(z) = log_ratio.

    Error in float64: at most 4 eps (max(1, |z|) + |log_ratio| * dz/dlog_ratio), from log_ratio = -1e12 to 700.
    Beyond log_ratio = 709 the root exceeds the largest float64, which is then the answer.

    Args:
        log_ratio: Finite numbers of any shape; in the index, log(cost_scale * cost / std).

    Returns:
        The root, of the shape of `log_ratio`. For tensors, differentiable any number of times.
    """
    backend, (log_ratio,) = prepare(log_ratio=log_ratio)
    require_finite("log_ratio", log_ratio, backend)
    with np.errstate(all="ignore"):
        return finish(_run(backend, _inverse_outputs, _inverse_partials, log_ratio)[0])


def gittins_index(mean: Array, std: Array, log_cost: Array) -> Array:
    """Gittins index of a box with prize N(mean, std^2): the certain prize that is worth as much as the box.

    Args:
        mean: Mean of the prize (larger is better); finite.
        std: Standard deviation of the prize; finite, not negative. `std = 0` gives `mean - exp(log_cost)`.
        log_cost: log(cost_scale * cost): the logarithm of the price in units of the prize; finite.

    Returns:
        The index, of the shape to which the arguments broadcast. Indices beyond the largest number of the dtype are
        that number. For tensors, differentiable any number of times.

    Raises:
        InvalidInputError: An argument breaks its rule, or the shapes do not broadcast.
    """
    return gittins_index_and_grad(mean, std, log_cost)[0]


def gittins_index_and_grad(mean: Array, std: Array, log_cost: Array) -> tuple[Array, Array, Array]:
    """The index with its derivatives in `std` and in `log_cost` (the one in `mean` is 1).

    Arguments and errors are those of `gittins_index`.

    Returns:
        `(index, dindex_dstd, dindex_dlog_cost)`, each of the shape to which the arguments broadcast.
    """
    backend, (mean, std, log_cost) = prepare(mean=mean, std=std, log_cost=log_cost)
    require_finite("mean", mean, backend)
    require_finite("std", std, backend, "finite and not negative", least=0.0)
    require_finite("log_cost", log_cost, backend, LOG_COST_RULE)
    with np.errstate(all="ignore"):
        offset, hazard, slope = _run(backend, _index_outputs, _index_partials, std, log_cost)
        index = _at_most(backend, _at_least(backend, mean + offset, -backend.largest), backend.largest)
    return finish(index), finish(hazard), finish(-slope)


# The mathematics, on arrays of one shape and dtype ----------------------------------------------------------------


def _at_most(backend: Backend, x: Array, bound: float) -> Array:
    """The smaller of both; np.clip would take longer than all the arithmetic around it on small arrays."""
    return np.minimum(x, bound) if backend.xp is np else x.clamp(max=bound)


def _at_least(backend: Backend, x: Array, bound: float) -> Array:
    return np.maximum(x, bound) if backend.xp is np else x.clamp(min=bound)


def _mills(backend: Backend, a: Array) -> tuple[Array, Array]:
    """Mills ratio m = Phi(-a)/phi(a) and r = 1/m - a = h(-a)/Phi(-a), for a >= 0.

    r loses a^2 eps to cancellation when taken from erfcx; far out it is a continued fraction with no difference in it,
    r = 1/(a + 2/(a + 3/(a + ...))), and there m = 1/(a + r).
    """
    xp = backend.xp
    m = SQRT_HALF_PI * backend.erfcx(SQRT_HALF * a)
    r = 1.0 / m - a
    # The fraction is a quarter of the work and rarely needed. A device is not asked: the answer would make it wait.
    if xp is np and a.size and a.max() <= FRACTION_FROM:
        return m, r
    far = a > FRACTION_FROM
    fraction = a
    for k in range(FRACTION_DEPTH, 1, -1):
        fraction = a + k / fraction
    r = xp.where(far, 1.0 / fraction, r)
    return xp.where(far, 1.0 / (a + r), m), r


def _at(backend: Backend, z: Array) -> _Point:
    """All of it from one erfcx: h(-a) = phi(a) r m, h(a) = a + h(-a), Phi(a) = 1 - phi(a) m."""
    xp = backend.xp
    a = xp.abs(z)
    m, r = _mills(backend, a)
    density = INV_SQRT_2PI * xp.exp(-(0.5 * a) * a)
    product = r * m
    tail = density * product
    cdf, h_above = 1.0 - density * m, a + tail
    below = z <= 0
    return _Point(
        z=z,
        below=below,
        a=a,
        product=product,
        tail=tail,
        h_above=h_above,
        hazard=xp.where(below, a + r, density / cdf),
        r=xp.where(below, r, h_above / cdf),
    )


def _start(backend: Backend, log_ratio: Array, ratio: Array) -> Array:
    """A first root, within 0.13 everywhere (0.05 near zero).

    Above zero z = ratio - h(-z) with h(-z) close to an exponential that has the right value and slope at z = 0.
    """
    xp = backend.xp
    above = ratio - INV_SQRT_2PI * xp.exp(2.0 * SQRT_HALF_PI * _at_most(backend, INV_SQRT_2PI - ratio, 0.0))
    return xp.where(log_ratio > -LOG_SQRT_2PI, above, -_start_below(backend, log_ratio))


def _start_below(backend: Backend, log_ratio: Array) -> Array:
    """Minus a first root below zero.

    There h(-t) is close to phi(t) / q(t), q(t) = 1 + t sqrt(pi/2) + t^2, exact to second order at both ends: one Newton
    step on t^2 + 2 log q(t) = s.
    """
    xp = backend.xp
    s = -2.0 * _at_most(backend, log_ratio + LOG_SQRT_2PI, 0.0)
    t = s / (2.0 * SQRT_HALF_PI + xp.sqrt(s))
    q = 1.0 + t * (SQRT_HALF_PI + t)
    return t - (t * t + 2.0 * xp.log(q) - s) / (2.0 * t + 2.0 * (SQRT_HALF_PI + 2.0 * t) / q)


def _halley(backend: Backend, z: Array, log_ratio: Array, ratio: Array) -> Array:
    """One Halley step on f(z) = log h(z) - log_ratio: f' = 1/r, f''/f'^2 = -(1 - hazard r)."""
    xp = backend.xp
    at = _at(backend, z)
    # Below zero the large parts of f cancel first; above zero log1p keeps the digits that log(h) would round away.
    f_below = (-(0.5 * at.a) * at.a - log_ratio) + (xp.log(at.product) - LOG_SQRT_2PI)
    f = xp.where(at.below, f_below, xp.log1p((at.h_above - ratio) / ratio))
    return z - f * at.r / (1.0 + 0.5 * f * (1.0 - at.hazard * at.r))


def _root(backend: Backend, log_ratio: Array) -> _Point:
    """The point where log h(z) = log_ratio."""
    if backend.xp is not np or not log_ratio.size:
        return _at(backend, _searched(backend, log_ratio))
    if _is_tabled(log_ratio):
        return _at(backend, _tabled(log_ratio))
    inside = (log_ratio >= TABLE_FROM) & (log_ratio < TABLE_TO)
    return _at(backend, np.where(inside, _tabled(np.where(inside, log_ratio, 0.0)), _searched(backend, log_ratio)))


def _searched(backend: Backend, log_ratio: Array) -> Array:
    """The root by two Halley steps."""
    ratio = _at_most(backend, backend.xp.exp(log_ratio), backend.largest)
    z = _start(backend, log_ratio, ratio)
    for _ in range(2):
        z = _halley(backend, z, log_ratio, ratio)
    return z


def _root_below(backend: Backend, log_ratio: Array) -> tuple[Array, Array, Array]:
    """(-z, hazard, r) of `_root`, to the bit, where all roots are tabled and clearly below zero: a third of the work.

    Such are nearly all the points that a search for the next trial looks at.
    """
    t = -_tabled(log_ratio)
    _, r = _mills(backend, t)
    return t, t + r, r


# A table of roots, for NumPy only: a device would have to be sent it.


def _is_tabled(log_ratio: Array) -> bool:
    return bool(log_ratio.min() >= TABLE_FROM and log_ratio.max() < TABLE_TO)


def _tabled(log_ratio: Array) -> Array:
    """Roots by the table, for log_ratio between its ends."""
    cell = ((log_ratio - TABLE_FROM) * (1.0 / TABLE_STEP)).astype(np.intp)
    # From the middle of the cell, which is a float: the difference is exact.
    share = (log_ratio - (cell * TABLE_STEP + (TABLE_FROM + 0.5 * TABLE_STEP))) * (1.0 / TABLE_STEP)
    powers = np.empty((*share.shape, TABLE_NODES))
    powers[..., 0], powers[..., 1:] = 1.0, share[..., None]
    np.multiply.accumulate(powers, axis=-1, out=powers)
    return np.vecdot(powers, _table().take(cell, axis=0))


@cache
def _table() -> Array:
    """Coefficients (cells, TABLE_NODES) of the polynomials through the roots at Chebyshev nodes of every cell."""
    # One cell more than is asked for: just below the upper end a position may be rounded up.
    middles = np.arange(TABLE_FROM + 0.5 * TABLE_STEP, TABLE_TO + TABLE_STEP, TABLE_STEP)
    shares = 0.5 * np.cos(np.pi * (np.arange(TABLE_NODES) + 0.5) / TABLE_NODES)
    roots = _searched(numpy_backend(), middles[:, None] + TABLE_STEP * shares)
    return np.ascontiguousarray(np.linalg.solve(np.vander(shares, increasing=True), roots.T).T)


# What the public functions return, with partial derivatives for torch ----------------------------------------------


def _log_h_outputs(backend: Backend, z: Array) -> tuple[Array, ...]:
    """(log h, its derivative 1/r, hazard)."""
    xp = backend.xp
    at = _at(backend, z)
    log_tail = xp.log(at.product) - LOG_SQRT_2PI - (0.5 * at.a) * at.a
    value = xp.where(at.below, log_tail, xp.log(at.h_above))
    return _at_least(backend, value, -backend.largest), 1.0 / at.r, at.hazard


def _log_h_partials(_inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[tuple[Array, ...], ...]:
    _, inverse_r, hazard = outputs
    r = 1.0 / inverse_r
    return (inverse_r,), (-inverse_r * inverse_r * (1.0 - hazard * r),), (-hazard * r,)


def _inverse_outputs(backend: Backend, log_ratio: Array) -> tuple[Array, ...]:
    """(z, hazard, r)."""
    root = _root(backend, log_ratio)
    return root.z, root.hazard, root.r


def _inverse_partials(_inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[tuple[Array, ...], ...]:
    _, hazard, r = outputs
    return (r,), (-hazard * r * r,), (r * (1.0 - hazard * r),)


def _index_outputs(backend: Backend, std: Array, log_cost: Array) -> tuple[Array, ...]:
    """(index - mean, hazard, std * r).

    For z > 0 all are written around the price itself: mean - std * z would cancel, and std * z would be 0 * inf
    where std is so small that z overflows.
    """
    xp = backend.xp
    if xp is np and std.size and std.min() > 0:
        log_ratio = log_cost - np.log(std)
        if log_ratio.max() < CLEARLY_BELOW and log_ratio.min() >= TABLE_FROM:
            t, hazard, r = _root_below(backend, log_ratio)
            return std * t, hazard, std * r
    certain = std == 0
    root = _root(backend, log_cost - xp.log(xp.where(certain, 1.0, std)))
    price = _at_most(backend, xp.exp(log_cost), backend.largest)
    above = certain | (root.z > 0)
    hazard = xp.where(certain, 0.0, root.hazard)
    tail = xp.where(certain, 0.0, root.tail)
    offset = xp.where(above, std * tail - price, -std * root.z)
    return offset, hazard, xp.where(above, price + std * (hazard - tail), std * root.r)


def _index_partials(inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[tuple[Array, ...], ...]:
    """Rows: offset, hazard, slope = std * r. Columns: std, log_cost."""
    std, _ = inputs
    _, hazard, slope = outputs
    # Where hazard has underflowed (r > 38, or std = 0) every product with it is zero and r itself may not be finite.
    alive = hazard > 0
    safe_std = std.where(alive, 1.0)
    r = slope.where(alive, 0.0) / safe_std
    hazard_r_r = hazard * r * r
    return (hazard, -slope), (hazard_r_r / safe_std, -hazard_r_r), (hazard_r_r, slope * (1.0 - hazard * r))


# Through NumPy or torch --------------------------------------------------------------------------------------------


def _run(backend: Backend, outputs: Any, partials: Any, *inputs: Array) -> tuple[Array, ...]:
    if backend.xp is np:
        return tuple(outputs(backend, *inputs))
    from pbgi.index.autograd import closed, through_numpy

    if inputs[0].dtype == backend.xp.float64 and inputs[0].numel() <= SMALL:
        return closed(through_numpy(lambda *arrays: outputs(numpy_backend(), *arrays)), partials, *inputs)
    return closed(lambda *tensors: outputs(backend, *tensors), partials, *inputs)
