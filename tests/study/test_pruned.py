"""Pruned trials: the estimate by hand, and what it is for the engine."""

import math

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

import pbgi
from pbgi.integrations.optuna import PBGISampler, cost_summary
from pbgi.study.engine import StudyEngine
from pbgi.study.ledger import ledger_of
from pbgi.study.pruned import estimated_values
from pbgi.study.spaces import SearchSpace

UNIT = FloatDistribution(0.0, 1.0)


def trial(number, reports, value=None, cost=1.0, x=0.5):
    made = create_trial(
        state=TrialState.PRUNED if value is None else TrialState.COMPLETE,
        value=value,
        params={"x": x},
        distributions={"x": UNIT},
        user_attrs={"cost": cost},
        intermediate_values=reports,
    )
    made.number = number
    return made


WHOLE = [trial(0, {1: 5.0, 2: 4.0, 4: 2.0}, 1.0), trial(1, {1: 7.0, 3: 6.0}, 3.0), trial(2, {1: 9.0, 2: 8.0}, 6.0)]


def test_the_report_and_what_others_have_gained_since():
    """After step 2 (the second has its report of step 1) they have gained -3, -4 and -2; after step 3 -3, -3 and -2."""
    pruned = [trial(3, {1: 9.5, 2: 9.0}), trial(4, {3: 8.0}), trial(5, {})]
    assert estimated_values([*WHOLE, *pruned], "minimize") == {3: 6.0, 4: 5.0}


def test_no_pruned_trial_is_better_than_the_best():
    estimate = estimated_values([*WHOLE, trial(3, {2: -9.0})], "minimize")[3]
    assert 1.0 < estimate < 1.0 + 1e-12
    estimate = estimated_values([*WHOLE, trial(3, {2: 99.0})], "maximize")[3]
    assert 6.0 - 1e-12 < estimate < 6.0


def test_where_nobody_has_reported_by_then_the_report_stands():
    assert estimated_values([*WHOLE, trial(3, {0: 20.0})], "minimize") == {3: 20.0}
    assert estimated_values([trial(0, {0: 20.0, 1: math.nan})], "minimize") == {0: 20.0}
    assert estimated_values([trial(0, {1: math.inf})], "minimize") == {}
    assert estimated_values(WHOLE, "minimize") == {}


def test_for_the_engine_it_is_an_observation_that_is_charged_and_says_nothing_of_whole_costs():
    study = optuna.create_study()
    study.add_trials([*WHOLE, trial(3, {2: 9.0}, cost=0.25, x=0.9), trial(4, {}, cost=0.5, x=0.1)])
    space = SearchSpace.of({"x": UNIT})
    engine = StudyEngine(pbgi.Settings(seed=0, budget=10.0))
    optimizer = engine.optimizer(space, "minimize", ledger_of(study.trials))
    informing, failed = optimizer.trials[3:]
    assert (informing.state, informing.value, informing.cost) == (pbgi.TrialState.COMPLETE, 6.0, None)
    assert informing.charged == 0.25
    assert failed.state is pbgi.TrialState.FAILED
    assert optimizer.spent == cost_summary(study).spent == 3.75
    assert optimizer.typical_cost == 1.0
    assert optimizer.best.number == 0


def test_a_study_with_a_pruner_goes_on():
    """Every second trial is pruned; the search still finds the minimum, and no pruned point is told as the best."""

    def objective(trial):
        loss = (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2
        trial.set_user_attr("cost", 1.0)
        trial.report(loss + 1.0, 1)
        if trial.number % 2:
            trial.set_user_attr("cost", 0.5)
            raise optuna.TrialPruned
        return loss

    study = optuna.create_study(sampler=PBGISampler(budget=12.0, seed=0))
    study.optimize(objective, n_trials=16)
    summary = cost_summary(study)
    assert summary.spent == pytest.approx(
        11.5
    )  # eight whole trials and seven of a half; another whole one does not fit
    assert summary.best_value < 1e-3
    assert study.trials[summary.best_number].state is TrialState.COMPLETE
