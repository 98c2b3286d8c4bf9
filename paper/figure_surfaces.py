"""The synthetic problems in two dimensions, with the price of their points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paper.figure_panel import RED, Results, new_figure
from pbgi.arrays import Floats
from pbgi.problems.synthetic import ackley_value, levy_value, rosenbrock_value
from pbgi.problems.unit_cube import BASE_PRICE, MEAN_PRICE

N_POINTS = 91  # per side: odd, so that the middle of the domain is one of them
# Name, function, domain, the coordinates of its least value, and what is added before a logarithm is taken, if heights
# are seen better by it. The floor of Rosenbrock's valley falls between the points: the offset hides the gaps.
SURFACES: tuple[tuple[str, Callable[[Floats], float], tuple[float, float], float, float | None], ...] = (
    ("Ackley", ackley_value, (-1.0, 1.0), 0.0, None),
    ("Levy", levy_value, (-10.0, 10.0), 1.0, None),
    ("Rosenbrock", rosenbrock_value, (-5.0, 10.0), 1.0, 100.0),
)


def surfaces_figure(results: Results) -> Figure:  # noqa: ARG001 (all figures are called alike)
    """Each function as a surface, and below it as a map with the lines of equal cost."""
    n_columns = len(SURFACES)
    figure = new_figure(2, n_columns, width=3.3, height=3.1)
    for column, (name, function, domain, least, offset) in enumerate(SURFACES, start=1):
        z = np.linspace(*domain, N_POINTS)
        first, second = np.meshgrid(z, z)
        height = np.apply_along_axis(function, -1, np.stack([first, second], axis=-1))
        shown = height if offset is None else np.log10(offset + height)
        title = name if offset is None else f"{name}: log10({offset:g} + value)"
        _draw_surface(figure.add_subplot(2, n_columns, column, projection="3d"), first, second, shown, title)
        lower = figure.add_subplot(2, n_columns, n_columns + column)
        _draw_map(lower, first, second, shown, domain)
        lower.plot(least, least, "*", color=RED, ms=12, mec="white", mew=0.6, label="least")
    return figure


def _draw_surface(axes: Any, first: Floats, second: Floats, height: Floats, title: str) -> None:
    axes.plot_surface(first, second, height, cmap="viridis", rcount=N_POINTS, ccount=N_POINTS, lw=0, antialiased=False)
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=7, pad=-1)
    axes.view_init(elev=32, azim=-55)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(MaxNLocator(4))


def _draw_map(axes: Axes, first: Floats, second: Floats, height: Floats, domain: tuple[float, float]) -> None:
    axes.contourf(first, second, height, levels=16, cmap="viridis")
    low, high = domain
    cost = BASE_PRICE + MEAN_PRICE * ((first - low) + (second - low)) / (2.0 * (high - low))
    lines = axes.contour(first, second, cost, levels=[3, 6, 9, 12, 15, 18], colors="white", linewidths=0.8)
    axes.clabel(lines, fmt="cost %g", fontsize=7)
    axes.set_aspect("equal")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(labelsize=8)
