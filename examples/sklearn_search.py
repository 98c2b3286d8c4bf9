"""Tune a scikit-learn pipeline within so many seconds of fitting, by GittinsSearchCV.

A random forest for the handwritten digits that come with scikit-learn, with or without a projection before it. More
trees, deeper trees and more features to look at make a candidate slower. Nothing is said about that beforehand: the
cost of a candidate is the time that scikit-learn measures, learned along the way.

    python examples/sklearn_search.py --budget 20
"""

import argparse
import sys

import pbgi

try:
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import Pipeline
except ImportError:
    sys.exit("This example needs scikit-learn: pip install scikit-learn")

from pbgi.integrations.sklearn import GittinsSearchCV

PIPELINE = Pipeline([("project", "passthrough"), ("forest", RandomForestClassifier(random_state=0))])
SPACE = {
    "project": ["passthrough", PCA(10, random_state=0), PCA(30, random_state=0)],
    "forest__n_estimators": pbgi.Integer(5, 400, log=True),
    "forest__max_depth": pbgi.Integer(2, 20),
    "forest__max_features": pbgi.Float(0.05, 1.0, log=True),
    "forest__criterion": ["gini", "entropy"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune a random forest on the digits within a budget of seconds.")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of fitting and scoring, all folds added up")
    parser.add_argument("--samples", type=int, default=1797, help="how many of the digits to use")
    parser.add_argument("--jobs", type=int, default=None, help="folds at the same time")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X, X_held_out, y, y_held_out = train_test_split(X[: args.samples], y[: args.samples], random_state=0)

    search = GittinsSearchCV(PIPELINE, SPACE, budget=args.budget, cv=3, n_jobs=args.jobs, random_state=args.seed)
    search.fit(X, y)

    print("The five best:")
    results, costs = search.cv_results_, [trial.charged for trial in search.optimizer_.trials]
    for row in sorted(range(len(costs)), key=lambda row: results["rank_test_score"][row])[:5]:
        params = results["params"][row]
        size = f"{params['forest__n_estimators']:3d} trees of depth {params['forest__max_depth']:2d}"
        score = f"accuracy {results['mean_test_score'][row]:.4f}"
        print(f"  {score} in {costs[row]:5.2f} s, candidate {row:2d}: {size}, {params['project']}")
    print(f"Stopped: {search.stop_reason_}.")
    print(f"{len(costs)} candidates took {search.spent_:.1f} s, from {min(costs):.2f} s to {max(costs):.2f} s each.")
    print(f"Best accuracy {search.best_score_:.4f}, and {search.score(X_held_out, y_held_out):.4f} on digits held out.")


if __name__ == "__main__":
    main()
