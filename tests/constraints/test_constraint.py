"""Conditions on outcomes: what they accept, which trials keep them, and which one binds."""

import json
import math

import numpy as np
import pytest

import pbgi
from pbgi import AtLeast, AtMost, InvalidInputError, Optimizer
from pbgi.constraints.constraint import beyond_limits, nearest

SPACE = {"x": pbgi.Float(0.0, 1.0)}


def told(values, outcomes, **conditions):
    optimizer = Optimizer(SPACE, constraints=conditions, seed=0)
    for i, (value, outcome) in enumerate(zip(values, outcomes, strict=True)):
        optimizer.tell({"x": i / len(values)}, value, constraints=outcome)
    return optimizer


@pytest.mark.parametrize(
    ("condition", "kept", "broken"), [(AtMost(10), [9.0, 10.0], [10.1]), (AtLeast(-1), [-1.0, 5], [-1.5])]
)
def test_margins_are_not_negative_where_the_condition_is_kept(condition, kept, broken):
    assert all(condition.margin(outcome) >= 0.0 for outcome in kept)
    assert all(condition.margin(outcome) < 0.0 for outcome in broken)


@pytest.mark.parametrize("condition", [AtMost(1.7e308), AtLeast(-1.7e308), AtMost(-1.7e308), AtLeast(1.7e308)])
def test_margins_that_no_float_holds_are_the_largest_one(condition):
    outcomes = [-1.7e308, 1.7e308, 0.0, 5e-324]
    assert all(math.isfinite(condition.margin(outcome)) for outcome in outcomes)
    optimizer = told([1.0, 2.0, 3.0, 4.0], [{"a": outcome} for outcome in outcomes], a=condition)
    with np.errstate(all="raise"):
        assert optimizer.ask().number == 4
    assert optimizer.conditions[0].n_told == 4


@pytest.mark.parametrize("limit", [math.nan, math.inf, "10", None, True])
def test_a_limit_is_a_finite_number(limit):
    with pytest.raises(InvalidInputError, match="limit must be a finite number"):
        AtMost(limit)


@pytest.mark.parametrize(
    ("constraints", "rule"),
    [([AtMost(1)], "must map names"), ({"a": 10}, "got 10 for 'a'"), ({"value": AtMost(1)}, "other than 'value'")],
)
def test_constraints_that_are_none(constraints, rule):
    with pytest.raises(InvalidInputError, match=rule):
        Optimizer(SPACE, constraints=constraints)


def test_the_best_trial_keeps_all_conditions():
    outcomes = [{"a": 1.0, "b": 5.0}, {"a": 0.0, "b": 5.0}, {"a": 0.5, "b": 3.0}, {"a": 0.5, "b": 4.0}]
    optimizer = told([0.0, 1.0, 2.0, 3.0], outcomes, a=AtMost(0.5), b=AtLeast(4.0))
    assert optimizer.best.number == 1
    assert optimizer.recommended.trial.number in (1, 3)
    assert told([0.0, 1.0], [{"a": 1.0}, {"a": 2.0}], a=AtMost(0.5)).best is None


def test_outcomes_must_be_told_with_a_value_and_with_no_other():
    optimizer = Optimizer(SPACE, constraints={"a": AtMost(1.0)}, seed=0)
    trial = optimizer.ask()
    for constraints, rule in [({}, "must have the outcome 'a'"), ({"b": 1.0, "a": 0.0}, "got 'b'")]:
        with pytest.raises(InvalidInputError, match=rule):
            optimizer.tell(trial, 1.0, constraints=constraints)
    with pytest.raises(InvalidInputError, match="must be a finite number"):
        optimizer.tell(trial, 1.0, constraints={"a": math.nan})
    assert optimizer.fail(trial, cost=1.0).constraints == {}
    assert optimizer.fail(optimizer.ask(), cost=1.0, constraints={"a": 3.0}).constraints == {"a": 3.0}
    with pytest.raises(InvalidInputError, match="there are no conditions"):
        Optimizer(SPACE).tell({"x": 0.5}, 1.0, constraints={"a": 1.0})


def test_which_condition_binds():
    """The one whose limit the best trial is close to; while none is feasible, those that the nearest trial breaks."""
    outcomes = [{"a": 0.0, "b": 0.0}, {"a": 9.9, "b": 1.0}, {"a": 20.0, "b": 2.0}]
    a, b = told([3.0, 2.0, 1.0], outcomes, a=AtMost(10.0), b=AtMost(5.0)).conditions
    assert (a.binds, a.outcome, a.n_broken, a.n_told) == (True, 9.9, 1, 3)
    assert (b.binds, b.outcome, b.n_broken) == (False, 1.0, 0)
    assert str(a) == "a: 9.9, at most 10; broken by 1 of 3 trials; binds"
    a, b = told([3.0, 2.0, 1.0], outcomes, a=AtMost(-5.0), b=AtMost(5.0)).conditions
    assert (a.binds, a.outcome, b.binds) == (True, 0.0, False)


def test_the_nearest_trial_by_hand():
    """Spreads are 10 and 1: the first is beyond by 0.5 of them, the second by 1, the third has not told all."""
    optimizer = told([0.0] * 2, [{"a": 5.0, "b": 0.0}, {"a": -15.0, "b": 2.0}], a=AtMost(0.0), b=AtMost(1.0))
    trial = Optimizer(SPACE, seed=0)
    trial.tell({"x": 0.1}, 1.0)
    trials = (*optimizer.trials, trial.trials[0])
    assert beyond_limits({"a": AtMost(0.0), "b": AtMost(1.0)}, trials).tolist() == [0.5, 1.0, math.inf]
    assert nearest({"a": AtMost(0.0), "b": AtMost(1.0)}, trials).number == 0


def test_they_survive_json_and_older_files_have_none():
    optimizer = told([1.0, 2.0], [{"a": 1.0}, {"a": 2.0}], a=AtMost(1.5))
    text = optimizer.to_json()
    again = Optimizer.from_json(text)
    assert again.settings.constraints == {"a": AtMost(1.5)}
    assert again.trials == optimizer.trials
    older = json.loads(Optimizer(SPACE, seed=0).to_json())
    assert older.pop("constraints") is None
    assert Optimizer.from_json(json.dumps(older)).settings.constraints is None
    with pytest.raises(InvalidInputError, match="kind of constraints"):
        Optimizer.from_json(text.replace("AtMost", "System"))
