"""The optimal policy for boxes of which some are paid in stages: what it spends, what it earns, and how it is played.

Two sums over boxes, each of one box's levels against the final levels of all others (see `levels.py`), so that the
expected spend and the expected net are exact sums and one-dimensional integrals, as for boxes with one payment.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pbgi.arrays import Floats, Ints
from pbgi.errors import InvalidInputError
from pbgi.pandora.budget import BudgetSearch
from pbgi.pandora.game import Game, Opening
from pbgi.pandora.in_words import as_table, in_a_line
from pbgi.pandora.levels import GaussianLevels, Levels, MarkovLevels, OneStage, markov_indices
from pbgi.pandora.quadrature import integrate_panels
from pbgi.pandora.rewards import Rewards
from pbgi.pandora.staged import MarkovBox, StagedBox
from pbgi.pandora.weitzman import snap

# The worth of a unit of cost, in spreads of the prizes, at which nothing is left out for its price.
NEXT_TO_NOTHING = 1e-12
# A probability that adds nothing to an integral.
EMPTY = 1e-30


@dataclass(frozen=True, eq=False)
class StagedRule:
    """The policy at one cost_scale."""

    cost_scale: float
    levels: tuple[Levels, ...]
    spend: float
    states: dict[int, dict[Hashable, float]]  # of Markov boxes by number: the index, or the prize, of every state

    @property
    def indices(self) -> Floats:
        """Of the closed boxes."""
        return np.array([levels.index for levels in self.levels])


class StagedProblem:
    """Boxes, of which some are paid in stages."""

    def __init__(self, boxes: tuple[Any, ...]) -> None:
        self.boxes = boxes
        self._ordinary = [i for i, box in enumerate(boxes) if not isinstance(box, StagedBox | MarkovBox)]
        self.rewards = Rewards([boxes[i].reward for i in self._ordinary]) if self._ordinary else None
        spreads, means = zip(*(self._typical(i, box) for i, box in enumerate(boxes)), strict=True)
        self.spread = math.hypot(float(np.median(spreads)), float(np.std(means)))
        costs = [box.expected_cost for box in boxes]
        self.typical_cost, self.cheapest = float(np.mean(costs)), float(min(costs))

    def _typical(self, number: int, box: Any) -> tuple[float, float]:
        """Spread and mean of the prize."""
        if isinstance(box, StagedBox):
            return float(np.linalg.norm(box.stds)), box.mean
        if isinstance(box, MarkovBox):
            prizes = np.array(list(box.prizes.values()), dtype=float)
            return float(np.std(prizes)), float(np.mean(prizes))
        assert self.rewards is not None  # noqa: S101 - there is a box with one payment
        member = self._ordinary.index(number)
        return float(self.rewards.spread[member]), float(self.rewards.mean[member])

    def rule(self, cost_scale: float) -> StagedRule:
        """The optimal rule when every cost counts `cost_scale` times; at 0 the limit from above."""
        unit = (self.spread or 1.0) / self.typical_cost
        levels, states = self._levels(cost_scale if cost_scale > 0 else NEXT_TO_NOTHING * unit)
        return StagedRule(cost_scale, levels, self._spend(levels), states)

    def _levels(self, cost_scale: float) -> tuple[tuple[Levels, ...], dict[int, dict[Hashable, float]]]:
        """The levels of all boxes; those that differ by rounding are made equal."""
        gaussian = {i: GaussianLevels(b, cost_scale) for i, b in enumerate(self.boxes) if isinstance(b, StagedBox)}
        markov = {i: markov_indices(b, cost_scale) for i, b in enumerate(self.boxes) if isinstance(b, MarkovBox)}
        prices = cost_scale * np.array([self.boxes[i].expected_cost for i in self._ordinary])
        ordinary = self.rewards.index(prices) if self.rewards is not None else np.empty(0)
        prizes = [x for i in markov for x in self.boxes[i].prizes.values()]
        corners = np.concatenate([prizes, self.rewards.corners if self.rewards is not None else np.empty(0)])
        found = np.concatenate(
            [ordinary, [levels.index for levels in gaussian.values()], *[list(x.values()) for x in markov.values()]]
        )
        named = iter(snap(found, corners).tolist())
        levels: dict[int, Levels] = {}
        for member, number in enumerate(self._ordinary):
            assert self.rewards is not None  # noqa: S101 - as above
            levels[number] = OneStage(self.rewards, member, next(named), self.boxes[number].expected_cost)
        for number, one in gaussian.items():
            one.rename(next(named))
            levels[number] = one
        states = {}
        for number, indices in markov.items():
            renamed = {state: next(named) for state in indices}
            prizes_of = {state: float(x) for state, x in self.boxes[number].prizes.items()}
            levels[number] = MarkovLevels(self.boxes[number], renamed, prizes_of)
            states[number] = {**renamed, **prizes_of}
        return tuple(levels[i] for i in range(len(self.boxes))), states

    @staticmethod
    def _spend(levels: tuple[Levels, ...]) -> float:
        """What each box pays at a level, times the probability that no other box ends at a higher one."""
        total = 0.0
        for i, own in enumerate(levels):
            for level in own.payments:
                x = np.array([level.place])
                others = [
                    float(other.below(x)[0]) + (other.tied(level.place) if j > i else 0.0)
                    for j, other in enumerate(levels)
                    if j != i
                ]
                total += level.weight * math.prod(others)
        if not any(isinstance(own, GaussianLevels) for own in levels):
            return total

        def flow(x: Floats) -> Floats:
            below = np.array([own.below(x) for own in levels])
            out = np.zeros(x.shape)
            for i, own in enumerate(levels):
                out += own.paid(x) * np.prod(np.delete(below, i, axis=0), axis=0)
            return out

        edges = _edges(levels)
        return total + (integrate_panels(flow, edges) if edges.size > 1 else 0.0)

    @staticmethod
    def net(rule: StagedRule) -> float:
        """E of the largest final level: m + integral of P(above) above m - integral of P(below) below m, for any m."""

        def below(x: Floats) -> Floats:
            product: Floats = np.prod([own.below(x) for own in rule.levels], axis=0)
            return product

        edges = _edges(rule.levels)
        at_edges = below(edges)
        first = int(np.flatnonzero(at_edges <= EMPTY)[-1]) if np.any(at_edges <= EMPTY) else 0
        edges, at_edges = edges[first:], at_edges[first:]
        if edges.size == 1:
            return float(edges[0])
        middle = float(edges[int(np.argmin(np.abs(at_edges - 0.5)))])
        return middle + integrate_panels(lambda x: np.where(x > middle, 1.0 - below(x), -below(x)), edges)


def _edges(levels: tuple[Levels, ...]) -> Floats:
    edges = np.unique(np.concatenate([own.edges for own in levels]))
    highest = max(own.index for own in levels)
    lowest = max(float(own.edges.min()) for own in levels)
    inside: Floats = edges[(edges <= highest) & (edges >= min(lowest, highest))]
    return inside


@dataclass(frozen=True, eq=False, repr=False)
class StagedSolution:
    """The optimal policy for boxes of which some are paid in stages, and what to expect of it.

    Attributes:
        boxes: The boxes, as given.
        cost_scale: How much prize one unit of cost is worth. Given, or found for a budget.
        indices: The index of each closed box at that scale.
        order: Box numbers by falling index.
        value: Expected best prize.
        spend: Expected cost.
        go_on_probability: Probability of playing the rule just below a jump of the spend; 0 unless a budget asks.
        slack: Whether the budget is more than full information costs (then cost_scale is 0).
    """

    boxes: tuple[Any, ...]
    cost_scale: float
    value: float
    spend: float
    go_on_probability: float
    slack: bool
    _stop_early: StagedRule
    _go_on: StagedRule
    _rewards: Rewards | None

    def __repr__(self) -> str:
        return in_a_line(self)

    def _repr_html_(self) -> str:
        """For a notebook: boxes in the order in which they are begun."""
        return as_table(self)

    @property
    def indices(self) -> Floats:
        """The index of each closed box."""
        return self._stop_early.indices

    @property
    def order(self) -> Ints:
        """Box numbers by falling index."""
        return np.argsort(-self.indices, kind="stable")

    @property
    def net(self) -> float:
        """Expected best prize minus cost_scale times the expected cost."""
        return self.value - self.cost_scale * self.spend

    def play(self, outcomes_or_rng: Any, *, rng: np.random.Generator | None = None) -> Game:
        """Play one game.

        Args:
            outcomes_or_rng: What each box has in it, or a generator that draws it: the prize of a `Box`, the means
                after each stage of a `StagedBox` (the last is the prize), the states after the first of a `MarkovBox`.
            rng: Tosses the coin where `go_on_probability` asks for one. Default: the generator above, or a fresh one.
        """
        known = None if isinstance(outcomes_or_rng, np.random.Generator) else outcomes_or_rng
        generator = rng or (np.random.default_rng() if known is not None else outcomes_or_rng)
        if known is not None and len(known) != len(self.boxes):
            raise InvalidInputError(f"outcomes must have one entry per box ({len(self.boxes)}); got {len(known)}")
        go_on = self.go_on_probability > 0 and generator.random() < self.go_on_probability
        rule = self._go_on if go_on else self._stop_early
        plays = [self._opened(rule, i, None if known is None else known[i]) for i in range(len(self.boxes))]
        openings: list[Opening] = []
        best = -math.inf
        while left := [i for i, play in enumerate(plays) if play.index is not None]:
            number = max(left, key=lambda i: (plays[i].index, -i))
            index = float(plays[number].index or 0.0)
            if best >= index:
                reason = f"the best prize, {best:.6g}, is at least the index of the next box ({number}), {index:.6g}"
                return Game(tuple(openings), reason)
            cost, state, reward = plays[number].pay(generator)
            best = best if reward is None else max(best, reward)
            openings.append(Opening(number, reward, cost, best, plays[number].paid, state))
        return Game(tuple(openings), "every box has been paid to its end")

    def _opened(self, rule: StagedRule, number: int, known: Any) -> "_Play":
        box, levels = self.boxes[number], rule.levels[number]
        if isinstance(levels, GaussianLevels):
            return _GaussianPlay(box, levels, known)
        if isinstance(levels, OneStage):
            return _OnePlay(box, levels, known)
        return _MarkovPlay(box, rule.states[number], known)


class _Play:
    """A box during a game: its index, None once its prize is known."""

    index: float | None
    paid = 0

    def pay(self, rng: np.random.Generator) -> tuple[float, Any, float | None]:
        """Pay the next stage: its cost, what is known then, and the prize if it is that."""
        self.paid += 1
        return self._pay(rng)

    def _pay(self, rng: np.random.Generator) -> tuple[float, Any, float | None]:
        raise NotImplementedError


class _OnePlay(_Play):
    def __init__(self, box: Any, levels: OneStage, known: Any) -> None:
        self._box, self._levels, self._known, self.index = box, levels, known, levels.index

    def _pay(self, rng: np.random.Generator) -> tuple[float, Any, float | None]:
        self.index = None
        if self._known is not None:
            return self._box.expected_cost, None, float(self._known)
        return self._box.draw_cost(rng), None, self._levels.rewards.sample(self._levels.number, rng)


class _GaussianPlay(_Play):
    def __init__(self, box: StagedBox, levels: GaussianLevels, known: Any) -> None:
        self._box, self._levels, self._known = box, levels, known
        if known is not None and len(known) != box.stds.size:
            raise InvalidInputError(f"outcomes of a StagedBox must be {box.stds.size} means; got {known!r}")
        self._mean, self.index = box.mean, levels.index

    def _pay(self, rng: np.random.Generator) -> tuple[float, Any, float | None]:
        stage = self.paid - 1
        moved = (
            self._mean + self._box.stds[stage] * rng.standard_normal() if self._known is None else self._known[stage]
        )
        self._mean = float(moved)
        last = self.paid == self._box.stds.size
        self.index = None if last else self._mean + float(self._levels.offsets[self.paid])
        return float(self._box.costs[stage]), self._mean, self._mean if last else None


class _MarkovPlay(_Play):
    def __init__(self, box: MarkovBox, worth: dict[Hashable, float], known: Any) -> None:
        self._box, self._worth, self._state = box, worth, box.start
        self._known = None if known is None else list(known)
        self.index = worth[box.start]

    def _pay(self, rng: np.random.Generator) -> tuple[float, Any, float | None]:
        cost = float(self._box.costs[self._state])
        names, probabilities = self._box.following(self._state)
        if self._known is None:
            self._state = names[int(rng.choice(len(names), p=probabilities))]
        else:
            self._state = self._known[self.paid - 1] if self.paid <= len(self._known) else None
            if self._state not in names:
                raise InvalidInputError(f"outcomes of a MarkovBox must be states that follow; got {self._state!r}")
        ended = self._state in self._box.prizes
        self.index = None if ended else self._worth[self._state]
        return cost, self._state, self._worth[self._state] if ended else None


def solve_staged(boxes: Sequence[Any], cost_scale: float | None, budget: float | None) -> StagedSolution:
    """As `solve`, whose arguments are checked."""
    problem = StagedProblem(tuple(boxes))
    if budget is None:
        rule = problem.rule(1.0 if cost_scale is None else float(cost_scale))
        return _solution(problem, rule, rule, 0.0)
    if budget < problem.cheapest:
        raise InvalidInputError(
            f"budget must be at least what the cheapest prize costs in expectation, {problem.cheapest:g}, since one "
            f"must be had; got {budget:g}"
        )
    full = problem.rule(0.0)
    if full.spend <= budget:
        return _solution(problem, full, full, 0.0, slack=True)
    dear, cheap = BudgetSearch(problem, budget, full).run()
    gap = dear.spend - cheap.spend
    return _solution(problem, cheap, dear, (budget - cheap.spend) / gap if gap > 0 else 0.0)


def _solution(
    problem: StagedProblem, stop_early: StagedRule, go_on: StagedRule, probability: float, *, slack: bool = False
) -> StagedSolution:
    spend = (1.0 - probability) * stop_early.spend + probability * go_on.spend
    return StagedSolution(
        boxes=problem.boxes,
        cost_scale=stop_early.cost_scale,
        value=problem.net(stop_early) + stop_early.cost_scale * spend,
        spend=spend,
        go_on_probability=probability,
        slack=slack,
        _stop_early=stop_early,
        _go_on=go_on,
        _rewards=problem.rewards,
    )
