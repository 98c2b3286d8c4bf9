"""Quality of the Gaussian process fit: the log posterior one search reaches, beside the best of five by SciPy.

Random data sets (d = 2 to 16, n = 5 to 200; draws from Gaussian processes, Ackley, Levy, Rosenbrock; points at random,
or at random and then by the optimizer; some with noise) are fitted by `fit_gp`, from the default start (cold) and from
the fit of all but the last point (warm). SciPy's L-BFGS-B minimizes the same objective with the same bounds from the
default start and from four draws of the priors, and its best counts. A fit may fall short of it by 1e-3 nats.

    python benchmarks/quality_fit.py                    200 data sets, both models, some minutes
    python benchmarks/quality_fit.py --only 17          one of them, with what each of SciPy's starts reached
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits
from timing import report

import pbgi
from pbgi.arrays import Floats
from pbgi.gp.algebra import prepare
from pbgi.gp.config import GammaPrior, GPConfig, Hyperparameters, Prior, log_bounds, log_parameters
from pbgi.gp.fit import DEFAULT_LENGTH_SCALE, DEFAULT_NOISE, MapObjective, fit_gp

Function = Callable[[Floats], Floats]

DIMENSIONS = (2, 4, 8, 16)
FEWEST, MOST = 5, 200  # points
MOST_STEPS = 20  # of the optimizer, or half of the points if that is less
NOISY_SHARE, NOISE = 0.25, 0.05  # so many data sets have noise, of this share of the standard deviation
N_FEATURES = 1024
LENGTH_SCALES = (0.2, 1.5)  # of the draws; each input has its own

SHORT = 1e-3  # nats
TARGET = 0.95
N_PRIOR_STARTS = 4
CONFIGS = {"default": GPConfig(), "paper": GPConfig.paper()}


# Objectives on the unit cube, to be minimized, scaled as in the paper; the optimum of the named ones is zero ----------


def ackley(X: Floats) -> Floats:
    """On [-1, 1]^d."""
    Z = 2.0 * X - 1.0
    waves = np.exp(np.cos(2.0 * np.pi * Z).mean(axis=-1))
    value: Floats = 20.0 - 20.0 * np.exp(-0.2 * np.sqrt((Z**2).mean(axis=-1))) + np.e - waves
    return np.maximum(value, 0.0)


def levy(X: Floats) -> Floats:
    """On [-10, 10]^d, divided by 100."""
    W = 1.0 + (20.0 * X - 11.0) / 4.0
    first, last = W[..., 0], W[..., -1]
    inner = ((W[..., :-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * W[..., :-1] + 1.0) ** 2)).sum(axis=-1)
    edges = np.sin(np.pi * first) ** 2 + (last - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * last) ** 2)
    value: Floats = (edges + inner) / 100.0
    return value


def rosenbrock(X: Floats) -> Floats:
    """On [-5, 10]^d, divided by 1e5."""
    Z = 15.0 * X - 5.0
    terms = 100.0 * (Z[..., 1:] - Z[..., :-1] ** 2) ** 2 + (1.0 - Z[..., :-1]) ** 2
    value: Floats = terms.sum(axis=-1) / 1e5
    return value


NAMED: dict[str, Function] = {"ackley": ackley, "levy": levy, "rosenbrock": rosenbrock}
OBJECTIVES = ("gp draw", *NAMED)


def gp_draw(d: int, rng: np.random.Generator) -> Function:
    """A draw from a Matern-5/2 process by random features: frequencies are multivariate t with 5 degrees of freedom."""
    shortest, longest = np.log(LENGTH_SCALES)
    length_scales = np.exp(rng.uniform(shortest, longest, d))
    radii = np.sqrt(5.0 / rng.chisquare(5.0, N_FEATURES))
    frequencies = rng.standard_normal((d, N_FEATURES)) * radii / length_scales[:, None]
    phases, weights = rng.uniform(0.0, 2.0 * np.pi, N_FEATURES), rng.standard_normal(N_FEATURES)
    return lambda X: np.sqrt(2.0 / N_FEATURES) * (np.cos(X @ frequencies + phases) @ weights)


# Data sets -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points of the unit cube and their values, larger is better, as a run may have gathered them."""

    number: int
    objective: str
    stage: str  # "random", or "optimized": the last points were chosen by the optimizer
    noisy: bool
    X: Floats = field(repr=False)
    y: Floats = field(repr=False)

    @property
    def label(self) -> str:
        """In words, of one width."""
        n, d = self.X.shape
        return f"{self.objective:<10} {self.stage:<9} {'noisy' if self.noisy else 'exact'}  d = {d:<2} n = {n:<3}"


def data_set(number: int, rng: np.random.Generator) -> DataSet:
    """The data set with this number: dimensions and objectives take turns, the rest is drawn."""
    d, objective = DIMENSIONS[number % 4], OBJECTIVES[number // 4 % 4]
    n = round(math.exp(rng.uniform(math.log(FEWEST), math.log(MOST))))
    stage, noisy = str(rng.choice(["random", "optimized"])), bool(rng.random() < NOISY_SHARE)
    function = gp_draw(d, rng) if objective == "gp draw" else NAMED[objective]
    noise = NOISE * float(np.std(function(rng.random((1000, d))))) if noisy else 0.0
    n_steps = min(n // 2, MOST_STEPS) if stage == "optimized" else 0
    X = rng.random((n - n_steps, d))
    y = -function(X) + noise * rng.standard_normal(len(X))
    if n_steps:
        X, y = optimized(X, y, lambda x: float(-function(x) + noise * rng.standard_normal()), n_steps, rng)
    return DataSet(number, objective, stage, noisy, X, y)


def cube(d: int) -> pbgi.Space:
    return pbgi.Space({f"x{k}": pbgi.Float(0.0, 1.0) for k in range(d)})


def optimized(
    X: Floats, y: Floats, evaluate: Callable[[Floats], float], n_steps: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The same points and those of so many steps of the optimizer, at uniform cost."""
    space = cube(X.shape[1])
    optimizer = pbgi.Optimizer(
        space,
        direction="maximize",
        cost=pbgi.UniformCost(),
        policy=pbgi.PBGID() if rng.random() < 0.5 else pbgi.LogEI(),
        n_startup_trials=1,
        seed=int(rng.integers(2**31)),
    )
    for params, value in zip(space.from_unit_many(X), y, strict=True):
        optimizer.tell(params, float(value))
    for _ in range(n_steps):
        trial = optimizer.ask()
        x = space.to_unit(trial.params)
        value = evaluate(x)
        optimizer.tell(trial, value, cost=1.0)
        X, y = np.vstack([X, x]), np.append(y, value)
    return X, y


def counted(numbers: Iterable[int], total: int, what: str) -> Iterable[int]:
    """The numbers, with progress on stderr."""
    start = time.monotonic()
    for done, number in enumerate(numbers):
        if done and done % 10 == 0:
            left = (time.monotonic() - start) * (total - done) / done
            print(f"{what} {done} of {total}, about {left:.0f} s left", file=sys.stderr, flush=True)
        yield number


# The comparison ------------------------------------------------------------------------------------------------------


class Reference(NamedTuple):
    """What SciPy reached from each start, the default one first."""

    log_posteriors: list[float]
    seconds: list[float]


def scipy_fit(data: DataSet, config: GPConfig, rng: np.random.Generator) -> Reference:
    prepared = prepare(data.X, data.y, None, standardize=True)
    d = data.X.shape[1]
    objective, bounds = MapObjective(prepared.X, prepared.values, prepared.categorical, config), log_bounds(d, config)
    default = Hyperparameters((DEFAULT_LENGTH_SCALE,) * d, 1.0, DEFAULT_NOISE)
    starts = [default, *(from_priors(d, config, rng) for _ in range(N_PRIOR_STARTS))]
    reached, seconds = [], []
    with np.errstate(all="ignore"):
        for start in starts:
            x = np.clip(log_parameters(start, config), *bounds.T)
            began = time.perf_counter()
            # Tolerances well below what a fit may fall short by; the value is some hundred nats.
            options = {"maxiter": 500, "ftol": 1e-9, "gtol": 1e-6}
            found = minimize(objective, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            seconds.append(time.perf_counter() - began)
            reached.append(-float(found.fun))
    return Reference(reached, seconds)


def from_priors(d: int, config: GPConfig, rng: np.random.Generator) -> Hyperparameters:
    noise = draw(config.noise_prior, rng) if config.noise is None else config.noise
    return Hyperparameters(
        tuple(draw(config.length_scale_prior, rng) for _ in range(d)), draw(config.output_scale_prior, rng), noise
    )


def draw(prior: Prior, rng: np.random.Generator) -> float:
    if isinstance(prior, GammaPrior):
        return max(float(rng.gamma(prior.concentration, 1.0 / prior.rate)), 1e-12)
    return float(rng.lognormal(prior.location, prior.scale))


class Fit(NamedTuple):
    """How one fit compares: what it lacks of SciPy's best, in nats, and the times."""

    label: str
    number: int
    model: str
    start: str
    short: float
    seconds: float
    scipy_seconds: float
    scipy_log_posteriors: list[float]


def compare(number: int, seed: int) -> list[Fit]:
    """The fits of one data set: two models, cold and warm."""
    rng = np.random.default_rng([seed, number])
    data, rows = data_set(number, rng), []
    for model, config in CONFIGS.items():
        reference = scipy_fit(data, config, rng)
        warm = fit_gp(data.X[:-1], data.y[:-1], config).hyperparameters
        for start, hyperparameters in (("cold", None), ("warm", warm)):
            began = time.perf_counter()
            fitted = fit_gp(data.X, data.y, config, start=hyperparameters)
            seconds = time.perf_counter() - began
            short = max(reference.log_posteriors) - fitted.log_posterior
            row = (data.label, number, model, start, short, seconds, sum(reference.seconds))
            rows.append(Fit(*row, reference.log_posteriors))
    return rows


def summarize(fits: list[Fit], n_worst: int) -> tuple[list[dict[str, Any]], list[bool]]:
    """Print shares, times and the worst fits."""
    table: list[dict[str, Any]] = []
    met = []
    print(f"{'model':<9}{'start':<7}{'reached':>9}{'better':>9}{'worst short':>13}{'SciPy time / time':>19}")
    for model in CONFIGS:
        for start in ("cold", "warm"):
            chosen = [fit for fit in fits if (fit.model, fit.start) == (model, start)]
            row: dict[str, Any] = {
                "model": model,
                "start": start,
                "reached": float(np.mean([fit.short <= SHORT for fit in chosen])),
                "better": float(np.mean([fit.short < -SHORT for fit in chosen])),
                "worst_short": max(fit.short for fit in chosen),
                "times_faster": statistics.median(fit.scipy_seconds / fit.seconds for fit in chosen),
                "median_seconds": statistics.median(fit.seconds for fit in chosen),
            }
            table.append(row)
            print(f"{model:<9}{start:<7}{row['reached']:9.1%}{row['better']:9.1%}", end="")
            print(f"{row['worst_short']:13.2g}{row['times_faster']:19.1f}")
    print()
    for row in table:
        what = f"{row['model']} model, {row['start']} start: share within {SHORT:g} nats of the best of five by SciPy"
        met.append(report(what, row["reached"], TARGET, "of the data sets", at_least=True))
    worst = [fit for fit in sorted(fits, key=lambda fit: -fit.short)[:n_worst] if fit.short > SHORT]
    print("\nworst fits" if worst else "\nno fit falls short")
    for fit in worst:
        n_best = sum(value >= max(fit.scipy_log_posteriors) - SHORT for value in fit.scipy_log_posteriors)
        print(
            f"  --only {fit.number:<4} {fit.label}  {fit.model:<8}{fit.start}  short by {fit.short:.3g} nats; ", end=""
        )
        print(f"{n_best} of {len(fit.scipy_log_posteriors)} SciPy starts reach the best")
    return table, met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="number of data sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one data set, by number")
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst fits to print")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args()
    numbers = range(arguments.sets) if arguments.only is None else [arguments.only]
    with threadpool_limits(limits=1):
        fits = [fit for k in counted(numbers, len(numbers), "data set") for fit in compare(k, arguments.seed)]
    if arguments.only is not None:
        for fit in fits:
            reached = ", ".join(f"{value:.4f}" for value in fit.scipy_log_posteriors)
            print(
                f"{fit.label}  {fit.model:<8}{fit.start}: {max(fit.scipy_log_posteriors) - fit.short:.4f} by fit_gp;",
                end="",
            )
            print(f" SciPy: {reached}")
        return 0
    print(f"log posterior of fits, {arguments.sets} data sets, seed {arguments.seed}, one thread\n")
    table, met = summarize(fits, arguments.worst)
    if arguments.json:
        results: dict[str, Any] = {"pbgi": pbgi.__version__, "numpy": np.__version__, "processors": os.cpu_count()}
        results |= {"seed": arguments.seed, "summary": table, "fits": [fit._asdict() for fit in fits]}
        arguments.json.write_text(json.dumps(results | {"targets_met": all(met)}, indent=2) + "\n")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
