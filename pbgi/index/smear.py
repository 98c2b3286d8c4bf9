"""What a Gaussian does to a weighted set of points, where a few points stand for a density.

The recursion of `boundaries.py` holds the law of a random number X as points with masses: an atom, and above it a
density at the nodes of Gauss-Legendre panels. Adding Gaussian noise asks for sums over these points alone, all of
them of positive terms: no digits are lost however small a probability is. A panel is right for noise that is not much
narrower than itself. Where noise is narrower, one looks further back: to the law before the last truncation, whose
place is then so far away that it makes no difference, with the noise of both stages.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pbgi.arrays import Bools, Floats

# A panel is at most this many times as wide as the narrowest bump on it or the narrowest noise that is added to it.
# What is integrated is then a product of bumps, not narrower than 0.7 times that: so many nodes do it to 1e-11.
LIMIT = 30.0
NODES_PER_WIDTH, FIRST_NODES = 1.6, 8
# From this many deviations on a truncation makes no difference: exp(-7^2/2) is 2e-11, and a price is far less than one.
REACH = 7.0
# A density that falls faster than with this many deviations has a panel for its first FALLEN e-folds.
STEEP, FALLEN = 12.0, 40.0
MOST_PANELS = 1000
# Numbers computed at a time: few enough for the processor's cache.
TOGETHER = 1 << 17
INV_SQRT_2PI = 1.0 / np.sqrt(2.0 * np.pi)


@dataclass(frozen=True)
class Points:
    """The law of X for a batch of boxes: points with masses, to which noise of deviation `noise` is added.

    Attributes:
        at: Where X was truncated last: (boxes,).
        place: The points, (boxes, n).
        mass: Their masses, (boxes, n).
        even: Whether the points are close enough for all noise to come, wherever it is added: (boxes,).
        noise: Deviation of what is added, (boxes,).
    """

    at: Floats
    place: Floats
    mass: Floats
    even: Bools
    noise: Floats

    def seen(self, origin: Floats, noise: Floats) -> "Points":
        """The same from another origin, with other noise."""
        return replace(self, at=self.at - origin, place=self.place - origin[:, None], noise=noise)

    def of(self, boxes: Bools) -> "Points":
        """Those of some of the boxes."""
        if boxes.all():
            return self
        return Points(self.at[boxes], self.place[boxes], self.mass[boxes], self.even[boxes], self.noise[boxes])


def density(x: Floats, laws: list[Points], reach: float | Floats = REACH) -> Floats:
    """Density of X + noise at the points x, (boxes, m).

    Args:
        x: The points.
        laws: Of X after its last truncation, before it, before the one before, ..., with all noise that came since.
        reach: From how many deviations on a truncation makes no difference.
    """
    return _by_law(_bumps, x, laws, reach)


def cumulative(x: Floats, laws: list[Points]) -> Floats:
    """P(X + noise <= x), with the arguments of `density`."""
    return _by_law(_steps, x, laws, REACH)


def _by_law(
    sums: Callable[[Floats, Floats, Floats, Floats], Floats], x: Floats, laws: list[Points], reach: float | Floats
) -> Floats:
    """Sums over the points of a law, at each x over those of the last law whose truncation is in reach."""
    out = np.empty(x.shape)
    open_ = np.ones(x.shape, dtype=bool)
    for number, law in enumerate(laws):
        end = np.where(law.even | (number == len(laws) - 1), np.inf, law.at + reach * law.noise)
        here = open_ & (x <= end[:, None])
        if here.all():
            return sums(x, law.place, law.mass, law.noise)
        open_ &= ~here
        box, column = np.nonzero(here)
        if box.size:
            out[box, column] = sums(x[here][:, None], law.place[box], law.mass[box], law.noise[box])[:, 0]
    return out


def _bumps(x: Floats, place: Floats, mass: Floats, noise: Floats) -> Floats:
    scale = np.sqrt(0.5) / noise[:, None]
    x, place = x * scale, place * scale
    sums = np.empty(x.shape)
    together = max(1, TOGETHER // max(1, x.shape[1] * place.shape[1]))
    for first in range(0, len(x), together):
        some = slice(first, first + together)
        z = x[some, :, None] - place[some, None, :]
        np.multiply(z, z, out=z)
        np.negative(z, out=z)
        np.exp(z, out=z)
        sums[some] = np.matmul(z, mass[some, :, None])[:, :, 0]
    sums *= INV_SQRT_2PI / noise[:, None]
    return sums


def _steps(x: Floats, place: Floats, mass: Floats, noise: Floats) -> Floats:
    from scipy.special import ndtr  # late, as in `shortfall`

    z = (x[:, :, None] - place[:, None, :]) / noise[:, None, None]
    sums: Floats = np.matmul(ndtr(z), mass[:, :, None])[:, :, 0]
    return sums


def shortfall(u: Floats, law: Points) -> tuple[Floats, Floats, Floats]:
    """E max(u - X - noise, 0) at one u per box, with its first two derivatives."""
    from scipy.special import erfc  # late: it takes three times as long to import as the rest of the package

    scale = -np.sqrt(0.5) / law.noise
    z = (u * scale)[:, None] - law.place * scale[:, None]
    tail = 0.5 * erfc(z)
    bump = np.exp(-z * z)
    value = INV_SQRT_2PI * bump - np.sqrt(2.0) * z * tail
    sums = [np.einsum("bn,bn->b", x, law.mass) for x in (np.maximum(value, 0.0), tail, bump)]
    return law.noise * sums[0], sums[1], (INV_SQRT_2PI / law.noise) * sums[2]


@dataclass(frozen=True)
class Bumps:
    """Features of a density, or of what will be added to it: where they start and end, and how wide they are."""

    start: Floats  # (boxes, n)
    end: Floats
    width: Floats


@dataclass(frozen=True)
class Panels:
    """Nodes and weights of a Gauss-Legendre rule on panels that follow each other from 0 on, (boxes, n) each."""

    place: Floats
    weight: Floats
    lengths: Floats  # (boxes, panels)

    def below(self, values: Floats) -> tuple[Floats, Floats]:
        """Integral of a function from 0 to each node, (boxes, n), and to the end, (boxes,), by its values there."""
        n_boxes, n_panels = self.lengths.shape
        shape = (n_boxes, n_panels, -1)
        inside = self.lengths[:, :, None] * (values.reshape(shape) @ _integrals(values.shape[1] // n_panels).T)
        whole = np.cumsum(np.sum((self.weight * values).reshape(shape), axis=2), axis=1)
        inside[:, 1:] += whole[:, :-1, None]
        return inside.reshape(values.shape), whole[:, -1]


def panels(bumps: Bumps, top: Floats) -> Panels:
    """Panels from 0 to `top` that see all bumps; boxes that need fewer than others have empty ones at their end."""
    edges, widest = [np.zeros(top.shape)], 0.0
    for _ in range(MOST_PANELS):
        here = edges[-1]
        if len(edges) > 1 and not np.any(here < top):
            break
        active = (bumps.start <= here[:, None]) & (here[:, None] < bumps.end)
        narrowest = np.where(active, bumps.width, np.inf).min(axis=1)
        coming = np.where(bumps.start > here[:, None], bumps.start, np.inf).min(axis=1)
        step = np.maximum(LIMIT * narrowest, 4.0 * np.spacing(here))
        edges.append(np.maximum(here, np.minimum(np.minimum(here + step, coming), top)))
        length = edges[-1] - here
        widest = max(widest, float(np.max(np.where(np.isfinite(narrowest), length / narrowest, 0.0))))
    bounds = np.stack(edges, axis=1)
    unit, weights = _gauss_legendre(FIRST_NODES + int(np.ceil(NODES_PER_WIDTH * min(widest, LIMIT))))
    lengths = np.diff(bounds, axis=1)
    nodes = bounds[:, :-1, None] + lengths[:, :, None] * unit
    shape = (top.size, -1)
    return Panels(nodes.reshape(shape), (lengths[:, :, None] * weights).reshape(shape), lengths)


def steep(deviations: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """End and width of a bump that stands for a density falling like exp(-deviations x / noise) from 0 on."""
    end = np.where(deviations > STEEP, FALLEN / deviations, np.inf) * noise
    return end, end / LIMIT


@cache
def _gauss_legendre(n: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (1.0 + nodes), 0.5 * weights


@cache
def _integrals(n: int) -> Floats:
    """What turns the values of a polynomial at the n nodes on [0, 1] into its integrals from 0 to each of them."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    values = np.polynomial.legendre.legvander(nodes, n)
    # The integral of P_k is (P_{k+1} - P_{k-1}) / (2k + 1); that of P_0 is P_1 + P_0.
    before = np.concatenate([-values[:, :1], values[:, : n - 1]], axis=1)
    coefficients = 0.5 * values[:, :n] * weights[:, None]
    integrals: Floats = 0.5 * (values[:, 1:] - before) @ coefficients.T
    return integrals
