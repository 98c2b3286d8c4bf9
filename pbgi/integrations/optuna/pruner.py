"""A pruner by the Gittins index: a trial goes on while what is left of it is worth its price.

Whatever the sampler, the pruner has a model of its own of the study: of last values over parameters, and of how
intermediate values go on (`pbgi.stages.curves`). What is left of a trial is compared with what its price would buy
elsewhere, see `pbgi.choosing.going_on`: that of the best new trial if the sampler is `PBGISampler`, else that of one
like any other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as StudyState

from pbgi.checks import refuse_unknown_arguments, require_count
from pbgi.choosing.choice import goes_on, undisturbed
from pbgi.choosing.elsewhere import FittedOnce
from pbgi.choosing.partial import FEWEST_CURVES
from pbgi.choosing.state import RunState
from pbgi.errors import InvalidInputError
from pbgi.history import Trial, TrialState
from pbgi.integrations.optuna.sampler import PBGISampler
from pbgi.parameter import Float
from pbgi.policy import PBGI, PBGID
from pbgi.serialization import Value
from pbgi.settings import Settings
from pbgi.space import Space
from pbgi.study.learned import LearnedSpace
from pbgi.study.ledger import ledger_of, told_cost
from pbgi.study.moving import params_with_shares
from pbgi.study.reports import Lengths, lengths_of, state_of
from pbgi.study.storage import trials_of

SHARED = "pbgi:any"  # the one coordinate of trials that have no parameter in common


class GittinsPruner(BasePruner):
    """Prunes a trial when what is left of it is not worth what it would cost.

    For any sampler, and best with `PBGISampler`. Trials report their intermediate values, the last of which is that of
    the whole trial. Nothing is pruned before `n_startup_trials` have come to their end, and a trial that goes on for
    longer than any of these is left alone. The cost of a trial is its user attribute `cost`, which
    may be raised as it goes on, else its duration; steps are taken to cost alike.

    Args:
        n_startup_trials: Trials that come to their end before anything is pruned.
        n_warmup_steps: Steps of each trial before it may be pruned.
        cost_scale: How much of the objective one unit of cost is worth; by default what the study makes of it.
        seed: Of the points at which it is looked what a new trial would be worth.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        *,
        n_startup_trials: int = FEWEST_CURVES,
        n_warmup_steps: int = 0,
        cost_scale: float | None = None,
        seed: int = 0,
    ) -> None:
        self._n_startup = max(require_count("n_startup_trials", n_startup_trials, zero=True), FEWEST_CURVES)
        self._n_warmup = require_count("n_warmup_steps", n_warmup_steps, zero=True)
        self._settings = Settings(policy=PBGID() if cost_scale is None else PBGI(cost_scale), seed=seed)
        self._learned = LearnedSpace()
        self._fitted = FittedOnce()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether to prune the trial now; what Optuna asks after each report."""
        if len(study.directions) > 1:
            rule = "GittinsPruner is for studies of one objective"
            raise InvalidInputError(f"{rule}; got {len(study.directions)} directions; combine them into one value")
        step = trial.last_step
        if step is None or step < self._n_warmup:
            return False
        trials = trials_of(study)
        n_told = sum(t.state == StudyState.COMPLETE and bool(t.intermediate_values) for t in trials)
        lengths = lengths_of(trials)
        if n_told < self._n_startup or lengths is None:
            return False
        if not math.isfinite(trial.intermediate_values[step]):
            return True
        if not lengths.steps.is_decision(lengths.reports(trial, None)) or step - lengths.first + 1 >= lengths.last:
            return False
        trials = [trial if t.number == trial.number else t for t in trials]
        return not self._goes_on(study, trials, trial.number, lengths)

    def _goes_on(self, study: Study, trials: Sequence[FrozenTrial], number: int, lengths: Lengths) -> bool:
        known = self._learned.search_space(study.study_name, trials)
        space = known.space if known.axes else Space({SHARED: Float(0.0, 1.0)})
        tells = any(told_cost(t) is not None for t in trials)
        read: list[Trial] = []
        asked = None
        for each in trials:
            point = known.to_engine(params_with_shares(each, known.distributions)) if known.axes else {SHARED: 0.5}
            found = None if point is None else _trial(len(read), each, point, lengths, tells)
            if found is not None:
                asked = len(read) if each.number == number else asked
                read.append(found)
        if asked is None:
            return True  # a point of another space: nothing is known of it
        direction = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
        settings = replace(self._settings, steps=lengths.steps)
        with undisturbed():
            state = self._fitted(RunState.of(space, direction, settings, read))
            return goes_on(state, asked, best_next=isinstance(study.sampler, PBGISampler))


def _trial(number: int, trial: FrozenTrial, point: Mapping[str, Value], lengths: Lengths, tells: bool) -> Trial | None:
    """A trial of the study as the engine sees it; None of one that waits."""
    cost = (told_cost(trial) if tells else _seconds(trial)) or None
    # Seconds by a step are not those of its share: what comes before the first one, loading data, say, comes once.
    reports = lengths.reports(trial, cost if tells else None)
    if trial.state == StudyState.WAITING:
        return None
    state = state_of(trial, reports=bool(reports))
    value = trial.value if state is TrialState.COMPLETE else None
    return Trial(number, point, state, value, None if state is TrialState.RUNNING else cost, reports=reports)


def _seconds(trial: FrozenTrial) -> float | None:
    """How long a trial that has ended took, without the choice of its point."""
    ended = ledger_of([trial]).accounts.get(trial.number) if trial.state.is_finished() else None
    return None if ended is None else ended.charged
