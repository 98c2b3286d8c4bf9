"""The pruner in studies: what it prunes, what it leaves alone, and any sampler."""

import math

import optuna
import pytest
from optuna.trial import TrialState

from pbgi import InvalidInputError, UniformCost
from pbgi.integrations.optuna import GittinsPruner, PBGISampler

optuna.logging.set_verbosity(optuna.logging.WARNING)
STEPS = 16


def last_loss(x):
    return (x - 0.3) ** 2


def objective(trial, sign=1.0, first=1):
    """All curves fall alike, so that what is behind stays behind."""
    x = trial.suggest_float("x", 0.0, 1.0)
    for step in range(STEPS):
        trial.set_user_attr("cost", step + 1.0)
        trial.report(sign * (last_loss(x) + 0.5 ** (step / 2.0)), step + first)
        if trial.should_prune():
            raise optuna.TrialPruned
    return sign * last_loss(x)


def study_of(sampler, pruner=None, direction="minimize"):
    return optuna.create_study(sampler=sampler, pruner=pruner or GittinsPruner(), direction=direction)


@pytest.mark.parametrize("sampler", ["random", "tpe", "pbgi"])
@pytest.mark.parametrize(("direction", "first"), [("minimize", 1), ("maximize", 0)])
def test_it_prunes_bad_trials_and_keeps_good_ones(sampler, direction, first):
    made = {
        "random": lambda: optuna.samplers.RandomSampler(seed=1),
        "tpe": lambda: optuna.samplers.TPESampler(seed=1),
        "pbgi": lambda: PBGISampler(seed=1),
    }[sampler]()
    study = study_of(made, direction=direction)
    sign = 1.0 if direction == "minimize" else -1.0
    study.optimize(lambda trial: objective(trial, sign, first), n_trials=25)
    pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert {t.number for t in complete} >= {0, 1, 2}
    assert len(pruned) >= (3 if sampler == "pbgi" else 5)  # ours soon tries good ones alone
    assert last_loss(study.best_params["x"]) < 0.01
    # Nothing that was pruned would have been better than the best at the end, by more than the last step tells apart.
    assert min(last_loss(t.params["x"]) for t in pruned) > last_loss(study.best_params["x"]) - 1e-3


def test_it_prunes_nothing_without_evidence():
    study = study_of(optuna.samplers.RandomSampler(seed=0))
    for _ in range(2):
        study.optimize(objective, n_trials=1)
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    trial.report(1e9, 1)
    assert not trial.should_prune()


def bad_trial(study, steps=2, value=30.0):
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    asked = []
    for step in range(1, steps + 1):
        trial.set_user_attr("cost", float(step))
        trial.report(value, step)
        asked.append(trial.should_prune())
    return asked


def test_warmup_steps_come_first():
    study = study_of(optuna.samplers.RandomSampler(seed=0), GittinsPruner(n_warmup_steps=3, n_startup_trials=5))
    study.optimize(objective, n_trials=4)
    assert not any(bad_trial(study, STEPS - 1))  # four of five
    study.optimize(objective, n_trials=5)
    asked = bad_trial(study, 8)
    assert not any(asked[:2])
    assert any(asked[2:])


def test_a_value_that_is_no_number_is_pruned_once_there_is_evidence():
    study = study_of(optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=3)
    assert bad_trial(study, 1, math.nan) == [True]


def test_trials_that_go_on_for_longer_than_all_before_are_not_pruned():
    study = study_of(optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=4)
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    trial.report(99.0, STEPS + 5)
    assert not trial.should_prune()


def test_durations_are_costs_where_none_are_told_and_failures_do_no_harm():
    def fails(trial):
        if trial.number == 2:
            raise ValueError("broken")
        x, kind = trial.suggest_float("x", 0.0, 1.0), trial.suggest_categorical("kind", ["a", "b"])
        for step in range(8):
            trial.report(last_loss(x) + 0.1 * (kind == "b") + 0.5**step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return last_loss(x) + 0.1 * (kind == "b")

    study = study_of(optuna.samplers.RandomSampler(seed=3))
    study.optimize(fails, n_trials=15, catch=(ValueError,))
    assert [t.state for t in study.trials].count(TrialState.FAIL) == 1
    assert study.best_value < 0.3


@pytest.mark.parametrize("seed", [1, 2])
def test_what_comes_before_the_first_step_is_not_taken_for_a_step(seed):
    """Without told costs, choosing the point took nearly all of a trial: good ones were pruned after a step of five."""

    def trains(trial):
        loss = (trial.suggest_float("a", 0.0, 5.0) - 2.0) ** 2 + (trial.suggest_float("b", 0.0, 10.0) - 7.0) ** 2
        for step in range(5):
            trial.report(loss + 0.5**step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss

    study = optuna.create_study(sampler=PBGISampler(seed=seed, cost=UniformCost()), pruner=GittinsPruner())
    study.optimize(trains, n_trials=16)
    states = [trial.state for trial in study.trials[3:]]
    assert TrialState.PRUNED in states
    assert states.count(TrialState.COMPLETE) >= 4
    assert study.best_value < 0.05  # of the first three, the only ones that came to their end before, 9.6 and 3.5


def test_studies_of_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(InvalidInputError, match="one objective"):
        GittinsPruner().prune(study, study.ask())


@pytest.mark.parametrize("arguments", [{"n_warmup_steps": -1}, {"n_startup_trials": 1.5}, {"cost_scale": 0.0}])
def test_arguments_are_checked(arguments):
    with pytest.raises(InvalidInputError):
        GittinsPruner(**arguments)
