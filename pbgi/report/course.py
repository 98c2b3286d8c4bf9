"""The course of a run in numbers: what had been spent, and the best value, when each trial began and ended.

Trials are charged in the order of their numbers. With several workers they may have ended in another.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pbgi.arrays import Floats
from pbgi.history import Trial, TrialState
from pbgi.report.subject import Subject
from pbgi.report.wording import with_unit


@dataclass(frozen=True, eq=False)
class Course:
    """How far a run had come at each trial.

    Where nothing was charged at all, finished trials are counted instead.

    Attributes:
        subject: The run.
        counts_trials: Whether trials are counted.
        until: By number, what was spent when the trial had ended, its own cost included.
        before: By number, what was spent on the trials before it.
    """

    subject: Subject
    counts_trials: bool
    until: Mapping[int, float]
    before: Mapping[int, float]

    @classmethod
    def of(cls, subject: Subject) -> "Course":
        """The course of a run."""
        counts = subject.spent <= 0.0
        spent, until, before = 0.0, {}, {}
        for trial in subject.trials:
            finished = trial.state is not TrialState.RUNNING
            before[trial.number] = spent
            spent += float(finished) if counts else trial.charged
            until[trial.number] = spent
        return cls(subject, counts, until, before)

    @property
    def end(self) -> float:
        """Where the run stands."""
        return max(self.until.values(), default=0.0)

    @property
    def title(self) -> str:
        """What the axis is called."""
        return "Trials finished" if self.counts_trials else with_unit("Spent", self.subject.unit)

    @cached_property
    def improvements(self) -> tuple[Trial, ...]:
        """The trials that were better than all before them, of those that keep all conditions."""
        found: list[Trial] = []
        best = -math.inf
        for trial in self.subject.feasible:
            value = self.subject.sign * (trial.value or 0.0)
            if value > best:
                best = value
                found.append(trial)
        return tuple(found)

    def best_before(self, number: int) -> float | None:
        """The best value among the trials of lower number."""
        earlier = [trial.value for trial in self.improvements if trial.number < number]
        return earlier[-1] if earlier else None

    def steps(self) -> tuple[list[float], list[float]]:
        """The best value as a staircase: where it changes, and the value from there on; to where the run stands."""
        x = [self.until[trial.number] for trial in self.improvements]
        y = [trial.value or 0.0 for trial in self.improvements]
        return ([*x, max(self.end, x[-1])], [*y, y[-1]]) if x else ([], [])


def is_wide(values: Floats) -> bool:
    """Whether numbers are better seen on a logarithmic axis: all positive, over more than two orders of magnitude."""
    return len(values) > 0 and bool(values.min() > 0.0) and bool(values.max() / 100.0 > values.min())
