"""How the index sees the world: over mean and spread, and on one posterior. Made from `pbgi` itself, without runs."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from paper.figure_panel import BLACK, BLUE, GREY, ORANGE, RED, Results, new_figure, tidy
from paper.figure_sensitivity import cost_scale_studies, draw_study
from pbgi.arrays import Floats
from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.gp.posterior import GP
from pbgi.index import gittins_index, log_h

COST_SCALES = {"index, λ = 1": 1.0, r"index, λ = $10^{-5}$": 1e-5}  # of the paper's comparison of shapes

# The paper does not state the four points of its comparison. These give its three maxima to within 0.006: 0.359 for
# expected improvement (paper: 0.365), 0.353 for the large cost scale (0.358) and 0.864 for the small one (0.86).
DESIGN = np.array([[0.11], [0.21], [0.30], [0.47]])
VALUES = np.array([-1.2, -0.4, 1.1, 0.8])
HYPERPARAMETERS = Hyperparameters(length_scales=(0.15,), output_scale=1.0, noise=1e-6)

# Closed boxes of the illustration: mean, standard deviation and cost of each, in arbitrary units.
BOXES = ((0.9, 0.25, 0.05), (0.4, 0.9, 0.15), (0.75, 0.5, 0.3), (0.2, 0.6, 0.05), (0.6, 0.3, 0.15))
OPENED = (0, 0.8)  # the box that is open already, and what was in it


def expected_improvement(mean: Floats, std: Floats, best_value: float) -> Floats:
    """EI over a value that is known."""
    value: Floats = np.exp(np.log(std) + log_h((mean - best_value) / std))
    return value


# Over mean and spread ---------------------------------------------------------------------------------------------


def contour_figure(results: Results) -> Figure:
    """EI and the index over mean and standard deviation; beside them, if it was run, the effect of the cost scale."""
    mean, std = np.meshgrid(np.linspace(-2.0, 2.0, 161), np.linspace(0.01, 2.0, 161))
    heights = {"expected improvement": expected_improvement(mean, std, 0.0)}
    heights |= {title: gittins_index(mean, std, math.log(scale)) for title, scale in COST_SCALES.items()}
    studies = cost_scale_studies(results)
    n_columns = len(heights) + len(studies)
    figure = new_figure(1, n_columns, width=3.1, height=3.0)
    all_axes = figure.subplots(1, n_columns)
    for axes, (title, height) in zip(all_axes, heights.items(), strict=False):
        _contours(axes, mean, std, height, title)
    all_axes[0].set_ylabel("standard deviation", fontsize=9)
    for axes, study in zip(all_axes[len(heights) :], studies, strict=True):
        draw_study(axes, results, study)
    return figure


def _contours(axes: Axes, mean: Floats, std: Floats, height: Floats, title: str) -> None:
    levels = np.linspace(height.min(), height.max(), 15)
    axes.contourf(mean, std, height, levels=levels, cmap="viridis")
    axes.contour(mean, std, height, levels=levels[1:-1], colors="white", linewidths=0.4, linestyles="solid")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("mean", fontsize=9)
    axes.tick_params(labelsize=8)


# On one posterior -------------------------------------------------------------------------------------------------


def posterior() -> GP:
    """The posterior on which shapes are compared."""
    return GP.with_hyperparameters(DESIGN, VALUES, HYPERPARAMETERS, GPConfig.paper(), mean=0.0, standardize=False)


def shapes_figure(results: Results) -> Figure:  # noqa: ARG001 (all figures are called alike)
    """The posterior of four points, expected improvement on it, and the index for a large and a small cost scale."""
    x = np.linspace(0.0, 1.0, 1001)
    mean, std = posterior().posterior(x[:, None])
    curves = {"expected improvement": expected_improvement(mean, std, float(VALUES.max()))}
    curves |= {title: gittins_index(mean, std, math.log(scale)) for title, scale in COST_SCALES.items()}
    figure = new_figure(2, 2, height=2.2)
    first, *others = figure.subplots(2, 2, sharex=True).flat
    draw_posterior(first, x, mean, std)
    first.set_title("posterior: mean and two standard deviations", fontsize=10)
    for axes, (title, height), color in zip(others, curves.items(), (ORANGE, BLUE, RED), strict=True):
        top = int(np.argmax(height))
        axes.plot(x, height, color=color, lw=1.8, label=title)
        axes.plot(x[top], height[top], "o", color=color, ms=8)
        place = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center", "fontsize": 9}
        axes.annotate(f"x = {x[top]:.2f}", (x[top], height[top]), **place)
        axes.set_title(title, fontsize=10)
        axes.margins(y=0.2)
        tidy(axes)
    for axes in others[1:]:
        axes.set_xlabel("x", fontsize=9)
    return figure


def draw_posterior(axes: Axes, x: Floats, mean: Floats, std: Floats) -> None:
    """Mean, band of two standard deviations, and the four points."""
    axes.fill_between(x, mean - 2 * std, mean + 2 * std, color=GREY, alpha=0.25, lw=0)
    axes.plot(x, mean, color=GREY, lw=1.5, label="mean")
    axes.plot(DESIGN[:, 0], VALUES, "o", color=BLACK, ms=5, label="evaluated")
    tidy(axes)


# Boxes ------------------------------------------------------------------------------------------------------------


def boxes_figure(results: Results) -> Figure:  # noqa: ARG001 (all figures are called alike)
    """The paper's key idea: boxes with independent prizes on the left, points of a posterior as boxes on the right."""
    figure = new_figure(1, 2, width=4.6, height=3.2)
    left, right = figure.subplots(1, 2)
    for position, (mean, std, cost) in enumerate(BOXES):
        _draw_box(left, position, mean, std, float(gittins_index(mean, std, math.log(cost))))
    left.plot(OPENED[0], OPENED[1], "o", color=BLACK, ms=7, label="open: its prize")
    left.set_xticks(range(len(BOXES)), [f"cost {cost:g}" for _, _, cost in BOXES])
    left.set_title("Pandora's Box: independent prizes", fontsize=10)
    left.set_ylabel("prize", fontsize=9)
    _draw_points_as_boxes(right)
    for axes in (left, right):
        tidy(axes)
        axes.margins(y=0.15)
        axes.legend(frameon=False, fontsize=8, loc="best", ncols=2)
    return figure


def _draw_points_as_boxes(axes: Axes) -> None:
    x = np.linspace(0.0, 1.0, 401)
    mean, std = posterior().posterior(x[:, None])
    draw_posterior(axes, x, mean, std)
    for cost_scale, dashes in ((1e-1, "-"), (1e-3, "--")):
        index = gittins_index(mean, std, math.log(cost_scale))
        axes.plot(x, index, color=RED, ls=dashes, lw=1.6, label=f"index, λ = {cost_scale:g}")
    axes.set_title("Bayesian optimization: every point is a box", fontsize=10)
    axes.set_xlabel("x", fontsize=9)


def _draw_box(axes: Axes, position: int, mean: float, std: float, index: float) -> None:
    """A box as tall as two standard deviations either way, the density of its prize inside, its index beside."""
    y = np.linspace(mean - 2.5 * std, mean + 2.5 * std, 121)
    density = 0.36 * np.exp(-0.5 * ((y - mean) / std) ** 2)
    axes.fill_betweenx(y, position - density, position + density, color=BLUE, alpha=0.25, lw=0)
    axes.add_patch(Rectangle((position - 0.4, y[0]), 0.8, y[-1] - y[0], fill=False, ec=GREY, lw=0.8))
    axes.plot([position - 0.4, position + 0.4], [index, index], color=RED, lw=2.2, label=None if position else "index")
