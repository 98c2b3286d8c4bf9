"""What is known when the next point is chosen, and what is then proposed: data alone."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pbgi.arrays import Bools, Floats, Ints
from pbgi.constraints.feasibility import Feasibility
from pbgi.cost import WARINESS, CostModel, Unseen, fits
from pbgi.cost.success import PerSuccess, Success, fit_success
from pbgi.gp.warp import IDENTITY, Warp
from pbgi.history import Trial, TrialState
from pbgi.model import Model
from pbgi.notes import Note
from pbgi.search import Search
from pbgi.space import Space
from pbgi.stages.instalments import Instalments

# Around a point that has just failed nothing is tried this close, in every coordinate, while anything else is left. The
# distance halves with every FAILURE_MEMORY trials: the border of a failing region may hold the best point of all.
FAILURE_RADIUS = 0.05
FAILURE_MEMORY = 30
# Logarithms of the least and the largest positive float.
LOG_LEAST, LOG_MOST = math.log(math.ulp(0.0)), math.log(sys.float_info.max)

ENGINE_SEARCH = Search()


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
        sign: 1 if the user maximizes, else -1: a trial's value times it is a value here.
        failed: (k, d) Failed points.
        excluded: Points that must not be proposed again, or None.
        spent: Charged so far.
        budget: What may be spent, or None.
        affordable: What the next trial may cost; inf if anything.
        failed_radius: (k,) How far around each failed point nothing is tried while there is anything else.
        warp: The map between values and what the model sees of them.
        wariness: How many deviations above its median a cost must be affordable.
        unseen: How much categories that nobody has paid for may cost; None where that is known.
        search: How the best point is looked for.
        branch: What the first parents must have decided, by position; only points of that branch may be proposed.
        feasibility: How likely points are to keep the conditions on outcomes; None without conditions.
        beyond: (n,) How far completed points are beyond the conditions, 0 for feasible ones; None without conditions.
        feasible: Numbers of the trials that keep all conditions; None without conditions.
        instalments: How trials are paid, where they may stop early; None where they are not.
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
    unseen: Unseen | None = None
    search: Search = ENGINE_SEARCH
    branch: tuple[int, ...] = ()
    feasibility: Feasibility | None = None
    beyond: Floats | None = None
    feasible: frozenset[int] | None = None
    instalments: Instalments | None = None

    @cached_property
    def success(self) -> Success | None:
        """How likely points are to give a value; None while nothing has failed."""
        return fit_success(self.space, self.X, self.failed)

    @cached_property
    def cost_per_value(self) -> CostModel:
        """What a point costs per trial with a value, where some trials fail."""
        return self.cost if self.success is None else PerSuccess(self.cost, self.success)

    @cached_property
    def price(self) -> CostModel:
        """What a point costs per success, a value that counts: what acquisition functions weigh."""
        return self.cost_per_value if self.feasibility is None else PerSuccess(self.cost_per_value, self.feasibility)

    def is_affordable(self, X: Floats) -> Bools:
        """Which points (m, d) fit what is left of the budget in a bad case."""
        return fits(self.cost, X, self.affordable, self.wariness, self.unseen)

    @property
    def has_incumbent(self) -> bool:
        """Whether a feasible point has been seen."""
        return self.beyond is None or bool((self.beyond == 0.0).any())

    @cached_property
    def best_warped(self) -> float:
        """The largest value seen of a feasible point, in the branch if there is one, as the model sees it.

        While there is none it is the least value seen: any feasible point is then worth what it is better than that.
        """
        counts = np.ones(len(self.warped), dtype=np.bool_) if self.beyond is None else self.beyond == 0.0
        if self.branch and self.space.conditions is not None:
            counts = counts & self.space.conditions.is_in(self.branch, self.X)
        return float(self.warped[counts].max() if counts.any() else self.warped.min())

    @property
    def best_first(self) -> Ints:
        """The positions of completed points: feasible ones by value, then the others by how near they are to it."""
        if self.beyond is None:
            return np.argsort(-self.warped, kind="stable")
        return np.lexsort((-self.warped, self.beyond))

    def counts(self, trial: Trial) -> bool:
        """Whether the value of a completed trial counts: conditions are kept."""
        return self.feasible is None or trial.number in self.feasible

    def value_of(self, trial: Trial) -> float | None:
        """The value of a completed trial, larger is better; None for others."""
        return self.sign * trial.value if trial.state is TrialState.COMPLETE and trial.value is not None else None


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


def failure_radius(trial: Trial, n_trials: int) -> float:
    """How far around a failed trial nothing is tried, when there have been so many trials since the first."""
    return float(FAILURE_RADIUS * 0.5 ** ((n_trials - 1 - trial.number) / FAILURE_MEMORY))
