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
        title: A heading.
        caption: What there is to see.
        draw: Makes it.
        ready: Whether there is anything to draw.
    """

    name: str
    label: str
    title: str
    caption: str
    draw: Callable[[Results], Figure]
    ready: Callable[[Results], bool] = lambda results: True  # noqa: ARG005 (needs no results)


MAIN_PANELS = {panel for grid in (BAYESIAN_REGRET, SYNTHETIC_PANELS, EMPIRICAL_PANELS) for row in grid for panel in row}


def _regret(
    name: str, label: str, title: str, caption: str, grid: Grid, statistic: Statistic = "median"
) -> PaperFigure:
    panels = [panel for row in grid for panel in row]
    # A figure of the appendix repeats panels of a main one; without others it has nothing of its own to show.
    panels = [panel for panel in panels if panel not in MAIN_PANELS] or panels
    return PaperFigure(
        name, label, title, caption, partial(regret_figure, grid=grid, statistic=statistic), lambda r: r.some(panels)
    )


CURVES = "Medians and quartiles over seeds; dashed: the published medians; dotted: one or two seeds."
MEANS = "Means and two standard errors."

FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "boxes", "boxes", "The key idea", "Boxes have an index each; so have the points of a posterior.", boxes_figure
    ),
    PaperFigure(
        "hard_for_eipc",
        "EIPC_stuck",
        "Where improvement per cost fails",
        "The one place worth a look costs a hundred times as much as the others.",
        partial(example_figure, name="hard_for_eipc"),
    ),
    PaperFigure(
        "contour",
        "contour",
        "EI and the index over mean and spread",
        "Lighter is higher. A small λ values spread more; a large one resembles EI.",
        contour_figure,
    ),
    PaperFigure(
        "cost_scale",
        "contour",
        "Sensitivity to λ",
        "Large λ gains early, small λ late. Medians and quartiles.",
        cost_scale_figure,
        lambda results: bool(cost_scale_studies(results)),
    ),
    _regret("bayesian_regret", "bayesian_regret", "Bayesian regret", CURVES, BAYESIAN_REGRET),
    _regret("synthetic", "synthetic", "Synthetic problems", CURVES, SYNTHETIC_PANELS),
    _regret("empirical", "empirical", "Empirical problems", CURVES, EMPIRICAL_PANELS),
    PaperFigure(
        "surfaces",
        "synthetics_illustration",
        "The synthetic problems in two dimensions",
        "Below: maps with lines of equal cost; a star where the function is least.",
        surfaces_figure,
    ),
    PaperFigure(
        "shapes",
        "PBGI_behavior",
        "EI and the index on one posterior",
        "Dots: the points each would evaluate next.",
        shapes_figure,
    ),
    PaperFigure(
        "hard_for_ei",
        "EI_stuck",
        "Where improvement fails",
        "Everywhere is nearly as good as the expensive middle.",
        partial(example_figure, name="hard_for_ei"),
    ),
    PaperFigure(
        "log_scaling",
        "impact_of_log",
        "Logarithm and stability",
        "Expected improvement with and without its logarithm and stable digits. Medians and quartiles.",
        log_scaling_figure,
        lambda results: bool(log_scaling_studies(results)),
    ),
    PaperFigure(
        "timing",
        "timing",
        "Time per suggestion",
        "CPU seconds, fit and search included; dashed: the published medians, on another machine.",
        timing_figure,
        lambda results: results.some(TIMING_PANELS),
    ),
    PaperFigure(
        "decay",
        "pbgi_decay_hyperparameters",
        "Sensitivity of PBGI-D to λ₀ and β",
        "Medians and quartiles.",
        decay_figure,
        lambda results: bool(decay_studies(results)),
    ),
    _regret(
        "robot_pushing", "robot_pushing_cost_aware", "Robot Pushing, known and unknown cost", CURVES, ROBOT_PUSHING
    ),
    _regret("bayesian_regret_means", "standard_errors", "Bayesian regret, means", MEANS, BAYESIAN_REGRET, "mean"),
    _regret("synthetic_means", "standard_errors", "Synthetic problems, means", MEANS, SYNTHETIC_PANELS, "mean"),
    _regret("empirical_means", "standard_errors", "Empirical problems, means", MEANS, EMPIRICAL_PANELS, "mean"),
    _regret("kernels", "fixed_amplitude_kernel", "Kernels, uniform cost", CURVES, kernel_panels("uniform")),
    _regret(
        "kernels_varying",
        "fixed_amplitude_cost_aware_kernel",
        "Kernels, varying cost",
        CURVES,
        kernel_panels("varying"),
    ),
    _regret(
        "length_scales", "fixed_amplitude_ls", "Length scales, uniform cost", CURVES, length_scale_panels("uniform")
    ),
    _regret(
        "length_scales_varying",
        "fixed_amplitude_cost_aware_ls",
        "Length scales, varying cost",
        CURVES,
        length_scale_panels("varying"),
    ),
    _regret("dimensions", "synthetic_dim", "Dimensions, uniform cost", CURVES, dimension_panels("uniform")),
    _regret(
        "dimensions_varying",
        "synthetic_cost_aware_dim",
        "Dimensions, varying cost",
        CURVES,
        dimension_panels("varying"),
    ),
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
    names = [figure.name for figure in FIGURES]
    parser = argparse.ArgumentParser(prog="python -m paper figures", description=main.__doc__)
    parser.add_argument("only", nargs="*", metavar="name", help=f"which figures (default: all): {', '.join(names)}")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder for the pictures")
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0])
    parser.add_argument("--form", choices=("step", "linear"), default="step", help="between evaluations")
    arguments = parser.parse_args(argv)
    if unknown := sorted(set(arguments.only) - set(names)):
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(names)}")
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
