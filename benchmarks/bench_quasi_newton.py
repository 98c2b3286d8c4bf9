"""Our two quasi-Newton codes beside SciPy's L-BFGS-B: climbs of an acquisition function, and fits of hyperparameters.

Climbs: `maximize_batch`, with and without its race, climbs from the same starts on the same log expected improvement as
L-BFGS-B from one start after the other, and as one L-BFGS-B over all of them (their sum, as BoTorch does it). Fits:
`fit_gp` and L-BFGS-B minimize the same objective with the same bounds from the same start. The table shows the time, as
a multiple of ours, and how often each reached the best of all within 1e-3 (of the spread of values, or nats).

    python benchmarks/bench_quasi_newton.py              20 data sets per dimension, a minute or two
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import pbgi
from pbgi.acquisition import LogExpectedImprovement
from pbgi.arrays import Floats
from pbgi.gp.algebra import prepare
from pbgi.gp.config import GPConfig, Hyperparameters, log_bounds, log_parameters
from pbgi.gp.fit import DEFAULT_LENGTH_SCALE, DEFAULT_NOISE, MapObjective, fit_gp
from pbgi.gp.posterior import GP
from pbgi.search.climb import maximize_batch

DIMENSIONS = (2, 4, 8, 16)
N_VALUES, N_STARTS = 40, 16
SHORT = 1e-3
OPTIONS = {"maxiter": 200, "ftol": 1e-9}


def data_set(d: int, seed: int) -> tuple[Floats, Floats]:
    """Points and values of a sum of cosines with its own wave lengths, which no model here has as its prior."""
    rng = np.random.default_rng((d, seed))
    X, waves, shifts = rng.random((N_VALUES, d)), rng.uniform(0.5, 3.0, (8, d)), rng.uniform(0.0, 2 * np.pi, 8)
    return X, np.cos(2 * np.pi * X @ waves.T / np.sqrt(d) + shifts).sum(axis=1)


def log_improvement(model: GP, y: Floats) -> LogExpectedImprovement:
    """Expected improvement, blind to cost."""
    uniform = pbgi.UniformCost().fit(pbgi.Space({"any": pbgi.Float(0, 1)}), y[:, None], y, GPConfig(), None)
    return LogExpectedImprovement(model, uniform, float(y.max()))


def climbers(model: GP, y: Floats, starts: Floats) -> dict[str, Callable[[], float]]:
    """Each climbs from all the starts, and gives the best value that it found."""
    f = log_improvement(model, y).value_and_grad
    bounds = [(0.0, 1.0)] * starts.shape[1]

    def one(x: Floats) -> tuple[float, Floats]:
        value, grad = f(x[None])
        return -float(value[0]), -grad[0]

    def all_at_once(x: Floats) -> tuple[float, Floats]:
        value, grad = f(x.reshape(starts.shape))
        return -float(value.sum()), -grad.ravel()

    def scipy_each() -> float:
        runs = (minimize(one, x, jac=True, method="L-BFGS-B", bounds=bounds, options=OPTIONS) for x in starts)
        return max(-float(run.fun) for run in runs)

    def scipy_sum() -> float:
        options: Any = {"jac": True, "method": "L-BFGS-B", "bounds": bounds * len(starts), "options": OPTIONS}
        found = np.clip(minimize(all_at_once, starts.ravel(), **options).x, 0.0, 1.0)
        return float(f(found.reshape(starts.shape))[0].max())

    lengths = np.array(model.hyperparameters.length_scales)
    return {
        "ours": lambda: float(maximize_batch(f, starts, lengths=lengths, race=True)[1].max()),
        "ours without a race": lambda: float(maximize_batch(f, starts, lengths=lengths)[1].max()),
        "L-BFGS-B, one by one": scipy_each,
        "L-BFGS-B of the sum": scipy_sum,
    }


def fitters(X: Floats, y: Floats) -> dict[str, Callable[[], float]]:
    """Each gives the log posterior density that it reached."""
    config, d = GPConfig(), X.shape[1]
    data = prepare(X, y, None, standardize=True)
    objective = MapObjective(data.X, data.values, data.categorical, config)
    start = Hyperparameters((DEFAULT_LENGTH_SCALE,) * d, 1.0, DEFAULT_NOISE)
    bounds = log_bounds(d, config)

    def ours() -> float:
        return -objective(log_parameters(fit_gp(X, y, config, start=start).hyperparameters, config))[0]

    def scipy() -> float:
        first = np.clip(log_parameters(start, config), *bounds.T)
        return float(-minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds).fun)

    return {"ours": ours, "L-BFGS-B": scipy}


def compared(contests: list[tuple[dict[str, Callable[[], float]], float]]) -> dict[str, tuple[float, float]]:
    """Median time as a multiple of ours, and the share of contests in which the best was reached, by contestant."""
    seconds: dict[str, list[float]] = {}
    reached: dict[str, list[float]] = {}
    for run in contests[0][0].values():  # caches and lazy imports
        run()
    for contestants, unit in contests:
        for name, run in contestants.items():
            begun = time.perf_counter()
            reached.setdefault(name, []).append(run() / unit)
            seconds.setdefault(name, []).append(time.perf_counter() - begun)
    best = np.max(list(reached.values()), axis=0)
    return {
        name: (
            float(np.median(np.array(seconds[name]) / np.array(seconds["ours"]))),
            float(np.mean(np.array(reached[name]) >= best - SHORT)),
        )
        for name in seconds
    }


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=20, help="per dimension")
    n = parser.parse_args().data_sets
    with threadpool_limits(limits=1), np.errstate(all="ignore"):
        for title in ("climbs", "fits"):
            print(f"\n| {title}, d | contestant | time, ours = 1 | reached the best |\n|---|---|---|---|")
            for d in DIMENSIONS:
                contests = []
                for seed in range(n):
                    X, y = data_set(d, seed)
                    if title == "climbs":
                        model = fit_gp(X, y)
                        starts = np.random.default_rng((d, seed, 1)).random((N_STARTS, d))
                        pool = log_improvement(model, y).value(starts)
                        contests.append((climbers(model, y, starts), float(np.ptp(pool)) or 1.0))
                    else:
                        contests.append((fitters(X, y), 1.0))
                for name, (ratio, share) in compared(contests).items():
                    print(f"| {d} | {name} | {ratio:.1f} | {100 * share:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
