"""What pruned trials say: an estimate of the value that they would have had, from what they reported.

    estimate = last report + the median, over completed trials, of (value - report at that step)

A completed trial that reported at that step or before has its last such report. Where none did, the last report itself
is taken. A trial was pruned because it was worse than others, so the estimate is never better than the best value. It
is one observation like others, whose error the model takes for noise; what the trial has cost is charged, and says
nothing of what a whole trial costs. A trial that was pruned without a report has told nothing but that it was no good,
and stays a failure.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from optuna.trial import FrozenTrial, TrialState

LARGEST = 1.7976931348623157e308


def estimated_values(trials: Iterable[FrozenTrial], direction: str) -> dict[int, float]:
    """By number, what pruned trials with a report would have given."""
    known = list(trials)
    pruned = {trial.number: _last(trial.intermediate_values) for trial in known if trial.state is TrialState.PRUNED}
    reported = {number: last for number, last in pruned.items() if last is not None}
    if not reported:
        return {}
    done = [t for t in known if t.state is TrialState.COMPLETE and t.value is not None and math.isfinite(t.value)]
    gains = {step: _usual_gain(done, step) for step, _ in reported.values()}
    values = {number: _within(report + gains[step]) for number, (step, report) in reported.items()}
    if not done:
        return values
    sign = 1.0 if direction == "minimize" else -1.0
    best = min(sign * (trial.value or 0.0) for trial in done)
    # Strictly worse, so that no pruned trial is the best one.
    worse = math.nextafter(best, math.inf)
    return {number: sign * max(sign * value, worse) for number, value in values.items()}


def _usual_gain(done: Sequence[FrozenTrial], step: int) -> float:
    """What completed trials have gained after a step, in the middle; none where no such trial has reported by then."""
    gains = []
    for trial in done:
        last = _last({s: value for s, value in trial.intermediate_values.items() if s <= step})
        if last is not None and trial.value is not None:
            gains.append(trial.value - last[1])
    return median(gains) if gains else 0.0


def _last(reports: Mapping[int, float]) -> tuple[int, float] | None:
    """The last step with a finite report, and the report."""
    finite = {step: value for step, value in reports.items() if math.isfinite(value)}
    return (max(finite), float(finite[max(finite)])) if finite else None


def _within(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
