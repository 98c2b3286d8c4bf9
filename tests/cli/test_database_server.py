"""`pbgi tune` on a PostgreSQL server that goes away, cuts connections, or is silent."""

import contextlib
import os
import signal
import sys
import time

import pytest

pytest.importorskip("psycopg", reason="needs a driver: pip install 'psycopg[binary]'")

import psycopg
import sqlalchemy
from cli_runs import processes_with, run, start, wait_for, write_job
from integrations.postgresql_server import PostgresqlServer, server_binaries
from optuna.trial import TrialState

from pbgi.cli.choosing import hand_out
from pbgi.cli.job import read_job
from pbgi.cli.processes import identity
from pbgi.cli.running import recover
from pbgi.cli.storage import PATIENCE, Storage
from pbgi.cli.study import JobStudy
from pbgi.study import attributes

# A grid of 64 points, so that no point is tried twice unless somebody has looked away.
GRID = """
command = ["{python}", "-S", "-c", '''
import sys, time
time.sleep({seconds})
print((int(sys.argv[1]) - 3) ** 2 + (int(sys.argv[2]) - 2) ** 2)
''', "{{i}}", "{{j}}", "{marker}"]
seed = 1
[parameters]
i = {{ low = 0, high = 7 }}
j = {{ low = 0, high = 7 }}
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A running server, as the storage of every command; its password is in a file."""
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    server = PostgresqlServer(binaries)
    try:
        server.start()
        server.write_password_file(tmp_path / "pgpass")
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
        monkeypatch.setenv("PBGI_STORAGE", server.url)
        yield server
    finally:
        server.remove()


def grid_job(tmp_path, head, marker="grid", seconds=0.0):
    return write_job(tmp_path, head + GRID.format(python=sys.executable, seconds=seconds, marker=marker))


@contextlib.contextmanager
def opened(server, job):
    storage = Storage(server.url, create=True)
    try:
        yield JobStudy.of_job(read_job(job), storage)
    finally:
        storage.close()


def trials_on(server, job):
    with opened(server, job) as study:
        return study.trials()


def noted(server, job, key):
    return [trial for trial in trials_on(server, job) if key in trial.user_attrs]


def assert_each_point_once(trials, n):
    assert [trial.number for trial in trials] == list(range(n))
    assert all(trial.state is TrialState.COMPLETE for trial in trials)
    assert len({(trial.params["i"], trial.params["j"]) for trial in trials}) == n
    assert all(t.value == (t.params["i"] - 3) ** 2 + (t.params["j"] - 2) ** 2 for t in trials)


def all_ended(workers):
    said = [worker.communicate(timeout=240) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers), said
    assert not [err for _, err in said if "Traceback" in err]


def test_workers_outlive_a_server_that_is_stopped_and_started(server, tmp_path):
    """What is in flight when a connection breaks is done again with another one."""
    job = grid_job(tmp_path, "trials = 30\n", seconds=0.05)
    workers = [start("tune", job) for _ in range(4)]
    for n in (4, 12):
        wait_for(lambda n=n: len(noted(server, job, "cost")) >= n, 120)
        server.stop() if n == 4 else server.crash()
        wait_for_stderr(workers[0])
        server.start()
    all_ended(workers)
    assert_each_point_once(trials_on(server, job), 30)


def wait_for_stderr(worker):
    """Until a worker says that it waits, which it does every time; trials may end before it notices."""
    while not worker.stderr.readline().startswith("pbgi: waiting for the storage"):
        assert worker.poll() is None


def holders(connection):
    """Processes of the server whose connection holds a lock of ours."""
    found = connection.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted").fetchall()
    return [pid for (pid,) in found]


def plainly_connected(server):
    return psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True)


@pytest.mark.slow
def test_no_point_twice_while_connections_are_cut(server, tmp_path):
    job = grid_job(tmp_path, "trials = 40\n")
    workers = [start("tune", job) for _ in range(3)]
    n_cut = 0
    with plainly_connected(server) as connection:
        while any(worker.poll() is None for worker in workers):
            for pid in holders(connection) if n_cut < 30 else []:
                n_cut += connection.execute("SELECT pg_terminate_backend(%s)", [pid]).fetchone()[0]
            time.sleep(0.1)
    all_ended(workers)
    assert n_cut > 10
    assert_each_point_once(trials_on(server, job), 40)


def test_a_turn_whose_connection_is_cut_is_undone_and_done_again(server, tmp_path):
    """Meanwhile somebody else has had a turn: the point is chosen anew."""
    job = grid_job(tmp_path, "trials = 9\n")
    others = []
    with opened(server, job) as study, opened(server, job) as other, plainly_connected(server) as connection:

        def cut(_trials):
            if not others:
                (pid,) = holders(connection)
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
                others.append(hand_out(other, {}))
            return {}

        ours = hand_out(study, {}, cut)
        assert ours.params != others[0].params
        assert [t.params for t in study.trials()] == [others[0].params, ours.params]


def lose_the_answer(monkeypatch):
    """The first turn is kept, but its connection breaks before anybody knows."""
    import pbgi.cli.storage as module

    turn, lost = module.turn, []

    @contextlib.contextmanager
    def losing(*arguments):
        with turn(*arguments):
            yield
        if not lost:
            lost.append(True)
            raise sqlalchemy.exc.OperationalError("COMMIT", {}, Exception("server closed the connection unexpectedly"))

    monkeypatch.setattr(module, "turn", losing)
    return lost


def test_a_trial_is_handed_out_once_though_nobody_said_so(server, tmp_path, monkeypatch):
    with opened(server, grid_job(tmp_path, "trials = 9\n")) as study:
        lost = lose_the_answer(monkeypatch)
        ours = hand_out(study, {})
        assert lost
        assert [trial.number for trial in study.trials()] == [ours.number] == [0]


def test_a_trial_is_taken_over_though_nobody_said_so(server, tmp_path, monkeypatch):
    job = grid_job(tmp_path, "trials = 9\n")
    with opened(server, job) as study:
        dead = {**identity(os.getpid()), "start": "1"}
        left = hand_out(study, {attributes.WORKER: dead})
        lost = lose_the_answer(monkeypatch)
        finished, taken_over = recover(read_job(job), study, reclaim=False)
        assert lost
        assert (finished, [trial.number for trial in taken_over]) == ([], [left.number])
        assert recover(read_job(job), study, reclaim=False, under_way=[left.number]) == ([], [])


def test_a_turn_is_done_as_a_whole(server, tmp_path):
    job = grid_job(tmp_path, "trials = 9\n")
    with opened(server, job) as study:
        trial = hand_out(study, {})

        def breaks():
            study.set_note(trial.number, "note", 1)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            study.exclusively(breaks)
        assert "note" not in study.trials()[0].user_attrs
        study.exclusively(lambda: study.set_note(trial.number, "note", 2))
        assert trials_on(server, job)[0].user_attrs["note"] == 2


def test_limits_of_connections(server, tmp_path):
    with (
        opened(server, grid_job(tmp_path, "trials = 9\n")) as study,
        study.storage.backend.engine.connect() as connection,
    ):
        shown = {
            name: connection.execute(sqlalchemy.text(f"SHOW {name}")).scalar()
            for name in ("statement_timeout", "tcp_keepalives_idle")
        }
        assert shown == {"statement_timeout": "1min", "tcp_keepalives_idle": "10"}


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_a_signal_while_the_server_is_away(server, tmp_path, how):
    marker = f"pbgi-test-server-{how}-{os.getpid()}"
    job = grid_job(tmp_path, "trials = 9\nmax_failures = 1\n", marker, seconds=60)
    worker = start("tune", job)
    wait_for(lambda: noted(server, job, attributes.BEAT), 60)
    getattr(server, how)()
    began = time.monotonic()
    worker.send_signal(signal.SIGINT)
    try:
        out, err = worker.communicate(timeout=PATIENCE)
    finally:
        took = time.monotonic() - began
        server.start() if how == "stop" else server.thaw()
        worker.kill()
    assert worker.returncode == 130, err
    assert out == ""
    assert "since the storage is away" in err
    assert took < PATIENCE / 2
    assert not processes_with(marker)
    (trial,) = trials_on(server, job)
    assert trial.state is TrialState.RUNNING
    grid_job(tmp_path, "trials = 1\n", marker, seconds=0)
    run("tune", job)
    (again,) = trials_on(server, job)
    assert (again.state, again.params) == (TrialState.COMPLETE, trial.params)
    assert [attempt["interrupted"] for attempt in again.user_attrs[attributes.ATTEMPTS]] == [True]


def test_a_wrong_password_is_not_waited_for(server, tmp_path):
    job = grid_job(tmp_path, "trials = 9\n")
    wrong = server.url.replace("pbgi@", "pbgi:s3cr3t@")
    err = run("tune", job, "--storage", wrong, status=3).stderr
    assert "password authentication failed" in err
    assert "waiting" not in err
    assert "s3cr3t" not in err
