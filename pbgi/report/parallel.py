"""All trials at once: a line per trial through its parameters, the stronger the more value it gave for its cost.

Lines are drawn as lines: Plotly's own parallel coordinates need WebGL and a page that may evaluate code.
"""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pbgi.display.wording import number
from pbgi.history import Trial
from pbgi.parameter import Categorical, levels_of
from pbgi.report.palette import BLUE, GREEN, GREY, PURPLE, VERMILLION
from pbgi.report.style import BEHIND, EDGE, NothingToShowError, dressed
from pbgi.report.subject import Subject
from pbgi.report.wording import labels

PARALLEL = "All trials: value per cost"
N_STRENGTHS = 5
MOST_PARAMETERS, MOST_TICKS = 14, 10
CROWD = 50  # lines
# So many letters of names fit beside each other; else they are slanted, over so many pixels.
UPRIGHT, SLANTED, MOST_LETTERS = 80, 60, 16


def value_per_cost(subject: Subject) -> dict[int, float]:
    """How much better than the median trial each completed one is, per cost; by number.

    One that is no better, or breaks a condition, counts 0: a negative gain divided by a cost would reward the
    expensive. Where nothing was charged, the cost is one.
    """
    if not subject.completed:
        return {}
    gains = subject.sign * np.array([trial.value for trial in subject.completed], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        better = np.nan_to_num(np.maximum(gains - np.median(gains), 0.0))
        better *= [trial in subject.feasible for trial in subject.completed]
        costs = [trial.charged or 1.0 for trial in subject.completed]
        return {t.number: float(g / c) for t, g, c in zip(subject.completed, better, costs, strict=True)}


def draw_parallel(subject: Subject) -> go.Figure:
    """Lines in a few strengths; failures dotted, the best trial on top. Of trials with the parameters that it has."""
    best_has = subject.parameters if subject.best is None else subject.best.params
    names = _telling(subject, [name for name in subject.parameters if name in best_has])
    ended = [t for t in subject.trials if t.value is not None or subject.state_of(t) != "running"]
    inside = [{t.number for t in subject.coordinates(name, ended)[0]} for name in names]
    drawn = [t for t in ended if all(t.number in some for some in inside)]
    if len(names) < 2 or not drawn:
        raise NothingToShowError("It takes ended trials with two parameters in common to draw lines between them.")
    letters = sum(map(len, labels(names, MOST_LETTERS)))
    slanted = SLANTED if letters > UPRIGHT else 0
    made = dressed(go.Figure(), PARALLEL, 460 + slanted, ticks=slanted)
    made.update_xaxes(tickangle=35 if slanted else 0)
    heights = _heights(subject, names, drawn)
    per_cost = value_per_cost(subject)
    crowd = min(1.0, math.sqrt(CROWD / len(drawn)))  # many lines are fainter, so that they can be told apart
    best = [t for t in drawn if subject.best is not None and t.number == subject.best.number]
    for strength, trials in _by_strength([t for t in drawn if t.value is not None and t not in best], per_cost):
        share = strength / (N_STRENGTHS - 1)
        line = {"color": _mixed(share), "width": 1.0 + 1.2 * share}
        words = {0: "little value per cost", N_STRENGTHS - 1: "most value per cost"}.get(strength)
        _add_lines(made, subject, trials, heights, words, line, (0.3 + 0.6 * share) * crowd)
    for early, words, color in ((False, "without a value", VERMILLION), (True, "stopped early", PURPLE)):
        some = [t for t in drawn if t.value is None and subject.ended_early(t) is early]
        _add_lines(made, subject, some, heights, words, {"color": color, "dash": "dot", "width": 1.5}, 0.8 * crowd)
    _add_lines(made, subject, best, heights, "best trial", {"color": GREEN, "width": 4}, 1.0)
    _add_axes(made, subject, names)
    return made


def _telling(subject: Subject, names: list[str]) -> list[str]:
    """The parameters to show: all, or of many those that matter the most."""
    if len(names) <= MOST_PARAMETERS:
        return names
    shares = {each.name: each.share for each in subject.importance}
    chosen = sorted(names, key=lambda name: -shares.get(name, 0.0))[:MOST_PARAMETERS]
    return [name for name in names if name in chosen]


def _heights(subject: Subject, names: list[str], trials: list[Trial]) -> dict[int, list[float]]:
    """By number, where on each axis a trial is."""
    columns = [subject.coordinates(name, trials)[1].tolist() for name in names]
    return {t.number: list(row) for t, row in zip(trials, zip(*columns, strict=True), strict=True)}


def _by_strength(trials: list[Trial], per_cost: dict[int, float]) -> list[tuple[int, list[Trial]]]:
    """Trials by the rank of their value per cost: those of no gain first, the others in equal groups."""
    some = sorted((t for t in trials if per_cost[t.number] > 0.0), key=lambda t: per_cost[t.number])
    groups: dict[int, list[Trial]] = {0: [t for t in trials if per_cost[t.number] <= 0.0]}
    for rank, trial in enumerate(some):
        strength = 1 + math.floor(rank * (N_STRENGTHS - 1) / len(some))
        groups.setdefault(strength, []).append(trial)
    return [(strength, groups[strength]) for strength in sorted(groups) if groups[strength]]


def _add_lines(
    made: go.Figure,
    subject: Subject,
    trials: list[Trial],
    heights: dict[int, list[float]],
    words: str | None,
    line: dict[str, Any],
    opacity: float,
) -> None:
    """The lines of several trials as one trace with gaps."""
    if not trials:
        return
    x: list[float | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for trial in trials:
        row = heights[trial.number]
        x += [*range(len(row)), None]
        y += [*row, None]
        hover += [_hover(subject, trial)] * (len(row) + 1)
    made.add_scatter(
        x=x,
        y=y,
        mode="lines",
        name=words or "",
        showlegend=words is not None,
        line=line,
        opacity=opacity,
        hovertext=hover,
        hoverinfo="text",
    )


def _add_axes(made: go.Figure, subject: Subject, names: list[str]) -> None:
    """An upright line per parameter, its name below it and its values beside it."""
    for i, name in enumerate(names):
        made.add_shape(type="line", x0=i, x1=i, y0=0.0, y1=1.0, line={"color": EDGE, "width": 1.5}, layer="below")
        parameter = subject.parameters[name]
        if isinstance(parameter, Categorical):
            units, words = parameter.grid(), labels(parameter.choices, 12)
            units, words = units[:MOST_TICKS], words[:MOST_TICKS]
        else:
            units = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
            levels = levels_of(parameter)
            units = units if levels is None else np.unique(levels.snap(units))
            words = [number(float(value), 3) for value in parameter.from_unit(units)]
        for height, word in zip(units, words, strict=True):
            made.add_annotation(
                x=i,
                y=float(height),
                text=word,
                showarrow=False,
                bgcolor=BEHIND,
                xanchor="left",
                xshift=3,
                font_size=11,
            )
    ticks = {
        "tickvals": list(range(len(names))),
        "ticktext": labels(names, MOST_LETTERS),
        "range": [-0.1, len(names) - 0.55],
    }
    made.update_xaxes(**ticks, showgrid=False, showline=False)
    made.update_yaxes(visible=False, range=[-0.04, 1.04])


def _mixed(share: float) -> str:
    """From grey to blue."""
    ends = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in (GREY, BLUE)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))


def _hover(subject: Subject, trial: Trial) -> str:
    ended = subject.state_of(trial) if trial.value is None else number(trial.value)
    return f"trial {trial.number}: {ended}, cost {number(trial.charged)}"
