"""`pbgi ask` and `pbgi tell`: the two halves of a trial for scripts that run it themselves, such as Slurm jobs."""

import json
import math
from collections.abc import Mapping
from typing import Any

from pbgi.cli.outcome import LEAST_COST, Outcome, not_nested
from pbgi.cli.records import trial_records
from pbgi.cli.study import StudyBook, predicted_cost
from pbgi.cli.suggest import hand_out
from pbgi.errors import InvalidInputError, NothingLeftError
from pbgi.history import check_cost, check_value
from pbgi.stopping import StopReason

TOLD = ("trial", "value", "cost", "failed", "message")


def ask(book: StudyBook) -> dict[str, Any]:
    """Hand out the next trial; it runs until it is told.

    Raises:
        NothingLeftError: There is a reason to stop.
    """
    added = hand_out(book, {})
    if isinstance(added, StopReason):
        raise NothingLeftError(added.message)
    params = book.settings.space.check(added.params)
    return {"trial": added.number, "params": params, "predicted_cost": predicted_cost(added)}


def tell(book: StudyBook, told: Mapping[str, Any]) -> dict[str, Any]:
    """Record how a trial ended.

    Args:
        book: The study.
        told: The trial's number under "trial", then "value" or "failed": true, and "cost" and "message" if known.

    Returns:
        The trial; another one than was told of if that had been given up as abandoned.
    """
    number, value, cost, message = checked(told)

    def finish() -> int:
        trial = book.trial(number)
        charged, observed = cost, None
        if cost is None and not trial.state.is_finished():
            charged, observed = _assumed_cost(book, trial), 0.0
        return book.finish(number, Outcome(value, charged, None, message, observed=observed)).number

    ended = book.exclusively(finish)
    return trial_records(book.trials())[ended]


def _assumed_cost(book: StudyBook, trial: Any) -> float:
    """What a trial is charged whose cost nobody tells: what was expected."""
    predicted = predicted_cost(trial)
    if predicted is None and book.settings.budget is not None:
        raise InvalidInputError(
            f"cost must be told, since the budget counts it and nothing is known of costs yet; got none for trial "
            f"{trial.number}"
        )
    return predicted or LEAST_COST


def checked(told: Mapping[str, Any]) -> tuple[int, float | None, float | None, str | None]:
    """Number, value, cost and message, each by its rule."""
    unknown = [key for key in told if key not in TOLD]
    if unknown:
        raise InvalidInputError(f"what is told must be among {', '.join(TOLD)}; got {unknown[0]!r}")
    told = {key: not_nested(key, value) for key, value in told.items()}
    number, failed, message = told.get("trial"), told.get("failed", False), told.get("message")
    if type(number) is not int or number < 0:
        raise InvalidInputError(f"trial must be a number from `ask`; got {number!r}")
    if failed not in (True, False) or bool(failed) == (told.get("value") is not None):
        raise InvalidInputError(f"trial {number} must be told a value, or that it failed, and not both")
    if message is not None and not isinstance(message, str):
        raise InvalidInputError(f"message must be a text; got {message!r}")
    value = None if failed else check_value(told["value"])
    if value is not None and not math.isfinite(value):
        value, message = None, message or f"the value of a trial must be finite; got {value!r}"
    return number, value, check_cost(told.get("cost")), message if value is None else None


def read_told(text: str) -> dict[str, Any]:
    """What is told on standard input: a JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f'standard input must be JSON such as {{"trial": 7, "value": 0.3}}; {error}') from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"standard input must be a JSON object; got {text[:50]!r}")
    return found
