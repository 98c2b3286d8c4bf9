"""The sampler: it does what the engine does, alone and beside others, and a resumed study what it would have done."""

import copy
import logging
import os
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from optuna_fixtures import MIXED, cost_of, engine_space, from_engine, objective, sqlite_in, suggest_mixed, value_of

import pbgi
from pbgi.choosing.state import LEARNING
from pbgi.integrations.optuna import GittinsStopCallback, PBGISampler, cost_summary


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


def test_equal_choices_do_not_hide_that_all_has_been_tried():
    choices = [1, True, "a"]
    study = optuna.create_study(sampler=PBGISampler(seed=0, search_space={"x": CategoricalDistribution(choices)}))
    tried = [study.ask({"x": CategoricalDistribution(choices)}).params["x"] for _ in range(2)]
    assert sorted(map(str, tried)) == ["1", "a"]


@pytest.mark.parametrize("distribution", [IntDistribution(0, 2**50), FloatDistribution(0.0, 1.0, step=1e-15)])
def test_too_many_levels_are_left_to_the_independent_sampler(distribution):
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    space = {"huge": distribution, "x": FloatDistribution(0.0, 1.0)}
    for _ in range(3):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"])
    assert study.sampler.infer_relative_search_space(study, study.trials[-1]) == {"x": space["x"]}


def test_a_price_sees_the_values_of_the_user():
    seen = []

    def price(params):
        seen.append(dict(params))
        return 1.0 + params["x"] + (params["c"] == "slow") + params["fixed"]

    def objective(trial):
        trial.suggest_int("fixed", 3, 3)
        return trial.suggest_float("x", 0.0, 1.0, step=0.5) + len(trial.suggest_categorical("c", ["slow", "fast"]))

    study = optuna.create_study(sampler=PBGISampler(cost=pbgi.KnownCost(price), seed=0, n_startup_trials=2))
    study.optimize(objective, n_trials=4)
    assert {params["c"] for params in seen} == {"slow", "fast"}
    assert {params["x"] for params in seen} == {0.0, 0.5, 1.0}


def test_what_nothing_explains_falls_to_the_independent_sampler():
    asked = set()

    class Watched(optuna.samplers.RandomSampler):
        def sample_independent(self, study, trial, param_name, param_distribution):
            asked.add((trial.number, param_name))
            return super().sample_independent(study, trial, param_name, param_distribution)

    def objective(trial):
        name = "x" if trial.suggest_float("kind", 0.0, 1.0) < 0.5 else "y"
        return trial.suggest_float(name, 0.0, 1.0)

    study = optuna.create_study(sampler=PBGISampler(seed=0, independent_sampler=Watched(seed=1)))
    study.optimize(objective, n_trials=20)
    names = [next(name for name in t.params if name != "kind") for t in study.trials]
    both = max(names.index("x"), names.index("y"))  # until then a tree with one of them explains all there is
    at_random = {(n, name) for n in range(both + 1, 10) for name in ("kind", names[n])}
    assert {(n, name) for n, name in asked if both < n < 10} == at_random
    assert {(n, name) for n, name in asked if n >= 10} == {(n, names[n]) for n in range(10, 20)}
    assert study.sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"kind"}


def test_enqueued_parameters_are_kept_and_the_rest_is_chosen():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    space = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
    for _ in range(7):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"] + trial.params["y"])
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 0.5, "y": 0.75})
    partly, wholly, after = (study.ask(space) for _ in range(3))
    assert partly.params["x"] == 0.25
    assert wholly.params == {"x": 0.5, "y": 0.75}
    assert after.params not in (partly.params, wholly.params)


@pytest.mark.parametrize("pruner", [optuna.pruners.HyperbandPruner(), optuna.pruners.MedianPruner()])
def test_pruners_see_nothing_strange(pruner):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 1.0)
        for step in range(5):
            trial.report(x + 1.0 / (1 + step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=PBGISampler(budget=12.0, seed=0), pruner=pruner)
    study.optimize(objective, n_trials=30)
    charged = [trial for trial in study.trials if trial.params]
    assert 11 <= len(charged) <= 12  # pruned ones too, and those that another bracket had
    assert len({trial.params["x"] for trial in charged}) == len(charged)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"budget": -1.0}, "budget must be a positive"),
        ({"seed": -1}, "seed must be"),
        ({"policy": "PBGI"}, "policy must be"),
        ({"n_startup_trials": -1}, "n_startup_trials must be"),
        ({"search_space": {"x": (0, 1)}}, "search_space must map names to distributions"),
        ({"independent_sampler": 3}, "independent_sampler must be a sampler"),
    ],
)
def test_wrong_arguments_are_refused_at_once(wrong, match):
    with pytest.raises(pbgi.InvalidInputError, match=match):
        PBGISampler(**wrong)


def test_an_unknown_argument_is_named():
    with pytest.raises(pbgi.UnknownArgumentError, match="did you mean 'budget'"):
        PBGISampler(budgett=3)


def test_several_objectives_are_refused_with_the_way_out():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=PBGISampler())
    with pytest.raises(pbgi.InvalidInputError, match="one objective; got 2 directions; combine them"):
        study.ask().suggest_float("x", 0.0, 1.0)


@pytest.mark.parametrize(
    "distribution",
    [FloatDistribution(0.0, 1.0, step=0.0005), IntDistribution(1, 5000, log=True), IntDistribution(0, 4000)],
)
def test_grids_of_many_steps_do_not_repeat(distribution):
    sampler = PBGISampler(seed=0, search_space={"x": distribution}, cost=pbgi.UniformCost())
    study = optuna.create_study(sampler=sampler)
    for _ in range(30):
        trial = study.ask({"x": distribution})
        study.tell(trial, abs(distribution.to_internal_repr(trial.params["x"]) - 0.3 * distribution.high))
    assert len({trial.params["x"] for trial in study.trials}) == 30


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


def test_asking_at_the_end_of_a_budget_leaves_nothing_running():
    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.UniformCost(), budget=3.0, search_space=MIXED))
    asked = [study.ask() for _ in range(6)]
    refused = []
    for trial in asked:
        try:
            study.tell(trial, value_of(suggest_mixed(trial)))
        except optuna.TrialPruned:
            refused.append(trial.number)
    assert len(refused) == 3
    assert [trial.number for trial in study.get_trials(states=[TrialState.PRUNED])] == refused
    with pytest.raises(optuna.TrialPruned):
        study.ask(MIXED)
    assert not study.get_trials(states=[TrialState.RUNNING])
    assert cost_summary(study).spent == 3.0


def test_what_is_left_of_a_budget_goes_to_the_first_of_several_trials_that_were_asked_for():
    """Later ones have nothing yet, and hold nothing: they do not keep the budget from being spent."""
    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.UniformCost(), budget=6.0, search_space=MIXED))
    outcomes = []
    for _ in range(2):
        for trial in [study.ask() for _ in range(4)]:
            try:
                study.tell(trial, value_of(suggest_mixed(trial)))
                outcomes.append("complete")
            except optuna.TrialPruned:
                outcomes.append("pruned")
    assert outcomes == ["complete"] * 6 + ["pruned"] * 2
    assert cost_summary(study).spent == 6.0


# What it says of a script that does not do what it should ------------------------------------------------------------


def fails(trial):
    return {}["loss"] + trial.suggest_float("x", 0.0, 1.0)


def test_a_broken_objective_ends_quickly():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    with pytest.raises(pbgi.BrokenFunctionError, match=r"the first 5 trials of study .* failed, and none gave"):
        study.optimize(fails, n_trials=50, catch=(KeyError,))
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 5 + [TrialState.PRUNED]
    mended = lambda trial: trial.suggest_float("x", 0.0, 1.0)  # noqa: E731 (no more than that)
    study.optimize(mended, n_trials=2)
    assert study.best_trial.number > 5


def test_an_objective_without_a_return_ends_quickly():
    study = optuna.create_study(sampler=PBGISampler(seed=0, max_failures=3))
    with pytest.raises(pbgi.BrokenFunctionError, match=r"PBGISampler\(max_failures=None\)"):
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) and None, n_trials=50)
    assert len(study.get_trials(states=[TrialState.FAIL])) == 3


def test_asking_and_telling_a_broken_objective_ends_quickly():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    for _ in range(5):
        study.tell(study.ask(MIXED), state=TrialState.FAIL)
    with pytest.raises(pbgi.BrokenFunctionError):
        study.ask(MIXED)
    assert not study.get_trials(states=[TrialState.RUNNING])


def test_failures_go_on_if_asked_for_and_after_a_success():
    patient = optuna.create_study(sampler=PBGISampler(seed=0, max_failures=None))
    patient.optimize(fails, n_trials=8, catch=(KeyError,))
    worked = optuna.create_study(sampler=PBGISampler(seed=0))
    worked.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    worked.optimize(fails, n_trials=7, catch=(KeyError,))
    assert (len(patient.trials), len(worked.trials)) == (8, 8)


def test_results_of_another_study_are_no_success_of_a_broken_objective():
    old = optuna.create_study(sampler=PBGISampler(seed=0))
    old.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    study.add_trials(old.trials)
    with pytest.raises(pbgi.BrokenFunctionError):
        study.optimize(fails, n_trials=50, catch=(KeyError,))
    assert len(study.get_trials(states=[TrialState.FAIL])) == 5


@pytest.mark.parametrize("warns", [True, False])
def test_what_is_left_to_the_independent_sampler_is_said_once(caplog, warns):
    """Of a parameter that is there at random, and not of one that is new to the study."""

    def some(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number in (2, 3, 5, 8, 12, 13):
            trial.suggest_float("sometimes", 0.0, 1.0)
        return x

    logger = logging.getLogger("optuna.pbgi")
    logger.addHandler(caplog.handler)
    try:
        sampler = PBGISampler(seed=0, n_startup_trials=4, warn_independent_sampling=warns)
        optuna.create_study(sampler=sampler).optimize(some, n_trials=14)
    finally:
        logger.removeHandler(caplog.handler)
    said = {record.getMessage() for record in caplog.records if record.name == "optuna.pbgi"}  # each names its trial
    assert len(said) == warns
    assert all("'sometimes'" in message and "warn_independent_sampling=False" in message for message in said)
