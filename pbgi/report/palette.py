"""One look for all figures, of reports, docs and papers: colors, fonts, and words beside lines instead of legends.

The colors are those of Okabe and Ito that stand out from white and from black alike, so that color-blind readers can
tell them apart; whatever differs by color should also differ by dash, marker or place. No figure has two axes for one
direction. Figures of Matplotlib are drawn within `matplotlib.rc_context(palette.MATPLOTLIB)`, which changes nothing
global; `label_ends` writes what a line is at its end.
"""

from collections.abc import Sequence
from typing import Any

BLUE, VERMILLION, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A8A8A"
ORANGE, SKY, INK = "#E69F00", "#56B4E9", "#24292f"
CYCLE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, GREY)
WEB_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
SOFT_GRID = "#e4e7eb"

MATPLOTLIB: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#8c959f",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": f"cycler('color', {list(CYCLE)!r})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.titlesize": 11.5,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],  # which Matplotlib brings: the same picture everywhere
    "font.size": 10.0,
    "grid.color": SOFT_GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "text.color": INK,
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
}


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]], *, gap: float = 0.07, size: float = 10.0) -> None:
    """Write words to the right of Matplotlib's axes, each at its height, none over another.

    Args:
        axes: With limits and scales as they will stay.
        ends: Of each line where it ends (in the units of the axis), its words and its color.
        gap: The least distance between two words, as a share of the height.
        size: Of the letters.
    """
    to_share = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]
    heights = [float(to_share.transform((right, y))[1]) for y, _, _ in ends]
    for place, (_, words, color) in zip(apart(heights, gap), ends, strict=True):
        axes.text(1.015, place, words, transform=axes.transAxes, color=color, va="center", ha="left", fontsize=size)


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """The heights moved as little as it takes for neighbors to be a gap apart, in their order.

    Groups that touch are placed around their middle, which is where the squares of all moves are least.
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    groups: list[list[int]] = []
    for i in order:
        groups.append([i])
        while len(groups) > 1 and _top(groups[-2], heights, gap) + gap > _bottom(groups[-1], heights, gap):
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = list(heights)
    for group in groups:
        for k, i in enumerate(group):
            placed[i] = _bottom(group, heights, gap) + k * gap
    return placed


def _bottom(group: Sequence[int], heights: Sequence[float], gap: float) -> float:
    return sum(heights[i] for i in group) / len(group) - gap * (len(group) - 1) / 2.0


def _top(group: Sequence[int], heights: Sequence[float], gap: float) -> float:
    return _bottom(group, heights, gap) + gap * (len(group) - 1)
