"""The comparison on constrained problems: its problems are right, and it runs."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PROBLEMS = ["gardner_1", "gardner_2", "gramacy", "g24", "townsend", "simionescu", "bird", "gomez_levy"]


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum(name):
    """The best feasible points of a grid, polished by SLSQP; whether it lies on the border of a condition."""
    import constrained_problems

    problem = constrained_problems.PROBLEMS[name]
    (x_low, x_high), (y_low, y_high) = problem.bounds
    grid = [(x, y) for x in np.linspace(x_low, x_high, 121) for y in np.linspace(y_low, y_high, 121)]
    inside = sorted((problem.value(x, y), x, y) for x, y in grid if max(c(x, y) for c in problem.outcomes) <= 0)
    rules = [{"type": "ineq", "fun": lambda z, c=c: -c(*z)} for c in problem.outcomes]
    options = {"ftol": 1e-13}
    found = [
        minimize(lambda z: problem.value(*z), start, bounds=problem.bounds, constraints=rules, options=options)
        for _, *start in inside[:20:4]
    ]
    feasible = [f for f in found if max(c(*f.x) for c in problem.outcomes) < 1e-9]
    best = min(feasible, key=lambda f: f.fun)
    assert best.fun == pytest.approx(problem.optimum, abs=2e-7)
    assert (max(c(*best.x) for c in problem.outcomes) > -1e-6) == problem.on_border


def test_a_run_of_ours(tmp_path, capsys):
    import quality_constraints

    results = tmp_path / "results.jsonl"
    options = ["--contestants", "pbgi", "--problems", "g24", "--seeds", "1", "--results", str(results)]
    assert quality_constraints.main(options) == 0
    (record,) = map(json.loads, results.read_text().splitlines())
    assert record["evaluations"] <= quality_constraints.MOST
    assert record["best"] <= -5.508 * 0.99
    assert f"| g24 | {record['evaluations']} (1 of 1) |" in capsys.readouterr().out
    assert quality_constraints.main(options) == 0
    assert len(results.read_text().splitlines()) == 1, "a second call has nothing to do"
