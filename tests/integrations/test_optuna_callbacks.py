"""Callbacks stop a study, say why, and store it."""

import logging

import pytest

pytest.importorskip("optuna.samplers")

import optuna
from optuna_fixtures import sqlite_in

import pbgi
from pbgi.integrations.optuna import STOP_KEY, BudgetCallback, GittinsStopCallback, PBGISampler, cost_summary

N_MOST = 60


def parabola(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.set_user_attr("cost", 1.0)
    return (x - 0.3) ** 2


def stopped(sampler, callback, n_trials=N_MOST):
    study = optuna.create_study(sampler=sampler)
    study.optimize(parabola, n_trials=n_trials, callbacks=[callback])
    return study


def test_stops_when_nothing_is_worth_its_price():
    """At an exchange rate of 0.1 a trial of cost 1 must be expected to gain 0.1: near the optimum none does."""
    study = stopped(PBGISampler(policy=pbgi.PBGI(0.1), seed=0), GittinsStopCallback())
    assert len(study.trials) < 20
    reason = study.user_attrs[STOP_KEY]
    assert reason["rule"] == "GittinsStop"
    assert reason["message"].startswith("no further trial is worth its price")
    assert reason["numbers"]["best_value"] == study.best_value
    assert reason["numbers"]["net_gain"] <= 0.0


def test_a_lower_price_buys_more_trials():
    lengths = [len(stopped(PBGISampler(policy=pbgi.PBGI(s), seed=0), GittinsStopCallback()).trials) for s in (1, 1e-5)]
    assert lengths[0] < lengths[1] < N_MOST


def test_a_rule_of_its_own_beside_another_policy():
    sampler = PBGISampler(stop=pbgi.GittinsStop(0.1), seed=0)
    assert len(stopped(sampler, GittinsStopCallback()).trials) < 20


@pytest.mark.parametrize("sampler", [optuna.samplers.RandomSampler(seed=0), PBGISampler(seed=0)])
def test_any_sampler_can_be_stopped(sampler):
    study = stopped(sampler, GittinsStopCallback(0.1))
    assert 3 <= len(study.trials) < 40
    assert study.user_attrs[STOP_KEY]["rule"] == "GittinsStop"


def test_patience_counts_trials_in_a_row():
    eager, patient = (
        stopped(optuna.samplers.RandomSampler(seed=0), GittinsStopCallback(0.1, patience=p)) for p in (1, 5)
    )
    assert len(patient.trials) >= len(eager.trials) + 4


@pytest.mark.parametrize("sampler", [optuna.samplers.RandomSampler(), PBGISampler()])
def test_without_a_rule_it_says_where_to_put_one(sampler):
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(
        pbgi.InvalidInputError, match=r"must have a cost_scale.*write GittinsStopCallback\(cost_scale\)"
    ):
        study.optimize(parabola, n_trials=2, callbacks=[GittinsStopCallback()])


def test_an_exhausted_space_stops_the_study():
    study = optuna.create_study(sampler=PBGISampler(policy=pbgi.PBGI(1e-9), seed=0))
    study.optimize(lambda trial: trial.suggest_int("i", 0, 4), n_trials=N_MOST, callbacks=[GittinsStopCallback()])
    assert sorted(trial.params["i"] for trial in study.trials) == [0, 1, 2, 3, 4]
    assert study.user_attrs[STOP_KEY]["rule"] == "SpaceExhausted"


# The budget ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "callback"),
    [
        (PBGISampler(budget=7.0, seed=0), BudgetCallback()),
        (PBGISampler(seed=0), BudgetCallback(7.0)),
        (optuna.samplers.TPESampler(seed=0), BudgetCallback(7.0)),
    ],
)
def test_the_budget_stops_any_study(sampler, callback):
    study = stopped(sampler, callback)
    assert len(study.trials) == 7
    assert study.user_attrs[STOP_KEY] == {
        "rule": "BudgetSpent",
        "message": "the budget of 7 is spent: 7",
        "numbers": {"budget": 7.0, "spent": 7.0, "reserved": 0.0, "left": 0.0},
    }


def test_it_stops_before_a_trial_that_would_not_fit():
    study = stopped(PBGISampler(budget=7.5, seed=0), BudgetCallback())
    assert len(study.trials) == 7  # and no eighth that was begun in vain
    assert "no trial is expected to fit the 0.5 that is left" in study.user_attrs[STOP_KEY]["message"]


def test_restarts_share_the_budget(tmp_path):
    optuna.create_study(storage=sqlite_in(tmp_path), study_name="s")
    for _ in range(4):
        sampler = PBGISampler(budget=7.0, seed=0)
        study = optuna.load_study(storage=sqlite_in(tmp_path), study_name="s", sampler=sampler)
        study.optimize(parabola, n_trials=3, callbacks=[BudgetCallback()])
    assert cost_summary(study).spent == 7.0
    assert len([trial for trial in study.trials if trial.params]) == 7


def test_running_trials_count():
    study = optuna.create_study(sampler=PBGISampler(budget=7.0, seed=0, cost=pbgi.UniformCost()))
    study.optimize(parabola, n_trials=1)
    for _ in range(3):  # of other workers
        study.ask().suggest_float("x", 0.0, 1.0)
    study.optimize(parabola, n_trials=N_MOST, callbacks=[BudgetCallback()])
    assert len(study.trials) == 7
    assert "3 held for running trials" in study.user_attrs[STOP_KEY]["message"]


def test_a_larger_budget_goes_on_and_forgets_the_reason():
    study = stopped(PBGISampler(budget=3.0, seed=0), BudgetCallback())
    assert study.user_attrs[STOP_KEY] is not None
    study.sampler = PBGISampler(budget=6.0, seed=0)
    study.optimize(parabola, n_trials=1, callbacks=[BudgetCallback()])
    assert study.user_attrs[STOP_KEY] is None
    assert cost_summary(study).stopped is None
    study.optimize(parabola, callbacks=[BudgetCallback()])
    assert cost_summary(study).stopped == "the budget of 6 is spent: 6"
    assert len(study.trials) == 6


def test_a_callback_without_a_budget_says_so():
    study = optuna.create_study(sampler=PBGISampler())
    with pytest.raises(pbgi.InvalidInputError, match=r"write BudgetCallback\(budget\)"):
        study.optimize(parabola, n_trials=1, callbacks=[BudgetCallback()])
    with pytest.raises(pbgi.InvalidInputError, match="budget must be a positive"):
        BudgetCallback(0.0)


def test_the_reason_is_logged_once(caplog):
    logger = logging.getLogger("optuna")
    optuna.logging.set_verbosity(optuna.logging.INFO)
    logger.addHandler(caplog.handler)
    try:
        stopped(PBGISampler(budget=3.0, cost=pbgi.UniformCost(), seed=0), BudgetCallback())
    finally:
        logger.removeHandler(caplog.handler)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    lines = [record.message for record in caplog.records if "Study stopped" in record.message]
    assert lines == ["Study stopped after trial 2: the budget of 3 is spent: 3"]


def test_without_a_callback_the_sampler_keeps_to_the_budget_itself():
    study = optuna.create_study(sampler=PBGISampler(budget=4.0, cost=pbgi.UniformCost(), seed=0))
    study.optimize(parabola, n_trials=N_MOST)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4 + ["PRUNED"]
    assert study.user_attrs[STOP_KEY]["rule"] == "BudgetSpent"


def test_ask_says_that_nothing_is_left():
    study = optuna.create_study(sampler=PBGISampler(budget=4.0, cost=pbgi.UniformCost(), seed=0))
    study.optimize(parabola, n_trials=4)
    with pytest.raises(pbgi.NothingLeftError, match="the budget of 4 is spent"):
        study.ask().suggest_float("x", 0.0, 1.0)
