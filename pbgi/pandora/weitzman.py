"""Weitzman's rule for boxes at one cost scale: the indices, the order of opening, what it spends and what it earns."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats, Ints
from pbgi.pandora.prefix_sum import prefix_log_cdf
from pbgi.pandora.quadrature import graded, integrate_panels
from pbgi.pandora.rewards import Rewards

MOST_DOUBLINGS = 200


@dataclass(frozen=True, eq=False)
class Rule:
    """Open boxes in `order` as long as the best prize is below the next index."""

    cost_scale: float
    indices: Floats
    order: Ints
    spend: float


def rule_at(rewards: Rewards, costs: Floats, cost_scale: float) -> Rule:
    """The rule that is optimal when every cost counts `cost_scale` times, and its expected spend.

    At `cost_scale = 0` it is the limit from above: an index is the largest possible prize, and boxes that tie there
    are opened in the order of their indices at a small cost.
    """
    if cost_scale > 0:
        indices = snap(rewards.index(cost_scale * costs), rewards.corners)
        order = np.argsort(-indices, kind="stable")
    else:
        with np.errstate(over="ignore"):  # of costs that are next to nothing
            widest = min(float(np.max(rewards.spread / costs)), sys.float_info.max)
        small = 1e-9 * widest or 1e-9
        indices = rewards.sup
        order = np.lexsort((-rewards.index(small * costs), -indices))
    return Rule(cost_scale, indices, order, _spend(rewards, costs, indices, order))


def _spend(rewards: Rewards, costs: Floats, indices: Floats, order: Ints) -> float:
    """Sum of c_i P(every prize before i in the order is below index_i), the probability that i is opened."""
    log_opened = prefix_log_cdf(rewards, order, np.arange(order.size), indices[order])
    return float(costs[order] @ np.exp(log_opened))


def snap(indices: Floats, corners: Floats) -> Floats:
    """Make indices equal that differ by rounding only, from each other or from a possible prize.

    Whether a tie is a tie decides what is spent (not the net value), so it must not hang on the last bit.
    """
    points = np.concatenate([corners, indices])
    order = np.argsort(points, kind="stable")
    ordered = points[order]
    gaps = np.diff(ordered) > 1e-14 * np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    cluster = np.empty(points.size, np.intp)
    cluster[order] = np.concatenate([[0], np.cumsum(gaps)])
    representative = np.full(cluster.max() + 1, np.nan)
    # Later writes win: a cluster is represented by its corner where it has one.
    representative[cluster[::-1]] = points[::-1]
    return representative[cluster[corners.size :]]


def expected_net(rewards: Rewards, rule: Rule) -> float:
    """E max_i min(prize_i, index_i): the best prize minus cost_scale times the spend, in expectation.

    The maximum has the distribution function P(x) = product of P(prize_i < x) over the boxes with index above x, so
    its mean is m + (integral of 1 - P above m) - (integral of P below m) for any m; the one near the median of the
    maximum costs no digits.
    """
    ordered = rule.indices[rule.order]

    def log_p(x: Floats) -> Floats:
        falling = np.argsort(-x.ravel(), kind="stable")
        points = x.ravel()[falling]
        out = np.empty(points.size)
        n_above = np.searchsorted(-ordered, -points, side="left")
        out[falling] = prefix_log_cdf(rewards, rule.order, n_above, points)
        return out.reshape(x.shape)

    edges = _edges(rewards, ordered, log_p)
    at_edges = log_p(edges)
    negligible = np.flatnonzero(np.isneginf(at_edges))
    if negligible.size:
        edges, at_edges = edges[negligible[-1] :], at_edges[negligible[-1] :]
    middle = edges[int(np.argmin(np.abs(np.exp(at_edges) - 0.5)))]

    def beside_middle(x: Floats) -> Floats:
        log_probability = log_p(x)
        return np.where(x > middle, -np.expm1(log_probability), -np.exp(log_probability))

    return float(middle + integrate_panels(beside_middle, edges))


def _edges(rewards: Rewards, ordered: Floats, log_p: Callable[[Floats], Floats]) -> Floats:
    """Where P jumps, bends or turns steep, from where it is nothing to where it is one."""
    edges = np.unique(np.concatenate([ordered, rewards.corners, [rewards.mean.max()]]))
    edges = edges[np.isfinite(edges) & (edges <= ordered[0])]
    edges = edges if edges.size else np.array([ordered[0]])
    edges = _extend(edges, log_p, float(np.max(rewards.spread)) or 1.0, endless=bool(np.isinf(ordered[0])))
    # A prize changes P around its mean: an edge there, unless the panels are narrower than the prize is wide.
    panel = np.clip(np.searchsorted(edges, rewards.mean), 1, edges.size - 1)
    steep = (edges[panel] - edges[panel - 1] > rewards.spread) & (rewards.mean > edges[0]) & (rewards.mean < edges[-1])
    edges = np.unique(np.concatenate([edges, rewards.mean[steep]]))
    positive = rewards.spread[rewards.spread > 0]
    return graded(edges, float(positive.min())) if positive.size else edges


def _extend(edges: Floats, log_p: Callable[[Floats], Floats], unit: float, *, endless: bool) -> Floats:
    """Add edges at doubling distances until nothing is left to integrate below, and above if `endless`."""
    below, above = [], []
    distance = unit
    for _ in range(MOST_DOUBLINGS):
        below.append(edges[0] - distance)
        if np.exp(log_p(np.array(below[-1:]))[0]) * distance <= 1e-18 * unit:
            break
        distance *= 2.0
    distance = unit
    for _ in range(MOST_DOUBLINGS if endless else 0):
        above.append(edges[-1] + distance)
        if -np.expm1(log_p(np.array(above[-1:]))[0]) * distance <= 1e-18 * unit:
            break
        distance *= 2.0
    return np.concatenate([below[::-1], edges, above])
