"""Where the money went, by state of trials and by region of each parameter; and what was predicted against paid."""

import math

import numpy as np
import plotly.graph_objects as go

from pbgi.display.wording import number
from pbgi.history import Trial
from pbgi.report.palette import BLUE, GREY, PURPLE, VERMILLION
from pbgi.report.regions import Region, regions_of
from pbgi.report.style import STATE_COLORS, STATE_PATTERNS, NothingToShowError, faint, figure, log_axis, panels
from pbgi.report.subject import Subject
from pbgi.report.wording import amount, label, labels, with_unit

SPENDING = "Where the money went"
COSTS = "Predicted cost against paid"
COLUMNS = 2
MOST_PARAMETERS = 11
BAR_HEIGHT = 24
OTHERS = {True: "complete", False: "without a value"}  # by whether a trial has a value


def draw_spending(subject: Subject) -> go.Figure:
    """Stacked bars: a panel by state, and one per parameter."""
    if subject.spent + subject.reserved <= 0.0:
        raise NothingToShowError("Nothing has been spent yet.")
    states = [state for state in STATE_COLORS if _paid_in(subject, state, subject.trials) > 0.0]
    by_state = [Region(s, tuple(t for t in subject.trials if subject.state_of(t) == s)) for s in states]
    shown = {"trials": by_state} | {name: regions_of(subject, name) for name in _telling(subject)}
    rows = math.ceil(len(shown) / COLUMNS)
    bars = [max(len(r) for r in list(shown.values())[i * COLUMNS : (i + 1) * COLUMNS]) for i in range(rows)]
    heights = [BAR_HEIGHT * max(n, 3) + 20 for n in bars]
    made = panels(SPENDING, labels(shown), rows=rows, columns=COLUMNS, heights=heights, between=0.2)
    for i, regions in enumerate(shown.values()):
        row, column = i // COLUMNS + 1, i % COLUMNS + 1
        for state in states:
            _add_bars(made, subject, regions, state, row, column, is_first=i == 0)
        if i + COLUMNS >= len(shown):  # the last of its column
            made.update_xaxes(title_text=with_unit("Cost", subject.unit), row=row, col=column)
    made.update_layout(barmode="stack", bargap=0.25)
    made.update_yaxes(autorange="reversed", type="category", showgrid=False)
    return made


def _add_bars(
    made: go.Figure, subject: Subject, regions: list[Region], state: str, row: int, column: int, *, is_first: bool
) -> None:
    paid = [_paid_in(subject, state, region.trials) for region in regions]
    n = [sum(subject.state_of(trial) == state for trial in region.trials) for region in regions]
    pattern = {"shape": STATE_PATTERNS[state], "size": 5, "solidity": 0.25, "fgcolor": "rgba(255,255,255,0.8)"}
    made.add_bar(
        y=labels([region.words for region in regions], most=18),
        x=paid,
        width=min(0.75, 0.25 * len(regions)),  # a bar alone is no wall
        orientation="h",
        name=f"{state} (held)" if state == "running" else state,
        legendgroup=state,
        showlegend=is_first,
        marker={"color": STATE_COLORS[state], "pattern": pattern, "line_width": 0},
        hovertext=[f"{label(amount(p, subject.unit))} for {k} {state}" for p, k in zip(paid, n, strict=True)],
        hoverinfo="text",
        row=row,
        col=column,
    )


def _telling(subject: Subject) -> list[str]:
    """The parameters to show: all, or of many those over which spending is the most uneven."""
    if len(subject.parameters) <= MOST_PARAMETERS:
        return list(subject.parameters)
    uneven = {name: float(np.std([r.paid for r in regions_of(subject, name)])) for name in subject.parameters}
    chosen = sorted(uneven, key=lambda name: -uneven[name])[:MOST_PARAMETERS]
    return [name for name in subject.parameters if name in chosen]


def _paid_in(subject: Subject, state: str, trials: tuple[Trial, ...]) -> float:
    return math.fsum(t.charged + t.reserved for t in trials if subject.state_of(t) == state)


def draw_costs(subject: Subject) -> go.Figure:
    """Predicted against paid on logarithmic axes, with the diagonal."""
    both = [t for t in subject.trials if t.cost is not None and t.predicted_cost is not None]
    if not both:
        raise NothingToShowError("No trial has both a predicted cost and one that was paid.")
    predicted, paid = (np.array([getattr(t, key) for t in both]) for key in ("predicted_cost", "cost"))
    title_x, title_y = with_unit("Predicted cost", subject.unit), with_unit("Paid", subject.unit)
    made = figure(COSTS, x=title_x, y=title_y, height=460)
    low, high = float(min(predicted.min(), paid.min())) / 1.15, float(max(predicted.max(), paid.max())) * 1.15
    whole = [i for i, trial in enumerate(both) if not subject.ended_early(trial)]
    apart = np.abs(np.log(paid[whole]) - np.log(predicted[whole]))
    ratio = number(float(np.exp(np.median(apart))), 3) if whole else "1"
    half = "" if ratio == "1" else f"; half of all within \N{MULTIPLICATION SIGN}{ratio}"
    made.add_scatter(
        x=[low, high],
        y=[low, high],
        mode="lines",
        name=f"as predicted{half}",
        line={"color": GREY, "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )
    kinds = ["stopped early" if subject.ended_early(t) else OTHERS[t.value is not None] for t in both]
    for words, color, symbol in (
        (OTHERS[True], BLUE, "circle"),
        (OTHERS[False], VERMILLION, "x"),
        ("stopped early", PURPLE, "square"),
    ):
        some = [i for i, kind in enumerate(kinds) if kind == words]
        if some:
            made.add_scatter(
                x=predicted[some],
                y=paid[some],
                mode="markers",
                name=words,
                marker={"color": faint(color, 0.7), "symbol": symbol, "size": 8},
                hovertext=[f"trial {both[i].number}: {number(predicted[i])} → {number(paid[i])}" for i in some],
                hoverinfo="text",
            )
    made.update_xaxes(**log_axis([low, high]))
    made.update_yaxes(**log_axis([low, high]))
    return made
