"""Whether a trial that has begun is worth going on with: what is left of it against what its price would buy elsewhere.

What is left of a trial is a box paid in instalments. A unit of cost is worth what the best new trial, paid as a whole,
makes of it: at the exchange rate E[improvement] / E[cost] its index equals the best value, and the search would as well
stop. At half that rate, or at the policy's own if that is higher, a trial goes on if its index is above the best value.
That new trials may stop early too is left out on purpose: one like a trial that has begun, with all of it still to pay,
would otherwise look better than that, be begun, look worse in its turn, and so on for ever.

What the end of a trial teaches about curves is in no index, since the boxes of an index teach nothing about each other.
So after trials that were stopped have paid for half of a whole one, the next comes to its end: a model of curves that
is wrong early is put right. Where trials can be resumed each may still come to its end, and none must.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pbgi.acquisition import LogExpectedImprovement
from pbgi.arrays import Floats
from pbgi.best_point import restricted
from pbgi.choosing.state import RunState
from pbgi.history import Trial, TrialState
from pbgi.policy import PBGI
from pbgi.search import build_pool
from pbgi.snapshot import Snapshot, cost_of

N_INCUMBENTS = 3
# Of what the best new trial makes of a unit of cost. With all of it a trial that is sure to be better than all before
# it is given up for a neighbor that may be better by a hair, and that for the next.
LOG_SHARE = math.log(0.5)
# Whole trials that may be paid in trials that are stopped before one must come to its end. Without a limit dozens in a
# row were stopped on the word of the first three curves. What runs do with it: `benchmarks/quality_early_stopping.py`;
# half was taken from few variants with few seeds, so it may not be the best.
STOPPED_PER_END = 0.5
LOG_NOTHING = -10.0  # per typical cost: where it would buy nothing else


def is_worth_going_on(state: RunState, snapshot: Snapshot, trial: Trial, *, best_next: bool = True) -> bool:
    """Whether a running trial is, that has just ended a stage.

    The next new trial is the best there is, or, if something else chooses it, one like any other.
    """
    log_rate = log_worth_elsewhere(state, snapshot, best_next=best_next)
    if snapshot.instalments is None or log_rate is None:
        return True
    return bool(_indices(state, snapshot, [trial], log_rate)[0] > snapshot.best_warped)


def an_end_is_due(state: RunState, trial: Trial) -> bool:
    """Whether a running trial must come to its end, for what that teaches: of several the one that is furthest."""
    steps = state.settings.steps
    if steps is None or steps.resumable or trial is not max(state.running, key=lambda t: (t.step, -t.number)):
        return False
    since = itertools.takewhile(lambda t: t.value is None or not t.reports, reversed(state.trials))
    paid = sum(state.share_paid_at(t.step) for t in since if t.state is TrialState.STOPPED)
    return paid > STOPPED_PER_END


def can_resume(state: RunState) -> bool:
    """Whether some stopped trial can go on."""
    steps = state.settings.steps
    resumable = steps is not None and steps.resumable
    return resumable and any(trial.state is TrialState.STOPPED for trial in state.trials)


def worth_resuming(state: RunState, snapshot: Snapshot) -> int | None:
    """The number of the stopped trial that is most worth going on with, if one is and trials can go on."""
    if not can_resume(state) or snapshot.instalments is None:
        return None
    stopped = [t for t in state.trials if t.state is TrialState.STOPPED and t.reports]
    stopped = [t for t in stopped if _left(state, snapshot, t) <= snapshot.affordable]
    if not stopped:
        return None
    log_rate = log_worth_elsewhere(state, snapshot)
    if log_rate is None:
        return None
    indices = _indices(state, snapshot, stopped, log_rate)
    best = int(np.argmax(indices))
    return stopped[best].number if indices[best] > snapshot.best_warped else None


def log_worth_elsewhere(state: RunState, snapshot: Snapshot, *, best_next: bool = True) -> float | None:
    """Logarithm of the exchange rate, in warped units, at which no new trial is worth more than its price.

    None where that cannot be said; hardly anything where no new trial can be afforded.
    """
    own = -math.inf
    if isinstance(state.settings.policy, PBGI):
        own = math.log(state.settings.policy.cost_scale) - math.log(snapshot.warp.top_slope)
    rng = np.random.default_rng([state.settings.seed, len(state.trials), 1])
    best = np.argsort(-snapshot.warped, kind="stable")[:N_INCUMBENTS]
    pool = state.space.snap(build_pool(state.space.dimension, rng, incumbents=snapshot.X[best]))
    pool = pool[snapshot.is_affordable(pool)]
    if not len(pool):
        return max(own, LOG_NOTHING - math.log(state.typical_cost or 1.0))
    per_cost = LogExpectedImprovement(snapshot.model, snapshot.price, snapshot.best_warped, cost_power=1.0)
    worth = restricted(snapshot, per_cost).value(pool)
    found = float(worth.max() + LOG_SHARE if best_next else np.logaddexp.reduce(worth) - math.log(len(worth)))
    if math.isfinite(found):
        return max(own, found)
    return own if math.isfinite(own) else None


def _indices(state: RunState, snapshot: Snapshot, trials: Sequence[Trial], log_rate: float) -> Floats:
    """The indices of what is left of trials that have begun, in warped units."""
    steps, instalments = state.settings.steps, snapshot.instalments
    assert steps is not None and instalments is not None  # noqa: S101, PT018 (for the type checker)
    X = state.points(trials)
    mean, std = snapshot.model.posterior(X)
    log_cost = log_rate + snapshot.price.log_moment(X, 1.0)
    indices = np.empty(len(trials))
    for i, trial in enumerate(trials):
        done = steps.n_stages_at(trial.step)
        begun = float(state.shares_paid[done]) - state.share_paid_at(trial.step)
        part = begun / float(instalments.shares[done])
        indices[i] = instalments.index(mean[i : i + 1], std[i : i + 1], log_cost[i : i + 1], done, part)[0]
    return indices


def _left(state: RunState, snapshot: Snapshot, trial: Trial) -> float:
    """What is expected to be left to pay of a trial."""
    whole = cost_of(float(snapshot.cost.log_moment(state.points([trial]), 1.0)[0]))
    return (1.0 - state.share_paid_at(trial.step)) * whole
