"""What fits a budget, where a category has been paid for and where it has not."""

import math

import numpy as np
import pytest
from engine_fixtures import one_thread  # noqa: F401

from pbgi import Categorical, Float, KnownCost, LearnedCost, Optimizer
from pbgi.cost.affordable import EARLY_FACTOR, LATE_FACTOR, Unseen, fits

STD = 0.3
CATEGORICAL = np.array([False, True, True])


class LogNormal:
    """Two units in the middle, with a deviation of STD; the last category of the second coordinate costs more."""

    def __init__(self, more=1.0):
        self.more = more

    def log_upper(self, X, z):
        return math.log(2.0) + z * STD + np.where(X[:, 1] > 0.8, math.log(self.more), 0.0)


def bound(x, z=2.0, paid=((0.5, 0.5, 0.25),), share_left=0.9, more=1.0):
    """The least that must be left for a point to fit, by bisection of the answers."""
    cost, low, high = LogNormal(more), 1e-3, 1e9
    unseen = Unseen.of(np.array(paid), CATEGORICAL, cost, share_left)
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(cost, np.array([x]), middle, z, unseen)[0] else (middle, high)
    return high


@pytest.mark.parametrize("z", [0.0, 1.0, 2.0])
def test_a_category_that_was_paid_for_must_fit_with_its_own_deviation(z):
    assert bound((0.1, 0.5, 0.25), z) == pytest.approx(2.0 * math.exp(z * STD))


@pytest.mark.parametrize(("share_left", "factor"), [(0.9, EARLY_FACTOR), (0.4, LATE_FACTOR)])
def test_an_unseen_category_must_fit_also_at_a_multiple(share_left, factor):
    two = math.sqrt(2.0) * math.log(factor)
    assert bound((0.5, 0.2, 0.25), share_left=share_left) == pytest.approx(2.0 * factor)
    assert bound((0.5, 0.2, 0.75), share_left=share_left) == pytest.approx(2.0 * math.exp(two))


def test_what_is_less_certain_than_the_multiple_must_fit_with_its_own_deviation():
    assert bound((0.5, 0.2, 0.25), z=12.0) == pytest.approx(2.0 * math.exp(12.0 * STD))


def test_known_categories_that_differ_by_more_say_so():
    """At 2 and 2000 the dearer is sqrt(1000) above the mean of logarithms: more than either factor."""
    more, paid = 1000.0, ((0.5, 0.1, 0.25), (0.5, 0.9, 0.25))
    assert bound((0.5, 0.5, 0.25), paid=paid, more=more) == pytest.approx(2.0 * math.sqrt(more))


def test_a_category_that_is_not_there_is_none():
    """Where another parameter decides that there is none, its coordinate is 0."""
    assert bound((0.5, 0.0, 0.25)) == bound((0.5, 0.5, 0.25))


def spent_on_one_category(budget, cost=None):
    """A run in which ten trials of one category cost 1 each, then a search: what was tried, and spent."""
    space = {"x": Float(0, 1), "kind": Categorical(["a", "b"])}
    optimizer = Optimizer(space, budget=budget, seed=0, cost=cost)

    def run(trial):
        worse = 0.5 if trial.params["kind"] == "a" else 0.0
        optimizer.tell(trial, (trial.params["x"] - 0.3) ** 2 + worse, cost=1.0)

    for i in range(10):
        run(optimizer.enqueue({"x": i / 9, "kind": "a"}))
    while optimizer.should_stop() is None:
        run(optimizer.ask())
    return {trial.params["kind"] for trial in optimizer.trials}, optimizer.spent


@pytest.mark.parametrize("cost", [None, LearnedCost()])
def test_a_category_is_tried_while_enough_is_left_for_a_surprise_and_not_later(cost):
    assert spent_on_one_category(19.0, cost) == ({"a"}, 19.0)
    assert spent_on_one_category(40.0, cost)[0] == {"a", "b"}


def one(_params):
    return 1.0


@pytest.mark.parametrize("cost", [KnownCost(one), LearnedCost(one)])
def test_whoever_says_what_categories_cost_has_them_tried_to_the_end(cost):
    assert spent_on_one_category(19.0, cost)[0] == {"a", "b"}
