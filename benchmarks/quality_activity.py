"""How the model takes parameters that do not exist at a point: three ways, by what they predict.

    middle       the middle of the range, a code of its own for a choice; this is what `Space` does
    indicator    the same, and beside each such parameter a column that says whether it exists, with a length scale
    arc          (rho sin(pi x / 2), rho cos(pi x / 2)) for a number that exists, (0, 0) for one that does not, with rho
                 such that neighbors are as far apart as on a line (Swersky et al. 2014); a length scale for each column

Each is fitted to random points of the problems of `conditional_problems.py` and asked for others. Prints the mean log
density of their values as the model sees them, the larger the better: medians over the seeds, and on how many of them a
way is better than the middle.

    python benchmarks/quality_activity.py
"""

import argparse
import math
import sys

import numpy as np
from conditional_problems import PROBLEMS

import pbgi
from pbgi.arrays import Bools, Floats
from pbgi.gp import fit_gp, fit_warp

SIZES, N_TEST = (20, 60), 200
RHO = 2.0 / math.pi
WAYS = ("middle", "indicator", "arc")
Design = tuple[Floats, Bools]


def seen(way: str, space: pbgi.Space, X: Floats) -> Design:
    """The points as the model is given them, and which columns are categories."""
    mask = np.ones(X.shape, dtype=bool) if space.conditions is None else space.conditions.mask(X)
    comes_and_goes = [space.may_be_absent(name) for name in space.coordinates]
    columns: list[Floats] = []
    categorical: list[bool] = []
    for j, is_category in enumerate(space.categorical):
        if way == "arc" and comes_and_goes[j] and not is_category:
            angle = 0.5 * math.pi * X[:, j]
            columns += [np.where(mask[:, j], RHO * wave, 0.0) for wave in (np.sin(angle), np.cos(angle))]
            categorical += [False, False]
            continue
        columns.append(X[:, j])
        categorical.append(bool(is_category))
        if way == "indicator" and comes_and_goes[j]:
            columns.append(mask[:, j].astype(float))
            categorical.append(False)
    return np.stack(columns, axis=1), np.array(categorical)


def densities(name: str, n: int, seed: int) -> dict[str, float]:
    """For each way the mean log density of the values at points that were not fitted."""
    problem, rng = PROBLEMS[name], np.random.default_rng([seed, n])
    space = pbgi.Space(problem.space)
    X = space.snap(rng.random((n + N_TEST, space.dimension)))
    values = -np.array([problem.value(params) for params in space.from_unit_many(X)])
    warped = fit_warp(values[:n]).to_warped(values)
    found = {}
    for way in WAYS:
        design, categorical = seen(way, space, X)
        gp = fit_gp(design[:n], warped[:n], categorical=categorical)
        mean, std = gp.posterior(design[n:])
        std = np.sqrt(std**2 + gp.noise_std**2)
        errors = (warped[n:] - mean) / std
        found[way] = float(np.mean(-0.5 * errors**2 - np.log(std))) - 0.5 * math.log(2.0 * math.pi)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[n for n in PROBLEMS if n != "pipeline"])
    parser.add_argument("--seeds", type=int, default=16)
    arguments = parser.parse_args()
    print(f"| problem | points | {' | '.join(WAYS)} |\n|{'---|' * (2 + len(WAYS))}")
    for name in arguments.problems:
        for n in SIZES:
            runs = [densities(name, n, seed) for seed in range(arguments.seeds)]
            cells = [f"{np.median([run[way] for run in runs]):.2f}" for way in WAYS]
            better = [sum(run[way] > run["middle"] for run in runs) for way in WAYS[1:]]
            cells[1:] = [f"{cell} ({k} of {len(runs)})" for cell, k in zip(cells[1:], better, strict=True)]
            print(f"| {name} | {n} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
