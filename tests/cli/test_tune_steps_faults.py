"""`pbgi tune` for trials that may stop early: interruptions, several workers, and what programs do wrong."""

import json
import math
import signal

import pytest
from cli_runs import engine_trials, run, start, trials_in, wait_for, write_job
from optuna.trial import TrialState as StudyState
from step_runs import BODY, always, decide, job_in, price_of, records

from pbgi import TrialState
from pbgi.cli.tune import Tuner

# Interruptions -------------------------------------------------------------------------------------------------------


def interrupted(job, after, number=signal.SIGINT):
    """Run it, and interrupt it when some trial has reported a step."""

    def look(tuner):
        if any(running.way.reports and running.way.reports[-1].step >= after for running in tuner._running.values()):
            signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tuner, "_beat", look)
        return run("tune", job, status=128 + number)


# Hangs at its third step until it is ended, but for a run that began later or finds the folder marked.
HANGS = (
    BODY
    + """
    while step == 3 and not (folder / "again").exists():
        time.sleep(0.01)"""
)


@pytest.mark.parametrize("resumable", [False, True])
def test_ctrl_c_keeps_what_was_reported(tmp_path, monkeypatch, resumable):
    """The next run goes on from the checkpoint where that is said to work, else it begins again; both are charged."""
    job = job_in(tmp_path, f"trials = 1\nresumable = {str(resumable).lower()}\n", body=HANGS)
    decide(monkeypatch, tmp_path, always)
    interrupted(job, 3)
    (trial,) = trials_in(tmp_path / "job.db")
    assert (trial.state, sorted(trial.intermediate_values)) == (StudyState.RUNNING, [2, 3])
    (folder,) = (tmp_path / "job.trials").glob("0-*")
    (folder / "again").touch()
    run("tune", job)
    (trial,) = records(job)
    price = price_of(trial)
    done = (folder / "checkpoint" / "state").read_text().split()
    assert done == [*"123", *("45678" if resumable else "12345678")]
    assert trial["cost"] == 8 * price + (0.0 if resumable else 3 * price)
    (seen,) = engine_trials(tmp_path)
    assert (seen.state, seen.cost, seen.charged) == (TrialState.COMPLETE, 8 * price, trial["cost"])
    # As in one undisturbed run.
    assert [(r.step, r.cost) for r in seen.reports if r.step != 3] == [(k, k * price) for k in (2, 4, 8)]


def test_a_trial_that_was_put_back_without_a_checkpoint_says_so(tmp_path, monkeypatch):
    body = HANGS.replace('(checkpoint / "state").open("a").write(f"{step} ")\n    ', "")
    job = job_in(tmp_path, "trials = 1\nresumable = true\n", body=body)
    decide(monkeypatch, tmp_path, always)
    interrupted(job, 3)
    (folder,) = (tmp_path / "job.trials").glob("0-*")
    (folder / "again").touch()
    done = run("tune", job)
    assert "trial 0: its checkpoint is gone; it begins again, what it cost is charged\n" in done.stderr
    assert records(job)[0]["cost"] == 11 * price_of(records(job)[0])


def test_after_kill_9_it_has_failed_and_what_it_reported_is_kept(tmp_path):
    """It is charged what it was known to have cost."""
    job = job_in(tmp_path, "trials = 1\nbudget = 100.0\n")
    worker = start("tune", job)
    wait_for(lambda: (tmp_path / "job.db").exists() and _intermediate(tmp_path))
    worker.kill()
    worker.communicate()
    run("tune", job, status=1)
    (trial,) = trials_in(tmp_path / "job.db")
    assert (trial.state, sorted(trial.intermediate_values)) == (StudyState.FAIL, [2])
    assert trial.user_attrs["cost"] == trial.user_attrs["pbgi:step_costs"]["2"] == 2 * price_of(records(job)[0])
    (seen,) = engine_trials(tmp_path)
    assert (seen.state, [report.step for report in seen.reports]) == (TrialState.FAILED, [2])


def _intermediate(folder):
    try:
        return [trial for trial in trials_in(folder / "job.db") if trial.intermediate_values]
    except Exception:  # it is being made
        return []


def test_several_workers_keep_to_one_budget(tmp_path):
    """Nobody decides for a trial of another, and nothing is run twice."""
    head = "budget = 6.0\nparallel = 2\nresumable = true\nn_startup_trials = 2\n"
    body = BODY.split("    if step")[0] + "    time.sleep(0.05)"
    job = job_in(tmp_path, head, ('cost = "cost"\n', ""), body=body)
    workers = [start("tune", job) for _ in range(2)]
    shown = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], shown
    trials = trials_in(tmp_path / "job.db")
    assert all(trial.state.is_finished() for trial in trials)
    said = json.loads(run("status", job).stdout)
    assert said["spent"] <= 6.0 + 0.5
    went_on = [number for trial in trials for number in trial.system_attrs.get("pbgi:goes_on", [])[-1:]]
    assert len(went_on) == len(set(went_on))
    replaced = {number for trial in trials for number in trial.system_attrs.get("pbgi:goes_on", [])}
    costs = [trial.user_attrs["cost"] for trial in trials if trial.number not in replaced]
    assert said["spent"] == math.fsum(costs)


# What programs do wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("report(step, math.nan)", "the value of step 3 must be finite; got nan"),
        ("report(2)", "must rise, and none is reported twice with another value or cost; got step 2 after step 3"),
        ("report(9)", "step must not exceed the last one, 8; got 9"),
        ("report(step, 0.0, 0.25)", "must not shrink"),
    ],
)
def test_a_wrong_report_fails_the_trial(tmp_path, monkeypatch, wrong, rule):
    """The command is ended, charged and not run again: it would do it again."""
    body = "report(step)\n    if step == 2: wait(step)\n    if step == 3:\n        WRONG\n        time.sleep(60)"
    if "nan" in wrong or "0.25" in wrong:
        body = body.replace("report(step)\n", "if step != 3: report(step)\n", 1)
    job = job_in(tmp_path, "trials = 1\nretries = 2\n", body=body.replace("WRONG", wrong), before="import math")
    decide(monkeypatch, tmp_path, always)
    run("tune", job, status=1)
    (trial,) = records(job)
    assert (trial["state"], trial["value"]) == ("failed", None)
    assert trial["message"].startswith("the command must report its steps as they are done; ")
    assert rule in trial["message"]
    assert trial["cost"] >= 2 * price_of(trial)
    assert "pbgi:attempts" not in trials_in(tmp_path / "job.db")[0].user_attrs


def test_one_that_ends_too_soon_has_no_result(tmp_path, monkeypatch):
    job = job_in(tmp_path, "trials = 1\n", body=BODY + "\n    if step == 4: sys.exit()")
    decide(monkeypatch, tmp_path, always)
    run("tune", job, status=1)
    (trial,) = records(job)
    assert trial["message"].endswith("there is none; it has reported step 4 of 8")
    assert trial["cost"] == 4 * price_of(trial)


def test_one_that_knows_that_it_is_done_says_so(tmp_path, monkeypatch):
    """A result without a step is the value, however far the program has come."""
    done = '\n    if step == 4:\n        print(json.dumps({"value": 0.5, "cost": 7}))\n        sys.exit()'
    job = job_in(tmp_path, "trials = 1\n", body=BODY + done)
    decide(monkeypatch, tmp_path, always)
    run("tune", job)
    (trial,) = records(job)
    assert (trial["value"], trial["cost"], trial["step"]) == (0.5, 7.0, 4)


def test_the_result_may_be_in_a_file(tmp_path, monkeypatch):
    done = '\n    if step == 8: (folder / "result.json").write_text(\'{"value": 0.5, "cost": 7}\')'
    job = job_in(tmp_path, 'trials = 1\nresult_file = "result.json"\n', body=BODY + done)
    decide(monkeypatch, tmp_path, always)
    run("tune", job)
    (trial,) = records(job)
    assert (trial["value"], trial["cost"], trial["step"]) == (0.5, 7.0, 8)


def test_the_length_of_trials_stays_as_it_is(tmp_path, monkeypatch):
    job = job_in(tmp_path, "trials = 1\n")
    decide(monkeypatch, tmp_path, always)
    run("tune", job)
    text = job.read_text()
    write_job(tmp_path, text.replace("[2, 4, 8]", "[2, 4, 9]"))
    done = run("tune", job, status=2)
    assert "steps must stay as in study 'job', 8; got 9; change it back" in done.stderr
    write_job(tmp_path, text.replace("[2, 4, 8]", "[3, 8]").replace("trials = 1", "trials = 1\nresumable = true"))
    run("tune", job)


def test_a_failed_attempt_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    """What the first attempt has cost is part of the way, and charged once."""
    crash = '\n    if step == 3 and not begun: sys.exit("out of memory")'
    job = job_in(tmp_path, "trials = 1\nretries = 1\nresumable = true\n", body=BODY + crash)
    decide(monkeypatch, tmp_path, always)
    done = run("tune", job)
    assert (
        "trial 0: attempt 1 failed, trying again: the command ended with exit code 1\n    out of memory" in done.stderr
    )
    (trial,), (seen,) = records(job), engine_trials(tmp_path)
    price = price_of(trial)
    assert (trial["state"], trial["cost"], seen.cost) == ("complete", 8 * price, 8 * price)
    assert [(r.step, r.cost) for r in seen.reports if r.step != 3] == [(k, k * price) for k in (2, 4, 8)]
