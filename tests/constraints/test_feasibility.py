"""How likely points are to keep conditions: gradients, draws, outcomes that are one, and what a search makes of it."""

import math

import numpy as np
import pytest
from engine_fixtures import SQUARE, central_difference, one_thread  # noqa: F401
from scipy import stats

import pbgi
from pbgi import AtLeast, AtMost, Optimizer
from pbgi.acquisition import GittinsIndex
from pbgi.choosing.choice import snapshot_of
from pbgi.constraints.feasibility import IfFeasible, WhereLikely, one_of_each
from pbgi.gp.warp import IDENTITY
from pbgi.policy import POLICIES


def outcomes_of(params):
    x, y = params["x"], params["y"]
    return {"a": math.sin(5 * x) + y, "b": x * y}


def value_of(params):
    return params["x"] + params["y"]


def searched(n, constraints, seed=0, policy=None, outcomes=outcomes_of):
    optimizer = Optimizer(SQUARE, constraints=constraints, seed=seed, policy=policy, budget=1000.0)
    for _ in range(n):
        trial = optimizer.ask()
        optimizer.tell(trial, value_of(trial.params), cost=1.0, constraints=outcomes(trial.params))
    return optimizer


BOTH = {"a": AtLeast(0.8), "b": AtMost(0.3)}
Z = np.random.default_rng(5).random((40, 2))


@pytest.fixture(scope="module")
def snapshot():
    return snapshot_of(searched(8, BOTH)._state)[0]


def test_the_chance_is_that_of_draws(snapshot):
    """20000 draws of all outcomes from their posteriors, beside the product of normal tails."""
    rng, inside = np.random.default_rng(0), np.ones((20000, len(Z)), dtype=bool)
    for outcome in snapshot.feasibility.outcomes:
        mean, std = outcome.model.posterior(Z)
        inside &= rng.normal(mean, std, (20000, len(Z))) >= outcome.limit
    chance = np.exp(snapshot.feasibility.log_chance(Z))
    assert 0.05 < chance.mean() < 0.95
    np.testing.assert_allclose(inside.mean(axis=0), chance, atol=5 * 0.5 / math.sqrt(20000))


def test_gradients_are_those_of_differences(snapshot):
    index = GittinsIndex(snapshot.model, snapshot.price, 0.01)
    for function in (snapshot.feasibility.log_chance_and_grad, lambda X: snapshot.price.log_moment_and_grad(X, 1.0)):
        plain = lambda X, f=function: f(X)[0]  # noqa: E731
        np.testing.assert_allclose(function(Z)[1], central_difference(plain, Z), rtol=1e-5, atol=1e-5)
    for acquisition in (index, IfFeasible(index, snapshot.feasibility), WhereLikely(index, snapshot.feasibility)):
        value, gradient = acquisition.value_and_grad(Z)
        np.testing.assert_array_equal(value, acquisition.value(Z))
        likely = value > -1.0 if isinstance(acquisition, WhereLikely) else slice(None)
        np.testing.assert_allclose(
            gradient[likely], central_difference(acquisition.value, Z)[likely], rtol=1e-4, atol=1e-5
        )


def test_the_index_is_where_the_improvement_that_counts_is_worth_the_cost(snapshot):
    """p EI(x; g) = cost_scale c, with EI written out."""
    g = GittinsIndex(snapshot.model, snapshot.price, 0.01).value(Z)
    mean, std = snapshot.model.posterior(Z)
    u = (mean - g) / std
    improvement = std * (u * stats.norm.cdf(u) + stats.norm.pdf(u))
    chance = np.exp(snapshot.feasibility.log_chance(Z))
    np.testing.assert_allclose(chance * improvement, 0.01 * np.exp(snapshot.cost.log_moment(Z, 1.0)), rtol=1e-8)


def test_far_beyond_a_limit_the_chance_has_a_logarithm():
    optimizer = searched(6, {"a": AtMost(-1e3)}, outcomes=lambda p: {"a": outcomes_of(p)["a"]})
    assert optimizer.best is None
    log_chance = snapshot_of(optimizer._state)[0].feasibility.log_chance(Z)
    assert np.isfinite(log_chance).all()
    assert (log_chance < -1e3).all()


# Outcomes that are one ------------------------------------------------------------------------------------------------


def test_outcomes_that_move_together_are_one_with_the_stricter_limit():
    a = np.array([3.0, -1.0, 0.5, 2.0])
    one = one_of_each({"a": a, "b": 10.0 * a - 5.0, "c": 2.0 * a + 8.0, "d": -a, "e": a**3})
    assert one.keys() == {"a", "d", "e"}
    assert one["a"] == pytest.approx(0.5, abs=1e-12)
    assert one["d"] == one["e"] == 0.0
    nan = np.nan
    assert one_of_each({"a": np.array([3.0, nan, 0.5, 2.0]), "b": a}).keys() == {"a", "b"}
    assert one_of_each({"a": a, "b": np.array([6.0, nan, 1.0, 4.0])}).keys() == {"a"}
    assert one_of_each({"a": a[:2], "b": a[:2]}).keys() == {"a", "b"}, "two values are always on a line"


def test_two_equal_conditions_do_not_count_twice():
    """The same trials, bit for bit, as with one of them; with another limit as with the stricter one."""
    alone = searched(12, {"a": AtLeast(0.8)}, outcomes=lambda p: {"a": outcomes_of(p)["a"]})

    def twice(params):
        a = outcomes_of(params)["a"]
        return {"a": a, "b": 4.0 * a}

    same = searched(12, {"a": AtLeast(0.8), "b": AtLeast(3.2)}, outcomes=twice)
    assert [t.params for t in same.trials] == [t.params for t in alone.trials]
    looser = searched(12, {"a": AtLeast(0.8), "b": AtLeast(1.0)}, outcomes=twice)
    assert [t.params for t in looser.trials] == [t.params for t in alone.trials]
    X = [{"x": 0.2, "y": 0.4}, {"x": 0.9, "y": 0.9}]
    np.testing.assert_array_equal(same.predict(X).chance, alone.predict(X).chance)


# What a search makes of it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [kind(0.01) if kind is pbgi.PBGI else kind() for kind in POLICIES])
def test_every_policy_goes_on_before_and_after_the_first_feasible_point(policy):
    """A twentieth of the square is feasible."""
    optimizer = searched(30, {"a": AtLeast(1.45), "b": AtMost(0.3)}, policy=policy)
    feasible = [t for t in optimizer.trials if outcomes_of(t.params)["a"] >= 1.45 and t.constraints["b"] <= 0.3]
    assert feasible or isinstance(policy, pbgi.RandomSearch)
    assert (optimizer.best is None) == (not feasible)
    if feasible:
        assert optimizer.best.value == min(t.value for t in feasible)


def test_it_finds_the_border():
    """The least x + y with sin(5 x) + y at least 0.8: there 5 cos(5 x) = 1, so x = acos(1 / 5) / 5... or y = 0."""
    optimizer = searched(20, {"a": AtLeast(0.8)}, outcomes=lambda p: {"a": outcomes_of(p)["a"]})
    assert optimizer.best.value == pytest.approx(math.asin(0.8) / 5.0, rel=0.02)
    assert optimizer.conditions[0].binds


def test_a_run_goes_on_from_json_bit_for_bit():
    optimizer = searched(9, BOTH)
    again = Optimizer.from_json(optimizer.to_json())
    for _ in range(3):
        trial, same = optimizer.ask(), again.ask()
        assert trial == same
        optimizer.tell(trial, value_of(trial.params), cost=1.0, constraints=outcomes_of(trial.params))
        again.tell(same, value_of(same.params), cost=1.0, constraints=outcomes_of(same.params))


def test_outcomes_of_failed_trials_teach():
    """Of points that failed the outcome is known all the same, and the chance there is what it says."""
    optimizer = Optimizer(SQUARE, constraints={"a": AtMost(0.5)}, seed=0)
    optimizer.tell({"x": 0.9, "y": 0.9}, 1.0, constraints={"a": 0.0})
    before = optimizer.predict([{"x": 0.1, "y": 0.1}]).chance[0]
    for x, y in [(0.1, 0.1), (0.15, 0.1), (0.1, 0.2)]:
        optimizer.tell({"x": x, "y": y}, math.nan, constraints={"a": 1.0 + x})
    assert optimizer.predict([{"x": 0.1, "y": 0.1}]).chance[0] < 0.2 < before


def test_without_conditions_the_price_is_what_it_was(snapshot):
    optimizer = Optimizer(SQUARE, seed=0)
    for _ in range(5):
        optimizer.tell(optimizer.ask(), 1.0)
    plain = snapshot_of(optimizer._state)[0]
    assert plain.price is plain.cost
    assert plain.feasibility is None
    assert snapshot.warp is not IDENTITY


def test_the_rule_of_a_price_ends_where_nothing_is_feasible():
    """No point can keep the condition: the least value stands for the best, and the search is not endless."""
    optimizer = Optimizer(SQUARE, constraints={"a": AtMost(-10.0)}, policy=pbgi.PBGI(0.05), seed=0)
    while (reason := optimizer.should_stop()) is None and len(optimizer.trials) < 60:
        trial = optimizer.ask()
        optimizer.tell(trial, value_of(trial.params), cost=1.0, constraints={"a": outcomes_of(trial.params)["a"]})
    assert reason is not None
    assert reason.rule == "GittinsStop"
    assert "none being feasible" in reason.message
