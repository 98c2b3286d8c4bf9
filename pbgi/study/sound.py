"""Whether trials are as the sampler and the command line write them: what a storage hands back is checked first.

A storage is a file or a server that others may write to, and disks fail. A row of another type must not end in a
traceback, in a wrong charge or in a path that leads out of the folder of the trials.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from pbgi.study import attributes
from pbgi.study.suggestion import suggestion_of

_TOKEN = re.compile(r"[0-9a-f]{1,64}")
_FOLDER = re.compile(r"[0-9]{1,19}-[0-9a-f]{1,64}")
_STEP = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


def fault_in(trials: Sequence[FrozenTrial]) -> str | None:
    """The first thing that neither this package nor Optuna would have written; None if there is none."""
    return next(chain.from_iterable(_faults(n, trial) for n, trial in enumerate(trials)), None)


def _faults(position: int, trial: FrozenTrial) -> Iterator[str]:
    """In an order in which each check may rely on the ones before it."""
    if type(trial.number) is not int or trial.number != position:
        yield f"numbers of trials must be 0, 1, 2, ...; got {trial.number!r} at position {position}"
    if trial.state is TrialState.COMPLETE and not (trial.values and all(map(_is_value, trial.values))):
        yield f"trial {position} is complete and must have a number as its value; got {trial.values}"
    for table in (trial.system_attrs, trial.user_attrs, trial.params):
        for key in table:
            if not isinstance(key, str):
                yield f"names of what trial {position} holds must be texts; got {key!r}"
    for key, (rule, holds) in NOTES.items():
        notes = trial.system_attrs if key in SYSTEM else trial.user_attrs
        if notes.get(key) is not None and not holds(notes[key]):
            yield f"{key} of trial {position} must be {rule}; got {notes[key]!r}"
    yield from _faults_of_params(trial)


def _faults_of_params(trial: FrozenTrial) -> Iterator[str]:
    try:
        suggestion = suggestion_of(trial)
    except TypeError as error:
        yield f"{attributes.TRIAL} of trial {trial.number} must be what was suggested; {error}"
        return
    for name, distribution in trial.distributions.items():
        if not isinstance(distribution, CategoricalDistribution) and type(trial.params[name]) not in (int, float):
            yield f"parameter {name!r} of trial {trial.number} must be a number; got {trial.params[name]!r}"
    # A trial of ours is added with its parameters at once.
    missing = [] if suggestion is None else [name for name in suggestion.params if name not in trial.params]
    if missing and attributes.TOKEN in trial.user_attrs:
        yield f"trial {trial.number} must have the parameters suggested for it; {missing[0]!r} is missing"


def _is_value(value: object) -> bool:
    return type(value) is float and not math.isnan(value)


def is_amount(value: object) -> bool:
    """A finite number that is not negative."""
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]


def _is_process(value: object) -> bool:
    good = isinstance(value, Mapping) and all(type(x) in (str, int, float, type(None)) for x in value.values())
    return good and ("time" not in value or is_amount(value["time"]))  # type: ignore[operator,index]


def _has_amounts(*names: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, Mapping) and all(is_amount(value.get(name)) for name in names)


def _is_suggestion(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    cost, params, record = (value.get(name) for name in ("predicted_cost", "params", "record"))
    numbers = [x for table in (params, record) if isinstance(table, Mapping) for x in table.values()]
    return (
        (cost is None or is_amount(cost))
        and all(table is None or isinstance(table, Mapping) for table in (params, record))
        and all(type(x) in (int, float) or _is_list_of_numbers(x) for x in numbers)
    )


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(x) in (int, float) for x in value)


def are_outcomes(value: object) -> bool:
    """Finite numbers by name."""
    return isinstance(value, Mapping) and all(type(x) in (int, float) and math.isfinite(x) for x in value.values())


def are_attempts(value: object) -> bool:
    """What attempts took and cost, one after the other."""
    return isinstance(value, list) and all(map(_has_amounts("seconds", "cost"), value))


def are_step_costs(value: Any) -> bool:
    """Costs by step, which rise with it."""
    if not isinstance(value, Mapping) or not all(isinstance(step, str) and _STEP.fullmatch(step) for step in value):
        return False
    costs = [value[step] for step in sorted(value, key=int)]
    return all(is_amount(cost) and cost > 0.0 for cost in costs) and costs == sorted(costs)


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_number, value))


def _is_folder_name(value: object) -> bool:
    return isinstance(value, str) and bool(_FOLDER.fullmatch(value))


# What each attribute must be, where it is there. A cost that is none is the ledger's affair: other tools tell it too.
NOTES: dict[str, tuple[str, Callable[[object], bool]]] = {
    attributes.TRIAL: ("what was suggested", _is_suggestion),
    attributes.MESSAGE: ("a text", lambda value: isinstance(value, str)),
    attributes.OVERRUN: ("true or false", lambda value: isinstance(value, bool)),
    attributes.OBSERVED: ("a cost", is_amount),
    attributes.OUTCOMES: ("numbers by name", are_outcomes),
    attributes.SECONDS: ("a number of seconds", is_amount),
    attributes.TOKEN: (
        "a few hexadecimal digits",
        lambda value: isinstance(value, str) and bool(_TOKEN.fullmatch(value)),
    ),
    attributes.WORKER: ("a process", _is_process),
    attributes.COMMAND: ("a process", lambda value: _is_process(value) and is_amount(value.get("time"))),  # type: ignore[attr-defined]
    attributes.BEAT: ("seconds and a time", _has_amounts("seconds", "time")),
    attributes.ATTEMPTS: ("a list of seconds and costs", are_attempts),
    attributes.STEP_COSTS: ("costs by step, which do not shrink", are_step_costs),
    attributes.CHECKPOINT: ("the name of a trial's folder", _is_folder_name),
    attributes.GOES_ON: ("numbers of trials before it", _are_numbers),
    attributes.BEGUN_AGAIN: ("the number of a trial", _is_number),
}
SYSTEM = (attributes.TRIAL, attributes.GOES_ON, attributes.BEGUN_AGAIN)
