"""A monotone map between the values that are told and the numbers that the model sees, learned from the values.

A Gaussian process takes its values for Gaussian. Losses are not: a few bad trials span many times the range of the
good ones, and a model of the losses themselves sees little but the bad ones. So the model sees z = T(y), made anew from
all values at every step:

    s = (y - median) / interquartile range, asinh(s) where a value is beyond ten of it, then standardized
    z = the Yeo-Johnson transform of s whose parameter is the likeliest, standardized

T is evaluated at evenly spaced z between the worst and the best value and is straight between these knots; beyond the
first and the last it goes on straight. That has three consequences:

* The map has an inverse everywhere, whatever the parameter; Yeo-Johnson's own range may be bounded.
* Expectations of y = T^-1(z) for a Gaussian z are finite sums. With h(u) = phi(u) + u Phi(u), slopes q = dy/dz on the
  pieces and u_k = (mean - z_k) / std at the knots,

      E[(y - g)+] = std * (q_top h(u_top) + sum over pieces between g and the top of q (h(u_low) - h(u_high))).

* Beyond the best value y is a straight function of z: there expected improvement in users' units is that in warped
  units times the slope at the top, and every policy that compares points by it chooses the same point in both.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from pbgi.arrays import Bools, Floats
from pbgi.gp.algebra import LARGEST, rounded
from pbgi.index import gittins_index, gittins_index_and_grad, log_h

N_KNOTS = 129
# What the model sees is rounded to multiples of this. Where b is a million times the spread of y, digits of y below
# 1e-10 of it are lost in a * y + b, and a climb turns such an error into one of 1e-8 or more. Rounded, the numbers are
# those of y but once in thirty thousand. It is a thousandth of the least noise that is learned.
WARP_QUANTUM = 2.0**-20
# Values beyond this many interquartile ranges go through asinh first: no power of Yeo-Johnson's bends so much.
FAR = 10.0
FARTHEST = 1e300  # interquartile ranges: what is further away than a float can say is that far
# Parameters of Yeo-Johnson that are compared; 1 is the identity. Larger values are better, so the tail of bad values is
# the lower one, which parameters above 1 draw in.
PARAMETERS = np.linspace(-3.0, 5.0, 65)
PRIOR_STD = 2.0  # of the parameter around 1: a few values have a likeliest parameter far from it, whatever they are
TINY = float(np.finfo(np.float64).tiny)
LARGEST_LOG = 700.0  # exp of which is finite
STEEPEST = 1e100  # standard deviations: next to no deviation makes more of them than a float holds


@dataclass(frozen=True, eq=False)
class Warp:
    """A strictly increasing map, straight between its knots and beyond them.

    Attributes:
        values: (k,) Knots in users' units, less the origin, ascending; larger is better.
        warped: (k,) The same knots as the model sees them, ascending.
        origin: What all values have in common: beside a large offset, differences of knots would lose their digits.
    """

    values: Floats
    warped: Floats
    origin: float = 0.0

    @cached_property
    def slopes(self) -> Floats:
        """(k - 1,) The slopes dy/dz between knots."""
        with np.errstate(over="ignore", under="ignore"):
            slopes: Floats = np.diff(self._share * self.values) / np.diff(self.warped)
        return np.clip(slopes, TINY, self._share * LARGEST) / self._share

    @cached_property
    def _share(self) -> float:
        """A half where the range of the values may be two largest floats, of which no difference could be taken."""
        return 0.5 if float(np.abs(self.values).max()) > 0.25 * LARGEST else 1.0

    @cached_property
    def _unit(self) -> float:
        """A power of two near the largest slope: sums over pieces are taken in it, where none overflows."""
        return math.ldexp(1.0, math.frexp(float(self.slopes.max()))[1] - 1)

    @property
    def top_slope(self) -> float:
        """The slope dy/dz beyond the best value."""
        return float(self.slopes[-1])

    def to_warped(self, values: Floats) -> Floats:
        """What the model sees of values (n,)."""
        return self._along(self._share * self.values, self.warped, self._share * (np.asarray(values) - self.origin))

    def to_values(self, warped: Floats) -> Floats:
        """Numbers (n,) of the model, in users' units."""
        shares = self._along(self.warped, self._share * self.values, warped)
        limit = self._share * LARGEST
        with np.errstate(over="ignore"):
            values = np.clip(shares, -limit, limit) / self._share + self.origin
        return np.asarray(np.clip(values, -LARGEST, LARGEST))

    def log_improvement(self, mean: Floats, std: Floats, value: float) -> Floats:
        """The logarithm of E[(y - value)+], y = T^-1(z), for Gaussian z with these means (m,) and deviations (m,)."""
        threshold = self.to_warped(np.array([value]))
        above = self.warped[1:-1] > threshold
        slopes = self.slopes[len(self.slopes) - 1 - above.sum() :] / self._unit
        thresholds = np.append(threshold, self.warped[1:-1][above])
        with np.errstate(divide="ignore", under="ignore"):
            h = np.exp(log_h(_deviations(mean[:, None], std[:, None], thresholds)))
            sums = np.log(std * (slopes[0] * h[:, 0] + h[:, 1:] @ np.diff(slopes))) + math.log(self._unit)
            # What lies beyond the top is less, and has a logarithm also where the sum underflows.
            z = _deviations(mean, std, max(float(threshold[0]), self._top_break))
            return np.asarray(np.maximum(sums, math.log(self.top_slope) + np.log(std) + log_h(z)))

    def index(self, mean: Floats, std: Floats, log_cost: Floats) -> Floats:
        """The warped Gittins index: T(g) for the g with E[(y - g)+] = cost, for m boxes of Gaussian z."""
        straight = log_cost - math.log(self.top_slope)
        below = self._is_below(mean, std, straight)
        if below.any():
            straight[below] = self._below(mean[below], std[below], log_cost[below]).log_cost
        index: Floats = gittins_index(mean, std, straight)
        return index

    def index_and_grad(self, mean: Floats, std: Floats, log_cost: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The warped index and its derivatives in the mean, the standard deviation and the logarithm of the cost."""
        straight = log_cost - math.log(self.top_slope)
        below = self._is_below(mean, std, straight)
        if below.any():
            found = self._below(mean[below], std[below], log_cost[below])
            straight[below] = found.log_cost
        index, by_std, by_log_cost = gittins_index_and_grad(mean, std, straight)
        by_mean = np.ones_like(index)
        if below.any():
            # From dG = -q Phi(u) dw at the index w: the pieces above it move with the mean and the deviation too.
            with np.errstate(under="ignore"):
                u = _deviations(mean[below], std[below], index[below])
                weight = np.maximum(found.slope * ndtr(u), TINY)  # in units of slope, as all of it
                by_mean[below] = 1.0 + found.mass / weight
                by_std[below] = (found.slope * _density(u) + found.density) / weight
                log_weight = np.log(weight) + math.log(self._unit)
                by_log_cost[below] = -np.exp(np.minimum(log_cost[below] - log_weight, LARGEST_LOG))
        return index, by_mean, by_std, by_log_cost

    @property
    def _top_break(self) -> float:
        """Where the last piece begins."""
        return float(self.warped[-2])

    def _is_below(self, mean: Floats, std: Floats, straight: Floats) -> Bools:
        """Which indices lie below the last piece, where the map is not that of the straight line beyond the top."""
        if len(self.slopes) == 1:
            return np.zeros(len(mean), dtype=np.bool_)
        return np.asarray(np.log(std) + log_h(_deviations(mean, std, self._top_break)) < straight)

    def _below(self, mean: Floats, std: Floats, log_cost: Floats) -> "_Below":
        """The pieces of indices below the last one.

        With u_k at the breaks between pieces, E[(y - g)+] on piece j is std * (q_j h(u) + sum over breaks k above it of
        (q_(k+1) - q_k) h(u_k)): the first term is that of a straight line, and the rest does not depend on the index.
        """
        slopes = self.slopes / self._unit
        breaks, steps = self.warped[1:-1], np.diff(slopes)
        with np.errstate(under="ignore", over="ignore"):
            u = _deviations(mean[:, None], std[:, None], breaks)
            h = np.exp(log_h(u))
            rest = std[:, None] * _sum_from_right(h * steps)  # (m, pieces)
            at_breaks = slopes[1:] * std[:, None] * h + rest[:, 1:]
            cost = np.exp(np.minimum(log_cost - math.log(self._unit), LARGEST_LOG))
            piece = (at_breaks > cost[:, None]).sum(axis=1)
            at = np.arange(len(mean)), piece
            slope = slopes[piece]
            straight = np.log(np.maximum(cost - rest[at], TINY)) - np.log(slope)
            return _Below(
                log_cost=straight,
                slope=slope,
                mass=_sum_from_right(ndtr(u) * steps)[at],
                density=_sum_from_right(_density(u) * steps)[at],
            )

    @staticmethod
    def _along(knots: Floats, heights: Floats, points: Floats) -> Floats:
        """Heights at points of the line through the knots, which goes on straight beyond its ends."""
        piece = np.clip(np.searchsorted(knots, points, side="right") - 1, 0, len(knots) - 2)
        low, high = heights[piece], heights[piece + 1]
        with np.errstate(over="ignore"):
            share = (points - knots[piece]) / (knots[piece + 1] - knots[piece])
            inside = low + share * (high - low)
        # At a knot from above and from below the same, to the last bit.
        return np.asarray(np.where(share == 1.0, high, inside))


IDENTITY = Warp(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
"""For models that take values as they are."""


class _Below(NamedTuple):
    """Indices below the last piece: the log cost that gives them on a straight line, and what lies above the piece.

    Slopes are in the warp's unit of them.
    """

    log_cost: Floats
    slope: Floats
    mass: Floats
    density: Floats


def _deviations(mean: Floats, std: Floats, at: Floats | float) -> Floats:
    """How many deviations the mean is above a point."""
    with np.errstate(over="ignore"):
        return np.clip((mean - at) / std, -STEEPEST, STEEPEST)


def _density(u: Floats) -> Floats:
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi))


def _sum_from_right(terms: Floats) -> Floats:
    """Of terms (m, k) the sums of all from each on, and zero at the end, (m, k + 1)."""
    sums = np.zeros((len(terms), terms.shape[1] + 1))
    np.cumsum(terms[:, ::-1], axis=1, out=sums[:, -2::-1])
    return sums


# Learning it ---------------------------------------------------------------------------------------------------------


def fit_warp(values: Floats) -> Warp:
    """The warp learned from values (n,), at least one; straight where fewer than three differ."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return _shifted(low)
    origin = _in_common(values)
    values, low, high = values - origin, low - origin, high - origin
    # Powers of two are exact, and keep differences and squares of the largest floats finite.
    exponent = int(np.frexp(np.abs(values).max())[1]) + 1
    chain = _Chain.fit(np.ldexp(values, -exponent))
    worst, best = chain.forward(np.ldexp(np.array([low, high]), -exponent)).tolist()
    warped = np.linspace(worst, best, N_KNOTS if chain.parameter != 1.0 or chain.bends else 2)
    knots = np.ldexp(chain.backward(warped), exponent)
    knots[0], knots[-1] = low, high
    rises = np.append(True, knots[1:] > np.maximum.accumulate(knots)[:-1])  # rounding may make neighbors equal
    distinct = rises & np.append(knots[:-1] < high, True)
    return Warp(knots[distinct], warped[distinct], origin)


def _in_common(values: Floats) -> float:
    """One of the values, from which the difference of every other is exact; zero if they are too far apart for that."""
    middle = float(np.sort(values)[len(values) // 2])
    return middle if np.abs(0.5 * values - 0.5 * middle).max() <= 0.25 * abs(middle) else 0.0


def _shifted(value: float) -> Warp:
    """The map that takes a value to zero and leaves differences as they are."""
    step = math.copysign(max(abs(value), 1.0), -value)  # towards zero, where no float overflows
    ends = np.sort([0.0, step])
    return Warp(value + ends, ends)


@dataclass(frozen=True)
class _Chain:
    """Scaling, asinh where values lie far out, and Yeo-Johnson."""

    center: float
    scale: float
    bends: bool
    parameter: float
    middle: float  # of the scaled values
    spread: float
    mean: float  # of the transformed ones
    std: float

    @classmethod
    def fit(cls, values: Floats) -> "_Chain":
        """Learned from values that are not all alike."""
        center, scale = _robust_center_and_scale(values)
        scaled = _scaled(values, center, scale)
        bends = bool(np.abs(scaled).max() > FAR)
        scaled = rounded(np.arcsinh(scaled) if bends else scaled, WARP_QUANTUM)
        middle, spread = float(scaled.mean()), float(scaled.std(ddof=1)) or 1.0
        s = (scaled - middle) / spread
        parameter = _likeliest(s) if len(np.unique(s)) > 2 else 1.0  # of two values nothing but the scale is learned
        z = yeo_johnson(s, parameter)
        return cls(center, scale, bends, parameter, middle, spread, float(z.mean()), float(z.std(ddof=1)) or 1.0)

    def forward(self, values: Floats) -> Floats:
        scaled = _scaled(values, self.center, self.scale)
        s = ((np.arcsinh(scaled) if self.bends else scaled) - self.middle) / self.spread
        return np.asarray((yeo_johnson(s, self.parameter) - self.mean) / self.std)

    def backward(self, warped: Floats) -> Floats:
        scaled = self.middle + self.spread * inverse_yeo_johnson(self.mean + self.std * warped, self.parameter)
        return np.asarray(self.center + self.scale * (np.sinh(scaled) if self.bends else scaled))


def _scaled(values: Floats, center: float, scale: float) -> Floats:
    """In units of the scale, within what a float holds: beside one huge value the others have hardly any spread."""
    with np.errstate(over="ignore"):
        return np.clip((values - center) / scale, -FARTHEST, FARTHEST)


def _robust_center_and_scale(values: Floats) -> tuple[float, float]:
    """The median, and the interquartile range or, where that is zero, a wider one: most values may be alike."""
    ascending = np.sort(values)  # once, where `np.quantile` takes a twentieth of the time of a suggestion
    center = _quantile(ascending, 0.5)
    for outside in (0.25, 0.1, 0.0):
        low, high = _quantile(ascending, outside), _quantile(ascending, 1.0 - outside)
        if high > low:
            return center, high - low
    raise AssertionError("values all alike have no scale")


def _quantile(ascending: Floats, share: float) -> float:
    """Between the values that it lies between, linearly."""
    position = share * (len(ascending) - 1)
    below = min(int(position), len(ascending) - 2)
    low, high = ascending[below : below + 2].tolist()
    return float(low + (position - below) * (high - low))


def _likeliest(s: Floats) -> float:
    """The likeliest parameter, if the transformed values are Gaussian (Yeo and Johnson 2000)."""
    transformed = yeo_johnson(s, PARAMETERS[:, None])
    slope = float(np.sum(np.copysign(np.log1p(np.abs(s)), s)))
    log_likelihood = (PARAMETERS - 1.0) * slope - 0.5 * len(s) * np.log(transformed.var(axis=1))
    log_prior = -0.5 * ((PARAMETERS - 1.0) / PRIOR_STD) ** 2
    return float(PARAMETERS[(log_likelihood + log_prior).argmax()])


def yeo_johnson(s: Floats, parameter: Floats | float) -> Floats:
    """((1 + s)^p - 1) / p for s >= 0, and -((1 - s)^(2 - p) - 1) / (2 - p) for s < 0."""
    magnitude, power = np.log1p(np.abs(s)), np.where(s >= 0.0, parameter, 2.0 - np.asarray(parameter))
    flat = np.abs(power) < 1e-12
    bent = np.expm1(power * magnitude) / np.where(flat, 1.0, power)
    return np.copysign(np.where(flat, magnitude, bent), s)


def inverse_yeo_johnson(z: Floats, parameter: float) -> Floats:
    """The s whose transform is z."""
    power = np.where(z >= 0.0, parameter, 2.0 - parameter)
    flat = np.abs(power) < 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = np.log1p(power * np.abs(z)) / np.where(flat, 1.0, power)
    return np.copysign(np.expm1(np.where(flat, np.abs(z), bent)), z)
