"""`pbgi report`: a page about a study, once or as trials end; JSON on standard output, exit codes."""

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import signal
import sqlite3

import optuna
import psutil
import pytest
from cli_runs import start, wait_for, write_job
from command_line import said
from report.report_runs import cost_of, random_study

from pbgi.cli import main, report, storage
from pbgi.cli.progress import Display
from pbgi.integrations.optuna import PBGISampler

pytest.importorskip("plotly")

JOB = """
command = ["echo", '{{"loss": {x}, "price": {y}}}']
objective = "loss"
cost = "price"
budget = 6.0
seed = 1
[parameters]
x = { low = 0.0, high = 1.0 }
y = { low = 0.5, high = 1.5 }
"""


def test_a_job_has_a_report(tmp_path, capfd, monkeypatch):
    (tmp_path / "job.toml").write_text(JOB)
    tuned = said(capfd, "tune", tmp_path / "job.toml", "--quiet")
    out = tmp_path / "out.html"
    record = said(capfd, "report", tmp_path / "job.toml", "-o", out)
    assert record == {
        "study": "job",
        "report": str(out),
        "trials": sum(tuned["trials"].values()),
        "spent": tuned["spent"],
        "best_value": tuned["best"]["value"],
    }
    page = out.read_text()
    assert "Report on job" in page
    assert "Best loss" in page
    assert "Costs are in price." in page
    assert tuned["stop_reason"][:40] in page  # why it ended is said as `tune` says it
    monkeypatch.chdir(tmp_path)
    assert said(capfd, "report", "job.db", "--unit", "euro")["report"] == "report.html"
    assert "Costs are in euro." in (tmp_path / "report.html").read_text()


def test_any_study_has_a_report(tmp_path, capfd):
    url = f"sqlite:///{tmp_path / 'any.db'}"
    study = random_study(9, storage=url, study_name="random")
    out = tmp_path / "out.html"
    record = said(capfd, "report", url, "--output", out)
    assert record["spent"] == pytest.approx(math.fsum(cost_of(trial.params) for trial in study.trials))
    assert record["best_value"] == study.best_value


def test_which_of_several_studies_must_be_said(tmp_path, capfd):
    url = f"sqlite:///{tmp_path / 'any.db'}"
    random_study(2, storage=url, study_name="one")
    sampled = optuna.create_study(storage=url, study_name="two", sampler=PBGISampler(budget=5, seed=0))
    sampled.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    out = tmp_path / "out.html"
    error = said(capfd, "report", tmp_path / "any.db", "-o", out, status=2)
    assert "a study must be named" in error
    assert not out.exists()
    assert said(capfd, "report", tmp_path / "any.db", "-o", out, "--study-name", "two")["trials"] == 2


def test_what_cannot_be_read_or_written(tmp_path, capfd):
    assert "there is no study yet" in said(capfd, "report", tmp_path / "no.db", status=3)
    url = f"sqlite:///{tmp_path / 'any.db'}"
    random_study(2, storage=url)
    missing = tmp_path / "no" / "out.html"
    assert said(capfd, "report", url, "-o", missing, status=2) == (
        f"pbgi: {missing}: cannot be written: No such file or directory\n"
    )
    optuna.create_study(storage=url, study_name="many", directions=["minimize", "minimize"])
    assert "one objective" in said(capfd, "report", url, "--study-name", "many", "-o", missing, status=2)


def test_an_empty_study_has_a_report(tmp_path, capfd):
    url = f"sqlite:///{tmp_path / 'any.db'}"
    optuna.create_study(storage=url, study_name="empty")
    record = said(capfd, "report", url, "-o", tmp_path / "out.html")
    assert (record["trials"], record["spent"], record["best_value"]) == (0, 0.0, None)


# Following a run -----------------------------------------------------------------------------------------------------

ASKED = """
command = ["true"]
cost = "cost"
seed = 1
trials = 7
[parameters]
x = { low = 0.0, high = 1.0 }
"""
FOLLOWS = re.compile(r"^<html[^>]* data-every=", re.MULTILINE)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A job of which five trials were told, and one is running."""
    path = write_job(tmp_path_factory.mktemp("told"), ASKED)
    for number in range(5):
        assert main(["ask", str(path)]) == 0
        tell(path, number, "--value", number + 1.0)
    assert main(["ask", str(path)]) == 0
    return path.parent


@pytest.fixture
def job(told, tmp_path, capfd):
    """The same, for one test."""
    capfd.readouterr()
    return shutil.copytree(told, tmp_path / "job") / "job.toml"


def tell(job, number, *outcome):
    assert main(["tell", str(job), str(number), *map(str, outcome), "--cost", "1.0"]) == 0


def n_trials_on(page):
    return len(re.findall(r'<td class="number">\d+</td><td>(?:complete|running|failed)', page))


@contextlib.contextmanager
def following(job, *arguments):
    """The command in a process of its own, once its first page is there."""
    out = job.with_name("out.html")
    with start("report", job, "-o", out, "--follow", "--every", 0.2, *arguments) as process:
        try:
            wait_for(out.exists, 60.0)
            yield process, out
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_page_follows_a_run_until_a_signal(job, number, status):
    """It is written when trials end, and only then; nothing is written to the study, and nothing listens."""
    with following(job) as (process, out):
        first = out.read_text()
        assert FOLLOWS.search(first)
        assert (n_trials_on(first), out.stat().st_mode & 0o777) == (6, 0o600)
        tell(job, 5, "--value", 0.25)
        before = hashlib.sha256(job.with_suffix(".db").read_bytes()).hexdigest()
        wait_for(lambda: "Best value" in out.read_text() and '<p class="value">0.25</p>' in out.read_text(), 60.0)
        followed = psutil.Process(process.pid)
        assert [c for c in followed.net_connections("inet") if c.status == "LISTEN"] == []
        assert followed.children() == []
        process.send_signal(number)
        printed, told = process.communicate(timeout=60)
    assert process.returncode == status, told
    assert json.loads(printed) == {"study": "job", "report": str(out), "trials": 6, "spent": 6.0, "best_value": 0.25}
    last = out.read_text()
    assert not FOLLOWS.search(last)
    assert last.endswith("</html>\n")
    assert hashlib.sha256(job.with_suffix(".db").read_bytes()).hexdigest() == before
    assert [path.name for path in out.parent.glob(".out.html*")] == []
    reason = "interrupted by Ctrl-C" if status == 0 else "terminated"
    assert told.splitlines() == [
        f"{out}: is written again as trials end, looked for every 0.2 s; Ctrl-C ends it",
        f"{out}: 6 trials, 1 running, spent 5, best 1",
        f"{out}: 6 trials, 0 running, spent 6, best 0.25",
        f"ended: {reason}; {out} is complete",
    ]


def test_it_ends_with_the_run(job):
    """Not before the last trial has ended, though no other may be begun."""
    tell(job, 5, "--value", 0.5)
    assert main(["ask", str(job)]) == 0
    with following(job) as (process, out):
        assert process.poll() is None
        tell(job, 6, "--failed")
        printed, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert (json.loads(printed)["trials"], json.loads(printed)["spent"]) == (7, 7.0)
    assert not FOLLOWS.search(out.read_text())
    assert f"ended: Reached the limit of 7 trials; {out} is complete" in told


def test_a_storage_that_is_locked_for_a_moment_is_waited_for(job):
    with following(job) as (process, out):
        with contextlib.closing(sqlite3.connect(job.with_suffix(".db"), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert "is written again" in process.stderr.readline()
            assert "6 trials" in process.stderr.readline()
            assert "waiting for the storage" in process.stderr.readline()
            other.execute("ROLLBACK")
        tell(job, 5, "--value", 0.25)
        wait_for(lambda: '<p class="value">0.25</p>' in out.read_text(), 60.0)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


class Locking(Display):
    """Locks the study as soon as a page is there."""

    def __init__(self, database):
        super().__init__()
        self.other = sqlite3.connect(database, isolation_level=None)

    def say(self, message):
        super().say(message)
        if " running, " in message:
            self.other.execute("BEGIN EXCLUSIVE")


def test_a_storage_that_stays_locked_ends_it_with_a_complete_page(job, capfd, monkeypatch):
    monkeypatch.setattr(storage, "PATIENCE", 0.1)
    display = Locking(job.with_suffix(".db"))
    monkeypatch.setattr("pbgi.cli.progress.Display", lambda: display)
    out = job.with_name("out.html")
    with contextlib.closing(display.other):
        told = said(capfd, "report", job, "-o", out, "--follow", "--every", 0.01, status=3)
    assert "database is locked" in told
    assert n_trials_on(out.read_text()) == 6
    assert not FOLLOWS.search(out.read_text())


def test_a_second_signal_does_not_wait_for_the_page(job, capfd, monkeypatch):
    made, make = [], report._make

    def make_then_signal(asked, study):
        if made:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("the page was waited for")
        made.append(make(asked, study))
        return made[0]

    monkeypatch.setattr(report, "_make", make_then_signal)
    monkeypatch.setattr(report, "_state_of", lambda _study: object())  # it changes all the time
    out = job.with_name("out.html")
    assert main(["report", str(job), "-o", str(out), "--follow", "--every", "0.01"]) == 130
    assert capfd.readouterr().out == ""
    assert not FOLLOWS.search(out.read_text())


def test_how_often_must_make_sense(job, capfd):
    out = job.with_name("out.html")
    assert said(capfd, "report", job, "-o", out, "--every", 5, status=2) == (
        "pbgi: --every must go with --follow; got --every 5 alone\n"
    )
    for wrong in ("0", "-1", "nan", "inf"):
        told = said(capfd, "report", job, "-o", out, "--follow", f"--every={wrong}", status=2)
        assert "--every must be a positive, finite number" in told
    assert not out.exists()
