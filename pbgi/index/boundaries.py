"""Where going on with a box that is paid in stages stops paying: the recursion over its stages.

Let u be the mean of the prize, as far as it is known, less a sure prize g that may be kept instead. After stage r

    psi_R(u) = max(u, 0),    psi_r(u) = max(0, E psi_{r+1}(u + s Z) - price),    s, price of stage r + 1,

is what going on is worth. It is convex, zero up to a boundary and of slope one at the end, so it is the shortfall
psi_r(u) = E max(u - X_r, 0) of a random number X_r, and the recursion is one about random numbers,

    X_R = 0,    X_r = max(X_{r+1} + s Z, boundary_r),    E max(boundary_r - X_{r+1} - s Z, 0) = price:

add noise, then cut off what lies below the boundary that the price allows. All shortfalls are log-concave, so that
Newton's method (here Halley's, on the logarithm) finds each boundary from above without a bracket.
"""

import numpy as np

from pbgi.arrays import Floats
from pbgi.index.gittins import inverse_log_h
from pbgi.index.smear import REACH, Bumps, Points, density, panels, shortfall, steep

# Of the price of a stage, what may be left out of its integral.
LEFT_OUT = 1e-12
# How many deviations a bump is taken to reach: exp(-7^2/2) is 2e-11.
TAIL = 7.0
# Up to this many of the narrowest deviations a law gets panels that are right for all noise: simpler, and few.
MOST_EVEN = 60.0
MOST_STEPS = 100
# Halley's method triples the digits: after a step of this many deviations the next one would be rounding.
LAST_STEP = 1e-6


class Boundaries:
    """The boundaries of a batch of boxes, from the last stage backward; deviations and prices are of order one.

    Args:
        stds: Deviation of what each stage reveals, (boxes, R), positive.
        prices: Price of each stage, (boxes, R), positive.

    Attributes:
        places: The boundaries after 0, ..., R - 1 stages and the end, 0: (boxes, R + 1).
        finishing: Probability that a box at the boundary of a stage is paid to the end and kept, (boxes, R).
        between: Deviation of what the stages r + 1, ..., k reveal together, at [:, r, k].
    """

    def __init__(self, stds: Floats, prices: Floats) -> None:
        self.n_boxes, self.n_stages = stds.shape
        self._prices = prices
        self.between = _deviations_between(stds)
        remaining = np.cumsum(prices[:, ::-1], axis=1)[:, ::-1]
        spread = self.between[:, :-1, -1]
        # One payment for all that is left is never better than stages.
        self._highest = spread * inverse_log_h(np.log(remaining) - np.log(spread))
        self._windows = self._all_windows()
        nothing = np.zeros(self.n_boxes)
        # The laws of X_1, ..., X_R, each with its own boundary for an origin: boundaries may be so far apart that a
        # common origin would round away what is near another.
        self._laws = [Points(nothing, nothing[:, None], np.ones((self.n_boxes, 1)), nothing == 0, nothing)]
        self.places = np.zeros((self.n_boxes, self.n_stages + 1))
        self._rises = np.zeros((self.n_boxes, self.n_stages))
        self.finishing = np.empty((self.n_boxes, self.n_stages))
        for stage in range(self.n_stages - 1, -1, -1):
            self._cut(stage)
            if stage > 0:
                self._laws.insert(0, self._law(stage))

    def distances(self, stage: int) -> Floats:
        """How far the boundaries after `stage`, `stage` + 1, ..., R stages lie above the one after `stage`."""
        rises = np.cumsum(self._rises[:, stage:], axis=1)
        return np.concatenate([np.zeros((self.n_boxes, 1)), -rises], axis=1)

    def noisy(self, stage: int) -> list[Points]:
        """X_{stage+1}, X_{stage+2}, ..., seen from the boundary of `stage`, with what all stages up to them add."""
        above = self.distances(stage)[:, 1:]
        noise = self.between[:, stage, stage + 1 :]
        return [
            law.seen(-above[:, back], noise[:, back])
            for back, law in enumerate(self._laws[len(self._laws) - above.shape[1] :])
        ]

    def needed(self, stage: int, to: int) -> Floats:
        """How far up from the boundary of `stage` anything matters to the first `to` stages (those before it)."""
        reach = self.windows(stage, to) * self.between[:, :to, stage]
        needed: Floats = np.max(self._highest[:, :to] - self.places[:, stage, None] + reach, axis=1)
        return np.maximum(needed, 0.0)

    def windows(self, stage: int, to: int) -> Floats:
        """Beyond so many deviations, less than LEFT_OUT of the price of each of the first `to` stages is lost."""
        return self._windows[:, :to, stage]

    def _all_windows(self) -> Floats:
        windows = np.zeros(self.between.shape)
        before, after = np.triu_indices(self.n_stages, 1)
        log_left_out = np.log(self._prices[:, before]) + np.log(LEFT_OUT)
        beyond = -inverse_log_h(log_left_out - np.log(self.between[:, before, after]))
        windows[:, before, after] = np.maximum(TAIL, beyond)
        return windows

    def _cut(self, stage: int) -> None:
        """Find where the shortfall is the price; the slope there is the probability to finish.

        Far above a boundary what lies below it has been paid: there it is the shortfall from the law before, at both
        prices.
        """
        rise, slope, target = np.empty(self.n_boxes), np.empty(self.n_boxes), np.zeros(self.n_boxes)
        start = self._highest[:, stage] - self.places[:, stage + 1]
        todo = np.ones(self.n_boxes, dtype=bool)
        laws = self.noisy(stage)
        for back, law in enumerate(laws):
            target = target + self._prices[:, stage + back]
            last = back == len(laws) - 1
            here = todo & (law.even | last)
            unsure = todo & ~here
            if unsure.any():
                some = law.of(unsure)
                here[unsure] = shortfall(some.at + REACH * some.noise, some)[0] >= target[unsure]
            if here.any():
                # Further up its points are too far apart.
                high = np.minimum(start, np.where(law.even | last, np.inf, law.at + REACH * law.noise))
                rise[here], slope[here] = _root(law.of(here), target[here], high[here])
            todo &= ~here
            if not todo.any():
                break
        self._rises[:, stage] = rise
        self.places[:, stage] = self.places[:, stage + 1] + rise
        self.finishing[:, stage] = slope

    def _law(self, stage: int) -> Points:
        """X_stage, seen from its boundary: an atom there and a density above."""
        before, after = self.between[:, :stage, stage], self.between[:, stage, stage + 1 :]
        above = self.distances(stage)[:, 1:]
        top = np.maximum(np.minimum(self.needed(stage, stage), np.max(above + TAIL * after, axis=1)), 0.0)
        even = top <= MOST_EVEN * np.minimum(before[:, -1], after[:, 0])
        window = self.windows(stage, stage)
        ends = np.concatenate([(REACH + window) * before, above + REACH * after], axis=1)
        first, narrow = steep(window[:, -1:], before[:, -1:])
        ends = np.concatenate([first, np.where(even[:, None], np.inf, ends)], axis=1)
        bumps = Bumps(np.full(ends.shape, -np.inf), ends, np.concatenate([narrow, before, after], axis=1))
        nodes = panels(bumps, top)
        nothing = np.zeros(self.n_boxes)
        return Points(
            at=nothing,
            place=np.concatenate([nothing[:, None], nodes.place], axis=1),
            mass=np.concatenate(
                [self.finishing[:, stage, None], nodes.weight * density(nodes.place, self.noisy(stage))], axis=1
            ),
            even=even,
            noise=nothing,
        )


def _deviations_between(stds: Floats) -> Floats:
    n_boxes, n_stages = stds.shape
    variance = np.zeros((n_boxes, n_stages + 1, n_stages + 1))
    for k in range(1, n_stages + 1):
        for r in range(k - 1, -1, -1):
            variance[:, r, k] = variance[:, r + 1, k] + stds[:, r] ** 2
    deviations: Floats = np.sqrt(variance)
    return deviations


def _root(law: Points, target: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where the shortfall of a law is the target, and its slope there; not above `high`.

    In its lower tail the logarithm of the shortfall is nearly a parabola; further up it is itself nearly a line.
    """
    # X is not below the last truncation, and beyond 40 deviations nothing is left of a shortfall.
    low = law.at - 40.0 * law.noise
    high = np.maximum(low, high)
    u, slope = high, np.empty(high.size)
    for _ in range(MOST_STEPS):
        value, slope, curvature = shortfall(u, law)
        low, high = np.where(value < target, u, low), np.where(value < target, high, u)
        excess, ratio = np.log(value / target), value / slope
        tail = curvature * ratio / slope  # from 1 in the lower tail of a bump to 0 far above
        # Half the second derivative of the logarithm, over the square of the first, is (tail - 1) / 2.
        halley = excess * ratio / np.maximum(1.0 - 0.5 * excess * (tail - 1.0), 0.5)
        step = np.where((tail > 0.5) | (np.abs(excess) < 0.5), halley, (value - target) / slope)
        # Where the shortfall has underflowed nothing is known but that the root lies above.
        new = np.where(np.isfinite(step), np.clip(u - step, low, high), 0.5 * (low + high))
        slope, step, u = slope - curvature * (u - new), u - new, new
        if np.all(np.abs(step) <= LAST_STEP * law.noise):
            break
    return u, slope
