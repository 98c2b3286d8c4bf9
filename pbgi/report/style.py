"""How figures of Plotly look: in the colors of `palette.py` on any background, with axes that say what they show.

Backgrounds are transparent and text is of a grey that can be read on both; the page of a report sets text and grid to
the reader's scheme (`page.css`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pbgi.arrays import Floats
from pbgi.display.wording import number
from pbgi.report.palette import BLUE, GREEN, GREY, PURPLE, VERMILLION, WEB_FONT
from pbgi.report.subject import PRUNED

TEXT, GRID, EDGE = "#767676", "rgba(128,128,128,0.22)", "rgba(128,128,128,0.55)"
STATE_COLORS = {
    "complete": BLUE,
    "failed": VERMILLION,
    PRUNED: PURPLE,
    "stopped": PURPLE,
    "interrupted": GREEN,
    "running": GREY,
}
STATE_PATTERNS = {"complete": "", "failed": "x", PRUNED: "/", "stopped": "/", "interrupted": "-", "running": "."}
BEHIND = "rgba(255,255,255,0.72)"  # words that lines may cross; on the page in the color of its paper
NARROW = 0.3  # decades: numbers within a factor of two
HEIGHT = 420
ABOVE, BELOW, GAP = 56, 96, 64  # pixels
NAMES = 18  # pixels above the panels, for their names
LEGEND = 58  # pixels below the axes: ticks and a title are in between
ON_A_PHONE = 30  # letters of names that fit beside each other there


class NothingToShowError(Exception):
    """A run has nothing that a plot could show; the message says what is missing."""


def faint(color: str, opacity: float) -> str:
    """A color that lets through what is behind it."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def figure(title: str, *, x: str = "", y: str = "", height: int = HEIGHT) -> go.Figure:
    """An empty figure with one pair of axes."""
    made = dressed(go.Figure(), title, height)
    made.update_xaxes(title_text=x)
    made.update_yaxes(title_text=y)
    return made


def panels(
    title: str, names: Sequence[str], *, rows: int, columns: int, heights: Sequence[int], between: float = 0.14
) -> go.Figure:
    """An empty figure of small multiples.

    Args:
        title: Of the whole.
        names: Above the panels.
        rows: Number of rows.
        columns: Number of columns.
        heights: Of the rows, in pixels.
        between: Room between two columns, for what is written beside the axes; a share of the width.
    """
    inside = float(sum(heights)) + GAP * (rows - 1)
    made = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=list(names),
        row_heights=list(heights),
        vertical_spacing=GAP / inside,
        horizontal_spacing=between,
    )
    made.update_annotations(font_size=13)
    return dressed(made, title, round(inside) + ABOVE + BELOW + NAMES, above=ABOVE + NAMES)


def dressed(made: go.Figure, title: str, height: int = HEIGHT, *, above: int = ABOVE, ticks: int = 0) -> go.Figure:
    """The figure in our clothes: the title at the top, the legend below the axes, where it meets nothing else.

    Args:
        made: The figure.
        title: Of the whole.
        height: Of the whole, in pixels.
        above: Pixels above the axes.
        ticks: Pixels that the words below the axes need beyond one line.
    """
    below = -(LEGEND + ticks) / (height - above - BELOW - ticks)
    made.update_layout(
        title={"text": title, "x": 0.0, "xref": "paper", "y": 1.0, "yref": "container", "yanchor": "top"},
        title_font_size=17,
        title_pad_t=14,
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": WEB_FONT, "size": 13, "color": TEXT},
        legend={"orientation": "h", "x": 0.0, "y": below, "yanchor": "top", "bgcolor": "rgba(0,0,0,0)"},
        hoverlabel={"bgcolor": "#222222", "bordercolor": "#888888", "font": {"color": "#ffffff", "family": WEB_FONT}},
        margin={"l": 64, "r": 24, "t": above, "b": BELOW + ticks},
        hovermode="closest",
    )
    axis = {"gridcolor": GRID, "linecolor": EDGE, "zeroline": False, "automargin": True, "separatethousands": True}
    made.update_xaxes(**axis, exponentformat="power", showline=True)
    made.update_yaxes(**axis, exponentformat="power", showline=True)
    return made


def is_wide(made: go.Figure) -> bool:
    """Whether a figure is too wide for a phone: it has panels beside each other, or many names below an axis."""
    axes = list(made.select_xaxes())
    letters = [sum(map(len, axis.ticktext or ())) for axis in axes if axis.type != "log"]
    return any(axis.domain and axis.domain[0] > 0.0 for axis in axes) or max(letters, default=0) > ON_A_PHONE


def blank(title: str, reason: str) -> go.Figure:
    """A figure that says why there is nothing on it."""
    made = dressed(go.Figure(), title, 200)
    made.update_xaxes(visible=False)
    made.update_yaxes(visible=False)
    made.add_annotation(text=reason, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font_size=14)
    return made


def log_axis(values: Sequence[float] | Floats) -> dict[str, Any]:
    """A logarithmic axis for these positive numbers, with a few ticks that are written out."""
    low, high = float(np.log10(np.min(values))), float(np.log10(np.max(values)))
    decades = np.arange(np.floor(low), np.ceil(high) + 1.0)
    if high - low < NARROW:
        ticks = _even_ticks(10.0**low, 10.0**high)
    elif high - low > 2.5:
        ticks = 10.0 ** decades[:: max(1, round((high - low) / 6.0))]
    else:
        ticks = np.outer(10.0**decades, [1.0, 1.5, 2.0, 3.0, 5.0, 7.0] if high - low < 1.0 else [1.0, 2.0, 5.0]).ravel()
    ticks = ticks[np.isfinite(ticks) & (ticks > 0.0)]
    margin = 0.04 * (high - low) or 0.1
    axis = {"type": "log", "tickvals": ticks.tolist(), "ticktext": [number(float(t), 3) for t in ticks]}
    return axis | {"range": [low - margin, high + margin]}


def _even_ticks(low: float, high: float) -> Floats:
    """About five round numbers between two that are near each other, the ends included."""
    step = (high - low) / 4.0 or 0.1 * high
    unit = 10.0 ** np.floor(np.log10(step))
    step = unit * min((m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= step * 0.999), default=10.0)
    return np.asarray(step * np.arange(np.floor(low / step), np.ceil(high / step) + 1.0))


def upright_line(made: go.Figure, x: float, words: str, *, end: float, color: str = GREY, at_top: bool = True) -> None:
    """A dashed line from the bottom to the top, with words beside it, towards the middle of an axis up to `end`."""
    right = x < 0.5 * end
    made.add_vline(x=x, line={"color": color, "width": 1.5, "dash": "dash"})
    made.add_annotation(
        x=x,
        y=1.0 if at_top else 0.02,
        yref="paper",
        text=words,
        showarrow=False,
        bgcolor=BEHIND,
        xanchor="left" if right else "right",
        yanchor="top" if at_top else "bottom",
        xshift=4 if right else -4,
        font_size=12,
    )


def mark_beyond(
    made: go.Figure, x: Sequence[float], y: Sequence[float], within: Sequence[float] | None, hover: Sequence[str]
) -> None:
    """Triangles at the edge of the axis for what lies beyond it, so that nothing is cut without a mark."""
    if within is None:
        return
    low, high = within
    margin = 0.02 * (high - low)
    for beyond, edge, symbol in (
        ([i for i, value in enumerate(y) if value > high], high - margin, "triangle-up"),
        ([i for i, value in enumerate(y) if value < low], low + margin, "triangle-down"),
    ):
        if beyond:
            made.add_scatter(
                x=[x[i] for i in beyond],
                y=[edge] * len(beyond),
                mode="markers",
                name="beyond the axis",
                marker={"color": GREY, "symbol": symbol, "size": 10, "line": {"width": 1, "color": "#ffffff"}},
                hovertext=[hover[i] for i in beyond],
                hoverinfo="text",
                cliponaxis=False,
            )


def around(*parts: Sequence[float] | Floats, outliers: Sequence[float] | Floats = ()) -> list[float] | None:
    """A range for an axis that holds all the parts, and of what may have outliers the middle four fifths.

    Returns:
        The range, or None where it is best left to Plotly: nothing is given, or numbers are too large to subtract.
    """
    middle = np.quantile(outliers, [0.1, 0.9]) if len(outliers) else np.empty(0)
    every = np.concatenate([np.asarray(part, dtype=np.float64) for part in (*parts, middle)])
    if not len(every):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = float(every.min()), float(every.max())
        margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        found = [low - margin, high + margin]
    return found if np.isfinite(found).all() and found[1] - found[0] < np.inf else None
