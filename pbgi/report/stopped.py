"""Trials that were stopped early: which they are, how far they had come, and what that saved.

    saved = what the trial was expected to cost - what it has cost

Where nothing was expected, its steps are taken to cost alike: saved = what it has cost * (1 / share - 1), where share
is how far it had come of the longest complete trial.
"""

import math

from pbgi.history import Trial
from pbgi.report.subject import Subject


def stopped_early(subject: Subject) -> tuple[Trial, ...]:
    """Trials that said something on their way and were then stopped or pruned."""
    return tuple(t for t in subject.trials if subject.ended_early(t) and t.number in subject.curves)


def last_step(subject: Subject, trial: Trial) -> int:
    """The step of the last value that a trial told; 0 if it told none."""
    curve = subject.curves.get(trial.number)
    return curve[-1][0] if curve else 0


def total_saved(subject: Subject) -> float:
    """What all trials that were stopped early would have cost more."""
    return math.fsum(saved(subject, trial) for trial in stopped_early(subject))


def saved(subject: Subject, trial: Trial) -> float:
    """What a trial that was stopped early would have cost more; 0 where nobody can know."""
    if trial.predicted_cost is not None:
        return max(trial.predicted_cost - trial.charged, 0.0)
    share = _share(subject, trial)
    return trial.charged * (1.0 / share - 1.0) if share else 0.0


def _share(subject: Subject, trial: Trial) -> float:
    """How far it had come of the longest complete trial; 0 where that is not known."""
    whole = max((subject.curves.get(t.number, ()) for t in subject.completed), key=len, default=())
    reached = sum(step <= last_step(subject, trial) for step, _ in whole)
    return reached / len(whole) if whole else 0.0
