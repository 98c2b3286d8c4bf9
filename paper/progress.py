"""How long runs take, learned from those that are finished, and in which order to start them.

Runs of one curve take about as long, whatever the seed. So one run of each unknown curve is started first, and then the
longest ones: nothing long is left for the end, when other processes would have nothing to do. The order in which runs
are executed has no influence on their results.
"""

import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from paper.specification import Run

Curve: TypeAlias = tuple[str, int, str, str, str, str]
"""Problem, dimension, cost, variant, search and policy: what runs that take about as long have in common."""


class Durations:
    """Seconds that runs took.

    Args:
        records: Of finished runs.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._seconds: dict[Curve, list[float]] = defaultdict(list)
        self._medians: dict[Curve, float] = {}
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Learn from one more."""
        curve = record["problem"], record["dim"], record["cost"], record["variant"], record["search"], record["policy"]
        self._seconds[curve].append(float(record["wall_seconds"]))
        self._medians[curve] = statistics.median(self._seconds[curve])

    def of(self, run: Run) -> float | None:
        """The median of the curve of a run; None if none of its runs has finished."""
        return self._medians.get(_curve(run))

    def total(self, runs: Iterable[Run]) -> float | None:
        """How long runs take one after another; None if nothing has finished."""
        counts = Counter(map(_curve, runs))
        return sum(n * self._expected(curve) for curve, n in counts.items()) if self._medians else None

    def _expected(self, curve: Curve) -> float:
        """The median of the curve, else of its policy elsewhere (policies differ by a factor of 1000), else of all."""
        if curve in self._medians:
            return self._medians[curve]
        alike = [seconds for (*_, policy), seconds in self._medians.items() if policy == curve[-1]]
        return statistics.median(alike or self._medians.values())


def in_order(runs: Iterable[Run], durations: Durations, deadline: float = math.inf) -> Iterator[Run]:
    """Runs to start one after another, less those that are not expected to end by the deadline when they are taken.

    Args:
        runs: All of them.
        durations: What is known of how long they take; may learn while runs are taken.
        deadline: On the clock of `time.monotonic`.
    """
    for run in _longest_first(list(runs), durations):
        if time.monotonic() + (durations.of(run) or 0.0) < deadline:
            yield run


def _longest_first(runs: list[Run], durations: Durations) -> list[Run]:
    unknown = {_curve(run): run for run in reversed(runs) if durations.of(run) is None}  # the first of each curve
    first = set(unknown.values())
    return sorted(runs, key=lambda run: (run not in first, -(durations.total([run]) or 0.0)))


def _curve(run: Run) -> Curve:
    return run.problem, run.dim, run.cost, run.variant, run.search, run.curve


def in_words(seconds: float | None) -> str:
    """A duration for people: "4.2 s", "3 min", "2.5 h"; "unknown" for None."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
