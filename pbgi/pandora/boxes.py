"""Pandora's Box with finitely many boxes, solved exactly: which box to open next, and when to stop.

Each box holds a hidden prize of known distribution and costs something to open; one box at least is opened, and in
the end the best prize seen is kept. Weitzman's policy opens the box of highest index among the closed ones and stops
once the best prize seen is at least that index (paper, Theorem 1). Under a budget for the *expected* spend the same
policy is optimal with every cost multiplied by the right `cost_scale` (paper, Theorem 2), here found from

    A(cost_scale) = V(cost_scale) + cost_scale * budget,   convex, with slope budget - spend(cost_scale),

where V = E max_i min(prize_i, index_i). Two things the printed theorem leaves out are handled:

- The spend can jump over the budget: at a cost_scale where two indices cross, or an index meets a possible value of a
  discrete prize. The optimal policy then tosses a coin between the rules on the two sides of the jump ("go on" below,
  "stop early" above), so that the expected spend is the budget.
- With bounded prizes a budget can be slack although it does not buy every box: prizes U[0, 2] and U[0, 1] at cost 1
  give full information for an expected 1.5. Then cost_scale = 0 and an index is the largest possible prize.

Nothing is simulated: spend is a sum over boxes, value a one-dimensional integral.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pbgi.arrays import Floats, Ints
from pbgi.checks import checks_arguments, refuse_unknown_arguments, require_positive
from pbgi.errors import InvalidInputError
from pbgi.pandora.budget import BudgetSearch
from pbgi.pandora.game import Game, Opening
from pbgi.pandora.in_words import as_table, in_a_line
from pbgi.pandora.rewards import Rewards, as_reward, finite_vector
from pbgi.pandora.staged import MarkovBox, StagedBox
from pbgi.pandora.staged_solution import StagedSolution, solve_staged
from pbgi.pandora.weitzman import Rule, expected_net, rule_at


@checks_arguments
@dataclass(frozen=True, eq=False)
class Box:
    """A closed box.

    Args:
        reward: The prize (larger is better): a frozen scipy.stats distribution, `Gaussian(mean, std)`,
            `Discrete(values, probabilities)`, or an array of samples, each as likely as the next.
        cost: What opening costs: a positive number, or a frozen scipy.stats distribution, whose mean decides.
    """

    reward: Any
    cost: Any
    expected_cost: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", as_reward(self.reward))
        expected = self.cost.mean() if _is_frozen(self.cost) else self.cost
        if isinstance(expected, bool) or not isinstance(expected, int | float | np.number):
            raise InvalidInputError(f"cost must be a positive number or a frozen distribution; got {self.cost!r}")
        if not 0 < expected <= sys.float_info.max:
            raise InvalidInputError(f"cost must be positive and finite (its mean, if random); got {expected}")
        object.__setattr__(self, "expected_cost", float(expected))

    def draw_cost(self, rng: np.random.Generator) -> float:
        """What opening costs this time."""
        return float(self.cost.rvs(random_state=rng)) if _is_frozen(self.cost) else self.expected_cost


def _is_frozen(x: Any) -> bool:
    return isinstance(getattr(x, "dist", None), stats.rv_continuous | stats.rv_discrete)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The optimal policy for a set of boxes, and what to expect of it.

    Attributes:
        boxes: The boxes, as given.
        cost_scale: How much prize one unit of cost is worth. Given, or found for a budget.
        indices: The index of each box at that scale.
        order: Box numbers in the order of opening.
        value: Expected best prize.
        spend: Expected cost.
        go_on_probability: Probability of playing the rule that goes on at ties (the one just below the jump of the
            spend); otherwise the game stops at ties, as `indices` and `order` say. 0 unless a budget asks for it.
        slack: Whether the budget is more than full information costs (then cost_scale is 0).
    """

    boxes: tuple[Box, ...]
    cost_scale: float
    indices: Floats
    order: Ints
    value: float
    spend: float
    go_on_probability: float
    slack: bool
    _stop_early: Rule
    _go_on: Rule
    _rewards: Rewards

    def __repr__(self) -> str:
        return in_a_line(self)

    def _repr_html_(self) -> str:
        """For a notebook: boxes in the order of opening."""
        return as_table(self)

    @property
    def net(self) -> float:
        """Expected best prize minus cost_scale times the expected cost."""
        return self.value - self.cost_scale * self.spend

    def play(self, rewards_or_rng: ArrayLike | np.random.Generator, *, rng: np.random.Generator | None = None) -> Game:
        """Play one game.

        Args:
            rewards_or_rng: The prize in each box (opening then costs its expected cost), or a generator that draws
                prizes and costs as boxes are opened.
            rng: Tosses the coin between the two tie rules where `go_on_probability` asks for one. Default: the
                generator above, or a fresh one.
        """
        if isinstance(rewards_or_rng, np.random.Generator):
            generator, known = rewards_or_rng, None
        else:
            generator, known = rng or np.random.default_rng(), self._checked_rewards(rewards_or_rng)
        go_on = self.go_on_probability > 0 and (rng or generator).random() < self.go_on_probability
        return self._play(self._go_on if go_on else self._stop_early, generator, known)

    def _play(self, rule: Rule, rng: np.random.Generator, known: Floats | None) -> Game:
        openings: list[Opening] = []
        best = -math.inf
        for place in map(int, rule.order):
            index = float(rule.indices[place])
            if openings and best >= index:
                reason = f"the best prize, {best:.6g}, is at least the index of the next box ({place}), {index:.6g}"
                return Game(tuple(openings), reason)
            box = self.boxes[place]
            reward = float(known[place]) if known is not None else self._rewards.sample(place, rng)
            cost = box.expected_cost if known is not None else box.draw_cost(rng)
            best = max(best, reward)
            openings.append(Opening(place, reward, cost, best))
        return Game(tuple(openings), "every box has been opened")

    def _checked_rewards(self, rewards: ArrayLike) -> Floats:
        known = finite_vector("rewards", rewards)
        if known.size != len(self.boxes):
            raise InvalidInputError(f"rewards must have one prize per box ({len(self.boxes)}); got {known.size}")
        return known


@overload
def solve(boxes: Sequence[Box], *, cost_scale: float | None = None, budget: float | None = None) -> Solution: ...


@overload
def solve(
    boxes: Sequence[Box | StagedBox | MarkovBox], *, cost_scale: float | None = None, budget: float | None = None
) -> Solution | StagedSolution: ...


@refuse_unknown_arguments
def solve(
    boxes: Sequence[Box | StagedBox | MarkovBox], *, cost_scale: float | None = None, budget: float | None = None
) -> Solution | StagedSolution:
    """The optimal policy for a set of boxes.

    Args:
        boxes: At least one `Box`, `StagedBox` or `MarkovBox`; prizes are independent of each other.
        cost_scale: How much prize one unit of cost is worth (1 if nothing is given): maximize the expected best prize
            minus cost_scale times the expected cost.
        budget: Instead, maximize the expected best prize while the expected cost is at most this.

    Returns:
        The policy with its exact value and spend: a `StagedSolution` if a box has stages.

    Raises:
        InvalidInputError: No boxes, both or a nonpositive `cost_scale` or `budget`, or a budget below the cheapest box.
    """
    boxes = _checked_boxes(boxes)
    if budget is not None and cost_scale is not None:
        raise InvalidInputError(f"give cost_scale or budget, not both; got {cost_scale} and {budget}")
    if not all(isinstance(box, Box) for box in boxes):
        for name, value in (("cost_scale", cost_scale), ("budget", budget)):
            if value is not None:
                require_positive(name, value)
        return solve_staged(boxes, cost_scale, budget)
    rewards = Rewards([box.reward for box in boxes])
    costs = np.array([box.expected_cost for box in boxes])
    if budget is None:
        rule = rule_at(rewards, costs, require_positive("cost_scale", 1.0 if cost_scale is None else cost_scale))
        return _solution(boxes, rewards, rule, rule, 0.0)
    if require_positive("budget", budget) < costs.min():
        raise InvalidInputError(
            f"budget must be at least the cost of the cheapest box, {costs.min():g}, since one box must be opened; "
            f"got {budget:g}"
        )
    return _solve_budget(boxes, rewards, costs, float(budget))


def _checked_boxes(boxes: Sequence[Any]) -> tuple[Any, ...]:
    boxes = tuple(boxes)
    if not boxes:
        raise InvalidInputError("boxes must hold at least one box; got none")
    for i, box in enumerate(boxes):
        if not isinstance(box, Box | StagedBox | MarkovBox):
            raise InvalidInputError(f"boxes must be Box(reward, cost), StagedBox or MarkovBox; number {i} is {box!r}")
    return boxes


class _Ordinary:
    """Boxes with one payment each, as the search for a budget asks for them."""

    def __init__(self, rewards: Rewards, costs: Floats) -> None:
        self._rewards, self._costs = rewards, costs
        self.typical_cost = float(costs.mean())
        self.spread = math.hypot(float(np.median(rewards.spread)), float(np.std(rewards.mean)))

    def rule(self, cost_scale: float) -> Rule:
        return rule_at(self._rewards, self._costs, cost_scale)

    def net(self, rule: Rule) -> float:
        return expected_net(self._rewards, rule)


def _solution(
    boxes: tuple[Box, ...], rewards: Rewards, stop_early: Rule, go_on: Rule, probability: float, *, slack: bool = False
) -> Solution:
    """Mix the two rules. Both are optimal at the same cost_scale (to a rounding), so they share their expected net."""
    spend = (1.0 - probability) * stop_early.spend + probability * go_on.spend
    return Solution(
        boxes=boxes,
        cost_scale=stop_early.cost_scale,
        indices=stop_early.indices,
        order=stop_early.order,
        value=expected_net(rewards, stop_early) + stop_early.cost_scale * spend,
        spend=spend,
        go_on_probability=probability,
        slack=slack,
        _stop_early=stop_early,
        _go_on=go_on,
        _rewards=rewards,
    )


def _solve_budget(boxes: tuple[Box, ...], rewards: Rewards, costs: Floats, budget: float) -> Solution:
    problem = _Ordinary(rewards, costs)
    full = problem.rule(0.0)
    if full.spend <= budget:
        return _solution(boxes, rewards, full, full, 0.0, slack=True)
    dear, cheap = BudgetSearch(problem, budget, full).run()
    gap = dear.spend - cheap.spend
    return _solution(boxes, rewards, cheap, dear, (budget - cheap.spend) / gap if gap > 0 else 0.0)
