"""Time of the index of boxes paid in stages, one thread. Run by `make bench`."""

import sys
from functools import partial

import numpy as np
from timing import median_seconds, report

from pbgi.arrays import Floats
from pbgi.index import instalment_index, instalment_index_and_grad

N = 10_000


def boxes(n: int, n_stages: int, narrowest: float) -> tuple[Floats, Floats]:
    """Deviations that differ by up to a factor 1/narrowest in any order, and prices from 0.001 to 0.4 of the widest."""
    rng = np.random.default_rng(0)
    return np.exp(rng.uniform(np.log(narrowest), 0.0, (n, n_stages))), rng.uniform(-7.0, -1.0, (n, n_stages))


def settling(n: int, n_stages: int) -> tuple[Floats, Floats]:
    """Learning curves: each stage reveals half as much as the one before, at twice its price."""
    rng = np.random.default_rng(1)
    stages = np.arange(n_stages)
    noise = rng.normal(0.0, 0.2, (2, n, n_stages))
    return np.exp(noise[0] - 0.7 * stages), np.exp(noise[1] - 6.0 + 0.7 * stages)


def main() -> int:
    alike, curves = boxes(N, 5, 0.3), settling(N, 5)
    contestants = {
        "stages alike": partial(instalment_index, 0.0, *alike),
        "stages alike, with slopes": partial(instalment_index_and_grad, 0.0, *alike),
        "learning curves": partial(instalment_index, 0.0, *curves),
        "learning curves, with slopes": partial(instalment_index_and_grad, 0.0, *curves),
    }
    seconds = median_seconds(contestants, repeats=7)
    limits = {name: 1.5 if "slopes" in name else 0.5 for name in contestants}
    met = [report(f"{N} boxes of 5 stages, {name}", seconds[name], limits[name], "s") for name in contestants]
    hard = median_seconds({"uneven": partial(instalment_index, 0.0, *boxes(500, 5, 1e-4))}, repeats=3)["uneven"]
    met.append(report("a box of 5 stages whose deviations span four orders of magnitude", hard / 0.5, 5.0, "ms"))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
