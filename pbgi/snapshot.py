"""What is known when the next point is chosen, and the search for it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pbgi.acquisition import Restricted
from pbgi.arrays import Floats
from pbgi.cost import CostModel
from pbgi.gp import GP
from pbgi.history import Trial, TrialState
from pbgi.maximize import Acquisition, SearchResult, build_pool, search
from pbgi.mixed import Grid
from pbgi.space import Space

N_INCUMBENTS = 3
# A point this close to a failed one, in every coordinate, is not tried while there is anything else.
FAILURE_RADIUS = 0.05


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a policy may look at. Values are the larger the better, whatever the user's direction.

    Attributes:
        space: Where points lie.
        X: (n, d) Completed points.
        values: (n,) Their values.
        model: What is believed of values, given running trials too.
        cost: What is believed of costs.
        trials: The history.
        sign: 1 if the user maximises, else -1: a trial's value times it is a value here.
        failed: (k, d) Failed points.
        excluded: Points that must not be proposed again, or None.
        spent: Charged so far.
        budget: What may be spent, or None.
        affordable: What the next trial may be expected to cost; inf if anything.
    """

    space: Space
    X: Floats
    values: Floats
    model: GP
    cost: CostModel
    trials: tuple[Trial, ...]
    sign: float
    failed: Floats
    excluded: Floats | None
    spent: float
    budget: float | None
    affordable: float = math.inf

    @cached_property
    def best_value(self) -> float:
        """The largest value seen."""
        return float(self.values.max())

    def value_of(self, trial: Trial) -> float | None:
        """The value of a completed trial, larger is better; None for others."""
        return self.sign * trial.value if trial.state is TrialState.COMPLETE and trial.value is not None else None

    def maximise(self, acquisition: Acquisition, rng: np.random.Generator, pool: Floats | None = None) -> SearchResult:
        """The best allowed point: affordable, not excluded, and away from failures if there is such a point."""
        if pool is None:
            pool = build_pool(self.space.dimension, rng, incumbents=self._incumbents())
        for avoid in (self.failed, self.failed[:0]) if len(self.failed) else (self.failed,):
            restricted = Restricted(acquisition, self.cost, self.affordable, avoid, FAILURE_RADIUS)
            free = math.isinf(self.affordable) and not len(avoid)
            target: Acquisition = acquisition if free else restricted
            found = search(target, pool, rng=rng, grids=grids_of(self.space), excluded=self.excluded)
            if found.x is not None and math.isfinite(found.value):
                break
        return found

    def _incumbents(self) -> Floats:
        best = np.argsort(-self.values, kind="stable")[:N_INCUMBENTS]
        return np.asarray(self.X[best])


@dataclass(frozen=True, eq=False)
class Proposal:
    """The point to try next.

    Attributes:
        x: (d,) Coordinates in the unit cube.
        predicted_cost: What it is expected to cost; None if nothing is known.
        record: What the policy wants to remember of it, by name.
    """

    x: Floats
    predicted_cost: float | None
    record: Mapping[str, float | list[float]] = field(default_factory=dict)


def grids_of(space: Space) -> list[Grid | None]:
    """The grids of a space, as the search wants them."""
    return [
        None if levels is None else Grid(levels, ordered=not is_category)
        for levels, is_category in zip(space.grids, space.categorical, strict=True)
    ]
