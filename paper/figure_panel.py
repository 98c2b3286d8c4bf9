"""One panel of a figure, as all of them look: our curve solid with its band, the published median dashed.

Colors are Okabe and Ito's, which stay apart for color-blind readers; each policy has its marker too. Relatives that
never share a panel (LogEI and LogEIPC, MES and MFMES, MSEI and BMSEI) share a color.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from paper.curves import Band, Form
from paper.reference import GP_NAME, Panel, PublishedCurve, Quantity, parameters, published
from paper.summary import CurveSummary, best_of_panel, seeds_of
from pbgi.arrays import Floats

Statistic = Literal["median", "mean"]

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, BROWN, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#8C5A2B", "#999999",
)  # fmt: skip
DARK = "#444444"
DASHES, DOTS = (0, (4, 2)), ":"


class Look(NamedTuple):
    """How a policy is drawn."""

    color: str
    marker: str


LOOKS = {
    "RS": Look(GREY, "x"),
    "LogEI": Look(GREEN, "o"),
    "LogEIPC": Look(GREEN, "o"),
    "LogEICC": Look(SKY, "^"),
    "TS": Look(SKY, "^"),
    "UCB": Look(ORANGE, "v"),
    "KG": Look(PURPLE, "d"),
    "MES": Look(BLACK, "+"),
    "MFMES": Look(BLACK, "+"),
    "MSEI": Look(BROWN, "p"),
    "BMSEI": Look(BROWN, "p"),
    "PBGI": Look(RED, "s"),
    "PBGI-D": Look(BLUE, "D"),
}
OTHER_LOOKS = tuple(
    Look(*pair) for pair in zip((BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, BROWN), "osD^vdpX", strict=True)
)
SPENT = {"uniform": "evaluations", "varying": "cost spent", "unknown": "cost spent (not known beforehand)"}
QUANTITY_NAMES = {"regret": "simple regret", "best": "best value", "seconds": "seconds per suggestion"}


@dataclass(frozen=True, eq=False)
class Results:
    """The summaries that figures are drawn from, and which side of them is shown."""

    curves: Sequence[CurveSummary] = ()
    variant: str = "as_published"
    form: Form = "step"

    def panel(self, panel: Panel, experiment: str | None = None) -> dict[str, CurveSummary]:
        """Our curves of a panel by policy; those of the experiment first, where it has them."""
        curves = best_of_panel(self.curves, panel, self.variant)
        own = [curve for curve in self.curves if curve.experiment == experiment]
        return curves | best_of_panel(own, panel, self.variant)

    def band(self, curve: CurveSummary) -> Band:
        """The statistics to draw."""
        return curve.step if self.form == "step" else curve.linear

    def some(self, panels: Iterable[Panel]) -> bool:
        """Whether there is a result for any of the panels."""
        wanted = set(panels)
        return any(curve.panel in wanted for curve in self.curves)


def looks_of(policies: Iterable[str]) -> dict[str, Look]:
    """A look for each policy: its own, or one of the others in turn."""
    policies = list(policies)
    spare = iter(OTHER_LOOKS * (len(policies) // len(OTHER_LOOKS) + 1))
    return {policy: LOOKS.get(policy) or next(spare) for policy in policies}


def in_order(policies: Iterable[str]) -> list[str]:
    """Baselines in the order of `LOOKS`, ours last; names that are not in it follow by their parameters."""
    known = list(LOOKS)
    return sorted(policies, key=lambda p: (known.index(p) if p in known else len(known), *_parameter_key(p)))


def _parameter_key(policy: str) -> tuple[str, list[float], str]:
    base, values = parameters(policy)
    return base, list(values.values()), policy


def draw_curve(
    axes: Axes, curve: CurveSummary, x: Floats, bands: tuple[Floats, Floats, Floats], look: Look, label: str
) -> None:
    """One of our curves: a line with a band around it; of one or two runs a dotted line, for it is no median."""
    middle, low, high = bands
    if curve.is_points:
        axes.plot(x, middle, color=look.color, ls=DOTS, lw=1.4, label=label)
        return
    axes.fill_between(x, low, high, color=look.color, alpha=0.13, lw=0)
    axes.plot(x, middle, color=look.color, marker=look.marker, ms=4, markevery=(2, 6), lw=1.6, label=label)


def draw_published(axes: Axes, x: Floats, middle: Floats, look: Look, label: str) -> None:
    """One of the published curves: a thin dashed line, told apart from ours in the legend of the figure."""
    axes.plot(x, middle, color=look.color, ls=DASHES, lw=0.9, alpha=0.9, label=f"{label} (published)")


def draw_panel(
    axes: Axes,
    results: Results,
    panel: Panel,
    *,
    statistic: Statistic = "median",
    policies: Iterable[str] | None = None,
) -> list[str]:
    """Draw the curves of a panel; returns the policies that were drawn.

    Args:
        axes: Where.
        results: What.
        panel: Which.
        statistic: "median" with quartiles and the published medians, or "mean" with two standard errors.
        policies: Which of them: by default those of the main experiments, and not those of studies of settings.
    """
    ours, theirs = results.panel(panel), published(panel) if statistic == "median" else {}
    names = in_order(name for name in (LOOKS if policies is None else policies) if name in ours or name in theirs)
    looks = looks_of(names)
    for name in names:
        if name in theirs:
            draw_published(axes, theirs[name].grid, theirs[name].median, looks[name], name)
        if name in ours:
            curve = ours[name]
            draw_curve(axes, curve, curve.grid, three(results.band(curve), statistic), looks[name], name)
    shown: list[CurveSummary | PublishedCurve] = [*ours.values(), *published(panel).values()]
    label_axes(axes, panel, shown[0].quantity if shown else "regret", statistic)
    name_seeds(axes, [ours[name] for name in names if name in ours])
    if not names:
        axes.set_axis_off()
    return names


def name_seeds(axes: Axes, curves: Sequence[CurveSummary]) -> None:
    """Say in the corner over how many seeds the curves are, or that there are none."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "bottom", "fontsize": 7, "color": DARK}
    text = seeds_of(curves) if curves else "not run yet"
    axes.annotate(text, (1.0, 1.0), xytext=(0, 1), textcoords="offset points", **place)


def three(band: Band, statistic: Statistic) -> tuple[Floats, Floats, Floats]:
    """The middle of a band and its edges: median and quartiles, or mean and two standard errors either way."""
    if statistic == "median":
        return band.median, band.q25, band.q75
    return band.mean, band.mean - 2 * band.standard_error, band.mean + 2 * band.standard_error


def title_of(panel: Panel) -> str:
    """A panel's heading."""
    return f"{problem_of(panel)}, {size_of(panel)}"


def problem_of(panel: Panel) -> str:
    """The problem of a panel; draws from a prior are told apart by kernel and length scale."""
    gp = GP_NAME.fullmatch(panel.problem)
    return f"{gp['kernel']}, κ = {gp['length_scale']}" if gp else panel.problem


def size_of(panel: Panel) -> str:
    """The dimension of a panel, and of pushes what is known."""
    cost = {"varying": " (known)", "unknown": " (unknown)"}.get(panel.cost, "")
    return f"d = {panel.dim}{cost if panel.problem == 'Robot Pushing' else ''}"


def label_axes(axes: Axes, panel: Panel, quantity: Quantity, statistic: Statistic) -> None:
    """Title, names of the axes, and scale of a panel."""
    axes.set_title(title_of(panel), fontsize=10, loc="left")
    axes.set_xlabel(SPENT[panel.cost], fontsize=9)
    axes.set_ylabel(f"{statistic} {QUANTITY_NAMES[quantity]}", fontsize=9)
    if quantity == "regret":
        log_scale(axes)
    tidy(axes)


def log_scale(*all_axes: Axes) -> None:
    """A logarithmic y axis whose range is that of the lines: a band that reaches zero is cut, not followed.

    Of several axes all get the range of all their lines.
    """
    lines = [line for axes in all_axes for line in axes.get_lines()]
    heights = np.concatenate([np.array([]), *(np.asarray(line.get_ydata(), dtype=np.float64) for line in lines)])
    positive = heights[heights > 0]
    for axes in all_axes:
        axes.set_yscale("log", nonpositive="clip")
        if len(positive):
            _set_range(axes, float(positive.min()), float(positive.max()))
        axes.yaxis.set_minor_formatter(NullFormatter())


def _set_range(axes: Axes, low: float, high: float) -> None:
    margin = max(1.15, (high / low) ** 0.06)
    axes.set_ylim(low / margin, high * margin)
    if high / low < 100:  # hardly a power of ten may be on the axis: label numbers between them
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)) if high / low > 4 else MaxNLocator(5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def tidy(axes: Axes) -> None:
    """What all axes have in common."""
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, lw=0.5)


def legend(figure: FigureBase, policies: Sequence[str], *, with_published: bool = True) -> None:
    """One legend to the right of a figure: the policies, and what solid, dashed and dotted mean."""
    looks = looks_of(policies)
    handles = [Line2D([], [], color=looks[p].color, marker=looks[p].marker, ms=4, lw=1.6, label=p) for p in policies]
    explained = lines_explained() if with_published else lines_explained()[-1:]
    handles += [Line2D([], [], color="none", label=" "), *explained]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)


def lines_explained() -> list[Line2D]:
    """What solid, dashed and dotted mean, as entries of a legend."""
    return [
        Line2D([], [], color=DARK, lw=1.6, label="here"),
        Line2D([], [], color=DARK, lw=0.9, ls=DASHES, label="published"),
        Line2D([], [], color=DARK, lw=1.4, ls=DOTS, label="1 or 2 seeds"),
    ]


def new_figure(n_rows: int, n_columns: int, *, width: float = 3.6, height: float = 2.9) -> Figure:
    """An empty figure of the size of that many panels and a legend."""
    return Figure(figsize=(width * n_columns + 1.2, height * n_rows), layout="constrained")


def rows_of(figure: Figure, n_rows: int) -> list[SubFigure]:
    """One part of a figure per row, each with room for its own legend."""
    return list(figure.subfigures(n_rows, 1, squeeze=False).flat)
