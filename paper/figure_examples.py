"""The two 1-D examples: prior, cost, and what becomes of a policy that divides by cost, or that ignores it."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.figure_panel import BLUE, GREY, ORANGE, Results, draw_panel, in_order, legend, new_figure, tidy
from paper.reference import Panel
from paper.summary import VARIANTS
from pbgi.arrays import Floats
from pbgi.problems.modulated_gp import Bump, ModulatedGP
from pbgi.problems.one_dimensional import COST, HARD_FOR_EI, HARD_FOR_EIPC, HIGH, LOW, ModulatedDraw

SHOWN = 5.0  # of the 500 on either side, as in the paper
AMPLITUDES = {"hard_for_eipc": HARD_FOR_EIPC, "hard_for_ei": HARD_FOR_EI}
RIVALS = {"hard_for_eipc": "LogEIPC", "hard_for_ei": "LogEI"}


def example_panel(name: str) -> Panel:
    """The panel of an example's curves."""
    return Panel(name, 1, "varying")


def example_figure(results: Results, name: str) -> Figure:
    """Amplitude of the prior, cost, and regret of PBGI and its rival, with the model of the text and that of the code.

    Args:
        results: What to draw of the runs; prior and cost need none.
        name: "hard_for_eipc" or "hard_for_ei".
    """
    figure = new_figure(1, 4, width=3.2, height=2.9)
    prior, cost, *regrets = figure.subplots(1, 4)
    z = np.linspace(-SHOWN, SHOWN, 401)
    _draw_prior(prior, z, AMPLITUDES[name])
    cost.plot(z, COST(z), color=ORANGE, lw=1.8)
    _finish(prior, "prior: standard deviation and a draw", "z", "value")
    _finish(cost, "cost", "z", "cost")
    cost.set_ylim(bottom=0.0)
    panel, policies = example_panel(name), in_order({RIVALS[name], "PBGI"})
    for axes, variant in zip(regrets, VARIANTS, strict=True):
        own = replace(results, curves=[c for c in results.curves if c.variant == variant], variant=variant)
        draw_panel(axes, own, panel, policies=policies)
        axes.set_title(variant.replace("_", " "), fontsize=10, loc="left")
    legend(figure, policies)
    return figure


def _draw_prior(axes: Axes, z: Floats, amplitude: Bump) -> None:
    height = amplitude(z)
    axes.fill_between(z, -height, height, color=BLUE, alpha=0.2, lw=0)
    axes.plot(z, height, color=BLUE, lw=1.4)
    axes.plot(z, -height, color=BLUE, lw=1.4)
    axes.plot(z, ModulatedDraw(ModulatedGP(amplitude, LOW, HIGH), seed=0).values(z), color=GREY, lw=0.9, zorder=1)


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    tidy(axes)
