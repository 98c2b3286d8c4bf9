"""What an optimizer is told once and for all: checked when made, whatever the space."""

import json
from dataclasses import replace

import pytest

from pbgi import (
    PBGI,
    AtMost,
    BudgetSpent,
    Categorical,
    Float,
    GittinsStop,
    InvalidInputError,
    KnownCost,
    MaxTrials,
    Space,
    UniformCost,
)
from pbgi.settings import Settings
from pbgi.stopping import rules_of

LINE = Space({"x": Float(0, 1)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget must be a positive, finite number; got 0"),
        ({"n_startup_trials": -1}, "n_startup_trials must be a whole number that is not negative; got -1"),
        ({"seed": -1}, "seed must be a whole number that is not negative; got -1"),
        ({"policy": PBGI}, "policy must be None or an object with propose()"),
        ({"stop": 3}, "stop must be None or an object with reason() and note()"),
        ({"cost": "high"}, "cost must be None or an object with fit()"),
    ],
)
def test_arguments_are_checked_without_a_space(arguments, message):
    with pytest.raises(InvalidInputError) as error:
        Settings(**arguments)
    assert message in str(error.value)


def test_a_budget_and_an_exchange_rate_bring_their_rules():
    assert rules_of(Settings().stop) == ()
    assert rules_of(Settings(budget=1.0).stop) == (BudgetSpent(),)
    assert rules_of(Settings(budget=1.0, policy=PBGI(0.1)).stop) == (BudgetSpent(), GittinsStop(0.1))
    assert rules_of(Settings(policy=PBGI(0.1), stop=MaxTrials(3)).stop) == (MaxTrials(3),)


def test_other_settings_are_made_of_them():
    """With a budget taken away or added they are what they would have been."""
    settings = Settings(budget=2.0, policy=PBGI(0.1), seed=0)
    assert settings.must_tell_cost
    assert not replace(settings, cost=UniformCost()).must_tell_cost
    assert rules_of(replace(Settings(seed=0), budget=3.0).stop) == (BudgetSpent(),)
    assert replace(Settings(budget=2.0, seed=0), budget=None).is_endless_in(LINE)


def test_the_number_of_first_points_depends_on_the_space():
    plane = Space({"x": Float(0, 1), "y": Float(0, 1)})
    assert Settings().n_startup_trials is None
    assert [Settings().n_startup_in(plane), Settings(policy=PBGI(1.0)).n_startup_in(plane)] == [3, 6]
    assert Settings(n_startup_trials=5).n_startup_in(plane) == 5


@pytest.mark.parametrize(
    ("arguments", "space", "endless"),
    [
        ({}, LINE, True),
        ({"budget": 1.0}, LINE, False),
        ({"stop": MaxTrials(3)}, LINE, False),
        ({}, Space({"c": Categorical(["a", "b"])}), False),
    ],
)
def test_whether_a_run_would_end(arguments, space, endless):
    assert Settings(**arguments).is_endless_in(space) is endless


def test_json_holds_them():
    settings = Settings(budget=2.0, policy=PBGI(0.1), stop=MaxTrials(9), cost=UniformCost(), seed=7)
    plain = json.loads(json.dumps(settings.to_plain()))
    assert Settings.from_plain(plain).to_plain() == plain


def test_what_json_cannot_hold_is_named():
    """Functions and policies from elsewhere; with them again the settings are what they were."""

    class Own:
        def propose(self, _snapshot, _rng):
            return None

    cost, policy = KnownCost(lambda _: 2.0), Own()
    settings = Settings(cost=cost, policy=policy, budget=3.0, seed=1)
    assert settings.unwritten == {"cost": cost, "policy": policy}
    read = Settings.from_plain(json.loads(json.dumps(settings.to_plain())), **settings.unwritten)
    assert (read.cost, read.policy, read.budget) == (cost, policy, 3.0)
    assert Settings(cost=UniformCost(), seed=1).unwritten == {}


def test_policies_that_know_no_conditions_refuse_them():
    from pbgi.botorch import KnowledgeGradient

    with pytest.raises(InvalidInputError, match="KnowledgeGradient weighs no conditions"):
        Settings(policy=KnowledgeGradient(), constraints={"a": AtMost(1.0)})
