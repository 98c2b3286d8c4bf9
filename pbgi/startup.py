"""The first points, before a model can say anything: spread out, and not where the money would be gone.

A start must leave most of the budget to the search. Its points share at most START_SHARE of the budget: each may be
expected to cost its part of what is left of that share. Where the cost is learned, the first point is the middle of
the space, and the next ones go as far out as what has been paid so far makes affordable.
"""

import math
from collections.abc import Callable

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.best_point import cheap_points
from pbgi.condition import Conditions
from pbgi.cost import CostModel, fits
from pbgi.parameter import Categorical
from pbgi.search import build_pool
from pbgi.snapshot import Proposal, cost_of
from pbgi.space import Space

START_SHARE = 0.2  # aimed at, so that with the surprises of unknown costs it stays within a quarter
N_CANDIDATES = 512
FEWEST = 3
MOST_CHOICES = 8  # of a parameter with more, the search tries the rest
# Of what a branch would get if all got the same.
FAIR_SHARE = 0.5
# A point four times as dear must be about 1.4 times as far from the others to be preferred.
THRIFT = 0.25
# A start must not be ruined by one trial in the dark: a cost must fit its part of the share with a probability of 84 %.
START_WARINESS = 1.0


def default_n_startup(space: Space, *, stops_early: bool = False) -> int:
    """Half as many points as there are parameters, and enough for every choice of a parameter to be among them.

    The paper's 2 (d + 1) points take up most of a small budget before anything is learned from them
    (`benchmarks/quality_defaults.py --only starts` compares). Where a run may end because no trial is worth its price
    they are worth it: a few values on a plain say that there is nothing to be found. Where parameters depend on others
    every branch is a choice.
    """
    choices = max((len(p.choices) for p in space.parameters.values() if isinstance(p, Categorical)), default=0)
    fewest = 2 * (space.dimension + 1) if stops_early else (space.dimension + 1) // 2
    return max(FEWEST, fewest, min(max(choices, space.n_branches), MOST_CHOICES))


def start_point(
    space: Space,
    seen: Floats,
    cost: CostModel | None,
    allowance: float,
    excluded: Floats | None,
    rng: np.random.Generator,
    z: float = START_WARINESS,
    reach: float = 1.0,
    unruinous: Callable[[Floats], Bools] | None = None,
) -> Proposal | None:
    """A point far from those seen, cheap rather than dear.

    Args:
        space: Where points lie.
        seen: (k, d) Points handed out or told so far.
        cost: What is believed of costs; None if nothing is.
        allowance: What the point may be expected to cost; inf if anything.
        excluded: Points that must not be proposed, or None.
        rng: Source of randomness.
        z: How many deviations above its median a cost must fit the allowance.
        reach: How far from the middle of the space, of the way to its border, the point may lie.
        unruinous: Which points (m, d) would leave the budget whole in a bad case, beside the allowance; None for all.

    Returns:
        The point, or None if every point is excluded or too dear.
    """
    if cost is None and math.isfinite(allowance) and not len(seen):
        return Proposal(space.snap(np.full(space.dimension, 0.5)), None)
    pool = build_pool(space.dimension, rng, n_sobol=N_CANDIDATES)
    pool = space.snap(np.where(space.categorical, pool, 0.5 + reach * (pool - 0.5)))

    def allowed(X: Floats) -> Floats:
        X = _allowed(X, cost, allowance, excluded, z)
        return X if unruinous is None else np.asarray(X[unruinous(X)])

    candidates = allowed(pool)
    if not len(candidates) and cost is not None:
        candidates = allowed(cheap_points(space, cost, pool, excluded, rng))
    if not len(candidates):
        return None
    candidates = _least_tried(space, candidates, seen)
    log_cost = np.zeros(len(candidates)) if cost is None else cost.log_moment(candidates, 1.0)
    score = np.log(_distances(space, candidates, seen) + 1e-12) - THRIFT * log_cost
    # Sobol points come in mirrored pairs: rounded, so that equal scores stay equal whatever the unit of the costs.
    best = int(np.argmax(np.round(score, 9)))
    if cost is None:
        return Proposal(candidates[best], None)
    # What is expected of it, or what made it fit if that is less.
    admitted = float(cost.log_upper(candidates[best][None], z)[0])
    return Proposal(candidates[best], cost_of(min(float(log_cost[best]), admitted)))


def _allowed(X: Floats, cost: CostModel | None, allowance: float, excluded: Floats | None, z: float) -> Floats:
    """The points that are neither excluded nor too dear."""
    X = X[~_is_among(X, excluded)]
    return X if cost is None else np.asarray(X[fits(cost, X, allowance, z)])


def _least_tried(space: Space, candidates: Floats, seen: Floats) -> Floats:
    """The candidates in the branches with the fewest points seen, decided from the root of the tree on."""
    if space.conditions is None:
        return candidates
    theirs, ours = space.conditions.decisions(seen), space.conditions.decisions(candidates)
    alike = np.ones((len(candidates), len(seen)), dtype=np.bool_)  # so far
    for k in range(ours.shape[1]):
        alike &= ours[:, None, k] == theirs[:, k]
        n = alike.sum(axis=1)
        least = n == n.min()
        candidates, ours, alike = candidates[least], ours[least], alike[least]
    return candidates


def neglected_branch(conditions: Conditions, X: Floats, charges: Floats) -> tuple[int, ...]:
    """The branch that got less than FAIR_SHARE of an even share of what was spent (n,) at the points X (n, d).

    A model that has seen a branch twice, in the wrong places, does not believe in it any more: it is the neighborhood
    of good points that it believes in. So every value of a parameter that others depend on gets some of what is spent,
    where that is enough for a trial.

    Returns:
        What its parents are, by position, from the first one on; empty if there is none.
    """
    decided = conditions.decisions(X)
    for k, parent in enumerate(conditions.parents.values()):
        n = parent.levels.n_levels
        for prefix in np.unique(decided[decided[:, k] >= 0, :k], axis=0):
            here = (decided[:, :k] == prefix).all(axis=1)
            spent = np.array([charges[here & (decided[:, k] == level)].sum() for level in range(n)])
            tried = np.array([np.count_nonzero(here & (decided[:, k] == level)) for level in range(n)])
            one = np.where(tried > 0, spent / np.maximum(tried, 1), charges[here].mean())
            behind = spent + one - FAIR_SHARE * spent.sum() / n
            if behind.min() <= 0.0:
                return (*(int(level) for level in prefix), int(behind.argmin()))
    return ()


def _distances(space: Space, X: Floats, seen: Floats) -> Floats:
    """Distance of each point to the nearest seen one; different categories are one apart."""
    if not len(seen):
        return np.ones(len(X))
    nearest = np.full(len(X), np.inf)
    for point in seen:
        difference = np.abs(X - point)
        difference[:, space.categorical] = difference[:, space.categorical] > 0
        nearest = np.minimum(nearest, np.sqrt((difference**2).sum(axis=1)))
    return nearest


def _is_among(X: Floats, excluded: Floats | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if excluded is None or not len(excluded):
        return np.zeros(len(X), dtype=np.bool_)
    return np.asarray((X[:, None, :] == excluded[None]).all(axis=2).any(axis=1))
