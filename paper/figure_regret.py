"""Grids of regret curves: Bayesian regret, synthetic and empirical problems, kernels, length scales, dimensions.

Rows share a legend, since uniform and varying costs have other baselines. Rows and columns for which there are neither
results nor published numbers are left out.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from paper.figure_panel import (
    Results,
    Statistic,
    draw_panel,
    in_order,
    legend,
    new_figure,
    problem_of,
    rows_of,
    size_of,
)
from paper.reference import Panel, gp_problem, published

Grid = tuple[tuple[Panel, ...], ...]

DIMENSIONS = (8, 16, 32)
ALL_DIMENSIONS = (4, 8, 16, 32)
KERNELS = ("Matern-3/2", "Matern-5/2", "squared exponential")
LENGTH_SCALES = (0.1, 0.5, 1.0)
SYNTHETIC = ("Ackley", "Levy", "Rosenbrock")
SYNTHETIC_DIMENSIONS = (4, 8, 16)
EMPIRICAL = (("Pest Control", 25, "varying"), ("Lunar Lander", 12, "unknown"), ("Robot Pushing", 14, "unknown"))
COSTS = ("uniform", "varying")
# Width and height of a panel in inches, by whether there are many columns and many rows: pictures stay small.
SIZES = {(False, False): (3.6, 2.9), (False, True): (3.3, 2.5), (True, False): (2.8, 2.3), (True, True): (2.8, 2.25)}

BAYESIAN_REGRET: Grid = tuple(tuple(Panel(gp_problem(), d, cost) for d in DIMENSIONS) for cost in COSTS)
SYNTHETIC_PANELS: Grid = tuple(tuple(Panel(name, 16, cost) for name in SYNTHETIC) for cost in COSTS)
EMPIRICAL_PANELS: Grid = (
    tuple(Panel(name, d, "uniform") for name, d, _ in EMPIRICAL),
    tuple(Panel(name, d, cost) for name, d, cost in EMPIRICAL),
)
ROBOT_PUSHING: Grid = (tuple(Panel("Robot Pushing", 14, cost) for cost in ("varying", "unknown")),)


def kernel_panels(cost: str) -> Grid:
    """A row per kernel, a column per dimension."""
    return tuple(tuple(Panel(gp_problem(kernel), d, cost) for d in ALL_DIMENSIONS) for kernel in KERNELS)


def length_scale_panels(cost: str) -> Grid:
    """A row per length scale, a column per dimension."""
    return tuple(
        tuple(Panel(gp_problem(length_scale=scale), d, cost) for d in ALL_DIMENSIONS) for scale in LENGTH_SCALES
    )


def dimension_panels(cost: str) -> Grid:
    """A row per synthetic problem, a column per dimension."""
    return tuple(tuple(Panel(name, d, cost) for d in SYNTHETIC_DIMENSIONS) for name in SYNTHETIC)


def regret_figure(results: Results, grid: Grid, *, statistic: Statistic = "median") -> Figure:
    """A panel per entry of the grid, a legend per row.

    Args:
        results: What to draw.
        grid: Rows of panels.
        statistic: "median" with quartiles and the published medians, or "mean" with two standard errors.
    """
    grid = without_empty(grid, results)
    size = SIZES[len(grid[0]) > 3, len(grid) > 2]
    figure = new_figure(len(grid), len(grid[0]), width=size[0], height=size[1])
    for part, panels in zip(rows_of(figure, len(grid)), grid, strict=True):
        drawn: set[str] = set()
        row = part.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(row, panels, strict=True):
            drawn |= set(draw_panel(axes, results, panel, statistic=statistic))
        if is_of_one_problem(panels):  # which the name of the row says
            for axes, panel in zip(row, panels, strict=True):
                axes.set_title(size_of(panel), fontsize=10, loc="left")
        for axes in row[1:]:  # the panels of a row plot the same quantity
            axes.set_ylabel("")
        shows_published = statistic == "median" and any(published(panel) for panel in panels)
        legend(part, in_order(drawn), with_published=shows_published)
        part.suptitle(row_name(panels), fontsize=11, fontweight="bold", x=0.01, ha="left")
    return figure


def row_name(panels: Sequence[Panel]) -> str:
    """What the panels of a row have in common: whether their cost is uniform, and the problem if it is one."""
    cost = "uniform cost" if all(panel.cost == "uniform" for panel in panels) else "varying cost"
    return f"{problem_of(panels[0])}, {cost}" if is_of_one_problem(panels) else cost.capitalize()


def is_of_one_problem(panels: Sequence[Panel]) -> bool:
    """Whether the panels of a row show the same problem."""
    return len({panel.problem for panel in panels}) == 1


def without_empty(grid: Grid, results: Results) -> Grid:
    """The grid without rows and columns that have nothing to show; all of it if that leaves nothing."""

    def full(panels: Sequence[Panel]) -> bool:
        return results.some(panels) or any(published(panel) for panel in panels)

    rows = [row for row in grid if full(row)]
    columns = [k for k in range(len(grid[0])) if full([row[k] for row in grid])]
    return tuple(tuple(row[k] for k in columns) for row in rows) or grid
