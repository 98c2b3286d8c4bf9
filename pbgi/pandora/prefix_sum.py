"""Sums of log P(prize < x) over the first boxes of an order, at many points at once.

Value and spend of the Pandora's Box policy are made of log P(no prize among the first n boxes reaches x), at about as
many pairs (n, x) as there are boxes. Term by term that is quadratic: 10^10 terms for 100,000 boxes. But the sum over
a block of boxes is a smooth function of x, so a whole block is replaced by a polynomial on the points that lie below
it: halve the boxes, let the first half speak to all points of the second by interpolation, and repeat inside both.
Where the function is not smooth (few points, discrete prizes) the terms are summed as they are.
"""

import numpy as np
from numpy.polynomial import chebyshev

from pbgi.arrays import Floats, Ints
from pbgi.pandora.rewards import Rewards

# exp(-60) is 1e-26: once the sum is below, the probability does not matter to any result.
NEGLIGIBLE = -60.0
DEGREE = 16
# Interpolation is trusted when its last coefficients are this small. Rounding in a sum of 100,000 terms is a tenth
# of it: a smaller bound would take noise for roughness and fall back to summing term by term.
TOLERANCE = 1e-12
SMALL_BLOCK = 64
# A term this small is left out: 10,000 of them do not reach rounding error.
NOTHING = -1e-20
MOST_TERMS_AT_ONCE = 1 << 16

_NODES = chebyshev.chebpts1(DEGREE + 1)
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_NODES, DEGREE))


def prefix_log_cdf(rewards: Rewards, order: Ints, n_first: Ints, x: Floats) -> Floats:
    """Logarithm of P(every prize among the first `n_first[k]` boxes of `order` is below `x[k]`), for every k.

    Args:
        rewards: The prizes of all boxes.
        order: Box numbers.
        n_first: How many boxes of the order count, not falling with k.
        x: Points, not rising with k; so the result does not rise with k.

    Returns:
        The logarithms; -inf where they are below NEGLIGIBLE.
    """
    total = np.where(np.isposinf(x), 0.0, -np.inf)
    first, last = int(np.count_nonzero(np.isposinf(x))), _n_relevant(rewards, order, n_first, x)
    if first < last:
        finite = slice(first, last)
        sums = _PrefixSums(rewards, order, n_first[finite], x[finite])
        total[finite] = sums.total
    return total


def _n_relevant(rewards: Rewards, order: Ints, n_first: Ints, x: Floats) -> int:
    """How many leading points have a sum above NEGLIGIBLE (it does not rise along the points)."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) // 2
        value = rewards.log_cdf(order[: n_first[middle]], x[middle : middle + 1]).sum()
        low, high = (middle + 1, high) if value > NEGLIGIBLE else (low, middle)
    return low


class _PrefixSums:
    """The recursion, with the running totals."""

    def __init__(self, rewards: Rewards, order: Ints, n_first: Ints, x: Floats) -> None:
        self._rewards, self._order, self._n_first, self._x = rewards, order, n_first, x
        self.total = np.zeros(x.size)
        self._add_prefixes(0, order.size, 0, x.size)

    def _add_prefixes(self, low: int, high: int, first: int, last: int) -> None:
        """Add, to each of the points first..last, those of the boxes low..high that are among its own."""
        if first >= last or low >= high:
            return
        if high - low <= SMALL_BLOCK:
            counts = np.arange(low, high) < self._n_first[first:last, None]
            terms = self._log_cdf(self._order[low:high], self._x[first:last])
            self.total[first:last] += np.where(counts, terms, 0.0).sum(axis=1)
            return
        middle = (low + high) // 2
        split = first + int(np.searchsorted(self._n_first[first:last], middle, side="right"))
        self._add_whole(self._order[low:middle], split, last)
        self._add_prefixes(low, middle, first, split)
        self._add_prefixes(middle, high, split, last)

    def _add_whole(self, boxes: Ints, first: int, last: int) -> None:
        """Add all of the boxes to the points first..last, by interpolation where that is exact."""
        if first >= last:
            return
        # The lowest point is the one where a box counts most.
        at_bottom = self._log_cdf(boxes, self._x[last - 1 : last])[0]
        boxes = boxes[at_bottom < NOTHING]
        if boxes.size == 0:
            return
        if last - first <= DEGREE + 1:
            self.total[first:last] += self._block(boxes, self._x[first:last])
        elif self._x[first] == self._x[last - 1]:
            self.total[first:last] += at_bottom.sum()
        else:
            self._interpolate(boxes, first, last)

    def _interpolate(self, boxes: Ints, first: int, last: int) -> None:
        bottom, top = self._x[last - 1], self._x[first]
        center, half = 0.5 * (bottom + top), 0.5 * (top - bottom)
        values = self._block(boxes, center + half * _NODES)
        coefficients = _TO_COEFFICIENTS @ values
        if np.abs(coefficients[-3:]).max() <= TOLERANCE:
            u = (self._x[first:last] - center) / half
            self.total[first:last] += np.asarray(chebyshev.chebval(u, coefficients), dtype=np.float64)
            return
        split = first + int(np.searchsorted(-self._x[first:last], -center))
        split = min(max(split, first + 1), last - 1)
        self._add_whole(boxes, first, split)
        self._add_whole(boxes, split, last)

    def _block(self, boxes: Ints, x: Floats) -> Floats:
        """The sum over the boxes at the points x, a bounded number of terms at a time."""
        width = max(1, MOST_TERMS_AT_ONCE // x.size)
        chunks = (boxes[start : start + width] for start in range(0, boxes.size, width))
        sums: Floats = np.sum([self._log_cdf(chunk, x).sum(axis=1) for chunk in chunks], axis=0)
        return sums

    def _log_cdf(self, boxes: Ints, x: Floats) -> Floats:
        return self._rewards.log_cdf(boxes, x)
