"""Problems with conditional parameters: pbgi beside Optuna's samplers, by what they have found after 40 and 100 trials.

The problems are those of `conditional_problems.py`. Every run is a study of 100 trials without costs; "pbgi" is
`PBGISampler`, which learns from the trials which parameters depend on which, "minimize" `pbgi.minimize` with `when=`.
Runs that are done are not done again. Prints medians, and the target: ahead of every peer on every problem.

    python benchmarks/quality_conditional.py                                    all: an hour or two
    python benchmarks/quality_conditional.py --methods pbgi random --seeds 2    a look
    python benchmarks/quality_conditional.py --tables-only                      what has been run
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from conditional_problems import PROBLEMS, ConditionalProblem, suggest
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

import pbgi
from pbgi.integrations.optuna import PBGISampler

HERE = Path(__file__).parent
N_TRIALS, LOOKS = 100, (40, 100)
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "pbgi": lambda seed: PBGISampler(cost=pbgi.UniformCost(), seed=seed),
    "tpe": lambda seed: TPESampler(seed=seed),
    "tpe-group": lambda seed: TPESampler(seed=seed, multivariate=True, group=True),
    "gp": lambda seed: GPSampler(seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
}
METHODS = ("minimize", *SAMPLERS)
OURS = ("minimize", "pbgi")
Run = dict[str, Any]
Cell = dict[str, Any]
Table = dict[str, dict[str, Cell]]


def values_of(method: str, problem: ConditionalProblem, seed: int) -> list[float]:
    """The values of the trials of one run."""
    if method == "minimize":
        stop = pbgi.MaxTrials(N_TRIALS)
        result = pbgi.minimize(problem.value, problem.space, cost=pbgi.UniformCost(), stop=stop, seed=seed)
        return [trial.value for trial in result.trials if trial.value is not None]
    study = optuna.create_study(sampler=SAMPLERS[method](seed))
    study.optimize(lambda trial: problem.value(suggest(trial, problem.space)), n_trials=N_TRIALS)
    return [trial.values[0] for trial in study.trials]


def run_all(methods: list[str], problems: list[str], n_seeds: int, raw: Path) -> None:
    """Make the runs that are missing, seed by seed, and add a line for each."""
    raw.parent.mkdir(parents=True, exist_ok=True)
    done = {(run["method"], run["problem"], run["seed"]) for run in runs_in(raw)}
    for seed in range(n_seeds):
        for name in problems:
            for method in methods:
                if (method, name, seed) not in done:
                    best = np.minimum.accumulate(values_of(method, PROBLEMS[name], seed))
                    run = {"method": method, "problem": name, "seed": seed, "best": [float(best[n - 1]) for n in LOOKS]}
                    with raw.open("a") as file:
                        file.write(json.dumps(run) + "\n")


def runs_in(raw: Path) -> list[Run]:
    """What has been run."""
    return [json.loads(line) for line in raw.read_text().splitlines()] if raw.exists() else []


def medians(runs: list[Run]) -> Table:
    """By problem and method the number of runs and the medians of their best values."""
    table: Table = {}
    for name in PROBLEMS:
        for method in METHODS:
            best = [run["best"] for run in runs if (run["problem"], run["method"]) == (name, method)]
            if best:
                found = np.median(np.array(best, dtype=float), axis=0).tolist()
                table.setdefault(name, {})[method] = {"runs": len(best), "medians": found}
    return table


def lines(table: Table) -> list[str]:
    """A table in Markdown for each look."""
    printed: list[str] = []
    for i, look in enumerate(LOOKS):
        printed += ["", f"Median best value after {look} trials", "", f"| problem | {' | '.join(METHODS)} |"]
        printed += ["|---" * (1 + len(METHODS)) + "|"]
        for name, row in table.items():
            found = found_at(row, i)
            cells = [f"{found[method]:.3g}" if method in found else "" for method in METHODS]
            printed.append(f"| {name} | {' | '.join(cells)} |")
    return printed


def target_lines(table: Table) -> list[str]:
    """Whether ours are ahead of the best peer."""
    printed: list[str] = []
    for i, look in enumerate(LOOKS):
        for name, row in table.items():
            found = found_at(row, i)
            peers = {method: value for method, value in found.items() if method not in OURS}
            for ours in [method for method in OURS if method in found and peers]:
                best = min(peers, key=lambda method: peers[method])
                ahead = found[ours] < peers[best]
                verdict = "ahead of" if ahead else "level with" if found[ours] == peers[best] else "behind"
                printed.append(f"{look} trials, {name}: {ours} {found[ours]:.4g} {verdict} {best} {peers[best]:.4g}")
    return printed


def found_at(row: dict[str, Cell], look: int) -> dict[str, float]:
    """The median of each method."""
    return {method: float(np.array(cell["medians"])[look]) for method, cell in row.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--tables-only", action="store_true", help="run nothing")
    parser.add_argument("--raw", type=Path, default=HERE / "results/raw/conditional.jsonl", help="where runs are kept")
    parser.add_argument("--json", type=Path, default=HERE / "results/conditional.json", help="where the summary goes")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    if not arguments.tables_only:
        run_all(arguments.methods, arguments.problems, arguments.seeds, arguments.raw)
    table = medians(runs_in(arguments.raw))
    print(*lines(table), "\nTarget\n", *target_lines(table), sep="\n")
    arguments.json.write_text(json.dumps(table, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
