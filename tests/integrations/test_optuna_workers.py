"""Several workers on one study: none gets a point of another, and together they keep to the budget."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("optuna.samplers")

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState
from optuna_fixtures import MIXED, sqlite_in, suggest_mixed, value_of

import pbgi
from pbgi.integrations.optuna import PBGISampler, cost_summary
from pbgi.integrations.optuna.kept import CHOOSING_KEY, is_choosing, keep, trials_of
from pbgi.integrations.optuna.turn import Turns
from pbgi.optimizer import LEARNING

WORKER = Path(__file__).with_name("optuna_worker.py")


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
    return [trial.number for trial in trials_of(study) if trial.system_attrs.get(CHOOSING_KEY)]


def test_a_turn_alone_takes_no_mark():
    study = optuna.create_study()
    for _ in range(2):
        study.tell(study.ask(), 1.0)
    own = asked(study, 1)[-1]
    turns = Turns(sleep=Clockwork())
    turn = turns.begin(study, own)
    assert [t.number for t in turns.wait(study, own, turn)] == [0, 1, 2]
    assert marks(study) == []
    assert not turns.was_overtaken(study, own, turn)


def test_a_trial_that_appears_while_one_chooses_alone_is_noticed():
    study = optuna.create_study()
    own = asked(study, 1)[0]
    turns = Turns(sleep=Clockwork())
    turn = turns.begin(study, own)
    study.ask()
    keep(study, own, "pbgi:trial", {"params": {"x": 0.5}})
    assert turns.was_overtaken(study, own, turn)
    again = turns.begin_again(study, own)
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
        def wait(self, study, trial, turn):
            if turn.alone:
                study.enqueue_trial(point)
                suggest_mixed(study.ask())
            return super().wait(study, trial, turn)

    first._turns = Slow()
    assert suggest_mixed(study.ask()) != point


def test_a_turn_beside_idle_trials_does_not_wait():
    """Those that were asked for, and for which nobody chooses yet, do not matter."""
    study = optuna.create_study()
    earlier, own, _ = asked(study, 3)
    turns = Turns(sleep=Clockwork())
    keep(study, earlier, CHOOSING_KEY, False)
    assert [t.number for t in turns.wait(study, own, turns.begin(study, own))] == [0, 1, 2]
    assert marks(study) == [1]


def test_the_earlier_trial_keeps_its_mark_and_waits():
    study = optuna.create_study()
    own, later = asked(study, 2)
    seen = []

    def later_withdraws():
        seen.append(marks(study))
        keep(study, later, CHOOSING_KEY, False)

    keep(study, later, CHOOSING_KEY, True)
    turns = Turns(sleep=Clockwork(later_withdraws))
    turns.wait(study, own, turns.begin(study, own))
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

    keep(study, earlier, CHOOSING_KEY, True)
    turns = Turns(sleep=Clockwork(earlier_goes_on, earlier_is_done))
    trials = turns.wait(study, own, turns.begin(study, own))
    assert seen == [[0], [0]]
    assert marks(study) == [0, 1]
    assert trials[0].system_attrs["pbgi:trial"] == {"params": {"x": 0.5}}  # it sees what was chosen meanwhile


def test_a_worker_that_was_killed_is_not_waited_for_forever():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    dead, own = asked(study, 2)
    keep(study, dead, CHOOSING_KEY, True)
    turns = Turns(patience=0.05)
    assert len(turns.wait(study, own, turns.begin(study, own))) == 2


def test_an_error_while_choosing_ends_the_turn():
    def price(_params):
        raise ZeroDivisionError

    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.KnownCost(price), search_space=MIXED))
    study.ask()  # not alone
    with pytest.raises(ZeroDivisionError):
        suggest_mixed(study.ask())
    assert marks(study) == []
