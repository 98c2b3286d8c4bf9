"""Results of trials that were failed as abandoned: taken, charged once, and learned from."""

import math

import pytest

pytest.importorskip("optuna.samplers")

import optuna
from optuna.trial import TrialState
from optuna_fixtures import MIXED, cost_of, sqlite_in, suggest_mixed, value_of

import pbgi
from pbgi.integrations.optuna import PBGISampler, cost_summary, fail_abandoned, tell_result


@pytest.fixture
def study(tmp_path):
    sampler = PBGISampler(seed=0, budget=100.0, search_space=MIXED)
    return optuna.create_study(storage=sqlite_in(tmp_path), sampler=sampler)


def run(study, n):
    for _ in range(n):
        params = suggest_mixed(trial := study.ask())
        tell_result(study, trial, value_of(params), cost=cost_of(params))


def abandoned(study):
    """A trial that was failed though its worker goes on, and its point."""
    trial = study.ask()
    params = suggest_mixed(trial)
    assert trial.number in fail_abandoned(study, older_than=1e-9)
    return trial, params


def test_a_late_result_is_taken_and_charged_instead_of_what_was_held(study):
    run(study, 3)
    before = cost_summary(study).spent
    trial, params = abandoned(study)
    assert cost_summary(study).spent > before  # what was held for it
    late = tell_result(study, trial, -5.0, cost=2.5)
    assert (late.state, late.value, late.params) == (TrialState.COMPLETE, -5.0, params)
    assert study.best_value == -5.0
    assert cost_summary(study).spent == pytest.approx(before + 2.5, rel=1e-12)


def test_without_a_cost_a_late_result_is_charged_what_was_held(study):
    run(study, 3)
    trial, _ = abandoned(study)
    before = cost_summary(study).spent
    tell_result(study, trial.number, 1.0)
    assert cost_summary(study).spent == pytest.approx(before, rel=1e-12)


def test_a_cost_that_the_worker_had_told_before_it_was_given_up_counts(study):
    run(study, 3)
    before = cost_summary(study).spent
    trial = study.ask()
    suggest_mixed(trial)
    trial.set_user_attr("cost", 1.25)
    fail_abandoned(study, older_than=1e-9)
    tell_result(study, trial, 1.0)
    assert cost_summary(study).spent == pytest.approx(before + 1.25, rel=1e-12)


def test_the_next_suggestion_is_that_of_a_study_where_nothing_was_late(tmp_path, study):
    """The trial that was given up counts no more, not even as a failure of its point."""
    run(study, 4)
    trial, params = abandoned(study)
    tell_result(study, trial, value_of(params), cost=cost_of(params))
    (tmp_path / "other").mkdir()
    sampler = PBGISampler(seed=0, budget=100.0, search_space=MIXED)
    undisturbed = optuna.create_study(storage=sqlite_in(tmp_path / "other"), sampler=sampler)
    run(undisturbed, 5)
    assert [t.params for t in undisturbed.trials] == [t.params for t in study.trials if t.value is not None]
    assert suggest_mixed(study.ask()) == suggest_mixed(undisturbed.ask())


def test_telling_a_late_result_again_changes_nothing_and_another_one_is_refused(study):
    run(study, 1)
    trial, _ = abandoned(study)
    late = tell_result(study, trial, 1.0, cost=2.0)
    assert tell_result(study, trial, 1.0, cost=2.0).number == tell_result(study, trial, 1.0).number == late.number
    with pytest.raises(pbgi.TrialStateError, match=r"finished and stays as it is: complete, value 1.0, cost 2.0; got"):
        tell_result(study, trial, 1.5, cost=2.0)
    assert len(study.trials) == 3


def test_a_trial_whose_worker_said_that_it_failed_stays_failed(study):
    suggest_mixed(trial := study.ask())
    study.tell(trial, state=TrialState.FAIL)
    with pytest.raises(pbgi.TrialStateError, match="trial 0 is finished and stays as it is: fail, value None"):
        tell_result(study, trial, 1.0)


def test_a_result_in_time_is_an_ordinary_one(study):
    params = suggest_mixed(trial := study.ask())
    told = tell_result(study, trial, value_of(params), cost=2.0)
    assert (told.number, told.state, told.user_attrs["cost"]) == (0, TrialState.COMPLETE, 2.0)
    assert tell_result(study, 0, value_of(params), cost=2.0).number == 0
    assert len(study.trials) == 1


def test_a_late_result_of_a_trial_that_a_heartbeat_failed_is_taken(tmp_path):
    storage = optuna.storages.RDBStorage(sqlite_in(tmp_path))
    study = optuna.create_study(storage=storage, sampler=PBGISampler(seed=0, search_space=MIXED))
    suggest_mixed(trial := study.ask())
    storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)  # what `fail_stale_trials` does
    assert tell_result(study, trial, 1.0, cost=1.0).value == study.best_value == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True])
def test_a_late_result_must_carry_a_value(study, value):
    trial, _ = abandoned(study)
    with pytest.raises(pbgi.InvalidInputError, match="value must be"):
        tell_result(study, trial, value, cost=1.0)
    assert len(study.trials) == 1


@pytest.mark.parametrize("number", [7, -1, True, 0.0, "0"])
def test_a_result_must_be_of_a_trial_of_the_study(study, number):
    suggest_mixed(study.ask())
    with pytest.raises(pbgi.UnknownTrialError, match="trial must be one of this study, or its number; got"):
        tell_result(study, number, 1.0)
