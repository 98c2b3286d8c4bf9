"""Boxes that are paid in stages and may be given up after each: Gaussian increments, or a finite Markov chain."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import ArrayLike

from pbgi.arrays import Floats
from pbgi.checks import checks_arguments, require_positive
from pbgi.errors import InvalidInputError
from pbgi.pandora.rewards import finite_vector

# Stages that reveal less than this share of what all reveal are beyond the digits of a law.
LEAST_SHARE = 1e-9


@checks_arguments
@dataclass(frozen=True, eq=False)
class StagedBox:
    """A box whose prize becomes known in stages.

    Args:
        mean: Expected prize before anything is paid.
        stds: By how much each stage moves what is expected, as a standard deviation; positive. The squares add up to
            the variance of the prize.
        costs: What each stage costs; positive. The prize can be kept once the last is paid.
    """

    mean: float
    stds: Floats
    costs: Floats

    def __init__(self, mean: float, stds: ArrayLike, costs: ArrayLike) -> None:
        s, c = finite_vector("stds", stds), finite_vector("costs", costs)
        if not np.isfinite(mean):
            raise InvalidInputError(f"mean must be finite; got {mean}")
        if s.size != c.size:
            raise InvalidInputError(f"stds and costs must have one number per stage; got {s.size} and {c.size}")
        if np.any(s <= LEAST_SHARE * np.max(np.abs(s))):
            raise InvalidInputError(
                f"stds must be positive, none below {LEAST_SHARE:g} of the largest; got {s[np.argmin(s)]:g}: pay a "
                "stage that reveals nothing together with the next one"
            )
        if np.any(c <= 0):
            raise InvalidInputError(f"costs must be positive; got {c[c <= 0][0]:g}")
        for name, value in (("mean", float(mean)), ("stds", s), ("costs", c)):
            object.__setattr__(self, name, value)

    @property
    def expected_cost(self) -> float:
        """Of paying to the end."""
        return float(self.costs.sum())


@checks_arguments
@dataclass(frozen=True, eq=False)
class MarkovBox:
    """A box that moves from state to state, at a cost each time, until it shows a prize.

    Args:
        costs: What leaving each state costs; positive.
        transitions: For the same states: the next states with their probabilities, summing to one (to 1e-9).
        prizes: The last states, each with its prize.
        start: The state of the closed box. No state may be reached again from itself.
    """

    costs: Mapping[Hashable, float]
    transitions: Mapping[Hashable, Mapping[Hashable, float]]
    prizes: Mapping[Hashable, float]
    start: Hashable
    order: tuple[Hashable, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if set(self.costs) != set(self.transitions) or set(self.costs) & set(self.prizes):
            raise InvalidInputError(
                "costs and transitions must have the same states, none of them with a prize; got "
                f"{list(self.costs)}, {list(self.transitions)} and prizes of {list(self.prizes)}"
            )
        if self.start not in self.costs:
            raise InvalidInputError(f"start must be a state with a cost; got {self.start!r}, not in {list(self.costs)}")
        finite_vector("prizes", list(self.prizes.values()))
        for state, following in self.transitions.items():
            require_positive(f"cost of {state!r}", self.costs[state])
            self._check_transitions(state, following)
        try:
            first_last = tuple(TopologicalSorter(self.transitions).static_order())
        except CycleError as error:
            raise InvalidInputError(
                f"no state may be reached again from itself; got the circle {error.args[1]}"
            ) from None
        object.__setattr__(self, "order", tuple(state for state in first_last if state in self.costs))

    def _check_transitions(self, state: Hashable, following: Mapping[Hashable, float]) -> None:
        unknown = [after for after in following if after not in self.costs and after not in self.prizes]
        if unknown:
            raise InvalidInputError(
                f"every state needs a cost or a prize; got none for {unknown[0]!r}, after {state!r}"
            )
        p = finite_vector(f"transitions of {state!r}", list(following.values()))
        if np.any(p < 0) or abs(p.sum() - 1.0) > 1e-9:
            raise InvalidInputError(f"transitions of {state!r} must be probabilities that sum to one; got {p.tolist()}")

    def following(self, state: Hashable) -> tuple[list[Hashable], Floats]:
        """The next states with their probabilities, those of no probability left out."""
        after = {name: p for name, p in self.transitions[state].items() if p > 0}
        probabilities = np.array(list(after.values()))
        return list(after), probabilities / probabilities.sum()

    @property
    def expected_cost(self) -> float:
        """Of paying until a prize is shown."""
        left: dict[Hashable, float] = dict.fromkeys(self.prizes, 0.0)
        for state in self.order:
            names, probabilities = self.following(state)
            left[state] = self.costs[state] + float(probabilities @ [left[name] for name in names])
        return left[self.start]
