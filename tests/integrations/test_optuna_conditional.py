"""Studies whose programs ask for other parameters in each branch: what the sampler makes of them."""

import statistics

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import RandomSampler
from optuna_fixtures import sqlite_in

import pbgi
from pbgi.integrations.optuna import GittinsStopCallback, PBGISampler, cost_summary


def classifiers(trial):
    """The best branch looks worst at first; it is a tenth as wide as it is long."""
    if trial.suggest_categorical("model", ["forest", "svm"]) == "forest":
        return 0.1 + 0.1 * (trial.suggest_float("features", 0.0, 1.0) - 0.4) ** 2 + 0.001 * trial.suggest_int("n", 1, 9)
    far = (trial.suggest_float("C", 1e-3, 1e3, log=True) - 1.0) ** 2 / 10.0
    if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly":
        far += abs(trial.suggest_int("degree", 2, 5) - 3)
    else:
        far += 10.0 * (trial.suggest_float("gamma", 0.0, 1.0) - 0.7) ** 2
    return far / (1.0 + far)


def by_float(trial):
    """No tree: which parameter comes depends on a float."""
    x = trial.suggest_float("x", 0.0, 1.0)
    return 0.2 + 0.1 * x + trial.suggest_float("low" if x < 0.5 else "high", 0.0, 1.0) ** 2


def test_the_tree_is_learned_and_its_parameters_are_chosen_together():
    study = optuna.create_study(sampler=PBGISampler(cost=pbgi.UniformCost(), seed=1))
    study.optimize(classifiers, n_trials=30)
    together = study.sampler.infer_relative_search_space(study, study.trials[-1])
    assert together.keys() == {"model", "features", "n", "C", "kernel", "degree", "gamma"}
    suggested = [t.system_attrs["pbgi:trial"]["params"] for t in study.trials[15:]]
    assert [params.keys() for params in suggested] == [t.params.keys() for t in study.trials[15:]]


@pytest.mark.slow
def test_it_is_better_than_random():
    """After 40 trials; after 25 it is about as good, since the branch that looks worst is the best."""

    def median(sampler_of, n_seeds):
        best = []
        for seed in range(n_seeds):
            study = optuna.create_study(sampler=sampler_of(seed))
            study.optimize(classifiers, n_trials=40)
            best.append(study.best_value)
        return statistics.median(best)

    ours = median(lambda seed: PBGISampler(cost=pbgi.UniformCost(), seed=seed), 12)
    assert ours < median(lambda seed: RandomSampler(seed=seed), 32)


def test_a_study_is_resumed_as_if_it_had_not_stopped(tmp_path):
    settings = {"cost": pbgi.UniformCost(), "seed": 2}
    whole = optuna.create_study(sampler=PBGISampler(**settings))
    whole.optimize(classifiers, n_trials=16)
    optuna.create_study(storage=sqlite_in(tmp_path), study_name="parts")
    for n in (3, 4, 6, 3):
        part = optuna.load_study(storage=sqlite_in(tmp_path), study_name="parts", sampler=PBGISampler(**settings))
        part.optimize(classifiers, n_trials=n)
    assert [t.params for t in part.trials] == [t.params for t in whole.trials]


def test_a_budget_holds_over_branches_of_other_costs():
    def objective(trial):
        value = classifiers(trial)
        trial.set_user_attr("cost", 5.0 if trial.params["model"] == "svm" else 1.0)
        return value

    study = optuna.create_study(sampler=PBGISampler(budget=60.0, seed=0))
    study.optimize(objective, n_trials=100)
    spent = sum(t.user_attrs["cost"] for t in study.trials if t.user_attrs)
    assert 45.0 < spent <= 60.0
    assert {t.params["model"] for t in study.trials if t.params} == {"forest", "svm"}


@pytest.mark.parametrize("own", [True, False])
def test_no_study_ends_as_not_worth_it_while_parameters_are_not_explained(own):
    sampler = PBGISampler(cost=pbgi.UniformCost(), policy=pbgi.PBGI(10.0), seed=0) if own else RandomSampler(seed=0)
    callback = GittinsStopCallback() if own else GittinsStopCallback(10.0, cost=pbgi.UniformCost())
    study = optuna.create_study(sampler=sampler)
    study.optimize(by_float, n_trials=18, callbacks=[callback])
    assert len(study.trials) == 18
    explained = optuna.create_study(sampler=sampler)
    explained.optimize(classifiers, n_trials=40, callbacks=[callback])
    assert 10 <= len(explained.trials) < 40  # all it could gain is less than a tenth of what a trial costs


def test_a_tree_that_a_trial_refutes_is_learned_again():
    x = FloatDistribution(0.0, 1.0)
    model = CategoricalDistribution(["a", "b"])
    study = optuna.create_study(sampler=PBGISampler(seed=0))

    def add(params):
        distributions = {name: model if name == "model" else x for name in params}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=0.5))

    def together():
        return PBGISampler(seed=0).infer_relative_search_space(study, study.trials[-1]).keys()

    add({"model": "a", "x": 0.1})
    assert together() == study.sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"model", "x"}
    add({"model": "b"})
    assert together() == study.sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"model"}
    add({"model": "b"})
    assert together() == study.sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"model", "x"}
    add({"model": "b", "x": 0.3})
    assert together() == study.sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"model"}


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_price_may_ask_for_what_only_a_branch_has(vectorized):
    """The first trials do not show yet when a parameter exists: points that the price cannot tell are not fatal."""

    def price(params):
        return 1.0 + (params["C"] / 1e3 if params["model"] == "svm" else 0.1 * params["n"])

    def prices(columns):
        return 1.0 + np.where(columns["model"] == "svm", columns["C"] / 1e3, 0.1 * columns["n"])

    known = pbgi.KnownCost(prices if vectorized else price, vectorized=vectorized)
    study = optuna.create_study(sampler=PBGISampler(cost=known, seed=0, budget=40.0))
    study.optimize(classifiers, n_trials=100)
    done = [t for t in study.trials if t.state.name == "COMPLETE"]
    assert cost_summary(study).spent == pytest.approx(sum(price(t.params) for t in done))
    assert 35.0 < cost_summary(study).spent <= 40.0
