"""What the defaults are worth: the regret of runs with the default model, rate and search, beside the alternatives.

Models, each with the default policy: the default `GPConfig()`; "former", what the default was before outputs were
warped, with its 2 (d + 1) starting points; the paper's `GPConfig.paper()`; and "broad", the default with a log-normal
prior on length scales that widens with the dimension. Starts, on the exact problems: the default number of points, and
1 or 2 for each of d + 1. Problems: Ackley, Levy and Rosenbrock as in the
paper (d = 4, 8), exact and with noise of 2 % of the range of their values, at uniform cost and at a known one of
1 + 20 mean(x). Rates, on the exact problems with values as they are, times 100 and divided by 100: `PBGID()`, which
sets its first rate by itself, the same with half the largest EI per cost for a rate, and `PBGID(0.1)`. Searches, on
the exact problems: the engine's, which begins from Sobol points and around the best points tried, and the paper's from
Sobol points alone. A run's regret is that of the function without noise at the point with the best value told, in units
of the function.

    python benchmarks/quality_defaults.py --seeds 8 --jobs 2           all of it, more than an hour of processor time
    python benchmarks/quality_defaults.py --seeds 2 --max-seconds 480  what can be done in that time
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
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from quality_fit import NAMED
from threadpoolctl import threadpool_limits

import pbgi
from paper.policies import SearchedFromSobol
from pbgi.gp.config import GPConfig, LogNormalPrior

DIMENSIONS, DEFAULT_DIMENSIONS = (4, 8, 16), (4, 8)
COSTS = ("uniform", "varying")
NOISE = 0.02  # of the range: from the 5 % to the 95 % quantile of values at random points
N_LEVELS = 21  # of a coordinate that is counted in steps
SCALES = (1.0, 100.0, 0.01)
FIXED_RATE = 0.1  # the paper's initial rate of PBGI-D
MODELS = ("default", "former", "paper", "broad")
STARTS = ("default", "d + 1", "2 (d + 1)")
RATES = {"automatic": pbgi.PBGID(), "half": pbgi.PBGID(initial_share=0.5), "fixed": pbgi.PBGID(FIXED_RATE)}
ENGINE = "engine"  # the search as it is
SEARCHES = (ENGINE, "sobol")
STUDIES = ("models", "starts", "rates", "searches")
# Regrets below this share of the range are taken to be this: they are all as good as nothing.
FLOOR = 1e-6
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


# A run ---------------------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """A problem, the way it is optimized, and the seed of both."""

    function: str
    d: int
    noisy: bool
    cost: str
    scale: float
    model: str
    start: str
    rate: str
    search: str
    n_trials: int  # per dimension, that the budget is for
    integers: bool  # whether every other coordinate is one of N_LEVELS
    seed: int

    @property
    def problem(self) -> tuple[str, int, bool, str, float]:
        """What is optimized."""
        return self[:5]


def price(params: Mapping[str, Any]) -> Any:
    """1 + 20 mean(x), of numbers or of arrays."""
    return 1.0 + 20.0 * sum(params.values()) / len(params)


def budget(d: int, cost: str, n_trials: int) -> float:
    """For about so many trials per dimension: at varying cost most are cheaper than 11, the mean over the cube."""
    return n_trials * d * (1.0 if cost == "uniform" else 8.0)


def space_of(d: int, integers: bool) -> dict[str, pbgi.Float | pbgi.Integer]:
    """The unit cube, or one of which every other coordinate is counted in steps."""
    return {f"x{k}": pbgi.Integer(0, N_LEVELS - 1) if integers and k % 2 else pbgi.Float(0.0, 1.0) for k in range(d)}


def in_cube(params: Mapping[str, Any]) -> np.ndarray:
    return np.array([x / (N_LEVELS - 1) if type(x) is int else x for x in params.values()])


@cache
def value_range(function: str, d: int) -> float:
    values = NAMED[function](np.random.default_rng(0).random((4096, d)))
    low, high = np.quantile(values, [0.05, 0.95])
    return float(high - low)


def model_named(name: str, d: int) -> GPConfig:
    if name == "paper":
        return GPConfig.paper()
    if name == "former":
        return GPConfig(outputs="standardized")
    broad = LogNormalPrior(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0))
    return replace(GPConfig(), length_scale_prior=broad) if name == "broad" else GPConfig()


def policy_of(setting: Setting) -> Any:
    policy = RATES[setting.rate]
    return {ENGINE: policy, "sobol": SearchedFromSobol(policy)}[setting.search]


def n_startup_of(setting: Setting) -> int | None:
    """How many points the start has; None for the default."""
    if setting.model == "former":
        return 2 * (setting.d + 1)
    return {"default": None, "d + 1": setting.d + 1, "2 (d + 1)": 2 * (setting.d + 1)}[setting.start]


def final_regret(setting: Setting) -> float:
    """Of a whole run."""
    f, d = NAMED[setting.function], setting.d
    noise = NOISE * value_range(setting.function, d) if setting.noisy else 0.0
    rng = np.random.default_rng([setting.seed, d])

    def evaluate(params: Mapping[str, Any]) -> tuple[float, float]:
        value = float(f(in_cube(params))) + noise * rng.standard_normal()
        return setting.scale * value, 1.0 if setting.cost == "uniform" else price(params)

    result = pbgi.minimize(
        evaluate,
        space_of(d, setting.integers),
        budget=budget(d, setting.cost, setting.n_trials),
        cost=pbgi.UniformCost() if setting.cost == "uniform" else pbgi.KnownCost(price, vectorized=True),
        policy=policy_of(setting),
        model=model_named(setting.model, d),
        n_startup_trials=n_startup_of(setting),
        seed=setting.seed,
    )
    assert result.params is not None
    return float(f(in_cube(result.params)))


# All of them ---------------------------------------------------------------------------------------------------------


def settings_of(
    seed: int, dimensions: Sequence[int], costs: Sequence[str], n_trials: int, integers: bool, only: str | None
) -> list[Setting]:
    """The runs of one seed; the comparisons share the runs they have in common."""
    problems = list(itertools.product(NAMED, dimensions))
    models = [
        Setting(f, d, noisy, cost, 1.0, model, "default", "automatic", ENGINE, n_trials, integers, seed)
        for (f, d), noisy, cost, model in itertools.product(problems, (False, True), costs, MODELS)
    ]
    starts = [
        Setting(f, d, False, cost, 1.0, "default", start, "automatic", ENGINE, n_trials, integers, seed)
        for (f, d), cost, start in itertools.product(problems, costs, STARTS)
    ]
    rates = [
        Setting(f, d, False, cost, scale, "default", "default", rate, ENGINE, n_trials, integers, seed)
        for (f, d), cost, scale, rate in itertools.product(problems, costs, SCALES, RATES)
    ]
    searches = [
        Setting(f, d, False, cost, 1.0, "default", "default", "automatic", search, n_trials, integers, seed)
        for (f, d), cost, search in itertools.product(problems, costs, SEARCHES)
    ]
    studies = zip(STUDIES, (models, starts, rates, searches), strict=True)
    return list(dict.fromkeys(setting for name, study in studies if only in (None, name) for setting in study))


def run_all(settings: Sequence[Setting], jobs: int, max_seconds: float) -> dict[Setting, float]:
    """Regrets by setting; begins no run after so many seconds."""
    start, regrets = time.monotonic(), dict[Setting, float]()
    for setting, regret in _finished(settings, jobs, start + max_seconds):
        regrets[setting] = regret
        elapsed = time.monotonic() - start
        left = min(elapsed * (len(settings) - len(regrets)) / len(regrets), max(max_seconds - elapsed, 0.0))
        if len(regrets) % 10 == 0:
            print(f"run {len(regrets)} of {len(settings)}, about {left:.0f} s left", file=sys.stderr, flush=True)
    if len(regrets) < len(settings):
        print(f"stopped after {max_seconds:g} s: {len(regrets)} of {len(settings)} runs", file=sys.stderr, flush=True)
    return regrets


def _finished(settings: Sequence[Setting], jobs: int, deadline: float) -> Iterator[tuple[Setting, float]]:
    if jobs == 1:
        with threadpool_limits(limits=1):
            for setting in itertools.takewhile(lambda _: time.monotonic() < deadline, settings):
                yield setting, final_regret(setting)
        return
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # read by the processes when they load their libraries
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting, running = list(reversed(settings)), dict[Future[float], Setting]()
        while running or (waiting and time.monotonic() < deadline):
            while waiting and len(running) < jobs and time.monotonic() < deadline:
                setting = waiting.pop()
                running[pool.submit(final_regret, setting)] = setting
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


# What came out -------------------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Contestants on the problems and seeds where all of them ran; the first one is the default."""

    title: str
    names: tuple[str, ...]
    regrets: dict[tuple[Any, ...], dict[int, tuple[float, ...]]]  # by problem, then by seed


def compared(regrets: Mapping[Setting, float], field: str, names: tuple[str, ...], title: str) -> Comparison:
    found: dict[tuple[Any, ...], dict[int, tuple[float, ...]]] = {}
    for setting in regrets:
        contestants = [Setting(**setting._asdict() | {field: name}) for name in names]
        if all(contestant in regrets for contestant in contestants):
            row = tuple(regrets[contestant] for contestant in contestants)
            found.setdefault(setting.problem, {})[setting.seed] = row
    return Comparison(title, names, found)


def show(comparison: Comparison) -> list[dict[str, Any]]:
    """Print medians by problem; mean ranks, and geometric means of the ratio to the default, by group of problems."""
    names = comparison.names
    print(f"\n{comparison.title}: median of the final regret\n")
    print(f"{'problem':<46}{'seeds':>6}" + "".join(f"{name:>12}" for name in names))
    for problem, by_seed in comparison.regrets.items():
        medians = np.median(list(by_seed.values()), axis=0)
        print(f"{in_words(problem):<46}{len(by_seed):>6}" + "".join(f"{m:12.3g}" for m in medians))
    print(f"\n{'mean rank; ratio of regrets to the first':<46}{'runs':>6}", end="")
    print("".join(f"{name:>18}" for name in names))
    table = []
    for group, problems in groups_of(comparison.regrets).items():
        ranks, ratios, n = standing(comparison, problems)
        table.append({"group": group, "runs": n, "ranks": ranks, "ratios": ratios, "names": names})
        cells = (f"{rank:.2f}; x {ratio:.2f}" for rank, ratio in zip(ranks, ratios, strict=True))
        print(f"{group:<46}{n:>6}" + "".join(f"{cell:>18}" for cell in cells))
    return table


def standing(comparison: Comparison, problems: Sequence[tuple[Any, ...]]) -> tuple[list[float], list[float], int]:
    """Mean ranks, geometric mean ratios to the first contestant, and the number of runs of each."""
    rows = np.array(
        [
            np.maximum(row, FLOOR * value_range(problem[0], problem[1]))
            for problem in problems
            for row in comparison.regrets[problem].values()
        ]
    )
    better, equal = rows[:, None, :] < rows[:, :, None], rows[:, None, :] == rows[:, :, None]
    ranks = 0.5 + (better + 0.5 * equal).sum(axis=2)  # equal ones share theirs; each is equal to itself
    ratios = np.exp(np.log(rows / rows[:, :1]).mean(axis=0))
    return ranks.mean(axis=0).tolist(), ratios.tolist(), len(rows)


def groups_of(problems: Mapping[tuple[Any, ...], Any]) -> dict[str, list[tuple[Any, ...]]]:
    """All problems, and those that share one of their properties, where they differ in it."""
    groups = {"all": list(problems)}
    kinds_of: tuple[Callable[[tuple[Any, ...]], str], ...] = (
        lambda p: str(p[0]),
        lambda p: f"d = {p[1]}",
        lambda p: f"{p[0]}, d = {p[1]}",
        lambda p: "noisy" if p[2] else "exact",
        lambda p: f"{p[3]} cost",
        lambda p: f"values x {p[4]:g}",
    )
    for words in kinds_of:
        kinds = dict.fromkeys(map(words, problems))
        if len(kinds) > 1:
            groups |= {kind: [p for p in problems if words(p) == kind] for kind in kinds}
    return groups


def in_words(problem: tuple[Any, ...]) -> str:
    function, d, noisy, cost, scale = problem
    scaled = "" if scale == 1.0 else f", x {scale:g}"
    return f"{function}, d = {d}, {'noisy' if noisy else 'exact'}, {cost} cost{scaled}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8, help="runs of each configuration")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1, help="processes, each with one thread")
    parser.add_argument("--max-seconds", type=float, default=math.inf, help="begin no run after so long")
    parser.add_argument("--dimensions", nargs="+", type=int, choices=DIMENSIONS, default=DEFAULT_DIMENSIONS)
    parser.add_argument("--costs", nargs="+", choices=COSTS, default=COSTS)
    parser.add_argument("--trials", type=int, default=10, help="per dimension, that the budget is for")
    parser.add_argument("--integers", action="store_true", help="every other coordinate in 20 steps (uniform cost)")
    parser.add_argument("--only", choices=STUDIES, help="one of the comparisons")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="those compared")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args()
    # Seed by seed, so that whatever time there is gives whole comparisons.
    costs = ("uniform",) if arguments.integers else arguments.costs
    problems = arguments.dimensions, costs, arguments.trials, arguments.integers, arguments.only
    settings = [setting for seed in range(arguments.seeds) for setting in settings_of(seed, *problems)]
    settings = [setting for setting in settings if setting.model in arguments.models]
    regrets = run_all(settings, arguments.jobs, arguments.max_seconds)
    comparisons = (
        compared({s: r for s, r in regrets.items() if s.scale == 1.0}, "model", tuple(arguments.models), "models"),
        compared(regrets, "start", STARTS, "starts"),
        compared(
            {s: r for s, r in regrets.items() if s.model == "default"}, "rate", tuple(RATES), "first rate of PBGI-D"
        ),
        compared(regrets, "search", SEARCHES, "searches"),
    )
    summary = {comparison.title: show(comparison) for comparison in comparisons if comparison.regrets}
    if arguments.json:
        results: dict[str, Any] = {"pbgi": pbgi.__version__, "numpy": np.__version__, "summary": summary}
        results["runs"] = [{**setting._asdict(), "regret": regret} for setting, regret in regrets.items()]
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
