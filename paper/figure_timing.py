"""Seconds per suggestion over a run, beside the paper's."""

from matplotlib.figure import Figure

from paper.figure_panel import (
    Results,
    draw_curve,
    draw_published,
    in_order,
    legend,
    log_scale,
    looks_of,
    name_seeds,
    new_figure,
    three,
    tidy,
    title_of,
)
from paper.reference import Panel, published_seconds
from paper.results import TIMING

TIMING_PANELS = tuple(Panel("Ackley", d, "uniform") for d in (4, 8, 16))


def timing_figure(results: Results) -> Figure:
    """Median and quartiles of the processor seconds of a suggestion, fit and search included."""
    figure = new_figure(1, len(TIMING_PANELS))
    drawn: set[str] = set()
    for axes, panel in zip(figure.subplots(1, len(TIMING_PANELS), sharey=True), TIMING_PANELS, strict=True):
        theirs = published_seconds(panel)
        ours = results.panel(panel, TIMING)
        looks = looks_of(theirs)
        for policy in in_order(theirs):
            draw_published(axes, theirs[policy].grid, theirs[policy].median, looks[policy], policy)
            curve = ours.get(policy)
            if curve is not None and curve.seconds is not None:
                draw_curve(axes, curve, curve.iterations, three(curve.seconds, "median"), looks[policy], policy)
        drawn |= set(theirs)
        axes.set_title(title_of(panel), fontsize=10, loc="left")
        name_seeds(axes, [ours[policy] for policy in theirs if policy in ours and ours[policy].seconds is not None])
        axes.set_xlabel("iteration", fontsize=9)
        tidy(axes)
    log_scale(*figure.axes)
    figure.axes[0].set_ylabel("CPU seconds per suggestion", fontsize=9)
    legend(figure, in_order(drawn))
    return figure
