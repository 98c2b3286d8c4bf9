"""Pruned trials: what they report, as an observation, beside their being failures and their saying nothing.

Two families of learning curves in two parameters, with costs in epochs and Optuna's `MedianPruner` or
`SuccessiveHalvingPruner`: `parallel` curves fall at one rate, `crossing` ones at rates that depend on a parameter, so
that what is good early is not what is good in the end. Both with noise. Regret of the best completed trial at the end
of the budget, medians over seeds; the smaller the better.

    python benchmarks/quality_pruned.py               192 runs, several minutes
    python benchmarks/quality_pruned.py --seeds 4     a quick try
"""

import argparse
import math
import sys
from collections.abc import Callable
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import optuna
from threadpoolctl import threadpool_limits

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler
from pbgi.study import engine
from pbgi.study.pruned import estimated_values

EPOCHS, TRIALS = 27, 20  # a budget of so many whole trials
NOISE = 0.003
Curve = Callable[[float, float, int], float]


def final(x: float, y: float) -> float:
    """What a whole trial gives, without noise; 0 at best."""
    return (x - 0.7) ** 2 + 2 * (y - 0.3) ** 2 + 0.05 * (1 - math.cos(9 * (x - 0.7)))


def parallel(x: float, y: float, epoch: int) -> float:
    return final(x, y) + math.exp(-epoch / 6)


def crossing(x: float, y: float, epoch: int) -> float:
    return final(x, y) + (0.5 + x) * math.exp(-epoch / (2 + 8 * x))


CURVES: dict[str, Curve] = {"parallel": parallel, "crossing": crossing}
PRUNERS: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "median": optuna.pruners.MedianPruner,
    "halving": optuna.pruners.SuccessiveHalvingPruner,
}


def nothing(_trials: Any, _direction: str) -> dict[int, float]:
    """Pruned trials are failures, as those without a report."""
    return {}


def last_report(trials: Any, _direction: str) -> dict[int, float]:
    """The last report, as it is."""
    pruned = (trial for trial in trials if trial.state is optuna.trial.TrialState.PRUNED)
    return {t.number: t.intermediate_values[max(t.intermediate_values)] for t in pruned if t.intermediate_values}


RULES = {"as failures": nothing, "last report": last_report, "estimate": estimated_values}


def regret(curve: Curve, pruner: optuna.pruners.BasePruner, rule: Any, seed: int) -> float:
    """Of the best completed trial, when the budget is spent."""
    rng = np.random.default_rng(seed)

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        loss = math.inf
        for epoch in range(1, EPOCHS + 1):
            loss = curve(x, y, epoch) + NOISE * rng.standard_normal()
            trial.set_user_attr("cost", float(epoch))
            trial.report(loss, epoch)
            if epoch < EPOCHS and trial.should_prune():
                raise optuna.TrialPruned
        return loss

    study = optuna.create_study(sampler=PBGISampler(budget=float(EPOCHS * TRIALS), seed=seed), pruner=pruner)
    with patch.object(engine, "estimated_values", rule):
        study.optimize(objective, callbacks=[BudgetCallback()])
    return final(**study.best_trial.params)


def main(arguments: list[str]) -> int:
    """Run all and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print("| curves | pruner | " + " | ".join(RULES) + " |\n|---|---|" + "---|" * len(RULES))
    with threadpool_limits(limits=1):
        for curves, curve in CURVES.items():
            for pruner, make in PRUNERS.items():
                cells = [
                    median(regret(curve, make(), rule, seed) for seed in range(options.seeds))
                    for rule in RULES.values()
                ]
                print(f"| {curves} | {pruner} | " + " | ".join(f"{cell:.2g}" for cell in cells) + " |", flush=True)
    print(f"pbgi {pbgi.__version__}, {options.seeds} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
