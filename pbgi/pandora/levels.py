"""What a box that is paid in stages is worth at each: its levels, at one cost_scale.

The index of a box changes as its stages are paid. What counts beside other boxes is the lowest index since the start,
the level of the box: a payment is made if the level is then above the final levels of all other boxes, and the expected
net of the best policy is that of the largest final level. A prize that was shown is a level like an index, but one at
which nothing more is paid; where levels are equal, prizes come first (the game stops), then boxes by their number.
"""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from pbgi.arrays import Floats
from pbgi.index.boundaries import Boundaries
from pbgi.index.smear import LIMIT, REACH, Bumps, Points, cumulative, density, panels
from pbgi.pandora.rewards import Rewards
from pbgi.pandora.staged import MarkovBox, StagedBox

# Prices in standard deviations of the prize are kept within these; beyond them no digit of an index changes.
LOWEST, HIGHEST = 1e-250, 1e13


class Level(NamedTuple):
    """A level that is taken with some probability, in expected cost or as a share."""

    place: float
    weight: float


class Levels(Protocol):
    """The levels of one box at a cost_scale."""

    index: float  # of the closed box: its highest level
    payments: list[Level]  # expected costs that are paid at a level
    edges: Floats  # where something jumps or bends, and around what is steep

    def below(self, x: Floats) -> Floats:
        """Probability that the final level is below x."""

    def tied(self, x: float) -> float:
        """Probability that the final level is x, and that of an index."""

    def paid(self, x: Floats) -> Floats:
        """Density of expected costs that are paid at the level x, besides `payments`."""


@dataclass
class OneStage:
    """Of a box with one payment: the prize, or the index where the prize is above it."""

    rewards: Rewards
    number: int
    index: float
    cost: float

    def __post_init__(self) -> None:
        self.payments = [Level(self.index, self.cost)]
        mean, spread = self.rewards.mean[self.number], self.rewards.spread[self.number]
        self.edges = np.concatenate([[self.index], self.rewards.corners, mean + spread * np.arange(-40.0, 13.0, 2.0)])

    def below(self, x: Floats) -> Floats:
        log_cdf = self.rewards.log_cdf(np.array([self.number]), np.ravel(x))[:, 0].reshape(np.shape(x))
        return np.where(x > self.index, 1.0, np.exp(log_cdf))

    def tied(self, x: float) -> float:
        return 1.0 - float(self.below(np.array([x]))[0]) if x == self.index else 0.0

    def paid(self, x: Floats) -> Floats:
        return np.zeros(np.shape(x))


class MarkovLevels:
    """Of a Markov chain: finitely many."""

    def __init__(self, box: MarkovBox, indices: dict[Hashable, float], prizes: dict[Hashable, float]) -> None:
        self.index = indices[box.start]
        reached: dict[Hashable, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        reached[box.start][np.inf] = 1.0
        final: dict[tuple[float, bool], float] = defaultdict(float)
        costs: dict[float, float] = defaultdict(float)
        for state in reversed(box.order):
            for level, probability in reached[state].items():
                now = min(level, indices[state])
                costs[now] += probability * box.costs[state]
                for after, share in zip(*box.following(state), strict=True):
                    if after in prizes:
                        final[min(now, prizes[after]), prizes[after] >= now] += probability * share
                    else:
                        reached[after][now] += probability * share
        self.payments = [Level(level, cost) for level, cost in costs.items()]
        self._tied = {level: p for (level, is_index), p in final.items() if is_index}
        self.edges = np.unique([level for level, _ in final] + list(costs))
        total: dict[float, float] = defaultdict(float)
        for (level, _), p in final.items():
            total[level] += p
        self._places = np.array(sorted(total))
        self._below = np.concatenate([[0.0], np.cumsum([total[level] for level in self._places])])
        self._below[-1] = 1.0

    def below(self, x: Floats) -> Floats:
        below: Floats = self._below[np.searchsorted(self._places, x, side="left")]
        return below

    def tied(self, x: float) -> float:
        return self._tied.get(x, 0.0)

    def paid(self, x: Floats) -> Floats:
        return np.zeros(np.shape(x))


def markov_indices(box: MarkovBox, cost_scale: float) -> dict[Hashable, float]:
    """The index of every state, from the last ones back: a box whose prize is the final level of the states after."""
    finals: dict[Hashable, list[Level]] = {name: [Level(float(x), 1.0)] for name, x in box.prizes.items()}
    indices: dict[Hashable, float] = {}
    for state in box.order:
        mixed: dict[float, float] = defaultdict(float)
        for after, share in zip(*box.following(state), strict=True):
            for level in finals[after]:
                mixed[level.place] += share * level.weight
        places = np.array(sorted(mixed, reverse=True))
        weights = np.array([mixed[place] for place in places])
        above = np.cumsum(weights * (places - places[0]))
        indices[state] = float(places[0] + np.max((above - cost_scale * box.costs[state]) / np.cumsum(weights)))
        kept: dict[float, float] = defaultdict(float)
        for place, weight in zip(places, weights, strict=True):
            kept[min(float(place), indices[state])] += float(weight)
        finals[state] = [Level(place, weight) for place, weight in kept.items()]
    return indices


class GaussianLevels:
    """Of Gaussian increments: the index at the start with some probability, and a density below it."""

    def __init__(self, box: StagedBox, cost_scale: float) -> None:
        self._spread = float(np.linalg.norm(box.stds))
        self._mean = box.mean
        shares = box.stds / self._spread
        prices = np.clip(cost_scale * box.costs / self._spread, LOWEST, HIGHEST)
        self._recursion = Boundaries(shares[None], prices[None])
        #: What is added to the mean of the prize to have the index before each stage.
        self.offsets: Floats = -self._spread * self._recursion.places[0, :-1]
        self.index = box.mean + float(self.offsets[0])
        self._costs = box.costs
        n = box.stds.size
        self._lowest = [self._lowest_until(last) for last in range(1, n + 1)]
        at_start = [float(cumulative(np.zeros((1, 1)), laws)[0, 0]) for laws in self._lowest]
        self._finishing = at_start[-1]
        shown = float(box.costs[0] + box.costs[1:] @ np.array(at_start[:-1]))
        self.payments = [Level(self.index, shown)]
        steps = np.concatenate([-(2.0 ** np.arange(-3.0, 6.0)), [0.0], np.array([1.0, 2.0, 4.0, 8.0])])
        widths = self._spread * self._recursion.between[0, 0, 1:]
        places = box.mean + self.offsets
        around = (places[:, None, None] + widths[:, None] * steps).ravel()
        edges = np.concatenate([around, box.mean + self._spread * np.arange(-12.0, 13.0)])
        self.edges = np.unique(np.append(edges[edges < self.index], self.index))

    def rename(self, index: float) -> None:
        """Take an index that differs by rounding, so that it equals another one."""
        self.payments = [Level(index, self.payments[0].weight)]
        self.edges = np.append(self.edges[self.edges < index], index)
        self.index = index

    def _lowest_until(self, last: int) -> list[Points]:
        """The law of (mean - level) / spread after `last` stages, seen from the first boundary, before it is cut there.

        As in `Boundaries`, but for the stages up to `last` alone, and with its whole upper end.
        """
        recursion = self._recursion
        nothing = np.zeros(1)
        laws = [Points(nothing, np.zeros((1, 1)), np.ones((1, 1)), nothing == 0, nothing)]
        for stage in range(last - 1, -1, -1):
            above = recursion.distances(stage)[:, 1 : last - stage + 1]
            after = recursion.between[:, stage, stage + 1 : last + 1]
            noisy = [law.seen(-above[:, back], after[:, back]) for back, law in enumerate(laws)]
            if stage == 0:
                return noisy
            before = recursion.between[:, :stage, stage]
            top = np.maximum(np.max(above + (REACH + 1.0) * after, axis=1), 0.0)
            ends = np.concatenate([2.0 * REACH * before, above + REACH * after], axis=1)
            bumps = Bumps(np.full(ends.shape, -np.inf), ends, np.concatenate([before, after], axis=1))
            nodes = panels(bumps, top)
            atom = cumulative(np.zeros((1, 1)), noisy)
            laws.insert(
                0,
                Points(
                    at=nothing,
                    place=np.concatenate([np.zeros((1, 1)), nodes.place], axis=1),
                    mass=np.concatenate([atom, nodes.weight * density(nodes.place, noisy)], axis=1),
                    even=top <= LIMIT * before[:, -1],
                    noise=nothing,
                ),
            )
        return laws

    def _above_boundary(self, x: Floats) -> Floats:
        return np.maximum((self.index - np.ravel(x)) / self._spread, 0.0)[None]

    def below(self, x: Floats) -> Floats:
        """1 above the index."""
        share = 1.0 - cumulative(self._above_boundary(x), self._lowest[-1])[0].reshape(np.shape(x))
        return np.where(x > self.index, 1.0, np.maximum(share, 0.0))

    def tied(self, x: float) -> float:
        """Whether no index on the way was lower than the first."""
        return self._finishing if x == self.index else 0.0

    def paid(self, x: Floats) -> Floats:
        """Costs of all stages but the first, which is paid at the index."""
        y = self._above_boundary(x)
        total = np.zeros(y.shape[1])
        for cost, laws in zip(self._costs[1:], self._lowest, strict=False):
            total += cost / self._spread * density(y, laws)[0]
        return np.where(x > self.index, 0.0, total.reshape(np.shape(x)))
