"""Curves of one run and bands of many, on records whose medians can be computed by hand."""

import math

import pytest
from toy_runs import record

from paper.curves import band, best_known, best_on_grid, best_so_far, plotted, seconds_on_grid
from paper.summary import summarize
from pbgi.errors import InvalidInputError


def test_the_start_is_not_charged():
    spent, best = best_so_far(record())
    assert spent.tolist() == [0.0, 10.0, 40.0]
    assert best.tolist() == [-3.0, -3.0, -1.0]  # minimized: the sign is changed


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
    regrets = summarize([draws[0], draws[1] | {"policy": "RS"}])
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
