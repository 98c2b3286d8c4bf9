"""The importance of parameters, against what is known of functions whose shares can be computed by hand."""

import numpy as np
import pytest

import pbgi
from pbgi.importance import Importance, total_effects

SPACE = {
    "a": pbgi.Float(0.0, 1.0),
    "b": pbgi.Float(0.0, 1.0),
    "c": pbgi.Float(0.0, 1.0),
    "k": pbgi.Categorical(["x", "y"]),
}


def told(n, value, direction="minimize"):
    optimizer, rng = pbgi.Optimizer(SPACE, direction=direction, seed=0), np.random.default_rng(1)
    for _ in range(n):
        trial = optimizer.enqueue(optimizer.space.from_unit(rng.random(4)))
        optimizer.tell(trial, value(trial.params))
    return optimizer


def test_total_effects_of_a_product():
    """f = x y with x, y uniform on [-1, 1]: each goes with all of the variance, alone with none."""
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-1, 1, (2, 200_000, 2))
    values = [first[:, 0] * first[:, 1], second[:, 0] * first[:, 1], first[:, 0] * second[:, 1]]
    assert total_effects(np.array(values)) == pytest.approx([1.0, 1.0], abs=0.02)
    assert total_effects(np.ones((3, 10))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_shares_of_a_sum(direction):
    """Variances of the terms: 16/12, 4/45 and 1/16 of 1.4847."""
    found = told(40, lambda p: 4.0 * p["a"] + p["b"] ** 2 + 0.5 * (p["k"] == "x"), direction).importance()
    assert [each.name for each in found] == ["a", "b", "c", "k"]
    assert [each.share for each in found] == pytest.approx([0.898, 0.0599, 0.0, 0.0421], abs=0.03)
    assert all(0.0 <= each.low <= each.share <= each.high <= 1.0 for each in found)


def test_what_is_not_known_widens_the_interval():
    def width(n):
        found = told(n, lambda p: (p["a"] - 0.3) ** 2 + 0.3 * (p["b"] - 0.6) ** 2).importance()
        return sum(each.high - each.low for each in found)

    assert width(8) > 3.0 * width(40)


def test_it_disturbs_nothing_and_is_the_same_again():
    optimizer, twin = (told(12, lambda p: p["a"]) for _ in range(2))
    assert optimizer.importance() == optimizer.importance()
    assert isinstance(optimizer.importance()[0], Importance)
    assert optimizer.ask() == twin.ask()


def test_it_takes_a_model():
    with pytest.raises(pbgi.InvalidInputError, match=r"importance\(\) needs at least one completed trial"):
        pbgi.Optimizer(SPACE, seed=0).importance()
