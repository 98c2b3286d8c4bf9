"""The line that says where a run stands."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pbgi
from pbgi.run.progress import best_words, describe, duration, line_of, money_words, to_go

AMOUNT = st.floats(0.0, 1.0)


@given(AMOUNT, AMOUNT, st.floats(1e-3, 1e6))
def test_the_sum_is_right_as_it_is_written(spent, reserved, budget):
    spent, reserved = spent * budget, reserved * (1.0 - spent) * budget
    found = re.fullmatch(r"(\S+) \+ (\S+) held \+ (\S+) left = (\S+)", money_words(spent, reserved, budget))
    a, b, c, whole = map(float, found.groups())
    assert a + b + c == pytest.approx(whole, rel=1e-12)
    assert whole == pytest.approx(budget, rel=6e-3)
    assert a == pytest.approx(spent, abs=6e-3 * budget)


@pytest.mark.parametrize(
    ("spent", "reserved", "budget", "written"),
    [
        (6.214, 0.4, 10.0, "6.2 + 0.4 held + 3.4 left = 10.0"),
        (0.0, 0.0, 60.0, "0.0 + 0.0 held + 60.0 left = 60.0"),
        (12345.0, 3.0, 99999.0, "12345 + 3 held + 87651 left = 99999"),
        (70.0, 1.0, 60.0, "70 spent + 1 held, beyond 60"),
        (1e-9, 0.0, 2e-9, "1e-9 + 0 held + 1e-9 left = 2e-9"),
        (1e300, 0.0, 1e301, "1e300 + 0 held + 9e300 left = 1e301"),
    ],
)
def test_money(spent, reserved, budget, written):
    assert money_words(spent, reserved, budget) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.0, "0 s"), (119.4, "119 s"), (120.0, "2 min"), (7000.0, "117 min"), (7200.0, "2 h"), (1e6, "12 d")],
)
def test_durations(seconds, written):
    assert duration(seconds) == written


def test_what_is_to_go():
    assert to_go(None, None) == ""
    assert to_go(3, None) == "3 more"
    assert to_go(12345, 150.0) == ">999 more, 2 min"
    assert to_go(0, float("inf")) == "0 more"


@given(st.integers(40, 200), st.text(max_size=40), st.text(max_size=300))
def test_a_line_fits_whatever_the_parameters(columns, name, value):
    line = line_of("6.2 + 0.4 held + 3.4 left = 10.0", (0.25, {name: value}), "13 more, 2 min", columns)
    assert len(line) < columns
    assert line.replace("\N{NO-BREAK SPACE}", "").isprintable()


def test_parameters_are_cut_before_the_value():
    best = (0.009519, {"rate": 0.0312345, "layers": 5})
    assert best_words(best, 80) == "best 0.009519 (rate 0.0312, layers 5)"
    assert best_words(best, 25) == "best 0.009519 (rate 0.0…)"
    assert best_words(best, 10) == "best 0.009519"
    assert best_words(None, 10) == "no value yet"


def test_an_optimizer_in_a_line():
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, budget=20, seed=0)
    assert describe(optimizer) == "0.0 + 0.0 held + 20.0 left = 20.0 | no value yet"
    optimizer.tell(optimizer.enqueue({"x": 0.5}), 0.25, cost=4.0)
    assert describe(optimizer, 65.0) == "4.0 + 0.0 held + 16.0 left = 20.0 | best 0.25 (x 0.5) | 4 more, 65 s"
    endless = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, seed=0)
    endless.tell(endless.ask(), 0.25, cost=4.0)
    assert describe(endless).startswith("4 spent | best 0.25 (x 0.")
    assert describe(endless).endswith(") | 1 trial")
