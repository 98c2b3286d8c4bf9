"""What a program said of a trial: the value and the cost, from its output or from a file.

{"value": 0.25, "cost": 1.5}       the keys are the job's `objective` and `cost`
0.25                               a number alone is the value, where the cost is not reported

Programs print other things too. In the output an object that has the key of the objective is the result, the last one
if there are several, whatever follows it. A number alone may be anything, a count of epochs say, so it is the result
only as the last line. Where trials tell their steps, the report of the last step will do as a result, and other
reports are none.
"""

import math
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pbgi.checks import check_cost, check_outcomes, check_value
from pbgi.cli.errors import shortened
from pbgi.cli.job import STEP, Job, price_of_second
from pbgi.cli.private import tail
from pbgi.errors import InvalidInputError
from pbgi.serialization import parsed_json

# How much of the end of the output is looked at: a last line longer than this is not a result.
MOST_BYTES = 2**20
LEAST_COST = 1e-9  # a cost is positive, however short the command


@dataclass(frozen=True)
class Outcome:
    """How an attempt, or a trial, ended.

    Attributes:
        value: What it gave; None if it failed.
        cost: What it cost; None if that is not known.
        seconds: How long it took, where that was measured.
        message: Why it failed; None if it did not.
        overrun: Whether it was ended because the budget was used up: its cost is then less than it would have been.
        abandoned: Whether it was given up by another process than its own, which may yet come with a result.
        observed: What the attempt that gave the value was seen to cost, where `cost` is only what is charged; 0 for
            nothing.
        outcomes: What conditions are about, by name; None where it is not known.
        stopped: Whether it was stopped early, since what was left of it was not worth its price.
    """

    value: float | None
    cost: float | None
    seconds: float | None
    message: str | None = None
    overrun: bool = False
    abandoned: bool = False
    observed: float | None = None
    outcomes: Mapping[str, float] | None = None
    stopped: bool = False


@dataclass(frozen=True)
class Reported:
    """What was found in a result: a value or why there is none, and a cost and outcomes where they are reported."""

    value: float | None
    cost: float | None
    problem: str | None = None
    outcomes: Mapping[str, float] | None = None


def read_result(
    output: Path,
    result_file: Path | None,
    objective: str,
    cost: str | None,
    names: Collection[str] = (),
    end: Mapping[str, Any] | None = None,
) -> Reported:
    """The result of a command; what is wrong with it comes back as its problem, never as an exception.

    Args:
        output: What it printed.
        result_file: Where the result is instead, if it is in a file.
        objective: Key of the value.
        cost: Key of the cost, if it is reported.
        names: Keys of what conditions are about.
        end: Where trials tell their steps, the report of the last one, or nothing if that was not done.
    """
    source = "the output" if result_file is None else f"the file {result_file.name!r}"
    try:
        if result_file is not None:
            return _reported(_json_file(result_file), objective, cost, names)
        return _reported(result_in(tail(output, MOST_BYTES), objective, cost, end), objective, cost, names)
    except InvalidInputError as error:
        return Reported(None, None, f"{source}: {shortened(str(error))}")


def result_in(text: str, objective: str, cost: str | None, end: Mapping[str, Any] | None = None) -> Any:
    """The result in an output: an object, or the number in the last line.

    An object without a value may still say what was spent.
    """
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    without_value = []
    for line in reversed(lines):
        found = parsed(line)
        if isinstance(found, dict) and not (end is not None and STEP in found):
            if objective in found:
                return found
            without_value.append(found)
    if end:
        return end
    paid = [found for found in without_value if cost in found]
    last = parsed(lines[-1]) if lines else None
    if not paid and isinstance(last, int | float):
        return last
    if without_value:
        return (paid or without_value)[0]
    rule = 'a line of JSON must say the result, such as {"value": 0.25}, or the last line must be a number'
    raise InvalidInputError(f"{rule}; there is none")


def parsed(line: str) -> Any:
    """The JSON object or number that a line is; None if it is neither."""
    start = line.strip()[0]
    if start != "{" and start not in "-0123456789NI":
        return None
    try:
        return parsed_json(line)
    except ValueError:
        return None


def not_nested(name: str, value: Any) -> Any:
    """The value, unless it is a list or an object of JSON, which may be nested too deeply to be shown."""
    if isinstance(value, list | dict):
        kind = "a list" if isinstance(value, list) else "an object"
        raise InvalidInputError(f"{name} must be a single JSON value; got {kind} of length {len(value)}")
    return value


def _json_file(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"a result may have at most {MOST_BYTES} bytes; got {path.stat().st_size}")
        return parsed_json(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInputError(f"must be JSON: {error}") from None


def _reported(found: Any, objective: str, cost: str | None, names: Collection[str]) -> Reported:
    if not isinstance(found, Mapping):
        found = {objective: found}
    paid, problem = None, None
    if cost is not None:
        try:
            paid = check_cost(not_nested("the cost", found.get(cost)))
        except InvalidInputError as error:
            problem = shortened(f"{cost}: {error}")
        if paid is None and problem is None:
            problem = shortened(f"the cost must be under the key {cost!r}; got keys {sorted(found)}")
    if objective not in found:
        keys = shortened(f"the value must be under the key {objective!r}; got keys {sorted(found)}")
        return Reported(None, paid, keys)
    value = check_value(not_nested("the value", found[objective]))
    outcomes = check_outcomes({name: not_nested(name, found[name]) for name in names if name in found}, "the result")
    missing = [name for name in names if name not in outcomes]
    if not math.isfinite(value):
        problem = f"the value must be finite; got {value!r}"
    elif missing and problem is None:
        problem = shortened(f"an outcome must be under the key {missing[0]!r}; got keys {sorted(found)}")
    return Reported(None if problem else value, paid, problem, outcomes or None)


def priced(job: Job, seconds: float) -> float | None:
    """What so many seconds cost; None where only the program knows."""
    price = price_of_second(job)
    return None if price is None else min(max(seconds * price, LEAST_COST), sys.float_info.max)
