"""Tables for a terminal, and JSON for everything else."""

import contextlib
import json
import os
import pty
import threading

import pytest
from cli_runs import ECHO, run, write_job
from hypothesis import given, settings
from hypothesis import strategies as st

from pbgi.cli import main
from pbgi.display.tables import best_table, status_table, trials_table

TRIAL = {"trial": 3, "state": "complete", "params": {"lr": 0.0312345678, "act": "relu"}, "value": 0.123456789}
BEST = {**TRIAL, "cost": 2.5, "message": None, "recommended": None}
STATUS = {
    "study": "job",
    "direction": "minimize",
    "budget": 60.0,
    "spent": 34.5678901,
    "reserved": 2.0,
    "left": 23.4321099,
    "trials": {"complete": 12, "failed": 1, "running": 2},
    "trials_left": 9,
    "best": BEST,
}
BAD = "\x1b[2J\r\n\u202eevil" + "x" * 400


def test_status():
    assert status_table(STATUS, 80).splitlines() == [
        "study   job, minimize",
        "budget  60",
        "spent   34.57",
        "held    2",
        "left    23.43",
        "trials  12 complete, 1 failed, 2 running, about 9 more",
        "best    0.123457, trial 3, cost 2.5",
        "  lr    0.0312346",
        "  act   relu",
    ]
    new = STATUS | {"budget": None, "left": None, "best": None, "trials_left": None}
    assert "left" not in status_table(new, 80)


def test_best_and_recommended():
    assert best_table(None, 80) == "no trial has a value yet"
    belief = {"median": 0.12, "low": 0.1, "high": 0.14}
    same = best_table(BEST | {"recommended": {**TRIAL, **belief}}, 100)
    assert same.splitlines()[-1] == "recommended  the same; value 0.12, between 0.1 and 0.14 with 80 %"
    other = {**TRIAL, **belief, "trial": 7, "params": {"lr": 0.5}}
    lines = best_table(BEST | {"recommended": other}, 100).splitlines()
    assert lines[-2].startswith("recommended  trial 7; value 0.12")
    assert lines[-1].split() == ["lr", "0.5"]


def test_trials_have_aligned_columns():
    failed = {**BEST, "trial": 10, "state": "failed", "value": None, "message": "out of memory"}
    lines = trials_table([BEST, failed], 80).splitlines()
    assert lines[0].split() == ["trial", "state", "value", "cost", "lr", "act"]
    assert lines[1].split() == ["3", "complete", "0.1235", "2.5", "0.03123", "relu"]
    assert lines[2].endswith("out of memory")
    assert lines[1].index("2.5") == lines[2].index("2.5")
    assert trials_table([], 80) == "no trials yet"


def test_what_does_not_fit_is_told():
    wide = {**BEST, "params": {f"parameter {i}": 0.5 for i in range(12)}}
    lines = trials_table([wide], 80).splitlines()
    assert lines[-1].endswith("more parameters: a wider window, or --json)")
    assert all(len(line) < 80 for line in lines)


@settings(max_examples=50)
@given(st.integers(20, 150), st.text(max_size=50), st.text(max_size=300) | st.just(BAD) | st.booleans() | st.none())
def test_no_line_is_wider_than_the_window_or_drives_it(columns, name, value):
    record = {**BEST, "params": {name: value, "x": 1.0}, "message": str(value)}
    for table in (
        trials_table([record], columns),
        best_table({**record, "recommended": {**record, "median": 1.0, "low": 0.0, "high": 2.0}}, columns),
        status_table(STATUS | {"study": name, "best": record}, columns),
    ):
        for line in table.split("\n"):
            assert len(line) < columns
            assert line.replace("\N{NO-BREAK SPACE}", "").isprintable()


def in_terminal(*arguments):
    """What a command writes to a terminal: it looks whether its standard output is one."""
    ours, theirs = pty.openpty()
    written = bytearray()

    def read():
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 65536):
                written.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal, contextlib.redirect_stdout(terminal):
        code = main([str(argument) for argument in arguments])
    reader.join()
    os.close(ours)
    assert code == 0
    return written.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    job = write_job(tmp_path_factory.mktemp("tuned"), "trials = 3\n" + ECHO)
    run("tune", job)
    return job


@pytest.mark.parametrize("command", ["status", "best", "trials"])
def test_a_terminal_gets_a_table_and_a_pipe_json(tuned, command):
    piped = run(command, tuned).stdout
    json.loads(piped)
    assert in_terminal(command, tuned, "--json") == piped
    assert run(command, tuned, "--json").stdout == piped
    shown = in_terminal(command, tuned)
    assert not shown.startswith(("{", "["))
    assert "x" in shown
