"""Ackley, Levy and Rosenbrock against BoTorch's values, and what the paper does to them."""

import json
from pathlib import Path

import numpy as np
import pytest

from pbgi import InvalidInputError
from pbgi.problems import ackley, levy, rosenbrock
from pbgi.problems.synthetic import ackley_value

MAKERS = {"ackley": ackley, "levy": levy, "rosenbrock": rosenbrock}
UNITS = {"ackley": 1.0, "levy": 100.0, "rosenbrock": 1e5}
BOTORCH = json.loads(Path(__file__).with_name("botorch_values.json").read_text())
# Where the minimum lies in the unit cube: the origin of [-1, 1], and ones in [-10, 10] and in [-5, 10].
MINIMA = {"ackley": 0.5, "levy": 0.55, "rosenbrock": 0.4}


def at(problem, x):
    return problem.evaluate({f"x{k}": float(value) for k, value in enumerate(x)})


@pytest.mark.parametrize("row", BOTORCH, ids=lambda row: f"{row['function']}-{len(row['x'])}")
def test_values_are_those_of_botorch(row):
    problem = MAKERS[row["function"]](len(row["x"]))
    assert -problem.unit * at(problem, row["x"]).value == pytest.approx(row["value"], rel=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_the_table_has_the_dimensions_of_the_paper(name):
    dimensions = {len(row["x"]) for row in BOTORCH if row["function"] == name}
    assert {4, 8, 16} <= dimensions


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dimension", [4, 8, 16])
def test_optimum_is_where_it_is_known_to_be(name, dimension):
    problem = MAKERS[name](dimension)
    best = at(problem, np.full(dimension, MINIMA[name])).value
    assert problem.optimum == 0.0
    assert -1e-15 <= best <= 0.0
    near = np.full(dimension, MINIMA[name])
    near[0] += 1e-3
    assert at(problem, near).value < best


def test_ackley_is_accurate_next_to_its_minimum():
    """There it is 4 |z| / sqrt(d) to first order: next to a kink, what the usual formula loses by cancellation."""
    for step in np.logspace(-18, -6, 50):
        assert ackley_value(np.full(4, step)) == pytest.approx(4.0 * step, rel=1e-4)


@pytest.mark.parametrize("name", MAKERS)
def test_units_and_budgets_of_the_paper(name):
    for dimension in (4, 8, 16):
        uniform, varying = MAKERS[name](dimension), MAKERS[name](dimension, cost="varying")
        assert (uniform.unit, uniform.budget) == (UNITS[name], 10 * dimension)
        assert (varying.unit, varying.budget) == (UNITS[name], 25 * dimension)


@pytest.mark.parametrize("name", MAKERS)
def test_cost_rises_from_1_to_21(name):
    problem = MAKERS[name](4, cost="varying")
    assert at(problem, np.zeros(4)).cost == 1.0
    assert at(problem, np.ones(4)).cost == 21.0
    assert at(problem, [0.1, 0.2, 0.3, 0.4]).cost == pytest.approx(1 + 20 * 0.25)
    assert at(MAKERS[name](4), np.ones(4)).cost == 1.0


def test_median_of_the_start_is_the_published_one():
    """Best of 34 random points, d = 16, regret in the function's units: medians of 16 seeds in the paper's figures."""
    published = {"ackley": 3.319, "levy": 82.1, "rosenbrock": 505537.0}
    for name, median in published.items():
        problem = MAKERS[name](16)
        best = []
        for seed in range(100):
            points = np.random.default_rng(seed).random((34, 16))
            best.append(max(at(problem, x).value for x in points))
        assert -problem.unit * np.median(best) == pytest.approx(median, rel=0.15)


@pytest.mark.parametrize("name", MAKERS)
def test_bad_arguments_are_refused(name):
    for dimension in (0, -1, 2.0, True):
        with pytest.raises(InvalidInputError, match="dimension"):
            MAKERS[name](dimension)
    with pytest.raises(InvalidInputError, match="cost must be one of uniform, varying; got 'cheap'"):
        MAKERS[name](4, cost="cheap")


def test_rosenbrock_needs_two_dimensions():
    with pytest.raises(InvalidInputError, match="at least 2; got 1"):
        rosenbrock(1)
    assert at(rosenbrock(2), [0.4, 0.4]).value == pytest.approx(0.0, abs=1e-15)
