"""What the model believes along each parameter, all others as in the best point: value, uncertainty, cost and index."""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pbgi.arrays import Floats
from pbgi.display.wording import number
from pbgi.index import gittins_index
from pbgi.parameter import Categorical
from pbgi.report.beliefs import Slice, hope
from pbgi.report.course import is_wide
from pbgi.report.palette import BLUE, GREEN, GREY, PURPLE
from pbgi.report.style import NothingToShowError, around, faint, log_axis, panels
from pbgi.report.subject import Subject
from pbgi.report.wording import label, labels, with_unit

SLICES = "Slices of the model through the best point"
MOST_PARAMETERS = 12
ROW_HEIGHT = 190
BAND = "median, 80 % interval"
LETTERS = 42  # below a panel


def draw_slices(subject: Subject) -> go.Figure:
    """A row per parameter: the value with its uncertainty and index on the left, the expected cost on the right."""
    if subject.beliefs is None or subject.best is None:
        raise NothingToShowError("There is no model before a trial has given a value.")
    shown = _telling(subject.beliefs.slices)
    short = labels((part.name for part in shown), 26)
    names = [heading for name in short for heading in (name, f"cost by {name}")]
    made = panels(SLICES, names, rows=len(shown), columns=2, heights=[ROW_HEIGHT] * len(shown))
    indices = [_index(subject, part) for part in shown]
    for row, (part, index) in enumerate(zip(shown, indices, strict=True), start=1):
        _add_value(made, subject, part, index, row)
        _add_cost(made, subject, part, row)
    ends = [end for part in shown for end in (part.low, part.high)]
    made.update_yaxes(range=around(*ends, [subject.best.value or 0.0]), title_text=_value(subject), col=1)
    costs = np.concatenate([part.cost for part in shown])
    made.update_yaxes(title_text=with_unit("Cost", subject.unit), col=2)
    made.update_yaxes(**(log_axis(costs) if is_wide(costs) else {"range": around([0.0], costs)}), col=2)
    return made


def _telling(slices: tuple[Slice, ...]) -> list[Slice]:
    """All slices, or of many those along which the value changes the most."""
    if len(slices) <= MOST_PARAMETERS:
        return list(slices)
    chosen = sorted(slices, key=lambda part: -float(np.ptp(part.median)))[:MOST_PARAMETERS]
    return [part for part in slices if part in chosen]


def _index(subject: Subject, part: Slice) -> Floats | None:
    """The index of each point at the latest exchange rate; None if there is none."""
    if subject.cost_scale is None:
        return None
    log_cost = math.log(subject.cost_scale) + np.log(part.cost)
    spread = np.maximum(hope(part, subject.sign), np.finfo(np.float64).tiny)
    return subject.sign * np.asarray(gittins_index(subject.sign * part.median, spread, log_cost))


def _add_value(made: go.Figure, subject: Subject, part: Slice, index: Floats | None, row: int) -> None:
    first, x = row == 1, _axis(made, subject, part, row, 1)
    believed = zip(part.values, part.median, part.low, part.high, strict=True)
    hover = [f"{label(v)}: {number(m)}, 80 % between {number(low)} and {number(high)}" for v, m, low, high in believed]
    common = {"x": x, "hovertext": hover, "hoverinfo": "text", "row": row, "col": 1, "showlegend": first}
    if isinstance(subject.parameters[part.name], Categorical):
        bars: dict[str, Any] = {"type": "data", "array": part.high - part.median, "arrayminus": part.median - part.low}
        bars |= {"symmetric": False, "color": faint(BLUE, 0.6), "thickness": 2, "width": 6}
        marker = {"color": BLUE, "size": 9}
        made.add_scatter(y=part.median, mode="markers", name=BAND, error_y=bars, marker=marker, **common)
    else:
        made.add_scatter(
            x=[*x, *x[::-1]],
            y=[*part.low, *part.high[::-1]],
            fill="toself",
            fillcolor=faint(BLUE, 0.2),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            row=row,
            col=1,
        )
        made.add_scatter(y=part.median, mode="lines", name=BAND, line={"color": BLUE, "width": 2.5}, **common)
    if index is not None:
        dots = isinstance(subject.parameters[part.name], Categorical)
        line: dict[str, Any] = {"color": GREEN, "width": 2, "dash": "dash"}
        diamonds = {"color": GREEN, "symbol": "diamond", "size": 8}
        made.add_scatter(
            x=x,
            y=index,
            mode="markers" if dots else "lines",
            name="index",
            line=line,
            marker=diamonds,
            hoverinfo="skip",
            showlegend=first,
            row=row,
            col=1,
        )
    _add_best(made, subject, part, row)


def _add_cost(made: go.Figure, subject: Subject, part: Slice, row: int) -> None:
    x = _axis(made, subject, part, row, 2)
    is_categorical = isinstance(subject.parameters[part.name], Categorical)
    made.add_scatter(
        x=x,
        y=part.cost,
        mode="markers" if is_categorical else "lines",
        name="expected cost",
        line={"color": PURPLE, "width": 2.5},
        marker={"color": PURPLE, "symbol": "square", "size": 9},
        hovertext=[f"{label(v)}: {number(float(c))}" for v, c in zip(part.values, part.cost, strict=True)],
        hoverinfo="text",
        showlegend=row == 1,
        row=row,
        col=2,
    )


def _add_best(made: go.Figure, subject: Subject, part: Slice, row: int) -> None:
    best: Any = subject.best
    value = best.params.get(part.name)
    is_category = isinstance(subject.parameters[part.name], Categorical)
    if value is None and not is_category:
        return
    made.add_scatter(
        x=[dict(zip(part.values, _choices(part), strict=True)).get(value, label(value))] if is_category else [value],
        y=[best.value],
        mode="markers",
        name="best trial",
        marker={"color": GREY, "symbol": "star", "size": 12, "line": {"width": 1, "color": "#ffffff"}},
        hoverinfo="skip",
        showlegend=row == 1,
        row=row,
        col=1,
    )


def _axis(made: go.Figure, subject: Subject, part: Slice, row: int, column: int) -> list[Any]:
    """The values to draw at, on an axis of their kind."""
    parameter = subject.parameters[part.name]
    if isinstance(parameter, Categorical):
        made.update_xaxes(type="category", tickangle=0, row=row, col=column)
        return _choices(part)
    if parameter.log:
        made.update_xaxes(**log_axis([parameter.low, parameter.high]), row=row, col=column)
    return list(part.values)


def _choices(part: Slice) -> list[str]:
    """The choices, each as short as all of them beside each other must be."""
    return labels(part.values, max(3, min(LETTERS // len(part.values), 16)))


def _value(subject: Subject) -> str:
    return label(subject.value_name).capitalize()
