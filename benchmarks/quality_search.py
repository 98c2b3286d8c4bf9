"""Quality of the inner search: the acquisition value it reaches, beside many restarts of SciPy's L-BFGS-B.

Random states of a run (the data sets of `quality_fit.py`, with the default model or the paper's) get an acquisition
function: the index at several exchange rates, log EI, log EI per cost, UCB, a posterior path; cost uniform, varying
and known, or learned. pbgi searches as its policies do (`pbgi.best_point`). SciPy searches as in the paper: the best
10 d of 200 d Sobol points, 200 iterations from each, with exact gradients, and its best counts. Differences are in
units of the spread of the acquisition function: from the median to the largest of its finite values over SciPy's Sobol
points.

    python benchmarks/quality_search.py                 200 states, some minutes
    python benchmarks/quality_search.py --only 17       one of them, with what more work would find
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from quality_fit import CONFIGS, DIMENSIONS, DataSet, counted, cube, data_set
from scipy.optimize import minimize
from scipy.stats import qmc
from threadpoolctl import threadpool_limits
from timing import report

import pbgi
from pbgi.acquisition import GittinsIndex, LogExpectedImprovement, PathValue, UpperConfidenceBound
from pbgi.arrays import Floats
from pbgi.best_point import best_point
from pbgi.cost import CostModel
from pbgi.gp.config import GPConfig
from pbgi.gp.fit import fit_gp
from pbgi.policy import PATH_CLIMBS
from pbgi.search import Acquisition, Search, SearchResult, build_pool, default_n_sobol, default_n_starts, search
from pbgi.snapshot import Snapshot

SHORT = 1e-6  # of the spread
TARGET = 0.95
SOBOL_PER_DIMENSION, STARTS_PER_DIMENSION, MAX_ITERATIONS = 200, 10, 200  # the paper's
KINDS = ("index", "log_ei", "index", "log_eipc", "index", "ucb", "index", "thompson")  # they take turns
COSTS = ("uniform", "varying", "learned")
# Exchange rates of the index, in standard deviations of the values per mean cost.
COST_SCALES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
UCB_WEIGHTS = (1.0, 3.0)
COST_NOISE = 0.1  # of the logarithm of learned costs
MORE = 4  # times the pool and the starts, for a look at one state


# States --------------------------------------------------------------------------------------------------------------


class Price:
    """The paper's varying cost, 1 + 20 mean(x), known with its gradient."""

    hyperparameters = None

    def log_moment(self, X: Floats, power: float) -> Floats:
        """Of a known cost: power times its logarithm."""
        log_price: Floats = np.log(1.0 + 20.0 * X.mean(axis=1))
        return power * log_price

    def log_moment_and_grad(self, X: Floats, power: float) -> tuple[Floats, Floats]:
        """The same with its gradient."""
        slope = power * 20.0 / X.shape[1] / (1.0 + 20.0 * X.mean(axis=1))
        return self.log_moment(X, power), np.repeat(slope[:, None], X.shape[1], axis=1)

    def log_upper(self, X: Floats, z: float) -> Floats:  # noqa: ARG002 (it is certain)
        """Of a known cost: its logarithm."""
        return self.log_moment(X, 1.0)


class State(NamedTuple):
    """What there is to search."""

    data: DataSet
    model: str
    what: str  # the acquisition function, in words
    acquisition: Acquisition
    snapshot: Snapshot


def random_state(number: int, rng: np.random.Generator) -> State:
    """The state with this number."""
    data = data_set(number, rng)
    model_name, space = str(rng.choice(list(CONFIGS))), cube(data.X.shape[1])
    kind = KINDS[number // 16 % len(KINDS)]  # dimensions and objectives take turns every 16
    cost_name = str(rng.choice(COSTS if kind == "index" else COSTS[1:])) if kind in ("index", "log_eipc") else "uniform"
    cost = cost_model(cost_name, data, rng)
    snapshot = Snapshot(
        space=space,
        X=data.X,
        warped=data.y,
        model=fit_gp(data.X, data.y, CONFIGS[model_name]),
        cost=cost,
        trials=(),
        sign=1.0,
        failed=np.empty((0, space.dimension)),
        excluded=None,  # SciPy does not know of points to leave out
        spent=float(len(data.y)),
        budget=None,
    )
    what, acquisition = acquisition_function(kind, snapshot, rng)
    return State(
        data, model_name, f"{what}, {cost_name} cost" if kind in ("index", "log_eipc") else what, acquisition, snapshot
    )


def cost_model(name: str, data: DataSet, rng: np.random.Generator) -> CostModel:
    if name == "varying":
        return Price()
    paid = np.exp(Price().log_moment(data.X, 1.0) + COST_NOISE * rng.standard_normal(len(data.X)))
    kind = pbgi.LearnedCost() if name == "learned" else pbgi.UniformCost()
    return kind.fit(cube(data.X.shape[1]), data.X, paid, GPConfig(), None)


def acquisition_function(kind: str, snapshot: Snapshot, rng: np.random.Generator) -> tuple[str, Acquisition]:
    if kind == "index":
        mean_cost = float(np.exp(snapshot.cost.log_moment(rng.random((256, snapshot.X.shape[1])), 1.0)).mean())
        scale = float(rng.choice(COST_SCALES))
        cost_scale = scale * (float(snapshot.warped.std()) or 1.0) / mean_cost
        return f"index at {scale:g}", GittinsIndex(snapshot.model, snapshot.cost, cost_scale)
    if kind == "ucb":
        weight = float(rng.choice(UCB_WEIGHTS))
        return f"ucb at {weight:g}", UpperConfidenceBound(snapshot.model, weight)
    if kind == "thompson":
        return kind, PathValue(snapshot.model.sample_path(rng))
    power = -1.0 if kind == "log_eipc" else 0.0
    return kind, LogExpectedImprovement(snapshot.model, snapshot.cost, snapshot.best_warped, power)


# The comparison ------------------------------------------------------------------------------------------------------


class Reference(NamedTuple):
    """What SciPy found, and the spreads over its Sobol points."""

    value: float
    x: Floats
    spread: float
    quartile_spread: float  # from the upper quartile to the top: stricter, and what the search itself uses
    n_reached: int  # restarts that ended within SHORT of the best


def scipy_search(acquisition: Acquisition, d: int, rng: np.random.Generator) -> Reference:
    n = SOBOL_PER_DIMENSION * d
    points = qmc.Sobol(d, rng=rng).random_base2((n - 1).bit_length())[:n]
    values = acquisition.value(points)
    usable = np.sort(values[np.isfinite(values)])
    spread, quartile_spread = (float(usable[-1] - usable[share * len(usable) // 4]) for share in (2, 3))
    unit = spread or 1.0

    def loss(x: Floats) -> tuple[float, Floats]:
        value, grad = acquisition.value_and_grad(x[None])
        # In units of the spread, so that SciPy's tolerances mean the same everywhere.
        return -float(value[0] - usable[-1]) / unit, -grad[0] / unit

    starts = points[
        np.argsort(-np.where(np.isfinite(values), values, -np.inf), kind="stable")[: STARTS_PER_DIMENSION * d]
    ]
    options = {"maxiter": MAX_ITERATIONS}
    runs = [minimize(loss, x, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * d, options=options) for x in starts]
    best = min(runs, key=lambda run: run.fun)
    n_reached = sum(run.fun <= best.fun + SHORT for run in runs)
    value = float(acquisition.value(best.x[None])[0])
    return Reference(value, best.x, spread, quartile_spread, n_reached)


class Row(NamedTuple):
    """How the search compares in one state; `short` is what it lacks of SciPy's best, in spreads."""

    number: int
    label: str
    model: str
    what: str
    d: int
    n: int
    short: float
    short_of_quartile_spread: float
    spread: float
    distance: float  # largest coordinate, between the two points found
    n_restarts_reached: int
    seconds: float
    scipy_seconds: float


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def n_starts_of(acquisition: Acquisition, d: int) -> int:
    """As the policies have it."""
    return default_n_starts(d) * (PATH_CLIMBS if isinstance(acquisition, PathValue) else 1)


def found_in(state: State, rng: np.random.Generator, near_best: bool = True) -> SearchResult:
    """What a policy finds; or what a search finds that does not begin near the best points."""
    acquisition = state.acquisition
    times = PATH_CLIMBS if isinstance(acquisition, PathValue) else 1
    return best_point(replace(state.snapshot, search=Search(near_best=near_best)), acquisition, rng, times_climbs=times)


def compare(number: int, seed: int, near_best: bool) -> Row:
    rng = np.random.default_rng([seed, number])
    state = random_state(number, rng)
    n, d = state.data.X.shape
    found, seconds = timed(lambda: found_in(state, rng, near_best))
    reference, scipy_seconds = timed(lambda: scipy_search(state.acquisition, d, rng))
    lacks = reference.value - found.value
    return Row(
        number,
        state.data.label,
        state.model,
        state.what,
        d,
        n,
        lacks / (reference.spread or 1.0),
        lacks / (reference.quartile_spread or 1.0),
        reference.spread,
        float(np.abs(found.x - reference.x).max()),
        reference.n_reached,
        seconds,
        scipy_seconds,
    )


def look(number: int, seed: int) -> None:
    """One state: what both found, and what pbgi finds with another random pool, with a larger one, with more starts."""
    rng = np.random.default_rng([seed, number])
    state = random_state(number, rng)
    d = state.data.X.shape[1]
    found = found_in(state, rng)
    reference = scipy_search(state.acquisition, d, rng)
    print(f"{state.data.label}  {state.model} model, {state.what}; values less SciPy's best, in spreads")
    print(f"spread {reference.spread:.3g}; {reference.n_reached} of {STARTS_PER_DIMENSION * d} restarts reach the best")
    incumbents = state.data.X[np.argsort(-state.data.y, kind="stable")[:3]]

    def again(k: int, n_sobol: int, n_starts: int) -> float:
        other = np.random.default_rng([seed, number, k])
        pool = build_pool(d, other, n_sobol=n_sobol, incumbents=incumbents)
        return (
            search(state.acquisition, pool, rng=other, n_starts=n_starts).value - reference.value
        ) / reference.spread

    n_sobol, n_starts = default_n_sobol(d), n_starts_of(state.acquisition, d)
    print(f"{'as in the table':<30}{(found.value - reference.value) / reference.spread:+.2e}")
    for name, *size in (
        ("other pools", n_sobol, n_starts),
        (f"{MORE} times the starts", n_sobol, MORE * n_starts),
        (f"{MORE} times the pool and starts", MORE * n_sobol, MORE * n_starts),
    ):
        print(f"{name:<30}" + "  ".join(f"{again(k, *size):+.2e}" for k in range(5)))
    climbed = search(state.acquisition, np.clip(reference.x[None], 0.0, 1.0), rng=rng)
    print(f"{'a climb from there':<30}{(climbed.value - reference.value) / reference.spread:+.2e}")
    for name, x in (("found  ", found.x), ("SciPy's", reference.x)):
        print(name, "no point" if x is None else np.round(x, 4).tolist())


def shares(rows: list[Row], name: str) -> None:
    """One line of the table."""
    short = np.array([row.short for row in rows])
    ratio = statistics.median(row.scipy_seconds / row.seconds for row in rows)
    print(f"{name:<20}{len(rows):>7}{np.mean(short <= SHORT):>9.1%}{np.mean(short < -SHORT):>9.1%}", end="")
    print(f"{max(short.max(), 0.0):>13.2g}{ratio:>19.1f}")


def summarize(rows: list[Row], n_worst: int) -> bool:
    """Print shares, times and the worst states."""
    print(f"{'states':<20}{'number':>7}{'reached':>9}{'better':>9}{'worst short':>13}{'SciPy time / time':>19}")
    shares(rows, "all")
    groups = {f"d = {d}": [row for row in rows if row.d == d] for d in DIMENSIONS}
    groups |= {
        kind: [row for row in rows if row.what.replace(",", " ").split()[0] == kind] for kind in dict.fromkeys(KINDS)
    }
    groups |= {stage: [row for row in rows if stage in row.label] for stage in ("random", "optimized")}
    for name, chosen in groups.items():
        if chosen:
            shares(chosen, name)
    reached = float(np.mean([row.short <= SHORT for row in rows]))
    strict = float(np.mean([row.short_of_quartile_spread <= SHORT for row in rows]))
    print()
    what = f"share within {SHORT:g} of the spread of SciPy's best"
    met = report(what, reached, TARGET, "of the states", at_least=True)
    print(f"        the same with the spread from the upper quartile to the top: {strict:.3g}")
    worst = [row for row in sorted(rows, key=lambda row: -row.short)[:n_worst] if row.short > SHORT]
    print("\nworst states" if worst else "\nno state falls short")
    for row in worst:
        print(
            f"  --only {row.number:<4} {row.label}  {row.model:<8}{row.what}: short by {row.short:.2g} of the spread ",
            end="",
        )
        print(
            f"{row.spread:.3g}, {row.n_restarts_reached} of {STARTS_PER_DIMENSION * row.d} restarts reach the best, ",
            end="",
        )
        print(f"points {row.distance:.2g} apart")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=200, help="number of states")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one state, by number")
    parser.add_argument(
        "--near-best", action=argparse.BooleanOptionalAction, default=True, help="begin near the best points too"
    )
    parser.add_argument("--worst", type=int, default=12, help="how many of the worst states to print")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args()
    with threadpool_limits(limits=1):
        if arguments.only is not None:
            look(arguments.only, arguments.seed)
            return 0
        for d in DIMENSIONS:  # the first pool of a dimension takes a while
            build_pool(d, np.random.default_rng(0))
        numbers = range(arguments.states)
        rows = [compare(k, arguments.seed, arguments.near_best) for k in counted(numbers, len(numbers), "state")]
    print(f"acquisition value reached, {arguments.states} states, seed {arguments.seed}, one thread\n")
    met = summarize(rows, arguments.worst)
    if arguments.json:
        results: dict[str, Any] = {"pbgi": pbgi.__version__, "numpy": np.__version__, "processors": os.cpu_count()}
        results |= {"seed": arguments.seed, "states": [row._asdict() for row in rows], "targets_met": met}
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
