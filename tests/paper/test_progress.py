"""How long runs take, and which one comes next."""

import time

import pytest
from toy_runs import toy

from paper.progress import Durations, in_order, in_words


def taken(curve: str, seconds: float) -> dict:
    labels = {"problem": "Ackley", "dim": 2, "cost": "varying", "policy": curve, "variant": "as_published"}
    labels["search"] = "none"
    return labels | {"wall_seconds": seconds}


def test_unknown_curves_first_then_the_longest():
    runs = [toy(curve=curve, seed=seed) for curve in ("short", "new", "long") for seed in (0, 1)]
    durations = Durations([taken("short", 1.0), taken("short", 3.0), taken("long", 50.0)])
    order = [(run.curve, run.specification.seed) for run in in_order(runs, durations)]
    # Of the unknown curve one run is a probe; the other one is expected to take the median of all curves, 26 s.
    assert order == [("new", 0), ("long", 0), ("long", 1), ("new", 1), ("short", 0), ("short", 1)]


def test_every_unknown_curve_is_probed_if_nothing_is_known():
    runs = [toy(curve=curve, seed=seed) for curve in ("a", "b") for seed in (0, 1)]
    order = [(run.curve, run.specification.seed) for run in in_order(runs, Durations())]
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


def test_runs_that_would_not_end_in_time_are_not_taken():
    runs = [toy(curve="long"), toy(curve="short"), toy(curve="new")]
    durations = Durations([taken("long", 5000.0), taken("short", 2.0)])
    in_time = in_order(runs, durations, deadline=time.monotonic() + 1000.0)
    assert [run.curve for run in in_time] == ["new", "short"]


def test_what_is_learned_while_runs_are_taken_counts():
    durations = Durations()
    in_time = in_order([toy(seed=0), toy(seed=1)], durations, deadline=time.monotonic() + 1000.0)
    assert next(in_time).specification.seed == 0
    durations.add(taken("RS", 5000.0))
    assert list(in_time) == []


def test_nothing_is_taken_after_the_deadline():
    assert list(in_order([toy()], Durations(), deadline=time.monotonic())) == []


def test_estimate_of_what_is_left():
    durations = Durations([taken("short", 1.0), taken("short", 3.0), taken("long", 50.0)])
    assert durations.total([toy(curve="short"), toy(curve="long")]) == 2.0 + 50.0
    assert durations.total([toy(curve="unknown")]) == (2.0 + 50.0) / 2
    assert durations.total([toy(curve="long", cost="uniform")]) == 50.0  # as the same policy took on another panel
    assert Durations().total([toy()]) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "unknown"), (4.2, "4.2 s"), (200.0, "3 min"), (5399.0, "90 min"), (9000.0, "2.5 h")]
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words
