"""Expected improvement of continuous prizes from a table, where adaptive integration would be called too often.

E max(prize - g, 0) is the integral of P(prize > x) above g. Between quantiles at which that probability (or, below the
median, its complement) changes by a factor e, it is so smooth that a fixed rule integrates it to rounding: so the
integral above each of these knots is stored, and one short integral leads from g to the next knot.
"""

from collections.abc import Callable

import numpy as np

from pbgi.arrays import Bools, Floats

# Probability below the first knot and above the last one.
LOWEST, HIGHEST = 1e-9, 1e-30
_UNIT_NODES, _UNIT_WEIGHTS = np.polynomial.legendre.leggauss(16)
NODES, WEIGHTS = 0.5 * (1.0 + _UNIT_NODES), 0.5 * _UNIT_WEIGHTS  # on [0, 1]


class ImprovementTable:
    """The table of all members of a family.

    Args:
        sf: P(prize > x) for an array whose last axis runs over the members.
        ppf: Quantiles, likewise.
        isf: Quantiles from above, likewise.
        above: The integral of sf from a point per member upwards, by adaptive integration.
    """

    def __init__(
        self,
        sf: Callable[[Floats], Floats],
        ppf: Callable[[Floats], Floats],
        isf: Callable[[Floats], Floats],
        above: Callable[[Floats], Floats],
    ) -> None:
        self._sf = sf
        lower = 0.5 * np.exp(-np.arange(-np.log(2 * LOWEST)))[::-1, None]
        upper = 0.5 * np.exp(-np.arange(1.0, -np.log(2 * HIGHEST)))[:, None]
        self._knots = np.concatenate([ppf(lower), isf(upper)])
        panels = self._integral(self._knots[:-1], self._knots[1:])
        tail = above(self._knots[-1])
        self._above = np.concatenate([panels, tail[None]])[::-1].cumsum(axis=0)[::-1]
        self.usable = self._check(panels)

    def covers(self, g: Floats) -> Bools:
        """Which members have their g between their first and last knot."""
        covered: Bools = self.usable & (g >= self._knots[0]) & (g <= self._knots[-1])
        return covered

    def improvement(self, g: Floats) -> Floats:
        """E max(prize - g, 0); only right where `covers` says so."""
        members = np.arange(g.size)
        above = np.clip((self._knots < g).sum(axis=0), 0, len(self._knots) - 1)
        to_knot = self._integral(g, self._knots[above, members])
        return np.asarray(to_knot + self._above[above, members])

    def _integral(self, low: Floats, high: Floats) -> Floats:
        """Integral of sf from low to high, by the fixed rule."""
        x = low[..., None, :] + (high - low)[..., None, :] * NODES[:, None]
        integral: Floats = (high - low) * np.einsum("q,...qm->...m", WEIGHTS, self._sf(x))
        return integral

    def _check(self, panels: Floats) -> Bools:
        """Whether halving every panel changes nothing: a bend inside one would show."""
        middle = 0.5 * (self._knots[:-1] + self._knots[1:])
        halves = self._integral(self._knots[:-1], middle) + self._integral(middle, self._knots[1:])
        # Near the end of a bounded support a panel is a few roundings of x wide; that much may differ.
        rounding = 4.0 * np.finfo(float).eps * np.abs(self._knots[:-1]) * self._sf(self._knots[:-1])
        with np.errstate(invalid="ignore"):
            smooth = np.abs(halves - panels) <= 1e-14 * np.abs(panels) + 1e-15 * self._above[:-1] + rounding
        rising = np.diff(self._knots, axis=0) >= 0
        return np.asarray(np.all(smooth & np.isfinite(panels) & rising, axis=0))
