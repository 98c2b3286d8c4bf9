"""One run: what is evaluated, and what its record holds."""

import json
from dataclasses import replace

import pytest
from toy_runs import numbers, toy

import pbgi
from paper import execution
from paper.execution import execute


@pytest.mark.parametrize("policy", [pbgi.RandomSearch(), pbgi.PBGI(1e-4)])
def test_evaluates_while_anything_is_left_and_may_overshoot(policy):
    record = execute(toy(policy))
    paid = record["costs"][record["n_start"] :]
    assert record["n_start"] == 6
    assert record["budget"] == 50.0
    assert sum(paid[:-1]) < 50.0 <= sum(paid)
    assert all(1.0 <= cost <= 21.0 for cost in record["costs"])


def test_uniform_cost_is_a_number_of_evaluations():
    record = execute(toy(pbgi.LogEI(), cost="uniform"))
    assert len(record["values"]) == 6 + 20
    assert record["costs"] == [1.0] * 26


def test_index_policy_does_not_stop_by_itself():
    """With so high a price no trial is worth it; the budget is spent all the same."""
    assert len(execute(toy(pbgi.PBGI(100.0), cost="uniform"))["values"]) == 26


def test_record():
    record = execute(toy(pbgi.LogEIPC(), curve="LogEIPC", n_evaluations=3))
    assert record["key"] == toy(pbgi.LogEIPC(), n_evaluations=3).key
    labels = {"experiment": "toy", "problem": "Ackley", "dim": 2, "cost": "varying"}
    labels |= {"policy": "LogEIPC", "variant": "as_published", "seed": 0, "direction": "maximize"}
    assert {name: record[name] for name in labels} == labels
    assert (record["optimum"], record["unit"]) == (0.0, 1.0)
    assert len(record["values"]) == len(record["costs"]) == record["n_start"] + len(record["suggest_seconds"]) == 9
    assert all(value < 0 for value in record["values"])
    assert record["wall_seconds"] > sum(record["suggest_seconds"]) > 0
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_start_is_shared_by_policies():
    records = [execute(toy(policy, n_evaluations=1)) for policy in (pbgi.RandomSearch(), pbgi.UCB(), pbgi.PBGID(0.1))]
    assert len({tuple(record["values"][:6]) for record in records}) == 1
    assert len({record["values"][6] for record in records}) == 3


def test_same_run_same_numbers():
    assert numbers(execute(toy(pbgi.Thompson()))) == numbers(execute(toy(pbgi.Thompson())))
    assert execute(toy())["values"] != execute(toy(seed=1))["values"]


def test_random_search_does_not_look_at_its_model(monkeypatch):
    cheap = execute(toy())["values"]
    monkeypatch.setattr(execution, "build_model", lambda *_: pbgi.GPConfig.paper())
    assert execute(toy())["values"] == cheap


def test_failure_of_an_evaluation_is_an_error(monkeypatch):
    problem = execution.build_problem(toy().specification.problem)
    monkeypatch.setattr(execution, "build_problem", lambda _: replace(problem, evaluate=lambda _: (float("nan"), 1.0)))
    with pytest.raises(pbgi.InvalidInputError, match="must be finite; got nan"):
        execute(toy())
