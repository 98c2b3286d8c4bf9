"""What stages save in scikit-learn: GittinsSearchCV(resource=...) beside itself without, and HalvingRandomSearchCV.

Two problems: a support vector machine on digits, with samples as resource, and gradient boosting on the breast cancer
data, with rounds (`max_iter`). All searches get the same processor seconds of fitting and scoring in one thread, and
see the same three folds of three quarters of the data, other ones for each seed; a quarter is held out. Halving begins
where our stages do, with nine candidates, and is called again until the seconds are spent; only whole calls count.

    python benchmarks/quality_sklearn_stages.py --seeds 8 --out stages.jsonl    six minutes of processor time

Run again, it goes on where it was; when all is there, it only prints the tables.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (makes the next import work)
from sklearn.metrics import get_scorer
from sklearn.model_selection import HalvingRandomSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import pbgi
from pbgi.integrations.sklearn import GittinsSearchCV

N_FOLDS = 3


@dataclass(frozen=True)
class Problem:
    """What is tuned, and what a search may spend."""

    load: Callable[..., Any]
    model: Any
    space: dict[str, pbgi.Float]
    scoring: str
    resource: str
    budget: float


BOOSTING = {
    "learning_rate": pbgi.Float(0.01, 1.0, log=True),
    "l2_regularization": pbgi.Float(1e-4, 100.0, log=True),
    "max_features": pbgi.Float(0.1, 1.0),
}
PROBLEMS = {
    "digits": Problem(
        load_digits,
        SVC(),
        {"C": pbgi.Float(1e-2, 1e3, log=True), "gamma": pbgi.Float(1e-6, 1e-1, log=True)},
        "accuracy",
        "n_samples",
        4.0,
    ),
    "breast cancer": Problem(
        load_breast_cancer,
        HistGradientBoostingClassifier(max_iter=270, max_leaf_nodes=8, early_stopping=False, random_state=0),
        BOOSTING,
        "neg_log_loss",
        "max_iter",
        9.0,
    ),
}


class Data:
    """Three quarters to search with, on the same folds for all, and a quarter that no search sees."""

    def __init__(self, problem: Problem, seed: int) -> None:
        X, y = problem.load(return_X_y=True)
        self.X, self.X_held, self.y, self.y_held = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
        self.folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)


def seconds_of(results: dict[str, Any]) -> float:
    """What scikit-learn measured, over all rows."""
    return float(np.sum(results["mean_fit_time"] + results["mean_score_time"]) * N_FOLDS)


# A search gives its best score in cross-validation and the parameters, or nothing -----------------------------------


def gittins(problem: Problem, data: Data, budget: float, seed: int, resource: str | None) -> tuple[float, Any] | None:
    search = GittinsSearchCV(
        problem.model,
        problem.space,
        budget=budget,
        scoring=problem.scoring,
        cv=data.folds,
        refit=False,
        resource=resource,
        random_state=seed,
    ).fit(data.X, data.y)
    return search.best_score_, search.best_params_


def whole(problem: Problem, data: Data, budget: float, seed: int) -> tuple[float, Any] | None:
    return gittins(problem, data, budget, seed, None)


def stages(problem: Problem, data: Data, budget: float, seed: int) -> tuple[float, Any] | None:
    return gittins(problem, data, budget, seed, problem.resource)


def halving(problem: Problem, data: Data, budget: float, seed: int) -> tuple[float, Any] | None:
    """Nine candidates with a ninth, three with a third, one with all; again until the seconds are spent."""
    most = len(data.X) if problem.resource == "n_samples" else problem.model.get_params()[problem.resource]
    spent, best, state = 0.0, None, np.random.RandomState(seed)
    distributions = {n: (stats.loguniform if p.log else _uniform)(p.low, p.high) for n, p in problem.space.items()}
    while True:
        search = HalvingRandomSearchCV(
            problem.model,
            distributions,
            n_candidates=9,
            factor=3,
            resource=problem.resource,
            max_resources=most,
            min_resources=most // 9,
            scoring=problem.scoring,
            cv=data.folds,
            refit=False,
            random_state=state,
            return_train_score=False,
        ).fit(data.X, data.y)
        spent += seconds_of(search.cv_results_)
        if spent > budget:
            return best
        if best is None or search.best_score_ > best[0]:
            best = search.best_score_, search.best_params_


def _uniform(low: float, high: float) -> Any:
    return stats.uniform(low, high - low)


METHODS = {"whole candidates": whole, "with `resource`": stages, "HalvingRandomSearchCV": halving}


def run(name: str, seed: int, method: str) -> dict[str, Any]:
    """One search; losses, which are lower for better scores; None if it has recommended nothing."""
    problem = PROBLEMS[name]
    data = Data(problem, seed)
    found = METHODS[method](problem, data, problem.budget, seed)
    losses: dict[str, float | None] = {"cv": None, "held": None}
    if found is not None:
        model = problem.model.set_params(**found[1]).fit(data.X, data.y)
        held = get_scorer(problem.scoring)(model, data.X_held, data.y_held)
        best = 1.0 if problem.scoring == "accuracy" else 0.0
        losses = {"cv": float(best - found[0]), "held": float(best - held)}
    return {"problem": name, "seed": seed, "method": method, **losses}


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["problem"], line["seed"], line["method"]


def run_all(n_seeds: int, path: Path) -> list[dict[str, Any]]:
    """All runs; a line of the file for each, and none twice."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {key(line) for line in lines}
    with threadpool_limits(1), mock.patch("time.time", time.process_time), path.open("a") as file:
        for seed, name, method in product(range(n_seeds), PROBLEMS, METHODS):
            if (name, seed, method) not in done:
                lines.append(run(name, seed, method))
                print(json.dumps(lines[-1]), file=file, flush=True)
    return lines


def tell(lines: list[dict[str, Any]], file: Any = sys.stdout) -> None:
    """Medians of losses, and on how many seeds stages are better; seeds with a run of each kind."""
    found = {key(line) for line in lines}
    seeds = [n for n in {line["seed"] for line in lines} if {(p, n, m) for p, m in product(PROBLEMS, METHODS)} <= found]
    lines = [line for line in lines if line["seed"] in seeds]
    print("| data set | " + " | ".join(METHODS) + " | `resource` is better than both |", file=file)
    print("|---|" + "---|" * (len(METHODS) + 1), file=file)
    for name, kind in product(PROBLEMS, ("cv", "held")):
        of = {m: _losses(lines, name, m, kind) for m in METHODS}
        ours = of["with `resource`"]
        others = [np.minimum(*pair) for pair in zip(of["whole candidates"], of["HalvingRandomSearchCV"], strict=True)]
        cells = " | ".join(f"{np.median(losses):.4g}".replace("inf", "none") for losses in of.values())
        label = f"{name}, {PROBLEMS[name].budget:g} s, " + {"cv": "cross-validation", "held": "held out"}[kind]
        wins = sum(a < b for a, b in zip(ours, others, strict=True))
        print(f"| {label} | {cells} | {wins} of {len(ours)} |", file=file)


def _losses(lines: list[dict[str, Any]], name: str, method: str, kind: str) -> list[float]:
    """By seed; infinite where nothing was recommended."""
    found = {line["seed"]: line[kind] for line in lines if (line["problem"], line["method"]) == (name, method)}
    return [np.inf if found[seed] is None else found[seed] for seed in sorted(found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="how many times each (8)")
    parser.add_argument("--out", type=Path, default=Path("sklearn-stages.jsonl"), help="a line per run")
    args = parser.parse_args()
    tell(run_all(args.seeds, args.out))


if __name__ == "__main__":
    main()
