"""Faults, with real processes: kill -9, SIGTERM, a full disk, a locked storage.

Afterwards every result that was shown is recorded, the study opens, the spend is the sum of the recorded costs, and the
next suggestion is the one an undisturbed run gives (`assert_sound`).
"""

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import optuna
import pytest
from cli_runs import assert_sound, processes_with, run, start, trials_in, wait_for, write_job

from pbgi.cli import main
from pbgi.cli.processes import identity
from pbgi.cli.storage import sqlite_path

# Waits a little, then reports: the cost is a function of the point, so that an undisturbed run can be replayed.
SLOW = """
command = ["{python}", "-S", "-c", '''
import json, sys, time
time.sleep({seconds})
print(json.dumps({{{{"value": float(sys.argv[1]), "cost": float(sys.argv[2])}}}}))
''', "{{x}}", "{{y}}", "{marker}"]
cost = "cost"
price_per_second = 1.0  # for trials that are killed
seed = 1
[parameters]
x = {{ low = 0.0, high = 1.0 }}
y = {{ low = 0.5, high = 1.5 }}
"""


def slow_job(folder, head, marker, seconds=0.05):
    return write_job(folder, head + SLOW.format(python=sys.executable, seconds=seconds, marker=marker))


def n_folders(tmp_path):
    return len(list((tmp_path / "job.trials").glob("*")))


def kill_at_random_moments(tmp_path, n):
    """Most moments are around a trial; one in five is anywhere from the start of the process on."""
    marker = f"pbgi-test-marker-{os.getpid()}-{n}"
    job = slow_job(tmp_path, f"budget = {10.0 + 0.7 * n}\n", marker, seconds=0.15)
    rng = random.Random(n)  # noqa: S311 (no secret)
    shown = ""
    for i in range(n):
        before = n_folders(tmp_path)
        worker = start("tune", job, stdout=subprocess.DEVNULL)
        if i % 5 == 0:
            time.sleep(rng.uniform(0.0, 2.0))
        else:
            while n_folders(tmp_path) == before and worker.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.4))
        worker.kill()
        shown += worker.communicate(timeout=300)[1]
        wait_for(lambda: not processes_with(marker), 10)  # the guard ends what was in flight
    done = run("tune", job)
    return assert_sound(job, shown + done.stderr)


def assert_charged(trials):
    """Failed trials are those that were killed, and they cost what they took: far less than those that ended."""
    failed = [trial for trial in trials if trial.value is None]
    for trial in failed:
        assert "ended without finishing it" in trial.user_attrs["pbgi:message"]
        assert trial.user_attrs["cost"] == trial.user_attrs["pbgi:seconds"] > 0.0
    return failed


def test_kill_9_at_five_moments(tmp_path):
    trials = kill_at_random_moments(tmp_path, 5)
    assert len(assert_charged(trials)) < len(trials)


@pytest.mark.slow
def test_kill_9_at_fifty_moments(tmp_path):
    trials = kill_at_random_moments(tmp_path, 50)
    assert 0 < len(assert_charged(trials)) < len(trials)


def test_a_killed_trial_is_charged_what_it_took(tmp_path):
    marker = f"pbgi-test-charged-{os.getpid()}"
    job = slow_job(tmp_path, "trials = 1\n", marker, seconds=60)
    worker = start("tune", job)
    wait_for(lambda: _noted(tmp_path, "pbgi:command"))
    began = time.monotonic()
    time.sleep(0.7)
    worker.kill()
    took = time.monotonic() - began
    worker.communicate()
    wait_for(lambda: not processes_with(marker), 10)
    run("tune", job, status=1)
    (trial,) = trials_in(tmp_path / "job.db")
    assert 0.7 <= trial.user_attrs["cost"] < took + 5.0


def _noted(tmp_path, key):
    if not (tmp_path / "job.db").exists():  # opening it would make it, in competition with the command
        return []
    try:
        return [t for t in trials_in(tmp_path / "job.db") if key in t.user_attrs]
    except (KeyError, optuna.exceptions.StorageInternalError, AssertionError):
        return []


def test_an_orphan_is_killed_by_the_next_run(tmp_path):
    """Even the guard is gone, as after an attack of the memory killer."""
    marker = f"pbgi-test-orphan-{os.getpid()}"
    job = slow_job(tmp_path, "trials = 1\n", marker, seconds=120)
    worker = start("tune", job)
    wait_for(lambda: _noted(tmp_path, "pbgi:command"))
    for guard in [p for p in processes_with("guard.py") if p.ppid() == worker.pid]:
        guard.kill()
    worker.kill()
    worker.communicate()
    assert processes_with(marker)
    run("tune", job, status=1)
    assert not processes_with(marker)
    (trial,) = trials_in(tmp_path / "job.db")
    assert trial.state is optuna.trial.TrialState.FAIL


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hung up")]
)
def test_a_signal_ends_the_commands_and_charges_them(tmp_path, number, code, word):
    marker = f"pbgi-test-signal-{os.getpid()}-{code}"
    job = slow_job(tmp_path, "trials = 5\nparallel = 2\n", marker, seconds=60)
    worker = start("tune", job)
    wait_for(lambda: len(_noted(tmp_path, "pbgi:command")) == 2)
    worker.send_signal(number)
    out, err = worker.communicate(timeout=300)
    assert worker.returncode == code, err
    assert not processes_with(marker)
    trials = assert_sound(job, err, in_order=False)
    assert [t.state for t in trials] == [optuna.trial.TrialState.FAIL] * 2
    assert all(t.user_attrs["cost"] > 0 and word in t.user_attrs["pbgi:message"] for t in trials)
    assert json.loads(out)["stop_reason"] == word


def test_a_full_disk(tmp_path):
    job = slow_job(tmp_path, "trials = 16\n", "full", seconds=0)
    run("ask", job)  # makes the study
    run("tell", job, "0", "--value", 0.5, "--cost", 1.0)
    limit = (tmp_path / "job.db").stat().st_size + 12 * 1024

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    worker = start("tune", job, preexec_fn=limited)
    _, err = worker.communicate(timeout=300)
    assert worker.returncode == 3, err
    assert "Traceback" not in err
    assert "full" in err or "disk I/O" in err
    assert 0 < err.count(": value") < 15, err
    done = run("tune", job)
    trials = assert_sound(job, err + done.stderr)
    assert len(trials) == 16
    assert all(t.value is not None for t in trials)  # results in hand were saved beside the logs


def test_a_locked_storage_is_waited_for(tmp_path):
    job = slow_job(tmp_path, "trials = 6\n", "locked", seconds=0)
    run("tune", write_job(tmp_path, job.read_text().replace("trials = 6", "trials = 1")))
    slow_job(tmp_path, "trials = 6\n", "locked", seconds=0)
    holder = sqlite3.connect(tmp_path / "job.db", isolation_level=None, check_same_thread=False)
    worker = start("tune", job)
    wait_for(lambda: len(trials_in(tmp_path / "job.db")) > 1)
    for _ in range(100):
        try:
            holder.execute("BEGIN EXCLUSIVE")
            break
        except sqlite3.OperationalError:
            time.sleep(0.01)
    release = threading.Timer(3.0, lambda: holder.execute("ROLLBACK"))
    release.start()
    _, err = worker.communicate(timeout=300)
    release.join()
    holder.close()
    assert worker.returncode == 0, err
    trials = assert_sound(job, err)
    assert len(trials) == 6
    assert all(t.value is not None for t in trials)


def test_a_storage_that_stays_locked(tmp_path, capfd, monkeypatch):
    job = slow_job(tmp_path, "trials = 2\n", "stays", seconds=0)
    assert main(["ask", str(job)]) == 0
    monkeypatch.setattr("pbgi.cli.storage.PATIENCE", 0.3)
    monkeypatch.setattr("pbgi.cli.storage.BUSY", 0.1)
    holder = sqlite3.connect(tmp_path / "job.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    capfd.readouterr()
    assert main(["tell", str(job), "0", "--value", "1", "--cost", "1"]) == 3
    assert "database is locked" in capfd.readouterr().err
    holder.execute("ROLLBACK")
    holder.close()
    assert main(["tell", str(job), "0", "--value", "1", "--cost", "1"]) == 0
    assert trials_in(tmp_path / "job.db")[0].value == 1.0


def test_a_reboot(tmp_path, capfd):
    """The process that ran the trial belongs to another boot; its number is taken by somebody else."""
    job = slow_job(tmp_path, "trials = 2\n", "reboot", seconds=0)
    assert main(["ask", str(job)]) == 0
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    study_id = storage.get_study_id_from_name("job")
    trial_id = storage.get_trial_id_from_study_id_trial_number(study_id, 0)
    before = {**identity(os.getpid()), "start": "another boot/123"}
    storage.set_trial_user_attr(trial_id, "pbgi:worker", before)
    storage.set_trial_user_attr(trial_id, "pbgi:command", {**before, "time": time.time() - 1000.0})
    storage.set_trial_user_attr(trial_id, "pbgi:beat", {"seconds": 33.0, "time": time.time() - 960.0})
    storage.engine.dispose()
    capfd.readouterr()
    assert main(["tune", str(job)]) == 0
    trials = assert_sound(job, capfd.readouterr().err)
    assert trials[0].value is None
    assert trials[0].user_attrs["cost"] == 33.0  # the last sign of life; downtime is not charged


def test_a_database_is_made_entirely_or_not_at_all(tmp_path, monkeypatch):
    """Killed while the tables were made: without their indices two studies could have one name."""
    job = slow_job(tmp_path, "trials = 1\n", "draft")

    def dies(url, *_args, **_kwargs):
        connection = sqlite3.connect(sqlite_path(url))
        connection.execute("CREATE TABLE studies (study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL)")
        connection.commit()
        connection.close()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pbgi.cli.storage.RDBStorage", dies)
        assert main(["ask", str(job)]) == 130
    assert not (tmp_path / "job.db").exists()
    assert main(["ask", str(job)]) == 0
    connection = sqlite3.connect(tmp_path / "job.db")
    indices = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    connection.close()
    assert any("UNIQUE INDEX" in sql and "study_name" in sql for (sql,) in indices)
    assert not list(tmp_path.glob("*.draft*"))


def test_a_file_that_is_no_database(tmp_path, capfd):
    job = slow_job(tmp_path, "trials = 1\n", "none")
    (tmp_path / "job.db").write_text("my notes, not a database")
    assert main(["tune", str(job)]) == 3
    assert "must be an SQLite database" in capfd.readouterr().err
    assert (tmp_path / "job.db").read_text() == "my notes, not a database"


def test_a_damaged_database(tmp_path, capfd):
    job = slow_job(tmp_path, "trials = 1\n", "damaged")
    (tmp_path / "job.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    assert main(["tune", str(job)]) == 3
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t@127.0.0.1:1/db",
        "postgresql+nodriver://me:s3cr3t@127.0.0.1:1/db",
        "mysql+pymysql://me:s3cr3t@127.0.0.1:1/db",
        "nonsense://me:s3cr3t@host/db",
        "postgresql://me:s3cr3t@host:port/db",
        "me:s3cr3t@host",
    ],
)
def test_passwords_are_never_printed(tmp_path, capfd, monkeypatch, url):
    monkeypatch.setattr("pbgi.cli.storage.PATIENCE", 0.2)
    job = slow_job(tmp_path, "trials = 1\n", "secret")
    by_file = write_job(tmp_path, f"storage = '{url}'\n" + job.read_text(), "inside.toml")
    for arguments in (["tune", job, "--storage", url], ["tune", by_file], ["status", url]):
        code = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        assert code in (2, 3), err
        assert "s3cr3t" not in out + err
    monkeypatch.setenv("PBGI_STORAGE", url)
    assert main(["status", str(job)]) == 3
    assert "s3cr3t" not in "".join(capfd.readouterr())
