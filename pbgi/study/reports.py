"""The intermediate values of a study's trials as reports of the engine's, and how long its trials are.

Optuna's steps may begin at 0 and trials may have any length. The engine counts steps from 1, and a trial is as long as
the longest that came to its end.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from pbgi.trials.steps import Report, Steps


@dataclass(frozen=True)
class Lengths:
    """How steps are counted.

    Attributes:
        first: The first step of the study's trials, which is step 1 here.
        last: The last step of the longest complete trial, here.
    """

    first: int
    last: int

    @property
    def steps(self) -> Steps:
        """As the engine wants it."""
        return Steps(self.last)

    def reports(self, trial: FrozenTrial, cost: float | None) -> tuple[Report, ...]:
        """What a trial has said on its way, and what it has cost by the last report; values that are none left out.

        What a trial says after the last step of those that came to their end is left out too: nothing is known there.
        """
        told = [(step - self.first + 1, value) for step, value in sorted(trial.intermediate_values.items())]
        told = [(step, value) for step, value in told if math.isfinite(value) and step <= self.last]
        reports = [Report(step, value, None) for step, value in told]
        if reports and cost is not None and cost > 0.0:
            reports[-1] = reports[-1]._replace(cost=cost)
        return tuple(reports)


def lengths_of(trials: Iterable[FrozenTrial]) -> Lengths | None:
    """How long the trials of a study are; None while none that reports has come to its end."""
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.intermediate_values]
    if not complete:
        return None
    first = min(min(t.intermediate_values) for t in complete)
    last = max(max(t.intermediate_values) for t in complete)
    return Lengths(first, last - first + 1)
