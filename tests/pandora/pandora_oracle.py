"""Small Pandora's Box problems solved the long way, in exact fractions: what the fast solution is tested against."""

import itertools
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from pbgi.pandora import Box, Discrete


class Exact(NamedTuple):
    """A box with a discrete prize: values with their probabilities, and its cost, all fractions."""

    outcomes: tuple[tuple[Fraction, Fraction], ...]
    cost: Fraction

    def box(self) -> Box:
        values, probabilities = zip(*self.outcomes, strict=True)
        return Box(Discrete([float(v) for v in values], [float(p) for p in probabilities]), float(self.cost))

    def index(self, cost_scale: Fraction) -> Fraction:
        """The g with E max(prize - g, 0) = cost_scale * cost, by trying every set of values above g."""
        values = sorted(self.outcomes, reverse=True)
        for k in range(1, len(values) + 1):
            mass = sum((p for _, p in values[:k]), Fraction(0))
            if mass == 0:
                continue
            g = (sum((p * v for v, p in values[:k]), Fraction(0)) - cost_scale * self.cost) / mass
            if k == len(values) or values[k][0] <= g:
                return g
        raise AssertionError("no index")


class Point(NamedTuple):
    """What a policy spends and earns, in expectation."""

    spend: Fraction
    value: Fraction


def random_problem(rng: np.random.Generator) -> tuple[Exact, ...]:
    """A few boxes on a coarse lattice, so that ties, equal boxes and values of no probability are common."""
    boxes = []
    for _ in range(rng.integers(1, 5)):
        n = rng.integers(1, 4)
        weights = rng.integers(0, 4, n)
        weights[rng.integers(n)] += 1
        outcomes = tuple((Fraction(int(rng.integers(-2, 6))), Fraction(int(w), int(weights.sum()))) for w in weights)
        boxes.append(Exact(outcomes, Fraction(int(rng.integers(1, 6)), 2)))
    if rng.random() < 0.3:
        boxes.append(boxes[0])
    return tuple(boxes)


def weitzman(boxes: tuple[Exact, ...], cost_scale: Fraction) -> Point:
    """Spend and value of the index policy that stops at ties, by following every branch."""
    indices = [box.index(cost_scale) for box in boxes]
    order = sorted(range(len(boxes)), key=lambda i: (-indices[i], i))

    def follow(step: int, best: Fraction | None) -> Point:
        if step == len(boxes) or (best is not None and best >= indices[order[step]]):
            return Point(Fraction(0), best if best is not None else Fraction(0))
        box = boxes[order[step]]
        spend, value = box.cost, Fraction(0)
        for v, p in box.outcomes:
            after = follow(step + 1, v if best is None else max(best, v))
            spend, value = spend + p * after.spend, value + p * after.value
        return Point(spend, value)

    return follow(0, None)


def frontier(boxes: tuple[Exact, ...]) -> list[Point]:
    """The corners of what any policy, randomized ones included, can earn for what it spends, by rising spend.

    Every state of the game gets the upper hull of its own policies: of stopping, and of opening each closed box, whose
    hull is the probability-weighted Minkowski sum of the hulls of the states it leads to.
    """

    @cache
    def hull(closed: frozenset[int], best: Fraction | None) -> tuple[Point, ...]:
        points = [] if best is None else [Point(Fraction(0), best)]
        for i in closed:
            after = [
                (p, hull(closed - {i}, v if best is None else max(best, v))) for v, p in boxes[i].outcomes if p > 0
            ]
            points += [Point(boxes[i].cost + s, v) for s, v in _weighted_sum(after)]
        return tuple(_upper_hull(points))

    return list(hull(frozenset(range(len(boxes))), None))


def best_value(points: list[Point], budget: Fraction) -> Fraction:
    """The most any policy earns while spending at most the budget."""
    best = points[0].value
    for a, b in itertools.pairwise(points):
        if a.spend <= budget:
            share = min(Fraction(1), (budget - a.spend) / (b.spend - a.spend))
            best = max(best, a.value + share * (b.value - a.value))
    return best


def _upper_hull(points: Iterable[Point]) -> list[Point]:
    """Corners of the concave, rising upper boundary."""
    out: list[Point] = []
    for point in sorted(points, key=lambda q: (q.spend, -q.value)):
        if out and (point.spend == out[-1].spend or point.value <= max(q.value for q in out)):
            continue
        while len(out) >= 2 and _slope(out[-2], out[-1]) <= _slope(out[-1], point):
            out.pop()
        out.append(point)
    return out


def _slope(a: Point, b: Point) -> Fraction:
    return (b.value - a.value) / (b.spend - a.spend)


def _weighted_sum(hulls: list[tuple[Fraction, tuple[Point, ...]]]) -> list[Point]:
    """Minkowski sum of concave chains: all edges, steepest first."""
    at = Point(
        sum((p * hull[0].spend for p, hull in hulls), Fraction(0)),
        sum((p * hull[0].value for p, hull in hulls), Fraction(0)),
    )
    edges = [
        (p * (b.spend - a.spend), p * (b.value - a.value)) for p, hull in hulls for a, b in itertools.pairwise(hull)
    ]
    out = [at]
    for ds, dv in sorted(edges, key=lambda e: e[1] / e[0], reverse=True):
        out.append(Point(out[-1].spend + ds, out[-1].value + dv))
    return out
