"""Results that come late: of trials that were failed because their workers seemed to be gone.

Optuna lets nobody change a finished trial. So a late result is a trial of its own, complete, at the same point, that
names the failed one (`pbgi:late`). The failed one then counts no more: neither is it charged, nor does anything learn
that its point fails. A trial whose worker lived to say that it failed stays failed.
"""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from pbgi.checks import check_cost, check_value
from pbgi.errors import InvalidInputError, TrialStateError, UnknownTrialError
from pbgi.study import attributes
from pbgi.study.ledger import ledger_of, told_cost
from pbgi.study.storage import add_trial, note, patiently, trials_of


def tell_result(study: Study, trial: Trial | int, value: float, *, cost: float | None = None) -> FrozenTrial:
    """Tell the result of a trial, also if it was failed as abandoned meanwhile: by `fail_abandoned` or a heartbeat.

    Args:
        study: The study.
        trial: A trial, or its number.
        value: The outcome, a finite number.
        cost: What it cost; if not given, its attribute `cost`, or what a trial without one is charged.

    Returns:
        The finished trial: another one than `trial` if that had been failed. Telling the same again changes nothing.

    Raises:
        TrialStateError: It has ended otherwise before.
    """
    value, paid, trials = check_value(value), check_cost(cost), trials_of(study)
    if not math.isfinite(value):
        raise InvalidInputError(f"value must be finite; got {value!r}; write study.tell(trial, state=TrialState.FAIL)")
    known = _trial(trials, trial)
    if not known.state.is_finished():
        if paid is not None:
            note(study, known, attributes.COST, paid)
        patiently(lambda: study.tell(known.number, value, skip_if_finished=True))
        return trials_of(study)[known.number]
    found = late_result(trials, known)
    if found is None and was_abandoned(known):
        return add_trial(study, late_trial(trials, known, value, told_cost(known) if paid is None else paid))
    return require_same(found or known, value, paid)


def _trial(trials: list[FrozenTrial], wanted: Any) -> FrozenTrial:
    number = wanted.number if isinstance(wanted, Trial) else wanted
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(trials):
        rule = "trial must be one of this study, or its number"
        raise UnknownTrialError(f"{rule}; got {wanted!r}; there are {len(trials)} trials")
    return trials[number]


def was_abandoned(trial: FrozenTrial) -> bool:
    """Whether a trial was failed by somebody else than its worker."""
    return trial.state == TrialState.FAIL and attributes.ENDED not in trial.system_attrs


def late_result(trials: Iterable[FrozenTrial], failed: FrozenTrial) -> FrozenTrial | None:
    """The late result of a failed trial, if it came."""
    return next((trial for trial in trials if trial.system_attrs.get(attributes.LATE) == failed.number), None)


def late_trial(
    trials: Iterable[FrozenTrial],
    failed: FrozenTrial,
    value: float,
    cost: float | None,
    notes: Mapping[str, Any] = MappingProxyType({}),
) -> FrozenTrial:
    """The trial that holds the late result of a failed one, to be added. Without a cost it is charged the same."""
    own = {
        key: note for key, note in failed.user_attrs.items() if key != attributes.COST and not key.startswith("pbgi:")
    }
    system_attrs: dict[str, Any] = {
        attributes.LATE: failed.number,
        attributes.TRIAL: failed.system_attrs.get(attributes.TRIAL),
    }
    if cost is None:
        system_attrs[attributes.PRICE] = ledger_of(trials).accounts[failed.number].charged
    return create_trial(
        state=TrialState.COMPLETE,
        value=value,
        params=failed.params,
        distributions=failed.distributions,
        user_attrs=own | dict(notes) | ({} if cost is None else {attributes.COST: cost}),
        system_attrs=system_attrs,
    )


def require_same(known: FrozenTrial, value: float | None, cost: float | None) -> FrozenTrial:
    """A finished trial, if it ended like this; a cost that is not told is no contradiction.

    Raises:
        TrialStateError: It ended otherwise.
    """
    ended = known.value if known.state is TrialState.COMPLETE else None
    paid = known.user_attrs.get(attributes.COST)
    if (ended, paid) == (value, paid if cost is None else cost):
        return known
    state = f"{known.state.name.lower()}, value {ended}, cost {paid}"
    rule = f"trial {known.number} is finished and stays as it is: {state}"
    raise TrialStateError(f"{rule}; got value {value}, cost {cost}")
