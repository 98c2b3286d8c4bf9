"""Runs and records small enough to be computed by hand, or in no time."""

from dataclasses import replace
from typing import Any

import pbgi
from paper.specification import FittedModel, ProblemSpec, Run, Specification

TIMES = ("suggest_seconds", "wall_seconds", "finished")


def toy(policy=None, *, cost: str = "varying", seed: int = 0, curve: str = "RS", dim: int = 2, **limits) -> Run:
    problem = ProblemSpec("ackley", (("dimension", dim), ("cost", cost)))
    spec = Specification("toy", problem, policy or pbgi.RandomSearch(), FittedModel(), seed, **limits)
    return Run(spec, "Ackley", dim, cost, curve)


def broken() -> Run:
    return replace(toy(), specification=replace(toy().specification, problem=ProblemSpec("no_such_problem")))


def numbers(record: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on the machine."""
    return {name: value for name, value in record.items() if name not in TIMES}


FEW = [toy(policy, seed=seed, n_evaluations=2) for policy in (pbgi.RandomSearch(), pbgi.LogEI()) for seed in (0, 1)]


def record(values=(5.0, 3.0, 4.0, 1.0), costs=(7.0, 9.0, 10.0, 30.0), **changes):
    """A run whose start are the first two points: best 3 at 0, 3 until 40 is spent, then 1 (minimized)."""
    plain = {
        "key": "k",
        "experiment": "made_up",
        "problem": "Sphere",
        "dim": 2,
        "cost": "varying",
        "policy": "PBGI",
        "variant": "as_published",
        "search": "200 d / 10 d",
        "engine": "numpy",
        "lowered": [],
        "seed": 0,
        "budget": 40.0,
        "n_start": 2,
        "values": list(values),
        "costs": list(costs),
        "optimum": 0.0,
        "unit": 1.0,
        "direction": "minimize",
        "suggest_seconds": [0.5, 1.5],
        "wall_seconds": 3.0,
        "finished": "2026-01-01T00:00:00+00:00",
    }
    return plain | {"key": repr(sorted(changes.items()))} | changes


def on_ackley(policy, finals, experiment="synthetic", **changes):
    """Runs on a published panel that fall from 3.2 to each final regret in one evaluation at half the budget."""
    return [
        record(
            (-3.2, -3.2, -final, -3.0),
            (1.0, 1.0, 200.0, 200.0),
            **{
                "experiment": experiment,
                "problem": "Ackley",
                "dim": 16,
                "policy": policy,
                "seed": seed,
                "budget": 400.0,
            }
            | {"direction": "maximize"}
            | changes,
        )
        for seed, final in enumerate(finals)
    ]
