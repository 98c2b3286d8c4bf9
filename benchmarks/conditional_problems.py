"""Five problems whose parameters depend on each other, for `quality_conditional.py`.

Four are made up, with a smallest value of zero; they were written before the first run of any optimizer on them. In
each the branch that holds the optimum looks worse than another one to whoever tries it a few times. The fifth chooses a
scikit-learn pipeline on real data.

    classifiers     three classifiers with parameters of their own; the best one is good in a small region only
    layers          the widths of one to four layers, and a rate that all of them share
    boosting        three levels: a model, its booster, how the booster grows trees, and how far
    functions       Sphere, Branin or Hartmann-6: one, two or six parameters
    pipeline        a scaler, a classifier and its parameters on scikit-learn's digits; the share of errors
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from optuna import Trial

import pbgi

Parameters = Mapping[str, pbgi.Float | pbgi.Integer | pbgi.Categorical]
Params = Mapping[str, Any]


class ConditionalProblem(NamedTuple):
    """A space with conditions, and what is minimized on it."""

    space: Parameters
    value: Callable[[Params], float]


def suggest(trial: Trial, space: Parameters) -> dict[str, Any]:
    """The point of a trial of Optuna's, asked for as a program would that defines its space as it runs."""
    params: dict[str, Any] = {}
    for name, p in space.items():
        if all(parent in params and params[parent] in values for parent, values in (p.when or {}).items()):
            if isinstance(p, pbgi.Categorical):
                params[name] = trial.suggest_categorical(name, p.choices)
            elif isinstance(p, pbgi.Integer):
                params[name] = trial.suggest_int(name, p.low, p.high, log=p.log, step=p.step)
            else:
                params[name] = trial.suggest_float(name, p.low, p.high, log=p.log)
    return params


# Made up -------------------------------------------------------------------------------------------------------------

CLASSIFIERS: Parameters = {
    "model": pbgi.Categorical(["forest", "linear", "svm"]),
    "C": pbgi.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "gamma": pbgi.Float(1e-4, 1e1, log=True, when={"model": "svm"}),
    "depth": pbgi.Integer(1, 32, when={"model": "forest"}),
    "features": pbgi.Float(0.1, 1.0, when={"model": "forest"}),
    "leaf": pbgi.Integer(1, 20, log=True, when={"model": "forest"}),
    "alpha": pbgi.Float(1e-6, 10.0, log=True, when={"model": "linear"}),
}


def classifiers(p: Params) -> float:
    """The support vector machine is best, in a tenth of its range; elsewhere it is the worst."""
    if p["model"] == "svm":
        far = ((math.log10(p["C"]) - 1.0) / 1.2) ** 2 + ((math.log10(p["gamma"]) + 2.2) / 0.8) ** 2
        return 0.6 * (1.0 - math.exp(-0.5 * float(far)))
    if p["model"] == "forest":
        shape = ((p["depth"] - 14.0) / 20.0) ** 2 + (p["features"] - 0.4) ** 2 + 0.1 * math.log(p["leaf"] / 2.0) ** 2
        return float(0.05 + 0.15 * shape)
    return float(0.12 + 0.01 * (math.log10(p["alpha"]) + 3.0) ** 2)


LAYERS: Parameters = {
    "n_layers": pbgi.Integer(1, 4),
    "units_1": pbgi.Integer(4, 512, log=True),
    "units_2": pbgi.Integer(4, 512, log=True, when={"n_layers": [2, 3, 4]}),
    "units_3": pbgi.Integer(4, 512, log=True, when={"n_layers": [3, 4]}),
    "units_4": pbgi.Integer(4, 512, log=True, when={"n_layers": 4}),
    "rate": pbgi.Float(1e-5, 1.0, log=True),
}
WIDTHS = (7.0, 5.0, 4.0, 6.0)  # the best ones, as powers of two


def layers(p: Params) -> float:
    """Three layers of falling width are best; each layer more takes a smaller rate."""
    n = p["n_layers"]
    wrong = sum((math.log2(p[f"units_{i + 1}"]) - WIDTHS[i]) ** 2 for i in range(n)) / n
    rate = (math.log10(p["rate"]) + 1.5 + 0.4 * n) ** 2
    return float(0.15 * abs(n - 3) + 0.04 * wrong + 0.12 * rate)


BOOSTING: Parameters = {
    "model": pbgi.Categorical(["ridge", "tree", "boosted"]),
    "penalty": pbgi.Float(1e-4, 1e4, log=True, when={"model": "ridge"}),
    "tree_depth": pbgi.Integer(1, 20, when={"model": "tree"}),
    "rounds": pbgi.Integer(10, 1000, log=True, when={"model": "boosted"}),
    "rate": pbgi.Float(1e-3, 1.0, log=True, when={"model": "boosted"}),
    "booster": pbgi.Categorical(["lines", "trees"], when={"model": "boosted"}),
    "updater": pbgi.Categorical(["cyclic", "random", "greedy"], when={"booster": "lines"}),
    "grow": pbgi.Categorical(["depth", "leaves"], when={"booster": "trees"}),
    "max_depth": pbgi.Integer(2, 12, when={"grow": "depth"}),
    "max_leaves": pbgi.Integer(4, 512, log=True, when={"grow": "leaves"}),
    "min_gain": pbgi.Float(1e-3, 1.0, log=True, when={"grow": "leaves"}),
}


def boosting(p: Params) -> float:
    """Boosted trees that grow by leaves are best, if rounds, rate and leaves fit together."""
    if p["model"] == "ridge":
        return 0.3 + 0.01 * (math.log10(p["penalty"]) - 1.0) ** 2
    if p["model"] == "tree":
        return float(0.22 + 0.002 * (p["tree_depth"] - 7.0) ** 2)
    together = math.log10(p["rounds"] * p["rate"])
    value = 0.15 * (together - 1.2) ** 2 + 0.03 * (math.log10(p["rate"]) + 1.4) ** 2
    if p["booster"] == "lines":
        return float(value) + 0.2 + {"cyclic": 0.02, "random": 0.0, "greedy": 0.05}[p["updater"]]
    if p["grow"] == "depth":
        return float(value + 0.05 + 0.01 * (p["max_depth"] - 5.0) ** 2)
    leaves = math.log2(p["max_leaves"]) - 5.0
    return value + 0.03 * leaves**2 + 0.04 * (math.log10(p["min_gain"]) + 1.5 + 0.2 * leaves) ** 2


FUNCTIONS: Parameters = {
    "function": pbgi.Categorical(["sphere", "branin", "hartmann"]),
    "s": pbgi.Float(-5.0, 5.0, when={"function": "sphere"}),
    "b1": pbgi.Float(-5.0, 10.0, when={"function": "branin"}),
    "b2": pbgi.Float(0.0, 15.0, when={"function": "branin"}),
    **{f"h{i}": pbgi.Float(0.0, 1.0, when={"function": "hartmann"}) for i in range(1, 7)},
}
HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_SCALES = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_CENTERS = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN_LEAST, BRANIN_LEAST = -3.322368011415515, 0.39788735772973816


def functions(p: Params) -> float:
    """Hartmann-6 is best, and at random points the worst; the sphere is never better than 0.9, Branin than 0.5."""
    if p["function"] == "sphere":
        return float(0.9 + 0.05 * (p["s"] - 1.0) ** 2)
    if p["function"] == "branin":
        x, y = p["b1"], p["b2"]
        bowl = (y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0) ** 2
        return 0.5 + 0.02 * float(bowl + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) + 10.0 - BRANIN_LEAST)
    h = np.array([p[f"h{i}"] for i in range(1, 7)])
    far = (HARTMANN_SCALES * (h - HARTMANN_CENTERS) ** 2).sum(axis=1)
    return float(-HARTMANN_WEIGHTS @ np.exp(-far)) - HARTMANN_LEAST


# Real ----------------------------------------------------------------------------------------------------------------

PIPELINE: Parameters = {
    "scaler": pbgi.Categorical(["none", "standard", "minmax"]),
    "model": pbgi.Categorical(["svc", "neighbors", "tree", "ridge"]),
    "kernel": pbgi.Categorical(["rbf", "poly"], when={"model": "svc"}),
    "C": pbgi.Float(1e-3, 1e3, log=True, when={"model": "svc"}),
    "gamma": pbgi.Float(1e-6, 1e1, log=True, when={"model": "svc", "kernel": "rbf"}),
    "degree": pbgi.Integer(2, 5, when={"kernel": "poly"}),
    "n_neighbors": pbgi.Integer(1, 40, log=True, when={"model": "neighbors"}),
    "weights": pbgi.Categorical(["uniform", "distance"], when={"model": "neighbors"}),
    "p": pbgi.Integer(1, 3, when={"model": "neighbors"}),
    "max_depth": pbgi.Integer(1, 20, when={"model": "tree"}),
    "min_samples_leaf": pbgi.Integer(1, 30, log=True, when={"model": "tree"}),
    "alpha": pbgi.Float(1e-4, 1e4, log=True, when={"model": "ridge"}),
}
N_IMAGES, N_FOLDS = 500, 3


@cache
def _digits() -> tuple[Any, Any, Any]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold

    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    return X[:N_IMAGES], y[:N_IMAGES], list(folds.split(X[:N_IMAGES], y[:N_IMAGES]))


def pipeline(p: Params) -> float:
    """The share of errors in three folds of 500 images."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X, y, folds = _digits()
    scaler = {"none": "passthrough", "standard": StandardScaler(), "minmax": MinMaxScaler()}[p["scaler"]]
    model = make_pipeline(scaler, _classifier(p))
    errors = [int((model.fit(X[train], y[train]).predict(X[test]) != y[test]).sum()) for train, test in folds]
    return sum(errors) / len(y)


def _classifier(p: Params) -> Any:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    own = {name: value for name, value in p.items() if name not in ("scaler", "model")}
    if p["model"] == "svc":
        return SVC(**own, max_iter=20000)
    if p["model"] == "neighbors":
        return KNeighborsClassifier(**own)
    return DecisionTreeClassifier(**own, random_state=0) if p["model"] == "tree" else RidgeClassifier(**own)


PROBLEMS = {
    "classifiers": ConditionalProblem(CLASSIFIERS, classifiers),
    "layers": ConditionalProblem(LAYERS, layers),
    "boosting": ConditionalProblem(BOOSTING, boosting),
    "functions": ConditionalProblem(FUNCTIONS, functions),
    "pipeline": ConditionalProblem(PIPELINE, pipeline),
}
