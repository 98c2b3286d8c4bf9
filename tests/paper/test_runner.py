"""Many runs: resuming, failing, running out of time, and going on after a kill or Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toy_runs import FEW, broken, toy

import pbgi
from paper.pool import Finished, execute_all
from paper.results import Store
from paper.runner import Runner
from paper.worker import answer
from pbgi.botorch.policies import KnowledgeGradient

ROOT = Path(__file__).parents[2]


def here(runs, *, n_jobs, deadline):  # noqa: ARG001 (one at a time, as long as it takes)
    """Executes in this process."""
    for run in runs:
        yield Finished(run, *answer(run))


def run_all(runs, folder, pool=here, **settings):
    log = io.StringIO()
    report = Runner(Store(folder), pool=pool, log=log, **settings).run(runs)
    return report, log.getvalue()


def load(folder):
    return Store(folder).load()


def test_nothing_is_repeated(tmp_path):
    run_all(FEW[:3], tmp_path)
    lines = (tmp_path / "toy.jsonl").read_bytes()
    report, log = run_all(FEW, tmp_path)
    assert (report.n_finished, report.n_before) == (1, 3)
    assert "[1/1] toy | Ackley d=2 varying | RS | seed 1" in log
    report, _ = run_all(FEW, tmp_path)
    assert (report.n_finished, report.n_before, report.exit_status) == (0, 4, 0)
    assert (tmp_path / "toy.jsonl").read_bytes().startswith(lines)
    assert len((tmp_path / "toy.jsonl").read_text().splitlines()) == 4


def test_failure_is_reported_with_its_specification_and_stops_nothing(tmp_path):
    report, log = run_all([broken(), *FEW[:2]], tmp_path)
    assert (report.n_finished, len(report.failed), report.exit_status) == (2, 1, 1)
    assert '"function": "no_such_problem"' in log
    assert "InvalidInputError: function must be a problem of pbgi.problems" in log
    assert len(load(tmp_path)) == 2
    report, _ = run_all([broken()], tmp_path)  # no result, so it is tried again
    assert len(report.failed) == 1


def test_botorch_policies_are_skipped_with_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr("paper.specification.find_spec", lambda _: None)
    report, log = run_all([toy(KnowledgeGradient(), curve="KG"), FEW[0]], tmp_path)
    assert (report.n_skipped, report.n_finished, report.exit_status) == (1, 1, 0)
    assert "skipped 1 runs of KG: pip install pbgi[botorch]" in log


def test_time_is_up(tmp_path):
    report, log = run_all(FEW, tmp_path, max_seconds=0.0)
    assert (report.n_finished, report.n_left, report.exit_status) == (0, 4, 0)
    assert "4 left" in log


def test_what_is_running_when_time_is_up_is_given_up(tmp_path):
    report, log = run_all([toy(pbgi.Thompson(), cost="uniform")], tmp_path, execute_all, max_seconds=0.1)
    assert (report.n_finished, report.n_left, report.failed) == (0, 1, [])
    assert "1 left" in log
    assert load(tmp_path) == []


def interrupted(runs, *, n_jobs, deadline):  # noqa: ARG001
    """As after Ctrl-C while the second run is being executed."""
    yield Finished(run := next(runs), *answer(run))
    raise KeyboardInterrupt


def test_an_interrupt_keeps_what_has_finished(tmp_path):
    report, log = run_all(FEW, tmp_path, interrupted)
    assert (report.n_finished, report.n_left, report.exit_status) == (1, 3, 130)
    assert "1 runs finished, 0 were before, 3 left; interrupted: run the same again to go on" in log
    assert len(load(tmp_path)) == 1


# Killed and interrupted from outside ------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "paper", "run", "synthetic", "--seeds", "4", "--panel", "Ackley d=4 varying"]
COMMAND += ["--policy", "LogEIPC"]
N_RUNS = 4


def n_lines(folder: Path) -> int:
    path = folder / "synthetic.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def started(folder: Path, n_finished: int) -> "subprocess.Popen[str]":
    """The command, once it has finished so many runs."""
    command = [*COMMAND, "--results", folder]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while n_lines(folder) < n_finished:
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_goes_on_after_it_was_ended(tmp_path, signal_number):
    process = started(tmp_path, 1)
    if signal_number == signal.SIGINT:
        os.killpg(process.pid, signal_number)  # as a terminal does: its processes get it too
    else:
        process.send_signal(signal_number)
    # Its standard error is held by its workers too: it closes when they have ended as well.
    _, log = process.communicate(timeout=300)
    before = {r["key"] for r in load(tmp_path)}
    assert 1 <= len(before) < N_RUNS
    if signal_number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted: run the same again to go on" in log
        assert "Traceback" not in log
    again = subprocess.run([*COMMAND, "--results", tmp_path], cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{N_RUNS - len(before)} runs finished, {len(before)} were before" in again.stderr
    assert n_lines(tmp_path) == len({r["key"] for r in load(tmp_path)}) == N_RUNS
