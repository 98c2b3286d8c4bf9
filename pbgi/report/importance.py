"""Which parameters matter: how much of what the objective does goes with each, as the model believes."""

import plotly.graph_objects as go

from pbgi.report.palette import BLUE
from pbgi.report.style import NothingToShowError, faint, figure
from pbgi.report.subject import Subject
from pbgi.report.wording import labels, share

IMPORTANCE = "Which parameters matter"
MOST_PARAMETERS, MOST_LETTERS = 20, 18
LEAST_SHOWN = 0.1  # of the axis, so that nothing looks like much
BAR_HEIGHT, AROUND = 26, 190  # pixels: of a bar; of all that is above and below the bars


def rest(subject: Subject) -> str:
    """What no parameter makes by itself, and which parameters are shown."""
    found = subject.importance
    if len(found) < 2:
        return ""
    together = share(max(1.0 - sum(each.share for each in found), 0.0))
    shown = (
        f"; shown are the {MOST_PARAMETERS} of {len(found)} that matter the most"
        if len(found) > MOST_PARAMETERS
        else ""
    )
    return f"{together} belongs to no single parameter{shown}."


def draw_importance(subject: Subject) -> go.Figure:
    """A bar for each parameter, the most important at the top, with an interval and the share in figures."""
    found = sorted(subject.importance, key=lambda each: -each.share)[:MOST_PARAMETERS]
    if len(found) < 2:
        raise NothingToShowError("It takes a model, two parameters and values that differ to say which matter.")
    made = figure(IMPORTANCE, x="Share of the variation", height=AROUND + BAR_HEIGHT * len(found))
    made.add_bar(
        y=labels((each.name for each in found), MOST_LETTERS),
        x=[each.share for each in found],
        orientation="h",
        marker={"color": faint(BLUE, 0.45), "line_width": 0},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [each.high - each.share for each in found],
            "arrayminus": [each.share - each.low for each in found],
            "color": BLUE,
        },
        hovertext=[f"{share(each.share)}, 80 % between {share(each.low)} and {share(each.high)}" for each in found],
        hoverinfo="text",
        showlegend=False,
    )
    for name, each in zip(labels((each.name for each in found), MOST_LETTERS), found, strict=True):
        made.add_annotation(x=each.high, y=name, text=share(each.share), showarrow=False, xanchor="left", xshift=6)
    made.update_xaxes(range=[0.0, 1.12 * max(LEAST_SHOWN, *(each.high for each in found))], tickformat=".0%", nticks=6)
    made.update_yaxes(autorange="reversed", type="category", showgrid=False)
    made.update_layout(bargap=0.35)
    return made
