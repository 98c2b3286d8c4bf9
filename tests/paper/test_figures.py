"""Figures: what stands on their axes, that every figure of the paper has one, and that pictures keep their colors."""

import math

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.colors import to_rgb
from PIL import Image
from toy_runs import record

from paper.curves import Band
from paper.figure_examples import example_figure, example_panel
from paper.figure_panel import LOOKS, Results, draw_panel, in_order, looks_of, new_figure, parameters, title_of
from paper.figure_regret import (
    BAYESIAN_REGRET,
    EMPIRICAL_PANELS,
    ROBOT_PUSHING,
    SYNTHETIC_PANELS,
    dimension_panels,
    kernel_panels,
    length_scale_panels,
    regret_figure,
)
from paper.figure_sensitivity import SENSITIVITY_PANELS, cost_scale_studies, decay_studies, log_scaling_figure, symbol
from paper.figure_shapes import DESIGN, boxes_figure, contour_figure, posterior, shapes_figure
from paper.figure_surfaces import surfaces_figure
from paper.figure_timing import TIMING_PANELS, timing_figure
from paper.figures import FIGURES, main, write_png
from paper.reference import POLICIES, Panel, gp_problem, published, published_curves, published_seconds
from paper.results import Store
from paper.summary import CurveSummary

# All \label{fig:...} of the paper's source, in order; standard_errors has three pictures.
LABELS = (
    "boxes", "EIPC_stuck", "contour", "bayesian_regret", "synthetic", "empirical", "synthetics_illustration",
    "PBGI_behavior", "EI_stuck", "impact_of_log", "timing", "pbgi_decay_hyperparameters", "robot_pushing_cost_aware",
    "standard_errors", "fixed_amplitude_kernel", "fixed_amplitude_cost_aware_kernel", "fixed_amplitude_ls",
    "fixed_amplitude_cost_aware_ls", "synthetic_dim", "synthetic_cost_aware_dim",
)  # fmt: skip


def flat(level, n=21):
    """A band that is `level` at its middle, half of it below and twice it above, at every point."""
    one = np.full(n, float(level))
    return Band(median=one, q25=one / 2, q75=one * 2, mean=one * 1.5, standard_error=one / 10)


def summary(panel, policy, level=1.0, *, experiment="made_up", seconds=None, quantity="regret", n_seeds=16):
    curves = published(panel)
    grid = curves[policy].grid if policy in curves else np.linspace(0.0, 50.0, 21)
    theirs = published_seconds(panel).get(policy)
    return CurveSummary(
        experiment=experiment,
        panel=panel,
        policy=policy,
        variant="as_published",
        quantity=next((curve.quantity for curve in curves.values()), quantity),
        grid=grid,
        step=flat(level),
        linear=flat(level * 3),
        search="200 d / 10 d",
        seeds=tuple(range(n_seeds)),
        wall_seconds=1.0,
        iterations=theirs.grid if theirs else np.array([]),
        seconds=flat(seconds) if seconds and theirs else None,
        rates=None,
        n_batched=0,
    )


def line(axes, label):
    (found,) = [line for line in axes.get_lines() if line.get_label() == label]
    return found


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


# The list ---------------------------------------------------------------------------------------------------------


def test_every_figure_of_the_paper_has_a_function():
    assert tuple(dict.fromkeys(figure.label for figure in FIGURES)) == LABELS
    assert sum(figure.label == "standard_errors" for figure in FIGURES) == 3
    names = [figure.name for figure in FIGURES]
    assert len(set(names)) == len(names)


def test_without_results_only_what_needs_none_is_drawn(tmp_path, capsys):
    before = dict(rcParams)
    assert main(["boxes", "synthetic", "--results", str(tmp_path), "--out", str(tmp_path / "images")]) == 0
    said = capsys.readouterr()
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["boxes.pdf", "boxes.png"]
    assert said.err == "skipped synthetic: no results yet\n"
    assert dict(rcParams) == before  # nothing global changes
    needs_none = {figure.name for figure in FIGURES if figure.ready(Results())}
    assert needs_none == {"boxes", "hard_for_eipc", "contour", "surfaces", "shapes", "hard_for_ei"}


def test_the_command_draws_from_results_and_refuses_unknown_names(tmp_path, capsys):
    panel = {"problem": "Robot Pushing", "dim": 14, "cost": "known", "optimum": None, "direction": "maximize"}
    Store(tmp_path).append(record((-12.0, -11.0), (1.0, 500.0), n_start=1, budget=600.0, **panel))
    out = tmp_path / "images"
    assert main(["robot_pushing", "--results", str(tmp_path), "--out", str(out)]) == 0
    assert (out / "robot_pushing.png").stat().st_size > 5000
    with pytest.raises(SystemExit):
        main(["mona_lisa", "--results", str(tmp_path), "--out", str(out)])
    assert "no figure mona_lisa" in capsys.readouterr().err


# One panel --------------------------------------------------------------------------------------------------------


def test_a_panel_shows_ours_solid_with_quartiles_and_theirs_dashed():
    panel = SYNTHETIC_PANELS[1][0]
    axes = new_figure(1, 1).subplots()
    drawn = draw_panel(axes, Results([summary(panel, "PBGI", 0.7)]), panel)
    assert drawn == in_order(published(panel))
    ours, theirs = line(axes, "PBGI"), line(axes, "PBGI (published)")
    assert ours.get_ydata().tolist() == [0.7] * 21
    assert ours.get_linestyle() == "-"
    assert theirs.get_ydata().tolist() == published(panel)["PBGI"].median.tolist()
    assert theirs.get_xdata().tolist() == published(panel)["PBGI"].grid.tolist()
    assert theirs.get_linestyle() == "--"
    assert ours.get_color() == theirs.get_color() == LOOKS["PBGI"].color
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.35, 1.4)
    assert axes.get_yscale() == "log"
    assert axes.get_title("left") == "Ackley, d = 16"
    assert [text.get_text() for text in axes.texts] == ["16 seeds"]
    assert axes.get_xlabel() == "cost spent"
    assert axes.get_ylabel() == "median simple regret"


def test_means_come_with_two_standard_errors_and_without_published_medians():
    panel = SYNTHETIC_PANELS[0][0]
    axes = new_figure(1, 1).subplots()
    assert draw_panel(axes, Results([summary(panel, "PBGI", 1.0)]), panel, statistic="mean") == ["PBGI"]
    (ours,) = axes.get_lines()
    assert ours.get_ydata().tolist() == [1.5] * 21
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((1.3, 1.7))


def test_best_values_have_a_linear_axis_and_a_panel_without_runs_says_so():
    panel = EMPIRICAL_PANELS[1][1]
    axes = new_figure(1, 1).subplots()
    draw_panel(axes, Results(), panel)
    assert axes.get_yscale() == "linear"
    assert axes.get_xlabel() == "cost spent (not known beforehand)"
    assert [text.get_text() for text in axes.texts] == ["not run yet"]
    assert len(axes.get_lines()) == len(published(panel))


def test_one_or_two_seeds_are_dotted_and_have_no_band():
    panel = SYNTHETIC_PANELS[1][0]
    axes = new_figure(1, 1).subplots()
    draw_panel(axes, Results([summary(panel, "PBGI", n_seeds=2), summary(panel, "RS", n_seeds=3)]), panel)
    assert line(axes, "PBGI").get_linestyle() == ":"
    assert line(axes, "RS").get_linestyle() == "-"
    assert len(axes.collections) == 1
    assert [text.get_text() for text in axes.texts] == ["2 to 3 seeds"]


def test_rows_say_what_their_panels_have_in_common_and_pushes_what_is_known():
    figure = regret_figure(Results(), SYNTHETIC_PANELS)
    assert [part.get_suptitle() for part in figure.subfigs] == ["Uniform cost", "Varying cost"]
    assert figure.axes[0].get_title("left") == "Ackley, d = 16"
    figure = regret_figure(Results(), ROBOT_PUSHING)
    assert [part.get_suptitle() for part in figure.subfigs] == ["Robot Pushing, varying cost"]
    assert [axes.get_title("left") for axes in figure.axes] == ["d = 14 (known)", "d = 14 (unknown)"]
    assert title_of(EMPIRICAL_PANELS[1][2]) == "Robot Pushing, d = 14 (unknown)"


def test_form_and_variant_choose_what_is_drawn():
    panel = Panel("Sphere", 2, "uniform")
    axes = new_figure(1, 1).subplots()
    draw_panel(axes, Results([summary(panel, "RS", 1.0)], form="linear"), panel)
    assert line(axes, "RS").get_ydata()[0] == 3.0
    assert Results([summary(panel, "RS")], variant="as_described").panel(panel)["RS"].variant == "as_published"


def test_looks_tell_policies_apart():
    for grid in (BAYESIAN_REGRET, SYNTHETIC_PANELS, EMPIRICAL_PANELS):
        for row in grid:
            names = {name for panel in row for name in published(panel)} & set(POLICIES)
            looks = looks_of(names)
            assert len({look.color for look in looks.values()}) == len(names)
            assert len({look.marker for look in looks.values()}) == len(names)
    assert set(LOOKS) == set(POLICIES)
    assert len(set(looks_of(["a", "b", "c"]).values())) == 3


def test_names_state_parameters():
    assert parameters("PBGI-D, lambda_0 = 0.1, beta = 2") == ("PBGI-D", {"lambda_0": 0.1, "beta": 2.0})
    assert parameters("PBGI, lambda = 1e-05") == ("PBGI", {"lambda": 1e-5})
    assert parameters("LogEI") == ("LogEI", {})
    assert symbol("lambda_0", 1e-4) == "λ₀ = $10^{-4}$"
    assert symbol("beta", 2.0) == "β = 2"
    assert title_of(Panel(gp_problem("rbf", 0.5), 8, "uniform")) == "squared exponential, κ = 0.5, d = 8"


# Grids ------------------------------------------------------------------------------------------------------------


def test_a_grid_has_a_panel_per_plot_of_the_paper_and_a_legend_per_row():
    figure = regret_figure(Results(), BAYESIAN_REGRET)
    assert [axes.get_title("left")[-2:].strip() for axes in figure.axes] == ["8", "16", "32"] * 2
    assert [axes.get_ylabel() for axes in figure.axes] == ["median simple regret", "", ""] * 2
    upper, lower = figure.subfigs
    assert legend_texts(upper) == [
        *("RS", "LogEI", "TS", "UCB", "KG", "MES", "MSEI", "PBGI", "PBGI-D"),
        *(" ", "here", "published", "1 or 2 seeds"),
    ]
    assert legend_texts(lower) == [
        *("RS", "LogEIPC", "LogEICC", "MFMES", "BMSEI", "PBGI", "PBGI-D"),
        *(" ", "here", "published", "1 or 2 seeds"),
    ]


def test_main_grids_are_the_published_panels():
    shown = {panel for grid in (BAYESIAN_REGRET, SYNTHETIC_PANELS, EMPIRICAL_PANELS) for row in grid for panel in row}
    in_reference = {curve.panel for curve in published_curves() if curve.quantity in ("regret", "best")}
    shown |= {example_panel("hard_for_eipc"), example_panel("hard_for_ei")}
    shown |= {panel for cost in ("uniform", "varying") for row in dimension_panels(cost) for panel in row}
    assert shown | set(ROBOT_PUSHING[0]) == in_reference


@pytest.mark.parametrize(
    ("grid", "shape"),
    [
        (kernel_panels("uniform"), (3, 4)),
        (length_scale_panels("varying"), (3, 4)),
        (dimension_panels("varying"), (3, 3)),
    ],
)
def test_appendix_grids(grid, shape):
    assert (len(grid), len(grid[0])) == shape
    assert len({panel for row in grid for panel in row}) == shape[0] * shape[1]


def test_rows_and_columns_without_anything_are_left_out():
    grid = kernel_panels("uniform")  # published: Matern-5/2 at d = 8, 16, 32
    assert len(regret_figure(Results(), grid).axes) == 3
    more = Results([summary(grid[0][0], "RS")])  # Matern-3/2, d = 4
    shown = regret_figure(more, grid).axes
    assert [axes.axison for axes in shown] == [True, False, False, False, False, True, True, True]
    assert [axes.texts[0].get_text() for axes in shown] == ["16 seeds", *["not run yet"] * 7]


def test_means_have_no_published_entry_in_the_legend():
    figure = regret_figure(Results([summary(SYNTHETIC_PANELS[0][0], "RS")]), SYNTHETIC_PANELS, statistic="mean")
    assert legend_texts(figure.subfigs[0]) == ["RS", " ", "1 or 2 seeds"]


# Studies, examples, timing ----------------------------------------------------------------------------------------


def test_studies_find_their_curves_by_what_the_names_state():
    panel = SENSITIVITY_PANELS[0]
    names = ["PBGI, lambda = 0.01", "PBGI, lambda = 1e-05", "PBGI", "RS"]
    names += [f"PBGI-D, lambda_0 = {start}, beta = {beta}" for start in ("0.1", "0.0001") for beta in ("2", "10")]
    results = Results([summary(panel, name, level) for level, name in enumerate(names, start=1)])
    (scales,) = cost_scale_studies(results)
    assert list(scales.labels.values()) == ["λ = $10^{-5}$", "λ = $10^{-2}$", "PBGI-D"]
    starts, decays = decay_studies(results)
    assert list(starts.labels.values()) == ["λ₀ = $10^{-4}$", "λ₀ = 0.1"]
    assert list(decays.labels.values()) == ["β = 2", "β = 10"]
    axes = contour_figure(results).axes[-1]
    assert line(axes, "λ = $10^{-5}$").get_ydata()[0] == 2.0
    assert len(axes.get_lines()) == 3 * 2  # dashed: as published
    panel_axes = new_figure(1, 1).subplots()  # the main panel does not show the study
    assert draw_panel(panel_axes, results, panel) == in_order({"PBGI", "RS"} | set(published(panel)) & set(POLICIES))


def test_log_scaling_shows_all_forms_of_improvement():
    panel = Panel(gp_problem(), 16, "uniform")
    names = ("LogEI", "Unst. EI", "Exp(LogEI)", "Log(Unst. EI)", "PBGI")
    (axes,) = log_scaling_figure(Results([summary(panel, name) for name in names])).axes
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert shown == {*names[:-1], "PBGI, stable", "here", "published", "1 or 2 seeds"}


def test_examples_match_the_published_amplitude_and_cost():
    figure = example_figure(Results(), "hard_for_eipc")
    prior, cost, regret, described = figure.axes
    assert (regret.get_title("left"), described.get_title("left")) == ("as published", "as described")
    shapes = [curve for curve in published_curves() if curve.quantity == "shape"]
    for axes, which, published_shape in ((prior, 0, shapes[0]), (prior, 1, shapes[1]), (cost, 0, shapes[2])):
        drawn = axes.get_lines()[which]
        heights = np.interp(published_shape.grid, drawn.get_xdata(), drawn.get_ydata())
        # Read off a drawing: the reference itself is good to a few units in the sixth digit.
        assert heights == pytest.approx(published_shape.median, rel=1e-3, abs=1e-5)
    assert legend_texts(figure)[:2] == ["LogEIPC", "PBGI"]
    assert [drawn.get_label() for drawn in regret.get_lines()] == ["LogEIPC (published)", "PBGI (published)"]


def test_the_other_example_is_about_ei():
    results = Results([summary(example_panel("hard_for_ei"), name) for name in ("LogEI", "PBGI", "RS")])
    prior, _, regret, _ = example_figure(results, "hard_for_ei").axes
    assert prior.get_lines()[0].get_ydata().max() == pytest.approx(1.0)
    assert prior.get_lines()[0].get_ydata().min() == pytest.approx(0.81)
    assert {drawn.get_label() for drawn in regret.get_lines()} == {
        *("LogEI", "LogEI (published)", "PBGI", "PBGI (published)"),
    }


def test_timing_prefers_the_quiet_machine():
    panel = TIMING_PANELS[1]
    shared = summary(panel, "PBGI", experiment="synthetic", seconds=9.0)
    quiet = summary(panel, "PBGI", experiment="timing", seconds=0.25)
    figure = timing_figure(Results([quiet, shared]))
    assert [axes.get_title("left") for axes in figure.axes] == [f"Ackley, d = {d}" for d in (4, 8, 16)]
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["not run yet", "16 seeds", "not run yet"]
    axes = figure.axes[1]
    assert line(axes, "PBGI").get_ydata()[0] == 0.25
    assert line(axes, "KG (published)").get_ydata().tolist() == published_seconds(panel)["KG"].median.tolist()
    low, high = axes.get_ylim()
    assert low < 0.25
    assert high > published_seconds(TIMING_PANELS[2])["MSEI"].median.max()


def test_one_measurement_of_seconds_is_dotted():
    panel = TIMING_PANELS[0]
    one = summary(panel, "KG", experiment="timing", seconds=0.5, n_seeds=1)
    axes = timing_figure(Results([one])).axes[0]
    assert line(axes, "KG").get_linestyle() == ":"
    assert [text.get_text() for text in axes.texts] == ["1 seed"]


# Without runs -----------------------------------------------------------------------------------------------------


def test_contours_are_those_of_ei_and_of_the_index():
    figure = contour_figure(Results())
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["expected improvement", "index, λ = 1", r"index, λ = $10^{-5}$"]
    # EI at mean 2, std 2: 2 h(1); the highest level of the first drawing is the corner.
    h = math.exp(-0.5) / math.sqrt(2 * math.pi) + 0.5 * (1 + math.erf(math.sqrt(0.5)))
    assert figure.axes[0].collections[0].levels[-1] == pytest.approx(2 * h)


def test_shapes_have_their_maxima_where_the_paper_has_them():
    axes = shapes_figure(Results()).axes
    dots = [a.get_lines()[1].get_xdata()[0] for a in axes[1:]]
    assert dots == pytest.approx([0.365, 0.358, 0.86], abs=0.01)  # as the paper states them
    mean, std = posterior().posterior(DESIGN)
    assert axes[0].get_lines()[1].get_ydata() == pytest.approx(mean, abs=1e-4)
    assert std.max() < 1e-2


def test_boxes_show_an_index_per_box_that_solves_its_equation():
    left, right = boxes_figure(Results()).axes
    indices = [drawn.get_ydata()[0] for drawn in left.get_lines() if len(drawn.get_xdata()) == 2]
    assert len(indices) == 5
    z = (0.9 - indices[0]) / 0.25  # the first box: mean 0.9, std 0.25, cost 0.05
    h = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) + z * 0.5 * (1 + math.erf(z / math.sqrt(2)))
    assert 0.25 * h == pytest.approx(0.05, rel=1e-9)
    assert len(right.get_lines()) == 4


def test_surfaces_are_drawn_with_their_cost():
    axes = surfaces_figure(Results()).axes
    assert [a.get_title() for a in axes[::2]] == ["Ackley", "Levy", "Rosenbrock: log10(100 + value)"]
    for below, least in zip(axes[1::2], (0.0, 1.0, 1.0), strict=True):
        assert line(below, "least").get_xdata().tolist() == [least]
        assert [text.get_text() for text in below.texts] == [f"cost {cost}" for cost in (3, 6, 9, 12, 15, 18)]


def test_pictures_keep_the_colors_that_tell_policies_apart(tmp_path):
    figure = regret_figure(Results(), SYNTHETIC_PANELS)
    write_png(figure, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size < 120_000
    with Image.open(tmp_path / "picture.png") as picture:
        pixels = np.asarray(picture.convert("RGB"), dtype=np.int64).reshape(-1, 3)
    for look in set(LOOKS.values()):
        wanted = np.round(255 * np.array(to_rgb(look.color)))
        assert np.abs(pixels - wanted).max(axis=1).min() <= 12, look
