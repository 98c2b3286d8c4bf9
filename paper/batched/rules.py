"""The policies that can be computed for many runs at once, as numbers: a form and its parameter at each step."""

import math
from dataclasses import dataclass, field
from typing import Any

from paper.batched.acquisition import BOUND, IMPROVEMENT, INDEX, LOG_IMPROVEMENT, LOG_TEXTBOOK, TEXTBOOK
from paper.policies import DescribedPBGID, ExpLogEI, LogTextbookEI, TextbookEI
from pbgi.policy import EI, EIPC, PBGI, PBGID, UCB, UCB_CONFIDENCE, LogEI, LogEICC, LogEIPC

FORM_OF: dict[type, int] = {
    PBGI: INDEX,
    PBGID: INDEX,
    DescribedPBGID: INDEX,
    UCB: BOUND,
    LogEI: LOG_IMPROVEMENT,
    LogEIPC: LOG_IMPROVEMENT,
    LogEICC: LOG_IMPROVEMENT,
    EI: IMPROVEMENT,
    EIPC: IMPROVEMENT,
    ExpLogEI: IMPROVEMENT,
    TextbookEI: TEXTBOOK,
    LogTextbookEI: LOG_TEXTBOOK,
}
PER_COST = (LogEIPC, EIPC)


def is_closed_form(policy: Any) -> bool:
    """Whether there is a rule for a policy."""
    return type(policy) in FORM_OF and not (isinstance(policy, PBGID) and policy.initial_cost_scale is None)


@dataclass
class Rule:
    """One run's policy.

    Attributes:
        policy: One that `is_closed_form`.
        price_slope: Of the cost 1 + slope * sum(x).
        fired_at: Trials after which the rate of PBGI-D was lowered.
    """

    policy: Any
    price_slope: float
    fired_at: list[int] = field(default_factory=list)
    n_told: int = 0

    @property
    def form(self) -> int:
        """A position in `paper.batched.acquisition.FORMS`."""
        return FORM_OF[type(self.policy)]

    def parameter(self, spent: float, budget: float, dimension: int) -> float:
        """What the form takes, given what has been spent."""
        policy = self.policy
        if isinstance(policy, PBGI):
            return math.log(policy.cost_scale)
        if isinstance(policy, PBGID | DescribedPBGID):
            return math.log(policy.initial_cost_scale or 0.0) - len(self.fired_at) * math.log(policy.decay)
        if isinstance(policy, UCB):
            t = spent + 1.0
            return math.sqrt(0.4 * math.log(dimension * t * t * math.pi**2 / (6.0 * UCB_CONFIDENCE)))
        if isinstance(policy, LogEICC):
            return max((budget - spent) / budget, 0.0)
        if isinstance(policy, LogTextbookEI):
            return policy.offset
        return 1.0 if isinstance(policy, PER_COST) else 0.0

    def tell(self, index: float, best_before: float, best: float) -> None:
        """A trial of this index is over; the best value was so much before it, and is so much now."""
        policy = self.policy
        fires = isinstance(policy, PBGID) and index < best
        if fires or (isinstance(policy, DescribedPBGID) and best_before >= index):
            self.fired_at.append(self.n_told)
        self.n_told += 1
