"""Tune a classifier within so many seconds of training.

A random forest for the handwritten digits that come with scikit-learn. More trees, deeper trees and more features to
look at make a trial slower. Nothing is said about that beforehand: the cost of a trial is its measured time, learned
along the way.

    python examples/tune_sklearn.py --budget 20
"""

import argparse
import sys
from itertools import pairwise

import pbgi

try:
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score
except ImportError:
    sys.exit("This example needs scikit-learn: pip install 'pbgi[sklearn]' or pip install scikit-learn")

SPACE = {
    "n_estimators": pbgi.Integer(2, 400, log=True),
    "max_depth": pbgi.Integer(1, 20),
    "max_features": pbgi.Float(0.02, 1.0, log=True),
    "min_samples_leaf": pbgi.Integer(1, 20, log=True),
}


def accuracy(params: dict, data: tuple) -> float:
    model = RandomForestClassifier(**params, random_state=0)
    return float(cross_val_score(model, *data, cv=3).mean())


def show(optimizer: pbgi.Optimizer, trial: pbgi.Trial) -> None:
    params, guess = trial.params, trial.predicted_cost
    predicted = "nothing known" if guess is None else f"{guess:.2f} s expected"
    size = f"{params['n_estimators']:3d} trees of depth {params['max_depth']:2d}"
    print(
        f"  {size}: accuracy {trial.value:.4f} in {trial.cost:.2f} s ({predicted}); "
        f"best {optimizer.best.value:.4f}, {optimizer.spent:.1f} s of {optimizer.budget:g} s spent"
    )


def where_it_went(result: pbgi.Result) -> None:
    """What was spent on what: the trials in three groups by their cost."""
    costs = [trial.charged for trial in result.trials]
    edges = [0.0, *(max(costs) * share for share in (0.1, 0.5)), float("inf")]
    print("\nWhat the seconds went into:")
    names = ("cheap, up to a tenth of the dearest", "middling", "dear, more than half of the dearest")
    for name, (low, high) in zip(names, pairwise(edges), strict=True):
        group = [trial for trial in result.trials if low < trial.charged <= high]
        if group:
            spent, best = sum(trial.charged for trial in group), max(trial.value for trial in group)
            print(f"  {len(group):2d} trials, {spent:5.1f} s, best accuracy {best:.4f}: {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune a random forest on the digits within a budget of seconds.")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of training and validation")
    parser.add_argument("--samples", type=int, default=1797, help="how many of the digits to use")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    data = X[: args.samples], y[: args.samples]

    print(f"Random forests on {len(data[1])} digits, {args.budget:g} seconds:")
    result = pbgi.minimize(
        lambda params: accuracy(params, data),
        SPACE,
        direction="maximize",
        budget=args.budget,
        callbacks=[show],
        seed=args.seed,
    )
    if not result.success:
        sys.exit(f"nothing was learned: {result.message}")
    where_it_went(result)
    print(f"\nStopped: {result.message}.")
    print(f"{result.nfev} trials took {result.spent:.1f} s. Best accuracy {result.fun:.4f} with")
    for name, value in result.params.items():
        print(f"  {name} = {value:.4g}" if isinstance(value, float) else f"  {name} = {value}")


if __name__ == "__main__":
    main()
