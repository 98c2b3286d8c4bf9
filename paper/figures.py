"""Every figure of the paper, main text and appendix, from the results: `python -m paper figures`.

`FIGURES` is the list: the paper's label, the file, and a function of `Results` that returns a matplotlib `Figure`.
Figures are drawn without pyplot, so that nothing global changes. Those for which there are no results yet are named and
skipped; those that need no runs are always drawn.
"""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from paper import figure_names as names
from paper.figure_examples import example_figure
from paper.figure_panel import Results, Statistic
from paper.figure_regret import (
    BAYESIAN_REGRET,
    EMPIRICAL_PANELS,
    ROBOT_PUSHING,
    SYNTHETIC_PANELS,
    Grid,
    dimension_panels,
    kernel_panels,
    length_scale_panels,
    regret_figure,
)
from paper.figure_sensitivity import (
    cost_scale_figure,
    cost_scale_studies,
    decay_figure,
    decay_studies,
    log_scaling_figure,
    log_scaling_studies,
)
from paper.figure_shapes import boxes_figure, contour_figure, shapes_figure
from paper.figure_surfaces import surfaces_figure
from paper.figure_timing import TIMING_PANELS, timing_figure
from paper.results import RESULTS
from paper.summary import VARIANTS, read_summaries

IMAGES = Path(__file__).parents[1] / "docs" / "images" / "paper"
DPI = 200
N_COLORS = 128  # of a picture's palette: no difference to the eye, a third of the bytes


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper.

    Attributes:
        name: Of the file.
        label: In the paper's source, without "fig:".
        draw: Makes it.
        ready: Whether there is anything to draw.
    """

    name: str
    label: str
    draw: Callable[[Results], Figure]
    ready: Callable[[Results], bool] = lambda results: True  # noqa: ARG005 (needs no results)


MAIN_PANELS = {panel for grid in (BAYESIAN_REGRET, SYNTHETIC_PANELS, EMPIRICAL_PANELS) for row in grid for panel in row}


def _regret(name: str, label: str, grid: Grid, statistic: Statistic = "median") -> PaperFigure:
    panels = [panel for row in grid for panel in row]
    # A figure of the appendix repeats panels of a main one; without others it has nothing of its own to show.
    panels = [panel for panel in panels if panel not in MAIN_PANELS] or panels
    return PaperFigure(name, label, partial(regret_figure, grid=grid, statistic=statistic), lambda r: r.some(panels))


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure("boxes", "boxes", boxes_figure),
    PaperFigure(names.HARD_FOR_EIPC, "EIPC_stuck", partial(example_figure, name=names.HARD_FOR_EIPC)),
    PaperFigure("contour", "contour", contour_figure),
    PaperFigure(names.COST_SCALE, "contour", cost_scale_figure, lambda results: bool(cost_scale_studies(results))),
    _regret(names.BAYESIAN_REGRET, "bayesian_regret", BAYESIAN_REGRET),
    _regret(names.SYNTHETIC, "synthetic", SYNTHETIC_PANELS),
    _regret(names.EMPIRICAL, "empirical", EMPIRICAL_PANELS),
    PaperFigure("surfaces", "synthetics_illustration", surfaces_figure),
    PaperFigure("shapes", "PBGI_behavior", shapes_figure),
    PaperFigure(names.HARD_FOR_EI, "EI_stuck", partial(example_figure, name=names.HARD_FOR_EI)),
    PaperFigure(names.LOG_SCALING, "impact_of_log", log_scaling_figure, lambda r: bool(log_scaling_studies(r))),
    PaperFigure(names.TIMING_FIGURE, "timing", timing_figure, lambda results: results.some(TIMING_PANELS)),
    PaperFigure(names.DECAY, "pbgi_decay_hyperparameters", decay_figure, lambda results: bool(decay_studies(results))),
    _regret(names.ROBOT_PUSHING, "robot_pushing_cost_aware", ROBOT_PUSHING),
    _regret("bayesian_regret_means", "standard_errors", BAYESIAN_REGRET, "mean"),
    _regret("synthetic_means", "standard_errors", SYNTHETIC_PANELS, "mean"),
    _regret("empirical_means", "standard_errors", EMPIRICAL_PANELS, "mean"),
    _regret(names.KERNELS, "fixed_amplitude_kernel", kernel_panels("uniform")),
    _regret("kernels_varying", "fixed_amplitude_cost_aware_kernel", kernel_panels("varying")),
    _regret("length_scales", "fixed_amplitude_ls", length_scale_panels("uniform")),
    _regret("length_scales_varying", "fixed_amplitude_cost_aware_ls", length_scale_panels("varying")),
    _regret("dimensions", "synthetic_dim", dimension_panels("uniform")),
    _regret("dimensions_varying", "synthetic_cost_aware_dim", dimension_panels("varying")),
)


def write(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG for the screen and as PDF for print; the same results make the same bytes."""
    write_png(figure, folder / f"{name}.png")
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})


def write_png(figure: Figure, path: Path, dpi: int = DPI) -> None:
    """Write a small PNG: a palette instead of full color."""
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    with Image.open(buffer) as picture:
        # The other methods give rare colors away, and a thin line is rare: two policies would look the same.
        method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
        picture.convert("RGB").quantize(N_COLORS, method, kmeans=2, dither=dither).save(path, optimize=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the figures for which there are results, and say which were skipped; returns the exit code."""
    known = [figure.name for figure in FIGURES]
    parser = argparse.ArgumentParser(prog="python -m paper figures", description=main.__doc__)
    parser.add_argument("only", nargs="*", metavar="name", help=f"which figures (default: all): {', '.join(known)}")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder for the pictures")
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0])
    parser.add_argument("--form", choices=("step", "linear"), default="step", help="between evaluations")
    arguments = parser.parse_args(argv)
    if unknown := sorted(set(arguments.only) - set(known)):
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(known)}")
    results = Results(read_summaries(arguments.results), arguments.variant, arguments.form)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        if arguments.only and figure.name not in arguments.only:
            continue
        if not figure.ready(results):
            print(f"skipped {figure.name}: no results yet", file=sys.stderr)
            continue
        write(figure.draw(results), arguments.out, figure.name)
        print(f"wrote {arguments.out / figure.name}.png and .pdf")
    return 0
