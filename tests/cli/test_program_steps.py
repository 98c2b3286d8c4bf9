"""What a program says on its way: read as it is written, by its rules."""

import json
import math
from pathlib import Path

import pytest

from pbgi import Float, Report, Space, Steps
from pbgi.cli.job import Job
from pbgi.cli.program.result import result_in
from pbgi.cli.program.steps import LONGEST_LINE, Listener

SPACE = Space({"x": Float(0.0, 1.0)})


@pytest.fixture
def heard(tmp_path):
    """A listener, and a way to say something to it at some second."""
    log = tmp_path / "stdout.log"

    def listen(last=9, **job):
        given = {"objective": "loss", **job}
        listener = Listener(Job(tmp_path / "job.toml", "job", SPACE, ("true",), **given), Steps(last), log)

        def say(text, seconds=1.0, **options):
            with log.open("ab") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
            return listener.read(seconds, **options)

        return listener, say

    return listen


def line(step, loss, **more):
    return json.dumps({"step": step, "loss": loss, **more}) + "\n"


def test_seconds_are_what_a_step_cost(heard):
    listener, say = heard(price_per_second=2.0)
    say("epoch 1 done\n" + line(1, 0.5), 3.0)
    say(line(4, 0.25) + '{"step": 5}\n{"loss": 3.0}\n[1]\n5\n', 4.0)
    assert listener.reports == [Report(1, 0.5, 6.0), Report(4, 0.25, 8.0)]
    assert (listener.problem, listener.end) == (None, None)


def test_a_cost_that_is_told_counts_instead(heard):
    listener, say = heard(cost="dollars", price_per_second=2.0)
    say(line(1, 0.5, dollars=3) + line(2, 0.25, dollars=3), 99.0)
    assert listener.reports == [Report(1, 0.5, 3.0), Report(2, 0.25, 3.0)]


def test_with_a_formula_nothing_is_measured(heard):
    listener, say = heard(formula="1 + x")
    say(line(1, 0.5), 99.0)
    assert listener.reports == [Report(1, 0.5, None)]


def test_lines_come_in_pieces_and_end_in_many_ways(heard):
    listener, say = heard()
    text = line(1, 0.5)
    for piece in (text[:9], text[9:-1]):
        say(piece)
        assert listener.reports == []
    say("\r 50 %\r" + line(2, 0.25).strip() + "\r\n" + line(3, 0.125).strip())
    assert [report.step for report in listener.reports] == [1, 2]
    say("", ended=True)
    assert [report.step for report in listener.reports] == [1, 2, 3]


def test_it_calls_for_a_decision_where_a_stage_ends(heard):
    """Stages of nine steps end at 1, 2, 3, 5 and 9."""
    listener, say = heard()
    assert [say(line(step, 0.5)) for step in range(1, 10)] == [step in (1, 2, 3, 5, 9) for step in range(1, 10)]
    assert listener.end == listener.reports[-1]


def test_the_same_again_changes_nothing(heard):
    listener, say = heard()
    say(line(1, 0.5), 1.0)
    say(line(1, 0.5), 2.0)
    assert (listener.reports, listener.problem) == ([Report(1, 0.5, 1.0)], None)


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([line(3, 0.5), line(2, 0.5)], "must rise, and none is reported twice with another value or cost; got step 2"),
        ([line(3, 0.5), line(3, 0.25)], "must rise, and none is reported twice with another value or cost; got step 3"),
        ([line(0, 0.5)], "step must be"),
        ([line(1.5, 0.5)], "step must be"),
        ([line(True, 0.5)], "step must be"),
        ([line([1], 0.5)], "step must be a single JSON value; got a list of length 1"),
        ([line(10, 0.5)], "step must not exceed the last one, 9; got 10"),
        ([line(2, math.nan)], "the value of step 2 must be finite; got nan"),
        ([line(2, -math.inf)], "the value of step 2 must be finite; got -inf"),
        ([line(2, None)], "value must be"),
        ([line(2, "low")], "value must be"),
        ([line(2, {})], "the value must be a single JSON value; got an object of length 0"),
    ],
)
def test_what_breaks_a_rule(heard, lines, rule):
    listener, say = heard()
    said = [say(each) for each in lines]
    assert said[-1]
    assert listener.problem.startswith("the command must report its steps as they are done; ")
    assert rule in listener.problem
    assert len(listener.reports) == len(lines) - 1
    # What comes later may be just as wrong.
    assert not say(line(5, 0.5))
    assert len(listener.reports) == len(lines) - 1


@pytest.mark.parametrize(
    ("costs", "rule"),
    [
        ([3.0, 2.0], "must not shrink; got 2.0 after 3.0"),
        ([3.0, None], "the cost so far must be under the key 'dollars'; got ['dollars', 'loss', 'step']"),
        ([-1.0], "cost must be"),
        ([math.nan], "cost must be"),
        ([[1]], "the cost must be a single JSON value"),
    ],
)
def test_costs_that_break_a_rule(heard, costs, rule):
    listener, say = heard(cost="dollars")
    say("".join(line(step, 0.5, dollars=cost) for step, cost in enumerate(costs, start=1)))
    assert rule in listener.problem
    assert len(listener.reports) == len(costs) - 1


def test_an_incredibly_long_line_is_no_report_and_is_not_kept(heard):
    listener, say = heard()
    for _ in range(40):
        say(b'{"step": 1, "loss": 0.5, "more": "' + LONGEST_LINE * b"x")
        assert len(listener._rest) <= LONGEST_LINE
    say('"}\n' + line(2, 0.5))
    assert [report.step for report in listener.reports] == [2]
    longest = line(3, 0.25, more="").strip()
    say(longest.replace('""', f'"{(LONGEST_LINE - len(longest)) * "y"}"') + "\n")
    assert [report.step for report in listener.reports] == [2, 3]


def test_bytes_that_are_no_text_are_other_output(heard):
    listener, say = heard()
    say(b"\xff\xfe{\x00\n" + line(1, 0.5).encode())
    assert [report.step for report in listener.reports] == [1]


def test_a_log_that_is_gone_says_nothing(heard):
    listener, say = heard()
    listener._log = Path("/nowhere/stdout.log")
    assert not say(line(1, 0.5))


def test_what_is_a_result():
    """Steps on the way are none; a line without a step is one, and the last step is one if there is no such line."""
    way, result, end = line(3, 0.5), '{"loss": 0.25}\n', {"loss": 0.125}
    assert result_in(way + result + way, "loss", None, {}) == result_in(result, "loss", None, end) == {"loss": 0.25}
    assert result_in(way, "loss", None, end) == end
    assert result_in(way, "loss", None) == {"step": 3, "loss": 0.5}
    with pytest.raises(ValueError, match="there is none"):
        result_in(way, "loss", None, {})
