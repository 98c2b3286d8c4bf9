"""What holds for every problem: frozen, the same every time and everywhere, honest about its cost and its optimum."""

import dataclasses
import importlib.util
import json
import math
import random
import subprocess
import sys

import numpy as np
import pytest

import pbgi.problems
from pbgi import InvalidInputError, KnownCost, LearnedCost, Optimizer, UniformCost
from pbgi.problems import Outcome, Problem

CASES = [
    ("ackley", {"dimension": 4}),
    ("ackley", {"dimension": 4, "cost": "varying"}),
    ("levy", {"dimension": 4}),
    ("levy", {"dimension": 4, "cost": "varying"}),
    ("rosenbrock", {"dimension": 4}),
    ("rosenbrock", {"dimension": 4, "cost": "varying"}),
    ("gp_draw", {"dimension": 2, "seed": 3}),
    ("gp_draw", {"dimension": 2, "seed": 3, "kernel": "rbf", "length_scale": 0.5, "cost": "varying"}),
    ("hard_for_eipc", {"seed": 1}),
    ("hard_for_ei", {"seed": 1}),
    ("pest_control", {}),
    ("pest_control", {"cost": "varying"}),
    ("pest_control", {"cost": "varying", "categorical": True}),
    ("lunar_lander", {"n_flights": 2}),
    ("lunar_lander", {"cost": "unknown", "n_flights": 2}),
    ("robot_pushing", {}),
    ("robot_pushing", {"cost": "known"}),
    ("robot_pushing", {"cost": "unknown"}),
]
NEEDS = {"lunar_lander": ("gymnasium", "Box2D"), "robot_pushing": ("Box2D",)}
N_POINTS = 3


def importable(name):
    return all(importlib.util.find_spec(module) for module in NEEDS.get(name, ()))


def build(name, arguments):
    return getattr(pbgi.problems, name)(**arguments)


def points(problem):
    return problem.space.from_unit_many(np.random.default_rng(7).random((N_POINTS, problem.space.dimension)))


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, case[1].values())]))
def case(request):
    if not importable(request.param[0]):
        pytest.skip(f"{request.param[0]} needs {' and '.join(NEEDS[request.param[0]])}")
    return request.param


@pytest.fixture
def problem(case):
    return build(*case)


def test_every_problem_is_here():
    makers = {name for name in pbgi.problems.__all__ if name.islower()}
    assert {name for name, _ in CASES} == makers


def test_names_exist_and_the_import_is_light():
    heavy = ("gymnasium", "Box2D", "scipy.stats", "torch")
    code = f"import sys, pbgi.problems; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"
    assert sorted(pbgi.problems.__all__) == pbgi.problems.__all__


def test_functions_win_over_the_modules_of_their_name():
    code = "import pbgi.problems.pest_control; from pbgi.problems import pest_control; print(callable(pest_control))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "True"


def test_is_frozen_and_filled_in(problem):
    assert isinstance(problem, Problem)
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.budget = 1.0
    assert isinstance(problem.name, str)
    assert problem.name
    assert problem.direction in ("minimize", "maximize")
    assert 0.0 < problem.budget < math.inf
    assert 0.0 < problem.unit < math.inf
    assert isinstance(problem.cost, UniformCost | KnownCost | LearnedCost)


def test_evaluate_gives_floats(problem):
    for params in points(problem):
        outcome = problem.evaluate(params)
        assert type(outcome) is Outcome
        assert type(outcome.value) is float
        assert type(outcome.cost) is float
        assert math.isfinite(outcome.value)
        assert 0.0 < outcome.cost < math.inf


def test_same_point_same_outcome(case, problem):
    params = points(problem)[0]
    first = problem.evaluate(params)
    problem.evaluate(points(problem)[1])
    assert problem.evaluate(dict(params)) == first
    assert build(*case).evaluate(params) == first


def test_same_outcome_in_another_process():
    """To the bit, for all problems at once."""
    code = (
        "import json, sys, pbgi.problems\n"
        "for name, arguments, params in json.load(sys.stdin):\n"
        "    problem = getattr(pbgi.problems, name)(**arguments)\n"
        "    print(json.dumps([*problem.evaluate(params), problem.optimum]))\n"
    )
    asked, here = [], []
    for name, arguments in CASES:
        if importable(name):
            problem = build(name, arguments)
            params = points(problem)[0]
            asked.append([name, arguments, params])
            here.append([*problem.evaluate(params), problem.optimum])
    ran = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(asked), check=True, capture_output=True, text=True
    )
    assert [json.loads(line) for line in ran.stdout.splitlines()] == here


def test_cost_is_the_one_that_is_told(problem):
    for params in points(problem):
        paid = problem.evaluate(params).cost
        if isinstance(problem.cost, UniformCost):
            assert paid == 1.0
        elif isinstance(problem.cost, KnownCost):
            assert float(problem.cost.price(params)) == paid


def test_prices_of_many_points_are_those_of_each(problem):
    if not isinstance(problem.cost, KnownCost):
        pytest.skip("no known price")
    X = np.random.default_rng(1).random((50, problem.space.dimension))
    one_by_one = [float(problem.cost.price(params)) for params in problem.space.from_unit_many(X)]
    assert problem.cost.vectorized
    together = problem.cost.price(problem.space.columns(X))
    assert together.shape == (50,)
    np.testing.assert_allclose(together, one_by_one, rtol=1e-14)
    assert (together > 0.0).all()


def test_optimum_is_not_exceeded(problem):
    if problem.optimum is None:
        pytest.skip("the optimum is not known")
    sign = 1.0 if problem.direction == "maximize" else -1.0
    X = np.random.default_rng(2).random((300, problem.space.dimension))
    values = [sign * problem.evaluate(params).value for params in problem.space.from_unit_many(X)]
    assert max(values) <= sign * problem.optimum


def test_points_outside_the_space_are_refused(problem):
    params = points(problem)[0]
    name = problem.space.names[0]
    without = {key: value for key, value in params.items() if key != name}
    for wrong in ({**params, name: 1e9}, {**params, name: math.nan}, without, {**params, "other": 0.5}):
        with pytest.raises(InvalidInputError):
            problem.space.check(wrong)
        with pytest.raises(InvalidInputError):
            problem.evaluate(wrong)


def test_no_global_random_state_is_touched(case):
    def state():
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002 (the global state is the subject)
        return random.getstate(), (kind, keys.tolist(), *rest), np.geterr()

    before = state()
    problem = build(*case)
    problem.evaluate(points(problem)[0])
    assert state() == before


def test_an_optimizer_takes_it_as_it_is(problem):
    optimizer = Optimizer(
        problem.space,
        direction=problem.direction,
        cost=problem.cost,
        budget=problem.budget,
        model=problem.model,
        n_startup_trials=2,
        seed=0,
    )
    for _ in range(4):
        trial = optimizer.ask()
        value, cost = problem.evaluate(trial.params)
        optimizer.tell(trial, value, cost=cost)
        if not isinstance(problem.cost, LearnedCost):
            assert cost == pytest.approx(trial.predicted_cost, rel=1e-9)
    assert len(optimizer.trials) == 4
