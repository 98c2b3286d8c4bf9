"""Where a run stands, in a line of at most so many columns: what is spent, the best value, how long it will take."""

import math
import shutil
import time
from collections.abc import Mapping
from typing import TextIO

import numpy as np

from pbgi.display.wording import number, plural, text
from pbgi.optimizer import Optimizer

COLUMNS = 80
RECENT = 10  # the latest trials say best what the next ones will cost: the search has gone where it pays
MANY = 999  # trials: nobody counts more
ROUNDING = 1e-9
SECONDS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


class Progress:
    """One line that is written over: what is spent, the best value, and how long it is expected to take."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._width = stream, 0
        self._began, self._spent_before = time.monotonic(), math.nan

    def update(self, optimizer: Optimizer) -> None:
        """Show where the run stands now."""
        if self._stream is None:
            return
        if math.isnan(self._spent_before):
            self._spent_before = optimizer.spent - _latest(optimizer)
        line = describe(optimizer, self._seconds_left(optimizer), shutil.get_terminal_size((COLUMNS, 24)).columns)
        self._stream.write("\r" + line.ljust(self._width))
        self._width = len(line)
        self._stream.flush()

    def close(self) -> None:
        """Leave the line as it is."""
        if self._stream is not None and self._width:
            self._stream.write("\n")

    def _seconds_left(self, optimizer: Optimizer) -> float | None:
        """What is left of the budget, at the pace of this run; None where nothing tells the pace."""
        spent = optimizer.spent - self._spent_before
        if optimizer.budget is None or not spent > 0.0:
            return None
        return max(optimizer.budget - optimizer.spent, 0.0) * (time.monotonic() - self._began) / spent


def describe(optimizer: Optimizer, seconds: float | None = None, columns: int = COLUMNS) -> str:
    """Where a run stands, in one line."""
    best = None if optimizer.best is None else (optimizer.best.value or 0.0, optimizer.best.params)
    if optimizer.budget is None:
        done = f"{plural(len(optimizer.trials), 'trial')}" + to_go(None, seconds)
        return line_of(f"{number(optimizer.spent)} spent", best, done, columns)
    paid = [t.charged for t in optimizer.trials if t.charged > 0]
    more = trials_that_fit(optimizer.remaining or 0.0, float(np.mean(paid[-RECENT:]))) if paid else None
    money = money_words(optimizer.spent, optimizer.reserved, optimizer.budget)
    return line_of(money, best, to_go(more, seconds), columns)


def _latest(optimizer: Optimizer) -> float:
    return next((t.charged for t in reversed(optimizer.trials) if t.charged > 0), 0.0)


# The words of a line -------------------------------------------------------------------------------------------------


def line_of(money: str, best: tuple[float, Mapping[str, object]] | None, rest: str, columns: int) -> str:
    """A line that leaves the last column free: the parameters of the best trial are cut where there is no room."""
    room = columns - 1 - len(money) - len(rest) - len(" | ") * (1 + bool(rest))
    return " | ".join(part for part in (money, best_words(best, room), rest) if part)[: columns - 1]


def money_words(spent: float, reserved: float, budget: float) -> str:
    """Spent + held for running trials + left = budget, with as many decimals as make the sum right."""
    if spent + reserved > budget * (1.0 + ROUNDING):
        return f"{number(spent, 3)} spent + {number(reserved, 3)} held, beyond {number(budget, 3)}"
    if not 1e-4 <= budget < 1e7:  # such numbers are written with exponents, whose sum nobody checks
        parts = [number(part, 3) for part in (spent, reserved, budget - spent - reserved, budget)]
    else:
        decimals = max(2 - math.floor(math.log10(budget)), 0)
        unit = 10**decimals
        total = round(budget * unit)
        paid = min(round(spent * unit), total)
        held = min(round(reserved * unit), total - paid)  # rounded up, both together may be more than all
        parts = [f"{part / unit:.{decimals}f}" for part in (paid, held, total - paid - held, total)]
    return f"{parts[0]} + {parts[1]} held + {parts[2]} left = {parts[3]}"


def best_words(best: tuple[float, Mapping[str, object]] | None, room: int) -> str:
    """The best value with its parameters, in at most so many letters, but at least the value."""
    if best is None:
        return "no value yet"
    value, params = best
    words = f"best {number(value)}"
    at = ", ".join(f"{text(name)} {number(x, 3) if isinstance(x, float) else text(x)}" for name, x in params.items())
    whole = f"{words} ({at})"
    if len(whole) <= room:
        return whole
    return words if room < len(words) + len(" (x…)") else whole[: room - 2] + "…)"


def trials_that_fit(left: float, cost: float) -> int | None:
    """How many trials of such a cost fit; None where that is beyond counting."""
    more = left / cost
    return math.floor(more) if math.isfinite(more) else None


def to_go(n: int | None, seconds: float | None) -> str:
    """How many more trials are expected, and how long they take, as far as that is known."""
    said = [] if n is None else [f"{n} more" if n <= MANY else f">{MANY} more"]
    said += [] if seconds is None or not math.isfinite(seconds) else [duration(seconds)]
    return ", ".join(said)


def duration(seconds: float) -> str:
    """Seconds in the largest unit of which there are two, or in seconds."""
    size, unit = next(((size, unit) for size, unit in SECONDS if seconds >= 2.0 * size), SECONDS[-1])
    return f"{seconds / size:.0f} {unit}"
