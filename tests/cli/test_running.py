"""Faults, with real processes: kill -9, SIGTERM, a full disk, a locked storage.

Afterwards every result that was shown is recorded, the study opens, the spend is the sum of the recorded costs, and the
next suggestion is the one an undisturbed run gives (`assert_sound`).
"""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import optuna
import pytest
from cli_runs import ECHO, PBGI, assert_sound, processes_with, run, start, trials_in, wait_for, write_job

from pbgi.cli import main
from pbgi.cli.processes import identity
from pbgi.cli.storage import PATIENCE, sqlite_path

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
    for guard in [p for p in processes_with("cli/processes.py") if p.ppid() == worker.pid]:
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
def test_a_signal_ends_the_commands_and_puts_their_points_back(tmp_path, number, code, word):
    marker = f"pbgi-test-signal-{os.getpid()}-{code}"
    job = slow_job(tmp_path, "trials = 5\nparallel = 2\n", marker, seconds=60)
    worker = start("tune", job)
    wait_for(lambda: len(_noted(tmp_path, "pbgi:command")) == 2)
    worker.send_signal(number)
    out, err = worker.communicate(timeout=300)
    assert worker.returncode == code, err
    assert not processes_with(marker)
    trials = trials_in(tmp_path / "job.db")
    assert [t.state for t in trials] == [optuna.trial.TrialState.RUNNING] * 2
    assert json.loads(out)["stop_reason"] == word
    begun = [t.params for t in trials]
    paid = [t.user_attrs["pbgi:attempts"][0]["cost"] for t in trials]
    assert min(paid) > 0.0
    done = run("tune", slow_job(tmp_path, "trials = 2\nparallel = 2\n", marker, seconds=0))
    trials = assert_sound(job, err + done.stderr, in_order=False)
    assert [(t.params, t.value) for t in trials] == [(params, params["x"]) for params in begun]
    for trial, charged in zip(trials, paid, strict=True):
        assert trial.user_attrs["cost"] == pytest.approx(charged + trial.params["y"], rel=1e-12)
        assert trial.user_attrs["pbgi:observed"] == trial.params["y"]


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
    assert re.search(r"job\.db: OperationalError: (database or disk is full|disk I/O error)$", err, re.MULTILINE), err
    assert "waiting" not in err  # asking again makes no room
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


def locked(database):
    holder = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    return holder


@pytest.mark.parametrize("name", ["full", "disk I/O error, readonly, read-only", "malformed", "does not exist"])
def test_a_storage_is_waited_for_whatever_its_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir(parents=True)
    job = slow_job(folder, "trials = 2\n", "name", seconds=0)
    run("ask", job)
    holder = locked(folder / "job.db")
    teller = start("tell", job, 0, "--value", 1, "--cost", 1)
    said = teller.stderr.readline()
    holder.execute("ROLLBACK")
    holder.close()
    _, err = teller.communicate(timeout=300)
    assert said.startswith("pbgi: waiting for the storage: "), said
    assert teller.returncode == 0, err


@pytest.mark.parametrize("code", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_storage_is_locked(tmp_path, code):
    """It is not waited for any longer; what ran is tried again by the next run."""
    marker = f"pbgi-test-away-{os.getpid()}-{code}"
    job = slow_job(tmp_path, "trials = 5\n", marker, seconds=60)
    worker = start("tune", job)
    wait_for(lambda: _noted(tmp_path, "pbgi:beat"))
    holder = locked_soon(tmp_path / "job.db")
    began = time.monotonic()
    worker.send_signal(code)
    out, err = worker.communicate(timeout=300)
    took = time.monotonic() - began
    holder.execute("ROLLBACK")
    holder.close()
    assert worker.returncode == 128 + code, err
    assert out == ""
    assert "since the storage is away" in err
    assert took < PATIENCE / 2
    assert not processes_with(marker)
    (trial,) = trials_in(tmp_path / "job.db")
    assert trial.state is optuna.trial.TrialState.RUNNING
    run("tune", slow_job(tmp_path, "trials = 1\n", marker, seconds=0))
    (again,) = trials_in(tmp_path / "job.db")
    assert (again.params, again.value) == (trial.params, trial.params["x"])
    assert 1.0 <= again.user_attrs["cost"] - again.params["y"] < took + 60.0


def locked_soon(database):
    """Locked between two beats of its owner."""
    while True:
        with contextlib.suppress(sqlite3.OperationalError):
            return locked(database)


def test_a_second_signal_does_not_wait_for_the_storage(tmp_path):
    marker = f"pbgi-test-twice-{os.getpid()}"
    job = slow_job(tmp_path, "trials = 5\n", marker, seconds=60)
    worker = start("tune", job)
    wait_for(lambda: _noted(tmp_path, "pbgi:beat"))
    holder = locked_soon(tmp_path / "job.db")
    worker.send_signal(signal.SIGINT)
    wait_for(lambda: not processes_with(f" {marker}"))  # the command has been ended
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=300)
    holder.close()
    assert worker.returncode == 130, err


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


def leave_running(tmp_path, who, **notes):
    """Have trial 0 look as if this process had left it, as in a file that was written some time ago."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    trial_id = storage.get_trial_id_from_study_id_trial_number(storage.get_study_id_from_name("job"), 0)
    for key, value in {"worker": who, **notes}.items():
        storage.set_trial_user_attr(trial_id, f"pbgi:{key}", value)
    storage.engine.dispose()
    with sqlite3.connect(tmp_path / "job.db") as connection:
        connection.execute("UPDATE trials SET datetime_start = '2001-02-03 04:05:06.000000'")
    connection.close()


def asked_before_a_boot(tmp_path, monkeypatch, seconds_ago):
    job = slow_job(tmp_path, "trials = 2\n", "reboot", seconds=0)
    assert main(["ask", str(job)]) == 0
    monkeypatch.setattr("pbgi.cli.processes._boot_time", lambda: time.time() - seconds_ago)
    return job, {**identity(os.getpid()), "boot": "another", "start": "123"}


def test_a_reboot(tmp_path, capfd, monkeypatch):
    """The process that ran the trial belongs to another boot; its number is taken by somebody else."""
    job, before = asked_before_a_boot(tmp_path, monkeypatch, 500.0)
    command, beat = {**before, "time": time.time() - 1000.0}, {"seconds": 33.0, "time": time.time() - 960.0}
    leave_running(tmp_path, before, command=command, beat=beat)
    capfd.readouterr()
    assert main(["tune", str(job)]) == 0
    trials = assert_sound(job, capfd.readouterr().err)
    assert trials[0].value is None
    assert trials[0].user_attrs["cost"] == 33.0  # the last sign of life; downtime is not charged


def test_a_reboot_before_the_command_began(tmp_path, capfd, monkeypatch):
    job, before = asked_before_a_boot(tmp_path, monkeypatch, 500.0)
    leave_running(tmp_path, before)
    capfd.readouterr()
    assert main(["tune", str(job)]) == 0
    trials = assert_sound(job, capfd.readouterr().err)
    assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials]


@pytest.mark.parametrize(
    ("changed", "beat_ago"),
    [({"boot": "another"}, 1.0), ({"boot": "another"}, 400.0), ({"namespace": "another"}, 960.0)],
)
def test_workers_of_copies_of_this_machine_are_left_alone(tmp_path, capfd, monkeypatch, changed, beat_ago):
    """An image that was started twice: the same id, the same name. Or a container beside this one."""
    job, before = asked_before_a_boot(tmp_path, monkeypatch, 500.0)
    who = {**before, "boot": identity(os.getpid())["boot"], **changed}
    command, beat = {**who, "time": time.time() - 1000.0}, {"seconds": 600.0, "time": time.time() - beat_ago}
    leave_running(tmp_path, who, command=command, beat=beat)
    capfd.readouterr()
    assert main(["tune", str(job)]) == 0
    assert json.loads(capfd.readouterr().out)["trials"] == {"complete": 1, "failed": 0, "running": 1}
    assert trials_in(tmp_path / "job.db")[0].state is optuna.trial.TrialState.RUNNING


CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc"]


def can_have_containers():
    return (
        shutil.which("unshare")
        and not subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not can_have_containers(), reason="needs the right to make PID namespaces")
def test_workers_in_two_containers_with_one_name(tmp_path):
    """Each sees numbers of processes that mean nothing to the other. No trial ends before both workers have one."""
    wait = "while test $(ls job.trials | wc -l) -lt 2; do sleep 0.02; done"
    report = """echo "{{\\"value\\": $1, \\"cost\\": $2}}" """
    text = ECHO.replace(ECHO.splitlines()[1], f"command = ['sh', '-c', '{wait}; {report}', 'sh', '{{x}}', '{{y}}']")
    job = write_job(tmp_path, "trials = 6\ntimeout = 60\n" + text)
    inside = subprocess.Popen(
        [*CONTAINER, *PBGI, "tune", job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    outside = start("tune", job)
    shown = [worker.communicate(timeout=300)[1] for worker in (inside, outside)]
    assert [inside.returncode, outside.returncode] == [0, 0], shown
    trials = assert_sound(job, "".join(shown), in_order=False)
    assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials]
    assert all("value" in text for text in shown)  # both have worked


def test_a_worker_that_died_in_a_container_is_reclaimed(tmp_path, monkeypatch):
    job, before = asked_before_a_boot(tmp_path, monkeypatch, 500.0)
    who = {**before, "boot": identity(os.getpid())["boot"], "namespace": "another"}
    leave_running(tmp_path, who, command={**who, "time": time.time() - 1000.0})
    assert main(["tune", str(job), "--reclaim"]) == 0
    assert trials_in(tmp_path / "job.db")[0].state is optuna.trial.TrialState.FAIL


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
