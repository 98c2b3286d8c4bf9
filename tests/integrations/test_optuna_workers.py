"""Several workers on one study: none gets a point of another, and together they keep to the budget."""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("optuna.samplers")

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState
from optuna_fixtures import MIXED, sqlite_in, suggest_mixed, value_of

import pbgi
from pbgi.integrations.optuna import PBGISampler, cost_summary
from pbgi.state import LEARNING
from pbgi.study import attributes
from pbgi.study.lock import StudyLock
from pbgi.study.storage import is_choosing, keep, trials_of
from pbgi.study.turn import Turns

WORKER = Path(__file__).with_name("optuna_worker.py")
KILLED = Path(__file__).with_name("optuna_killed_worker.py")


def work(storage, case, budget, n_trials, n_workers=4):
    """Run worker processes side by side on one study, all with the same seed."""
    study = optuna.create_study(study_name="shared", storage=storage)
    command = [sys.executable, "-W", "error", WORKER, storage, case, str(budget), str(n_trials)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    workers = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(n_workers)]
    errors = [worker.communicate(timeout=240)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * n_workers, errors
    return study


def test_processes_keep_to_a_budget_of_known_prices_and_try_no_point_twice(tmp_path):
    study = work(sqlite_in(tmp_path), "grid", budget=50.0, n_trials=9)
    done = study.get_trials(states=[TrialState.COMPLETE])
    points = [(trial.params["i"], trial.params["j"]) for trial in done]
    assert len(set(points)) == len(points) > 10
    assert sum(1.0 + i for i, _ in points) <= 50.0
    assert cost_summary(study).spent == pytest.approx(sum(1.0 + i for i, _ in points))
    others = [trial for trial in study.trials if trial.state != TrialState.COMPLETE]
    assert all(trial.state == TrialState.PRUNED and not trial.params for trial in others)  # found nothing left


def test_processes_keep_to_a_budget_of_learned_costs(tmp_path):
    study = work(sqlite_in(tmp_path), "told", budget=14.0, n_trials=9)
    done = study.get_trials(states=[TrialState.COMPLETE])
    points = [trial.params["x"] for trial in done]
    assert len(set(points)) == len(points) > 5
    assert cost_summary(study, budget=14.0).remaining < 2.0  # it was used, but for less than one trial
    predicted = {trial.number: cost for trial in done if (cost := predicted_cost(trial))}
    errors = [trial.user_attrs["cost"] - predicted[trial.number] for trial in done if trial.number in predicted]
    tolerated = LEARNING * max(predicted.values())  # a learned cost may miss what is left by this much
    assert cost_summary(study).spent <= 14.0 + tolerated + sum(max(error, 0.0) for error in errors)
    assert study.user_attrs["pbgi:stop"]["rule"] == "BudgetSpent"


def predicted_cost(trial):
    return trial.system_attrs["pbgi:trial"]["predicted_cost"]


def test_threads_do_not_share_points():
    study = optuna.create_study(sampler=PBGISampler(seed=0, search_space=MIXED))
    study.optimize(lambda trial: value_of(suggest_mixed(trial)), n_trials=20, n_jobs=4)
    points = {tuple(trial.params.values()) for trial in study.trials}
    assert len(points) == 20


def test_first_points_of_workers_with_one_seed_differ():
    """Before anything is known of the space, too: randomness depends on the number of the trial."""
    samplers = [PBGISampler(seed=0) for _ in range(8)]
    study = optuna.create_study()
    drawn = []
    for sampler in samplers:
        study.sampler = sampler
        drawn.append(study.ask().suggest_float("x", 0.0, 1.0))
    assert len(set(drawn)) == 8


def test_parameters_of_a_trial_are_drawn_independently():
    trial = optuna.create_study(sampler=PBGISampler(seed=0)).ask()
    assert trial.suggest_float("x", 0.0, 1.0) != trial.suggest_float("y", 0.0, 1.0)


def test_running_trials_are_pending():
    """Of nine points all are handed out once, though none has come back."""
    choices = CategoricalDistribution(["a", "b", "c"])
    study = optuna.create_study(sampler=PBGISampler(seed=0, search_space={"p": choices, "q": choices}))
    trials = [study.ask({"p": choices, "q": choices}) for _ in range(9)]
    assert len({tuple(trial.params.values()) for trial in trials}) == 9


def test_running_trials_hold_their_predicted_cost():
    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.UniformCost(), budget=5.0, search_space=MIXED))
    for _ in range(5):
        suggest_mixed(study.ask())
    assert cost_summary(study).reserved == 5.0
    with pytest.raises(optuna.TrialPruned, match="the budget of 5 is spent"):
        suggest_mixed(study.ask())


# Turns ---------------------------------------------------------------------------------------------------------------


def asked(study, n):
    for _ in range(n):
        study.ask()
    return trials_of(study)


class Clockwork:
    """Instead of sleeping: does the next thing that another worker would have done meanwhile."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self, _seconds):
        self.steps.pop(0)()


def marks(study):
    return [trial.number for trial in trials_of(study) if trial.system_attrs.get(attributes.CHOOSING)]


def test_a_turn_alone_takes_no_mark():
    study = optuna.create_study()
    for _ in range(2):
        study.tell(study.ask(), 1.0)
    own = asked(study, 1)[-1]
    turns = Turns(sleep=Clockwork())
    with turns.taken(study, own, turns.alone(study, own)) as turn:
        assert [t.number for t in turn.trials] == [0, 1, 2]
        assert marks(study) == []
        assert not turns.was_overtaken(study, own, turn)


def test_a_trial_that_appears_while_one_chooses_alone_is_noticed():
    study = optuna.create_study()
    own = asked(study, 1)[0]
    turns = Turns(sleep=Clockwork())
    with turns.taken(study, own, turns.alone(study, own)) as turn:
        study.ask()
        keep(study, own, "pbgi:trial", {"params": {"x": 0.5}})
        assert turns.was_overtaken(study, own, turn)
    turns.take_back(study, own)
    with turns.taken(study, own) as again:
        assert marks(study) == [0]
        assert is_choosing(again.trials[0])
        assert not turns.was_overtaken(study, own, again)  # in turn, nobody can have overlooked it


def test_a_choice_made_alone_is_made_again_when_another_worker_was_faster():
    """The other one appears, and takes the point that was about to be suggested, between choosing and storing it."""
    first = PBGISampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=first)
    reference = optuna.create_study(sampler=PBGISampler(seed=0, search_space=MIXED))
    point = suggest_mixed(reference.ask())

    class Slow(Turns):
        @contextlib.contextmanager
        def taken(self, study, trial, alone=None):
            if alone is not None:
                study.enqueue_trial(point)
                suggest_mixed(study.ask())
            with super().taken(study, trial, alone) as turn:
                yield turn

    first._turns = Slow()
    assert suggest_mixed(study.ask()) != point


def test_a_turn_beside_idle_trials_does_not_wait():
    """Those that were asked for, and for which nobody chooses yet, do not matter."""
    study = optuna.create_study()
    earlier, own, _ = asked(study, 3)
    turns = Turns(sleep=Clockwork())
    keep(study, earlier, attributes.CHOOSING, False)
    assert turns.alone(study, own) is None
    with turns.taken(study, own) as turn:
        assert [t.number for t in turn.trials] == [0, 1, 2]
        assert marks(study) == [1]


def test_the_earlier_trial_keeps_its_mark_and_waits():
    study = optuna.create_study()
    own, later = asked(study, 2)
    seen = []

    def later_withdraws():
        seen.append(marks(study))
        keep(study, later, attributes.CHOOSING, False)

    keep(study, later, attributes.CHOOSING, True)
    with Turns(sleep=Clockwork(later_withdraws)).taken(study, own):
        assert seen == [[0, 1]]
        assert marks(study) == [0]


def test_the_later_trial_withdraws_and_begins_again():
    study = optuna.create_study()
    earlier, own = asked(study, 2)
    seen = []

    def earlier_goes_on():
        seen.append(marks(study))

    def earlier_is_done():
        seen.append(marks(study))
        keep(study, earlier, "pbgi:trial", {"params": {"x": 0.5}})

    keep(study, earlier, attributes.CHOOSING, True)
    with Turns(sleep=Clockwork(earlier_goes_on, earlier_is_done)).taken(study, own) as turn:
        assert seen == [[0], [0]]
        assert marks(study) == [0, 1]
        assert turn.trials[0].system_attrs["pbgi:trial"] == {"params": {"x": 0.5}}  # what was chosen meanwhile


def test_a_worker_that_was_killed_is_waited_for_once():
    """Where the storage has no lock: its mark is taken away, so that the next process need not wait again."""
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    dead, own, later = asked(study, 3)
    keep(study, dead, attributes.CHOOSING, True)
    with Turns(patience=0.05).taken(study, own) as turn:
        assert not is_choosing(turn.trials[0])
    keep(study, own, "pbgi:trial", {"params": {}})
    with Turns(sleep=Clockwork()).taken(study, later) as turn:  # a fresh process: it would fail if it had to wait
        assert len(turn.trials) == 3


def test_a_worker_that_was_only_slow_chooses_again():
    """Another has lost patience, taken its mark away, and chosen without knowing of its point."""
    sampler = PBGISampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)
    study.ask()  # so that nobody is alone
    points = []

    class Slow(Turns):
        def was_overtaken(self, study, trial, turn):
            if not points:  # stored, and not yet looked whether the mark is there
                points.append(trials_of(study)[trial.number].system_attrs["pbgi:trial"]["params"])
                keep(study, trial, attributes.CHOOSING, False)
                other = study.ask()
                keep(study, trials_of(study)[other.number], "pbgi:trial", {"params": points[0]})
            return super().was_overtaken(study, trial, turn)

    sampler._turns = Slow()
    number = (trial := study.ask()).number
    suggest_mixed(trial)
    assert len(points) == 1
    assert trials_of(study)[number].system_attrs["pbgi:trial"]["params"] != points[0]


# Locks ---------------------------------------------------------------------------------------------------------------


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


def test_an_error_while_choosing_ends_the_turn():
    def price(_params):
        raise ZeroDivisionError

    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.KnownCost(price), search_space=MIXED))
    study.ask()  # not alone
    with pytest.raises(ZeroDivisionError):
        suggest_mixed(study.ask())
    assert marks(study) == []
