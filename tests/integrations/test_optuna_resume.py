"""The state lives in the study: the sampler does what the engine does, and a resumed study what it would have done."""

import copy

import pytest

pytest.importorskip("optuna.samplers")

import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial
from optuna_fixtures import MIXED, cost_of, engine_space, from_engine, objective, sqlite_in, suggest_mixed, value_of

import pbgi
from pbgi.integrations.optuna import GittinsStopCallback, PBGISampler, cost_summary
from pbgi.study.suggestion import suggestion_of


def run(study, n_trials):
    study.optimize(objective, n_trials=n_trials, catch=(FloatingPointError,))


def points(study):
    return [trial.params for trial in study.trials]


def tell_engine(optimizer, trial):
    params = from_engine(trial.params)
    if trial.number % 7 in (5, 6):
        optimizer.fail(trial, cost=cost_of(params))
    else:
        optimizer.tell(trial, value_of(params), cost=cost_of(params))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("policy", [None, pbgi.PBGI(0.01), pbgi.LogEICC()])
def test_suggests_what_the_engine_suggests(direction, policy):
    """Trial by trial and bit by bit, if the search space is told: failures, costs, budget and notes included."""
    sampler = PBGISampler(budget=60.0, policy=policy, seed=3, search_space=MIXED)
    study = optuna.create_study(direction=direction, sampler=sampler)
    run(study, 16)
    optimizer = pbgi.Optimizer(engine_space(), direction=direction, budget=60.0, policy=policy, seed=3)
    for params in points(study):
        trial = optimizer.ask()
        assert from_engine(trial.params) == params
        tell_engine(optimizer, trial)


@pytest.mark.parametrize("told", [True, False])
def test_resumed_study_goes_on_as_if_it_had_not_stopped(tmp_path, told):
    settings = {"budget": 80.0, "seed": 1, "search_space": MIXED if told else None}
    whole = optuna.create_study(sampler=PBGISampler(**settings))
    run(whole, 16)
    optuna.create_study(storage=sqlite_in(tmp_path), study_name="parts")
    for n_trials in (1, 1, 6, 1, 3, 4):
        part = optuna.load_study(storage=sqlite_in(tmp_path), study_name="parts", sampler=PBGISampler(**settings))
        run(part, n_trials)
    assert points(part) == points(whole)
    assert [trial.state for trial in part.trials] == [trial.state for trial in whole.trials]


def test_resumed_study_with_running_trials(tmp_path):
    """What was handed out and not yet told is pending in the new process too, whether or not it was suggested."""

    def begin(study):
        for number in range(8):
            trial = study.ask()
            suggest_mixed(trial)
            study.tell(trial, float(number), state=TrialState.COMPLETE)
        waiting = study.ask()
        waiting.suggest_float("lr", 1e-4, 1.0, log=True)  # the rest of its point is known to the storage only
        study.ask()  # nothing suggested yet

    uniform = {"seed": 5, "cost": pbgi.UniformCost(), "budget": 30.0}
    whole = optuna.create_study(sampler=PBGISampler(**uniform))
    begin(whole)
    stored = optuna.create_study(storage=sqlite_in(tmp_path), study_name="s", sampler=PBGISampler(**uniform))
    begin(stored)
    resumed = optuna.load_study(storage=sqlite_in(tmp_path), study_name="s", sampler=PBGISampler(**uniform))
    for _ in range(3):
        assert suggest_mixed(resumed.ask()) == suggest_mixed(whole.ask())


def test_stopping_rule_is_resumed(tmp_path):
    """Patience counts over restarts: the notes it counts are stored with the trials."""

    def parabola(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 1.0)
        return (x - 0.3) ** 2

    settings = {"policy": pbgi.PBGI(1e-3), "seed": 0}
    whole = optuna.create_study(sampler=PBGISampler(**settings))
    whole.optimize(parabola, n_trials=60, callbacks=[GittinsStopCallback()])
    optuna.create_study(storage=sqlite_in(tmp_path), study_name="s")
    for _ in range(60):
        part = optuna.load_study(storage=sqlite_in(tmp_path), study_name="s", sampler=PBGISampler(**settings))
        part.optimize(parabola, n_trials=1, callbacks=[GittinsStopCallback()])
        if part.user_attrs.get("pbgi:stop"):
            break
    assert len(part.trials) == len(whole.trials) < 60
    assert part.user_attrs["pbgi:stop"] == whole.user_attrs["pbgi:stop"]


def test_copies_of_a_sampler_are_as_good_as_it():
    study = optuna.create_study(sampler=PBGISampler(seed=2))
    run(study, 8)
    copied = copy.deepcopy(study)
    run(copied, 3)
    run(study, 3)
    assert points(copied) == points(study)


def test_one_sampler_may_serve_two_studies():
    sampler, alone = PBGISampler(seed=4), PBGISampler(seed=4)
    first, second = optuna.create_study(sampler=sampler), optuna.create_study(sampler=sampler)
    reference = optuna.create_study(sampler=alone)
    for _ in range(9):
        run(first, 1)
        second.optimize(lambda trial: trial.suggest_float("lr", 0.0, 2.0), n_trials=1)
        run(reference, 1)
    assert points(first) == points(reference)


def test_without_a_seed_runs_differ():
    studies = [optuna.create_study(sampler=PBGISampler()) for _ in range(2)]
    for study in studies:
        run(study, 2)
    assert points(studies[0]) != points(studies[1])


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"params": {}, "color": 1}, "unknown: 'color'"),
        ({"params": {}, "format": 2}, "got format 2"),
        ({"params": {"x": "much"}}, "got params="),
        ({"params": {}, "predicted_cost": "1"}, "got predicted_cost='1'"),
        ({"params": {}, "record": [1]}, r"got record=\[1\]"),
        ("point", "got 'point'"),
    ],
)
def test_what_another_version_has_stored_is_one_clear_error(stored, says):
    study = optuna.create_study(sampler=PBGISampler(seed=0, search_space={"x": FloatDistribution(0.0, 1.0)}))
    trial = create_trial(value=1.0, system_attrs={"pbgi:trial": stored})
    study.add_trial(trial)
    with pytest.raises(pbgi.InvalidInputError, match=f"attribute 'pbgi:trial' of trial 0 must be of format 1; {says}"):
        cost_summary(study)
    with pytest.raises(pbgi.InvalidInputError, match="another version of pbgi wrote it, or it is damaged"):
        study.ask({"x": FloatDistribution(0.0, 1.0)})


def test_what_was_stored_before_there_was_a_format_is_read():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    old = {"params": {"x": 0.5}, "predicted_cost": 2.0, "priced": False, "record": {}, "refused": None}
    study.add_trial(create_trial(value=1.0, system_attrs={"pbgi:trial": old}))
    assert suggestion_of(study.trials[0]).predicted_cost == 2.0
    study.ask({"x": FloatDistribution(0.0, 1.0)})
    assert study.trials[1].system_attrs["pbgi:trial"]["format"] == 1
