"""Commands that cannot be started cost nothing, and commands that fail again and again end a run."""

import errno
import json
import os
import sys

import pytest
from cli_runs import ECHO, assert_sound, trials_in, write_job

from pbgi.cli import main
from pbgi.cli.processes import Guard
from pbgi.cli.program import command

SPACE = "[parameters]\nx = { low = 0.0, high = 1.0 }\n"


def tune(capfd, job, status, *arguments):
    code = main(["tune", str(job), *arguments])
    out, err = capfd.readouterr()
    assert code == status, err
    assert "Traceback" not in err
    return json.loads(out) if out else None, err


def test_nothing_is_charged_where_no_folder_can_be_made(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 100.0\n" + ECHO)
    (tmp_path / "job.trials").write_text("in the way")
    said, err = tune(capfd, job, 3)
    assert said["spent"] == 0.0
    assert said["trials"] == {"complete": 0, "failed": 0, "running": 1}
    assert "could not be started" in said["stop_reason"]
    assert said["stop_reason"] in err
    (tmp_path / "job.trials").unlink()
    tune(capfd, job, 0, "--budget", "3")
    trials = assert_sound(write_job(tmp_path, "budget = 3.0\n" + ECHO), "")
    assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials]


def fails_from(monkeypatch, n, error):
    """The disk is full from the nth start on."""
    make_folder, calls = command.make_folder, []

    def fails(path):
        calls.append(path)
        if len(calls) >= n:
            raise error
        return make_folder(path)

    monkeypatch.setattr("pbgi.cli.program.command.make_folder", fails)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "job.trials")


def test_what_runs_may_end_when_the_disk_is_full(tmp_path, capfd, monkeypatch):
    text = ECHO.replace('["echo", ', "['sh', '-c', 'sleep 0.3; echo \"$1\"', 'sh', ")
    job = write_job(tmp_path, "trials = 9\nparallel = 3\n" + text)
    with monkeypatch.context() as patched:
        fails_from(patched, 3, FULL)
        said, _ = tune(capfd, job, 3)
    assert said["trials"] == {"complete": 2, "failed": 0, "running": 1}
    assert "No space left on device" in said["stop_reason"]
    trials = trials_in(tmp_path / "job.db")
    assert said["spent"] == sum(trial.params["y"] for trial in trials[:2])
    tune(capfd, job, 0)
    trials = assert_sound(job, "", in_order=False)
    assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials]
    assert len(trials) == 9


def test_an_attempt_that_cannot_start_keeps_the_charge_of_those_before(tmp_path, capfd, monkeypatch):
    text = ECHO.replace('["echo", ', "['sh', '-c', 'echo \"$1\"; exit 1', 'sh', ")
    job = write_job(tmp_path, "trials = 9\nretries = 5\n" + text)
    with monkeypatch.context() as patched:
        fails_from(patched, 3, FULL)
        said, _ = tune(capfd, job, 3)
    (trial,) = trials_in(tmp_path / "job.db")
    assert said["trials"] == {"complete": 0, "failed": 0, "running": 1}
    assert [attempt["cost"] for attempt in trial.user_attrs["pbgi:attempts"]] == [trial.params["y"]] * 2
    said, _ = tune(capfd, write_job(tmp_path, "trials = 1\nretries = 5\n" + text), 1)
    assert said["trials"] == {"complete": 0, "failed": 1, "running": 0}
    assert said["spent"] == pytest.approx(6 * trial.params["y"], rel=1e-12)


def test_a_program_that_vanishes(tmp_path, capfd):
    program = tmp_path / "program"
    text = f"#!{sys.executable}\nimport os, sys\nprint(1)\nif os.environ['PBGI_TRIAL'] == '1': os.unlink(sys.argv[0])\n"
    program.write_text(text)
    program.chmod(0o700)
    job = write_job(tmp_path, 'command = ["./program"]\ntrials = 5\n' + SPACE)
    said, _ = tune(capfd, job, 3)
    assert said["trials"] == {"complete": 2, "failed": 0, "running": 1}
    assert "No such file or directory" in said["stop_reason"]
    program.write_text(text)
    program.chmod(0o700)
    assert tune(capfd, job, 0)[0]["trials"] == {"complete": 5, "failed": 0, "running": 0}


def test_no_process_can_be_made(tmp_path, capfd, monkeypatch):
    job = write_job(tmp_path, "trials = 5\n" + ECHO)

    def refuses(*_, **__):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patched:
        patched.setattr("pbgi.cli.program.command.subprocess.Popen", refuses)
        _, err = tune(capfd, job, 3)
    assert "process that guards the commands could not be started" in err
    guard = Guard()
    with monkeypatch.context() as patched:
        patched.setattr("pbgi.cli.tune.Guard", lambda: guard)
        patched.setattr("pbgi.cli.program.command.subprocess.Popen", refuses)
        said, _ = tune(capfd, job, 3)
    assert said["spent"] == 0.0
    assert said["trials"] == {"complete": 0, "failed": 0, "running": 1}
    assert tune(capfd, job, 0)[0]["trials"]["complete"] == 5


def test_a_program_chosen_by_the_point_fails_its_trial_and_costs_nothing(tmp_path, capfd):
    job = 'command = ["{x}"]\nbudget = 10.0\ntrials = 2\n[parameters]\nx = ["/no/such/program", "/dev/null"]\n'
    said, err = tune(capfd, write_job(tmp_path, job), 1)
    assert said["trials"] == {"complete": 0, "failed": 2, "running": 0}
    assert said["spent"] == 0.0
    assert err.count("could not be started") == 2


def test_arguments_that_are_too_long_fail_their_trial(tmp_path, capfd):
    long = "x" * 300_000  # Linux takes 128 KiB per argument
    job = f'command = ["sh", "-c", "echo 1", "{{x}}"]\ntrials = 2\n[parameters]\nx = ["short", "{long}"]\n'
    said, err = tune(capfd, write_job(tmp_path, job), 0)
    assert said["trials"] == {"complete": 1, "failed": 1, "running": 0}
    assert "Argument list too long" in err


# Failures in a row ---------------------------------------------------------------------------------------------------


def some_work(condition):
    """A command that works in those trials for which a condition on their number n holds."""
    code = f"import os, sys; n = int(os.environ['PBGI_TRIAL']); print(n); sys.exit(not ({condition}))"
    return f"command = ['{sys.executable}', '-S', '-c', \"{code}\"]\n"


@pytest.mark.parametrize(
    ("head", "condition", "complete", "failed", "says"),
    [
        ("", "False", 0, 5, "the first 5 trials failed; mend the command, or raise max_failures"),
        ("max_failures = 3\n", "False", 0, 3, "the first 3 trials failed"),
        ("max_failures = 3\n", "n < 2", 2, 3, "the last 3 trials failed; mend the command, or raise max_failures"),
        ("", "n < 1", 1, 10, "the last 10 trials failed"),
        ("max_failures = 3\n", "n % 3 == 2", 10, 20, "30 trials"),  # never three in a row
        ("max_failures = 1\n", "n < 4", 4, 1, "the last 1 trials failed"),
    ],
)
def test_failures_in_a_row_end_a_run(tmp_path, capfd, head, condition, complete, failed, says):
    job = write_job(tmp_path, head + "trials = 30\n" + some_work(condition) + SPACE)
    said, _ = tune(capfd, job, 0 if complete else 1)
    assert said["trials"] == {"complete": complete, "failed": failed, "running": 0}
    assert says in said["stop_reason"]


def test_a_run_that_is_begun_again_counts_anew(tmp_path, capfd):
    job = write_job(tmp_path, "trials = 30\nmax_failures = 2\n" + some_work("n in (0, 3)") + SPACE)
    assert tune(capfd, job, 0)[0]["trials"] == {"complete": 1, "failed": 2, "running": 0}
    assert tune(capfd, job, 0)[0]["trials"] == {"complete": 2, "failed": 4, "running": 0}
