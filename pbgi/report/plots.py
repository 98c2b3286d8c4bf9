"""The plots, one function each, and all of them at once.

Every function takes a `pbgi.Result`, a `pbgi.Optimizer` or an Optuna study, and the unit of its costs, and gives a
Plotly figure. Where a run has nothing that a plot could show, the figure says what is missing; `figures` leaves it out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from pbgi.report import best_value, curves, gauge, importance, parallel, slices, spending
from pbgi.report.source import Source, subject_of
from pbgi.report.style import NothingToShowError, blank
from pbgi.report.subject import Subject


@dataclass(frozen=True)
class Plot:
    """One of the plots.

    Attributes:
        title: What it is called.
        draw: Draws it, or raises a `NothingToShowError`.
        how_to_read: What it tells, in a sentence or two.
        note: What else must be said of this run; may be empty.
    """

    title: str
    draw: Callable[[Subject], Any]
    how_to_read: str
    note: Callable[[Subject], str] = lambda _: ""


def _of_many(most: int, which: str) -> Callable[[Subject], str]:
    """Which parameters are shown, where there are too many."""

    def note(subject: Subject) -> str:
        n = len(subject.parameters)
        return f"Shown are the {most} of {n} parameters {which}." if n > most else ""

    return note


BEST_VALUE = Plot(
    best_value.BEST_VALUE,
    best_value.draw_best,
    "Each dot is a trial, placed where its cost was paid; the line is the best value so far. Trials without a value "
    "are in the strip below, values far off are triangles at the edge. Where budget is left, the dashed line forecasts "
    "the rest.",
)
OUTLOOK = Plot(
    best_value.OUTLOOK,
    best_value.draw_outlook,
    "The expected best value after spending so much more, if the best points the model knows of are tried in the best "
    "order; the band is an 80 % interval. It counts on the model being right, and on nothing new being "
    "learned on the way.",
    best_value.skewed,
)
SPENDING = Plot(
    spending.SPENDING,
    spending.draw_spending,
    "What trials cost, by how they ended and by region of each parameter. Long bars far from the best point are money "
    "that taught where not to look.",
    _of_many(spending.MOST_PARAMETERS, "over which spending differs the most"),
)
COSTS = Plot(
    spending.COSTS,
    spending.draw_costs,
    "A dot on the diagonal cost what was predicted; above it, more.",
)
STOPPED = Plot(
    curves.STOPPED,
    curves.draw_stopped,
    "Each line has the values of a trial after its steps; a dot is where it was stopped. The bar has what was paid, "
    "and what stopping saved: what these trials would have cost if they had run to their end, less what they did cost.",
)
GAUGE = Plot(
    gauge.GAUGE,
    gauge.draw_gauge,
    "The index is the sure value that the most promising trial is worth as much as, its price counted. While it is "
    "better than the best value, going on pays; a cross marks where it is not. Triangles are beyond the axis.",
)
COST_SCALE = Plot(
    gauge.COST_SCALE,
    gauge.draw_cost_scale,
    "How much of the objective a unit of cost counts as. It falls whenever nothing is worth its price any more, and "
    "the search goes on for smaller gains.",
)
IMPORTANCE = Plot(
    importance.IMPORTANCE,
    importance.draw_importance,
    "Of all that values would vary over the space, how much a parameter makes by itself, as the model believes; the "
    "line is an 80 % interval. What parameters make together, and what is not known, belongs to none of them.",
    importance.rest,
)
SLICES = Plot(
    slices.SLICES,
    slices.draw_slices,
    "What the model expects along one parameter, all others as in the best trial. A wide band means that little is "
    "known there; the index weighs it against the cost.",
    _of_many(slices.MOST_PARAMETERS, "along which the value changes the most"),
)
PARALLEL = Plot(
    parallel.PARALLEL,
    parallel.draw_parallel,
    "A line per trial. The bluer it is, the more it was better than the median trial, per cost; dotted lines gave no "
    "value.",
    _of_many(parallel.MOST_PARAMETERS, "that matter the most"),
)
PLOTS = (BEST_VALUE, OUTLOOK, SPENDING, COSTS, STOPPED, GAUGE, COST_SCALE, IMPORTANCE, SLICES, PARALLEL)


def figures(source: Source, *, unit: str = "") -> dict[str, go.Figure]:
    """All plots that have something to show, by title.

    Args:
        source: A `pbgi.Result`, a `pbgi.Optimizer` or an Optuna study.
        unit: Of the costs, for the axes.
    """
    return {plot.title: drawn for plot, drawn in drawn_plots(subject_of(source, unit=unit))}


def drawn_plots(subject: Subject) -> Iterator[tuple[Plot, go.Figure]]:
    """The plots that have something to show, and their figures."""
    for plot in PLOTS:
        try:
            yield plot, plot.draw(subject)
        except NothingToShowError:
            continue


def plot_best_value(source: Source, *, unit: str = "") -> go.Figure:
    """The best value against what was spent, with the budget and a forecast to its end."""
    return _drawn(BEST_VALUE, source, unit)


def plot_outlook(source: Source, *, unit: str = "") -> go.Figure:
    """What more budget is expected to buy."""
    return _drawn(OUTLOOK, source, unit)


def plot_spending(source: Source, *, unit: str = "") -> go.Figure:
    """Where the money went: by state of trials, and by region of each parameter."""
    return _drawn(SPENDING, source, unit)


def plot_costs(source: Source, *, unit: str = "") -> go.Figure:
    """What trials were predicted to cost against what was paid."""
    return _drawn(COSTS, source, unit)


def plot_stopped(source: Source, *, unit: str = "") -> go.Figure:
    """Where trials were stopped early, and what that saved."""
    return _drawn(STOPPED, source, unit)


def plot_stop_gauge(source: Source, *, unit: str = "") -> go.Figure:
    """The best index beside the best value, and where it fell below."""
    return _drawn(GAUGE, source, unit)


def plot_cost_scale(source: Source, *, unit: str = "") -> go.Figure:
    """The exchange rate between value and cost over the run."""
    return _drawn(COST_SCALE, source, unit)


def plot_importance(source: Source, *, unit: str = "") -> go.Figure:
    """The importance of each parameter, as the model believes."""
    return _drawn(IMPORTANCE, source, unit)


def plot_slices(source: Source, *, unit: str = "") -> go.Figure:
    """What the model believes along each parameter through the best point."""
    return _drawn(SLICES, source, unit)


def plot_parallel(source: Source, *, unit: str = "") -> go.Figure:
    """All trials as lines through their parameters, by value per cost."""
    return _drawn(PARALLEL, source, unit)


def _drawn(plot: Plot, source: Source, unit: str) -> go.Figure:
    try:
        return plot.draw(subject_of(source, unit=unit))
    except NothingToShowError as nothing:
        return blank(plot.title, str(nothing))
