"""What is known when the next point is chosen, and the search for it."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pbgi.acquisition import Cheapness, Restricted
from pbgi.arrays import Floats
from pbgi.cost import WARINESS, CostModel, fits
from pbgi.history import Note, Trial, TrialState
from pbgi.maximize import Acquisition, SearchResult, build_pool, search
from pbgi.mixed import Grid
from pbgi.model import Model
from pbgi.space import Space
from pbgi.success import PerSuccess, Success, fit_success
from pbgi.warp import IDENTITY, Warp

N_INCUMBENTS = 3
# Around a point that has just failed nothing is tried this close, in every coordinate, while anything else is left. The
# distance halves with every FAILURE_MEMORY trials: the border of a failing region may hold the best point of all.
FAILURE_RADIUS = 0.05
FAILURE_MEMORY = 30
# Logarithms of the least and the largest positive float.
LOG_LEAST, LOG_MOST = math.log(math.ulp(0.0)), math.log(sys.float_info.max)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a policy may look at. Values are the larger the better, whatever the user's direction.

    Attributes:
        space: Where points lie.
        X: (n, d) Completed points.
        warped: (n,) Their values as the model sees them.
        model: What is believed of warped values, given running trials too.
        cost: What is believed of costs.
        trials: The history.
        sign: 1 if the user maximises, else -1: a trial's value times it is a value here.
        failed: (k, d) Failed points.
        excluded: Points that must not be proposed again, or None.
        spent: Charged so far.
        budget: What may be spent, or None.
        affordable: What the next trial may cost; inf if anything.
        failed_radius: (k,) How far around each failed point nothing is tried while there is anything else.
        warp: The map between values and what the model sees of them.
        wariness: How many deviations above its median a cost must be affordable.
    """

    space: Space
    X: Floats
    warped: Floats
    model: Model
    cost: CostModel
    trials: tuple[Trial, ...]
    sign: float
    failed: Floats
    excluded: Floats | None
    spent: float
    budget: float | None
    affordable: float = math.inf
    failed_radius: Floats | float = FAILURE_RADIUS
    warp: Warp = IDENTITY
    wariness: float = WARINESS

    @cached_property
    def success(self) -> Success | None:
        """How likely points are to give a value; None while nothing has failed."""
        return fit_success(self.space, self.X, self.failed)

    @cached_property
    def price(self) -> CostModel:
        """What a point costs per success: what acquisition functions weigh, where some trials fail."""
        return self.cost if self.success is None else PerSuccess(self.cost, self.success)

    @cached_property
    def best_warped(self) -> float:
        """The largest value seen, as the model sees it."""
        return float(self.warped.max())

    def value_of(self, trial: Trial) -> float | None:
        """The value of a completed trial, larger is better; None for others."""
        return self.sign * trial.value if trial.state is TrialState.COMPLETE and trial.value is not None else None

    def maximise(
        self,
        acquisition: Acquisition,
        rng: np.random.Generator,
        pool: Floats | None = None,
        former_maximisers: Floats | None = None,
        n_starts: int | None = None,
        near_best: bool = True,
    ) -> SearchResult:
        """The best allowed point: affordable, not excluded, and unlikely to fail if there is such a point.

        Args:
            acquisition: What is maximised.
            rng: Source of all randomness.
            pool: Points to choose starts from; by default Sobol points, and what the following ones add.
            former_maximisers: Points of earlier searches, added as they are.
            n_starts: Climbs, if not the default number.
            near_best: Whether the best points tried and their neighbours are added.
        """
        if pool is None:
            d, incumbents = self.space.dimension, self._incumbents() if near_best else None
            pool = build_pool(d, rng, incumbents=incumbents, former_maximisers=former_maximisers)
        if not fits(self.cost, self.space.snap(pool), self.affordable, self.wariness).any():
            pool = np.concatenate([pool, cheap_points(self.space, self.cost, pool, self.excluded, rng)])
        for wary in (True, False) if len(self.failed) else (False,):
            free = math.isinf(self.affordable) and not wary
            target: Acquisition = acquisition if free else self.restricted(acquisition, wary=wary)
            grids = grids_of(self.space)
            found = search(target, pool, rng=rng, n_starts=n_starts, grids=grids, excluded=self.excluded)
            if found.x is not None and math.isfinite(found.value):
                break
        return found

    def restricted(self, acquisition: Acquisition, *, wary: bool = True) -> Restricted:
        """The function where points are affordable and, if wary, neither close to failures nor likely to fail."""
        return Restricted(
            acquisition,
            self.cost,
            self.affordable,
            self.failed if wary else self.failed[:0],
            self.failed_radius if wary else 0.0,
            self.space.categorical,
            self.success if wary else None,
            self.wariness,
        )

    def noted_points(self, name: str, n: int) -> Floats:
        """The latest points (k, d), at most n, that trials have noted under this name."""
        noted = [trial.record[name] for trial in self.trials if name in trial.record]
        return np.array(noted[-n:], dtype=np.float64).reshape(-1, self.space.dimension)

    def _incumbents(self) -> Floats:
        best = np.argsort(-self.warped, kind="stable")[:N_INCUMBENTS]
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
    record: Mapping[str, Note] = field(default_factory=dict)


def cost_of(log_cost: float) -> float:
    """A cost by its logarithm, within what a float holds: positive and finite, however far a model extrapolates."""
    return math.exp(min(max(log_cost, LOG_LEAST), LOG_MOST))


def cheap_points(
    space: Space, cost: CostModel, pool: Floats, excluded: Floats | None, rng: np.random.Generator
) -> Floats:
    """The cheapest points there are, with their neighbours: for when a pool holds none that is affordable."""
    found = search(Cheapness(cost), pool, rng=rng, grids=grids_of(space), excluded=excluded)
    return space.snap(build_pool(space.dimension, rng, n_sobol=0, incumbents=found.X_all[:N_INCUMBENTS]))


def grids_of(space: Space) -> list[Grid | None]:
    """The grids of a space, as the search wants them."""
    return [
        None if levels is None else Grid(levels, ordered=not is_category)
        for levels, is_category in zip(space.grids, space.categorical, strict=True)
    ]


def failure_radius(trial: Trial, n_trials: int) -> float:
    """How far around a failed trial nothing is tried, when there have been so many trials since the first."""
    return float(FAILURE_RADIUS * 0.5 ** ((n_trials - 1 - trial.number) / FAILURE_MEMORY))
