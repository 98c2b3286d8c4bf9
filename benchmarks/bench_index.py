"""Speed of the index with both derivatives, beside bisection at the same points. Run by `make bench`."""

import sys

import numpy as np
from timing import median_seconds, report

from pbgi import gittins_index_and_grad, inverse_log_h, log_h
from pbgi.arrays import Floats

N = 10_000
BISECTION_STEPS = 100


def bisection(log_ratio: Floats) -> Floats:
    """The root of log_h by halving a bracket that holds for every point, as the paper's code finds it."""
    low, high = np.full_like(log_ratio, -60.0), np.full_like(log_ratio, 1e4)
    for _ in range(BISECTION_STEPS):
        middle = 0.5 * (low + high)
        above = log_h(middle) > log_ratio
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return 0.5 * (low + high)


def main() -> int:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=N), np.exp(rng.normal(size=N))
    log_cost = rng.uniform(-25, 2, N)
    log_ratio = log_cost - np.log(std)
    difference = np.max(np.abs(bisection(log_ratio) - inverse_log_h(log_ratio)))
    seconds = median_seconds(
        {
            "index and derivatives": lambda: gittins_index_and_grad(mean, std, log_cost),
            "bisection": lambda: bisection(log_ratio),
        }
    )
    ours, bisected = seconds.values()
    print(f"index, batches of {N}, one thread; roots agree to {difference:.1e}")
    met = [
        report("index with both derivatives", ours / N * 1e6, 1.0, "microseconds each"),
        report(f"times faster than {BISECTION_STEPS} bisection steps", bisected / ours, 8.0, "x", at_least=True),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
