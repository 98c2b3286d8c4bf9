"""Prizes by family: every question is asked of all prizes of one kind at once.

A problem may hold 100,000 boxes. The questions are: the index at a price, log P(prize < x), the largest possible
prize, and where the distribution function is not smooth.
"""

from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import integrate, special

from pbgi.arrays import Floats, Ints
from pbgi.index import gittins_index
from pbgi.pandora.improvement_table import ImprovementTable

# exp of it is zero in float64: log P is cut here so that sums of logs stay finite.
LOG_ZERO = -1000.0


class Family(Protocol):
    """Prizes of one kind; `members` are positions inside the family."""

    mean: Floats
    spread: Floats  # a typical distance from the mean; finite, not negative, only used to find a first guess
    sup: Floats  # the largest possible prize (the essential supremum), may be inf

    def index(self, price: Floats) -> Floats:
        """The g with E max(prize - g, 0) = price, for a positive price per member."""

    def log_cdf(self, members: Ints, x: Floats) -> Floats:
        """Logarithm of P(prize < x); shape (len(x), len(members)), not below LOG_ZERO."""

    def corners(self) -> Floats:
        """Finite points where some distribution function jumps or bends."""

    def sample(self, member: int, rng: np.random.Generator) -> float:
        """One prize."""


class GaussianFamily:
    """Prizes N(mean, std^2)."""

    def __init__(self, mean: Floats, std: Floats) -> None:
        self.mean, self.spread = mean, std
        self.sup = np.full(mean.shape, np.inf)

    def index(self, price: Floats) -> Floats:
        index: Floats = gittins_index(self.mean, self.spread, np.log(price))
        return index

    def log_cdf(self, members: Ints, x: Floats) -> Floats:
        u = (x[:, None] - self.mean[members]) / self.spread[members]
        # Beyond 30 the logarithm is -1e-197 and would soon be subnormal, which is a hundred times slower to add.
        log_cdf: Floats = special.log_ndtr(np.minimum(u, 30.0))
        return np.maximum(log_cdf, LOG_ZERO)

    def corners(self) -> Floats:
        return np.empty(0)

    def sample(self, member: int, rng: np.random.Generator) -> float:
        return float(rng.normal(self.mean[member], self.spread[member]))


class AtomsFamily:
    """Prizes with finitely many values each, kept one box after another."""

    def __init__(self, values: list[Floats], probabilities: list[Floats], sup: list[float]) -> None:
        self._values, self._probabilities = values, probabilities
        self._below = [np.concatenate([[0.0], np.minimum(np.cumsum(p), 1.0)]) for p in probabilities]
        for below in self._below:
            below[-1] = 1.0
        pairs = list(zip(values, probabilities, strict=True))
        self.mean = np.array([p @ v for v, p in pairs])
        self.spread = np.array([np.sqrt(p @ (v - p @ v) ** 2) for v, p in pairs])
        self.sup = np.array(sup)

    def index(self, price: Floats) -> Floats:
        """E max(prize - g, 0) is the largest, over k, of the sum over the k highest values: so g is the largest root.

        Values are taken relative to the highest, which costs no digits when all of them are far from zero.
        """
        out = np.empty(len(self._values))
        for i, (values, probabilities) in enumerate(zip(self._values, self._probabilities, strict=True)):
            top = values[-1]
            below_top = np.cumsum((probabilities * (values - top))[::-1])
            out[i] = top + np.max((below_top - price[i]) / np.cumsum(probabilities[::-1]))
        return out

    def log_cdf(self, members: Ints, x: Floats) -> Floats:
        below = [self._below[i][np.searchsorted(self._values[i], x, side="left")] for i in members]
        with np.errstate(divide="ignore"):
            log_cdf: Floats = np.log(np.array(below).T)
        return np.maximum(log_cdf, LOG_ZERO)

    def corners(self) -> Floats:
        return np.concatenate(self._values)

    def sample(self, member: int, rng: np.random.Generator) -> float:
        return float(rng.choice(self._values[member], p=self._probabilities[member]))


class ContinuousFamily:
    """Prizes of one scipy.stats family, with their parameters stacked."""

    def __init__(self, distribution: Any, frozen: list[Any]) -> None:
        self._distribution, self._frozen = distribution, frozen
        self._args = [np.array(column, dtype=float) for column in zip(*(f.args for f in frozen), strict=True)]
        self._kwds = {k: np.array([f.kwds[k] for f in frozen], dtype=float) for k in frozen[0].kwds}
        low, high = (np.array(column, dtype=float) for column in zip(*(f.support() for f in frozen), strict=True))
        self._inf, self.sup = low, high
        self.mean = np.array([f.mean() for f in frozen], dtype=float)
        everyone = np.arange(len(frozen))
        quartiles = self._of("ppf", np.array([[0.25], [0.75]]), everyone)
        self.spread = quartiles[1] - quartiles[0]
        self._table = ImprovementTable(
            sf=partial(self._of, "sf", members=everyone),
            ppf=partial(self._of, "ppf", members=everyone),
            isf=partial(self._of, "isf", members=everyone),
            above=lambda x: self._integral("sf", x, everyone, 1.0),
        )

    def _of(self, method: str, x: Floats, members: Ints) -> Floats:
        """A method of the distribution at x, whose last axis runs over the members."""
        kwds = {k: v[members] for k, v in self._kwds.items()}
        result: Floats = getattr(self._distribution, method)(x, *(a[members] for a in self._args), **kwds)
        return result

    def index(self, price: Floats) -> Floats:
        """Newton's method on the logarithm of the expected improvement, kept inside a bracket.

        E max(prize - g, 0) >= mean - g, so mean - price is at or below the root: the bracket starts there.
        """
        low, high = self.mean - price, self.sup.copy()
        g = low.copy()
        unsettled = np.arange(g.size)
        for _ in range(200):
            here = unsettled
            improvement, survival = self._improvement(g[here], here), self._of("sf", g[here], here)
            above = improvement >= price[here]
            low[here[above]], high[here[~above]] = g[here[above]], g[here[~above]]
            with np.errstate(all="ignore"):
                step = np.log(improvement / price[here]) * improvement / survival
            settled = np.abs(step) <= 1e-15 * np.abs(g[here]) + 1e-18 * self.spread[here]
            settled |= np.nextafter(low[here], np.inf) >= high[here]
            g[here] = np.where(settled, g[here], _inside(g[here] + step, low[here], high[here], self.spread[here]))
            unsettled = here[~settled]
            if unsettled.size == 0:
                break
        return g

    def _improvement(self, g: Floats, members: Ints) -> Floats:
        """E max(prize - g, 0) from the table, else by integrating P(prize > x) above g, or P(prize < x) below it."""
        everyone = self.mean.copy()
        everyone[members] = g
        tabled = self._table.covers(everyone)[members]
        out = self._table.improvement(everyone)[members]
        lower = ~tabled & (g < self.mean[members])
        upper = ~tabled & ~lower
        out[lower] = (self.mean[members] - g)[lower] + self._integral("cdf", g[lower], members[lower], -1.0)
        out[upper] = self._integral("sf", g[upper], members[upper], 1.0)
        return out

    def _integral(self, method: str, g: Floats, members: Ints, direction: float) -> Floats:
        """Integral of the cdf up to g (direction -1) or of the survival function from g on (direction +1)."""
        if g.size == 0:
            return g
        end = self.sup[members] if direction > 0 else self._inf[members]
        unit = np.maximum(self.spread[members], np.finfo(float).tiny)
        length = np.maximum(direction * (end - g) / unit, 0.0)

        def integrand(u: Floats, position: Floats) -> Floats:
            at = position.astype(np.intp)
            x = (g[at] + direction * unit[at] * u).T  # members last, as `_of` wants them
            return self._of(method, x, members[at.reshape(-1)]).T if x.ndim > 1 else self._of(method, x, members[at])

        result = integrate.tanhsinh(integrand, 0.0, length, args=(np.arange(g.size, dtype=float),), rtol=1e-13)
        return np.asarray(unit * result.integral)

    def log_cdf(self, members: Ints, x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.maximum(self._of("logcdf", x[:, None], members), LOG_ZERO)

    def corners(self) -> Floats:
        ends: Floats = np.concatenate([self._inf, self.sup])
        return ends[np.isfinite(ends)]

    def sample(self, member: int, rng: np.random.Generator) -> float:
        return float(self._frozen[member].rvs(random_state=rng))


def _inside(new: Floats, low: Floats, high: Floats, unit: Floats) -> Floats:
    """`new` where it lies strictly between the bounds, else the middle, else (no upper bound yet) a step up."""
    middle = np.where(np.isfinite(high), low + 0.5 * (np.where(np.isfinite(high), high, low) - low), low + unit)
    return np.where((new > low) & (new < high), new, middle)
