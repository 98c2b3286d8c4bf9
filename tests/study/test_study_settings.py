"""What `pbgi tune` stores with a study: checked when it is made and when it is read, and what an engine makes of it."""

import json
from dataclasses import replace

import pytest

import pbgi
from pbgi.stopping import rules_of
from pbgi.study.settings import FIELDS, StudySettings

KEPT = StudySettings(
    space=pbgi.Space({"x": pbgi.Float(0, 1), "kind": pbgi.Categorical(["a", "b"])}),
    direction="maximize",
    budget=50.0,
    policy=pbgi.PBGI(0.125),
    n_startup_trials=4,
    seed=3,
    trials=None,
    objective="accuracy",
    cost="seconds",
    price=1.0,
)


def test_what_is_stored_is_read():
    read = StudySettings.from_plain(json.loads(json.dumps(KEPT.to_plain())))
    assert {name: getattr(read, name) for name in FIELDS} == {name: getattr(KEPT, name) for name in FIELDS}


def test_how_long_trials_are_is_stored_too():
    steps = pbgi.Steps(27, (3, 9, 27), resumable=True)
    read = StudySettings.from_plain(json.loads(json.dumps(replace(KEPT, steps=steps).to_plain())))
    assert (read.steps, read.engine.steps) == (steps, steps)
    older = {name: kept for name, kept in KEPT.to_plain().items() if name != "steps"}
    assert StudySettings.from_plain(older).steps is None


def test_the_engine_is_told_the_same():
    engine = KEPT.engine
    assert (engine.budget, engine.policy, engine.n_startup_trials, engine.seed) == (50.0, pbgi.PBGI(0.125), 4, 3)


def test_a_limit_on_trials_does_not_take_the_place_of_the_exchange_rate():
    """As `stop` of an optimizer would: there whoever writes a rule has chosen it, here nobody has."""
    rules = rules_of(replace(KEPT, trials=6).engine.stop)
    assert set(rules) == {pbgi.BudgetSpent(), pbgi.GittinsStop(0.125), pbgi.MaxTrials(6)}
    assert set(rules_of(replace(KEPT, trials=6, policy=None).engine.stop)) == {pbgi.BudgetSpent(), pbgi.MaxTrials(6)}
    assert set(rules_of(KEPT.engine.stop)) == {pbgi.BudgetSpent(), pbgi.GittinsStop(0.125)}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"direction": "up"}, "direction must be 'minimize' or 'maximize'; got 'up'"),
        ({"budget": -1.0}, "budget must be a positive, finite number; got -1"),
        ({"seed": -1}, "seed must be"),
        ({"color": 1}, "unknown: 'color'"),
        ({"policy": {"kind": "Own"}}, "kind of policy must be one of"),
        ({"steps": {"kind": "Steps", "last": 0, "stages": [], "resumable": False}}, "last must be"),
        ({"steps": 27}, "steps must be"),
    ],
)
def test_what_breaks_a_rule_is_refused(wrong, says):
    with pytest.raises(pbgi.InvalidInputError, match=says):
        StudySettings.from_plain(KEPT.to_plain() | wrong)
