"""`pbgi report`: a page about a study, JSON on standard output, exit codes."""

import math

import optuna
import pytest
from command_line import said
from report_runs import cost_of, random_study

from pbgi.integrations.optuna import PBGISampler

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
