"""Conditions on outcomes: how many evaluations until a feasible point is within 1 % of the optimum, beside two peers.

Eight problems of the literature (`constrained_problems.py`), with the settings that each package gives by default; of
pbgi also with six starting points, and with a smaller bound for the noise, which are no default. A run ends when it has
reached that, or after 60 evaluations, which then count as more. Runs are kept in a file of results, so that a second
call makes only those that are missing.

    python benchmarks/quality_constraints.py                             384 runs, several hours, most of them of Ax
    python benchmarks/quality_constraints.py --contestants pbgi          128 runs, half an hour
    python benchmarks/quality_constraints.py --table                     the table of what is there
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from constrained_problems import PROBLEMS, Problem
from threadpoolctl import threadpool_limits

import pbgi

MOST = 60
CLOSE = 0.01
SEEDS = 16
RESULTS = Path(__file__).parent / "results" / "constraints.jsonl"

Suggestions = Iterator[tuple[Mapping[str, Any], Callable[[float, Mapping[str, float]], Any]]]


def by_pbgi(problem: Problem, seed: int, **settings: Any) -> Suggestions:
    """The default policy, told the conditions."""
    conditions = {name: pbgi.AtMost(0.0) for name in problem.names}
    optimizer = pbgi.Optimizer(problem.space, constraints=conditions, seed=seed, **settings)
    while True:
        trial = optimizer.ask()

        def tell(value: float, outcomes: Mapping[str, float], trial: pbgi.Trial = trial) -> None:
            optimizer.tell(trial, value, constraints=outcomes)

        yield trial.params, tell


def by_optuna(problem: Problem, seed: int) -> Suggestions:
    """Optuna's `GPSampler` with `constraints_func`."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.GPSampler(seed=seed, constraints_func=lambda trial: trial.user_attrs["outcomes"])
    study = optuna.create_study(sampler=sampler)
    space: dict[str, Any] = {
        name: optuna.distributions.FloatDistribution(p.low, p.high) for name, p in problem.space.items()
    }
    while True:
        trial = study.ask(space)

        def tell(value: float, outcomes: Mapping[str, float], trial: Any = trial) -> None:
            trial.set_user_attr("outcomes", list(outcomes.values()))
            study.tell(trial, value)

        yield dict(trial.params), tell


def by_ax(problem: Problem, seed: int) -> Suggestions:
    """Ax's `Client` with outcome constraints and the generation strategy that it chooses."""
    import logging

    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    logging.getLogger("ax").setLevel(logging.ERROR)
    client = Client(random_seed=seed)
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name=name, parameter_type="float", bounds=(p.low, p.high))
            for name, p in problem.space.items()
        ]
    )
    client.configure_optimization(objective="-value", outcome_constraints=[f"{name} <= 0" for name in problem.names])
    while True:
        ((index, params),) = client.get_next_trials(max_trials=1).items()

        def tell(value: float, outcomes: Mapping[str, float], index: int = index) -> None:
            client.complete_trial(index, raw_data={"value": value, **outcomes})

        yield params, tell


DEFAULTS: dict[str, Callable[[Problem, int], Suggestions]] = {"pbgi": by_pbgi, "optuna": by_optuna, "ax": by_ax}
CONTESTANTS = DEFAULTS | {
    "pbgi-six": partial(by_pbgi, n_startup_trials=6),
    "pbgi-noise": partial(by_pbgi, model=pbgi.GPConfig(noise_bounds=(1e-9, 10.0))),
}


def run(contestant: str, name: str, seed: int) -> dict[str, Any]:
    """One run: after how many evaluations it was there, None for more than `MOST`, and the best value by then."""
    problem, best, began = PROBLEMS[name], None, time.perf_counter()
    limit, n_first = problem.optimum + CLOSE * abs(problem.optimum), None
    for n, (params, tell) in enumerate(CONTESTANTS[contestant](problem, seed), start=1):
        value, outcomes = problem.evaluate(params)
        if max(outcomes.values()) <= 0.0:
            n_first = n if n_first is None else n_first
            best = value if best is None else min(best, value)
        reached = best is not None and best <= limit
        if reached or n == MOST:
            break
        tell(value, outcomes)
    seconds = round((time.perf_counter() - began) / n, 3)
    done = {"contestant": contestant, "problem": name, "seed": seed, "evaluations": n if reached else None}
    return done | {"first_feasible": n_first, "best": best, "seconds_each": seconds}


def table(records: list[dict[str, Any]]) -> str:
    """Median evaluations by problem and contestant, with the quartiles, and how many runs got there."""
    lines = ["| problem | " + " | ".join(CONTESTANTS) + " |", "|---|" + "---|" * len(CONTESTANTS)]
    for name in PROBLEMS:
        cells = []
        for contestant in CONTESTANTS:
            own = [
                r["evaluations"] or MOST + 1 for r in records if (r["contestant"], r["problem"]) == (contestant, name)
            ]
            cells.append(_cell(own) if own else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(counts: list[int]) -> str:
    middle = median(counts)
    shown = f"> {MOST}" if middle > MOST else f"{middle:g}"
    return f"{shown} ({sum(count <= MOST for count in counts)} of {len(counts)})"


def read(path: Path) -> list[dict[str, Any]]:
    """The runs in a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: list[str]) -> int:
    """Make what is missing, and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contestants", nargs="*", default=list(DEFAULTS), choices=list(CONTESTANTS))
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    records = read(options.results)
    done = {(r["contestant"], r["problem"], r["seed"]) for r in records}
    wanted = [(c, p, s) for s in range(options.seeds) for p in options.problems for c in options.contestants]
    with threadpool_limits(limits=1):
        for job in [] if options.table else [job for job in wanted if job not in done]:
            records.append(run(*job))
            with options.results.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
    print(table(records))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
