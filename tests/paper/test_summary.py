"""Summaries of curves, on records whose medians can be computed by hand."""

import pytest
from toy_runs import record

from paper.reference import Panel
from paper.results import TIMING
from paper.summary import best_of_panel, summarize
from pbgi.errors import InvalidInputError


def test_summary_of_three_seeds_by_hand():
    runs = [record((5.0, 3.0, 4.0, last), seed=seed) for seed, last in enumerate((1.0, 2.0, 0.5))]
    (curve,) = summarize(runs)
    assert curve.grid.tolist() == [2.0 * k for k in range(21)]
    assert curve.step.median.tolist() == [3.0] * 20 + [1.0]
    assert (curve.step.q25[-1], curve.step.q75[-1]) == (0.75, 1.5)
    assert curve.linear.median[15] == pytest.approx(3.0 - 2.0 * 20 / 30)  # at 30 of 40, from 3 at 10 to 1 at 40
    assert curve.seeds == (0, 1, 2)
    assert curve.wall_seconds == 9.0
    assert curve.quantity == "regret"
    assert curve.seconds is None


def test_what_is_plotted_follows_the_reference():
    panel = {"problem": "Pest Control", "dim": 25, "cost": "known"}
    (curve,) = summarize([record((17.0, 16.5, 16.0, 15.0), (1.0, 1.0, 400.0, 400.0), optimum=0.0, **panel)])
    assert curve.quantity == "best"
    assert curve.panel == Panel("Pest Control", 25, "varying")
    assert (curve.step.median[0], curve.step.median[-1]) == (-16.5, -15.0)


def test_timing_is_kept_where_the_paper_has_it():
    changes = {"problem": "Ackley", "dim": 4, "cost": "uniform", "budget": 2.0, "policy": "LogEI"}
    assert summarize([record(costs=(1.0,) * 4, **changes)])[0].seconds is None  # of another experiment
    changes |= {"experiment": TIMING}
    (curve,) = summarize([record(costs=(1.0,) * 4, **changes)])
    assert curve.iterations[-1] == 39.0
    assert curve.seconds.median[0] == 0.5
    assert summarize([record(costs=(1.0,) * 4, **changes | {"policy": "UCB"})])[0].seconds is None


def test_an_unknown_variant_is_refused():
    with pytest.raises(InvalidInputError, match="variant must be one of as_published"):
        summarize([record(variant="imagined")])


def test_of_two_records_of_a_seed_the_later_one_counts():
    (curve,) = summarize([record(), record((5.0, 3.0, 4.0, 2.0))])
    assert (curve.n_seeds, curve.step.median[-1]) == (1, 2.0)


def test_summaries_are_sorted():
    curves = summarize([record(policy=policy, experiment=name) for name in "ba" for policy in ("RS", "PBGI")])
    assert [(curve.experiment, curve.policy) for curve in curves] == [(n, p) for n in "ab" for p in ("PBGI", "RS")]


def test_variants_stand_side_by_side():
    both = summarize([record(), record((5.0, 3.0, 4.0, 2.0), variant="as_described")])
    panel = both[0].panel
    assert best_of_panel(both, panel)["PBGI"].step.median[-1] == 1.0
    assert best_of_panel(both, panel, "as_described")["PBGI"].step.median[-1] == 2.0
    described = [curve for curve in both if curve.variant == "as_described"]
    assert best_of_panel(described, panel) == {}  # never shown as if it were as published
    published_only = [curve for curve in both if curve.variant == "as_published"]
    assert list(best_of_panel(published_only, panel, "as_described")) == ["PBGI"]
