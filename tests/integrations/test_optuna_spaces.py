"""Distributions there and back, conditional and changing spaces."""

import math

import numpy as np
import pytest

pytest.importorskip("optuna.samplers")

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import pbgi
from pbgi.integrations.optuna import PBGISampler
from pbgi.study.spaces import CommonSpace, SearchSpace, axis_of

optuna.logging.set_verbosity(optuna.logging.WARNING)


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


def test_equal_choices_do_not_hide_that_all_has_been_tried():
    choices = [1, True, "a"]
    study = optuna.create_study(sampler=PBGISampler(seed=0, search_space={"x": CategoricalDistribution(choices)}))
    tried = [study.ask({"x": CategoricalDistribution(choices)}).params["x"] for _ in range(2)]
    assert sorted(map(str, tried)) == ["1", "a"]


@pytest.mark.parametrize("distribution", [IntDistribution(0, 2**50), FloatDistribution(0.0, 1.0, step=1e-15)])
def test_too_many_levels_are_left_to_the_independent_sampler(distribution):
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    space = {"huge": distribution, "x": FloatDistribution(0.0, 1.0)}
    for _ in range(3):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"])
    assert study.sampler.infer_relative_search_space(study, study.trials[-1]) == {"x": space["x"]}


def test_single_values_are_constants_that_a_price_may_use():
    space = SearchSpace.of({"gpus": IntDistribution(4, 4), "kind": CategoricalDistribution(["A"]), "x": HALF})
    cost = space.cost_in_values(pbgi.KnownCost(lambda params: params["gpus"] * params["x"]))
    assert cost.price({"x": 2}) == pytest.approx(4 * 1.0)
    many = space.cost_in_values(pbgi.KnownCost(lambda p: p["gpus"] * p["x"] * (p["kind"] == "A"), vectorized=True))
    assert many.price({"x": np.array([1, 2])}).tolist() == pytest.approx([2.0, 4.0])


HALF = FloatDistribution(0.0, 1.0, step=0.5)


def test_a_price_sees_the_values_of_the_user():
    seen = []

    def price(params):
        seen.append(dict(params))
        return 1.0 + params["x"] + (params["c"] == "slow") + params["fixed"]

    def objective(trial):
        trial.suggest_int("fixed", 3, 3)
        return trial.suggest_float("x", 0.0, 1.0, step=0.5) + len(trial.suggest_categorical("c", ["slow", "fast"]))

    study = optuna.create_study(sampler=PBGISampler(cost=pbgi.KnownCost(price), seed=0, n_startup_trials=2))
    study.optimize(objective, n_trials=4)
    assert {params["c"] for params in seen} == {"slow", "fast"}
    assert {params["x"] for params in seen} == {0.0, 0.5, 1.0}


def test_conditional_parameters_fall_to_the_independent_sampler():
    asked = set()

    class Watched(optuna.samplers.RandomSampler):
        def sample_independent(self, study, trial, param_name, param_distribution):
            asked.add((trial.number, param_name))
            return super().sample_independent(study, trial, param_name, param_distribution)

    def objective(trial):
        if trial.suggest_categorical("kind", ["x", "y"]) == "x":
            return trial.suggest_float("x", 0.0, 1.0)
        return trial.suggest_float("y", 0.0, 1.0)

    study = optuna.create_study(sampler=PBGISampler(seed=0, independent_sampler=Watched(seed=1)))
    study.optimize(objective, n_trials=12)
    kinds = [trial.params["kind"] for trial in study.trials]
    both = max(kinds.index("x"), kinds.index("y"))
    alone = {(n, kind) for n, kind in enumerate(kinds) if n > both}
    assert {(n, name) for n, name in asked if n > both} == alone  # "kind" is never among them
    assert study.sampler.infer_relative_search_space(study, study.trials[-1]).keys() == {"kind"}


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
    ("before", "after"),
    [
        (FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(-0.1, 1.9, step=0.25)),
        (FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(0.0, 2.0)),
        (IntDistribution(4, 16, step=4), IntDistribution(3, 19, step=4)),
        (FloatDistribution(0.1, 1.0), FloatDistribution(0.1, 1.0, log=True)),
    ],
)
def test_a_range_with_other_steps_or_another_scale_is_not_a_wider_one(before, after):
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    trials = [completed({"x": d.low, "y": 0.5}, {"x": d, "y": FloatDistribution(0.0, 1.0)}) for d in (before, after)]
    space = CommonSpace()
    for number, trial in enumerate(trials):
        trial.number = number
    assert space.distributions(study.study_name, trials).keys() == {"y"}


def test_a_value_between_two_steps_is_of_another_range():
    """It is no point of the given space, and is not taken for the step beside it."""
    space = SearchSpace.of({"x": FloatDistribution(0.1, 1.1, step=0.25)})
    assert space.to_engine({"x": 0.35}) == {"x": 1}
    assert space.to_engine({"x": 0.25}) is None


def test_enqueued_parameters_are_kept_and_the_rest_is_chosen():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    space = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
    for _ in range(7):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"] + trial.params["y"])
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 0.5, "y": 0.75})
    partly, wholly, after = (study.ask(space) for _ in range(3))
    assert partly.params["x"] == 0.25
    assert wholly.params == {"x": 0.5, "y": 0.75}
    assert after.params not in (partly.params, wholly.params)


@pytest.mark.parametrize("pruner", [optuna.pruners.HyperbandPruner(), optuna.pruners.MedianPruner()])
def test_pruners_see_nothing_strange(pruner):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("cost", 1.0)
        for step in range(5):
            trial.report(x + 1.0 / (1 + step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=PBGISampler(budget=12.0, seed=0), pruner=pruner)
    study.optimize(objective, n_trials=30)
    charged = [trial for trial in study.trials if trial.params]
    assert 11 <= len(charged) <= 12  # pruned ones too, and those that another bracket had
    assert len({trial.params["x"] for trial in charged}) == len(charged)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"budget": -1.0}, "budget must be a positive"),
        ({"seed": -1}, "seed must be"),
        ({"policy": "PBGI"}, "policy must be"),
        ({"n_startup_trials": -1}, "n_startup_trials must be"),
        ({"search_space": {"x": (0, 1)}}, "search_space must map names to distributions"),
        ({"independent_sampler": 3}, "independent_sampler must be a sampler"),
    ],
)
def test_wrong_arguments_are_refused_at_once(wrong, match):
    with pytest.raises(pbgi.InvalidInputError, match=match):
        PBGISampler(**wrong)


def test_an_unknown_argument_is_named():
    with pytest.raises(pbgi.UnknownArgumentError, match="did you mean 'budget'"):
        PBGISampler(budgett=3)


def test_several_objectives_are_refused_with_the_way_out():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=PBGISampler())
    with pytest.raises(pbgi.InvalidInputError, match="one objective; got 2 directions; combine them"):
        study.ask().suggest_float("x", 0.0, 1.0)


@pytest.mark.parametrize(
    "distribution",
    [FloatDistribution(0.0, 1.0, step=0.0005), IntDistribution(1, 5000, log=True), IntDistribution(0, 4000)],
)
def test_grids_of_many_steps_do_not_repeat(distribution):
    sampler = PBGISampler(seed=0, search_space={"x": distribution}, cost=pbgi.UniformCost())
    study = optuna.create_study(sampler=sampler)
    for _ in range(30):
        trial = study.ask({"x": distribution})
        study.tell(trial, abs(distribution.to_internal_repr(trial.params["x"]) - 0.3 * distribution.high))
    assert len({trial.params["x"] for trial in study.trials}) == 30
