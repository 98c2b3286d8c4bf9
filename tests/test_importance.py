"""The importance of parameters, against what is known of functions whose shares can be computed by hand."""

import numpy as np
import pytest

import pbgi
from pbgi.importance import Importance, main_effect

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


def test_main_effects_of_known_functions():
    """On [-1, 1]: of x + x y a quarter is together (variances 1/3 and 1/9), of x y all of it, of x^2 none."""
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 200_000))
    assert main_effect(x, x + x * y) == pytest.approx(0.75, abs=0.02)
    assert main_effect(y, x + x * y) == pytest.approx(0.0, abs=0.001)
    assert main_effect(x, x * y) == pytest.approx(0.0, abs=0.001)
    assert main_effect(x, x**2) == pytest.approx(1.0, abs=0.03)
    assert main_effect(np.sign(x), np.sign(x) + y) == pytest.approx(0.75, abs=0.01)  # levels: 1 and 1/3


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_shares_do_not_depend_on_the_size_of_values(size):
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 20_000))
    assert main_effect(x, size * (x + x * y)) == pytest.approx(main_effect(x, x + x * y), rel=1e-9)


def test_a_parameter_counts_where_it_exists():
    """3 or x, each half of the time: variances 9/4 between them and 1/6 of x in its half."""
    which, x = np.random.default_rng(0).uniform(-1, 1, (2, 200_000))
    there = which > 0
    x[~there] = 0.5
    values = np.where(there, x, 3.0)
    assert main_effect(there.astype(float), values) == pytest.approx(2.25 / (2.25 + 1 / 6), abs=0.003)
    assert main_effect(x, values, there) == pytest.approx(1 / 6 / (2.25 + 1 / 6), abs=0.003)
    assert main_effect(x, values, np.zeros(len(x), bool)) == 0.0


def test_shares_of_branches_add_up_to_at_most_one():
    optimizer = pbgi.Optimizer({"m": pbgi.Categorical(["a", "b"]), "x": pbgi.Float(0.0, 1.0, when={"m": "b"})}, seed=0)
    for i in range(16):
        params = {"m": "b", "x": i / 8} if i <= 8 else {"m": "a"}
        optimizer.tell(params, params.get("x", 3.0))
    shares = {each.name: each.share for each in optimizer.importance()}
    # Halves: 3, and x with mean 1/2 and variance 1/12.
    between, within = 2.5**2 / 4, 1 / 24
    assert shares["m"] == pytest.approx(between / (between + within), abs=0.03)
    assert shares["x"] == pytest.approx(within / (between + within), abs=0.02)


def test_chance_is_no_effect():
    rng = np.random.default_rng(0)
    found = [main_effect(rng.random(512), rng.normal(size=512)) for _ in range(200)]
    assert np.mean(found) < 0.01
    assert main_effect(rng.random(10), np.ones(10)) == 0.0


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
