"""What it saves to let trials stop early: the best loss by what was spent, beside whole trials and other pruners.

Problems, fixed before anything was tuned to them:

    settling, crossing, overfitting, plateau: the families of `curve_families.py`
    the tables of `curve_tables.py`: the demo's network by epochs, gradient boosting by trees

Methods: `whole`, pbgi as it comes, where every trial runs to its end; `stages`, the same with steps=...; `resume`, the
same where stopped trials can go on; Optuna's TPE with its MedianPruner and its HyperbandPruner, and with ours
(`tpe-gittins`); our sampler with our pruner in a study (`study`); `asha` and `halving`, Ray Tune's and scikit-learn's
(`early_stopping_peers.py`). All pay the same costs for the same steps, a stopped
trial those it took; only the last value of a trial that came to its end counts as its loss. A full budget is what 20
typical trials cost.

    python benchmarks/quality_early_stopping.py --seeds 16              appends to results/early_stopping.jsonl
    python benchmarks/quality_early_stopping.py --table                 what is in there
"""

import argparse
import json
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from course import SHARES, Course
from curve_families import FAMILIES, Problem
from curve_tables import RAW, TABLES, table
from early_stopping_peers import asha, halving
from threadpoolctl import threadpool_limits

import pbgi

N_WHOLE = 20  # typical trials that a full budget pays for
LATEST = RAW.parent / "early_stopping.jsonl"


def replayed(name: str) -> Problem:
    """A recorded table: a number of each parameter's levels."""
    known = table(name)
    space = {parameter: pbgi.Integer(0, len(levels) - 1) for parameter, levels in known.levels.items()}

    def curve(point: Mapping[str, Any], _seed: int) -> tuple[np.ndarray, np.ndarray]:
        row = known.row(point)
        return known.values[row], known.seconds[row]

    return Problem(space, known.values.shape[1], curve, float(np.median(known.seconds[:, -1])))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **FAMILIES,
    **{name: partial(replayed, name) for name in TABLES},
}


# Methods -------------------------------------------------------------------------------------------------------------


def with_optimizer(problem: Problem, seed: int, course: Course, *, stages: bool, resumable: bool = False) -> None:
    """Ask, report and tell until the budget is spent."""
    steps = pbgi.Steps(problem.steps, resumable=resumable) if stages else None
    optimizer = pbgi.Optimizer(problem.space, budget=course.budget, seed=seed, steps=steps)
    while optimizer.should_stop() is None:
        trial = optimizer.ask()
        losses, costs = problem.curve(trial.params, seed)
        if not stages:
            course.paid(float(costs[-1]))
            optimizer.tell(trial, float(losses[-1]), cost=float(costs[-1]))
            course.ended(float(losses[-1]))
            continue
        begun = trial.step
        for step in range(begun + 1, problem.steps + 1):
            course.paid(float(costs[step - 1] - (costs[step - 2] if step > 1 else 0.0)))
            trial = optimizer.report(trial, step, float(losses[step - 1]), cost=float(costs[step - 1]))
            if not optimizer.should_continue(trial):
                trial = optimizer.stop(trial)
                break
        if trial.value is not None:
            course.ended(trial.value)
    course.n_trials = len(optimizer.trials)


def with_study(problem: Problem, seed: int, course: Course, sampler: Any, pruner: Any) -> None:
    """An Optuna study, until what is left of the budget is spent."""
    import optuna
    from optuna.distributions import FloatDistribution, IntDistribution

    from pbgi.integrations.optuna import BudgetCallback

    space = {
        name: IntDistribution(p.low, p.high) if isinstance(p, pbgi.Integer) else FloatDistribution(p.low, p.high)
        for name, p in problem.space.items()
    }

    def objective(trial: optuna.Trial) -> float:
        params = {name: trial._suggest(name, distribution) for name, distribution in space.items()}
        losses, costs = problem.curve(params, seed)
        for step in range(1, problem.steps + 1):
            course.paid(float(costs[step - 1] - (costs[step - 2] if step > 1 else 0.0)))
            trial.set_user_attr("cost", float(costs[step - 1]))
            if course.spent > course.budget:
                raise optuna.TrialPruned
            trial.report(float(losses[step - 1]), step)
            if step < problem.steps and trial.should_prune():
                raise optuna.TrialPruned
        course.ended(float(losses[-1]))
        return float(losses[-1])

    study = optuna.create_study(sampler=sampler(seed, course.budget, space), pruner=pruner())
    study.optimize(objective, callbacks=[BudgetCallback(course.budget)])
    course.n_trials = len(study.trials)


def in_study(sampled: str, pruned: str) -> Callable[[Problem, int, Course], None]:
    """Optuna's sampler and pruners as they come, and ours."""

    def method(problem: Problem, seed: int, course: Course) -> None:
        import optuna

        from pbgi.integrations.optuna import GittinsPruner, PBGISampler

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        pruners = {
            "median": optuna.pruners.MedianPruner,
            "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=problem.steps),
            "gittins": GittinsPruner,
        }
        samplers = {
            "tpe": lambda seed, _budget, _space: optuna.samplers.TPESampler(seed=seed),
            "pbgi": lambda seed, budget, space: PBGISampler(seed=seed, budget=budget, search_space=space),
        }
        with_study(problem, seed, course, samplers[sampled], pruners[pruned])

    return method


METHODS: dict[str, Callable[[Problem, int, Course], None]] = {
    "whole": lambda problem, seed, course: with_optimizer(problem, seed, course, stages=False),
    "stages": lambda problem, seed, course: with_optimizer(problem, seed, course, stages=True),
    "resume": lambda problem, seed, course: with_optimizer(problem, seed, course, stages=True, resumable=True),
    "tpe-median": in_study("tpe", "median"),
    "tpe-hyperband": in_study("tpe", "hyperband"),
    "tpe-gittins": in_study("tpe", "gittins"),
    "study": in_study("pbgi", "gittins"),
    "asha": asha,
    "halving": halving,
}


# Results -------------------------------------------------------------------------------------------------------------


Run = dict[str, Any]


def read(path: Path) -> dict[tuple[str, str], dict[int, Run]]:
    """Runs by problem and method, then by seed; of one that was made twice the later."""
    runs: dict[tuple[str, str], dict[int, Run]] = defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else []:
        run = json.loads(line)
        runs[run["problem"], run["method"]][run["seed"]] = run
    return runs


def show(path: Path) -> None:
    """Markdown, as it stands in docs/early-stopping.md: median losses, then how they stand to those of whole trials."""
    runs = read(path)
    problems = list(dict.fromkeys(problem for problem, _ in runs))
    methods = [method for method in METHODS if any((problem, method) in runs for problem in problems)]
    third, full = len(SHARES) // 3 - 1, len(SHARES) - 1
    print(_row(["problem", *methods]) + "\n" + "|---" * (len(methods) + 1) + "|")
    for problem in problems:
        found = [_medians(runs[problem, method], runs[problem, "whole"]) for method in methods]
        print(_row([problem, *("" if own is None else f"{own[third]:.4g}, {own[full]:.4g}" for own, _ in found)]))
    print(
        "\n" + _row(["problem", "method", "seeds", "third / whole in full", "worst / whole"]) + "\n" + "|---" * 5 + "|"
    )
    for problem in problems:
        for method in methods[1:]:
            own, other = _medians(runs[problem, method], runs[problem, "whole"])
            if own is None:
                continue
            n = len(runs[problem, method].keys() & runs[problem, "whole"].keys())
            worst = np.max((own / other)[np.isfinite(other)])
            print(_row([problem, method, str(n), f"{own[third] / other[full]:.2f}", f"{worst:.2f}"]))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _medians(mine: Mapping[int, Run], whole: Mapping[int, Run]) -> tuple[np.ndarray | None, np.ndarray]:
    """Median losses of a method and of whole trials, over the seeds that both have been run with."""
    seeds = sorted(mine.keys() & whole.keys())
    if not seeds:
        return None, np.empty(0)
    own, other = (np.median([runs[seed]["losses"] for seed in seeds], axis=0) for runs in (mine, whole))
    return own, other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--out", type=Path, default=LATEST)
    parser.add_argument("--max-seconds", type=float, default=math.inf, help="no run is begun after so many")
    parser.add_argument("--table", action="store_true", help="show what there is, and run nothing")
    args = parser.parse_args()
    if not args.table:
        run_all(args)
    show(args.out)


def run_all(args: argparse.Namespace) -> None:
    """Run what is not there yet, seed by seed."""
    begun, done = time.monotonic(), read(args.out)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(args.seeds):
        for name in args.problems:
            for method in args.methods:
                if seed in done[name, method] or time.monotonic() - begun > args.max_seconds:
                    continue
                problem, started = PROBLEMS[name](), time.process_time()
                course = Course(N_WHOLE * problem.typical)
                with threadpool_limits(1), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    METHODS[method](problem, seed, course)
                run = {
                    "problem": name,
                    "method": method,
                    "seed": seed,
                    "losses": [float(f"{x:.5g}") for x in course.losses()],
                }
                run |= {"trials": course.n_trials, "seconds": round(time.process_time() - started, 1)}
                with args.out.open("a") as file:
                    file.write(json.dumps(run) + "\n")
                print(
                    f"{name} {method} {seed}: {course.best:.4g}, {course.n_trials} trials, {run['seconds']:.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
