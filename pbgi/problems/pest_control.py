"""Pest Control: which of four pesticides to use, if any, at each of 25 stages of a growing season.

The problem of Oh, Tomczak, Gavves and Welling (2019), with the settings of the paper (Appendix D). A hundred fields are
simulated. At a stage without treatment the pest spreads; a treatment kills a share of it, but the pest grows resistant
to a pesticide with each use, while buying much of one earns a discount. To be minimized: what is paid, plus, summed
over stages, the share of fields that are infested. As in the paper's figures, the problem is handed over negated.

In the published experiments the generator is seeded anew, with 1, for every draw: all stages see the same spread, and
a field where little spreads is also one where treatments do little. That is kept, since values depend on it; for the
same reason the legacy generator is used, whose streams are frozen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pbgi.arrays import Floats, Ints
from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.parameter import Categorical
from pbgi.problems.problem import Outcome, Problem
from pbgi.problems.unit_cube import checked_seed, chosen, unit_cube
from pbgi.space import Space

N_STAGES, N_CHOICES, N_FIELDS = 25, 5, 100
INFESTED = 0.1  # a field with more of the pest than this counts
PUBLISHED_SEED = 1

# All distributions are Beta(1, b). By choice, the first being to do nothing: the price of a treatment, the share of it
# that is saved if all stages use this pesticide, b of the share killed, and what is added to b by 25 uses.
INITIAL_B, SPREAD_B = 30.0, 17.0 / 3.0
PRICES = (0.0, 1.0, 0.8, 0.7, 0.5)
DISCOUNTS = (0.0, 0.2, 0.3, 0.3, 0.0)
CONTROL_B = (np.nan, 2.0 / 7.0, 3.0 / 7.0, 3.0 / 7.0, 5.0 / 7.0)
RESISTANCE = (np.nan, 1.0 / 7.0, 2.5 / 7.0, 2.0 / 7.0, 0.5 / 7.0)

# Doing nothing all season is free, and a cost must be positive. It is charged like the cheapest treatment there is, so
# that no policy can try free points for ever. No other plan is cheaper than that.
LEAST_COST = 0.5

BUDGETS = {"uniform": 100.0, "varying": 800.0}


def pest_control(*, cost: str = "uniform", categorical: bool = False, seed: int = PUBLISHED_SEED) -> Problem:
    """Plan 25 treatments so that little is paid and few fields are infested; values are negated, so larger is better.

    Args:
        cost: "uniform", or "varying": the total price of the treatments, known to the optimizer.
        categorical: Give the stages as categories 0 (nothing) to 4. By default they are numbers x from 0 to 1, as in
            the paper, which mean the choice floor(5 x).
        seed: Of the simulated fields. The paper has 1.
    """
    stages = Space({f"x{k}": Categorical(range(N_CHOICES)) for k in range(N_STAGES)})
    space = stages if categorical else unit_cube(N_STAGES)
    price = TotalPrice(categorical)
    costs: dict[str, Cost] = {"uniform": UniformCost(), "varying": KnownCost(price, vectorized=True)}
    known = chosen("cost", cost, costs)
    return Problem(
        name="Pest Control",
        space=space,
        evaluate=PestControl(space, price, cost == "uniform", checked_seed(seed)),
        direction="maximize",
        cost=known,
        budget=BUDGETS[cost],
    )


@dataclass(frozen=True)
class TotalPrice:
    """What all treatments of a plan cost together, never less than `LEAST_COST`; of one plan, or of many at once.

    Attributes:
        categorical: Whether parameters are choices, rather than numbers from 0 to 1.
    """

    categorical: bool

    def __call__(self, params: Mapping[str, Any]) -> Any:
        """The price of a plan, or prices (m,) if the parameters are arrays (m,)."""
        return np.maximum(total_price(self.choices(params)), LEAST_COST)

    def choices(self, params: Mapping[str, Any]) -> Ints:
        """Choices (25,), or (25, m)."""
        rows = np.stack([np.asarray(value, dtype=np.float64) for value in params.values()])
        levels = rows if self.categorical else np.minimum(np.floor(N_CHOICES * rows), N_CHOICES - 1)
        return levels.astype(np.intp)


@dataclass(frozen=True)
class PestControl:
    """The `evaluate` of the problem.

    Attributes:
        space: Of the parameters.
        price: Knows what the parameters mean.
        uniform: Whether every evaluation costs one unit, rather than the price.
        seed: Of the simulated fields.
    """

    space: Space
    price: TotalPrice
    uniform: bool
    seed: int

    def __call__(self, params: Mapping[str, Any]) -> Outcome:
        """Minus the price and the infestation of a plan, and what trying it costs."""
        checked = self.space.check(params)
        choices = self.price.choices(checked)
        value = float(total_price(choices)) + infestation(choices, self.seed)
        return Outcome(-value, 1.0 if self.uniform else float(self.price(checked)))


def total_price(choices: Ints) -> Floats:
    """The price of the treatments, summed over stages: choices (25, ...) to prices (...)."""
    total = np.zeros(choices.shape[1:])
    for k in range(1, N_CHOICES):
        uses = (choices == k).sum(axis=0)
        total += PRICES[k] * uses * (1.0 - DISCOUNTS[k] * uses / N_STAGES)
    return total


def infestation(choices: Ints, seed: int) -> float:
    """The share of infested fields before each stage, summed over stages, for choices (25,)."""
    fields = simulated_fields(seed)
    pest, uses, infested = fields.initial, [0] * N_CHOICES, 0
    for k in choices.tolist():
        infested += int(np.count_nonzero(pest > INFESTED))
        if k == 0:
            pest = fields.spread * (1.0 - pest) + pest
        else:
            pest = (1.0 - fields.control[k, uses[k]]) * pest
            uses[k] += 1
    return infested / N_FIELDS


class Fields(NamedTuple):
    """What chance decides in 100 fields.

    Attributes:
        initial: (100,) Share of the plants that have the pest before the season.
        spread: (100,) Share of the healthy plants that get it at a stage without treatment.
        control: (5, 25, 100) Share that a pesticide kills, by pesticide and number of earlier uses.
    """

    initial: Floats
    spread: Floats
    control: Floats


@lru_cache(maxsize=64)
def simulated_fields(seed: int) -> Fields:
    """The fields of a seed."""

    def beta(b: float) -> Floats:
        return np.random.RandomState(seed).beta(1.0, b, N_FIELDS)  # anew for each draw, as published

    control = np.full((N_CHOICES, N_STAGES, N_FIELDS), np.nan)  # doing nothing has no rate
    for k in range(1, N_CHOICES):
        for uses in range(N_STAGES):
            control[k, uses] = beta(CONTROL_B[k] + RESISTANCE[k] * uses / N_STAGES)
    return Fields(beta(INITIAL_B), beta(SPREAD_B), control)
