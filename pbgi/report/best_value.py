"""The best value against what was spent, with the budget and a forecast; and what more budget is expected to buy."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from pbgi.display.wording import number
from pbgi.report.course import Course, is_wide
from pbgi.report.outlook import Outlook
from pbgi.report.palette import BLUE, GREEN, GREY, PURPLE, VERMILLION
from pbgi.report.style import NothingToShowError, around, faint, figure, log_axis, mark_beyond, upright_line
from pbgi.report.subject import Subject
from pbgi.report.wording import amount, label, with_unit

BEST_VALUE = "Best value against cost"
OUTLOOK = "What more budget is expected to buy"
STRIP = 0.07  # of the height, for trials without a value
HAIR = 0.01  # of the height of a curve, that it is outside of its band
WORTH_SHOWING = 0.02  # of a budget, that something is left of it


def draw_best(subject: Subject) -> go.Figure:
    """The best value as a staircase, every trial as a dot."""
    course = Course.of(subject)
    if subject.best is None:
        raise NothingToShowError("No trial has given a value yet.")
    made = figure(BEST_VALUE, x=course.title, y=_value_title(subject))
    _add_trials(made, subject, course)
    x, y = course.steps()
    steps = {"color": BLUE, "width": 3, "shape": "hv"}
    made.add_scatter(x=x, y=y, mode="lines", name="best so far", line=steps, hoverinfo="skip")
    forecast = _forecast(subject, course)
    if forecast is not None:
        _add_outlook(made, forecast, course.end, "forecast")
    if subject.budget is not None and not course.counts_trials:
        words = f"budget {label(amount(subject.budget, subject.unit))}"
        upright_line(made, subject.budget, words, end=max(course.end, subject.budget))
    ends = (subject.budget or 0.0) if not course.counts_trials else 0.0
    made.update_xaxes(range=[0.0, 1.03 * max(course.end, ends)])
    shown = y if forecast is None else [*y, *forecast.expected, *forecast.high]
    _add_recommended(made, subject, course)
    _scale(made, subject, course, np.array(shown))
    _add_without_value(made, subject, course)
    return made


def draw_outlook(subject: Subject) -> go.Figure:
    """The expected best value against further spending."""
    found = subject.outlook
    if found is None or subject.best is None:
        raise NothingToShowError("It takes completed trials with costs, and a model of them, to look ahead.")
    if not np.ptp(found.expected):
        raise NothingToShowError("The model knows of no point that is worth hoping for.")
    made = figure(OUTLOOK, x=with_unit("Spent from now on", subject.unit), y=_value_title(subject))
    now = subject.best.value or 0.0
    made.add_scatter(
        x=[0.0, float(found.extra[-1])],
        y=[now, now],
        mode="lines",
        name=f"best so far, {number(now)}",
        line={"color": BLUE, "width": 2, "dash": "dot"},
        hoverinfo="skip",
    )
    _add_outlook(made, found, 0.0, "expected best value")
    end, left = float(found.extra[-1]), subject.spendable
    if left >= WORTH_SHOWING * end:
        # Away from the best value so far, which the curve leaves upwards or downwards.
        at_top = subject.direction == "maximize"
        upright_line(made, left, f"left {label(amount(left, subject.unit))}", end=end, at_top=at_top)
    made.update_xaxes(range=[0.0, 1.02 * end])
    made.update_yaxes(range=around([now], found.expected, found.high))
    return made


def skewed(subject: Subject) -> str:
    """Why the expected value may be outside of the interval."""
    found = subject.outlook
    if found is None:
        return ""
    hair = HAIR * float(np.ptp(found.expected))
    above = found.expected > np.maximum(found.low, found.high) + hair
    below = found.expected < np.minimum(found.low, found.high) - hair
    if not (above | below).any():
        return ""
    return "Where the line is outside of the band, it owes most to a gain that is large and unlikely."


def _add_trials(made: go.Figure, subject: Subject, course: Course) -> None:
    kept, hollow = set(subject.feasible), {"symbol": "circle-open", "line": {"width": 1.5}}
    for is_kept, words, look in ((True, "trial", {}), (False, "breaks a condition", hollow)):
        trials = [trial for trial in subject.completed if (trial in kept) is is_kept]
        if not trials and not is_kept:
            continue
        made.add_scatter(
            x=[course.until[trial.number] for trial in trials],
            y=[trial.value for trial in trials],
            mode="markers",
            name=words,
            marker={"color": faint(GREY, 0.75), "size": 6, **look},
            hovertext=[_hover(subject, trial) for trial in trials],
            hoverinfo="text",
        )


def _add_without_value(made: go.Figure, subject: Subject, course: Course) -> None:
    """Trials that cost something and have no value, in a strip of their own below the values."""
    without = [t for t in subject.trials if t.value is None and t.charged > 0.0]
    if without and not course.counts_trials:
        for early, words, color, symbol in (
            (False, "trial without a value", VERMILLION, "x"),
            (True, "stopped early", PURPLE, "square"),
        ):
            some = [trial for trial in without if subject.ended_early(trial) is early]
            if not some:
                continue
            made.add_scatter(
                x=[course.until[trial.number] for trial in some],
                y=[0.0] * len(some),
                yaxis="y2",
                mode="markers",
                name=words,
                marker={"color": color, "symbol": symbol, "size": 8},
                hovertext=[f"trial {t.number}: {subject.state_of(t)}, cost {number(t.charged)}" for t in some],
                hoverinfo="text",
            )
        strip = {"domain": [0.0, STRIP], "range": [-1, 1], "tickvals": [0], "ticktext": ["none"], "fixedrange": True}
        made.update_layout(
            yaxis_domain=[1.7 * STRIP, 1.0],
            yaxis2={**strip, "showgrid": False, "zeroline": False, "automargin": True},
            xaxis_anchor="y2",
        )


def _add_recommended(made: go.Figure, subject: Subject, course: Course) -> None:
    """The recommended trial with what is believed of its value, where it is not the one with the best value."""
    chosen, best = subject.recommended, subject.best
    if chosen is None or best is None or chosen.trial.number == best.number:
        return
    made.add_scatter(
        x=[course.until[chosen.trial.number]],
        y=[chosen.median],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [chosen.high - chosen.median],
            "arrayminus": [chosen.median - chosen.low],
            "color": PURPLE,
        },
        mode="markers",
        name="recommended, 80 % interval without noise",
        marker={"color": PURPLE, "symbol": "star", "size": 13},
        hovertext=[f"trial {chosen.trial.number}: about {number(chosen.median)} without noise"],
        hoverinfo="text",
    )


def _add_outlook(made: go.Figure, found: Outlook, start: float, words: str) -> None:
    """The expected value as a line in its band, from where the run stands."""
    x = (start + found.extra).tolist()
    made.add_scatter(
        x=[*x, *x[::-1]],
        y=[*found.low, *found.high[::-1]],
        fill="toself",
        fillcolor=faint(GREEN, 0.2),
        line={"width": 0},
        name="80 % interval",
        hoverinfo="skip",
    )
    made.add_scatter(
        x=x,
        y=found.expected,
        mode="lines",
        name=words,
        line={"color": GREEN, "width": 2.5, "dash": "dash"},
        hovertext=[f"after {number(e)} more: {number(v)}" for e, v in zip(found.extra, found.expected, strict=True)],
        hoverinfo="text",
    )


def _forecast(subject: Subject, course: Course) -> Outlook | None:
    """The outlook as far as the budget goes; None if there is no budget or nothing is left of it."""
    left, found = subject.spendable, subject.outlook
    if found is None or not left or left < WORTH_SHOWING * (subject.budget or 0.0) or course.counts_trials:
        return None
    extra = np.linspace(0.0, left, len(found.extra))
    expected, low, high = (np.interp(extra, found.extra, y) for y in (found.expected, found.low, found.high))
    return Outlook(extra, expected, low, high, found.n_boxes)


def _scale(made: go.Figure, subject: Subject, course: Course, shown: Any) -> None:
    """A logarithmic axis where values ask for it; else one that a few wild trials cannot flatten."""
    values = np.array([trial.value for trial in subject.completed], dtype=np.float64)
    if is_wide(np.concatenate([values, shown])):
        made.update_layout(yaxis=log_axis(np.concatenate([values, shown])))
    else:
        within = around(shown, outliers=values)
        made.update_layout(yaxis_range=within)
        x = [course.until[trial.number] for trial in subject.completed]
        mark_beyond(made, x, values.tolist(), within, [_hover(subject, trial) for trial in subject.completed])


def _hover(subject: Subject, trial: Any) -> str:
    paid = f", cost {label(amount(trial.charged, subject.unit))}" if trial.charged > 0.0 else ""
    return f"trial {trial.number}: {number(trial.value)}{paid}"


def _value_title(subject: Subject) -> str:
    return f"{label(subject.value_name).capitalize()} ({subject.direction}d)"
