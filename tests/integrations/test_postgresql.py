"""Many workers on a PostgreSQL server that goes away and comes back: nothing is lost, nothing is done twice."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("optuna.samplers")

import optuna
import sqlalchemy
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState
from postgresql_server import PostgresqlServer, server_binaries

from pbgi.integrations.optuna import PBGISampler, cost_summary, fail_abandoned
from pbgi.study.lock import StudyLock
from pbgi.study.storage import database_of
from pbgi.study.turn import Turns

WORKER = Path(__file__).with_name("postgresql_worker.py")
N_WORKERS, BUDGET = 8, 150.0  # the 64 points of the workers' grid cost 288


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A running server; its password is in a file, not in its URL."""
    pytest.importorskip("psycopg", reason="needs a driver: pip install 'psycopg[binary]'")
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    server = PostgresqlServer(binaries)
    try:
        server.start()
        server.write_password_file(tmp_path / "pgpass")
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
        yield server
    finally:
        server.remove()


@pytest.fixture
def study(server):
    storage = optuna.storages.RDBStorage(server.url, engine_kwargs={"pool_pre_ping": True})
    yield optuna.create_study(study_name="shared", storage=storage)
    storage.engine.dispose()


def start_workers(server, how, n_workers):
    """Worker processes, all with the same seed, and the one that started them."""
    command = [sys.executable, "-W", "error", WORKER, server.url, str(BUDGET), how, str(n_workers)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def results_of(workers, *, may_fail=False):
    """Number and value of every trial whose result the study has taken, as the workers were told."""
    output, errors = workers.communicate(timeout=240)
    assert may_fail or workers.returncode == 0, errors
    lines = [line.split() for line in output.splitlines()]
    return [(int(number), float(value)) for number, value in lines]


def completed(study):
    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])


def wait_for(study, workers, n_completed):
    until = time.monotonic() + 120.0
    while len(completed(study)) < n_completed:
        assert workers.poll() is None, workers.communicate()[1]  # no two minutes for workers that could not begin
        assert time.monotonic() < until, "the workers do not get on"
        time.sleep(0.05)


def assert_nothing_lost_or_doubled(study, acknowledged):
    """The study has what the workers were told, each trial once, each point once, within the budget."""
    numbers = [number for number, _ in acknowledged]
    assert len(set(numbers)) == len(numbers)
    stored = {trial.number: trial.value for trial in completed(study)}
    assert dict(acknowledged).items() <= stored.items()
    assert [trial.number for trial in study.trials] == list(range(len(study.trials)))
    points = [(trial.params["i"], trial.params["j"]) for trial in completed(study)]
    assert len(set(points)) == len(points)
    prices = sum(1.0 + i for i, _ in points)
    assert prices <= cost_summary(study).spent <= BUDGET


def test_eight_workers_share_a_study_while_the_server_is_stopped_and_started(server, study):
    workers = start_workers(server, "patient", N_WORKERS)
    wait_for(study, workers, 12)
    server.stop()
    time.sleep(1.0)
    server.start()
    wait_for(study, workers, 24)
    server.crash()
    server.start()
    acknowledged = results_of(workers)
    fail_abandoned(study, older_than=1e-3)  # a trial that was cut off while it was being made
    assert_nothing_lost_or_doubled(study, acknowledged)
    assert len(acknowledged) == len(completed(study)) > 24  # and no result was left behind
    assert BUDGET - cost_summary(study).spent < 8.0  # no price is higher
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL}


def test_workers_that_lose_the_server_are_started_again(server, study):
    """Those of a plain `study.optimize` may end with an error, and leave trials that nobody will finish."""
    workers = start_workers(server, "plain", 3)
    wait_for(study, workers, 6)
    server.stop()
    acknowledged = results_of(workers, may_fail=True)
    assert workers.returncode > 0
    server.start()
    assert dict(acknowledged).items() <= {trial.number: trial.value for trial in completed(study)}.items()
    fail_abandoned(study, older_than=1e-3)
    acknowledged += results_of(start_workers(server, "plain", 3))
    assert_nothing_lost_or_doubled(study, acknowledged)
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL}


# The lock of the server ----------------------------------------------------------------------------------------------

SPACE = {"p": CategoricalDistribution(["a", "b"])}


class Interrupted(PBGISampler):
    """Something happens between its first choice and the moment when that is stored."""

    def __init__(self, meanwhile, seed=0):
        super().__init__(seed=seed, search_space=SPACE)
        self.meanwhile, self.n_choices = [meanwhile], 0

    def _choose(self, *arguments):
        chosen = super()._choose(*arguments)
        self.n_choices += 1
        if self.meanwhile:
            self.meanwhile.pop()()
        return chosen


def never(_seconds):
    raise AssertionError("nobody should have to wait")


@pytest.fixture
def join(server, study):
    """Joins the study with a sampler, as another process does, on connections of its own."""
    storages = []

    def joined(sampler):
        storages.append(optuna.storages.RDBStorage(server.url))
        sampler._turns = Turns(sleep=never)
        return optuna.load_study(study_name=study.study_name, storage=storages[-1], sampler=sampler)

    yield joined
    for storage in storages:
        storage.engine.dispose()


def asked_point(study):
    return study.ask(SPACE).params["p"]


def locks(study):
    return query(study, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")


def query(study, sql):
    with database_of(study).engine.connect() as connection:
        return connection.execute(sqlalchemy.text(sql)).scalar()


def test_a_turn_holds_the_lock_of_the_server_and_gives_it_back(study, join):
    study.ask()  # so that nobody is alone
    seen = []
    asked_point(join(Interrupted(lambda: seen.append(locks(study)))))
    assert seen == [1]
    assert locks(study) == 0


def test_a_worker_that_waits_for_the_lock_of_the_server_goes_on_without_it_in_the_end(study):
    with StudyLock(patience=10.0).held(study) as shared_by:
        assert shared_by == "server"
        with StudyLock(patience=0.05).held(study) as nothing:
            assert nothing is None


@pytest.mark.parametrize("seed", range(3))
def test_workers_whose_lock_is_taken_away_while_they_choose_share_no_point(study, join, seed):
    """An administrator ends a connection, a firewall cuts it: another worker chooses, and the first chooses again."""
    study.ask()  # so that nobody is alone
    points = []

    def meanwhile():
        idle = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        assert query(study, idle) == 1
        points.append(asked_point(join(PBGISampler(seed=seed, search_space=SPACE))))

    first = Interrupted(meanwhile, seed)
    points.append(asked_point(join(first)))
    assert sorted(points) == ["a", "b"]
    assert first.n_choices == 2


def test_a_worker_killed_while_it_chooses_leaves_nothing_to_wait_for(server, study, join):
    study.ask()
    script = WORKER.parents[1] / "optuna_killed_worker.py"
    with subprocess.Popen([sys.executable, script, server.url], stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout.readline() == "choosing\n"
        assert locks(study) == 1
        victim.kill()
    asked_point(join(PBGISampler(seed=0, search_space=SPACE)))  # fails if it has to wait for the mark
