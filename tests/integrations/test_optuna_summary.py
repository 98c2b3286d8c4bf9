"""What a study has spent, in words and numbers, and the end of trials whose workers are gone."""

import datetime as dt

import optuna
from optuna.trial import TrialState, create_trial
from optuna_fixtures import suggested, trial_of

from pbgi.integrations.optuna import PBGISampler, cost_summary, fail_abandoned


def test_waiting_trials_hold_nothing():
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.5})
    summary = cost_summary(study, budget=3.0)
    assert (summary.spent, summary.reserved, summary.remaining, summary.counts) == (0.0, 0.0, 3.0, {"waiting": 1})


def test_abandoned_trials_are_failed_and_charged_what_was_held():
    study = optuna.create_study(sampler=PBGISampler(budget=10.0, seed=0, charge_existing=True))
    study.add_trials([trial_of(1.0, cost=2.0), trial_of(0, TrialState.RUNNING, system=suggested(3.0))])
    asked = study.ask()
    assert fail_abandoned(study, older_than=3600.0) == (1,)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING]
    summary = cost_summary(study)
    assert (summary.spent, summary.reserved) == (5.0, 2.0)
    study.tell(asked, 1.0)


def test_abandoned_trials_may_be_charged_something_else():
    study = optuna.create_study()
    study.add_trial(trial_of(0, TrialState.RUNNING, system=suggested(3.0)))
    assert fail_abandoned(study, older_than=60.0, cost=0.5) == (0,)
    assert cost_summary(study).spent == 0.5


def test_a_trial_that_is_run_again_pays_for_its_own_seconds():
    """Optuna gives it the notes of the first attempt, in which the choice took longer than all of the second."""
    study = optuna.create_study()
    begun = dt.datetime(2026, 1, 1)
    for number, seconds in enumerate((5.0, 2.0)):
        trial = trial_of(1.0, system=suggested(3.0, seconds=4.0) | ({"failed_trial": 0} if number else {}))
        trial.datetime_start, trial.datetime_complete = begun, begun + dt.timedelta(seconds=seconds)
        study.add_trial(trial)
    assert cost_summary(study).spent == (5.0 - 4.0) + 2.0


def test_the_summary_can_be_read():
    study = optuna.create_study(direction="maximize")
    study.add_trials([trial_of(1.0, cost=2.0), trial_of(0, TrialState.RUNNING), trial_of(3.0, TrialState.FAIL, cost=4)])
    text = str(cost_summary(study, budget=20.0))
    assert text.splitlines() == [
        "3 trials, 6 spent of 20, 2 reserved, 12 left",
        "      1 running   2 reserved",
        "      1 complete  2",
        "      1 fail      4",
        "best: 1, trial 0, which cost 2; 2 had been spent by then",
    ]


def test_the_summary_of_nothing_and_of_several_objectives():
    assert str(cost_summary(optuna.create_study())) == "0 trials, 0 spent"
    study = optuna.create_study(directions=["minimize", "minimize"])
    study.add_trial(create_trial(values=[1.0, 2.0], user_attrs={"cost": 3.0}))
    summary = cost_summary(study)
    assert (summary.spent, summary.best_number) == (3.0, None)
