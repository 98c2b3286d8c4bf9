"""What a budget of seconds buys in scikit-learn: GittinsSearchCV beside RandomizedSearchCV and HalvingRandomSearchCV.

Gradient boosting for the breast cancer data that come with scikit-learn, scored by log loss in three-fold
cross-validation. A candidate may take a hundred times as long as another. Every search gets the same budget for fitting
and scoring, and what ends after it is spent does not count. A quarter of the data, another one for each seed, is held
out: how the best candidate so far does there is told too, and costs nothing.

RandomizedSearchCV knows no budget: it is called for one candidate at a time until the seconds are spent. Nor does
HalvingRandomSearchCV, which is called again and again: nine candidates on a ninth of the data, three on a third, one
on all (by default it would begin with fifteen samples, too few to fold). What it recommends counts when it has ended.

Seconds are those that scikit-learn measures, in one thread. They are processor seconds: while this runs, `time.time` is
the clock of the process, so that other programs on the machine make no difference. Searches take turns seed by seed.

    python examples/compare_sklearn.py --out compare-sklearn      five minutes of fitting, and some for choosing

Run again, it goes on where it was; when all is there, it only tells and draws.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

import pbgi

try:
    import matplotlib as mpl
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (makes the next import work)
    from sklearn.metrics import log_loss
    from sklearn.model_selection import (
        HalvingRandomSearchCV,
        RandomizedSearchCV,
        StratifiedKFold,
        train_test_split,
    )
except ImportError:
    sys.exit("The comparison needs scikit-learn and matplotlib: pip install scikit-learn matplotlib")

from pbgi.integrations.sklearn import GittinsSearchCV
from pbgi.report import palette

mpl.use("Agg")
from matplotlib import pyplot as plt

SPACE = {
    "max_iter": pbgi.Integer(10, 1000, log=True),
    "learning_rate": pbgi.Float(0.01, 1.0, log=True),
    "max_leaf_nodes": pbgi.Integer(2, 64, log=True),
    "min_samples_leaf": pbgi.Integer(1, 100, log=True),
    "l2_regularization": pbgi.Float(1e-4, 100.0, log=True),
}
COLORS = {
    "GittinsSearchCV": palette.BLUE,
    "RandomizedSearchCV": palette.VERMILLION,
    "HalvingRandomSearchCV": palette.GREEN,
}
SMALLEST = 47  # samples in the first round of halving: a ninth of 423
SHARES = (0.25, 0.5, 1.0)  # of the budget, in the table


class LogInteger:
    """A distribution for scikit-learn's samplers: a whole number, evenly on a logarithmic scale."""

    def __init__(self, low: int, high: int) -> None:
        self._logarithm = stats.uniform(np.log(low - 0.5), np.log((high + 0.5) / (low - 0.5)))

    def rvs(self, random_state: Any = None) -> int:
        """One draw."""
        return round(float(np.exp(self._logarithm.rvs(random_state=random_state))))


DISTRIBUTIONS = {
    name: LogInteger(p.low, p.high) if isinstance(p, pbgi.Integer) else stats.loguniform(p.low, p.high)
    for name, p in SPACE.items()
}


@dataclass(frozen=True)
class Step:
    """A recommendation: what had been spent when it was made, and its log loss in cross-validation and held out."""

    spent: float
    cv_loss: float
    held_out_loss: float
    params: dict[str, float]


class Data:
    """Three quarters to search with, on the same folds for all, and a quarter that no search sees; by seed."""

    def __init__(self, seed: int) -> None:
        X, y = load_breast_cancer(return_X_y=True)
        self.X, self._X_held_out, self.y, self._y_held_out = train_test_split(
            X, y, train_size=9 * SMALLEST, stratify=y, random_state=seed
        )
        folds = StratifiedKFold(3, shuffle=True, random_state=seed)
        self.model = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        self.settings = {"scoring": "neg_log_loss", "cv": folds, "refit": False}

    def held_out_loss(self, params: dict[str, float]) -> float:
        """After training on all that searches see."""
        model = self.model.set_params(**params).fit(self.X, self.y)
        return float(log_loss(self._y_held_out, model.predict_proba(self._X_held_out)))


def seconds_of(results: dict[str, Any], n_folds: int) -> list[float]:
    return ((results["mean_fit_time"] + results["mean_score_time"]) * n_folds).tolist()


# The three searches: each yields (seconds, loss, params) of what it evaluates, in order ------------------------------


def gittins(data: Data, budget: float, seed: int) -> Iterator[tuple[float, float, dict[str, float]]]:
    search = GittinsSearchCV(data.model, SPACE, budget=budget, random_state=seed, **data.settings)
    results = search.fit(data.X, data.y).cv_results_
    yield from zip(seconds_of(results, 3), (-results["mean_test_score"]).tolist(), results["params"], strict=True)


def randomized(data: Data, _budget: float, seed: int) -> Iterator[tuple[float, float, dict[str, float]]]:
    state = np.random.RandomState(seed)
    while True:
        search = RandomizedSearchCV(data.model, DISTRIBUTIONS, n_iter=1, random_state=state, **data.settings)
        results = search.fit(data.X, data.y).cv_results_
        yield from zip(seconds_of(results, 3), (-results["mean_test_score"]).tolist(), results["params"], strict=True)


def halving(data: Data, _budget: float, seed: int) -> Iterator[tuple[float, float, dict[str, float]]]:
    state = np.random.RandomState(seed)
    while True:
        search = HalvingRandomSearchCV(
            data.model, DISTRIBUTIONS, factor=3, min_resources=SMALLEST, random_state=state, **data.settings
        ).fit(data.X, data.y)
        yield sum(seconds_of(search.cv_results_, 3)), -search.best_score_, search.best_params_


METHODS = {"GittinsSearchCV": gittins, "RandomizedSearchCV": randomized, "HalvingRandomSearchCV": halving}


def run(name: str, data: Data, budget: float, seed: int) -> dict[str, Any]:
    """One search: its recommendations within the budget, and what it evaluated."""
    spent, best, steps, evaluated, begun = 0.0, np.inf, [], [], time.perf_counter()
    for seconds, loss, params in METHODS[name](data, budget, seed):
        spent += seconds
        if spent > budget:
            break
        evaluated.append({"seconds": seconds, "loss": loss, "params": params})
        if loss < best:
            best = loss
            steps.append(Step(spent, loss, data.held_out_loss(params), params))
    took = time.perf_counter() - begun
    return {"method": name, "seed": seed, "took": took, "steps": [asdict(s) for s in steps], "evaluated": evaluated}


def compare(budget: float, n_seeds: int, path: Path) -> list[dict[str, Any]]:
    """All runs; those that are in the file already are not run again."""
    saved = json.loads(path.read_text()) if path.exists() else {"budget": budget, "runs": []}
    if saved["budget"] != budget:
        sys.exit(f"--budget must be that of {path}, {saved['budget']:g}; got {budget:g}; take another --out")
    done = {(run["seed"], run["method"]) for run in saved["runs"]}
    with threadpool_limits(1), mock.patch("time.time", time.process_time):
        for seed, name in product(range(n_seeds), METHODS):
            if (seed, name) not in done:
                found = run(name, Data(seed), budget, seed)
                saved["runs"].append(found)
                path.write_text(json.dumps(saved, indent=1))
                loss = f"log loss {at(found, 'cv_loss', budget):.4f}, {found['took']:.0f} s on the clock"
                print(f"seed {seed}, {name}: {loss}", file=sys.stderr, flush=True)
    return [run for run in saved["runs"] if run["seed"] < n_seeds]


# What came out -------------------------------------------------------------------------------------------------------


def at(run: dict[str, Any], key: str, seconds: float) -> float:
    """What the recommendation at that time was worth; infinite before the first."""
    return next((step[key] for step in reversed(run["steps"]) if step["spent"] <= seconds), np.inf)


def quartiles(runs: list[dict[str, Any]], key: str, seconds: float) -> np.ndarray:
    """Lower quartile, median and upper quartile; between two ranks their mean, which may be infinite."""
    ordered, quarters = np.sort([at(run, key, seconds) for run in runs]), len(runs) * np.array([1, 2, 3])
    return (ordered[-(-quarters // 4) - 1] + ordered[quarters // 4]) / 2.0


def tell(runs: list[dict[str, Any]], budget: float) -> None:
    times = "".join(f" {f'after {share * budget:.3g} s':25s} |" for share in SHARES)
    print(f"| {'median log loss (quartiles)':39s} |{times}")
    print(f"|{'-' * 41}|" + f"{'-' * 27}|" * len(SHARES))
    for key, title in (("cv_loss", "cross-validation"), ("held_out_loss", "held out")):
        for name in METHODS:
            own = [run for run in runs if run["method"] == name]
            cells = (quartiles(own, key, share * budget) for share in SHARES)
            shown = (f"{mid:.4f} ({low:.4f} to {high:.4f})".replace("inf", "none") for low, mid, high in cells)
            print(f"| {title + ', ' + name:39s} |" + "".join(f" {cell:25s} |" for cell in shown))
    for name in METHODS:
        counts = [len(run["evaluated"]) for run in runs if run["method"] == name]
        print(f"{name}: {np.median(counts):g} candidates on all data (median)")
    for other in list(METHODS)[1:]:
        print(f"GittinsSearchCV is better than {other}: {wins(runs, other, budget)}")


def wins(runs: list[dict[str, Any]], other: str, budget: float) -> str:
    """Seed by seed, since each has other data."""
    found = {(run["method"], run["seed"]): run for run in runs}
    seeds = sorted({run["seed"] for run in runs})
    counts = {
        key: sum(at(found["GittinsSearchCV", s], key, budget) < at(found[other, s], key, budget) for s in seeds)
        for key in ("cv_loss", "held_out_loss")
    }
    n = len(seeds)
    return f"{counts['cv_loss']} of {n} seeds in cross-validation, {counts['held_out_loss']} of {n} held out"


def draw(runs: list[dict[str, Any]], budget: float, path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    seconds = np.linspace(0.0, budget, 201)
    titles = {"cv_loss": "Three-fold cross-validation", "held_out_loss": "On the quarter that was held out"}
    for axes, (key, title) in zip(panels, titles.items(), strict=True):
        for name, color in COLORS.items():
            own = [run for run in runs if run["method"] == name]
            low, mid, high = np.array([quartiles(own, key, second) for second in seconds]).T
            axes.fill_between(seconds, low, high, color=color, alpha=0.15, lw=0, step="post")
            axes.step(seconds, mid, color=color, lw=2.2, where="post", label=name)
        axes.set(xlabel="processor seconds of fitting and scoring", ylabel="log loss (nats)", title=title)
        axes.set(xlim=(0.0, budget), ylim=limits(runs, key, budget))
        axes.grid(visible=True, color=palette.SOFT_GRID, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, loc="upper right")
    n_seeds = len({run["seed"] for run in runs})
    figure.suptitle(f"Gradient boosting, breast cancer data: best so far, median and quartiles of {n_seeds} seeds")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def limits(runs: list[dict[str, Any]], key: str, budget: float) -> tuple[float, float]:
    """From the best to what most searches are below after a tenth of the budget."""
    losses = [at(run, key, share * budget) for run in runs for share in (0.1, 0.25, 0.5, 1.0)]
    low, high = min(losses), np.quantile(losses, 0.9, method="inverted_cdf")
    high = high if np.isfinite(high) else max(loss for loss in losses if np.isfinite(loss))
    return low - 0.05 * (high - low), high


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare three searches of scikit-learn at equal seconds.")
    parser.add_argument("--budget", type=float, default=10.0, help="processor seconds for each search (10)")
    parser.add_argument("--seeds", type=int, default=10, help="how many times each (10)")
    parser.add_argument("--out", type=Path, default=Path("compare-sklearn"), help="folder for the JSON and the PNG")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    runs = compare(args.budget, args.seeds, args.out / "compare_sklearn.json")
    tell(runs, args.budget)
    draw(runs, args.budget, args.out / "compare_sklearn.png")


if __name__ == "__main__":
    main()
