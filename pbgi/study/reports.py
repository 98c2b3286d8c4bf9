"""The intermediate values of a study's trials as reports of the engine's, and how long its trials are.

Optuna's steps may begin at 0 and trials may have any length. The engine counts steps from 1, and a trial is as long as
the longest that came to its end. In a study of `pbgi tune` both are known beforehand, and what a trial had cost is
noted beside its values: at the ends of stages, where the engine asks, and with its last report.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as StudyState

from pbgi.study import attributes
from pbgi.study.sound import are_step_costs
from pbgi.trials.steps import Report, Steps
from pbgi.trials.trial import TrialState


def step_costs(trial: FrozenTrial) -> dict[int, float]:
    """What a trial had cost by some of its steps, as `pbgi tune` notes it."""
    noted: Any = trial.user_attrs.get(attributes.STEP_COSTS)
    return {int(step): noted[step] for step in noted} if are_step_costs(noted) else {}


def state_of(trial: FrozenTrial, *, reports: bool) -> TrialState:
    """Where a trial of a study that has begun stands, for the engine: one that has reported was stopped, not failed."""
    if trial.state == StudyState.RUNNING:
        return TrialState.RUNNING
    if trial.state == StudyState.COMPLETE and trial.value is not None and math.isfinite(trial.value):
        return TrialState.COMPLETE
    if trial.state == StudyState.PRUNED and reports:
        return TrialState.STOPPED
    overrun = trial.state == StudyState.FAIL and bool(trial.user_attrs.get(attributes.OVERRUN))
    return TrialState.INTERRUPTED if overrun else TrialState.FAILED


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
        costs = step_costs(trial)
        told = sorted((step, value) for step, value in trial.intermediate_values.items() if math.isfinite(value))
        reports = [Report(step - self.first + 1, value, costs.get(step)) for step, value in told]
        reports = [report for report in reports if 1 <= report.step <= self.last]
        if reports and not costs and cost is not None and cost > 0.0:
            reports[-1] = reports[-1]._replace(cost=cost)
        return tuple(reports)


def lengths_of(trials: Iterable[FrozenTrial]) -> Lengths | None:
    """How long the trials of a study are; None while none that reports has come to its end."""
    complete = [t for t in trials if t.state == StudyState.COMPLETE and t.intermediate_values]
    if not complete:
        return None
    first = min(min(t.intermediate_values) for t in complete)
    last = max(max(t.intermediate_values) for t in complete)
    return Lengths(first, last - first + 1)
