"""The published numbers, and the words for panels."""

import pytest

from paper.reference import (
    Panel,
    best_published,
    gp_problem,
    grid_for,
    parameters,
    policy_named,
    published,
    published_curves,
    published_panels,
    published_rates,
    published_seconds,
)
from pbgi.errors import InvalidInputError

ACKLEY = Panel("Ackley", 16, "varying")


def test_the_reference_holds_what_the_paper_shows():
    assert len(published_curves()) == 158 + 130 - 3  # PBGI-D, LogEI and PBGI of two studies are main curves
    assert len(published_panels()) == 19 + 12 + 2  # main panels, synthetic ones, known cost and the other example
    assert sum(len(published(panel)) for panel in published_panels()) == 140 + 130 - 3 - 3 - 6  # less shapes and rates
    assert published(ACKLEY)["PBGI"].median[-1] == 0.889875  # Figure 5
    assert published_seconds(Panel("Ackley", 4, "uniform"))["LogEI"].median[0] == 3.29617


def test_the_best_published_curve_of_each_panel():
    """Read off the figures: 18 main panels, synthetic problems of 4 and 8 dimensions, pushes at known cost."""
    best = best_published()
    assert len(best) == 18 + 3 * 2 * 2 + 1
    assert (best[ACKLEY].policy, best[ACKLEY].median[-1]) == ("PBGI", 0.889875)
    higher_is_better = best[Panel("Robot Pushing", 14, "unknown")]
    assert (higher_is_better.policy, higher_is_better.median[-1]) == ("LogEIPC", -10.45)
    appendix = best[Panel("Rosenbrock", 4, "uniform")]
    assert (appendix.policy, appendix.median[-1], appendix.grid[-1]) == ("MSEI", 143.3, 40.0)


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


def test_policies_have_one_spelling():
    names = {"PBGI lambda=1e-2": "PBGI, lambda = 0.01", "LogEI (cost-unaware)": "LogEI", "Unst. EI": "Unst. EI"}
    names["PBGI-D lambda0=1e-1 beta=100"] = "PBGI-D, lambda_0 = 0.1, beta = 100"
    assert {name: policy_named(name) for name in names} == names
    assert all("=" not in name or parameters(name)[1] for panel in published_panels() for name in published(panel))


def test_rates_are_no_regrets():
    rates = published_rates(Panel(gp_problem(), 8, "uniform"))
    assert len(rates) == 6
    assert rates["PBGI-D, lambda_0 = 0.1, beta = 2"].median[0] == pytest.approx(0.1, rel=1e-5)
