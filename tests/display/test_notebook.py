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


def test_a_trial_in_a_notebook_has_its_outcome_in_the_heading_and_parameters_in_the_table():
    """So that a parameter may be called "value"."""
    limits = {"memory": pbgi.AtMost(4.0)}
    optimizer = pbgi.Optimizer({"value": pbgi.Float(0.0, 1.0)}, budget=20, constraints=limits, seed=0)
    told = optimizer.tell(optimizer.enqueue({"value": 0.5}), 3.25, cost=2.0, constraints={"memory": 1.5})
    found = Tags(told._repr_html_()).text
    assert found.startswith("Trial 0: complete, value 3.25, cost 2, ")
    assert "memory 1.5" in found
    assert found.endswith("parametervaluevalue0.5")
    failed = optimizer.fail(optimizer.enqueue({"value": 0.25}), cost=1.5, message="out of memory <b>")
    assert Tags(failed._repr_html_()).text.endswith("out of memory <b>")


def test_a_trial_that_reports_says_how_far_it_has_come():
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0.0, 1.0)}, steps=4, seed=0)
    trial = optimizer.enqueue({"x": 0.5})
    optimizer.report(trial, 2, 1.0, cost=1.0)
    assert Tags(optimizer.stop(trial)._repr_html_()).text.startswith("Trial 0: stopped at step 2, cost 1")


@pytest.mark.parametrize(
    "parameter",
    [
        pbgi.Float(0.0, 1.0),
        pbgi.Float(1e-5, 0.1, log=True),
        pbgi.Float(0.0, 1.0, step=0.1, when={"model": "svm"}),
        pbgi.Integer(1, 8),
        pbgi.Integer(16, 256, step=16),
        pbgi.Categorical(["relu", 1, None], when={"n": [1, 2]}),
    ],
)
def test_a_parameter_shows_itself_as_it_is_written(parameter):
    written = repr(parameter)
    assert eval(f"pbgi.{written}") == parameter  # noqa: S307 (our own words)
    assert "None" not in written.replace("1, None]", "")
    assert "False" not in written


def test_space_shows_itself_as_it_is_written():
    space = pbgi.Space({"x": pbgi.Float(0, 1), "k": pbgi.Categorical(["a", "b"]), "fixed": 3})
    assert repr(space) == "Space({'x': Float(0.0, 1.0), 'k': Categorical(['a', 'b']), 'fixed': 3})"
    assert "Categorical(['a', 'b'])" in Tags(space._repr_html_()).text
