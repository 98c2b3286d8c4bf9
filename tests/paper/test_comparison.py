"""Our curves beside the published ones."""

import pytest
from toy_runs import on_ackley, record

from paper.comparison import Comparison, compare, default_beside_best, standings, winners
from paper.reference import DEFAULT, Panel, published
from paper.summary import summarize

ACKLEY = Panel("Ackley", 16, "varying")


def test_a_curve_beside_the_published_one():
    (curve,) = summarize(on_ackley("PBGI", (0.4, 0.5, 0.6)))
    pair = Comparison(curve, published(ACKLEY)["PBGI"])
    assert pair.ratio == pytest.approx(0.5 / 0.889875)
    assert pair.inside  # published quartiles: 0.349 and 1.09
    assert pair.off  # by more than 1.5
    assert pair.better


def test_best_values_are_compared_by_progress():
    panel = Panel("Lunar Lander", 12, "uniform")
    theirs = published(panel)["PBGI"]
    half = 0.5 * (theirs.median[0] + theirs.median[-1])
    changes = {"problem": "Lunar Lander", "dim": 12, "cost": "uniform", "direction": "maximize", "optimum": None}
    (curve,) = summarize([record((-50.0, half), (1.0, 1.0), n_start=1, budget=200.0, **changes)])
    pair = Comparison(curve, theirs)
    assert pair.ratio == pytest.approx(0.5)
    assert not pair.better
    assert not pair.inside


@pytest.mark.parametrize(("final", "no_worse"), [(0.88, True), (0.889875, True), (0.89, False)])
def test_the_default_beside_the_best_published_regret(final, no_worse):
    (pair,) = default_beside_best(summarize(on_ackley(DEFAULT, (final,)) + on_ackley("LogEIPC", (0.1,))))
    assert (pair.ours.policy, pair.theirs.policy, pair.no_worse) == (DEFAULT, "PBGI", no_worse)


@pytest.mark.parametrize(("best", "no_worse"), [(280.0, True), (279.0, False)])
def test_the_default_beside_the_best_published_value(best, no_worse):
    """The paper's best here is 279.076, and larger is better."""
    changes = {"problem": "Lunar Lander", "dim": 12, "cost": "uniform", "direction": "maximize", "optimum": None}
    runs = [record((-50.0, best), (1.0, 1.0), n_start=1, budget=200.0, policy=DEFAULT, **changes)]
    (pair,) = default_beside_best(summarize(runs))
    assert (pair.theirs.policy, pair.no_worse) == ("PBGI-D", no_worse)


def test_winners_are_named_among_the_policies_that_both_have():
    curves = summarize(on_ackley("PBGI", (1.2,) * 3) + on_ackley("LogEIPC", (0.7,) * 3) + on_ackley("RS", (0.1, 0.1)))
    (winner,) = winners(compare(curves))
    assert (winner.panel, winner.theirs, winner.ours, winner.n_policies) == (ACKLEY, "PBGI", "LogEIPC", 2)


def test_mean_ranks_by_hand():
    """On this panel the paper has LogEIPC before PBGI-D before RS; here PBGI-D and LogEIPC are equal, before RS."""
    finals = {"LogEIPC": 0.5, "PBGI-D": 0.5, "RS": 3.0}
    curves = [curve for policy, final in finals.items() for curve in summarize(on_ackley(policy, (final,) * 3))]
    medians = {policy: published(ACKLEY)[policy].median[-1] for policy in finals}
    theirs = {policy: 1.0 + sum(other < median for other in medians.values()) for policy, median in medians.items()}
    found = {standing.policy: standing for standing in standings(compare(curves), cost_is_uniform=False)}
    assert {policy: standing.ours for policy, standing in found.items()} == {"LogEIPC": 1.5, "PBGI-D": 1.5, "RS": 3.0}
    assert {policy: standing.theirs for policy, standing in found.items()} == theirs
    assert {standing.n_panels for standing in found.values()} == {1}
    assert standings(compare(curves), cost_is_uniform=True) == []
