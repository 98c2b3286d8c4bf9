"""`pbgi tune` that is told to end: what ran is tried again, and the run goes on as if nothing had happened."""

import json
import signal

import pytest
from cli_runs import ECHO, run, trials_in, write_job
from optuna.trial import TrialState

from pbgi.cli.tune import Tuner

# Trials with the numbers in a file hang the first time, once they have said so.
HANGING = """
if grep -qx "$1" hanging && ! test -e "$PBGI_FOLDER/again"; then touch "$PBGI_FOLDER/again"; sleep 60; fi
echo "{\\"value\\": $2, \\"cost\\": $3}"
"""


def hanging_job(folder, *numbers, head="trials = 9\n", script=HANGING):
    folder.mkdir(exist_ok=True)
    (folder / "hanging").write_text("".join(f"{number}\n" for number in numbers))
    (folder / "run.sh").write_text(script)
    command = 'command = ["sh", "run.sh", "{pbgi.trial}", "{x}", "{y}"]'
    return write_job(folder, head + ECHO.replace(ECHO.splitlines()[1], command))


def interrupted(job, number=signal.SIGINT):
    """Run it, and interrupt it as soon as a command that is under way has said that it hangs."""

    def look(tuner):
        for running in tuner._running.values():
            if (running.attempt.plan.folder / "again").exists() and not running.paid.n_interrupted:
                signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tuner, "_beat", look)
        return run("tune", job, status=128 + number)


def points(folder):
    return [(trial.state, trial.params, trial.value) for trial in trials_in(folder / "job.db")]


def test_an_interrupted_run_has_the_points_of_an_undisturbed_one(tmp_path):
    """Interrupted in its first points and where a model chooses; what it has cost does not depend on the clock."""
    run("tune", hanging_job(tmp_path / "undisturbed"))
    job = hanging_job(tmp_path / "disturbed", 1, 7)
    for number in (1, 7):
        said = interrupted(job)
        assert f"trial {number}: not ended, cost so far " in said.stderr
        assert json.loads(said.stdout)["trials"] == {"complete": number, "failed": 0, "running": 1}
    run("tune", job)
    assert points(tmp_path / "disturbed") == points(tmp_path / "undisturbed")
    n_attempts = [len(t.user_attrs.get("pbgi:attempts", [])) for t in trials_in(tmp_path / "disturbed" / "job.db")]
    assert n_attempts == [0, 1, 0, 0, 0, 0, 0, 1, 0]


def test_a_worker_of_another_machine_takes_the_point_up(tmp_path, monkeypatch):
    job = hanging_job(tmp_path / "job", 0, head="trials = 1\n")
    elsewhere = {"machine": "another", "boot": "another", "namespace": "another"}
    with monkeypatch.context() as patched:
        patched.setattr("pbgi.cli.processes._place", lambda: elsewhere)
        interrupted(job)
    run("tune", job)
    ((state, params, value),) = points(tmp_path / "job")
    assert (state, value) == (TrialState.COMPLETE, params["x"])


def test_an_interruption_is_none_of_the_retries(tmp_path):
    """The first attempt fails, the second is interrupted, and the third, the only retry that counts, gives a value."""
    script = 'test -e "$PBGI_FOLDER/seen" || { touch "$PBGI_FOLDER/seen"; exit 1; }'
    job = hanging_job(tmp_path / "job", 0, head="trials = 1\nretries = 1\n", script=script + HANGING)
    interrupted(job)
    run("tune", job)
    (trial,) = trials_in(tmp_path / "job" / "job.db")
    assert trial.value == trial.params["x"]
    assert [attempt["interrupted"] for attempt in trial.user_attrs["pbgi:attempts"]] == [False, True]
    assert trial.user_attrs["pbgi:observed"] == trial.params["y"]


def test_a_point_that_was_put_back_can_be_given_up(tmp_path):
    """It has cost what its attempt took, and nothing that was expected of it."""
    job = hanging_job(tmp_path / "job", 0, head="trials = 1\nbudget = 50.0\nprice_per_second = 2.0\n")
    interrupted(job)
    (trial,) = trials_in(tmp_path / "job" / "job.db")
    (attempt,) = trial.user_attrs["pbgi:attempts"]
    assert attempt["cost"] == pytest.approx(2.0 * attempt["seconds"])
    told = json.loads(run("tell", job, 0, "--failed").stdout)
    assert (told["state"], told["cost"]) == ("failed", attempt["cost"])
    assert json.loads(run("tune", job, status=1).stdout)["trials"] == {"complete": 0, "failed": 1, "running": 0}
