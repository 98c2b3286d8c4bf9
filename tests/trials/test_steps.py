"""Trials that report on their way: what is recorded and charged, what is refused, and which trials go on."""

import json
import math

import numpy as np
import pytest

import pbgi
from pbgi import InvalidInputError, Optimizer, Steps, TrialState, TrialStateError
from pbgi.history import History

LINE = {"x": pbgi.Float(0.0, 1.0)}
PLANE = {"x": pbgi.Float(0.0, 1.0), "y": pbgi.Float(0.0, 1.0)}


def curve(params, step):
    """Falls by a half every three steps towards a bowl; what is high at the end is high before."""
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2 + (1.0 + params["x"]) * 0.5 ** (step / 3.0)


def train(optimizer, trial, until=None):
    """Report step by step until the trial ends; a step costs one."""
    for step in range(trial.step + 1, (until or optimizer.settings.steps.last) + 1):
        trial = optimizer.report(trial, step, curve(trial.params, step), cost=float(step))
        if not optimizer.should_continue(trial):
            return optimizer.stop(trial)
    return trial


def run(budget, seed=0, *, resumable=False, n=27):
    optimizer = Optimizer(PLANE, budget=budget, seed=seed, steps=Steps(n, resumable=resumable))
    while optimizer.should_stop() is None:
        train(optimizer, optimizer.ask())
    return optimizer


# Stages --------------------------------------------------------------------------------------------------------------


def test_each_stage_doubles_what_was_done_before_it():
    assert Steps(27).stages == (1, 2, 4, 7, 14, 27)
    assert Steps(100).stages == (2, 4, 7, 13, 25, 50, 100)
    assert Steps(1).stages == (1,)
    assert Steps(9, (1, 3)).stages == (1, 3, 9)


@pytest.mark.parametrize("wrong", [0, -3, 1.5, True, "27", [], [3, 1], [0, 4], [2, 2], [1.5, 3]])
def test_steps_that_are_none_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="must"):
        Optimizer(LINE, steps=wrong)


def test_it_is_decided_where_a_stage_ends_and_not_in_between():
    steps = Steps(10, (2, 5))
    history = History()
    history.add_running({}, 1.0)
    asked = [steps.is_decision(history.report(0, step, 1.0).reports) for step in range(1, 11)]
    assert asked == [False, True, False, False, True, *[False] * 5]
    sparse = [pbgi.Report(3, 1.0, None), pbgi.Report(7, 1.0, None)]
    assert [steps.is_decision(sparse[: k + 1]) for k in range(2)] == [True, True]


# What is recorded and charged ----------------------------------------------------------------------------------------


def test_what_a_trial_has_cost_is_charged_as_it_comes_and_the_rest_is_held():
    optimizer = Optimizer(LINE, budget=100.0, cost=pbgi.LearnedCost(), seed=0, steps=10)
    first = optimizer.ask()
    optimizer.report(first, 1, 0.5, cost=2.0)
    assert (optimizer.spent, optimizer.reserved) == (2.0, 18.0)  # at this rate the rest costs 18
    optimizer.report(first, 10, 0.4, cost=20.0)
    assert optimizer.trials[0].state is TrialState.COMPLETE
    assert (optimizer.trials[0].value, optimizer.trials[0].cost) == (0.4, 20.0)
    second = optimizer.ask()
    held = second.predicted_cost
    optimizer.report(second, 4, 0.3, cost=8.0)
    assert optimizer.spent == 28.0
    assert optimizer.reserved == held - 8.0
    stopped = optimizer.stop(second)
    assert (stopped.state, stopped.charged, stopped.value) == (TrialState.STOPPED, 8.0, None)
    assert (optimizer.spent, optimizer.reserved) == (28.0, 0.0)


def test_where_prices_are_known_a_step_costs_its_share():
    optimizer = Optimizer(LINE, budget=5.0, cost=pbgi.UniformCost(), seed=0, steps=4)
    trial = optimizer.report(optimizer.ask(), 1, 0.5)
    assert (optimizer.spent, optimizer.reserved) == (0.25, 0.75)
    optimizer.stop(trial)
    assert (optimizer.spent, optimizer.remaining) == (0.25, 4.75)


def test_a_trial_that_fails_is_charged_what_it_has_reported():
    optimizer = Optimizer(LINE, budget=50.0, seed=0, steps=10)
    trial = optimizer.ask()
    optimizer.report(trial, 1, 0.5, cost=3.0)
    failed = optimizer.report(trial, 2, math.nan, cost=5.0)
    assert (failed.state, failed.charged, failed.step) == (TrialState.FAILED, 5.0, 1)
    assert not optimizer.should_continue(failed)
    other = optimizer.ask()
    optimizer.report(other, 1, 0.5, cost=3.0)
    assert optimizer.fail(other).charged == 3.0


def test_a_value_told_before_the_last_step_completes_the_trial():
    optimizer = Optimizer(LINE, budget=50.0, seed=0, steps=10)
    trial = optimizer.ask()
    optimizer.report(trial, 3, 0.5, cost=3.0)
    told = optimizer.tell(trial, 0.25, cost=4.0)
    assert (told.state, told.value, told.cost, told.step) == (TrialState.COMPLETE, 0.25, 4.0, 3)


# Bad input -----------------------------------------------------------------------------------------------------------


def test_reports_out_of_order_twice_and_after_the_end():
    optimizer = Optimizer(LINE, budget=50.0, seed=0, steps=10)
    trial = optimizer.ask()
    optimizer.report(trial, 3, 0.5, cost=3.0)
    assert optimizer.report(trial, 3, 0.5, cost=3.0) == optimizer.trials[0]  # the same again changes nothing
    with pytest.raises(InvalidInputError, match="got step 3 after step 3"):
        optimizer.report(trial, 3, 0.4, cost=3.0)
    with pytest.raises(InvalidInputError, match="must rise"):
        optimizer.report(trial, 2, 0.5, cost=4.0)
    with pytest.raises(InvalidInputError, match=r"must not shrink; got 2\.0 after 3\.0"):
        optimizer.report(trial, 4, 0.5, cost=2.0)
    with pytest.raises(InvalidInputError, match="must not exceed the last one, 10; got 11"):
        optimizer.report(trial, 11, 0.5, cost=4.0)
    with pytest.raises(InvalidInputError, match="cost must be told"):
        optimizer.report(trial, 4, 0.5)
    with pytest.raises(InvalidInputError, match=r"at least what it has reported, 3\.0; got 1\.0"):
        optimizer.tell(trial, 0.5, cost=1.0)
    with pytest.raises(InvalidInputError, match="must be a positive whole number"):
        optimizer.report(trial, 0, 0.5, cost=4.0)
    assert len(optimizer.trials[0].reports) == 1
    optimizer.stop(trial)
    with pytest.raises(TrialStateError, match="does not run"):
        optimizer.report(trial, 4, 0.5, cost=4.0)


def test_reports_need_to_know_how_long_a_trial_is():
    optimizer = Optimizer(LINE, seed=0)
    trial = optimizer.ask()
    for call in (lambda: optimizer.report(trial, 1, 0.5), lambda: optimizer.should_continue(trial)):
        with pytest.raises(InvalidInputError, match=r"Optimizer\(\.\.\., steps=n\)"):
            call()


@pytest.mark.parametrize(
    "reports",
    [3, [3], [[1, 0.5]], [[2, 0.5, 1.0], [1, 0.5, 2.0]], [[1, 0.5, 2.0], [2, 0.5, 1.0]], [[1, None, 1.0]], [[0, 1, 1]]],
)
def test_damaged_reports_are_refused(reports):
    optimizer = Optimizer(LINE, seed=0, steps=3)
    optimizer.ask()
    text = json.loads(optimizer.to_json())
    text["history"]["trials"][0]["reports"] = reports
    with pytest.raises(InvalidInputError, match=r"report|step|value of trial 0"):
        Optimizer.from_json(json.dumps(text))


# Whole runs ----------------------------------------------------------------------------------------------------------


def test_with_whole_trials_only_nothing_changes():
    """To the bit, whether or not trials could have reported."""
    plain, staged = Optimizer(PLANE, budget=200.0, seed=3), Optimizer(PLANE, budget=200.0, seed=3, steps=10)
    for _ in range(9):
        trials = [optimizer.ask() for optimizer in (plain, staged)]
        assert trials[0] == trials[1]
        for optimizer, trial in zip((plain, staged), trials, strict=True):
            optimizer.tell(trial, curve(trial.params, 10), cost=10.0)


def test_trials_that_are_not_worth_going_on_with_are_stopped_and_better_ones_are_found():
    stages, whole = run(27.0 * 10), Optimizer(PLANE, budget=27.0 * 10, seed=0)
    while whole.should_stop() is None:
        trial = whole.ask()
        whole.tell(trial, curve(trial.params, 27), cost=27.0)
    stopped = [trial for trial in stages.trials if trial.state is TrialState.STOPPED]
    assert len(stages.trials) > len(whole.trials)
    assert len(stopped) >= 3
    assert stages.spent <= 27.0 * 10
    assert stages.spent == pytest.approx(sum(trial.step for trial in stages.trials))
    assert stages.best.value < whole.best.value + 2e-3
    # Those that were stopped would have ended higher than the best; beyond the first three nothing is stopped unseen.
    assert min(curve(trial.params, 27) for trial in stopped) > stages.best.value - 2e-3
    assert all(trial.state is TrialState.COMPLETE for trial in stages.trials[:3])


def test_a_trial_that_was_stopped_may_be_charged_more_than_it_has_reported():
    optimizer = Optimizer(LINE, budget=10.0, steps=9, seed=0)
    trial = optimizer.report(optimizer.ask(), 2, 0.5, cost=1.0)
    assert optimizer.stop(trial, charge=1.5).charged == optimizer.spent == 1.5
    assert optimizer.stop(trial).charged == 1.5


def test_a_trial_that_was_stopped_goes_on_where_it_stood():
    optimizer = run(27.0 * 10, seed=1, resumable=True)
    asked = Optimizer.of(optimizer.space, "minimize", optimizer.settings, optimizer.trials)
    assert asked.spent == optimizer.spent <= 27.0 * 10
    resumed = [t for t in optimizer.trials if t.state is TrialState.COMPLETE]
    assert all([report.step for report in trial.reports] == list(range(1, 28)) for trial in resumed)


def test_ask_hands_out_a_stopped_trial_again_when_nothing_else_is_affordable():
    optimizer = Optimizer(PLANE, budget=27.0 * 5 + 3, seed=0, steps=Steps(27, resumable=True))
    for _ in range(4):
        train(optimizer, optimizer.ask())
    good = optimizer.enqueue({"x": 0.3, "y": 0.6})
    optimizer.report(good, 7, curve(good.params, 7), cost=7.0)
    optimizer.stop(good)
    while optimizer.remaining > 25.0:  # less than a whole trial costs
        trial = optimizer.enqueue({"x": 0.9, "y": 0.1})
        optimizer.report(trial, 1, curve(trial.params, 1), cost=1.0)
        optimizer.stop(trial)
    assert optimizer.should_stop() is None
    stopped = [trial.number for trial in optimizer.trials if trial.state is TrialState.STOPPED]
    again = optimizer.ask()
    assert again.number in stopped
    assert (again.state, again.step) == (TrialState.RUNNING, optimizer.trials[again.number].step)
    assert again.params != {"x": 0.9, "y": 0.1}  # not one of the hopeless ones


def test_a_run_goes_on_bit_for_bit():
    optimizer = Optimizer(PLANE, budget=500.0, seed=5, steps=Steps(9, resumable=True))
    for _ in range(12):
        trial = optimizer.ask()
        other = Optimizer.from_json(optimizer.to_json())
        assert other.trials == optimizer.trials
        for step in range(trial.step + 1, 10):
            trial = optimizer.report(trial, step, curve(trial.params, step), cost=float(step))
            other.report(trial.number, step, curve(trial.params, step), cost=float(step))
            goes_on = optimizer.should_continue(trial)
            assert other.should_continue(trial.number) == goes_on
            if not goes_on:
                trial = optimizer.stop(trial)
                break
    assert any(trial.state is TrialState.STOPPED for trial in optimizer.trials)


def test_what_was_written_before_trials_had_reports_is_read():
    optimizer = Optimizer(LINE, seed=0)
    optimizer.tell(optimizer.ask(), 1.0)
    text = json.loads(optimizer.to_json())
    del text["steps"], text["history"]["trials"][0]["reports"]
    assert Optimizer.from_json(json.dumps(text)).trials == optimizer.trials


def test_costs_of_trials_that_were_stopped_are_learned_as_those_of_whole_ones():
    """Twice as much for a point: what a tenth of it costs says so too."""
    optimizer = Optimizer(LINE, budget=1000.0, seed=0, steps=10)
    for x in np.linspace(0.0, 1.0, 8):
        trial = optimizer.enqueue({"x": float(x)})
        last = 10 if x in (0.0, 1.0) else 2
        for step in range(1, last + 1):
            trial = optimizer.report(trial, step, float(x), cost=step * (1.0 + x))
        optimizer.stop(trial)
    predicted = optimizer.predict([{"x": 0.5}]).cost[0]
    assert predicted == pytest.approx(15.0, rel=0.05)
