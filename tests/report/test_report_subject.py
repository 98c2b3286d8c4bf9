"""What is reported on: trials, charges and reasons are those of the source, whichever it is."""

import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from report_runs import (
    HOSTILE,
    ODD,
    SPACE,
    cost_of,
    hostile_study,
    lucky,
    ordinary,
    random_study,
    suggest_and_charge,
    told,
    value_of,
)

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler, cost_summary
from pbgi.report.course import Course
from pbgi.report.source import subject_of
from pbgi.study import attributes
from pbgi.study.settings import StudySettings


def test_an_optimizer_and_its_result():
    result = pbgi.minimize(lambda p: (value_of(p), cost_of(p)), SPACE, budget=20, seed=0)
    of_result, of_optimizer = subject_of(result, unit="s"), subject_of(result.optimizer)
    assert of_result.trials == of_optimizer.trials == result.trials
    assert of_result.spent == result.spent
    assert of_result.best.value == result.fun
    assert of_result.stop_reason == result.stop_reason
    assert of_optimizer.stop_reason == result.stop_reason  # asked again, since an optimizer does not keep it
    assert list(of_result.parameters) == ["rate", "depth", "kind"]  # what is fixed has nothing to show
    assert (of_result.unit, of_optimizer.unit) == ("s", "")
    assert subject_of(of_result) is of_result


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_lucky_value_is_the_best_and_not_recommended(direction):
    run = lucky(direction)
    subject = subject_of(run)
    assert subject.best.params["x"] == pytest.approx(8 / 9)
    assert subject.recommended == run.recommended
    assert abs(subject.recommended.trial.params["x"] - 0.3) < 0.3  # the best without noise
    assert subject.recommended.low < subject.recommended.median < subject.recommended.high


def test_the_recommended_trial_is_one_of_the_study():
    """The model does not see the first trial of it, so that its numbers are other ones."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
    study.optimize(suggest_and_charge, n_trials=6)
    subject = subject_of(study)
    seen = subject.optimizer.recommended.trial
    assert subject.recommended.trial.number == seen.number + 1
    assert subject.recommended.trial.params == study.trials[seen.number + 1].params
    assert subject.recommended.trial.value == seen.value


def test_nothing_is_recommended_where_the_model_does_not_know_the_best():
    subject = subject_of(told(pbgi.Optimizer(SPACE, seed=0), 2))
    others = tuple(number for number in subject.numbers if number != subject.best.number)
    assert subject.recommended is not None
    assert replace(subject, numbers=others).recommended is None


def test_the_exchange_rate_is_the_rule_s_before_the_policy_s():
    assert subject_of(pbgi.Optimizer(SPACE, seed=0)).exchange_rate is None
    assert subject_of(pbgi.Optimizer(SPACE, policy=pbgi.PBGI(0.5))).exchange_rate == 0.5
    stopped = pbgi.Optimizer(SPACE, policy=pbgi.PBGI(0.5), stop=pbgi.MaxTrials(9) | pbgi.GittinsStop(0.25))
    assert subject_of(stopped).exchange_rate == 0.25


@pytest.mark.parametrize("source", [None, {}, [1, 2], "study.db", pbgi.Optimizer])
def test_anything_else_is_refused(source):
    with pytest.raises(pbgi.InvalidInputError, match=r"must be on a pbgi\.Result"):
        subject_of(source)


def test_a_unit_is_a_text():
    with pytest.raises(pbgi.InvalidInputError, match="unit must be a str"):
        subject_of(ordinary(3), unit=1.0)


def mixed_objective(trial):
    value = suggest_and_charge(trial)
    if trial.number % 5 == 3:
        raise FloatingPointError
    if trial.number % 5 == 4:
        raise optuna.TrialPruned
    return value


@pytest.mark.parametrize("sampler", [PBGISampler(budget=30, seed=0), optuna.samplers.RandomSampler(seed=0)])
def test_a_study_is_charged_as_its_summary_says(sampler):
    study = optuna.create_study(sampler=sampler, study_name="charged")
    study.optimize(mixed_objective, n_trials=20, callbacks=[BudgetCallback(30.0)], catch=(FloatingPointError,))
    subject, summary = subject_of(study), cost_summary(study)
    assert subject.spent == summary.spent
    assert subject.budget == 30.0  # of the sampler, or as the callback has kept it
    assert subject.stop_reason.message == summary.stopped
    assert subject.best.number == summary.best_number
    assert [dict(trial.params) for trial in subject.trials] == [trial.params for trial in study.trials]
    states = [subject.state_of(trial) for trial in subject.trials]
    assert (states.count("failed"), states.count("pruned")) == (summary.counts["fail"], summary.counts["pruned"])


def test_money_is_held_for_running_trials():
    study = random_study(4)
    study.ask()
    subject, summary = subject_of(study), cost_summary(study)
    assert subject.reserved == summary.reserved > 0.0
    assert subject.state_of(subject.trials[-1]) == "running"


def test_trials_that_never_began_are_left_out():
    study = optuna.create_study(sampler=PBGISampler(budget=5, seed=0))
    study.optimize(mixed_objective, n_trials=20, catch=(FloatingPointError,))  # no callback: the sampler refuses one
    refused = [t.number for t in study.trials if t.system_attrs["pbgi:trial"]["refused"] is not None]
    assert len(refused) == 1
    assert refused[0] not in [trial.number for trial in subject_of(study).trials]


def test_what_a_study_was_told_is_what_its_model_believes():
    study = random_study(12)
    subject = subject_of(study)
    told = pbgi.Optimizer(subject.optimizer.space, seed=0)
    for trial in subject.optimizer.trials:
        told.tell(dict(trial.params), trial.value, cost=trial.cost)
    points = [dict(trial.params) for trial in told.trials]
    assert subject.optimizer.predict(points).median == pytest.approx(told.predict(points).median, rel=1e-6)


def test_durations_are_seconds():
    subject = subject_of(random_study(4, lambda trial: trial.suggest_float("x", 0.0, 1.0)))
    assert subject.unit == "s"
    assert subject_of(random_study(4)).unit == ""
    assert subject_of(random_study(4), unit="euro").unit == "euro"


def test_steps_and_choices_are_shown_as_the_user_wrote_them():
    study = ODD["odd choices"]()
    subject = subject_of(study)
    steps = {trial.params["step"] for trial in subject.trials}
    assert steps <= {round(0.1 * i, 10) for i in range(11)}
    assert len(subject.parameters["choice"].choices) == 4  # Optuna cannot tell 1 from True
    inside, _ = subject.coordinates("choice", subject.trials)
    assert inside == list(subject.trials)


def test_parameters_of_branches_are_known_and_trials_have_a_place_in_their_own():
    subject = subject_of(ODD["conditional"]())
    assert list(subject.parameters) == ["branch", "only_left", "only_right"]
    left, _ = subject.coordinates("only_left", subject.trials)
    assert [t.number for t in left] == [t.number for t in subject.trials if t.params["branch"] == "left"]
    assert subject.spent == sum(1.0 + i % 3 for i in range(12))
    assert {name for trial in subject.trials for name in trial.params} == {"branch", "only_left", "only_right"}


KEPT = StudySettings(
    space=pbgi.Space({"x": pbgi.Float(0, 1)}),
    direction="minimize",
    budget=50.0,
    policy=pbgi.PBGI(0.125),
    n_startup_trials=None,
    seed=3,
    trials=6,
    objective="loss",
    cost="seconds",
    price=1.0,
)


def test_a_study_of_the_command_line_brings_its_settings():
    study = random_study(6)
    study.set_user_attr(attributes.SETTINGS, KEPT.to_plain())
    subject = subject_of(study)
    assert (subject.budget, subject.unit, subject.value_name, subject.exchange_rate) == (50.0, "s", "loss", 0.125)
    assert subject.stop_reason.rule == "MaxTrials"


@pytest.mark.parametrize(("budget", "left"), [(14.0, 0.0), (14.5, 0.5)])
def test_an_exhausted_budget_is_counted_with_trials_that_the_model_does_not_see(budget, left):
    """A trial without a point was charged 2: with it, nothing is left, or less than any trial costs."""
    study = random_study(6, lambda trial: trial.set_user_attr("cost", 2.0) or trial.suggest_float("x", 0.0, 1.0))
    study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL, user_attrs={"cost": 2.0}))
    study.set_user_attr(attributes.SETTINGS, replace(KEPT, budget=budget, policy=None, trials=None).to_plain())
    subject = subject_of(study)
    assert subject.stop_reason.rule == "BudgetSpent"
    assert subject.stop_reason.numbers == {"budget": budget, "spent": 14.0, "reserved": 0.0, "left": left}
    assert len(subject.optimizer.trials) == 6


def test_settings_that_break_a_rule_are_refused():
    study = random_study(2)
    study.set_user_attr(attributes.SETTINGS, KEPT.to_plain() | {"budget": -1.0})
    with pytest.raises(pbgi.InvalidInputError, match="budget must be a positive, finite number; got -1"):
        subject_of(study)


def test_several_objectives_are_refused():
    with pytest.raises(pbgi.InvalidInputError, match="one objective; got 2"):
        subject_of(optuna.create_study(directions=["minimize", "maximize"]))


def test_a_large_study_is_thinned_for_the_model_and_for_nothing_else():
    study = random_study(700)
    subject = subject_of(study)
    assert len(subject.trials) == 700
    assert len(subject.optimizer.trials) <= 600
    assert subject.optimizer.best.value == subject.best.value == study.best_value


def test_the_course_adds_up():
    subject = subject_of(ordinary())
    course = Course.of(subject)
    spent, best = 0.0, math.inf
    for trial in subject.trials:
        assert course.before[trial.number] == pytest.approx(spent)
        assert course.best_before(trial.number) == (None if math.isinf(best) else best)
        spent += trial.charged
        best = best if trial.value is None else min(best, trial.value)
        assert course.until[trial.number] == pytest.approx(spent)
    assert course.end == pytest.approx(subject.spent)
    x, y = course.steps()
    assert np.all(np.diff(x) >= 0)
    assert np.all(np.diff(y) <= 0)
    assert y[-1] == best


def test_hostile_names_are_kept_as_they_are():
    subject = subject_of(hostile_study())
    assert list(subject.parameters) == sorted([*HOSTILE[:3], HOSTILE[4]])
    assert subject.trials[4].message == HOSTILE[4]
