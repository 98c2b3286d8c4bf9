"""Variants of the default on many problems: what a rule is worth before it becomes the default.

Problems: the moved functions and the network of `peer_problems.py` (d = 4, learned costs), Ackley, Levy and Rosenbrock
with d = 8 (known costs, uniform and varying), draws from the paper's prior (d = 8), three made of choices alone
(additive effects; effects of pairs; Pest Control), and, with `--tables FOLDER`, the seven tables of `real_tables.py`.
All runs of a seed begin alike. A regret is that of the point with the best value told so far, without noise.

    python benchmarks/quality_variants.py --seeds 4 --jobs 2 --json runs.jsonl      runs, a line each
    python benchmarks/quality_variants.py --report runs.jsonl                       and what they say
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from peer_problems import N_TRIALS, PROBLEMS, PeerProblem

import pbgi
from pbgi.acquisition import LogExpectedImprovement
from pbgi.best_point import best_point
from pbgi.gp.config import GPConfig, LogNormalPrior, LogPrior
from pbgi.gp.fit import MapObjective
from pbgi.policy import Policy, _proposal
from pbgi.problems import Problem, ackley, gp_draw, levy, pest_control, rosenbrock
from pbgi.snapshot import Proposal, Snapshot

MARKS = (0.25, 0.5, 1.0)
HPOLIB = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
TABLES = (*HPOLIB, "cifar10", "cifar100", "imagenet")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
N_CHOICES, N_FACTORS = 5, 6
EFFECT_NOISE = 0.1  # of choices, in standard deviations of an effect
COST_SPREAD = 0.4  # of the logarithm, by each factor
FLOOR = 0.01  # of the default's regret after a quarter of the budget: regrets below are as good as this


# Problems ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posed:
    """A problem as an optimizer is given it."""

    space: Mapping[str, Any]
    evaluate: Callable[[Mapping[str, Any]], Any]  # value and cost
    regret: Callable[[Mapping[str, Any], float], float]
    budget: float
    cost: Any = None
    direction: str = "minimize"


def of_peers(problem: PeerProblem) -> Posed:
    return Posed(problem.space, problem.evaluate, problem.regret, problem.budget)


def of_paper(problem: Problem, budget: float | None = None) -> Posed:
    sign = 1.0 if problem.direction == "minimize" else -1.0
    best = 0.0 if problem.optimum is None else problem.optimum
    return Posed(
        problem.space.parameters,
        problem.evaluate,
        lambda _, value: sign * (value - best),
        budget or problem.budget,
        problem.cost,
        problem.direction,
    )


def of_choices(seed: int, pairs: bool) -> Posed:
    """Six choices of five: the sum of their effects, the first of which matter most, or of effects of pairs too."""
    rng = np.random.default_rng([seed, int(pairs)])
    levels = np.array(list(itertools.product(range(N_CHOICES), repeat=N_FACTORS)))
    effects = rng.standard_normal((N_FACTORS, N_CHOICES)) * 0.7 ** np.arange(N_FACTORS)[:, None]
    values = effects[np.arange(N_FACTORS), levels].sum(axis=1)
    for i, j in itertools.combinations(range(N_FACTORS), 2):
        table = 0.5 * rng.standard_normal((N_CHOICES, N_CHOICES)) * pairs
        values += table[levels[:, i], levels[:, j]]
    costs = np.exp(COST_SPREAD * rng.standard_normal((N_FACTORS, N_CHOICES))[np.arange(N_FACTORS), levels].sum(axis=1))
    draws, least = np.random.default_rng([seed, 7]), float(values.min())

    def row(params: Mapping[str, Any]) -> int:
        return int(np.ravel_multi_index([params[f"c{k}"] for k in range(N_FACTORS)], (N_CHOICES,) * N_FACTORS))

    def evaluate(params: Mapping[str, Any]) -> tuple[float, float]:
        return float(values[row(params)] + EFFECT_NOISE * draws.standard_normal()), float(costs[row(params)])

    space = {f"c{k}": pbgi.Categorical(range(N_CHOICES)) for k in range(N_FACTORS)}
    return Posed(space, evaluate, lambda p, _: float(values[row(p)]) - least, N_TRIALS * float(costs.mean()))


FUNCTIONS = {"Ackley": ackley, "Levy": levy, "Rosenbrock": rosenbrock}
Maker = Callable[[int], Posed]


def moved(name: str) -> Maker:
    return lambda seed: of_peers(PROBLEMS[name](seed))


def synthetic(name: str, cost: str) -> Maker:
    return lambda _: of_paper(FUNCTIONS[name](8, cost=cost))


def draw(cost: str) -> Maker:
    return lambda seed: of_paper(gp_draw(8, seed=seed, cost=cost))


KNOWN = ("uniform", "varying")
NUMBERS: dict[str, Maker] = {
    **{f"{name} d=4": moved(name) for name in FUNCTIONS},
    **{f"{name} d=8 {cost}": synthetic(name, cost) for name in FUNCTIONS for cost in KNOWN},
    **{f"draw d=8 {cost}": draw(cost) for cost in KNOWN},
}
CHOICES: dict[str, Maker] = {
    "Network": moved("Network"),
    "additive": lambda seed: of_choices(seed, pairs=False),
    "pairs": lambda seed: of_choices(seed, pairs=True),
    "Pest Control": lambda seed: of_paper(pest_control(cost="varying", categorical=True, seed=seed + 1), 250.0),
}


def posed(name: str, seed: int, tables: Path | None) -> Posed:
    if name in TABLES:
        from real_tables import Table

        assert tables is not None
        return of_peers(Table.load(tables, name).problem(seed))
    return (NUMBERS | CHOICES)[name](seed)


# Variants ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ending:
    """PBGI-D, and over the last of the budget expected improvement, weighed by cost less and less.

    Attributes:
        share: Of the budget that is the last of it.
        cooled: Whether the cost counts in full at first; otherwise not at all.
    """

    share: float
    cooled: bool

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The next point."""
        assert snapshot.budget is not None
        left = 1.0 - snapshot.spent / snapshot.budget
        if left > self.share:
            return pbgi.PBGID().propose(snapshot, rng)
        power = -left / self.share if self.cooled else 0.0
        acquisition = LogExpectedImprovement(snapshot.model, snapshot.price, snapshot.best_warped, power)
        return _proposal(snapshot, best_point(snapshot, acquisition, rng))


def refit(factor: float) -> Callable[[], Any]:
    return lambda: patch.multiple("pbgi.choosing.fitting", MANY_VALUES=0, VALUE_REFIT=factor)


@contextmanager
def category_distance(distance: float) -> Iterator[None]:
    with patch("pbgi.gp.kernel.CATEGORY_DISTANCE", distance):
        yield


@contextmanager
def category_prior(prior: LogNormalPrior) -> Iterator[None]:
    """Length scales of categories have a prior of their own."""
    begin = MapObjective.__init__

    def begin_with_prior(self: MapObjective, X: Any, y: Any, categorical: Any, config: GPConfig) -> None:
        begin(self, X, y, categorical, config)
        _, linear, rate, curvature = prior.coefficients()
        log_prior: LogPrior = self._log_prior
        which = np.flatnonzero(categorical)
        log_prior._linear, log_prior._rate = log_prior._linear.copy(), log_prior._rate.copy()
        log_prior._curvature = log_prior._curvature.copy()
        log_prior._linear[which], log_prior._rate[which], log_prior._curvature[which] = linear, rate, curvature

    with patch.object(MapObjective, "__init__", begin_with_prior):
        yield


POLICIES: dict[str, Policy] = {
    "cooled EI": pbgi.LogEICC(),
    "EI over the last tenth": Ending(0.1, False),
    "cooled EI over the last quarter": Ending(0.25, True),
    "cooled EI over the last half": Ending(0.5, True),
}
PATCHES: dict[str, Callable[[], Any]] = {
    "refitted every time": refit(1.0),
    "refitted after 4 %": refit(1.04),
    "categories 0.1 apart": lambda: category_distance(0.1),
    "categories 0.2 apart": lambda: category_distance(0.2),
    "categories, broad prior at 0.5": lambda: category_prior(LogNormalPrior(math.log(0.5), 1.0)),
    "categories, broad prior at 1": lambda: category_prior(LogNormalPrior(0.0, 1.0)),
}
VARIANTS = ("default", *POLICIES, *PATCHES)


def run(name: str, variant: str, seed: int, tables: Path | None) -> dict[str, Any]:
    """One run: what was spent and the regret so far, after every trial."""
    problem = posed(name, seed, tables)
    rows: list[tuple[float, float]] = []
    spent, best, regret = 0.0, math.inf, math.inf
    sign = 1.0 if problem.direction == "minimize" else -1.0
    start = time.process_time()
    with ExitStack() as stack:
        if variant in PATCHES:
            stack.enter_context(PATCHES[variant]())
        optimizer = pbgi.Optimizer(
            problem.space,
            direction=problem.direction,
            budget=problem.budget,
            cost=problem.cost,
            policy=POLICIES.get(variant, pbgi.PBGID()),
            seed=seed,
        )
        while optimizer.should_stop() is None:
            trial = optimizer.ask()
            value, cost = problem.evaluate(trial.params)
            optimizer.tell(trial, value, cost=cost)
            spent += cost
            if sign * value < best:
                best, regret = sign * value, problem.regret(trial.params, value)
            rows.append((spent / problem.budget, regret))
    shares, regrets = np.array(rows).T
    at = [float(regrets[max(int(np.searchsorted(shares, mark, side="right")) - 1, 0)]) for mark in MARKS]
    seconds = time.process_time() - start
    return {
        "problem": name, "variant": variant, "seed": seed, "regrets": at, "n": len(rows), "seconds": round(seconds, 2),
    }  # fmt: skip


# All of them ---------------------------------------------------------------------------------------------------------


def jobs_of(arguments: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Seed by seed, so that whatever time there is gives whole comparisons."""
    choices = [*CHOICES, *(TABLES if arguments.tables else ())]
    problems = arguments.problems or [*NUMBERS, *choices]
    return [
        (name, variant, seed)
        for seed in range(arguments.first, arguments.first + arguments.seeds)
        for name in problems
        for variant in arguments.variants
        if not (variant.startswith("categories") and name in NUMBERS)
    ]


def run_all(arguments: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    deadline = time.monotonic() + arguments.max_seconds
    waiting, running = list(reversed(jobs_of(arguments))), dict[Future[dict[str, Any]], None]()
    with (
        ProcessPoolExecutor(arguments.jobs, mp_context=multiprocessing.get_context("spawn")) as pool,
        arguments.json.open("a") as file,
    ):
        while running or (waiting and time.monotonic() < deadline):
            while waiting and len(running) < 2 * arguments.jobs and time.monotonic() < deadline:
                running[pool.submit(run, *waiting.pop(), arguments.tables)] = None
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                file.write(json.dumps(future.result()) + "\n")
                file.flush()
    print(f"{len(waiting)} runs were not begun", file=sys.stderr)


def report(rows: Sequence[Mapping[str, Any]]) -> None:
    """Geometric means, over seeds, of the regret as a share of the default's, by problem and mark."""
    regrets = {(r["problem"], r["seed"], r["variant"]): np.abs(r["regrets"]) for r in rows}
    problems, variants = (list(dict.fromkeys(r[name] for r in rows)) for name in ("problem", "variant"))
    for problem in problems:
        early = [row[0] for key, row in regrets.items() if (key[0], key[2]) == (problem, "default")]
        for key in [key for key in regrets if key[0] == problem]:
            regrets[key] = np.maximum(regrets[key], FLOOR * np.median(early))
    for variant in [variant for variant in variants if variant != "default"]:
        print(f"\n{variant}: regret over the default's at {MARKS}; runs; ahead : behind at the end")
        means, errors = [], []
        for problem in problems:
            seeds = [key[1] for key in regrets if key[0] == problem and key[2] == variant]
            pairs = [(problem, seed) for seed in seeds if (problem, seed, "default") in regrets]
            if not pairs:
                continue
            logs = np.array([np.log(regrets[(*pair, variant)] / regrets[(*pair, "default")]) for pair in pairs])
            means.append(logs.mean(axis=0))
            errors.append(logs.std(axis=0) / math.sqrt(len(logs)))
            ahead = f"{(logs[:, -1] < 0).sum()} : {(logs[:, -1] > 0).sum()}"
            print(f"  {problem:<28}" + "".join(f"{x:8.2f}" for x in np.exp(means[-1])) + f"{len(logs):6}  {ahead}")
        mean, error = np.mean(means, axis=0), np.sqrt(np.square(errors).sum(axis=0)) / len(errors)
        cells = (f"{m:8.2f} (x/ {e:.2f})" for m, e in zip(np.exp(mean), np.exp(error), strict=True))
        print(f"  {'all':<28}" + "".join(cells))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--max-seconds", type=float, default=math.inf, help="begin no run after so long")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--problems", nargs="+", help="by default all")
    parser.add_argument("--tables", type=Path, help="the folder that real_tables.py has written")
    parser.add_argument("--json", type=Path, default=Path("variants.jsonl"), help="where runs are added, a line each")
    parser.add_argument("--report", type=Path, help="only say what these runs show")
    arguments = parser.parse_args()
    if arguments.report is None:
        run_all(arguments)
    lines = (arguments.report or arguments.json).read_text().splitlines()
    report([json.loads(line) for line in lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
