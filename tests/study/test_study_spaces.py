"""Distributions there and back, and what trials of changing ranges have in common."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import pbgi
from pbgi.integrations.optuna import PBGISampler
from pbgi.study.learned import usable_in
from pbgi.study.moving import Share
from pbgi.study.spaces import SearchSpace, axis_of


@pytest.mark.parametrize(
    ("distribution", "values"),
    [
        (FloatDistribution(-1.0, 2.0), [-1.0, 0.1, 2.0]),
        (FloatDistribution(1e-6, 1.0, log=True), [1e-6, 3e-4, 1.0]),
        (FloatDistribution(-0.3, 0.3, step=0.1), [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]),
        (IntDistribution(-3, 3), [-3, 0, 3]),
        (IntDistribution(2, 20, step=3), [2, 5, 20]),
        (IntDistribution(1, 1000, log=True), [1, 30, 1000]),
        (CategoricalDistribution(["a", None, True, 2, 3.5]), ["a", None, True, 2, 3.5]),
    ],
)
def test_values_go_to_the_engine_and_back(distribution, values):
    axis = axis_of(distribution)
    back = [axis.from_engine(axis.to_engine(value)) for value in values]
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]
    column = axis.column(np.array([axis.to_engine(value) for value in values]))
    assert column.tolist() == pytest.approx(values) if column.dtype == float else column.tolist() == values


def test_every_step_of_a_float_is_a_level():
    axis = axis_of(FloatDistribution(-10.2, 10.2, step=0.1))
    assert axis.parameter == pbgi.Integer(0, 204)
    assert [axis.from_engine(level) for level in (0, 1, 102, 204)] == [-10.2, -10.1, 0.0, 10.2]


def test_equal_choices_are_offered_once():
    """Optuna itself stores the first of them."""
    axis = axis_of(CategoricalDistribution([1, True, "a", 1.0, math.nan]))
    assert axis.parameter == pbgi.Categorical([0, 2, 4])
    assert axis.to_engine(True) == 0
    assert axis.to_engine(math.nan) == 4


def test_single_values_are_constants_that_a_price_may_use():
    space = SearchSpace.of({"gpus": IntDistribution(4, 4), "kind": CategoricalDistribution(["A"]), "x": HALF})
    cost = space.cost_in_values(pbgi.KnownCost(lambda params: params["gpus"] * params["x"]))
    assert cost.price({"x": 2}) == pytest.approx(4 * 1.0)
    many = space.cost_in_values(pbgi.KnownCost(lambda p: p["gpus"] * p["x"] * (p["kind"] == "A"), vectorized=True))
    assert many.price({"x": np.array([1, 2])}).tolist() == pytest.approx([2.0, 4.0])


HALF = FloatDistribution(0.0, 1.0, step=0.5)


def completed(params, distributions, value=1.0):
    return optuna.trial.create_trial(params=params, distributions=distributions, value=value)


def common_space(study):
    return study.sampler.infer_relative_search_space(study, study.trials[-1])


@pytest.mark.parametrize("highs", [(2.0, 1.0), (1.0, 2.0, 1.0), (2.0, 1.0, 2.0)])
def test_a_range_that_comes_and_goes_is_dropped(highs):
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    for high in highs:
        study.optimize(lambda t, h=high: t.suggest_float("x", 0.0, h) + t.suggest_float("y", 0.0, 1.0), n_trials=2)
    assert common_space(study).keys() == {"y"}


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (FloatDistribution(0.0, 1.0), FloatDistribution(-1.0, 4.0)),
        (FloatDistribution(0.01, 1.0, log=True), FloatDistribution(0.001, 1.0, log=True)),
        (FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(-0.5, 2.0, step=0.25)),
        (IntDistribution(1, 8), IntDistribution(0, 20)),
        (IntDistribution(4, 32, step=4), IntDistribution(0, 64, step=4)),
    ],
)
def test_a_range_that_was_widened_is_the_wider_one(narrow, wide):
    """All trials count, and the next point is chosen as if the sampler had been told the wider range."""
    distributions = {"x": narrow, "y": FloatDistribution(0.0, 1.0)}
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    for _ in range(5):
        trial = study.ask(distributions)
        study.tell(trial, -trial.params["x"] + trial.params["y"])
    study.add_trial(completed({"x": wide.high, "y": 0.5}, {**distributions, "x": wide}, -wide.high))
    assert common_space(study) == {**distributions, "x": wide}
    told = optuna.create_study(sampler=PBGISampler(seed=0, search_space={**distributions, "x": wide}))
    told.add_trials(study.trials)
    asked = study.ask({**distributions, "x": wide})
    assert asked.params == told.ask({**distributions, "x": wide}).params
    assert asked.params not in [trial.params for trial in study.trials[:-1]]


def test_workers_that_finish_out_of_order_agree_on_a_widened_range():
    """A trial of the narrower range that began before the first of the wider one, and ends after it."""
    narrow, wide = {"x": FloatDistribution(0.0, 1.0)}, {"x": FloatDistribution(0.0, 2.0)}
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    slow, fast = study.ask(narrow), study.ask(wide)
    study.tell(fast, 1.0)
    assert common_space(study) == wide
    study.tell(slow, 1.0)
    assert common_space(study) == wide
    assert PBGISampler(seed=0).infer_relative_search_space(study, study.trials[-1]) == wide


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        (FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(-0.1, 1.9, step=0.25), True),
        (FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(0.0, 2.0), False),
        (IntDistribution(4, 16, step=4), IntDistribution(3, 19, step=4), True),
        (FloatDistribution(0.1, 1.0), FloatDistribution(0.1, 1.0, log=True), False),
    ],
)
def test_a_range_with_other_steps_or_another_scale_is_not_a_wider_one(before, after, moves):
    trials = [completed({"x": d.low, "y": 0.5}, {"x": d, "y": FloatDistribution(0.0, 1.0)}) for d in (before, after)]
    for number, trial in enumerate(trials):
        trial.number = number
    assert usable_in(trials) == {"y": FloatDistribution(0.0, 1.0)} | ({"x": Share()} if moves else {})


def test_a_value_between_two_steps_is_of_another_range():
    """It is no point of the given space, and is not taken for the step beside it."""
    space = SearchSpace.of({"x": FloatDistribution(0.1, 1.1, step=0.25)})
    assert space.to_engine({"x": 0.35}) == {"x": 1}
    assert space.to_engine({"x": 0.25}) is None
