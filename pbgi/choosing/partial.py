"""What trials say that have not come to their end: their last values, foreseen, as observations with a known error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pbgi.arrays import Floats
from pbgi.choosing.state import RunState
from pbgi.gp.algebra import rounded
from pbgi.gp.config import Hyperparameters
from pbgi.gp.warp import WARP_QUANTUM, Warp
from pbgi.history import Trial
from pbgi.stages.curves import Curves, Observed, fit_curves
from pbgi.stages.instalments import Instalments
from pbgi.trials.steps import Steps

# Curves that have come to their end, before anything is foretold: of one nobody knows whether others are like it.
FEWEST_CURVES = 3
LEAST_VARIANCE, LEAST_SHARE = 1e-12, 1e-9
FARTHEST = 1e50  # deviations: beyond, squares of squares would overflow


@dataclass(frozen=True, eq=False)
class Partial:
    """What trials without a value say.

    Attributes:
        X: (k, d) Their points.
        warped: (k,) Last values observed.
        spread: (k, k) Covariance of the errors of these, which have much in common.
        instalments: What the stages of a trial cost and say; None while too few curves have come to their end.
    """

    X: Floats
    warped: Floats
    spread: Floats
    instalments: Instalments | None


def read_curves(state: RunState, warp: Warp, trials: Sequence[Trial]) -> Observed:
    """The values at the ends of stages, as the model sees them."""
    steps = state.settings.steps
    assert steps is not None  # noqa: S101 (for the type checker)
    values = np.full((len(trials), len(steps.stages)), np.nan)
    for row, trial in zip(values, trials, strict=True):
        _fill(row, steps, trial)
    flat = np.isfinite(values)
    with np.errstate(over="ignore"):
        warped = np.clip(warp.to_warped(state.sign * values[flat]), -FARTHEST, FARTHEST)
    values[flat] = rounded(warped, WARP_QUANTUM)
    return Observed(state.points(trials), values, flat.sum(axis=1))


def _fill(row: Floats, steps: Steps, trial: Trial) -> None:
    """Of each stage that has ended the first value reported since; a trial that ended early is taken to stay there."""
    told = iter(trial.reports)
    report = next(told, None)
    for r, end in enumerate(steps.stages):
        while report is not None and report.step < end:
            report = next(told, None)
        if report is None:
            if trial.value is not None:
                row[r:] = trial.value
            return
        row[r] = report.value
    if trial.value is not None:
        row[-1] = trial.value


def observe_partial(state: RunState, warp: Warp, start: Hyperparameters | None) -> Partial:
    """What the curves of a run say, where trials may stop early."""
    partial = state.partial
    told = [trial for trial in state.completed if trial.reports]
    nothing = Partial(np.empty((0, state.space.dimension)), np.empty(0), np.empty((0, 0)), None)
    if len(told) < FEWEST_CURVES:
        return nothing
    seen = read_curves(state, warp, [*told, *partial])
    curves = fit_curves(state.space, seen, None if start is None else np.array(start.length_scales))
    instalments = _instalments(state, curves)
    begun = np.flatnonzero(seen.reached[len(told) :] > 0) + len(told)
    if not len(begun):
        return Partial(nothing.X, nothing.warped, nothing.spread, instalments)
    mean, spread = curves.forecast(seen.of(begun))
    return Partial(seen.X[begun], rounded(mean), spread, instalments)


def _instalments(state: RunState, curves: Curves) -> Instalments:
    precisions = 1.0 / np.maximum(curves.left_after(), LEAST_VARIANCE)
    return Instalments(precisions, np.maximum(np.diff(state.shares_paid, prepend=0.0), LEAST_SHARE))
