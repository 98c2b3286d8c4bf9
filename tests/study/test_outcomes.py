"""Outcomes in a study: as Optuna stores them, as `pbgi tune` does, and what a sampler and reports make of them."""

import copy
import math

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

import pbgi
from pbgi.constraints.constraint import AtLeast, AtMost
from pbgi.errors import InvalidInputError
from pbgi.integrations.optuna import PBGISampler, cost_summary
from pbgi.integrations.optuna.summary import best_trial
from pbgi.report.source import subject_of
from pbgi.study import attributes
from pbgi.study.outcomes import beyond, constraints_of, keeps_all, outcomes_of


def finished(value, **attrs):
    user = {attributes.OUTCOMES: attrs.pop("told")} if "told" in attrs else {}
    return create_trial(value=value, user_attrs=user, system_attrs=attrs)


def test_both_forms_of_optuna_and_ours():
    one_by_one = finished(1.0, **{"constraints:a": 0.5, "constraints:b": -1.0})
    assert outcomes_of(one_by_one) == {"a": 0.5, "b": -1.0}
    assert outcomes_of(finished(1.0, constraints=[0.5, -1.0])) == {"0": 0.5, "1": -1.0}
    assert outcomes_of(finished(1.0, constraints=[0.5], told={"ms": 12.0})) == {"ms": 12.0}
    assert outcomes_of(finished(1.0, constraints=None)) == outcomes_of(finished(1.0)) == {}
    running = create_trial(state=TrialState.RUNNING, system_attrs={"constraints:a": 0.5})
    assert outcomes_of(running) == {}
    if hasattr(one_by_one, "constraints"):  # Optuna 5 reads what it stores as we do
        assert one_by_one.constraints == outcomes_of(one_by_one)


def test_conditions_that_trials_speak_of():
    trials = [finished(1.0), finished(2.0, constraints=[0.5]), finished(3.0, constraints=[0.0])]
    assert constraints_of(None, trials) == {"0": AtMost(0.0)}
    assert constraints_of(None, trials[:1]) is None
    assert constraints_of({"ms": AtMost(1.0)}, trials) == {"ms": AtMost(1.0)}
    assert [keeps_all(trial, {"0": AtMost(0.0)}) for trial in trials] == [False, False, True]
    assert best_trial(trials, "minimize").value == 3.0
    assert best_trial(trials[:1], "minimize").value == 1.0
    assert beyond({"a": AtMost(10.0), "b": AtLeast(1.0)}, {"a": 12.0, "b": 3.0}) == [2.0, -2.0]
    assert beyond({"a": AtMost(10.0)}, {}) == []


def ask_and_tell(study, n, tell):
    space = {name: FloatDistribution(0.0, 1.0) for name in "xy"}
    for _ in range(n):
        trial = study.ask(space)
        x, y = trial.params["x"], trial.params["y"]
        tell(trial, 0.5 - x - y * y)
        study.tell(trial, x + y)
    return study


def by_function():
    sampler = PBGISampler(seed=0, cost=pbgi.UniformCost(), constraints_func=lambda t: [t.user_attrs["c"]])
    return ask_and_tell(optuna.create_study(sampler=sampler), 12, lambda t, c: t.set_user_attr("c", c))


def test_the_function_of_optuna_finds_the_border_of_the_feasible_region():
    """The least x + y with x + y^2 at least 1/2 is 1/2."""
    study = by_function()
    summary, subject = cost_summary(study), subject_of(study)
    assert study.trials[0].system_attrs["constraints"] == [study.trials[0].user_attrs["c"]]
    assert summary.best_number == subject.best.number
    assert subject.best.value == pytest.approx(0.5, abs=0.02)
    assert subject.best.constraints["0"] <= 0.0
    assert any(trial.value < 0.5 for trial in study.trials), "what is not feasible is not the best"
    assert subject.conditions[0].binds


@pytest.mark.skipif(not hasattr(optuna.Trial, "set_constraint"), reason="Optuna 5")
def test_constraints_set_by_trials_do_the_same():
    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.UniformCost()))
    ask_and_tell(study, 12, lambda t, c: t.set_constraint("0", c))
    assert [t.params for t in study.trials] == [t.params for t in by_function().trials]
    assert study.best_trial.number == cost_summary(study).best_number


def test_what_the_function_must_be_and_return():
    with pytest.raises(InvalidInputError, match="must be a function of a trial"):
        PBGISampler(constraints_func=[0.0])
    for found in (math.nan, [math.nan], ["a"], None):
        study = optuna.create_study(sampler=PBGISampler(constraints_func=lambda _t, found=found: found))
        with pytest.raises(InvalidInputError, match="must return finite numbers"):
            study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
    sampler = PBGISampler(constraints_func=len)
    assert copy.deepcopy(sampler)._constraints_func is len
