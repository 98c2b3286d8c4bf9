"""How the next point is chosen: each policy is a frozen value with one question, `propose`.

A policy is an acquisition function and where its parameters come from. What it must remember between two proposals it
writes into the record of the trial, so that the history is all the state there is.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from pbgi.acquisition import (
    Exponential,
    GittinsIndex,
    LogExpectedImprovement,
    PathValue,
    UnwarpedIndex,
    UpperConfidenceBound,
)
from pbgi.arrays import Floats
from pbgi.best_point import best_point
from pbgi.checks import checks_arguments, require_positive, set_fields
from pbgi.constraints.feasibility import IfFeasible, WhereLikely
from pbgi.errors import InvalidInputError
from pbgi.history import TrialState
from pbgi.notes import COST_SCALE, INDEX, INITIAL_COST_SCALE
from pbgi.search import Acquisition, SearchResult
from pbgi.snapshot import Proposal, Snapshot, cost_of
from pbgi.stages.instalments import InstalmentIndex

PATH_CLIMBS = 10  # times as many climbs for Thompson sampling
UCB_CONFIDENCE = 0.1
N_RANDOM = 64
NO_NOTES: Mapping[str, float] = {}


class Policy(Protocol):
    """How the next point is chosen."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The next point, or None if no point is allowed."""


def _proposal(snapshot: Snapshot, found: SearchResult, record: Mapping[str, float] = NO_NOTES) -> Proposal | None:
    if found.x is None or not math.isfinite(found.value):
        return None
    predicted = cost_of(float(snapshot.cost.log_moment(found.x[None], 1.0)[0]))
    return Proposal(found.x, predicted, record)


def _propose_best(snapshot: Snapshot, acquisition: Acquisition, rng: np.random.Generator) -> Proposal | None:
    return _proposal(snapshot, best_point(snapshot, acquisition, rng))


def _by_instalments(snapshot: Snapshot, cost_scale: float) -> Acquisition:
    """The index of trials that may stop early, at a rate of warped values: exact above the best value."""
    assert snapshot.instalments is not None  # noqa: S101 (for the type checker)
    return InstalmentIndex(snapshot.model, snapshot.price, cost_scale, snapshot.instalments)


def _propose_by_index(
    snapshot: Snapshot,
    rng: np.random.Generator,
    index: Acquisition,
    cost_scale: float,
    record: Mapping[str, float] = NO_NOTES,
) -> Proposal | None:
    """The point of highest index; what is noted of it is in users' units."""
    found = best_point(snapshot, index, rng)
    value = float(snapshot.warp.to_values(np.array([found.value]))[0]) if math.isfinite(found.value) else found.value
    return _proposal(snapshot, found, {INDEX.name: value, COST_SCALE.name: cost_scale, **record})


@checks_arguments
@dataclass(frozen=True)
class PBGI:
    """The Pandora's Box Gittins index at a fixed exchange rate.

    Args:
        cost_scale: How much of the objective one unit of cost is worth (lambda in the paper).
    """

    cost_scale: float

    def __post_init__(self) -> None:
        set_fields(self, cost_scale=require_positive("cost_scale", self.cost_scale))

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest index."""
        index: Acquisition = UnwarpedIndex(snapshot.model, snapshot.price, self.cost_scale, snapshot.warp)
        if snapshot.instalments is not None:
            index = _by_instalments(snapshot, self.cost_scale / snapshot.warp.top_slope)
        return _propose_by_index(snapshot, rng, index, self.cost_scale)


@checks_arguments
@dataclass(frozen=True)
class PBGID:
    """The index at an exchange rate that falls whenever the search would have stopped at the current one.

    A rate that is found at the start is one of warped values, and so is the index then; a given one is in users' units.

    Args:
        initial_cost_scale: The rate at the start; by default a share of the largest expected improvement per cost
            there, so that the units of objective and cost do not matter.
        decay: What the rate is divided by when the index of a trial turns out below the best value, its own included.
        initial_share: The share, where the rate at the start is not given.
    """

    initial_cost_scale: float | None = None
    decay: float = 2.0
    initial_share: float = 0.05

    def __post_init__(self) -> None:
        if self.initial_cost_scale is not None:
            set_fields(self, initial_cost_scale=require_positive("initial_cost_scale", self.initial_cost_scale))
        set_fields(self, decay=require_positive("decay", self.decay))
        set_fields(self, initial_share=require_positive("initial_share", self.initial_share))
        if self.decay <= 1.0:
            raise InvalidInputError(f"decay must be greater than 1; got {self.decay!r}")

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest index at the current rate."""
        initial = self._given(snapshot)
        # Values all alike say nothing of the unit of the objective: a rate found among them is not kept.
        # Nor is one without a best value, which is that of a feasible point.
        differ = bool(snapshot.warped.max() > snapshot.warped.min())
        is_noted = initial is not None or (differ and snapshot.has_incumbent)
        initial = self._found(snapshot, rng) if initial is None else initial
        if initial is None:
            return None
        # Written so that it underflows, quietly, where decay ** n would overflow.
        cost_scale = max(initial * (1.0 / self.decay) ** self._n_fired(snapshot), sys.float_info.min)
        record = {INITIAL_COST_SCALE.name: initial} if is_noted else {}
        if self.initial_cost_scale is not None:
            index: Acquisition = UnwarpedIndex(snapshot.model, snapshot.price, cost_scale, snapshot.warp)
            if snapshot.instalments is not None:
                index = _by_instalments(snapshot, cost_scale / snapshot.warp.top_slope)
            return _propose_by_index(snapshot, rng, index, cost_scale, record)
        # Above the best value this is the index of unwarped values at the rate times the slope there.
        index = GittinsIndex(snapshot.model, snapshot.price, cost_scale)
        if snapshot.instalments is not None:
            index = _by_instalments(snapshot, cost_scale)
        noted = max(cost_scale * snapshot.warp.top_slope, sys.float_info.min)
        return _propose_by_index(snapshot, rng, index, min(noted, sys.float_info.max), record)

    def _given(self, snapshot: Snapshot) -> float | None:
        """The rate at the start, if a trial has noted it or the user said it."""
        for trial in snapshot.trials:
            noted = INITIAL_COST_SCALE.of(trial)
            if noted is not None:
                return noted
        return self.initial_cost_scale

    def _found(self, snapshot: Snapshot, rng: np.random.Generator) -> float | None:
        """A share of the largest expected improvement per cost now."""
        per_cost = LogExpectedImprovement(snapshot.model, snapshot.price, snapshot.best_warped, cost_power=1.0)
        found = best_point(snapshot, per_cost, rng)
        # Clipped far outside of any use, to where exp neither overflows nor loses digits.
        return None if found.x is None else self.initial_share * math.exp(min(max(found.value, -700.0), 700.0))

    def _n_fired(self, snapshot: Snapshot) -> int:
        """How many trials had an index, known before their value, strictly below the best value up to their own."""
        fired, best = 0, -math.inf
        for trial in snapshot.trials:
            value = snapshot.value_of(trial)
            if value is None and trial.state is not TrialState.STOPPED:
                continue
            best = max(best, value) if value is not None and snapshot.counts(trial) else best
            index = INDEX.of(trial)
            fired += INITIAL_COST_SCALE.of(trial) is not None and index is not None and index < best
        return fired


@checks_arguments
@dataclass(frozen=True)
class LogEI:
    """Expected improvement, blind to cost; its logarithm is maximized, which is nowhere flat."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest log EI."""
        return _propose_best(snapshot, _log_ei(snapshot, 0.0), rng)


@checks_arguments
@dataclass(frozen=True)
class LogEIPC:
    """Expected improvement per cost."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest log EI + log E[1/c]."""
        return _propose_best(snapshot, _log_ei(snapshot, -1.0), rng)


@checks_arguments
@dataclass(frozen=True)
class LogEICC:
    """Expected improvement per cost, cooled: the weight of cost falls from 1 to 0 as the budget is spent."""

    needs_budget: ClassVar[bool] = True

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest log EI + log E[c^-a], a the share of the budget that is left."""
        if snapshot.budget is None:
            raise InvalidInputError("LogEICC cools with the budget: give the optimizer one; got budget=None")
        left = max((snapshot.budget - snapshot.spent) / snapshot.budget, 0.0)
        return _propose_best(snapshot, _log_ei(snapshot, -left), rng)


@checks_arguments
@dataclass(frozen=True)
class EI:
    """Expected improvement, maximized as it is and not its logarithm: flat where little is expected."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest EI."""
        return _propose_best(snapshot, Exponential(_log_ei(snapshot, 0.0)), rng)


@checks_arguments
@dataclass(frozen=True)
class EIPC:
    """Expected improvement per cost, maximized as it is and not its logarithm."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest EI E[1/c]."""
        return _propose_best(snapshot, Exponential(_log_ei(snapshot, -1.0)), rng)


@checks_arguments
@dataclass(frozen=True)
class UCB:
    """Upper confidence bound, blind to cost, with the paper's schedule."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest mean + sqrt(b_t) std, b_t = 2 log(d t^2 pi^2 / (6 * 0.1)) / 5, t = spent + 1."""
        t, d = snapshot.spent + 1.0, snapshot.space.dimension
        schedule = 0.4 * math.log(d * t * t * math.pi**2 / (6.0 * UCB_CONFIDENCE))
        bound = UpperConfidenceBound(snapshot.model, math.sqrt(schedule))
        return _propose_best(snapshot, _where_likely(snapshot, bound), rng)


@checks_arguments
@dataclass(frozen=True)
class Thompson:
    """Thompson sampling, blind to cost: the maximizer of one function drawn from the posterior."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The maximizer of a draw."""
        path = _where_likely(snapshot, PathValue(snapshot.model.sample_path(rng)))
        # A draw has many more peaks than a closed-form function of the posterior.
        return _proposal(snapshot, best_point(snapshot, path, rng, times_climbs=PATH_CLIMBS))


@checks_arguments
@dataclass(frozen=True)
class RandomSearch:
    """Uniformly at random."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """A random point, whatever is known: where nothing is better than anything else, the search takes any."""
        pool = rng.random((N_RANDOM, snapshot.space.dimension))
        return _proposal(snapshot, best_point(snapshot, _Flat(), rng, pool=pool))


class _Flat:
    def value(self, X: Floats) -> Floats:
        return np.zeros(len(X))

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        return np.zeros(len(X)), np.zeros(X.shape)


def _log_ei(snapshot: Snapshot, cost_power: float) -> Acquisition:
    """Of an improvement that keeps the conditions, however little the cost counts."""
    log_ei = LogExpectedImprovement(snapshot.model, snapshot.cost_per_value, snapshot.best_warped, cost_power)
    return log_ei if snapshot.feasibility is None else IfFeasible(log_ei, snapshot.feasibility)


def _where_likely(snapshot: Snapshot, of: Acquisition) -> Acquisition:
    return of if snapshot.feasibility is None else WhereLikely(of, snapshot.feasibility)


POLICIES: tuple[type, ...] = (PBGI, PBGID, LogEI, LogEIPC, LogEICC, EI, EIPC, UCB, Thompson, RandomSearch)
