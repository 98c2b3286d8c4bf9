"""The choice of the next point: a function of a run's state and nothing else.

The randomness of a choice is a function of (seed, number of trials). What the models and the policy must remember is in
the records of the trials.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from pbgi.arrays import Bools, Floats
from pbgi.choosing.fitting import cost_notes, fit_costs, fit_outcomes, fit_values, unseen_categories
from pbgi.choosing.going_on import an_end_is_due, can_resume, is_worth_going_on, worth_resuming
from pbgi.choosing.state import LAST_SHARE, RunState
from pbgi.constraints.constraint import beyond_limits
from pbgi.cost import CostModel, fits, least_costs
from pbgi.history import TrialState
from pbgi.notes import Note
from pbgi.policy import PBGI, LogEIPC
from pbgi.snapshot import Proposal, Snapshot, failure_radius
from pbgi.startup import START_SHARE, START_WARINESS, neglected_branch, start_point
from pbgi.stopping import NothingLeft, Situation, StopReason


@dataclass(frozen=True, eq=False)
class Choice:
    """What comes next: a proposal with the stop rule's note, a stopped trial that goes on, or why there is neither."""

    proposal: Proposal | None
    note: Mapping[str, Note]
    nothing_left: NothingLeft | None
    resumed: int | None = None


def choose(state: RunState) -> Choice:
    """What to try next."""
    settings, space = state.settings, state.space
    rng = np.random.default_rng([settings.seed, len(state.trials)])
    # A trial that was interrupted says nothing of its point, which may be tried again.
    seen = state.points([trial for trial in state.trials if trial.state is not TrialState.INTERRUPTED])
    excluded = None if settings.model.noisy else seen
    full = len(seen) >= space.n_points and len(np.unique(seen, axis=0)) >= space.n_points
    if full and excluded is not None and not can_resume(state):
        return Choice(None, {}, NothingLeft.EXHAUSTED)
    if space.dimension == 0:
        return Choice(Proposal(np.empty(0), None), {}, None)
    if _in_startup(state):
        proposal = _start(state, seen, excluded, rng)
        if proposal is not None:
            return Choice(proposal, {}, None)
    return _by_model(state, seen, excluded, rng) if state.completed else _last_resort(state, seen, excluded, rng)


def _by_model(state: RunState, seen: Floats, excluded: Floats | None, rng: np.random.Generator) -> Choice:
    settings = state.settings
    snapshot, record = snapshot_of(state, excluded)
    resumed = worth_resuming(state, snapshot)
    if resumed is not None:
        return Choice(None, {}, None, resumed)
    proposal = _of_neglected_branch(state, snapshot, rng) or settings.policy.propose(snapshot, rng)
    if proposal is None:
        unlimited = math.isinf(snapshot.affordable)
        return Choice(None, {}, NothingLeft.EXHAUSTED) if unlimited else _last_resort(state, seen, excluded, rng)
    note = settings.stop.note(snapshot, rng)
    return Choice(replace(proposal, record={**proposal.record, **record}), note, None)


def stop_reason(state: RunState, choice: Choice | None) -> StopReason | None:
    """What the stop rules say, given what would come next, or before that is known."""
    if choice is not None and choice.nothing_left is NothingLeft.EXHAUSTED:
        return StopReason("SpaceExhausted", nothing_left_message(state, choice))
    situation = Situation(
        trials=state.trials,
        budget=state.settings.budget,
        spent=state.spent,
        reserved=state.reserved,
        sign=state.sign,
        note=choice.note if choice else {},
        nothing_left=choice.nothing_left if choice else None,
        constraints=state.settings.constraints,
    )
    return state.settings.stop.reason(situation)


def nothing_left_message(state: RunState, choice: Choice) -> str:
    """Why there is no next trial, in words."""
    if choice.nothing_left is NothingLeft.EXHAUSTED:
        return f"every one of the {state.space.n_points:g} points of the space has been tried"
    left, budget = state.remaining, state.settings.budget
    return f"no trial is expected to fit the {left:g} that is left of the budget of {budget:g}"


def goes_on(state: RunState, number: int, *, best_next: bool = True) -> bool:
    """Whether a running trial is worth going on with; see `pbgi.choosing.going_on`."""
    steps, trial = state.settings.steps, state.trials[number]
    if trial.state is not TrialState.RUNNING:
        return False
    if steps is None or not state.completed or not state.space.dimension or not steps.is_decision(trial.reports):
        return True
    if an_end_is_due(state, trial):
        return True
    return is_worth_going_on(state, snapshot_of(state, refit=False, besides=number)[0], trial, best_next=best_next)


def snapshot_of(
    state: RunState, excluded: Floats | None = None, *, refit: bool = True, besides: int | None = None
) -> tuple[Snapshot, dict[str, Note]]:
    """What a policy may look at, with models fitted to the trials, and what is to be noted of the fits.

    Running trials are pending, besides one whose future is asked for.
    """
    values, cost, outcomes = fit_values(state, refit=refit), fit_costs(state), fit_outcomes(state)
    running = state.points([trial for trial in state.running if trial.number != besides])
    constraints = state.settings.constraints
    snapshot = Snapshot(
        space=state.space,
        X=values.X,
        warped=values.warped,
        warp=values.warp,
        model=values.model.condition_on_pending(running),
        cost=cost,
        trials=state.trials,
        sign=state.sign,
        failed=state.points(state.failing),
        excluded=excluded,
        spent=state.spent,
        budget=state.settings.budget,
        affordable=state.affordable,
        wariness=state.wariness,
        unseen=unseen_categories(state, cost),
        failed_radius=np.array([failure_radius(t, len(state.trials)) for t in state.failing]),
        instalments=values.instalments,
        feasibility=outcomes.feasibility and outcomes.feasibility.condition_on_pending(running),
        beyond=beyond_limits(constraints, values.seen) if constraints else None,
        feasible=frozenset(trial.number for trial in state.feasible) if constraints else None,
    )
    return snapshot, {**values.notes, **cost_notes(state, cost), **outcomes.notes}


def _of_neglected_branch(state: RunState, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
    """What promises most per cost in a branch that has been neglected, as if there were no other branch.

    Not where an exchange rate says what a trial is worth.
    """
    conditions = state.space.conditions
    if conditions is None or isinstance(state.settings.policy, PBGI):
        return None
    done = [trial for trial in state.trials if trial.state is not TrialState.INTERRUPTED]
    typical = state.typical_cost or 1.0  # of trials that cost nothing: observations from elsewhere
    charges = np.array([trial.charged or trial.reserved or typical for trial in done])
    branch = neglected_branch(conditions, state.points(done), charges)
    return LogEIPC().propose(replace(snapshot, branch=branch), rng) if branch else None


# Where the models have no say ----------------------------------------------------------------------------------------


def _in_startup(state: RunState) -> bool:
    if not state.completed or state.in_the_dark:
        return True
    if len(state.trials) >= state.settings.n_startup_in(state.space):
        return False
    budget = state.settings.budget
    return budget is None or state.spent + state.reserved < START_SHARE * budget


def _start(state: RunState, seen: Floats, excluded: Floats | None, rng: np.random.Generator) -> Proposal | None:
    """A starting point that fits its part of the start's share, or at least what is left of that share.

    While nothing has succeeded, one that fits the budget will do. While nothing is known of costs it is one around the
    middle of the space, the further out the more have failed: a corner may cost all there is.
    """
    cost = fit_costs(state) if state.cost_is_known else None
    reaches = (1.0 - 0.75 ** max(len(state.failed), 1), 1.0) if state.in_the_dark else (1.0,)
    unruinous = None if cost is None else _unruinous(state, cost)
    for allowance, reach in itertools.product(_allowances(state), reaches):
        limit = min(allowance, state.affordable)
        proposal = start_point(state.space, seen, cost, limit, excluded, rng, reach=reach, unruinous=unruinous)
        if proposal is not None:
            return proposal
    return None


def _unruinous(state: RunState, cost: CostModel) -> Callable[[Floats], Bools] | None:
    """Where a category that nobody has paid for would not take more than the budget in a bad case."""
    unseen = unseen_categories(state, cost)
    if unseen is None:
        return None
    return lambda X: (unseen.log_factor(X) == 0.0) | fits(cost, X, state.affordable, START_WARINESS, unseen)


def _allowances(state: RunState) -> list[float]:
    """What a starting point may cost: the first that some point fits."""
    budget = state.settings.budget
    if budget is None:
        return [state.affordable]
    left = START_SHARE * budget - state.spent - state.reserved
    n_left = state.settings.n_startup_in(state.space) - len(state.trials)
    return [left / max(n_left, 1), left, *([] if state.completed else [state.affordable])]


def _last_resort(state: RunState, seen: Floats, excluded: Floats | None, rng: np.random.Generator) -> Choice:
    """Where nothing fits for sure because few costs are known yet: a point that fits as likely as not.

    With the last of the budget that would be a gamble for little.
    """
    proposal = None
    few_known = state.cost_is_known and len(state.paid) < least_costs(state.space.dimension)
    if few_known and state.affordable > LAST_SHARE * (state.settings.budget or 0.0):
        proposal = start_point(state.space, seen, fit_costs(state), state.affordable, excluded, rng, 0.0)
    return Choice(proposal, {}, NothingLeft.UNAFFORDABLE if proposal is None else None)


# The surroundings of numerical work ----------------------------------------------------------------------------------


@contextmanager
def undisturbed() -> Iterator[None]:
    """With one thread, since more make small matrices slower, and without a word of NumPy's on what overflows."""
    with _threadpools().limit(limits=1), np.errstate(all="ignore"):
        yield


@cache
def _threadpools() -> ThreadpoolController:
    """Found once: looking for the libraries takes longer than a suggestion."""
    return ThreadpoolController()
