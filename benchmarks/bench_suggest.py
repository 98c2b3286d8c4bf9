"""Time of one suggestion beside Optuna's GPSampler and BoTorch, on the same data and one thread.

Every contestant is told the same n observations, suggests once to warm up, and then goes on as in a run: told the last
result, it suggests the next point, and only that is timed, in processor seconds: waiting for a busy machine is not
counted. They take turns, so that a busy moment hits all of them, and what counts is the ratio of medians.

    python benchmarks/bench_suggest.py                  against the peers that are installed
    python benchmarks/bench_suggest.py --growth         many observations: time at 1000, memory at 2000
    python benchmarks/bench_suggest.py --threads        default thread settings beside manual ones
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits
from timing import report

import pbgi

N_WAVES = 64
REPEATS = {"pbgi": 18, "optuna": 6, "botorch": 3}
FEWER = {"botorch": 1}  # repeats from FEWER_FROM observations on
FEWER_FROM = 500
# (d, n): at most this share of the time of a peer, and the share aimed for.
TARGETS: dict[tuple[int, int], dict[str, tuple[float, float]]] = {
    (4, 32): {"optuna": (1 / 5, 1 / 10), "botorch": (1 / 20, 1 / 20)},
    (8, 64): {"optuna": (1 / 5, 1 / 10), "botorch": (1 / 20, 1 / 20)},
    (16, 128): {"optuna": (1 / 3, 1 / 10), "botorch": (1 / 12, 1 / 12)},
    (16, 500): {"optuna": (1 / 2, 1 / 2), "botorch": (1 / 10, 1 / 10)},
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Problem:
    """A smooth random function on the unit cube, to be minimized, and the cost of a point."""

    def __init__(self, d: int) -> None:
        rng = np.random.default_rng(d)
        self.d = d
        self._frequencies = 1.5 * rng.standard_normal((d, N_WAVES))
        self._phases, self._amplitudes = rng.uniform(0, 2 * np.pi, N_WAVES), rng.standard_normal(N_WAVES)

    def __call__(self, x: Sequence[float]) -> tuple[float, float]:
        """Value and cost."""
        waves = np.cos(np.asarray(x) @ self._frequencies + self._phases)
        return float(waves @ self._amplitudes), 1.0 + 20.0 * float(np.mean(x))

    def points(self, n: int) -> list[list[float]]:
        """The first n points, at random."""
        drawn: list[list[float]] = np.random.default_rng(n).random((n, self.d)).tolist()
        return drawn


class Contestant(Protocol):
    """Suggests points."""

    def tell(self, x: list[float], value: float, cost: float) -> None:
        """What the point gave; also for points it did not suggest."""

    def suggest(self) -> list[float]:
        """The next point."""


class Ours:
    """The default policy, cost learned, under a budget; the fit starts from that of the step before, as in any run."""

    def __init__(self, d: int) -> None:
        self._names = [f"x{k}" for k in range(d)]
        space = {name: pbgi.Float(0.0, 1.0) for name in self._names}
        self._optimizer = pbgi.Optimizer(space, budget=1000.0, seed=0)
        self._trial: Any = None

    def tell(self, x: list[float], value: float, cost: float) -> None:
        """As the contestant keeps it."""
        observed = self._trial if self._trial is not None else dict(zip(self._names, x, strict=True))
        self._optimizer.tell(observed, value, cost=cost)
        self._trial = None

    def suggest(self) -> list[float]:
        """As the contestant finds it."""
        assert self._optimizer.should_stop() is None
        self._trial = self._optimizer.ask()
        return [self._trial.params[name] for name in self._names]


class OptunaGP:
    """Optuna's Gaussian process sampler with its defaults; blind to cost."""

    def __init__(self, d: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._space: dict[str, Any] = {f"x{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(d)}
        self._study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
        self._trial: Any = None

    def tell(self, x: list[float], value: float, cost: float) -> None:  # noqa: ARG002
        """As the contestant keeps it."""
        if self._trial is not None:
            self._study.tell(self._trial, value)
        else:
            params = dict(zip(self._space, x, strict=True))
            self._study.add_trial(
                self._optuna.trial.create_trial(params=params, distributions=self._space, value=value)
            )
        self._trial = None

    def suggest(self) -> list[float]:
        """As the contestant finds it."""
        self._trial = self._study.ask()
        return [self._trial.suggest_float(name, 0.0, 1.0) for name in self._space]


class BoTorchLogEI:
    """The usual BoTorch loop: fit, log expected improvement, 10 d restarts from 200 d raw samples; blind to cost."""

    def __init__(self, d: int) -> None:
        self._d = d
        self._x: list[list[float]] = []
        self._y: list[float] = []

    def tell(self, x: list[float], value: float, cost: float) -> None:  # noqa: ARG002
        """As the contestant keeps it."""
        self._x.append(x)
        self._y.append(-value)

    def suggest(self) -> list[float]:
        """As the contestant finds it."""
        import torch
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim.optimize import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        X, y = torch.tensor(self._x, dtype=torch.float64), torch.tensor(self._y, dtype=torch.float64)[:, None]
        model = SingleTaskGP(X, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        bounds = torch.stack([torch.zeros_like(X[0]), torch.ones_like(X[0])])
        acquisition = LogExpectedImprovement(model, best_f=y.max())
        found, _ = optimize_acqf(acquisition, bounds, 1, num_restarts=10 * self._d, raw_samples=200 * self._d)
        x: list[float] = found[0].tolist()
        return x


CONTESTANTS: dict[str, Callable[[int], Contestant]] = {"pbgi": Ours, "optuna": OptunaGP, "botorch": BoTorchLogEI}
NEEDS = {"pbgi": (), "optuna": ("optuna", "torch"), "botorch": ("torch", "botorch")}


def installed_contestants() -> list[str]:
    """Those that can take part; of the others it is said what they lack."""
    names = []
    for name, modules in NEEDS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        if missing:
            say(f"{name} does not take part: {' and '.join(missing)} missing; pip install botorch")
        else:
            names.append(name)
    return names


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Run:
    """A contestant on a problem, after n observations and a suggestion to warm up."""

    def __init__(self, name: str, d: int, n: int) -> None:
        self._problem = Problem(d)
        self._contestant = CONTESTANTS[name](d)
        for x in self._problem.points(n - 1):
            self._contestant.tell(x, *self._problem(x))
        self._x = self._contestant.suggest()

    def step(self) -> float:
        """Processor seconds to take in the last result and suggest a point."""
        outcome = self._problem(self._x)
        start = time.process_time()
        self._contestant.tell(self._x, *outcome)
        self._x = self._contestant.suggest()
        return time.process_time() - start


def seconds_of(names: Sequence[str], d: int, n: int) -> dict[str, list[float]]:
    """Seconds per suggestion, contestants taking turns: the fast ones have several goes per round."""
    rounds = min(REPEATS[name] for name in names)
    runs, seconds = {name: Run(name, d, n) for name in names}, {name: list[float]() for name in names}
    # Only now: the limit reaches the libraries that are loaded, and some are loaded by the first suggestion.
    with threadpool_limits(limits=1):
        for turn in range(rounds):
            for name, run in runs.items():
                repeats = REPEATS[name] // rounds
                if n >= FEWER_FROM and turn >= FEWER.get(name, rounds):
                    repeats = 0
                seconds[name] += [run.step() for _ in range(repeats)]
            say(f"d = {d}, n = {n}: round {turn + 1} of {rounds}")
    return seconds


# The three measurements ------------------------------------------------------------------------------------------


def against_peers(results: dict[str, Any]) -> list[bool]:
    """The table of times, and the share of each peer's time."""
    names = installed_contestants()
    if "torch" in {module for name in names for module in NEEDS[name]}:
        import torch

        torch.set_num_threads(1)  # of this process only
    warnings.simplefilter("ignore")  # of the peers, about what they do not like in their own data
    rows: list[dict[str, Any]] = []
    met = []
    for d, n in TARGETS:
        seconds = seconds_of(names, d, n)
        rows.append({"d": d, "n": n, **{name: statistics.median(times) for name, times in seconds.items()}})
    results["suggestion_seconds"] = rows
    print(f"seconds per suggestion, median, one thread: {', '.join(names)}\n")
    print(f"{'d, n':>10}" + "".join(f"{name:>10}" for name in names) + "".join(f"{'x ' + p:>12}" for p in names[1:]))
    for row in rows:
        cells = "".join(f"{row[name]:10.3f}" for name in names)
        times = "".join(f"{row[peer] / row['pbgi']:12.1f}" for peer in names[1:])
        print(f"{row['d']:>5}, {row['n']:<3}{cells}{times}")
    print()
    for row in rows:
        for peer in names[1:]:
            bound, aim = TARGETS[row["d"], row["n"]][peer]
            aimed = "" if aim == bound else f" (aim {aim:.2g})"
            what = f"d = {row['d']}, n = {row['n']}: share of the time of {peer}{aimed}"
            met.append(report(what, row["pbgi"] / row[peer], round(bound, 4), "of it"))
    return met


def growth(results: dict[str, Any]) -> list[bool]:
    """Time with a thousand observations, memory with two thousand; in processes of their own, without torch."""
    many = child(16, 1000, 20)
    say("d = 16, n = 1000: done")
    most = child(16, 2000, 2)
    say("d = 16, n = 2000: done")
    p95, peak = float(np.quantile(many["seconds"], 0.95)), most["peak_bytes"] / 1e6
    results["growth"] = {
        "p95_seconds_at_1000": p95,
        "peak_megabytes_at_2000": peak,
        "seconds_at_2000": statistics.median(most["seconds"]),
    }
    return [
        report("d = 16, n = 1000: p95 of a suggestion", p95, 5.0, "s"),
        report("d = 16, n = 2000: peak memory of the process", peak, 500.0, "MB"),
    ]


def threads(results: dict[str, Any]) -> list[bool]:
    """Threads as they come beside the best of some settings by hand, alone and with four processes at once."""
    settings: dict[str, int | None] = {"default": None, "1 thread": 1, "all threads": os.cpu_count()}
    met, table = [], []
    for (d, n), n_processes in (((8, 64), 1), ((16, 500), 1), ((8, 64), 4)):
        seconds: dict[str, list[float]] = {name: [] for name in settings}
        for _ in range(2):
            for name, n_threads in settings.items():
                seconds[name] += [t for run in children(n_processes, d, n, 7, n_threads) for t in run["seconds"]]
            say(f"threads: d = {d}, n = {n}, {n_processes} at once")
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        table.append({"d": d, "n": n, "processes": n_processes, **medians})
        best = min(medians[name] for name in settings if name != "default")
        what = f"d = {d}, n = {n}, {n_processes} at once: default threads beside the best by hand"
        met.append(report(what, medians["default"] / best, 1.3, "x"))
    results["threads"] = table
    return met


# Processes of their own ------------------------------------------------------------------------------------------


def child(d: int, n: int, repeats: int) -> dict[str, Any]:
    return children(1, d, n, repeats, None)[0]


def children(n_processes: int, d: int, n: int, repeats: int, n_threads: int | None) -> list[dict[str, Any]]:
    """Run `measure` in processes at once, with so many threads by environment variable, or as it comes."""
    environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    if n_threads is not None:
        environment |= dict.fromkeys(THREAD_VARIABLES, str(n_threads))
    command = [sys.executable, __file__, "--measure", str(d), str(n), str(repeats)]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(n_processes)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    return [json.loads(output) for output in outputs]


def measure(d: int, n: int, repeats: int) -> None:
    """Time suggestions in this process and print the times with the peak memory, as JSON."""
    run = Run("pbgi", d, n)
    seconds = [run.step() for _ in range(repeats)]
    assert "torch" not in sys.modules
    unit = 1 if sys.platform == "darwin" else 1024
    peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "peak_bytes": peak}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true", help="time and memory with many observations")
    parser.add_argument("--threads", action="store_true", help="default thread settings beside manual ones")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    parser.add_argument("--measure", type=int, nargs=3, metavar=("D", "N", "REPEATS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*arguments.measure)
        return 0
    results: dict[str, Any] = {"pbgi": pbgi.__version__, "numpy": np.__version__, "processors": os.cpu_count()}
    chosen = [f for f, wanted in ((growth, arguments.growth), (threads, arguments.threads)) if wanted]
    met = [verdict for measurement in chosen or [against_peers] for verdict in measurement(results)]
    if arguments.json:
        arguments.json.write_text(json.dumps(results | {"targets_met": all(met)}, indent=2) + "\n")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
