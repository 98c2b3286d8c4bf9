"""Commands for scripts: ask, tell, status, best, trials, export, boxes; help, exit codes, what goes where."""

import csv
import io
import json
import math
import os
import stat
import subprocess

import optuna
import pytest
from cli_runs import ECHO, PBGI, engine_trials, run, trials_in, write_job
from command_line import said

import pbgi
from pbgi.cli import main
from pbgi.cli.job import read_job
from pbgi.integrations.optuna import PBGISampler, fail_abandoned


def test_ask_and_tell(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO)
    oracle = pbgi.Optimizer(read_job(job).space, budget=5.0, seed=1)
    while (reason := oracle.should_stop()) is None:
        expected, asked = oracle.ask(), said(capfd, "ask", job)
        assert asked == {
            "trial": expected.number,
            "params": dict(expected.params),
            "predicted_cost": expected.predicted_cost,
        }
        value, cost = asked["params"]["x"] ** 2, asked["params"]["y"]
        oracle.tell(expected, value, cost=cost)
        told = said(capfd, "tell", job, asked["trial"], "--value", repr(value), "--cost", repr(cost))
        assert (told["state"], told["value"], told["cost"]) == ("complete", value, cost)
    assert said(capfd, "ask", job, status=4) == f"pbgi: {reason.message}\n"
    status = said(capfd, "status", job)
    assert (status["spent"], status["left"]) == (oracle.spent, oracle.remaining)
    assert status["best"]["value"] == oracle.best.value
    chosen = oracle.recommended
    record = said(capfd, "trials", job)[chosen.trial.number]
    believed = {"median": chosen.median, "low": chosen.low, "high": chosen.high}
    assert said(capfd, "best", tmp_path / "job.db") == {**status["best"], "recommended": {**record, **believed}}


def test_a_database_is_enough(tmp_path, capfd):
    """The settings live in the study: scripts on other machines need no job file."""
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO)
    said(capfd, "ask", job)
    job.rename(tmp_path / "away")
    said(capfd, "tell", tmp_path / "job.db", 0, "--value", 1, "--cost", 1)
    asked = said(capfd, "ask", tmp_path / "job.db")
    url = f"sqlite:///{tmp_path / 'job.db'}"
    told = said(capfd, "tell", url, asked["trial"], "--failed", "--cost", 0.25, "--message", "no power")
    assert (told["state"], told["value"], told["message"]) == ("failed", None, "no power")
    status = said(capfd, "status", url)
    assert (status["spent"], status["budget"], status["study"]) == (1.25, 5.0, "job")
    assert [t["trial"] for t in said(capfd, "trials", url, "--study-name", "job")] == [0, 1]
    assert "got 'other'" in said(capfd, "status", url, "--study-name", "other", status=2)


def test_running_trials_hold_their_cost(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 50.0\n" + ECHO)
    said(capfd, "ask", job)
    said(capfd, "tell", job, 0, "--value", 1, "--cost", 1)
    asked = [said(capfd, "ask", job) for _ in range(2)]
    assert asked[0]["params"] != asked[1]["params"]
    status = said(capfd, "status", job)
    assert status["trials"] == {"complete": 1, "failed": 0, "running": 2}
    assert status["reserved"] == pytest.approx(math.fsum(a["predicted_cost"] for a in asked))
    assert status["left"] == pytest.approx(49.0 - status["reserved"])


def test_telling_twice(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO)
    said(capfd, "ask", job)
    first = said(capfd, "tell", job, 0, "--value", 1, "--cost", 1)
    assert said(capfd, "tell", job, 0, "--value", 1, "--cost", 1) == first
    assert said(capfd, "tell", job, 0, "--value", 1) == first
    for other in (["--value", 2], ["--failed"], ["--value", 1, "--cost", 2]):
        assert "finished and stays as it is" in said(capfd, "tell", job, 0, *other, status=2)
    assert said(capfd, "status", job)["spent"] == 1.0


def test_a_cost_that_nobody_tells_is_charged_and_not_learned(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 1000.0\n" + ECHO)
    for n in range(3):
        said(capfd, "ask", job)
        said(capfd, "tell", job, n, "--value", n, "--cost", 10.0)
    expected = said(capfd, "ask", job)["predicted_cost"]
    told = said(capfd, "tell", job, 3, "--value", 1)
    assert told["cost"] == expected
    assert [(t.cost, t.charged) for t in engine_trials(tmp_path)][3] == (None, expected)


def test_a_failure_without_a_cost_is_no_observation(tmp_path, capfd):
    job = write_job(tmp_path, "trials = 9\n" + ECHO)
    said(capfd, "ask", job)
    said(capfd, "tell", job, 0, "--failed")
    assert said(capfd, "ask", job)["predicted_cost"] in (None, 1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["7", "--value", "1", "--cost", "1"], "got number 7; numbers go from 0 to 0"),
        (["0"], "must have a value or have failed"),
        (["0", "--value", "1"], "cost must be told, since the budget counts it"),
        (["0", "--value", "1", "--cost", "0"], "cost must be a positive, finite number"),
        (["0", "--value", "1", "--cost", "nan"], "cost must be a positive, finite number"),
    ],
)
def test_what_cannot_be_told(tmp_path, capfd, arguments, says):
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO)
    said(capfd, "ask", job)
    assert says in said(capfd, "tell", job, *arguments, status=2)
    assert trials_in(tmp_path / "job.db")[0].state is optuna.trial.TrialState.RUNNING


def test_a_late_value_of_a_trial_that_was_given_up_is_taken(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 50.0\n" + ECHO)
    for number in range(3):
        said(capfd, "ask", job)
        said(capfd, "tell", job, number, "--value", number, "--cost", 1.0)
    params = said(capfd, "ask", job)["params"]
    assert fail_abandoned(study_in(tmp_path), older_than=1e-9, cost=30.0) == (3,)
    assert said(capfd, "status", job)["spent"] == 33.0
    late = said(capfd, "tell", job, 3, "--value", -1.0, "--cost", 2.0)
    assert (late["trial"], late["state"], late["params"], late["cost"]) == (4, "complete", params, 2.0)
    assert said(capfd, "tell", job, 3, "--value", -1.0, "--cost", 2.0) == late
    status = said(capfd, "status", job)
    assert (status["spent"], status["best"]["trial"]) == (5.0, 4)
    assert "stays as it is" in said(capfd, "tell", job, 3, "--value", 7.0, status=2)


def test_a_failure_that_was_told_is_not_taken_back(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 50.0\n" + ECHO)
    said(capfd, "ask", job)
    said(capfd, "tell", job, 0, "--failed", "--cost", 1.0)
    assert "trial 0 is finished and stays as it is: fail" in said(capfd, "tell", job, 0, "--value", 1.0, status=2)
    assert len(said(capfd, "trials", job)) == 1


def study_in(folder):
    return optuna.load_study(study_name="job", storage=f"sqlite:///{folder}/job.db")


WIDER = {
    "x": ("{ low = 0.0, high = 1.0 }", "{ low = -1.0, high = 4.0 }"),
    "rate": ("{ low = 0.01, high = 1.0, log = true }", "{ low = 0.001, high = 1.0, log = true }"),
    "n": ("{ low = 4, high = 32, step = 4 }", "{ low = 0, high = 64, step = 4 }"),
}


def job_with(**parameters):
    lines = [f"{name} = {text}" for name, text in parameters.items()]
    return "\n".join(["budget = 50.0", "seed = 0", "command = ['true']", "[parameters]", *lines, ""])


@pytest.mark.parametrize("name", WIDER)
def test_a_range_can_be_widened(tmp_path, capfd, name):
    """The wider study goes on as one that had the wider range from the start and was told the same trials."""
    narrow, wide = WIDER[name]
    job = write_job(tmp_path, job_with(**{name: narrow}))
    for number in range(5):
        value = said(capfd, "ask", job)["params"][name]
        said(capfd, "tell", job, number, "--value", -value, "--cost", 1.0 + 0.1 * number)
    write_job(tmp_path, job_with(**{name: wide}))
    fields = ("params", "value", "cost", "predicted_cost")
    told = [{name: record[name] for name in fields} for record in said(capfd, "trials", job)]
    trials = [pbgi.Trial(n, state=pbgi.TrialState.COMPLETE, **record) for n, record in enumerate(told)]
    oracle = pbgi.Optimizer.of(read_job(job).space, "minimize", pbgi.Settings(budget=50.0, seed=0), trials)
    expected = oracle.ask()
    asked = said(capfd, "ask", job)
    assert asked["params"] == dict(expected.params)
    assert asked["params"][name] not in [record["params"][name] for record in said(capfd, "trials", job)[:5]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (WIDER["x"][1], WIDER["x"][0]),  # narrower
        (WIDER["x"][0], "{ low = 0.5, high = 2.0 }"),  # neither
        (WIDER["x"][0], "{ low = 0, high = 1 }"),  # another kind
        ("{ low = 0.1, high = 1.0 }", "{ low = 0.1, high = 1.0, log = true }"),
        (WIDER["n"][0], "{ low = 3, high = 35, step = 4 }"),  # other steps
        (WIDER["n"][0], "{ low = 0, high = 32, step = 2 }"),
        ("['a', 'b']", "['a', 'b', 'c']"),  # Optuna cannot
        ("1", "true"),
    ],
)
def test_other_changes_of_a_range_are_refused(tmp_path, capfd, before, after):
    job = write_job(tmp_path, job_with(x=before, y="{ low = 0.0, high = 1.0 }"))
    said(capfd, "ask", job)
    write_job(tmp_path, job_with(x=after, y="{ low = 0.0, high = 1.0 }"))
    assert "ranges may only get wider" in said(capfd, "ask", job, status=2)


def test_nan_fails_the_trial(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO)
    said(capfd, "ask", job)
    assert said(capfd, "tell", job, 0, "--value", "nan", "--cost", 1)["state"] == "failed"
    assert said(capfd, "best", job, status=1) is None


def test_telling_by_standard_input(tmp_path, capfd, monkeypatch):
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO)
    said(capfd, "ask", job)
    for wrong in ("", "[1]", '{"trial": 0, "valu": 1}', '{"trial": "0", "value": 1}', '{"trial": 0}'):
        monkeypatch.setattr("sys.stdin", io.StringIO(wrong))
        assert said(capfd, "tell", job, status=2).count("\n") == 1
    told = json.loads(run("tell", job, input='{"trial": 0, "value": 0.5, "cost": 2}').stdout)
    assert (told["value"], told["cost"]) == (0.5, 2.0)


def test_export(tmp_path, capfd):
    job = write_job(tmp_path, "trials = 3\n" + ECHO)
    main(["tune", str(job), "--quiet"])
    capfd.readouterr()
    trials = said(capfd, "trials", job)
    assert [(t["trial"], t["value"], t["cost"]) for t in trials] == [
        (n, t["params"]["x"], t["params"]["y"]) for n, t in enumerate(trials)
    ]
    assert said(capfd, "export", job, "--format", "json") == trials
    assert main(["export", str(job), "--format", "jsonl"]) == 0
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()] == trials
    assert main(["export", str(job), "--output", str(tmp_path / "out.csv")]) == 0
    assert capfd.readouterr().out == ""
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o600
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [float(row["params.x"]) for row in rows] == [t["params"]["x"] for t in trials]
    assert [float(row["cost"]) for row in rows] == [t["cost"] for t in trials]
    assert "cannot be written" in said(capfd, "export", job, "--output", tmp_path / "no" / "where", status=2)


def test_an_export_is_utf_8_whatever_is_in_it(tmp_path):
    """Half a character comes from a program that prints JSON with an escape; a locale may know neither."""
    job = write_job(tmp_path, "trials = 2\n[parameters]\nx = { low = 0.0, high = 1.0 }\n")
    run("ask", job)
    run("tell", job, input=json.dumps({"trial": 0, "failed": True, "message": "\ud800 \u00e9 \u4e2d"}))
    for form in ("csv", "jsonl"):
        environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(
            [*PBGI, "export", job, "--format", form], capture_output=True, check=True, env=environment
        )
        text = done.stdout.decode("utf-8")
        assert ("\\ud800 \u00e9 \u4e2d" if form == "csv" else "\\ud800 \\u00e9 \\u4e2d") in text


def test_no_cell_is_a_formula(tmp_path, capfd):
    """A spreadsheet runs what begins like one, also after spaces; numbers stay numbers."""
    formulas = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\uff1d1"]
    choices = json.dumps(["plain", *formulas])
    job = write_job(
        tmp_path, f"trials = 20\nseed = 0\n[parameters]\na = {choices}\nx = {{ low = -2.0, high = -1.0 }}\n"
    )
    for number, message in enumerate([*formulas, "no power", "=cmd|' /C calc'!A1"]):
        said(capfd, "ask", job)
        said(capfd, "tell", job, number, "--failed", f"--message={message}")
    assert main(["export", str(job)]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    trials = said(capfd, "trials", job)
    assert {trial["params"]["a"] for trial in trials} & set(formulas)
    for row, trial in zip(rows, trials, strict=True):
        for cell, meant in ((row["message"], trial["message"]), (row["params.a"], trial["params"]["a"])):
            assert cell == ("" if meant in ("plain", "no power") else "'") + meant.replace("\r", "\n")
        assert float(row["params.x"]) == trial["params"]["x"] < 0


def test_a_study_goes_on_in_python_and_back(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 8.0\n" + ECHO)
    main(["tune", str(job), "--budget", "4", "--quiet"])
    capfd.readouterr()
    spent = said(capfd, "status", job)["spent"]
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    study = optuna.load_study(study_name="job", storage=storage, sampler=PBGISampler(budget=8.0, seed=0))
    trial = study.ask()
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.5, 1.5)
    trial.set_user_attr("cost", y)
    study.tell(trial, x)
    storage.engine.dispose()
    main(["tune", str(job), "--quiet"])
    final = json.loads(capfd.readouterr().out)
    assert spent + y < final["spent"] < 8.0 + 1.5  # the cost is learned: the last trial may have cost more
    assert final["trials"]["running"] == 0


def test_foreign_trials_count_against_the_budget(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 8.0\n" + ECHO)
    said(capfd, "ask", job)
    said(capfd, "tell", job, 0, "--value", 1, "--cost", 1)
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    study = optuna.load_study(study_name="job", storage=storage)
    other = optuna.trial.create_trial(value=1.0, user_attrs={"cost": 7.0})
    study.add_trial(other)
    storage.engine.dispose()
    assert "the budget of" in said(capfd, "ask", job, status=4)
    assert said(capfd, "status", job)["spent"] == 8.0


def test_the_recommended_trial_is_one_of_the_study(tmp_path, capfd):
    """Foreign trials, which the model does not see, have numbers too."""
    said(capfd, "ask", write_job(tmp_path, "trials = 9\n" + ECHO))
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    study = optuna.load_study(study_name="job", storage=storage)
    study.add_trial(optuna.trial.create_trial(value=0.0, user_attrs={"cost": 1.0}))
    storage.engine.dispose()
    job = tmp_path / "job.toml"
    assert said(capfd, "tell", job, 0, "--failed", "--cost", 1)["state"] == "failed"
    assert said(capfd, "best", job)["recommended"] is None
    asked = said(capfd, "ask", job)
    said(capfd, "tell", job, asked["trial"], "--value", 0.5, "--cost", 1)
    best = said(capfd, "best", job)
    assert (asked["trial"], best["trial"], best["value"]) == (2, 1, 0.0)
    assert (best["recommended"]["trial"], best["recommended"]["value"]) == (2, 0.5)
    assert best["recommended"]["params"] == asked["params"]


def test_no_study_yet(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 8.0\n" + ECHO)
    for command in ("status", "best", "trials", "export"):
        assert "there is no study yet" in said(capfd, command, job, status=3)
    assert "there is no study yet" in said(capfd, "status", tmp_path / "none.db", status=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.toml"]
    (tmp_path / "empty.db").touch()
    assert "there is no study in it; `pbgi tune`" in said(capfd, "status", tmp_path / "empty.db", status=3)


def test_other_studies_are_told_apart(tmp_path, capfd):
    storage = f"sqlite:///{tmp_path / 'all.db'}"
    for name in ("a.toml", "b.toml"):
        said(capfd, "ask", write_job(tmp_path, "budget = 8.0\n" + ECHO, name), "--storage", storage)
    assert "there are ['a', 'b']" in said(capfd, "status", tmp_path / "all.db", status=2)
    assert said(capfd, "status", tmp_path / "all.db", "--study-name", "b")["study"] == "b"


def test_a_storage_beside_the_job(tmp_path, capfd, monkeypatch):
    """A relative file is meant from the job file, wherever the command is run."""
    job = write_job(tmp_path, "storage = 'sqlite:///mine.db'\nbudget = 8.0\n" + ECHO)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    said(capfd, "ask", job)
    assert (tmp_path / "mine.db").exists()
    said(capfd, "ask", job, "--storage", "sqlite:///here.db")
    assert (tmp_path / "sub" / "here.db").exists()
