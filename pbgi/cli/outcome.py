"""What a command said: the value and the cost, from its output or from a file; and its logs.

{"value": 0.25, "cost": 1.5}       the keys are the job's `objective` and `cost`
0.25                               a number alone is the value, where the cost is not reported

Programs print other things too. In the output an object that has the key of the objective is the result, the last one
if there are several, whatever follows it. A number alone may be anything, a count of epochs say, so it is the result
only as the last line.

Logs are kept within bounds: their beginning and their end. A command writes straight into its log, so that nothing is
lost when this process dies. What is too much in the middle is given back to the disk while the command runs, as a hole
in the file that moves nothing, and cut out when it has ended. Where a file system knows no holes, the log is cut at the
end only.
"""

import contextlib
import ctypes
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pbgi.checks import check_cost, check_value
from pbgi.cli.errors import shortened
from pbgi.cli.private import open_private, tail
from pbgi.errors import InvalidInputError

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
    """

    value: float | None
    cost: float | None
    seconds: float | None
    message: str | None = None
    overrun: bool = False
    abandoned: bool = False
    observed: float | None = None


@dataclass(frozen=True)
class Reported:
    """What was found in a result: a value or why there is none, and a cost where one is reported."""

    value: float | None
    cost: float | None
    problem: str | None = None


def read_result(output: Path, result_file: Path | None, objective: str, cost: str | None) -> Reported:
    """The result of a command; what is wrong with it comes back as its problem, never as an exception."""
    source = "the output" if result_file is None else f"the file {result_file.name!r}"
    try:
        if result_file is not None:
            return _reported(_json_file(result_file), objective, cost)
        return _reported(result_in(tail(output, MOST_BYTES), objective, cost), objective, cost)
    except InvalidInputError as error:
        return Reported(None, None, f"{source}: {shortened(str(error))}")


def result_in(text: str, objective: str, cost: str | None) -> Any:
    """The result in an output: an object, or the number in the last line.

    An object without a value may still say what was spent.
    """
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    without_value = []
    for line in reversed(lines):
        found = _parsed(line)
        if isinstance(found, dict):
            if objective in found:
                return found
            without_value.append(found)
    paid = [found for found in without_value if cost in found]
    last = _parsed(lines[-1]) if lines else None
    if not paid and isinstance(last, int | float):
        return last
    if without_value:
        return (paid or without_value)[0]
    rule = 'a line of JSON must say the result, such as {"value": 0.25}, or the last line must be a number'
    raise InvalidInputError(f"{rule}; there is none")


def _parsed(line: str) -> Any:
    """The JSON object or number that a line is; None if it is neither."""
    start = line.strip()[0]
    if start != "{" and start not in "-0123456789NI":
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
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
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"must be JSON: {error}") from None


def _reported(found: Any, objective: str, cost: str | None) -> Reported:
    if not isinstance(found, dict):
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
    if not math.isfinite(value):
        return Reported(None, paid, f"the value must be finite; got {value!r}")
    return Reported(None if problem else value, paid, problem)


# Logs ----------------------------------------------------------------------------------------------------------------


KEPT = 8 * 2**20  # bytes, at either end
BLOCK = 2**20  # what lies between is given back in pieces of this size or more
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)


def give_back(path: Path) -> None:
    """Free what lies between the ends of a log that is being written."""
    with contextlib.suppress(OSError, AttributeError), path.open("r+b") as file:
        about = os.fstat(file.fileno())
        if about.st_blocks * 512 > 2 * KEPT + BLOCK and about.st_size > 2 * KEPT + BLOCK:
            _punch(file.fileno(), KEPT, about.st_size - 2 * KEPT)


def _punch(file: int, offset: int, length: int) -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    call = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
    call(file, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_longlong(offset), ctypes.c_longlong(length))


def condense(path: Path) -> None:
    """Cut a log that nobody writes to any more, and say so in it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        too_much = os.fstat(file.fileno()).st_size - 2 * KEPT
        if too_much <= 0:
            return
        draft = path.with_name(path.name + ".draft")
        with open_private(draft) as kept:
            kept.write(file.read(KEPT))
            kept.write(f"\n[pbgi: {too_much} bytes left out; a log keeps its first and last {KEPT} bytes]\n".encode())
            file.seek(-KEPT, os.SEEK_END)
            kept.write(file.read())
        draft.replace(path)
