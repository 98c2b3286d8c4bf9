"""Curves, summaries and tables, on records whose medians can be computed by hand."""

import json
import math

import numpy as np
import pytest

from paper.comparison import Comparison, compare, default_beside_best, standings, winners
from paper.condensed import condensed, keep
from paper.curves import band, best_known, best_on_grid, best_so_far, plotted, seconds_on_grid
from paper.page import NOT_EXPLAINED, duration, markdown_table, number, page, read_explanations
from paper.reference import (
    DEFAULT,
    NEAR_BEST,
    Panel,
    best_published,
    gp_problem,
    grid_for,
    published,
    published_curves,
    published_panels,
    published_seconds,
)
from paper.store import Store
from paper.summary import main, summarise
from paper.summary_file import best_of_panel, merge, read_summaries, write_summaries
from pbgi.errors import InvalidInputError

ACKLEY = Panel("Ackley", 16, "varying")


def record(values=(5.0, 3.0, 4.0, 1.0), costs=(7.0, 9.0, 10.0, 30.0), **changes):
    """A run whose start are the first two points: best 3 at 0, 3 until 40 is spent, then 1 (minimised)."""
    plain = {
        "key": "k",
        "spec": {},
        "experiment": "made_up",
        "panel": "Sphere d=2 varying",
        "problem": "Sphere",
        "dim": 2,
        "cost": "varying",
        "policy": "PBGI",
        "variant": "as_published",
        "seed": 0,
        "budget": 40.0,
        "n_start": 2,
        "values": list(values),
        "costs": list(costs),
        "optimum": 0.0,
        "unit": 1.0,
        "direction": "minimize",
        "suggest_seconds": [0.5, 1.5],
        "evaluate_seconds": 0.1,
        "wall_seconds": 3.0,
        "versions": {},
        "finished": "2026-01-01T00:00:00+00:00",
    }
    return plain | {"key": repr(sorted(changes.items()))} | changes


def on_ackley(policy, finals, experiment="synthetic", **changes):
    """Runs on a published panel that fall from 3.2 to each final regret in one evaluation at half the budget."""
    return [
        record(
            (-3.2, -3.2, -final, -3.0),
            (1.0, 1.0, 200.0, 200.0),
            **{
                "experiment": experiment,
                "problem": "Ackley",
                "dim": 16,
                "policy": policy,
                "seed": seed,
                "budget": 400.0,
            }
            | {"direction": "maximize"}
            | changes,
        )
        for seed, final in enumerate(finals)
    ]


# The reference ----------------------------------------------------------------------------------------------------


def test_the_reference_holds_what_the_paper_shows():
    assert len(published_curves()) == 158
    assert len(published_panels()) == 19  # 18 main panels and a 1-D example
    assert published(ACKLEY)["PBGI"].median[-1] == 0.889875  # Figure 5
    assert published_seconds(Panel("Ackley", 4, "uniform"))["LogEI"].median[0] == 3.29617


def test_the_best_published_curve_of_each_panel():
    """Read off the figures: 18 main panels, and the synthetic problems of 4 and 8 dimensions of the appendix."""
    best = best_published()
    assert len(best) == 18 + 3 * 2 * 2
    assert (best[ACKLEY].policy, best[ACKLEY].median[-1]) == ("PBGI", 0.889875)
    higher_is_better = best[Panel("Robot Pushing", 14, "unknown")]
    assert (higher_is_better.policy, higher_is_better.median[-1]) == ("LogEIPC", -10.45)
    appendix = best[Panel("Rosenbrock", 4, "uniform")]
    assert (appendix.policy, appendix.median[-1], appendix.grid[-1]) == ("MSEI", 143.3, 40.0)
    assert Panel("Ackley", 4, "uniform") not in published_panels()  # in no other table


def test_panels_have_one_spelling():
    assert Panel.of("Lunar Lander (unknown cost)", 12, "varying") == Panel.of("Lunar Lander", 12, "unknown")
    assert Panel.of("Robot Pushing", 14, "known") == Panel("Robot Pushing", 14, "varying")
    assert Panel.of("GP sample (rbf, length scale 0.5)", 8, "uniform").problem == gp_problem("squared exponential", 0.5)
    assert Panel.of("GP sample (Matern-5/2, ls=0.1)", 8, "uniform") in published_panels()
    assert ACKLEY.name == "Ackley d=16 varying"
    with pytest.raises(InvalidInputError, match="cost must be one of uniform"):
        Panel.of("Ackley", 4, "free")


def test_grids_are_the_published_ones_where_there_are_any():
    assert grid_for(Panel("Pest Control", 25, "uniform"), "LogEI", 100.0)[-1] == 99.0
    assert grid_for(Panel("Pest Control", 25, "uniform"), "new", 100.0)[-1] == 100.0
    assert grid_for(Panel("Sphere", 2, "varying"), "PBGI", 40.0).tolist() == [2.0 * k for k in range(21)]
    assert grid_for(ACKLEY, "PBGI", 5855.0)[-1] == 5855.0  # another budget than the published one


# Curves -----------------------------------------------------------------------------------------------------------


def test_the_start_is_not_charged():
    spent, best = best_so_far(record())
    assert spent.tolist() == [0.0, 10.0, 40.0]
    assert best.tolist() == [-3.0, -3.0, -1.0]  # minimised: the sign is changed


def test_steps_and_straight_lines():
    grid = [0.0, 10.0, 25.0, 39.9, 40.0, 50.0]
    assert best_on_grid(record(), grid).tolist() == [-3.0, -3.0, -3.0, -3.0, -1.0, -1.0]
    assert best_on_grid(record(), grid, "linear") == pytest.approx([-3.0, -3.0, -2.0, -3.0 + 2 * 29.9 / 30, -1.0, -1.0])


def test_an_evaluation_paid_to_the_last_digit_counts():
    tenths = record([3.0] + [2.0] * 9 + [1.0], [1.0] + [0.1] * 10, n_start=1)
    assert sum([0.1] * 10) < 1.0  # rounding
    assert best_on_grid(tenths, [1.0]).tolist() == [-1.0]


def test_regret_and_best_value_are_in_plotted_units():
    assert plotted(record(unit=100.0), [0.0, 40.0], "regret").tolist() == [300.0, 100.0]
    assert plotted(record(unit=100.0, optimum=0.5), [40.0], "regret").tolist() == [50.0]
    assert plotted(record(optimum=None), [0.0, 40.0], "best").tolist() == [-3.0, -1.0]  # as Pest Control is plotted
    upwards = record(direction="maximize", optimum=6.0)
    assert plotted(upwards, [0.0, 40.0], "regret").tolist() == [1.0, 1.0]
    with pytest.raises(InvalidInputError, match="regret needs an optimum"):
        plotted(record(optimum=None), [0.0], "regret")


def test_a_failed_evaluation_costs_and_changes_nothing():
    spent, best = best_so_far(record((5.0, 3.0, None, 1.0)))
    assert spent.tolist() == [0.0, 10.0, 40.0]
    assert best.tolist() == [-3.0, -3.0, -1.0]


def test_records_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="one cost per value"):
        best_so_far(record(costs=(1.0,)))
    with pytest.raises(InvalidInputError, match="direction must be one of maximize, minimize"):
        best_so_far(record(direction="down"))


def test_the_optimum_is_never_below_the_best_value_seen():
    draws = [
        record(direction="maximize", optimum=4.5),
        record((1.0, 2.0, 3.0, 4.75), direction="maximize", optimum=4.5),
    ]
    assert best_known(draws) == 5.0
    assert best_known([record(optimum=None)]) is None
    regrets = summarise([draws[0], draws[1] | {"policy": "RS"}])
    assert {curve.policy: curve.step.median[-1] for curve in regrets} == {"PBGI": 0.0, "RS": 0.25}


def test_statistics_by_hand():
    of = band([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0], [9.0, 0.0]])
    assert of.median.tolist() == [3.0, 0.0]
    assert of.q25.tolist() == [1.75, 0.0]  # linear: at position 0.75 between 1 and 2
    assert of.q75.tolist() == [5.25, 0.0]
    assert of.mean.tolist() == [4.0, 0.0]
    variance = (9 + 4 + 0 + 25) / 3
    assert of.standard_error == pytest.approx([math.sqrt(variance / 4), 0.0])
    assert band([[2.0]]).standard_error.tolist() == [0.0]


def test_seconds_per_suggestion():
    assert seconds_on_grid(record(), [0.0, 0.5, 1.0]).tolist() == [0.5, 1.0, 1.5]


# Summaries --------------------------------------------------------------------------------------------------------


def test_summary_of_three_seeds_by_hand():
    runs = [record((5.0, 3.0, 4.0, last), seed=seed) for seed, last in enumerate((1.0, 2.0, 0.5))]
    (curve,) = summarise(runs)
    assert curve.grid.tolist() == [2.0 * k for k in range(21)]
    assert curve.step.median.tolist() == [3.0] * 20 + [1.0]
    assert (curve.step.q25[-1], curve.step.q75[-1]) == (0.75, 1.5)
    assert curve.linear.median[15] == pytest.approx(3.0 - 2.0 * 20 / 30)  # at 30 of 40, from 3 at 10 to 1 at 40
    assert curve.seeds == (0, 1, 2)
    assert curve.wall_seconds == 9.0
    assert curve.suggest_seconds == 1.0
    assert curve.quantity == "regret"
    assert curve.seconds is None


def test_what_is_plotted_follows_the_reference():
    panel = {"problem": "Pest Control", "dim": 25, "cost": "known"}
    (curve,) = summarise([record((17.0, 16.5, 16.0, 15.0), (1.0, 1.0, 400.0, 400.0), optimum=0.0, **panel)])
    assert curve.quantity == "best"
    assert curve.panel == Panel("Pest Control", 25, "varying")
    assert (curve.step.median[0], curve.step.median[-1]) == (-16.5, -15.0)


def test_timing_is_kept_where_the_paper_has_it():
    changes = {"problem": "Ackley", "dim": 4, "cost": "uniform", "budget": 2.0, "policy": "LogEI"}
    (curve,) = summarise([record(costs=(1.0,) * 4, **changes)])
    assert curve.iterations[-1] == 39.0
    assert curve.seconds.median[0] == 0.5
    assert summarise([record(costs=(1.0,) * 4, **changes | {"policy": "UCB"})])[0].seconds is None


def test_an_unknown_variant_is_refused():
    with pytest.raises(InvalidInputError, match="variant must be one of as_published"):
        summarise([record(variant="imagined")])


def test_more_seeds_replace_fewer_and_never_the_other_way(tmp_path):
    three = [record((5.0, 3.0, 4.0, 1.0), seed=seed) for seed in range(3)]
    two = [record((5.0, 3.0, 4.0, 2.0), seed=seed) for seed in range(2)]
    assert [c.step.median[-1] for c in merge(summarise(two), summarise(three))] == [1.0]
    assert [c.step.median[-1] for c in merge(summarise(three), summarise(two))] == [1.0]
    again = [run | {"values": [5.0, 3.0, 4.0, 0.25]} for run in three]
    assert [c.step.median[-1] for c in merge(summarise(three), summarise(again))] == [0.25]
    write_summaries(summarise(three), tmp_path)
    write_summaries(summarise([*two, record(policy="RS")]), tmp_path)
    kept = {curve.policy: curve.n_seeds for curve in read_summaries(tmp_path)}
    assert kept == {"PBGI": 3, "RS": 1}


def test_files_are_sorted_rounded_and_come_back(tmp_path):
    runs = [record((5.0, 3.0, 4.0, 1.0 / 3.0), suggest_seconds=[])]
    (path,) = write_summaries(summarise(runs), tmp_path)
    text = path.read_text()
    assert "0.333333]" in text
    assert "0.3333333" not in text
    data = json.loads(text)["curves"]["Sphere d=2 varying | PBGI | as_published"]
    assert list(data) == sorted(data)
    assert data["n_seeds"] == 1
    (curve,) = read_summaries(tmp_path)
    assert curve.step.median[-1] == 0.333333
    assert curve.panel == Panel("Sphere", 2, "varying")
    assert math.isnan(curve.suggest_seconds)
    write_summaries(read_summaries(tmp_path), tmp_path)
    assert path.read_text() == text


def test_variants_stand_side_by_side():
    both = summarise([record(), record((5.0, 3.0, 4.0, 2.0), variant="as_described")])
    panel = both[0].panel
    assert best_of_panel(both, panel)["PBGI"].step.median[-1] == 1.0
    assert best_of_panel(both, panel, "as_described")["PBGI"].step.median[-1] == 2.0
    described = [curve for curve in both if curve.variant == "as_described"]
    assert best_of_panel(described, panel) == {}  # never shown as if it were as published
    published_only = [curve for curve in both if curve.variant == "as_published"]
    assert list(best_of_panel(published_only, panel, "as_described")) == ["PBGI"]


# Comparison -------------------------------------------------------------------------------------------------------


def test_a_curve_beside_the_published_one():
    (curve,) = summarise(on_ackley("PBGI", (0.4, 0.5, 0.6)))
    pair = Comparison(curve, published(ACKLEY)["PBGI"])
    assert pair.ratio == pytest.approx(0.5 / 0.889875)
    assert pair.inside  # published quartiles: 0.349 and 1.09
    assert pair.off  # by more than 1.5
    assert pair.better
    after = np.array([3.2 - 2.7 * min(k / 10, 1.0) for k in range(21)])
    theirs = published(ACKLEY)["PBGI"]
    assert pair.share_inside == np.mean(((theirs.q25 <= after) & (after <= theirs.q75))[1:])


def test_best_values_are_compared_by_progress():
    panel = Panel("Lunar Lander", 12, "uniform")
    theirs = published(panel)["PBGI"]
    half = 0.5 * (theirs.median[0] + theirs.median[-1])
    changes = {"problem": "Lunar Lander", "dim": 12, "cost": "uniform", "direction": "maximize", "optimum": None}
    (curve,) = summarise([record((-50.0, half), (1.0, 1.0), n_start=1, budget=200.0, **changes)])
    pair = Comparison(curve, theirs)
    assert pair.ratio == pytest.approx(0.5)
    assert not pair.better
    assert not pair.inside


@pytest.mark.parametrize(("final", "no_worse"), [(0.88, True), (0.889875, True), (0.89, False)])
def test_the_default_beside_the_best_published_regret(final, no_worse):
    (pair,) = default_beside_best(summarise(on_ackley(DEFAULT, (final,)) + on_ackley("LogEIPC", (0.1,))))
    assert (pair.ours.policy, pair.theirs.policy, pair.no_worse) == (DEFAULT, "PBGI", no_worse)


@pytest.mark.parametrize(("best", "no_worse"), [(280.0, True), (279.0, False)])
def test_the_default_beside_the_best_published_value(best, no_worse):
    """The paper's best here is 279.076, and larger is better."""
    changes = {"problem": "Lunar Lander", "dim": 12, "cost": "uniform", "direction": "maximize", "optimum": None}
    runs = [record((-50.0, best), (1.0, 1.0), n_start=1, budget=200.0, policy=DEFAULT, **changes)]
    (pair,) = default_beside_best(summarise(runs))
    assert (pair.theirs.policy, pair.no_worse) == ("PBGI-D", no_worse)


def test_winners_are_named_among_the_policies_that_both_have():
    curves = summarise(on_ackley("PBGI", (1.2,)) + on_ackley("LogEIPC", (0.7,)) + on_ackley("made_up", (0.1,)))
    (winner,) = winners(compare(curves))
    assert (winner.panel, winner.theirs, winner.ours, winner.n_policies) == (ACKLEY, "PBGI", "LogEIPC", 2)


# The page ---------------------------------------------------------------------------------------------------------


def test_mean_ranks_by_hand():
    """On this panel the paper has LogEIPC before PBGI-D before RS; here PBGI-D and LogEIPC are equal, before RS."""
    finals = {"LogEIPC": 0.5, "PBGI-D": 0.5, "RS": 3.0}
    curves = [curve for policy, final in finals.items() for curve in summarise(on_ackley(policy, (final,)))]
    medians = {policy: published(ACKLEY)[policy].median[-1] for policy in finals}
    theirs = {policy: 1.0 + sum(other < median for other in medians.values()) for policy, median in medians.items()}
    found = {standing.policy: standing for standing in standings(compare(curves), cost_is_uniform=False)}
    assert {policy: standing.ours for policy, standing in found.items()} == {"LogEIPC": 1.5, "PBGI-D": 1.5, "RS": 3.0}
    assert {policy: standing.theirs for policy, standing in found.items()} == theirs
    assert {standing.n_panels for standing in found.values()} == {1}
    assert standings(compare(curves), cost_is_uniform=True) == []


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (0.0339, "0.0339"),
        (-11.82, "-11.8"),
        (505537.0, "506,000"),
        (3e-6, "3.00e-06"),
        (1.0, "1"),
        (20.0, "20"),
    ],
)
def test_numbers_can_be_read(x, text):
    assert number(x) == text


def test_durations_and_tables():
    assert [duration(seconds) for seconds in (1.5, 90.0, 300.0, 3 * 3600.0)] == ["1.5 s", "90 s", "5.0 min", "3.0 h"]
    assert markdown_table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"


def test_the_page_says_what_was_found(tmp_path):
    curves = summarise(
        on_ackley("PBGI", (0.4, 0.5, 0.6))
        + on_ackley("PBGI", (0.9,), variant="as_described")
        + on_ackley("LogEIPC", (0.97,))
        + [record(policy="PBGI, lambda = 0.1"), record(policy="RS")]
    )
    text = page(curves, variant="as_published", explanations={}, lessons="", images=tmp_path / "images" / "paper")
    assert "2 of 140 published curves have been run here, over 1 to 3 seeds" in text
    assert "2 of 2 medians (100%) lie inside" in text
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.5 [0.45, 0.55] | 0.5 | 0.56 | yes | published | 3 |" in text
    assert "| PBGI (as described) | 0.89 [0.349, 1.09] | 0.9 [0.9, 0.9] | 0.9 | 1.01 | yes | published | 1 |" in text
    assert "| BMSEI | 1.05 [0.708, 2.01] | - | - | - | - | - | - |" in text
    assert "| Ackley d=16 varying | PBGI | PBGI | yes | 2 |" in text
    assert f"| Ackley d=16 varying | PBGI | 0.56 | inside the quartiles | {NOT_EXPLAINED} |" in text
    assert "| Sphere d=2 varying | PBGI, lambda = 0.1 | 1 [1, 1] | 1 |" in text
    assert "| Sphere d=2 varying | 1 | 1 |" in text
    assert "## Figures" not in text
    (tmp_path / "images" / "paper").mkdir(parents=True)
    (tmp_path / "images" / "paper" / "timing.png").touch()
    pictured = page(curves, variant="as_published", explanations={}, lessons="", images=tmp_path / "images" / "paper")
    assert pictured.count("![") == pictured.count("(images/paper/timing.png)") == 1
    why = {"Ackley d=16 varying": {"PBGI": "a better\nsearch"}}
    explained = page(curves, variant="as_published", explanations=why, lessons="## Lessons", images=tmp_path)
    assert "| a better search |" in explained
    assert "\n## Lessons\n" in explained


def test_a_page_without_results_says_so(tmp_path):
    text = page([], variant="as_published", explanations={}, lessons="", images=tmp_path)
    assert "No results yet: 0 of 140 published curves" in text


def test_explanations_are_read(tmp_path):
    file = tmp_path / "explanations.toml"
    assert read_explanations(file) == {}
    file.write_text('["Levy d=16 varying"]\nPBGI-D = "why"\n')
    assert read_explanations(file) == {"Levy d=16 varying": {"PBGI-D": "why"}}


def test_the_command_summarises_and_a_checkout_without_raw_results_redoes_the_page(tmp_path, capsys):
    results, docs = tmp_path / "results", tmp_path / "docs"
    raw = results / "raw"
    raw.mkdir(parents=True)
    lines = [json.dumps(run) for run in on_ackley("PBGI", (0.4, 0.5, 0.6))]
    (raw / "synthetic.jsonl").write_text("\n".join(lines) + '\n{"key": "torn')
    arguments = ["--results", str(results), "--docs", str(docs)]
    assert main(arguments) == 0
    first = (docs / "paper.md").read_text()
    assert "0.5 [0.45, 0.55]" in first
    (raw / "synthetic.jsonl").unlink()
    assert main(arguments) == 0
    assert (docs / "paper.md").read_text() == first
    assert "wrote" in capsys.readouterr().out


# Results that are kept --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_condensed_run_is_plotted_as_the_run(direction):
    rng = np.random.default_rng(0)
    for n_start, n in ((1, 1), (1, 2), (3, 60), (5, 5)):
        whole = record(rng.normal(size=n), rng.uniform(0.1, 5.0, n), n_start=n_start, direction=direction)
        short = condensed(whole)
        grid = np.linspace(0.0, 150.0, 301)
        for form in ("step", "linear"):
            expected = plotted(whole, grid, "regret", form)
            np.testing.assert_allclose(plotted(short, grid, "regret", form), expected, rtol=1e-5, atol=1e-5)
        assert len(short["values"]) <= max(2, n - n_start + 1)
        assert condensed(short) == short


def test_kept_runs_come_back_and_are_not_run_again(tmp_path):
    runs = on_ackley("PBGI", (0.4, 0.5, 0.6))
    (path,) = keep(runs, tmp_path / "runs")
    assert path.read_text().count("\n") == 3
    kept = Store(tmp_path / "raw", tmp_path / "runs").load()
    assert [run["key"] for run in kept] == [run["key"] for run in runs]
    np.testing.assert_allclose(summarise(kept)[0].linear.median, summarise(runs)[0].linear.median, rtol=1e-6)
    Store(tmp_path / "raw").append(runs[0])  # also as a raw result: it counts once
    assert len(Store(tmp_path / "raw", tmp_path / "runs").load()) == 3


def test_the_page_has_the_published_search_beside_the_other(tmp_path):
    """PBGI's published quartiles are 0.349 and 1.09: inside with one search, outside with the other."""
    published, other = on_ackley("PBGI", (0.8, 0.8, 0.9, 0.9)), on_ackley(f"PBGI{NEAR_BEST}", (1.5, 1.6, 1.6, 1.6, 1.7))
    curves = summarise(published + other + on_ackley("LogEIPC", (0.97,)))
    text = page(curves, variant="as_published", explanations={}, lessons="", images=tmp_path)
    assert "2 of 2 medians (100%) lie inside the published" in text.replace("\n", " ")
    assert "with a search around the best points, 1 (50%)" in text
    assert "| PBGI | 0.89 [0.349, 1.09] | 0.85 [0.8, 0.9] | 0.85 | 0.96 | yes | published | 4 |" in text
    row = "PBGI | 0.85 [0.8, 0.9] | 1.6 [1.6, 1.6] | yes | no | published | 4, 5 |"
    assert f"| Ackley d=16 varying | {row}" in text
    assert "On 1 of 1 curves the search from Sobol points alone ends better" in text
    assert "## Studies of settings" not in text


def test_the_page_has_the_default_beside_the_best_published_curve(tmp_path):
    eight = on_ackley(DEFAULT, (0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7))
    small = {"problem": "Ackley", "dim": 4, "cost": "uniform", "policy": DEFAULT, "budget": 40.0}
    text = page(
        summarise([*eight, record(**small)]), variant="as_published", explanations={}, lessons="", images=tmp_path
    )
    assert "| Ackley d=16 varying | 0.6 [0.6, 0.6] | 0.89 | PBGI | yes | 8 |" in text
    assert "| Ackley d=4 uniform | 1 [1, 1] | 0.0161 | PBGI | no | 1 |" in text
    assert "On 1 of 2 panels the default is no worse" in text
    assert "on 1 of the 1 panels that have 8 seeds or more" in text
    assert "0 of 140 published curves" in text  # it is none of them
    assert "## Studies of settings" not in text
