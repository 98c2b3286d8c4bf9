"""A study whose trials all fail: its objective is broken, and no point will mend it."""

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from pbgi.study import attributes
from pbgi.study.storage import trials_of
from pbgi.study.suggestion import suggestion_of


def why_broken(study: Study, most: int | None) -> str | None:
    """A sentence about a study whose first trials, so many or more, have failed; None if it may go on.

    Trials of other studies and of workers that vanished say nothing of the objective as it is here.
    """
    own = [trial for trial in trials_of(study) if _is_of(study, trial)]
    n_failed = sum(trial.state == TrialState.FAIL and attributes.ENDED in trial.system_attrs for trial in own)
    has_worked = any(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in own)
    if most is None or has_worked or n_failed < most:
        return None
    way_out = "mend the objective, or go on whatever happens with PBGISampler(max_failures=None)"
    rule = f"the first {n_failed} trials of study {study.study_name!r} failed, and none gave a value"
    return f"{rule}; {way_out}; why is in Optuna's log, with the traceback of each"


def _is_of(study: Study, trial: FrozenTrial) -> bool:
    """Whether a trial was tried in this study."""
    suggestion = suggestion_of(trial)
    return suggestion is not None and suggestion.refused is None and suggestion.study in (None, study.study_name)
