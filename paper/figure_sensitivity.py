"""Studies of settings on one panel: the cost scale of PBGI, start and decay of PBGI-D, logarithm and stability of EI.

The curves of a study share a panel with the main experiment and are told apart by what their names state, e.g.
"PBGI-D, lambda_0 = 0.1, beta = 2".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.figure_panel import (
    OTHER_LOOKS,
    Results,
    draw_curve,
    draw_published,
    label_axes,
    lines_explained,
    log_scale,
    name_seeds,
    new_figure,
    three,
    tidy,
)
from paper.reference import Panel, gp_problem, parameters, published, published_rates
from paper.results import TRACED

COSTS = ("uniform", "varying")
SYMBOLS = {"lambda": "λ", "lambda_0": "λ₀", "beta": "β"}
SENSITIVITY_PANELS = tuple(Panel(gp_problem(), 8, cost) for cost in COSTS)
LOG_SCALING_PANEL = Panel(gp_problem(), 16, "uniform")
LOG_SCALING_POLICIES = ("Unst. EI", "Exp(LogEI)", "Log(Unst. EI)", "LogEI", "PBGI", "S-PBGI")
# The paper's own settings, at which the other one is varied.
LAMBDA_0, BETA = 0.1, 2.0


@dataclass(frozen=True)
class Study:
    """Curves of one panel, with the labels that tell them apart."""

    panel: Panel
    title: str
    labels: dict[str, str]  # policy -> label


def symbol(name: str, value: float) -> str:
    """A parameter as a label, powers of ten as such."""
    exponent = math.log10(value)
    if exponent <= -2 and abs(exponent - round(exponent)) < 1e-9:
        return f"{SYMBOLS.get(name, name)} = $10^{{{round(exponent)}}}$"
    return f"{SYMBOLS.get(name, name)} = {value:g}"


def _studies(results: Results, base: str, varied: str, fixed: dict[str, float], title: str) -> list[Study]:
    """Studies of one parameter on each of the panels where there are any, the others at the values given."""
    found = []
    for panel in SENSITIVITY_PANELS:
        settings = {}
        for policy in results.panel(panel):
            name, stated = parameters(policy)
            if name == base and varied in stated and all(stated.get(other) == at for other, at in fixed.items()):
                settings[policy] = stated[varied]
        labels = {policy: symbol(varied, value) for policy, value in sorted(settings.items(), key=lambda item: item[1])}
        if labels:
            found.append(Study(panel, f"{title}, d = {panel.dim}, {panel.cost} cost", labels))
    return found


def cost_scale_studies(results: Results) -> list[Study]:
    """PBGI with several cost scales, and PBGI-D beside them."""
    found = _studies(results, "PBGI", "lambda", {}, "PBGI")
    decayed = {f"PBGI-D, lambda_0 = {LAMBDA_0:g}, beta = {BETA:g}": "PBGI-D"}
    return [
        replace(study, labels=study.labels | decayed) if set(decayed) <= set(results.panel(study.panel)) else study
        for study in found
    ]


def decay_studies(results: Results) -> list[Study]:
    """PBGI-D with several cost scales at its start, and with several factors of decay."""
    starts = _studies(results, "PBGI-D", "lambda_0", {"beta": BETA}, f"PBGI-D, β = {BETA:g}")
    factors = _studies(results, "PBGI-D", "beta", {"lambda_0": LAMBDA_0}, f"PBGI-D, λ₀ = {LAMBDA_0:g}")
    return starts + factors


def log_scaling_studies(results: Results) -> list[Study]:
    """Expected improvement with and without logarithm and stable digits, if more than the main curves were run."""
    ours = results.panel(LOG_SCALING_PANEL)
    labels = {policy: policy for policy in LOG_SCALING_POLICIES if policy in ours}
    if not set(labels) - {"LogEI", "PBGI"}:
        return []
    labels |= {"PBGI": "PBGI, stable"} if "PBGI" in labels else {}
    return [Study(LOG_SCALING_PANEL, f"logarithm and stability, d = {LOG_SCALING_PANEL.dim}", labels)]


def draw_study(axes: Axes, results: Results, study: Study) -> None:
    """Medians and quartiles of a study with the published medians dashed, and a legend."""
    ours, theirs = results.panel(study.panel), published(study.panel)
    for look, (policy, label) in zip(OTHER_LOOKS, study.labels.items(), strict=False):
        curve = ours[policy]
        draw_curve(axes, curve, curve.grid, three(results.band(curve), "median"), look, label)
        if policy in theirs:
            draw_published(axes, theirs[policy].grid, theirs[policy].median, look, "_" + label)
    label_axes(axes, study.panel, "regret", "median")
    axes.set_title(study.title, fontsize=10, loc="left")
    name_seeds(axes, [ours[policy] for policy in study.labels])
    handles = axes.get_legend_handles_labels()[0] + lines_explained()
    axes.legend(handles=handles, frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_rates(axes: Axes, results: Results, study: Study) -> None:
    """How the rate of PBGI-D falls, with the published medians dashed."""
    ours, theirs = results.panel(study.panel, TRACED), published_rates(study.panel)
    for look, (policy, label) in zip(OTHER_LOOKS, study.labels.items(), strict=False):
        curve = ours[policy]
        if curve.rates is not None:
            draw_curve(axes, curve, curve.iterations, three(curve.rates, "median"), look, label)
            draw_published(axes, theirs[policy].grid, theirs[policy].median, look, "_" + label)
    axes.set_title(study.title, fontsize=10, loc="left")
    axes.set_xlabel("evaluations", fontsize=9)
    axes.set_ylabel(r"rate $\lambda_t$", fontsize=9)
    if axes.get_lines():
        log_scale(axes)
    tidy(axes)


def _figure(results: Results, studies: Sequence[Study]) -> Figure:
    figure = new_figure(1, max(len(studies), 1), width=4.2, height=3.4)
    for axes, study in zip(figure.subplots(1, max(len(studies), 1), squeeze=False)[0], studies, strict=False):
        draw_study(axes, results, study)
    return figure


def cost_scale_figure(results: Results) -> Figure:
    """PBGI with several cost scales, larger than beside the contours."""
    return _figure(results, cost_scale_studies(results))


def decay_figure(results: Results) -> Figure:
    """PBGI-D with other starts and other decays: regret above, the rate below."""
    studies = decay_studies(results)
    columns = max(len(studies), 1)
    figure = new_figure(2, columns, width=4.2, height=3.0)
    for row, draw in zip(figure.subplots(2, columns, squeeze=False), (draw_study, draw_rates), strict=True):
        for axes, study in zip(row, studies, strict=False):
            draw(axes, results, study)
    return figure


def log_scaling_figure(results: Results) -> Figure:
    """What the logarithm and the stable digits each give to expected improvement."""
    return _figure(results, log_scaling_studies(results))
