"""Several runs as one curve, on axes of Matplotlib: the median and the quartiles of their best values against cost."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError
from pbgi.report.course import Course
from pbgi.report.source import Source, subject_of


def draw_best_value(ax: Any, runs: Iterable[Source], *, label: str = "", unit: str = "", color: Any = None) -> None:
    """Draw the best value of several runs of one search: the median as a line, the quartiles as a band.

    The curve begins where all runs have a value. A run that ended stays at its last value.

    Args:
        ax: Axes of Matplotlib; call once per method to compare.
        runs: Results, optimizers or Optuna studies.
        label: For the legend.
        unit: Of the costs.
        color: By default the next of the axes.
    """
    x, values, counts_trials = _curves(runs)
    _draw(ax, x, values, label, color)
    ax.set_xlabel(_cost_title(counts_trials, unit))
    ax.set_ylabel("Best value")


def draw_regret(
    ax: Any, runs: Iterable[Source], *, optimum: float, label: str = "", unit: str = "", color: Any = None
) -> None:
    """Draw the distance of the best value to a known optimum, on a logarithmic axis; else as `draw_best_value`.

    Args:
        ax: Axes of Matplotlib; call once per method to compare.
        runs: Results, optimizers or Optuna studies.
        optimum: The best value there is.
        label: For the legend.
        unit: Of the costs.
        color: By default the next of the axes.
    """
    x, values, counts_trials = _curves(runs)
    _draw(ax, x, np.abs(values - optimum), label, color)
    ax.set_yscale("log")
    ax.set_xlabel(_cost_title(counts_trials, unit))
    ax.set_ylabel("Regret")


def _draw(ax: Any, x: Floats, values: Floats, label: str, color: Any) -> None:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    (line,) = ax.plot(x, median, drawstyle="steps-post", label=_literal(label), color=color)
    ax.fill_between(x, low, high, step="post", alpha=0.2, color=line.get_color(), linewidth=0)


def _cost_title(counts_trials: bool, unit: str) -> str:
    return "Trials finished" if counts_trials else f"Spent ({_literal(unit)})" if unit else "Spent"


def _literal(text: str) -> str:
    """A text in which no dollar sign begins a formula."""
    return text.replace("$", r"\$")


def _curves(runs: Iterable[Source]) -> tuple[Floats, Floats, bool]:
    """Where curves change, from where all have begun, (k,), and the best value of each there (runs, k)."""
    courses = [Course.of(subject_of(run)) for run in runs]
    steps = [course.steps() for course in courses]
    if not steps or any(not x for x, _ in steps):
        raise InvalidInputError(f"runs must be at least one, each with a value; got {len(steps)} runs")
    places = np.unique(np.concatenate([x for x, _ in steps]))
    places = places[places >= max(x[0] for x, _ in steps)]
    values = np.array([np.array(y)[np.searchsorted(x, places, side="right") - 1] for x, y in steps])
    return places, values, all(course.counts_trials for course in courses)
