"""Time and memory to solve large Pandora's Box problems for a budget. Run by `make bench`."""

import resource
import sys
from functools import partial

import numpy as np
from timing import median_seconds, report

from pbgi.pandora import Box, Gaussian, solve

SHARES = (0.001, 0.03, 0.3)  # of what opening every box costs


def gaussian_boxes(n: int) -> list[Box]:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=n), rng.uniform(0.1, 2, n), rng.uniform(0.5, 5, n)
    return [Box(Gaussian(mean, std), cost) for mean, std, cost in zip(*map(np.ndarray.tolist, columns), strict=True)]


def main() -> int:
    met = []
    for n, limit, repeats in ((1_000, 0.3, 5), (100_000, 10.0, 3)):
        boxes = gaussian_boxes(n)
        total = sum(box.expected_cost for box in boxes)
        for share in SHARES:
            budget = max(share * total, 6.0)
            seconds = median_seconds({"solve": partial(solve, boxes, budget=budget)}, repeats)["solve"]
            met.append(report(f"{n} Gaussian boxes, budget {budget / total:.1%} of all", seconds, limit, "s"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    met.append(report("peak memory of the process", peak, 1.0, "GB"))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
