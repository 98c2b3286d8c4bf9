"""How long runs take, learned from those that are finished, and which one to start next.

Runs of one curve take about as long, whatever the seed. So one run of each unknown curve is started first, and then the
longest ones: nothing long is left for the end, when other processes would have nothing to do. The order in which runs
are executed has no influence on their results.
"""

import math
import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from paper.specification import Run

Curve: TypeAlias = tuple[str, str, str]
"""Panel, policy and variant: what runs that take about as long have in common."""


class Durations:
    """Seconds that runs took.

    Args:
        records: Of finished runs.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._seconds: dict[Curve, list[float]] = defaultdict(list)
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Learn from one more."""
        self._seconds[record["panel"], record["policy"], record["variant"]].append(float(record["wall_seconds"]))

    def of(self, curve: Curve) -> float | None:
        """The median of the runs of a curve; None if there is none."""
        return statistics.median(self._seconds[curve]) if self._seconds.get(curve) else None

    def total(self, runs: Iterable[Run]) -> float | None:
        """How long runs take one after another; None if nothing has finished."""
        known = {curve: statistics.median(seconds) for curve, seconds in self._seconds.items()}
        return sum(_expected(curve_of(run), known) for run in runs) if known else None


def _expected(curve: Curve, known: Mapping[Curve, float]) -> float:
    """What is known of the curve, else of its policy elsewhere (policies differ by a factor of 1000), else of all."""
    if curve in known:
        return known[curve]
    alike = [seconds for (_, policy, _), seconds in known.items() if policy == curve[1]]
    return statistics.median(alike or known.values())


class Queue:
    """Runs that are waiting.

    Args:
        runs: All of them.
        durations: What is known of how long they take; may learn while the queue is worked off.
    """

    def __init__(self, runs: Iterable[Run], durations: Durations) -> None:
        self._waiting: dict[Curve, deque[Run]] = defaultdict(deque)
        self._durations, self._probed = durations, set[Curve]()
        for run in runs:
            self._waiting[curve_of(run)].append(run)

    @property
    def runs(self) -> list[Run]:
        """All that are waiting."""
        return [run for runs in self._waiting.values() for run in runs]

    def take(self, seconds_left: float = math.inf) -> Run | None:
        """The run to start next, or None if none is waiting that is expected to end in time."""
        expected = {curve: self._durations.of(curve) for curve, runs in self._waiting.items() if runs}
        fitting = [curve for curve, seconds in expected.items() if seconds is None or seconds < seconds_left]
        if not fitting or seconds_left <= 0:
            return None
        unknown = [curve for curve in fitting if expected[curve] is None and curve not in self._probed]
        chosen = unknown[0] if unknown else max(fitting, key=lambda curve: expected[curve] or 0.0)
        self._probed.add(chosen)
        return self._waiting[chosen].popleft()


def curve_of(run: Run) -> Curve:
    """The curve of a run."""
    return run.panel, run.curve, run.variant


def in_words(seconds: float | None) -> str:
    """A duration for people: "4.2 s", "3 min", "2.5 h"; "unknown" for None."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
