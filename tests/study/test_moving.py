"""Parameters whose range moves: chosen by the share of a range that is known only when the value is asked for."""

import warnings

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution

import pbgi
from pbgi.integrations.optuna import PBGISampler
from pbgi.study.learned import LearnedSpace
from pbgi.study.moving import Share, has_taken, is_moving, share_of, value_at
from pbgi.study.suggestion import suggestion_of

RANGES = [
    FloatDistribution(-2.0, 6.0),
    FloatDistribution(1e-5, 1e-1, log=True),
    FloatDistribution(0.1, 0.9, step=0.2),
    IntDistribution(3, 11),
    IntDistribution(4, 20, step=4),
    IntDistribution(1, 256, log=True),
    IntDistribution(5, 5),
    FloatDistribution(0.5, 0.5),
]


@given(st.sampled_from(RANGES), st.floats(0.0, 1.0))
def test_every_share_is_a_value_and_of_every_value_the_share_leads_back(known, share):
    value = value_at(share, known)
    assert known._contains(known.to_internal_repr(value))
    assert value_at(share_of(value, known), known) == pytest.approx(value, rel=1e-12)
    assert isinstance(value, int) == isinstance(known, IntDistribution)


def test_shares_by_hand():
    assert share_of(0.0, FloatDistribution(-2.0, 6.0)) == 0.25
    assert share_of(1e-3, FloatDistribution(1e-5, 1e-1, log=True)) == pytest.approx(0.5)
    assert [share_of(k, IntDistribution(1, 4)) for k in (1, 2, 3, 4)] == [0.125, 0.375, 0.625, 0.875]
    assert share_of(7, IntDistribution(7, 7)) == 0.5
    assert [value_at(s, IntDistribution(1, 4)) for s in (0.0, 0.249, 0.251, 0.99, 1.0)] == [1, 1, 2, 4, 4]
    assert value_at(1.0, FloatDistribution(0.1, 0.9, step=0.2)) == 0.9


def test_what_may_be_one_parameter():
    assert is_moving(IntDistribution(1, 4), IntDistribution(2, 9))
    assert not is_moving(IntDistribution(1, 4), IntDistribution(1, 4, log=True))
    assert not is_moving(FloatDistribution(0.0, 1.0), FloatDistribution(0.0, 1.0, step=0.5))
    assert not is_moving(FloatDistribution(1.0, 4.0), IntDistribution(1, 4))


def leaves(trial):
    """The best of all is at a depth of 5 with 20 leaves, which is 0."""
    depth = trial.suggest_int("depth", 2, 8)
    found = trial.suggest_int("leaves", 2, 2**depth)
    return (depth - 5) ** 2 / 9 + (found - 20) ** 2 / 400


def interval(trial):
    """Best at 2 and 7."""
    low = trial.suggest_float("low", 0.0, 5.0)
    return (low - 2) ** 2 + (trial.suggest_float("high", low, 10.0) - 7) ** 2


def study_of(objective, n, **settings):
    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=pbgi.UniformCost(), **settings))
    study.optimize(objective, n_trials=n)
    return study


def test_a_moving_range_is_known_by_its_shares():
    study = study_of(leaves, 3)
    space = LearnedSpace().search_space("s", study.trials)
    assert space.whole
    assert space.distributions == {"depth": IntDistribution(2, 8), "leaves": Share()}
    assert space.fixed == {"depth": IntDistribution(2, 8)}


def test_it_is_searched_and_nothing_is_said_to_be_random(caplog):
    """The best of 25 random trials is within 0.001 in one run of a hundred (see the test below)."""
    optuna.logging.enable_propagation()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = study_of(interval, 25)
    optuna.logging.disable_propagation()
    assert study.best_value < 1e-3
    assert "is not chosen with the others" not in caplog.text
    last = study.trials[-1]
    assert has_taken(last, suggestion_of(last).shares)


def test_the_bound_above_is_hard_to_meet_at_random():
    low = 5.0 * np.random.default_rng(0).random((2000, 25))
    high = low + (10.0 - low) * np.random.default_rng(1).random((2000, 25))
    best = ((low - 2) ** 2 + (high - 7) ** 2).min(axis=1)
    assert (best < 1e-3).mean() < 0.01


def test_a_study_that_is_resumed_goes_on_as_it_would_have(tmp_path):
    whole = study_of(interval, 10)
    storage = f"sqlite:///{tmp_path}/study.db"
    for _ in range(2):
        sampler = PBGISampler(seed=0, cost=pbgi.UniformCost())
        parts = optuna.create_study(study_name="s", storage=storage, sampler=sampler, load_if_exists=True)
        parts.optimize(interval, n_trials=5)
    assert [t.params for t in parts.trials] == [t.params for t in whole.trials]


def test_what_a_user_fixes_is_taken_and_its_notes_are_not_used():
    study = study_of(leaves, 6)
    study.enqueue_trial({"leaves": 3})
    study.optimize(leaves, n_trials=2)
    fixed = study.trials[6]
    assert fixed.params["leaves"] == 3
    assert not has_taken(fixed, {"leaves": 0.99})


def test_running_trials_are_known_by_the_share_that_was_chosen():
    study = study_of(interval, 8)
    first, second = study.ask(), study.ask()
    assert first.suggest_float("low", 0.0, 5.0) != second.suggest_float("low", 0.0, 5.0)
    assert suggestion_of(first._get_latest_trial()).shares.keys() == {"high"}
    assert first.suggest_float("high", 4.0, 5.0) <= 5.0


def test_a_price_of_a_parameter_that_moves_is_not_known_beforehand(caplog):
    """Its value is not known before the trial: the points are random, and what they cost is charged."""
    optuna.logging.enable_propagation()
    price = pbgi.KnownCost(lambda params: 1.0 + params["leaves"])
    study = optuna.create_study(sampler=PBGISampler(seed=0, cost=price))
    study.optimize(leaves, n_trials=6)
    optuna.logging.disable_propagation()
    assert "asks for the parameter 'leaves'" in caplog.text
    ledger = study.sampler.ledger(study, study.trials)
    assert ledger.spent == sum(1.0 + t.params["leaves"] for t in study.trials)
