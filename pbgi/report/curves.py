"""Where trials were stopped early: their values on the way; and what was paid for them beside what that saved."""

import math

import numpy as np
import plotly.graph_objects as go

from pbgi.display.wording import number
from pbgi.history import Trial, TrialState
from pbgi.report.course import is_wide
from pbgi.report.palette import BLUE, GREEN, GREY, PURPLE
from pbgi.report.stopped import last_step, stopped_early, total_saved
from pbgi.report.style import NothingToShowError, around, faint, log_axis, mark_beyond, panels
from pbgi.report.subject import Subject
from pbgi.report.wording import amount, label, with_unit

STOPPED = "Trials that were stopped early"
CURVES_HEIGHT, BAR_HEIGHT = 290, 60  # pixels


def draw_stopped(subject: Subject) -> go.Figure:
    """A line per trial over its steps, and a bar of what was paid and what was saved."""
    early = stopped_early(subject)
    if not early:
        raise NothingToShowError("No trial was stopped early, or none of them told a value on its way.")
    costs = subject.spent > 0.0
    heights = [CURVES_HEIGHT, BAR_HEIGHT] if costs else [CURVES_HEIGHT]
    made = panels(STOPPED, [""] * len(heights), rows=len(heights), columns=1, heights=heights)
    made.update_layout(legend_traceorder="normal")
    best = [] if subject.best is None else [subject.best]
    others = [t for t in subject.completed if t not in best]
    _add_curves(made, subject, others, "ran to the end", faint(GREY, 0.55), 1.2)
    _add_curves(made, subject, list(early), "stopped early", faint(PURPLE, 0.8), 1.6)
    _add_curves(made, subject, best, "best trial", GREEN, 3.0)
    _add_ends(made, subject, early)
    made.update_xaxes(title_text="Step", row=1, col=1)
    made.update_yaxes(title_text=f"{label(subject.value_name).capitalize()} ({subject.direction}d)", row=1, col=1)
    if costs:
        _add_costs(made, subject, early)
    return made


def _add_curves(made: go.Figure, subject: Subject, trials: list[Trial], words: str, color: str, width: float) -> None:
    """The curves of several trials as one trace with gaps."""
    x: list[int | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for trial in trials:
        for step, value in subject.curves.get(trial.number, ()):
            x.append(step)
            y.append(value)
            hover.append(f"trial {trial.number}, step {step}: {number(value)}")
        x, y, hover = [*x, None], [*y, None], [*hover, ""]
    if any(step is not None for step in x):
        line = {"color": color, "width": width}
        made.add_scatter(x=x, y=y, mode="lines", name=words, line=line, hovertext=hover, hoverinfo="text", row=1, col=1)


def _add_ends(made: go.Figure, subject: Subject, early: tuple[Trial, ...]) -> None:
    """A dot where each of them was stopped, and an axis on which they can be told apart."""
    x = [last_step(subject, trial) for trial in early]
    y = [subject.curves[trial.number][-1][1] for trial in early]
    hover = [f"trial {t.number}: stopped at step {step}, {number(v)}" for t, step, v in zip(early, x, y, strict=True)]
    marker = {"color": PURPLE, "size": 8, "line": {"width": 1, "color": "#ffffff"}}
    made.add_scatter(
        x=x, y=y, mode="markers", showlegend=False, marker=marker, hovertext=hover, hoverinfo="text", row=1, col=1
    )
    ended = [t for t in subject.trials if t.state is not TrialState.RUNNING]
    every = np.array([value for t in ended for _, value in subject.curves.get(t.number, ())])
    if is_wide(every):
        made.update_yaxes(**log_axis(every), row=1, col=1)
        return
    within = around(y, outliers=every)
    made.update_yaxes(range=within, row=1, col=1)
    mark_beyond(made, x, y, within, hover)


def _add_costs(made: go.Figure, subject: Subject, early: tuple[Trial, ...]) -> None:
    """One bar: paid for others, paid for those that were stopped, and saved."""
    paid, spared = math.fsum(trial.charged for trial in early), total_saved(subject)
    parts = [
        ("paid for all other trials:", subject.spent - paid, BLUE, ""),
        ("paid for those stopped:", paid, PURPLE, "/"),
        ("saved: about", spared, faint(PURPLE, 0.18), ""),
    ]
    for words, cost, color, shape in parts:
        made.add_bar(
            y=[""],
            x=[cost],
            orientation="h",
            name=f"{words} {label(amount(cost, subject.unit))}",
            marker={
                "color": color,
                "line": {"color": PURPLE if words.startswith("saved") else color, "width": 1},
                "pattern": {"shape": shape, "size": 5, "solidity": 0.25, "fgcolor": "rgba(255,255,255,0.8)"},
            },
            hoverinfo="name",
            row=2,
            col=1,
        )
    made.update_layout(barmode="stack")
    made.update_xaxes(title_text=with_unit("Cost", subject.unit), row=2, col=1)
    made.update_yaxes(showticklabels=False, showgrid=False, row=2, col=1)
