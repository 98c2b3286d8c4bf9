"""What objects show of themselves, in a notebook and at the prompt."""

import re
from html.parser import HTMLParser

import pytest

import pbgi
from pbgi.display.notebook import MOST_ROWS, table
from pbgi.pandora import Box, Gaussian, solve

BAD = "<script>alert(1)</script> & \x1b[31m"
SPACE = {BAD: pbgi.Categorical([BAD, "good"]), "x": pbgi.Float(0.0, 1.0)}


class Tags(HTMLParser):
    """The tags of a piece of HTML, and its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.open = set(), "", []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, _attributes):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def result():
    return pbgi.minimize(lambda p: (1234.5678 + p["x"], 2.0), SPACE, budget=10, seed=0)


def shown(result):
    solution = solve([Box(Gaussian(1.0, 1.0), 0.1), Box(Gaussian(2.0, 1.0), 0.5)])
    new = pbgi.Optimizer(SPACE, seed=0)
    return [result, result.optimizer, new, result.trials[0], result.optimizer.space, solution]


def test_everything_is_text_but_the_tables(result):
    for each in shown(result):
        found = Tags(each._repr_html_())
        assert found.tags <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
        assert "\x1b" not in found.text
        assert "\x1b" not in repr(each)


def test_a_result_says_what_was_found(result):
    best = min(result.trials, key=lambda trial: trial.value)
    assert f"fun={best.value:.6g}," in repr(result)
    assert "nfev=5, spent=10, success=True," in repr(result)
    assert "Lowest value 1,234.57" in Tags(result._repr_html_()).text
    assert result.message in Tags(result._repr_html_()).text
    assert max(map(len, repr(result).splitlines())) < 120


def test_a_result_without_a_value():
    result = pbgi.minimize(lambda _: (float("nan"), 1.0), SPACE, budget=2, seed=0, max_failures=9)
    assert "fun=None" in repr(result)
    assert "No value was found" in result._repr_html_()


def test_a_trial_shows_what_is_known_and_no_more():
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, budget=20, seed=0)
    trial = optimizer.enqueue({"x": 0.5})
    assert repr(trial) == "Trial(0, {'x': 0.5}, running)"
    assert repr(optimizer.tell(trial, 3.25, cost=2.0)) == "Trial(0, {'x': 0.5}, complete, value=3.25, cost=2.0)"
    failed = optimizer.fail(optimizer.enqueue({"x": 0.25}), cost=1.5, message="out of memory")
    expected = f"cost=1.5, predicted_cost={failed.predicted_cost!r}, message='out of memory'"
    assert repr(failed) == f"Trial(1, {{'x': 0.25}}, failed, {expected})"


def test_an_optimizer_says_where_it_stands():
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, direction="maximize", budget=20, seed=0)
    assert repr(optimizer) == "Optimizer(maximize, 0 trials, spent 0 of 20)"
    optimizer.tell(optimizer.ask(), 0.123456789, cost=4.0)
    optimizer.enqueue({"x": 0.5})
    held = f"{optimizer.reserved:.4g} reserved"
    assert repr(optimizer) == f"Optimizer(maximize, 2 trials, best 0.123457 in trial 0, spent 4 of 20, {held})"


def test_long_things_are_cut():
    rows = Tags(table(("n",), [(i,) for i in range(MOST_ROWS + 5)]))
    assert rows.text.endswith("... and 5 more")
    many = solve([Box(Gaussian(float(i), 1.0), 0.1) for i in range(40)])
    assert repr(many).startswith("Solution(boxes=40, order=[39, 38, 37, 36, 35, 34, 33, 32, 31, 30, ...], value=")
    assert len(re.findall("<tr>", many._repr_html_())) == 1 + MOST_ROWS


def test_plot_and_report_of_a_result(result, tmp_path):
    pytest.importorskip("plotly")
    assert result.plot(unit="euro").layout.xaxis.title.text == "Spent (euro)"
    written = result.report(tmp_path / "report.html", unit="euro", title="A search")
    assert written == tmp_path / "report.html"
    assert "<title>A search</title>" in written.read_text()
