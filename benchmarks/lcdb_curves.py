"""Learning curves of twenty classifiers on 248 data sets, from LCDB (Mohr et al., 2022): accuracy and training seconds.

The package holds one line per data set, learner, training size and split. Here a stage is a share of the largest
training size of a data set, and its accuracy and seconds are means over all splits. Of the package only the file is
read.
"""

import csv
from collections import defaultdict
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pbgi.arrays import Floats

SHARES = (1 / 32, 1 / 8, 1.0)  # of the largest training size: three stages


class Curves(NamedTuple):
    """Data sets by learners by stages; not a number where a learner was not trained."""

    learners: list[str]
    datasets: list[int]
    accuracy: Floats
    seconds: Floats
    sizes: Floats  # data sets by stages


def read_curves(kept: Path) -> Curves:
    """The curves, from a file written earlier or from the package."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        curves = _from_package()
        columns: dict[str, Any] = {name: np.array(column) for name, column in curves._asdict().items()}
        np.savez_compressed(kept, **columns)
    with np.load(kept) as found:
        return Curves(
            [str(name) for name in found["learners"]],
            [int(number) for number in found["datasets"]],
            found["accuracy"],
            found["seconds"],
            found["sizes"],
        )


def _from_package() -> Curves:
    sums: dict[tuple[int, str, int], Floats] = defaultdict(lambda: np.zeros(3))
    path = Path(str(distribution("lcdb").locate_file("lcdb/database-accuracy.csv")))
    with path.open(newline="") as lines:
        for line in csv.DictReader(lines):
            key = int(line["openmlid"]), line["learner"], int(line["size_train"])
            sums[key] += float(line["score_test"]), float(line["traintime"]), 1.0
    learners = sorted({learner for _, learner, _ in sums})
    datasets = sorted({dataset for dataset, _, _ in sums})
    trained: dict[int, set[int]] = defaultdict(set)
    for dataset, _, size in sums:
        trained[dataset].add(size)
    sizes = np.array([[_nearest(trained[d], share * max(trained[d])) for share in SHARES] for d in datasets])
    accuracy, seconds = (np.full((len(datasets), len(learners), len(SHARES)), np.nan) for _ in range(2))
    for i, dataset in enumerate(datasets):
        for j, learner in enumerate(learners):
            for k, size in enumerate(sizes[i]):
                total = sums.get((dataset, learner, int(size)))
                if total is not None:
                    accuracy[i, j, k], seconds[i, j, k] = total[:2] / total[2]
    return Curves(learners, datasets, accuracy, seconds, sizes)


def _nearest(sizes: set[int], wanted: float) -> int:
    return min(sizes, key=lambda size: abs(np.log(size / wanted)))
