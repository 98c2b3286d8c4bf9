"""Trials that may stop early, in scripts: `pbgi ask`, `pbgi tell --step`."""

import json

import pytest
from cli_runs import engine_trials, run, write_job

import pbgi
from pbgi import TrialState

JOB = """
steps = [2, 4, 8]
budget = 100.0
seed = 1
cost = "cost"
n_startup_trials = 1
[parameters]
x = { low = 0.0, high = 1.0 }
"""


def asked(job):
    return json.loads(run("ask", job).stdout)


def told(job, number, *flags):
    return json.loads(run("tell", job, number, *flags).stdout)


def refused(job, number, *flags):
    return run("tell", job, number, *flags, status=2).stderr


def step(n, value, cost):
    return ("--step", n, "--value", value, "--cost", cost)


@pytest.fixture
def decides(monkeypatch):
    """Only the trials with these numbers go on."""
    going_on = set()
    monkeypatch.setattr("pbgi.cli.scripts.goes_on", lambda _study, number: number in going_on)
    return going_on


def test_the_answer_says_whether_a_trial_goes_on(tmp_path, decides):
    job = write_job(tmp_path, JOB)
    decides.add(0)
    assert asked(job).keys() == {"trial", "params", "predicted_cost"}
    assert [told(job, 0, *step(n, 1.0 / n, n))["state"] for n in (1, 2, 5)] == ["running"] * 3
    whole = told(job, 0, *step(8, 0.125, 8))
    assert (whole["state"], whole["value"], whole["cost"], whole["step"]) == ("complete", 0.125, 8.0, 8)
    asked(job)
    assert told(job, 1, *step(1, 3.0, 1))["state"] == "running"
    stopped = told(job, 1, *step(3, 2.0, 2.5))
    assert (stopped["state"], stopped["cost"], stopped["value_at_step"]) == ("stopped", 2.5, 2.0)
    assert stopped["message"] == "what was left after step 3 of 8 was not worth its price"
    status = json.loads(run("status", job).stdout)
    assert (status["spent"], status["trials"]["stopped"]) == (10.5, 1)
    seen = engine_trials(tmp_path)
    assert [trial.state for trial in seen] == [TrialState.COMPLETE, TrialState.STOPPED]
    assert seen[1].reports == (pbgi.Report(1, 3.0, None), pbgi.Report(3, 2.0, 2.5))


def test_the_model_decides(tmp_path):
    """Three trials end near 0; the next one is at 1000 after half of its steps, which is not worth the rest."""
    job = write_job(tmp_path, JOB)
    for number in range(3):
        asked(job)
        for n in (2, 4, 8):
            told(job, number, *step(n, 1.0 / n + 0.01 * number, n))
    asked(job)
    assert told(job, 3, *step(4, 1000.0, 4))["state"] == "stopped"


def test_a_stopped_trial_is_handed_out_again(tmp_path, decides, monkeypatch):
    def first_stopped(state, _snapshot):
        return next((trial.number for trial in state.trials if trial.state is TrialState.STOPPED), None)

    monkeypatch.setattr("pbgi.choosing.choice.worth_resuming", first_stopped)
    job = write_job(tmp_path, "resumable = true" + JOB)
    decides |= {0, 2}
    for number in (0, 1):
        asked(job)
        told(job, number, *step(2, 1.0, 2))
    told(job, 0, *step(8, 0.5, 8))
    again = asked(job)
    assert (again["trial"], again["goes_on_with"], again["step"], again["cost"]) == (2, 1, 2, 2.0)
    assert again["params"] == json.loads(run("trials", job).stdout)[1]["params"]
    done = told(job, 2, *step(8, 0.25, 9))
    assert (done["state"], done["cost"]) == ("complete", 9.0)
    assert json.loads(run("status", job).stdout)["spent"] == 17.0


def test_telling_the_same_twice_changes_nothing(tmp_path, decides):
    job = write_job(tmp_path, JOB)
    decides.add(0)
    for number, last in ((0, 8), (1, 2)):
        asked(job)
        first = [told(job, number, *step(n, 0.5, n)) for n in (1, last)]
        assert told(job, number, *step(last, 0.5, last)) == first[-1]
    assert "trial 1 has ended and stays as it is: stopped; got step 4" in refused(job, 1, *step(4, 0.5, 4))


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (step(3, 0.5, 4), "steps that trial 0 reports must rise"),
        (step(4, 0.25, 4), "none is reported twice with another value or cost; got step 4 after step 4"),
        (step(9, 0.5, 9), "step must not exceed the last one, 8; got 9"),
        (step(0, 0.5, 9), "step must be"),
        (step(5, 0.5, 3), "must not shrink; got 3.0 after 4.0"),
        (("--step", 5, "--value", 0.5), "cost must be told, since the budget counts it"),
        (("--value", 0.5, "--cost", 3), "the cost of trial 0 must be at least what it has reported, 4; got 3"),
    ],
)
def test_what_breaks_a_rule_is_refused(tmp_path, decides, flags, rule):
    job = write_job(tmp_path, JOB)
    decides.add(0)
    asked(job)
    told(job, 0, *step(4, 0.5, 4))
    before = run("trials", job).stdout
    assert rule in refused(job, 0, *flags)
    assert run("trials", job).stdout == before


def test_a_value_that_is_none_fails_the_trial(tmp_path):
    job = write_job(tmp_path, JOB)
    asked(job)
    failed = told(job, 0, *step(3, "nan", 2))
    assert (failed["state"], failed["cost"]) == ("failed", 2.0)
    assert failed["message"] == "the value of a trial must be finite; got nan"


@pytest.mark.usefixtures("decides")
def test_a_formula_says_what_a_step_costs(tmp_path):
    job = write_job(tmp_path, JOB.replace('cost = "cost"', 'cost = "8 + x"'))
    x = asked(job)["params"]["x"]
    assert told(job, 0, "--step", 2, "--value", 0.5)["cost"] == pytest.approx((8.0 + x) / 4)


def test_a_study_without_steps_knows_none(tmp_path):
    job = write_job(tmp_path, JOB.replace("steps = [2, 4, 8]\n", ""))
    asked(job)
    assert "step must go with steps = n in the job" in refused(job, 0, *step(3, 0.5, 2))
