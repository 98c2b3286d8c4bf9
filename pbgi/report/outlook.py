"""What more budget is expected to buy: the finite Pandora's Box problem, asked about points that the model knows.

Points at least a length scale apart are taken for boxes: the prize is what the model believes of the value there, the
price its expected cost. The best value so far is a box that is free. `pbgi.pandora.solve` then says, for one exchange
rate after the other, what the best policy spends and what it is expected to find, and games played by it say how much
luck is in that.

Two things are assumed. Prizes are independent, which makes the outlook too rosy where points are alike; so few points
are taken, and they lie apart. And the model learns nothing on the way, which makes it too dark: a real run moves on
from the points that turn out well.
"""

import math
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats, Ints
from pbgi.index import log_h
from pbgi.pandora import Box, Discrete, Gaussian, Solution, solve
from pbgi.report.beliefs import Beliefs, hope

MOST_BOXES = 48
APART = 1.0  # length scales
N_BUDGETS, N_GAMES = 20, 200
# Exchange rates to solve at, as shares of the largest at which anything is worth its price.
N_RATES, RATES = 24, (0.999, 1e-6)
FREE = 1e-6  # what the best value so far costs, as a share of the cheapest point: the solver wants a positive price
BAND = (0.1, 0.9)
HOPELESS = 8.0  # standard deviations: one in 1e15 is that much better than expected


@dataclass(frozen=True, eq=False)
class Outlook:
    """The best value to be expected after spending more.

    Attributes:
        extra: (k,) How much more is spent, from 0 on.
        expected: (k,) The expected best value by then.
        low: (k,) The worse end of an 80 % interval of what games find.
        high: (k,) The better end.
        n_boxes: How many points were taken for boxes.
    """

    extra: Floats
    expected: Floats
    low: Floats
    high: Floats
    n_boxes: int


def outlook_of(beliefs: Beliefs, best_value: float, sign: float, horizon: float) -> Outlook:
    """What spending up to `horizon` more is expected to find; nothing at all where no point is good enough to hope for.

    Args:
        beliefs: Of the model.
        best_value: The best value so far.
        sign: 1 if larger is better, else -1.
        horizon: The most that is asked about; positive.
    """
    gain, spread = sign * (beliefs.median - best_value), hope(beliefs, sign)
    promising = np.isfinite(gain) & (beliefs.cost <= horizon) & (gain > -HOPELESS * spread)
    promising &= spread > 0.0
    extra = np.linspace(0.0, horizon, N_BUDGETS + 1)
    if not promising.any():
        still = np.full(len(extra), best_value)
        return Outlook(extra, still, still, still, 0)
    scale = float(spread[promising].max())
    # In units of the widest spread, so that the size of values does not matter; 0 is the best value so far.
    mean, std = gain[promising] / scale, spread[promising] / scale
    log_worth = np.log(std) + log_h(mean / std) - np.log(beliefs.cost[promising])
    chosen = _apart(beliefs, promising, log_worth)
    mean, std, cost = mean[chosen], std[chosen], beliefs.cost[promising][chosen]
    boxes = [Box(Gaussian(float(m), float(s)), float(c)) for m, s, c in zip(mean, std, cost, strict=True)]
    boxes.append(Box(Discrete([0.0], [1.0]), FREE * float(cost.min())))
    prizes = np.append(np.random.default_rng(0).normal(mean, std, (N_GAMES, len(mean))), np.zeros((N_GAMES, 1)), axis=1)
    rates = math.exp(float(log_worth.max())) * np.geomspace(*RATES, N_RATES)
    found = np.array([[0.0] * 4, *(_at(boxes, float(rate), prizes) for rate in rates)])  # (k, 4), from no spending on
    # Between two policies lies what is won by tossing a coin between them: the line that joins them.
    columns = (np.interp(extra, found[:, 0], np.maximum.accumulate(column)) for column in found.T[1:])
    expected, low, high = (best_value + sign * scale * column for column in columns)
    return Outlook(extra, expected, low, high, len(chosen))


def _at(boxes: list[Box], rate: float, prizes: Floats) -> tuple[float, float, float, float]:
    """What the best policy at a cost_scale spends, what it is expected to gain, and what lies between its tenths."""
    plan = solve(boxes, cost_scale=rate)
    low, high = np.quantile(_played(plan, prizes), BAND)
    return plan.spend, plan.value, float(low), float(high)


def _played(plan: Solution, prizes: Floats) -> Floats:
    """What games with these prizes (n, boxes) end with."""
    rng = np.random.default_rng(0)
    return np.array([plan.play(game, rng=rng).best for game in prizes])


def _apart(beliefs: Beliefs, promising: np.ndarray[tuple[int], np.dtype[np.bool_]], log_worth: Floats) -> Ints:
    """Positions among the promising points: the most gain per cost first, none within a length scale of another."""
    X = beliefs.X[promising]
    left = list(np.argsort(-log_worth, kind="stable"))
    chosen: list[int] = []
    while left and len(chosen) < MOST_BOXES:
        chosen.append(left[0])
        difference = np.abs(X[left] - X[left[0]])
        difference[:, beliefs.categorical] = difference[:, beliefs.categorical] > 0
        far = np.sqrt(((difference / beliefs.length_scales) ** 2).sum(axis=1)) >= APART
        left = [point for point, is_far in zip(left, far, strict=True) if is_far]
    return np.array(chosen)
