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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from pbgi.arrays import Floats, Ints
from pbgi.checks import checks_arguments, refuse_unknown_arguments, require_positive
from pbgi.display.notebook import heading, sentence, table
from pbgi.display.wording import number, short
from pbgi.errors import InvalidInputError
from pbgi.index import inverse_log_h, log_h
from pbgi.pandora.rewards import Rewards, as_reward, finite_vector
from pbgi.pandora.weitzman import Rule, expected_net, rule_at

# Mixing the rules at two cost scales loses at most their distance times the difference of their spends. The search
# ends when that is below this share of cost_scale * budget.
MIX_LOSS = 1e-11
# To either side of a computed jump: above the rounding error of its place, and still within MIX_LOSS.
CROSSING_ERROR = 1e-12
JUMP = 1e-3
# Of the search, each of up to ten rules; one or two suffice unless a jump is buried among many.
MOST_TURNS = 20
MOST_SHOWN = 10  # boxes of an order that are written out


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


@dataclass(frozen=True)
class Opening:
    """One box opened in a game: its number, its prize, what it cost, and the best prize so far."""

    box: int
    reward: float
    cost: float
    best: float


@dataclass(frozen=True)
class Game:
    """One game played to its end."""

    openings: tuple[Opening, ...]
    stop_reason: str

    @property
    def best(self) -> float:
        """The prize kept."""
        return self.openings[-1].best

    @property
    def spent(self) -> float:
        """What all openings cost."""
        return math.fsum(opening.cost for opening in self.openings)


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
        first = [*map(str, self.order[:MOST_SHOWN]), *(["..."] if len(self.order) > MOST_SHOWN else [])]
        rest = f"value={short(self.value)}, spend={short(self.spend)}, cost_scale={short(self.cost_scale)}"
        return f"Solution(boxes={len(self.boxes)}, order=[{', '.join(first)}], {rest})"

    def _repr_html_(self) -> str:
        """For a notebook: boxes in the order of opening."""
        said = f"Expected prize {number(self.value)} for an expected cost of {number(self.spend)}"
        rows = ((box, number(self.boxes[box].expected_cost), number(float(self.indices[box]))) for box in self.order)
        rule = "Open from the top; stop once the best prize is at least the index of the next box."
        return heading(said) + table(("box", "expected cost", "index"), rows) + sentence(rule)

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


@refuse_unknown_arguments
def solve(boxes: Sequence[Box], *, cost_scale: float | None = None, budget: float | None = None) -> Solution:
    """The optimal policy for a set of boxes.

    Args:
        boxes: At least one `Box`; prizes are independent of each other.
        cost_scale: How much prize one unit of cost is worth (1 if nothing is given): maximize the expected best prize
            minus cost_scale times the expected cost.
        budget: Instead, maximize the expected best prize while the expected cost is at most this.

    Returns:
        The policy with its exact value and spend.

    Raises:
        InvalidInputError: No boxes, both or a nonpositive `cost_scale` or `budget`, or a budget below the cheapest box.
    """
    boxes = _checked_boxes(boxes)
    rewards = Rewards([box.reward for box in boxes])
    costs = np.array([box.expected_cost for box in boxes])
    if budget is None:
        rule = rule_at(rewards, costs, require_positive("cost_scale", 1.0 if cost_scale is None else cost_scale))
        return _solution(boxes, rewards, rule, rule, 0.0)
    if cost_scale is not None:
        raise InvalidInputError(f"give cost_scale or budget, not both; got {cost_scale} and {budget}")
    if require_positive("budget", budget) < costs.min():
        raise InvalidInputError(
            f"budget must be at least the cost of the cheapest box, {costs.min():g}, since one box must be opened; "
            f"got {budget:g}"
        )
    return _solve_budget(boxes, rewards, costs, float(budget))


def _checked_boxes(boxes: Sequence[Box]) -> tuple[Box, ...]:
    boxes = tuple(boxes)
    if not boxes:
        raise InvalidInputError("boxes must hold at least one box; got none")
    for i, box in enumerate(boxes):
        if not isinstance(box, Box):
            raise InvalidInputError(f"boxes must be Box(reward, cost); number {i} is {box!r}")
    return boxes


def _solution(
    boxes: tuple[Box, ...], rewards: Rewards, stop_early: Rule, go_on: Rule, probability: float, *, slack: bool = False
) -> Solution:
    """Mix the two rules. Both are optimal at the same cost_scale (to MIX_LOSS), so they share their expected net."""
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


# The budget ----------------------------------------------------------------------------------------------------------


def _solve_budget(boxes: tuple[Box, ...], rewards: Rewards, costs: Floats, budget: float) -> Solution:
    full = rule_at(rewards, costs, 0.0)
    if full.spend <= budget:
        return _solution(boxes, rewards, full, full, 0.0, slack=True)
    dear, cheap = _BudgetSearch(rewards, costs, budget, full).run()
    gap = dear.spend - cheap.spend
    return _solution(boxes, rewards, cheap, dear, (budget - cheap.spend) / gap if gap > 0 else 0.0)


class _BudgetSearch:
    """Narrows down the cost_scale at which the spend passes the budget, to a rule on either side of it.

    The search runs over t with cost_scale = unit * h(-t): for Gaussian prizes t is how many standard deviations a
    prize must be above its mean to end the game, so that the spend is a smooth function of t although the
    cost_scale may be 1e-2 or 1e-200.
    """

    def __init__(self, rewards: Rewards, costs: Floats, budget: float, full: Rule) -> None:
        self._rewards, self._costs, self._budget = rewards, costs, budget
        self._cost = float(costs.mean())
        spread = math.hypot(float(np.median(rewards.spread)), float(np.std(rewards.mean))) or 1.0
        self._log_unit = math.log(spread / self._cost)
        self._dear, self._cheap = [full], list[Rule]()  # rules seen that spend more than the budget, and the others
        self._rules: dict[float, Rule] = {}  # by t; Brent's method asks again for the ends it is given

    def run(self) -> tuple[Rule, Rule]:
        """The closest two rules: one that spends more than the budget, one that does not."""
        t = float(stats.norm.isf(min(0.5, self._cost / self._budget)))
        direction = step = -1.0 if self._excess(t) > 0 else 1.0
        while direction * self._excess(t := t + step) < 0 and self._log_cost_scale(t) > -650.0:
            step *= 2.0
        # Where even the smallest cost_scale in reach spends too little, the rule for 0 is the other side. Nothing lies
        # between the two, and one that has underflowed to 0 is no other.
        for _ in range(MOST_TURNS if self._closest()[0].cost_scale > 0.0 else 0):
            if self._done():
                break
            optimize.brentq(self._excess, *sorted(map(self._t, self._closest())), maxiter=8, disp=False)
            if not self._done() and self._is_jump():
                self._try_crossing()
        return self._closest()

    def _is_jump(self) -> bool:
        """Whether the two sides still differ by much: values, which take as long as ten rules, are worth knowing."""
        dear, cheap = self._closest()
        return dear.spend - cheap.spend > JUMP * self._budget

    def _try_crossing(self) -> None:
        """Go to where the two rules earn the same net, if their values say where that is.

        Brent's method finds a root of a smooth spend in a few steps but a jump only by halving, fifty times. At a jump
        the two rules stay what they are on either side of it, and their nets are straight lines in the cost_scale.
        """
        dear, cheap = self._closest()
        values = [expected_net(self._rewards, rule) + rule.cost_scale * rule.spend for rule in (dear, cheap)]
        crossing = (values[0] - values[1]) / (dear.spend - cheap.spend)
        for side in (1.0 - CROSSING_ERROR, 1.0 + CROSSING_ERROR):
            if dear.cost_scale < side * crossing < cheap.cost_scale:
                self._excess(-float(inverse_log_h(math.log(side * crossing) - self._log_unit)))

    def _closest(self) -> tuple[Rule, Rule]:
        return max(self._dear, key=lambda rule: rule.cost_scale), min(self._cheap, key=lambda rule: rule.cost_scale)

    def _log_cost_scale(self, t: float) -> float:
        return self._log_unit + float(log_h(-t))

    def _t(self, rule: Rule) -> float:
        return next(t for t, known in self._rules.items() if known is rule)

    def _excess(self, t: float) -> float:
        """log(spend / budget), or 0 to end the search."""
        if t not in self._rules:
            rule = rule_at(self._rewards, self._costs, math.exp(self._log_cost_scale(t)))
            (self._dear if rule.spend > self._budget else self._cheap).append(rule)
            self._rules[t] = rule
        rule = self._rules[t]
        return 0.0 if self._done() else math.log(rule.spend / self._budget)

    def _done(self) -> bool:
        if not self._cheap:
            return False
        dear, cheap = self._closest()
        loss = (cheap.cost_scale - dear.cost_scale) * (dear.spend - cheap.spend)
        return loss <= MIX_LOSS * cheap.cost_scale * self._budget
