"""Tune's domains there and back, nested configurations, and what is refused."""

import math

import numpy as np
import pytest

pytest.importorskip("ray.tune")

from ray import tune

import pbgi
from pbgi.integrations.ray.spaces import SearchSpace


def axis(domain):
    return SearchSpace.of({"p": domain}).axes["p"]


@pytest.mark.parametrize(
    ("domain", "parameter"),
    [
        (tune.uniform(-1, 2), pbgi.Float(-1, 2)),
        (tune.loguniform(1e-4, 1e-1), pbgi.Float(1e-4, 1e-1, log=True)),
        (tune.quniform(-0.3, 0.3, 0.1), pbgi.Integer(-3, 3)),
        (tune.qloguniform(0.1, 10, 0.1), pbgi.Integer(1, 100, log=True)),
        (tune.randint(0, 10), pbgi.Integer(0, 9)),
        (tune.lograndint(1, 1000), pbgi.Integer(1, 999, log=True)),
        (tune.qrandint(0, 20, 5), pbgi.Integer(0, 20, step=5)),
        (tune.qrandint(3, 22, 5), pbgi.Integer(5, 20, step=5)),
        (tune.qrandint(0, 20, 1), pbgi.Integer(0, 19)),
        (tune.qlograndint(2, 64, 2), pbgi.Integer(2, 64, log=True, step=2)),
        (tune.choice(["a", "b", None, 3, 4.5]), pbgi.Categorical(["a", "b", None, 3, 4.5])),
        (tune.choice([1, True]), pbgi.Categorical([0, 1])),
        (tune.choice([[8, 8], [16]]), pbgi.Categorical([0, 1])),
        (pbgi.Float(0, 1), pbgi.Float(0, 1)),
    ],
)
def test_domains_become_parameters(domain, parameter):
    assert axis(domain).parameter == parameter


@pytest.mark.parametrize(
    "domain",
    [
        tune.uniform(-1, 2),
        tune.loguniform(1e-4, 1e-1),
        tune.quniform(-0.3, 0.3, 0.1),
        tune.qloguniform(0.1, 10, 0.1),
        tune.randint(0, 10),
        tune.lograndint(1, 1000),
        tune.qrandint(3, 22, 5),
        tune.qrandint(0, 4, 1),
        tune.qlograndint(2, 64, 2),
        tune.choice([[8, 8], [16]]),
        tune.choice([1, True, "1"]),
    ],
)
def test_what_tune_samples_goes_to_the_engine_and_back(domain):
    there, rng = axis(domain), np.random.default_rng(0)
    for value in (domain.sample(random_state=rng) for _ in range(100)):
        back = there.from_engine(there.to_engine(value))
        assert back == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)
        assert type(back) is type(value)


def test_quantised_values_are_the_decimals_that_were_meant():
    there = axis(tune.quniform(-0.3, 0.3, 0.1))
    assert [there.from_engine(level) for level in range(-3, 4)] == [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]


NESTED = {"model": {"layers": tune.randint(1, 9), "kind": "mlp"}, "lr": tune.loguniform(1e-4, 1), "seed": 3, "none": {}}


def test_nested_configurations_there_and_back():
    space = SearchSpace.of(NESTED)
    assert list(space.axes) == ["model/layers", "lr"]  # as written, not as sorted
    config = {"model": {"layers": 4, "kind": "mlp"}, "lr": 0.01, "seed": 3, "none": {}}
    point = space.to_engine(config)
    assert point == {"model/layers": 4, "lr": 0.01}
    assert space.from_engine(point) == {"model": {"layers": 4}, "lr": 0.01}
    assert space.from_engine(point, with_constants=True) == config
    space.from_engine(point, with_constants=True)["model"]["kind"] = "changed"
    assert space.constants == {"model": {"kind": "mlp"}, "seed": 3, "none": {}}


def test_a_space_survives_json():
    space = SearchSpace.of({**NESTED, "q": tune.quniform(0, 1, 0.25), "objects": tune.choice([[1], [2]])})
    again = SearchSpace.from_plain(space.to_plain(), pbgi.Space.from_plain(space.space.to_plain()))
    again.require_like(space)
    assert again.axes["q"].from_engine(3) == 0.75
    with pytest.raises(pbgi.InvalidInputError, match="choices of parameter 'objects' must be given again"):
        again.from_engine({"model/layers": 1, "lr": 0.1, "q": 0, "objects": 0})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"a": tune.grid_search([1, 2])}, "must not have tune.grid_search; got one for 'a'"),
        ({"a": {"b": tune.sample_from(lambda: 1)}}, "parameter 'a/b': .* got tune.sample_from"),
        ({"a": tune.randn()}, "parameter 'a': a domain must have bounds; got Float with the sampler Normal"),
        ({"a": tune.qrandn(0, 1, 0.5)}, "a domain must have bounds"),
        ({"a": [tune.uniform(0, 1)]}, "must not be inside a list .* got one at 'a/0'"),
        ({"a": tune.uniform(1, 0)}, "parameter 'a': low must not exceed high"),
        ({"a": tune.choice([])}, "parameter 'a': choices must not be empty"),
        ({"a": tune.choice([{"m": "svm", "C": tune.uniform(0, 1)}, {"m": "tree"}])}, "'a': a choice must not hold dom"),
        ({"a/b": tune.uniform(0, 1), "a": {"b": tune.uniform(0, 1)}}, "names of parameters must differ"),
        ({"a": 1}, "must have something to search"),
        ({}, "must have something to search"),
        ("lr", "space must be a dict"),
    ],
)
def test_what_cannot_be_searched_is_refused(config, message):
    with pytest.raises(pbgi.InvalidInputError, match=message):
        SearchSpace.of(config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"lr": 0.1}, "a configuration must have 'model/layers'"),
        ({"model": {"layers": 9}, "lr": 0.1}, "parameter 'model/layers' must be from 1 to 8; got 9"),
        ({"model": {"layers": 2.5}, "lr": 0.1}, "whole number"),
        ({"model": {"layers": 2}, "lr": math.nan}, "must be finite"),
    ],
)
def test_a_configuration_outside_is_refused(config, message):
    with pytest.raises(pbgi.InvalidInputError, match=message):
        SearchSpace.of(NESTED).to_engine(config)


def test_a_value_between_two_quanta_is_refused():
    with pytest.raises(pbgi.InvalidInputError, match=r"must be a multiple of 0.1; got 0.25"):
        axis(tune.quniform(0, 1, 0.1)).to_engine(0.25)
    with pytest.raises(pbgi.InvalidInputError, match="must be from 0 to 10"):
        axis(tune.quniform(0, 1, 0.1)).to_engine(1.1)


def test_an_unknown_choice_is_refused():
    with pytest.raises(pbgi.InvalidInputError, match=r"must be one of \[\[1\], \[2\]\]; got \[3\]"):
        axis(tune.choice([[1], [2]])).to_engine([3])
