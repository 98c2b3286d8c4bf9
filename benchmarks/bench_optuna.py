"""What Optuna's study layer adds to the engine: the sampler's time per trial beside the engine's own ask and tell.

Both know the same n observations and go on from there, taking turns, so that a busy moment of the machine hits both.
The study lives in a SQLite file. Of each trial three times are taken: what the sampler took (all that Optuna calls of
it, with its readings and writings), what the whole trial took, and what the engine took for one ask and one tell. A
study with Optuna's random sampler shows what Optuna and the disk take by themselves. The ratio is also given in
processor time, without waiting for the disk: where others keep that busy, the first says more of them than of the
sampler.

    python benchmarks/bench_optuna.py               200 trials
    python benchmarks/bench_optuna.py --growth      1,000 trials: ratio, and how time and writings grow
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from bench_suggest import Problem
from optuna.distributions import FloatDistribution
from threadpoolctl import threadpool_limits
from timing import report

import pbgi
from pbgi.integrations.optuna import PBGISampler

RATIO = 1.3
DIMENSIONS = (4, 8, 16)
N_OBSERVED = 200
N_TIMED = 15
WRITINGS = 1  # per trial of a single worker: what was suggested


def now() -> Any:
    """The time, and the processor time of this process."""
    return np.array([time.perf_counter(), time.process_time()])


class TimedSampler(PBGISampler):
    """The sampler, and a clock that runs while Optuna is inside of it."""

    seconds = np.zeros(2)

    def infer_relative_search_space(self, study: Any, trial: Any) -> Any:
        """Timed."""
        return self._timed(super().infer_relative_search_space, study, trial)

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> Any:
        """Timed."""
        return self._timed(super().sample_relative, study, trial, search_space)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        """Timed."""
        self._timed(super().after_trial, study, trial, state, values)

    def _timed(self, method: Any, *arguments: Any) -> Any:
        start = now()
        try:
            return method(*arguments)
        finally:
            self.seconds = self.seconds + now() - start


class Engine:
    """The bare engine."""

    def __init__(self, problem: Problem, n: int) -> None:
        self._problem, self._names = problem, [f"x{k}" for k in range(problem.d)]
        self._optimizer = pbgi.Optimizer({name: pbgi.Float(0.0, 1.0) for name in self._names}, seed=0)
        for x in problem.points(n):
            value, cost = problem(x)
            self._optimizer.tell(dict(zip(self._names, x, strict=True)), value, cost=cost)

    def step(self) -> Any:
        """Seconds of one ask and one tell."""
        start = now()
        trial = self._optimizer.ask()
        asked = now() - start
        point: list[Any] = [trial.params[name] for name in self._names]
        value, cost = self._problem(point)
        start = now()
        self._optimizer.tell(trial, value, cost=cost)
        return asked + now() - start


class Study:
    """A study in a SQLite file."""

    def __init__(self, problem: Problem, n: int, folder: str, sampler: Any) -> None:
        self._problem, self._sampler = problem, sampler
        self._space: dict[str, Any] = {f"x{k}": FloatDistribution(0.0, 1.0) for k in range(problem.d)}
        url = f"sqlite:///{folder}/{type(sampler).__name__}-{problem.d}-{n}.db"
        self._study = optuna.create_study(storage=url, sampler=sampler)
        self._study.add_trials([self._observed(x) for x in problem.points(n)])

    def _observed(self, x: list[float]) -> Any:
        value, cost = self._problem(x)
        params = dict(zip(self._space, x, strict=True))
        return optuna.trial.create_trial(
            params=params, distributions=self._space, value=value, user_attrs={"cost": cost}
        )

    def step(self) -> tuple[Any, Any]:
        """Seconds of one trial: in the sampler, and all of it."""
        self._sampler.seconds = np.zeros(2)
        start = now()
        trial = self._study.ask()
        value, cost = self._problem([trial.suggest_float(name, 0.0, 1.0) for name in self._space])
        trial.set_user_attr("cost", cost)
        self._study.tell(trial, value)
        return self._sampler.seconds, now() - start

    def writings(self) -> int:
        """Attributes that the sampler has stored with the last trial."""
        return len(self._study.get_trials(deepcopy=False)[-1].system_attrs)


def measure(d: int, n: int, n_timed: int, where: Path | None) -> dict[str, Any]:
    """Medians of the engine and of the study, taking turns."""
    problem = Problem(d)
    with tempfile.TemporaryDirectory(dir=where) as folder:
        engine, study = Engine(problem, n), Study(problem, n, folder, TimedSampler(seed=0))
        bare = Study(problem, n, folder, optuna.samplers.RandomSampler(seed=0))
        engine.step(), study.step(), bare.step()  # the first fit has no warm start
        with threadpool_limits(limits=1):
            times = np.array([(engine.step(), *study.step(), bare.step()[1]) for _ in range(n_timed)])
        writings = study.writings()
    medians = np.median(times[:, :, 0], axis=0).tolist()
    ratios = np.median(times[:, 1] / times[:, 0], axis=0).tolist()
    row = {"d": d, "n": n, **dict(zip(("engine", "sampler", "trial", "optuna"), medians, strict=True))}
    return row | {"ratio": ratios[0], "processor_ratio": ratios[1], "writings": writings}


def show(rows: list[dict[str, Any]]) -> None:
    print("seconds per trial, median, one thread, SQLite\n")
    titles = ("engine", "sampler", "ratio", "processor", "whole trial", "random sampler")
    print(f"{'d, n':>10}" + "".join(f"{title:>16}" for title in titles))
    for row in rows:
        cells = [row[name] for name in ("engine", "sampler", "ratio", "processor_ratio", "trial", "optuna")]
        print(f"{row['d']:>5}, {row['n']:<4}" + "".join(f"{cell:16.3f}" for cell in cells))
    print()


def verdicts(row: dict[str, Any]) -> list[bool]:
    what = f"d = {row['d']}, n = {row['n']}: sampler beside the engine"
    return [
        report(what, row["ratio"], RATIO, "x"),
        report(what + ", processor time", row["processor_ratio"], RATIO, "x"),
    ]


def overhead(results: dict[str, Any], where: Path | None) -> list[bool]:
    """The sampler beside the engine."""
    rows = [measure(d, N_OBSERVED, N_TIMED, where) for d in DIMENSIONS]
    results["overhead"] = rows
    show(rows)
    return [verdict for row in rows for verdict in verdicts(row)]


def growth(results: dict[str, Any], where: Path | None) -> list[bool]:
    """The same with a thousand trials."""
    row = measure(8, 1000, 5, where)
    results["growth"] = row
    show([row])
    return [
        *verdicts(row),
        report("d = 8, n = 1000: writings of the sampler per trial", float(row["writings"]), float(WRITINGS), ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true", help="a thousand trials")
    parser.add_argument("--folder", type=Path, help="where the SQLite files live: the disk is part of what is measured")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    results: dict[str, Any] = {"pbgi": pbgi.__version__, "numpy": np.__version__, "optuna": optuna.__version__}
    met = (growth if arguments.growth else overhead)(results, arguments.folder)
    if arguments.json:
        arguments.json.write_text(json.dumps(results | {"targets_met": all(met)}, indent=2) + "\n")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
