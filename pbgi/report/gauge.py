"""How a run weighs values against costs: the best index beside the best value, and the exchange rate between them."""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from pbgi.display.wording import number
from pbgi.history import Trial
from pbgi.notes import COST_SCALE as COST_SCALE_NOTE
from pbgi.notes import INDEX, WORTH_INDEX
from pbgi.report.course import Course
from pbgi.report.palette import BLUE, GREEN, VERMILLION
from pbgi.report.style import NothingToShowError, around, figure, log_axis, mark_beyond, upright_line
from pbgi.report.subject import Subject
from pbgi.report.wording import label

GAUGE = "Stop gauge: is the next trial worth its price?"
COST_SCALE = "Exchange rate between value and cost"


@dataclass(frozen=True)
class Reading:
    """What the gauge showed before a trial.

    Attributes:
        x: How far the run had come.
        index: The best index, in the user's direction.
        best: The best value then; None before there was one.
        is_below: Whether no trial was worth its price.
    """

    x: float
    index: float
    best: float | None
    is_below: bool


def readings(subject: Subject) -> list[Reading]:
    """The gauge at each trial that has noted an index, and where the run ended because of it."""
    course = Course.of(subject)
    found = []
    for trial in subject.trials:
        index, best = _index(subject, trial), course.best_before(trial.number)
        if index is not None:
            below = best is not None and subject.sign * index < subject.sign * best
            found.append(Reading(course.before[trial.number], index, best, below))
    last: Any = subject.known_reason.numbers if subject.known_reason is not None else {}
    if found and "index" in last and "best_value" in last:
        found.append(Reading(course.end, last["index"], last["best_value"], True))
    return found


def _index(subject: Subject, trial: Trial) -> float | None:
    """The index that was noted; else that of the point which the stop rule found most worth its price."""
    own, worth = INDEX.of(trial), WORTH_INDEX.of(trial)
    noted = worth if own is None else own
    return None if noted is None else subject.sign * noted


def draw_gauge(subject: Subject) -> go.Figure:
    """The best index and the best value, and where the first fell below the second."""
    found = readings(subject)
    if not found:
        raise NothingToShowError("No trial has noted its index.")
    course = Course.of(subject)
    made = figure(GAUGE, x=course.title, y=label(subject.value_name).capitalize())
    x, y = course.steps()
    steps = {"color": BLUE, "width": 3, "shape": "hv"}
    made.add_scatter(x=x, y=y, mode="lines", name="best value", line=steps, hoverinfo="skip")
    made.add_scatter(
        x=[reading.x for reading in found],
        y=[reading.index for reading in found],
        mode="lines+markers",
        name="best index",
        line={"color": GREEN, "width": 2},
        marker={"size": 6},
        hovertext=[f"index {number(r.index)}" + _beside(r) for r in found],
        hoverinfo="text",
    )
    below = [reading for reading in found if reading.is_below]
    if below:
        made.add_scatter(
            x=[reading.x for reading in below],
            y=[reading.index for reading in below],
            mode="markers",
            name="not worth its price",
            marker={"color": VERMILLION, "symbol": "x", "size": 10},
            hoverinfo="skip",
        )
        at_top = subject.direction == "maximize"  # the lines meet at the other end
        words = "no longer worth it" if subject.exchange_rate else "not worth its price"
        upright_line(made, below[0].x, words, end=course.end, color=VERMILLION, at_top=at_top)
    made.update_xaxes(range=[0.0, 1.03 * course.end])
    indices = [reading.index for reading in found]
    within = around(y, outliers=indices)
    made.update_yaxes(range=within)
    mark_beyond(made, [r.x for r in found], indices, within, [f"index {number(r.index)}{_beside(r)}" for r in found])
    return made


def _beside(reading: Reading) -> str:
    return "" if reading.best is None else f", best value {number(reading.best)}"


def draw_cost_scale(subject: Subject) -> go.Figure:
    """The cost_scale of each trial."""
    course = Course.of(subject)
    weighed = [(trial, rate) for trial in subject.trials if (rate := COST_SCALE_NOTE.of(trial)) is not None]
    noted, rates = [trial for trial, _ in weighed], [rate for _, rate in weighed]
    if len(set(rates)) < 2:
        raise NothingToShowError("The exchange rate has not changed." if rates else "No trial has noted one.")
    per = f"{label(subject.value_name).capitalize()} per {label(subject.unit, 12) or 'unit of cost'}"
    made = figure(COST_SCALE, x=course.title, y=per)
    made.add_scatter(
        x=[*(course.before[trial.number] for trial in noted), course.end],
        y=[*rates, rates[-1]],
        mode="lines",
        name="cost_scale",
        line={"color": GREEN, "width": 2.5, "shape": "hv"},
        hovertext=[f"trial {t.number}: {number(r)}" for t, r in zip(noted, rates, strict=True)],
        hoverinfo="text",
    )
    made.update_xaxes(range=[0.0, 1.03 * course.end])
    made.update_yaxes(**log_axis(rates))
    return made
