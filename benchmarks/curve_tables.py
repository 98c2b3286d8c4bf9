"""Learning curves of real trainings, recorded once into tables: what `quality_instalments.py` replays.

    digits-network    the network of `examples/demo.py` on its handwritten digits, 20 epochs: log loss on a third
    boosting-*        gradient boosting on data sets that come with scikit-learn, 100 trees: log loss on a third,
                      or squared error for diabetes

Every point of a grid is trained once, with the value and the processor seconds so far after each step. Seconds differ
from machine to machine, values do not. Tables lie in `benchmarks/results/raw`, which git ignores.

    python benchmarks/curve_tables.py                     records what is missing; half an hour of one processor
    python benchmarks/curve_tables.py --only boosting     of the tables whose names begin so
"""

import argparse
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

RAW = Path(__file__).parent / "results" / "raw"
Levels = Mapping[str, tuple[Any, ...]]

NETWORK: Levels = {
    "batch_size": (16, 64),
    "width": (16, 64, 256),
    "layers": (1, 2),
    "learning_rate": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    "alpha": (1e-6, 1e-2),
}
BOOSTING: Levels = {
    "learning_rate": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    "max_depth": (1, 2, 3, 5, 8),
    "subsample": (0.3, 0.6, 1.0),
    "min_samples_leaf": (1, 5, 20),
}
EPOCHS, TREES = 20, 100


@dataclass(frozen=True)
class Table:
    """Curves of all points of a grid.

    Attributes:
        levels: Names to levels.
        values: (points, steps) Values after each step; points in the order of `itertools.product`.
        seconds: (points, steps) Processor seconds from the beginning.
    """

    levels: Levels
    values: np.ndarray
    seconds: np.ndarray

    def row(self, levels: Mapping[str, int]) -> int:
        """The row of a point, given by the positions of its levels."""
        shape = [len(each) for each in self.levels.values()]
        return int(np.ravel_multi_index([levels[name] for name in self.levels], shape))


def network_curve(point: Mapping[str, Any]) -> Iterator[float]:
    """Log loss after each epoch."""
    from sklearn.datasets import load_digits
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16.0, y, test_size=1 / 3, stratify=y, random_state=0)
    model = MLPClassifier(
        (point["width"],) * point["layers"],
        batch_size=point["batch_size"],
        learning_rate_init=point["learning_rate"],
        alpha=point["alpha"],
        random_state=0,
    )
    for _ in range(EPOCHS):
        model.partial_fit(X, y, classes=range(10))
        yield float(log_loss(y_test, model.predict_proba(X_test)))


def boosting_curve(load: str) -> Callable[[Mapping[str, Any]], Iterator[float]]:
    """Loss after each tree, of a data set by the name of its function."""

    def curve(point: Mapping[str, Any]) -> Iterator[float]:
        from sklearn import datasets, ensemble
        from sklearn.metrics import log_loss, mean_squared_error
        from sklearn.model_selection import train_test_split

        X, y = getattr(datasets, load)(return_X_y=True)
        classifies = load != "load_diabetes"
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=1 / 3, stratify=y if classifies else None, random_state=0
        )
        kind = ensemble.GradientBoostingClassifier if classifies else ensemble.GradientBoostingRegressor
        model = kind(n_estimators=1, warm_start=True, random_state=0, **point)
        for n_trees in range(1, TREES + 1):
            model.set_params(n_estimators=n_trees).fit(X, y)
            if classifies:
                yield float(log_loss(y_test, model.predict_proba(X_test)))
            else:
                yield float(mean_squared_error(y_test, model.predict(X_test)))

    return curve


TABLES: dict[str, tuple[Levels, int, Callable[[Mapping[str, Any]], Iterator[float]]]] = {
    "boosting-diabetes": (BOOSTING, TREES, boosting_curve("load_diabetes")),
    "boosting-cancer": (BOOSTING, TREES, boosting_curve("load_breast_cancer")),
    "digits-network": (NETWORK, EPOCHS, network_curve),
    "boosting-wine": (BOOSTING, TREES, boosting_curve("load_wine")),
}


def record(name: str) -> None:
    """Train all points of a table and write it."""
    levels, n_steps, curve = TABLES[name]
    points = [dict(zip(levels, point, strict=True)) for point in itertools.product(*levels.values())]
    values, seconds = np.empty((len(points), n_steps)), np.empty((len(points), n_steps))
    for i, point in enumerate(points):
        begun = time.process_time()
        for step, value in enumerate(curve(point)):
            values[i, step], seconds[i, step] = value, time.process_time() - begun
        print(f"\r{name}: {i + 1} of {len(points)}", end="", flush=True)
    RAW.mkdir(parents=True, exist_ok=True)
    told = {"levels": {k: list(v) for k, v in levels.items()}, "values": values.tolist(), "seconds": seconds.tolist()}
    (RAW / f"curves-{name}.json").write_text(json.dumps(told))
    print()


@cache
def table(name: str) -> Table:
    """A recorded table."""
    path = RAW / f"curves-{name}.json"
    if not path.exists():
        sys.exit(f"{path} is missing: python benchmarks/curve_tables.py records it")
    told = json.loads(path.read_text())
    levels = {k: tuple(v) for k, v in told["levels"].items()}
    return Table(levels, np.array(told["values"]), np.array(told["seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tables whose names begin so")
    chosen = parser.parse_args().only
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in TABLES:
            if name.startswith(chosen) and not (RAW / f"curves-{name}.json").exists():
                record(name)


if __name__ == "__main__":
    main()
