"""The lock of a storage, and what marks mean under it."""

import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import optuna
import pytest
from optuna_fixtures import MIXED, Clockwork, asked, marks, sqlite_in, suggest_mixed

from pbgi.integrations.optuna import PBGISampler
from pbgi.study import attributes
from pbgi.study.lock import StudyLock
from pbgi.study.storage import is_choosing, keep, trials_of
from pbgi.study.turn import Turns

KILLED = Path(__file__).parents[1] / "optuna_killed_worker.py"


def test_under_the_lock_of_a_file_the_mark_of_a_killed_worker_is_taken_away_at_once(tmp_path):
    """Its lock went with it, so that whoever holds the lock now knows that it is gone."""
    study = optuna.create_study(storage=sqlite_in(tmp_path))
    dead, own = asked(study, 2)
    crashed = Turns(sleep=Clockwork()).taken(study, dead)
    assert isinstance(crashed.__enter__().mark, str)
    release_without_a_word(study, dead, crashed)
    with Turns(sleep=Clockwork()).taken(study, own) as turn:
        assert not is_choosing(turn.trials[0])
        assert marks(study) == [1]


def release_without_a_word(study, trial, turn):
    """Let the lock go and leave the mark, as a process does that is killed."""
    mark = trials_of(study)[trial.number].system_attrs[attributes.CHOOSING]
    turn.__exit__(None, None, None)
    keep(study, trial, attributes.CHOOSING, mark)


def test_a_process_that_is_killed_while_it_chooses_stalls_nobody(tmp_path):
    storage = sqlite_in(tmp_path)
    study = optuna.create_study(study_name="shared", storage=storage)
    study.ask()
    with subprocess.Popen([sys.executable, KILLED, storage], stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout.readline() == "choosing\n"
        assert marks(study) == [1]
        victim.kill()
    study.sampler = PBGISampler(seed=0, search_space=MIXED)
    study.sampler._turns = Turns(sleep=Clockwork())  # fails if it has to wait
    suggest_mixed(study.ask())
    assert marks(study) == [2]


def test_the_mark_of_another_machine_is_respected_under_the_lock(tmp_path):
    """Two machines may hold locks of one file on a file system that does not share them."""
    study = optuna.create_study(storage=sqlite_in(tmp_path))
    other, own = asked(study, 2)
    keep(study, other, attributes.CHOOSING, "file:another boot")
    done = Clockwork(lambda: keep(study, other, "pbgi:trial", {"params": {}}))
    with Turns(sleep=done).taken(study, own):
        assert done.steps == []


def test_a_lock_that_is_not_to_be_had_is_done_without(tmp_path):
    """Its holder may hang. What is safe is safe by marks; and only the first turn waits."""
    study = optuna.create_study(storage=sqlite_in(tmp_path))
    with StudyLock(patience=5.0).held(study) as shared_by:
        assert shared_by is not None
        waiting = StudyLock(patience=0.02)
        for _ in range(2):
            with waiting.held(study) as nothing:
                assert nothing is None
        assert waiting._left == 0.0
    with waiting.held(study) as mine:
        assert mine == shared_by
    assert waiting._left == 0.02


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_lock_file_is_no_way_to_other_files(tmp_path, kind):
    """A link in its place is not followed; a turn does without the lock."""
    victim, lock = tmp_path / "victim", tmp_path / "study.db.lock"
    if kind == "link":
        lock.symlink_to(victim)
    else:
        lock.mkdir()
    study = optuna.create_study(storage=sqlite_in(tmp_path))
    with StudyLock(patience=5.0).held(study) as shared_by:
        assert shared_by is None
    assert not victim.exists()


def test_threads_of_a_sampler_queue_where_the_storage_has_no_lock():
    study = optuna.create_study()
    lock, order, inside = StudyLock(patience=30.0), [], threading.Event()

    def second():
        inside.wait()
        with lock.held(study) as shared_by:
            order.append(("second", shared_by))

    thread = threading.Thread(target=second)
    thread.start()
    with lock.held(study) as shared_by:
        inside.set()
        order.append(("first", shared_by))
        thread.join(timeout=0.05)  # long enough for a thread that does not wait
        order.append(("first", shared_by))
    thread.join()
    assert order == [("first", None), ("first", None), ("second", None)]


def test_whoever_holds_the_lock_file_is_waited_for(tmp_path):
    """The command line holds it, too, while it chooses."""
    study = optuna.create_study(storage=sqlite_in(tmp_path))
    with (tmp_path / "study.db.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with StudyLock(patience=0.02).held(study) as shared_by:
            assert shared_by is None
