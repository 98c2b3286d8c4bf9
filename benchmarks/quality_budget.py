"""Whether a budget holds where the cost is learned: what runs overspend, and what they leave.

Eight kinds of run, with costs from the smallest to the largest point in brackets: the README's example (9 times), the
quickstart's (16), a job on rented machines of `docs/costs.md` (a price list times hours, 320), its `steep` (1000) at
budgets of 1000 and 300, the demo's space with seconds by a formula of its size (1700) and noise of a tenth, and two
where nothing but trying tells that a category is dear: it costs 100 times as much as two others (100), or each 10 times
as much as the one before (300). A run overspends if its trials cost more than the budget, by however little. The last
column: in how many runs every category was tried.

    python benchmarks/quality_budget.py               272 runs, a few minutes
    python benchmarks/quality_budget.py --seeds 4     a quick try
"""

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import pbgi

TARGET_SHARE, TARGET_EXCESS, TARGET_UNSPENT = 1 / 20, 0.02, 0.05
NOISE = 0.1  # of the logarithm of the demo's seconds
Params = Mapping[str, Any]


class Kind(NamedTuple):
    """A function with its cost, and what may be spent."""

    name: str
    function: Callable[[Params, np.random.Generator], tuple[float, float]]
    space: dict[str, Any]
    budget: float


def readme(p: Params, rng: np.random.Generator) -> tuple[float, float]:  # noqa: ARG001 (costs are exact)
    loss = (p["lr"] - 0.01) ** 2 + 0.1 / p["layers"] + 0.05 * (p["act"] == "tanh")
    return loss, 0.5 + 0.5 * p["layers"]


def quickstart(p: Params, rng: np.random.Generator) -> tuple[float, float]:  # noqa: ARG001
    loss = (p["width"] - 48) ** 2 / 1000 + (p["rate"] - 0.2) ** 2 + (p["optimizer"] == "sgd") * 0.1
    return loss, p["width"] / 10


def machines(p: Params, rng: np.random.Generator) -> tuple[float, float]:  # noqa: ARG001
    hours = p["samples"] / (15 if p["machine"] == "large" else 5)
    return 1 / p["samples"] ** 0.5, {"small": 0.5, "large": 4.0}[p["machine"]] * hours


def steep(p: Params, rng: np.random.Generator) -> tuple[float, float]:  # noqa: ARG001
    return (p["x"] - 0.4) ** 2 + (p["y"] - 0.6) ** 2, 10.0 ** (3 * p["x"])


def categories(p: Params, rng: np.random.Generator) -> tuple[float, float]:  # noqa: ARG001
    return (p["x"] - 0.4) ** 2 + (p["y"] - 0.6) ** 2 + 0.1 * (p["kind"] == "a"), {"a": 1, "b": 1, "c": 100}[p["kind"]]


def ladder(p: Params, rng: np.random.Generator) -> tuple[float, float]:
    value, _ = categories(p, rng)
    return value, {"a": 1, "b": 10, "c": 100}[p["kind"]] * 3 ** (p["x"] - 0.5)


def demo(p: Params, rng: np.random.Generator) -> tuple[float, float]:
    """Steps of training times the weights of the network; the loss is smooth, and large where training diverges."""
    steps, weights = 1 / p["batch"], p["width"] ** 1.2 * p["layers"]
    seconds = 0.2 + 0.2 * steps * weights
    away = np.array(
        [math.log10(p["rate"]) + 2.5, 0.3 * (math.log10(p["penalty"]) + 4), math.log2(p["width"] / 256) / 4]
    )
    diverged = max(0.0, math.log10(p["rate"]) + 1.0) * 20.0
    return 0.07 + 0.05 * float(away @ away) + diverged, seconds * math.exp(NOISE * rng.standard_normal())


PLANE = {"x": pbgi.Float(0, 1), "y": pbgi.Float(0, 1)}
KINDS = (
    Kind(
        "README",
        readme,
        {
            "lr": pbgi.Float(1e-5, 1e-1, log=True),
            "layers": pbgi.Integer(1, 8),
            "act": pbgi.Categorical(["relu", "tanh"]),
        },
        60.0,
    ),
    Kind(
        "quickstart",
        quickstart,
        {
            "rate": pbgi.Float(1e-3, 1.0, log=True),
            "width": pbgi.Integer(8, 128),
            "optimizer": pbgi.Categorical(["adam", "sgd"]),
        },
        60.0,
    ),
    Kind("machines", machines, {"samples": pbgi.Integer(1, 40), "machine": pbgi.Categorical(["small", "large"])}, 40.0),
    Kind("steep, 1000", steep, PLANE, 1000.0),
    Kind("steep, 300", steep, PLANE, 300.0),
    Kind(
        "demo",
        demo,
        {
            "batch": pbgi.Integer(4, 256, log=True),
            "width": pbgi.Integer(16, 1024, log=True),
            "layers": pbgi.Integer(1, 3),
            "rate": pbgi.Float(1e-5, 1.0, log=True),
            "penalty": pbgi.Float(1e-8, 1.0, log=True),
        },
        60.0,
    ),
    Kind("1, 1, 100", categories, {**PLANE, "kind": pbgi.Categorical(["a", "b", "c"])}, 300.0),
    Kind("1, 10, 100", ladder, {**PLANE, "kind": pbgi.Categorical(["a", "b", "c"])}, 300.0),
)


def run(kind: Kind, seed: int) -> tuple[float, bool]:
    """The share of the budget that one run spent, and whether it tried every category."""
    rng = np.random.default_rng([seed, 1])
    result = pbgi.minimize(lambda p: kind.function(p, rng), kind.space, budget=kind.budget, seed=seed)
    chosen = {name: p.choices for name, p in kind.space.items() if isinstance(p, pbgi.Categorical)}
    tried = all({t.params[name] for t in result.trials} == set(choices) for name, choices in chosen.items())
    return result.spent / kind.budget, tried


def line(name: str, runs: np.ndarray) -> str:
    """Of runs (n, 2)."""
    spent, tried = runs.T
    over, unspent = spent > 1.0 + 1e-9, np.maximum(1.0 - spent, 0.0).mean()
    shares = f"{over.mean():>12.1%}{max(spent.max() - 1.0, 0.0):>14.1%}{unspent:>12.1%}{tried.mean():>12.1%}"
    return f"{name:<14}{len(spent):>6}{shares}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=34, help="runs of each kind")
    arguments = parser.parse_args()
    print(f"{'':<14}{'runs':>6}{'overspent':>12}{'at most by':>14}{'unspent':>12}{'all tried':>12}")
    everything = []
    with threadpool_limits(limits=1):
        for kind in KINDS:
            runs = np.array([run(kind, seed) for seed in range(arguments.seeds)])
            print(line(kind.name, runs), flush=True)
            everything.append(runs)
    print(line("all", np.concatenate(everything)))
    print(f"{'target':<14}{'':>6}{TARGET_SHARE:>12.1%}{TARGET_EXCESS:>14.1%}{TARGET_UNSPENT:>12.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
