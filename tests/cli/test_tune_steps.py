"""`pbgi tune` for trials that may stop early: what is decided, and how trials go on."""

import json
import math
import os
import stat
import sys
from pathlib import Path

import pytest
from cli_runs import engine_trials, run, trials_in
from optuna.trial import TrialState as StudyState
from step_runs import decide, job_in, never, price_of, records

import pbgi
from pbgi import TrialState
from pbgi.cli import choosing

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune_steps"
# Of three trials the first comes to its end, the second is stopped and goes on next, and then there is a third.
GOES_ON = "trials = 3\nn_startup_trials = 1\nresumable = true\nbudget = 100.0\n"


@pytest.fixture
def resumes(monkeypatch):
    """A stopped trial goes on next, whatever it is worth."""

    def first_stopped(state, _snapshot):
        return next((trial.number for trial in state.trials if trial.state is TrialState.STOPPED), None)

    monkeypatch.setattr("pbgi.choosing.choice.worth_resuming", first_stopped)


# As an optimizer does it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumable", [False, True])
def test_a_run_does_what_an_optimizer_does(tmp_path, monkeypatch, resumable):
    """The same points, stopped at the same steps, for the same costs, some of them going on later."""
    head = f"budget = 16.0\nresumable = {str(resumable).lower()}\n"
    job = job_in(tmp_path, head)
    decide(monkeypatch, tmp_path)
    done = run("tune", job)
    optimizer = pbgi.Optimizer(
        {"x": pbgi.Float(0, 1)}, budget=16.0, seed=1, steps=pbgi.Steps(8, (2, 4, 8), resumable=resumable)
    )
    n_asked = 0
    while optimizer.should_stop() is None:
        trial, n_asked = optimizer.ask(), n_asked + 1
        x = trial.params["x"]
        for step in range(trial.step + 1, 9):
            price = 0.5 if x < 0.5 else 0.25
            optimizer.report(trial, step, (x - 0.25) ** 2 + 2.0**-step, cost=price * step)
            if not optimizer.should_continue(trial):
                optimizer.stop(trial)
                break

    def said(trials):  # of steps between two decisions a run stores none
        return [(t.params, t.state, t.value, t.charged, [r for r in t.reports if r.step in (2, 4, 8)]) for t in trials]

    found = engine_trials(tmp_path)
    assert said(found) == said(optimizer.trials)
    assert {t.state for t in found} == {TrialState.COMPLETE, TrialState.STOPPED}
    assert len(trials_in(tmp_path / "job.db")) == n_asked
    status = json.loads(done.stdout)
    assert status["spent"] == optimizer.spent <= 16.0
    assert status["trials"]["stopped"] == sum(t.state is TrialState.STOPPED for t in found)


# Stopping ------------------------------------------------------------------------------------------------------------


def test_a_stopped_trial_is_shown_and_charged(tmp_path, monkeypatch):
    job = job_in(tmp_path, "trials = 2\n")
    decide(monkeypatch, tmp_path, lambda at: at != (1, 4))
    done = run("tune", job)
    whole, stopped = records(job)
    assert (whole["state"], whole["step"], whole["cost"]) == ("complete", 8, 8 * price_of(whole))
    assert (stopped["state"], stopped["step"], stopped["value"]) == ("stopped", 4, None)
    assert stopped["value_at_step"] == (stopped["params"]["x"] - 0.25) ** 2 + 2.0**-4
    assert stopped["cost"] == 4 * price_of(stopped)
    assert stopped["message"] == "what was left after step 4 of 8 was not worth its price"
    assert (
        f"trial 1: stopped at step 4, value {stopped['value_at_step']:.6g}, cost {stopped['cost']:.4g}\n" in done.stderr
    )
    said = json.loads(done.stdout)
    assert said["trials"] == {"complete": 1, "failed": 0, "running": 0, "stopped": 1}
    assert said["spent"] == whole["cost"] + stopped["cost"]
    states = [trial.state for trial in trials_in(tmp_path / "job.db")]
    assert states == [StudyState.COMPLETE, StudyState.PRUNED]
    assert "1 stopped" in json_free(run("report", job, "-o", tmp_path / "report.html"), tmp_path)
    assert run("export", job, "--format", "csv").stdout.splitlines()[2].startswith("1,stopped,,")


def json_free(_done, folder):
    return (folder / "report.html").read_text()


def test_stopped_trials_are_no_failures(tmp_path, monkeypatch):
    job = job_in(tmp_path, "trials = 4\nmax_failures = 1\n")
    decide(monkeypatch, tmp_path, never)
    said = json.loads(run("tune", job, status=1).stdout)
    assert said["trials"] == {"complete": 0, "failed": 0, "running": 0, "stopped": 4}
    assert said["stop_reason"] == "Reached the limit of 4 trials"


def test_what_ignores_the_signal_is_killed_and_charged(tmp_path, monkeypatch):
    monkeypatch.setattr("pbgi.cli.program.command.GRACE", 0.4)
    before = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    job = job_in(tmp_path, "trials = 1\n", ('cost = "cost"\n', ""), before=before)
    decide(monkeypatch, tmp_path, never)
    run("tune", job, status=1)
    (trial,) = trials_in(tmp_path / "job.db")
    assert trial.state is StudyState.PRUNED
    reported = trial.user_attrs["pbgi:step_costs"]["2"]
    assert trial.user_attrs["cost"] == trial.user_attrs["pbgi:seconds"] >= reported + 0.4


def test_one_that_comes_to_its_end_all_the_same_is_complete(tmp_path, monkeypatch):
    before = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    job = job_in(tmp_path, "trials = 1\n", body="report(step)\n    time.sleep(0.6 * (step == 2))", before=before)
    decide(monkeypatch, tmp_path, never)
    run("tune", job)
    (trial,) = records(job)
    assert (trial["state"], trial["step"], trial["value"]) == ("complete", 8, trial["value_at_step"])
    assert trial["message"] is None


@pytest.mark.usefixtures("resumes")
def test_with_a_formula_a_share_of_it_is_charged(tmp_path, monkeypatch):
    """It goes on later, and has then cost what the formula says, once."""
    job = job_in(tmp_path, GOES_ON, ('cost = "cost"', 'cost = "8 + 0 * x"'))
    decide(monkeypatch, tmp_path, lambda at: at[0] != 1)
    said = json.loads(run("tune", job).stdout)
    assert [trial["cost"] for trial in records(job)] == pytest.approx([8.0, 0.0, 8.0, 8.0])
    assert [trial["state"] for trial in records(job)] == ["complete", "stopped", "complete", "complete"]
    assert said["spent"] == pytest.approx(24.0)
    job = job_in(tmp_path / "stopped", "trials = 2\n", ('cost = "cost"', 'cost = "8 + 0 * x"'))
    decide(monkeypatch, tmp_path / "stopped", never)
    run("tune", job, status=1)
    assert [trial["cost"] for trial in records(job)] == pytest.approx([2.0, 2.0])


def test_the_example_of_the_page(tmp_path):
    """The page shows it as it is, and it runs."""
    page = (EXAMPLE.parents[1] / "docs" / "command-line.md").read_text()
    for path in EXAMPLE.iterdir():
        assert f"\n{path.read_text()}```\n" in page
        (tmp_path / path.name).write_text(path.read_text().replace("sample(16000", "sample(1600"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = json.loads(run("tune", tmp_path / "job.toml", "--budget", 2, env=environment).stdout)
    assert said["best"]["step"] == 27
    assert said["best"]["value"] == said["best"]["value_at_step"] < math.log(2.0)  # what knowing nothing loses
    assert said["spent"] <= 3.0
    done = json.loads(next((tmp_path / "job.trials").glob("0-*/checkpoint/weights.json")).read_text())[0]
    assert done == 27


# Going on ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("resumes")
def test_a_stopped_trial_goes_on_with_its_checkpoint(tmp_path, monkeypatch):
    job = job_in(tmp_path, GOES_ON)
    decide(monkeypatch, tmp_path, lambda at: at[0] != 1)
    done = run("tune", job)
    said = json.loads(done.stdout)
    whole, replaced, trial, third = records(job)
    assert f"trial 2 (going on with 1): value {trial['value']:.6g}, cost {trial['cost']:.4g}\n" in done.stderr
    assert (trial["goes_on_with"], trial["state"], trial["step"]) == (1, "complete", 8)
    assert (trial["params"], replaced["state"], replaced["cost"]) == (replaced["params"], "stopped", 0.0)
    assert trial["cost"] == 8 * price_of(trial)
    assert said["spent"] == whole["cost"] + trial["cost"] + third["cost"]
    assert said["trials"] == {"complete": 3, "failed": 0, "running": 0, "stopped": 0}
    (folder,) = (tmp_path / "job.trials").glob("1-*")
    assert stat.S_IMODE((folder / "checkpoint").stat().st_mode) == 0o700
    assert (folder / "checkpoint" / "state").read_text().split() == [str(step) for step in range(1, 9)]
    _, seen, _ = engine_trials(tmp_path)
    assert (seen.state, seen.cost, seen.charged) == (TrialState.COMPLETE, 8 * price_of(trial), 8 * price_of(trial))
    assert [report.step for report in seen.reports] == [2, 4, 8]


@pytest.mark.usefixtures("resumes")
def test_it_may_be_stopped_and_go_on_several_times(tmp_path, monkeypatch):
    job = job_in(tmp_path, GOES_ON)
    decide(monkeypatch, tmp_path, lambda at: at not in ((1, 2), (2, 4)))
    run("tune", job)
    _, _, second, last, _ = records(job)
    assert [trial["state"] for trial in records(job)] == ["complete", "stopped", "stopped", "complete", "complete"]
    assert (second["goes_on_with"], last["goes_on_with"]) == (1, 2)
    _, seen, _ = engine_trials(tmp_path)
    assert (seen.params, seen.charged) == (last["params"], 8 * price_of(last))
    (folder,) = (tmp_path / "job.trials").glob("1-*")
    assert (folder / "checkpoint" / "state").read_text().split() == [str(step) for step in range(1, 9)]


@pytest.mark.usefixtures("resumes")
def test_without_its_checkpoint_it_begins_again_and_is_charged_once(tmp_path, monkeypatch):
    job = job_in(tmp_path, GOES_ON, body="report(step)\n    wait(step) if step in (2, 4) else None")
    decide(monkeypatch, tmp_path, lambda at: at[0] != 1)
    done = run("tune", job)
    whole, lost, again = records(job)
    assert "trial 1: its checkpoint is gone, so it begins again as trial 2\n" in done.stderr
    assert again["params"] == lost["params"]
    assert [trial["cost"] for trial in (lost, again)] == [2 * price_of(lost), 8 * price_of(again)]
    assert json.loads(done.stdout)["spent"] == sum(trial["cost"] for trial in (whole, lost, again))
    states = [trial.state for trial in engine_trials(tmp_path)]
    assert states == [TrialState.COMPLETE, TrialState.INTERRUPTED, TrialState.COMPLETE]


def test_it_does_not_begin_again_where_it_cannot_be_paid():
    optimizer = pbgi.Optimizer({"x": pbgi.Float(0, 1)}, budget=14.0, steps=pbgi.Steps(8, resumable=True), seed=0)
    whole, lost = optimizer.ask(), optimizer.ask()
    optimizer.tell(whole, 1.0, cost=8.0)
    optimizer.report(lost, 1, 1.0, cost=1.0)
    optimizer.stop(lost)
    changed, again = choosing._without_checkpoint(optimizer, optimizer.trials[1])
    assert again is None
    assert [trial.state for trial in changed.trials] == [TrialState.COMPLETE, TrialState.INTERRUPTED]
    assert changed.spent == 9.0
