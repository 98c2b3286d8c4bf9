"""The cost_scale at which the expected spend is a budget, and the two rules on either side of it."""

import math
from typing import Generic, Protocol, TypeVar

from scipy import optimize, stats

from pbgi.index import inverse_log_h, log_h

# Mixing the rules at two cost scales loses at most their distance times the difference of their spends. The search
# ends when that is below this share of cost_scale * budget.
MIX_LOSS = 1e-11
# To either side of a computed jump: above the rounding error of its place, and still within MIX_LOSS.
CROSSING_ERROR = 1e-12
JUMP = 1e-3
# Of the search, each of up to ten rules; one or two suffice unless a jump is buried among many.
MOST_TURNS = 20


class Spending(Protocol):
    """A rule, as far as the search is concerned."""

    @property
    def cost_scale(self) -> float:
        """At which it is optimal."""

    @property
    def spend(self) -> float:
        """Its expected cost."""


R = TypeVar("R", bound=Spending)


class Problem(Protocol[R]):
    """Boxes, whose optimal rule is asked for at one cost_scale after the other."""

    typical_cost: float
    spread: float  # of prizes; only for a first guess

    def rule(self, cost_scale: float) -> R:
        """The rule that is optimal when every cost counts `cost_scale` times."""

    def net(self, rule: R) -> float:
        """Its expected best prize less cost_scale times its spend."""


class BudgetSearch(Generic[R]):
    """Narrows down the cost_scale at which the spend passes the budget, to a rule on either side of it.

    The search runs over t with cost_scale = unit * h(-t): for Gaussian prizes t is how many standard deviations a
    prize must be above its mean to end the game, so that the spend is a smooth function of t although the
    cost_scale may be 1e-2 or 1e-200.
    """

    def __init__(self, problem: Problem[R], budget: float, full: R) -> None:
        self._problem, self._budget = problem, budget
        self._log_unit = math.log((problem.spread or 1.0) / problem.typical_cost)
        self._dear, self._cheap = [full], list[R]()  # rules seen that spend more than the budget, and the others
        self._rules: dict[float, R] = {}  # by t; Brent's method asks again for the ends it is given

    def run(self) -> tuple[R, R]:
        """The closest two rules: one that spends more than the budget, one that does not."""
        t = float(stats.norm.isf(min(0.5, self._problem.typical_cost / self._budget)))
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
        values = [self._problem.net(rule) + rule.cost_scale * rule.spend for rule in (dear, cheap)]
        crossing = (values[0] - values[1]) / (dear.spend - cheap.spend)
        for side in (1.0 - CROSSING_ERROR, 1.0 + CROSSING_ERROR):
            if dear.cost_scale < side * crossing < cheap.cost_scale:
                self._excess(-float(inverse_log_h(math.log(side * crossing) - self._log_unit)))

    def _closest(self) -> tuple[R, R]:
        return max(self._dear, key=lambda rule: rule.cost_scale), min(self._cheap, key=lambda rule: rule.cost_scale)

    def _log_cost_scale(self, t: float) -> float:
        return self._log_unit + float(log_h(-t))

    def _t(self, rule: R) -> float:
        return next(t for t, known in self._rules.items() if known is rule)

    def _excess(self, t: float) -> float:
        """log(spend / budget), or 0 to end the search."""
        if t not in self._rules:
            rule = self._problem.rule(math.exp(self._log_cost_scale(t)))
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
