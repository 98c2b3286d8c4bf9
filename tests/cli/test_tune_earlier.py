"""`pbgi tune --from`: trials of an earlier study inform, are free, and are added once."""

import json

import optuna
import pytest
from cli_runs import ECHO, write_job

from pbgi.cli import main


def tune(capfd, *arguments, status=0):
    code = main(["tune", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert code == status, err
    return (json.loads(out) if code == 0 else None), err


def trials_of(capfd, job):
    assert main(["trials", str(job)]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.fixture
def old(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 5.0\n" + ECHO, "old.toml")
    tune(capfd, job)
    return [trial for trial in trials_of(capfd, job) if trial["state"] == "complete"]


def test_they_inform_and_are_free(tmp_path, capfd, old):
    job = write_job(tmp_path, "budget = 3.0\n" + ECHO, "new.toml")
    ended, err = tune(capfd, job, "--from", tmp_path / "old.db")
    assert f"from study 'old': {len(old)} trials are known and free" in err
    trials = trials_of(capfd, job)
    known, own = trials[: len(old)], trials[len(old) :]
    assert [(t["params"], t["value"]) for t in known] == [(t["params"], t["value"]) for t in old]
    assert all(t["cost"] == 0.0 for t in known)
    assert ended["spent"] == pytest.approx(sum(t["cost"] for t in own))
    assert ended["spent"] <= 3.0
    assert own[0]["predicted_cost"] is not None, "costs are known too"
    _, err = tune(capfd, job, "--from", tmp_path / "old.db", "--budget", "4.5")
    assert f"0 trials are known and free, {len(old)} were there already" in err
    assert len(trials_of(capfd, job)) > len(trials)


def test_another_space(tmp_path, capfd, old):
    """One parameter more, one less: taken where the user says what it was, and that it makes no difference."""
    changed = ECHO.replace("y = { low = 0.5, high = 1.5 }", "z = [1, 2]").replace("{y}", "{z}")
    job = write_job(tmp_path, "trials = 1\n" + changed, "new.toml")
    _, err = tune(capfd, job, "--from", tmp_path / "old.db")
    assert f"0 trials are known and free, {len(old)} do not fit the parameters" in err
    _, err = tune(capfd, job, "--from", tmp_path / "old.db", "--fill", "z=2", "--ignore", "y")
    assert f"{len(old)} trials are known and free" in err
    assert [t["params"] for t in trials_of(capfd, job)[-len(old) :]] == [{"x": t["params"]["x"], "z": 2} for t in old]


def test_a_study_of_optuna(tmp_path, capfd):
    study = optuna.create_study(study_name="o", storage=f"sqlite:///{tmp_path}/o.db")
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0.5, 1.5), n_trials=3)
    job = write_job(tmp_path, "trials = 1\n" + ECHO, "new.toml")
    ended, _ = tune(capfd, job, "--from", tmp_path / "o.db")
    assert ended["trials"]["complete"] == 4


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--fill", "z=1"], "must go with --from"),
        (["--from", "old.db", "--fill", "z"], "--fill must be NAME=VALUE"),
        (["--from", "old.db", "--ignore", "x"], "must name parameters that the space does not have"),
        (["--from", "old.db", "--from-name", "other"], "other"),
    ],
)
def test_what_is_refused(tmp_path, capfd, old, monkeypatch, arguments, rule):
    assert old
    monkeypatch.chdir(tmp_path)
    code = main(["tune", str(write_job(tmp_path, "trials = 1\n" + ECHO, "new.toml")), *arguments])
    assert code != 0
    assert rule in capfd.readouterr().err


def test_another_direction_is_refused(tmp_path, capfd, old):
    assert old
    job = write_job(tmp_path, 'trials = 1\ndirection = "maximize"\n' + ECHO, "new.toml")
    _, err = tune(capfd, job, "--from", tmp_path / "old.db", status=2)
    assert "--from must be a study to maximize; got 'old', to minimize" in err
