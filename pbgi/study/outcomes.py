"""Outcomes that conditions are about, as they are stored with the trials of a study.

Optuna stores how far a trial is beyond its limits: numbers that are above 0 where it breaks one, under `constraints` (a
list) or `constraints:name` (one by one, `trial.set_constraint`). Its other samplers and its dashboard read that. `pbgi
tune` writes it too, and keeps the outcomes themselves beside it, since a limit may change.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from pbgi.constraints.constraint import AtMost, Condition, Constraints
from pbgi.errors import InvalidInputError
from pbgi.study import attributes

ONE_BY_ONE = f"{attributes.CONSTRAINTS}:"


def outcomes_of(trial: FrozenTrial) -> dict[str, float]:
    """The outcomes of a finished trial by name: as they were told, or how far they are beyond Optuna's limit of 0."""
    if not trial.state.is_finished():
        return {}
    told = trial.user_attrs.get(attributes.OUTCOMES)
    if isinstance(told, Mapping):
        return {name: float(outcome) for name, outcome in told.items()}
    listed = trial.system_attrs.get(attributes.CONSTRAINTS)
    found = {str(k): x for k, x in enumerate(listed)} if isinstance(listed, list | tuple) else {}
    for key, excess in trial.system_attrs.items():
        if key.startswith(ONE_BY_ONE):
            found[key.removeprefix(ONE_BY_ONE)] = excess
    return {name: float(x) for name, x in found.items() if _is_finite(x)}


def constraints_of(known: Constraints | None, trials: Iterable[FrozenTrial]) -> Constraints | None:
    """The conditions, or where none are known those that the trials of Optuna speak of; None without any."""
    if known is not None:
        return known
    names = dict.fromkeys(name for trial in trials for name in outcomes_of(trial))
    return {name: AtMost(0.0) for name in names} or None


def keeps_all(trial: FrozenTrial, constraints: Constraints | None) -> bool:
    """Whether a completed trial is known to keep all conditions."""
    if not constraints:
        return True
    told = outcomes_of(trial)
    return trial.state is TrialState.COMPLETE and all(
        name in told and condition.margin(told[name]) >= 0.0 for name, condition in constraints.items()
    )


def beyond(constraints: Mapping[str, Condition], outcomes: Mapping[str, float]) -> list[float]:
    """What Optuna calls the constraints of a trial: above 0 where a limit is broken; of all or of none."""
    if any(name not in outcomes for name in constraints):
        return []
    return [-condition.margin(outcomes[name]) for name, condition in constraints.items()]


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def checked_excesses(found: Any) -> list[float]:
    """What a user's `constraints_func` returned: how far a trial is beyond each limit."""
    try:
        numbers = [float(x) for x in found]
    except (TypeError, ValueError):
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise InvalidInputError(f"constraints_func must return finite numbers; got {found!r}")
    return numbers
