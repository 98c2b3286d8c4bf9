"""What is stored of a suggestion with its trial: written here, and checked when it is read."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from optuna.trial import FrozenTrial

from pbgi.errors import InvalidInputError
from pbgi.notes import Note
from pbgi.study import attributes
from pbgi.study.moving import Share, params_with_shares


@dataclass(frozen=True)
class Suggestion:
    """What was suggested for a trial.

    Attributes:
        params: The point, in Optuna's internal numbers.
        predicted_cost: What it is expected to cost; None if nothing is known.
        priced: Whether that is a price known beforehand.
        record: What the policy noted.
        refused: Why there is no point for this trial: nothing fits the budget.
        study: The study that it was suggested in, by name: a copy of the trial in another study knows where it is from.
            None where that was not stored yet.
        seconds: How long choosing it took, waiting for the choices of others included.
        shares: Of parameters whose range was not known yet, the share of it; see `moving.py`.
    """

    params: Mapping[str, float] = field(default_factory=dict)
    predicted_cost: float | None = None
    priced: bool = False
    record: Mapping[str, Note] = field(default_factory=dict)
    refused: str | None = None
    study: str | None = None
    seconds: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)


FORMAT = 1  # of what is stored of a suggestion; what has none was written before there were several


def to_stored(suggestion: Suggestion) -> dict[str, Any]:
    """A suggestion as it is stored with its trial."""
    return {"format": FORMAT, **asdict(suggestion)}


def suggestion_of(trial: FrozenTrial) -> Suggestion | None:
    """What was suggested for a trial, if it was by this sampler.

    Raises:
        InvalidInputError: Another version has written it, or it is damaged.
    """
    found = trial.system_attrs.get(attributes.TRIAL)
    if found is None:
        return None
    problem = _problem(found)
    if problem is not None:
        rule = f"attribute {attributes.TRIAL!r} of trial {trial.number} must be of format {FORMAT}"
        raise InvalidInputError(f"{rule}; {problem}; another version of pbgi wrote it, or it is damaged: update pbgi")
    return Suggestion(**{name: value for name, value in found.items() if name != "format"})


def _problem(found: Any) -> str | None:
    """What is wrong with a stored suggestion."""
    if not isinstance(found, dict):
        return f"got {found!r}"
    if found.get("format", FORMAT) != FORMAT:
        return f"got format {found['format']!r}"
    unknown = [name for name in found if name != "format" and name not in _RULES]
    if unknown:
        return f"unknown: {', '.join(map(repr, unknown))}"
    wrong = [name for name, holds in _RULES.items() if name in found and not holds(found[name])]
    return f"got {wrong[0]}={found[wrong[0]]!r}" if wrong else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


_RULES: dict[str, Callable[[Any], bool]] = {
    "params": lambda params: isinstance(params, dict) and all(_is_number(x) for x in params.values()),
    "shares": lambda shares: isinstance(shares, dict) and all(_is_number(x) for x in shares.values()),
    "predicted_cost": lambda cost: cost is None or (_is_number(cost) and cost >= 0.0),
    "priced": lambda priced: isinstance(priced, bool),
    "record": lambda record: isinstance(record, dict),
    "refused": lambda refused: refused is None or isinstance(refused, str),
    "study": lambda study: study is None or isinstance(study, str),
    "seconds": lambda seconds: _is_number(seconds) and seconds >= 0.0,
}


def suggested_params(trial: FrozenTrial, distributions: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a trial so far, with those that were suggested and not yet asked for."""
    suggestion = suggestion_of(trial)
    return ({} if suggestion is None else external(suggestion, distributions)) | params_with_shares(
        trial, distributions
    )


def external(suggestion: Suggestion, distributions: Mapping[str, Any]) -> dict[str, Any]:
    """What was suggested of the parameters that these are the distributions of, shares where they are shares."""
    by_share = {name for name, distribution in distributions.items() if isinstance(distribution, Share)}
    values = {n: distributions[n].to_external_repr(x) for n, x in suggestion.params.items() if n in distributions}
    return {n: x for n, x in values.items() if n not in by_share} | {
        n: x for n, x in suggestion.shares.items() if n in by_share
    }
