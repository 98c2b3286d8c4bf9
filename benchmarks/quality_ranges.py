"""Ranges that depend on other parameters: `PBGISampler`, which chooses shares of them, beside Optuna's samplers.

Two programs as people write them, whose best value is 0: the leaves of a tree of some depth, and both ends of an
interval. Every run is a study of 25 trials without costs. Prints medians of the best values, and how long it took.

    python benchmarks/quality_ranges.py              16 seeds, a few minutes
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median

import optuna
from optuna.samplers import BaseSampler
from quality_conditional import SAMPLERS

N_TRIALS = 25


def leaves(trial: optuna.Trial) -> float:
    """Best with 20 leaves at a depth of 5."""
    depth = trial.suggest_int("depth", 2, 8)
    return (depth - 5) ** 2 / 9 + (trial.suggest_int("leaves", 2, 2**depth) - 20) ** 2 / 400


def interval(trial: optuna.Trial) -> float:
    """Best from 2 to 7."""
    low = trial.suggest_float("low", 0.0, 5.0)
    return (low - 2) ** 2 + (trial.suggest_float("high", low, 10.0) - 7) ** 2


def best_of(problem: Callable[[optuna.Trial], float], sampler: BaseSampler) -> float:
    """The best value of one run."""
    study = optuna.create_study(sampler=sampler)
    study.optimize(problem, n_trials=N_TRIALS)
    return study.best_value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    seeds = range(parser.parse_args().seeds)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    print("| problem | " + " | ".join(SAMPLERS) + " |", "|---" * (1 + len(SAMPLERS)) + "|", sep="\n")
    for problem in (leaves, interval):
        began = time.perf_counter()
        found = [median(best_of(problem, make(seed)) for seed in seeds) for make in SAMPLERS.values()]
        print(f"| {problem.__name__} | " + " | ".join(f"{value:.2g}" for value in found) + " |", flush=True)
        print(f"{problem.__name__}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
