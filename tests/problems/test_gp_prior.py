"""Draws from a Gaussian process prior: their law, their highest value, their budgets."""

import math

import numpy as np
import pytest
from scipy import optimize, special
from threadpoolctl import threadpool_limits

from pbgi import InvalidInputError
from pbgi.problems import gp_draw
from pbgi.problems.gp_prior import GPDraw, highest_value, waves

SMOOTHNESS = {"matern32": 1.5, "matern52": 2.5, "rbf": math.inf}


def matern(distance, smoothness):
    """The textbook formula with a Bessel function, which the package does not use."""
    if math.isinf(smoothness):
        return math.exp(-(distance**2) / 2)
    if distance == 0.0:
        return 1.0
    s = math.sqrt(2 * smoothness) * distance
    return 2 ** (1 - smoothness) / math.gamma(smoothness) * s**smoothness * special.kv(smoothness, s)


@pytest.mark.parametrize("kernel", SMOOTHNESS)
def test_covariance_is_that_of_the_kernel(kernel):
    X = np.array([[0.5, 0.5], [0.55, 0.5], [0.6, 0.6], [0.9, 0.1]])
    n_draws = 3000
    values = np.array([waves(GPDraw(2, seed, kernel, 0.1))(X) for seed in range(n_draws)])
    expected = np.array([[matern(np.linalg.norm(a - b) / 0.1, SMOOTHNESS[kernel]) for a in X] for b in X])
    # The estimate of a covariance rho of unit normals has variance (1 + rho^2) / n.
    limit = 4.0 * np.sqrt((1 + expected**2) / n_draws)
    assert (np.abs(values.T @ values / n_draws - expected) < limit).all()
    assert (np.abs(values.mean(axis=0)) < 4.0 / math.sqrt(n_draws)).all()


def test_evaluate_gives_the_waves():
    problem = gp_draw(3, seed=5, length_scale=0.5)
    x = np.array([0.2, 0.7, 0.4])
    assert problem.evaluate(problem.space.from_unit(x)).value == waves(GPDraw(3, 5, "matern52", 0.5))(x[None])[0]


@pytest.mark.parametrize(("kernel", "length_scale"), [("matern52", 0.1), ("matern32", 0.5), ("rbf", 1.0)])
def test_highest_value_is_that_of_a_dense_grid_climbed_by_scipy(kernel, length_scale):
    draw = GPDraw(2, 3, kernel, length_scale)
    line = np.linspace(0.0, 1.0, 151)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    values = waves(draw)(grid)
    starts = grid[np.argsort(-values)[:20]]
    climbs = [
        optimize.minimize(lambda x: -waves(draw)(x[None])[0], x, bounds=[(0.0, 1.0)] * 2, method="L-BFGS-B")
        for x in starts
    ]
    assert highest_value(draw) == pytest.approx(-min(climb.fun for climb in climbs), abs=1e-6)


@pytest.mark.parametrize("dimension", [4, 8])
def test_no_point_is_above_the_optimum(dimension):
    draw = GPDraw(dimension, 1, "matern52", 0.1)
    problem = gp_draw(dimension, seed=1)
    assert problem.optimum == highest_value(draw)
    X = np.random.default_rng(99).random((20_000, dimension))
    assert waves(draw)(X).max() <= problem.optimum


def test_optimum_does_not_depend_on_threads():
    draw = GPDraw(4, 2, "matern52", 0.5)
    found = []
    for threads in (1, 2):
        highest_value.cache_clear()
        with threadpool_limits(threads):
            found.append(highest_value(draw))
    assert found[0] == found[1]


def test_seeds_and_kernels_give_different_functions():
    x = {"x0": 0.3, "x1": 0.8}
    problems = [
        gp_draw(2, seed=0),
        gp_draw(2, seed=1),
        gp_draw(2, seed=0, kernel="rbf"),
        gp_draw(2, seed=0, length_scale=1),
    ]
    assert len({problem.evaluate(x).value for problem in problems}) == 4


def test_cost_does_not_change_the_function():
    uniform, varying = gp_draw(2, seed=7), gp_draw(2, seed=7, cost="varying")
    x = {"x0": 0.25, "x1": 0.75}
    assert uniform.evaluate(x) == (varying.evaluate(x).value, 1.0)
    assert varying.evaluate(x).cost == 11.0
    assert uniform.optimum == varying.optimum


@pytest.mark.parametrize(
    ("kernel", "length_scale", "uniform", "varying"),
    [
        ("matern32", 0.1, 25, 50),
        ("matern52", 0.1, 25, 50),
        ("matern52", 0.5, 15, 40),
        ("matern52", 1.0, 10, 25),
        ("rbf", 0.1, 20, 50),
        ("rbf", 0.5, 10, 40),
        ("rbf", 1.0, 5, 25),
        ("rbf", 0.12, 20, 50),  # nearest to 0.1
    ],
)
def test_budgets_of_the_paper(kernel, length_scale, uniform, varying):
    for dimension in (2, 4):
        arguments = {"seed": 0, "kernel": kernel, "length_scale": length_scale}
        assert gp_draw(dimension, **arguments).budget == uniform * dimension
        assert gp_draw(dimension, **arguments, cost="varying").budget == varying * dimension


def test_budget_of_varying_cost_in_32_dimensions(monkeypatch):
    monkeypatch.setattr("pbgi.problems.gp_prior.highest_value", lambda _draw: 0.0)  # seconds, and not the subject
    for length_scale in (0.1, 0.5, 1.0):
        assert gp_draw(32, seed=0, length_scale=length_scale, cost="varying").budget == 25 * 32
    assert gp_draw(32, seed=0).budget == 25 * 32


def test_bad_arguments_are_refused():
    for seed in (-1, 0.5, None, True):
        with pytest.raises(InvalidInputError, match="seed"):
            gp_draw(2, seed=seed)
    with pytest.raises(InvalidInputError, match="kernel must be one of"):
        gp_draw(2, seed=0, kernel="matern")
    with pytest.raises(InvalidInputError, match="length_scale"):
        gp_draw(2, seed=0, length_scale=0.0)
    with pytest.raises(InvalidInputError, match="dimension"):
        gp_draw(0, seed=0)
    with pytest.raises(InvalidInputError, match="cost must be one of"):
        gp_draw(2, seed=0, cost="unknown")
