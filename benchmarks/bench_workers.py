"""Eight workers on one core: suggestions per second from a shared study, and how many points were given out twice.

Workers share a seed, as scripts that are started several times do. Each is a process of its own and does nothing but
ask for a point and tell its value, so that all the time goes into choosing, waiting for others to choose, and the
storage. The study has its first trials already. All processes, a PostgreSQL server included, are kept on one core; the
samplers are measured one after the other on the same machine, so compare them within one run.

    python benchmarks/bench_workers.py                 SQLite and, where there is a server, PostgreSQL
    python benchmarks/bench_workers.py --samplers PBGI TPE GP --trials 48
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from timing import report

import pbgi
from pbgi.integrations.optuna import PBGISampler

sys.path.append(str(Path(__file__).parents[1] / "tests" / "integrations"))
from postgresql_server import PostgresqlServer, server_binaries

TARGET = 5.0  # suggestions per second
NAME, N_WORKERS, N_TRIALS = "shared", 8, 100
SPACE: dict[str, Any] = {
    "rate": FloatDistribution(1e-5, 1e-1, log=True),
    "layers": IntDistribution(1, 8),
    "dropout": FloatDistribution(0.0, 0.9),
    "width": IntDistribution(16, 512, log=True),
}
SAMPLERS: dict[str, Callable[[], Any]] = {
    "PBGI": lambda: PBGISampler(seed=0, search_space=SPACE),
    "TPE": lambda: optuna.samplers.TPESampler(seed=0),
    "GP": lambda: optuna.samplers.GPSampler(seed=0),
}


def value_of(params: dict[str, Any]) -> tuple[float, float]:
    """A loss with its best point inside the space, and a cost that grows with the network."""
    layers, width = params["layers"], params["width"]
    off = (np.log10(params["rate"]) + 2.5) ** 2 + (params["dropout"] - 0.2) ** 2
    return float(off + 0.05 * (layers - 5) ** 2 + (np.log(width) - 5.0) ** 2), 0.01 * layers * width


def step(study: Any) -> None:
    """One trial."""
    trial = study.ask(SPACE)
    value, cost = value_of(trial.params)
    trial.set_user_attr("cost", cost)
    study.tell(trial, value)


def work(url: str, sampler: str, n_trials: int, ready: Any, done: Any) -> None:
    """A worker process: some trials, when all are ready; the first one, which loads what is needed, before that."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name=NAME, storage=url, sampler=SAMPLERS[sampler]())
    step(study)
    ready.wait()
    for _ in range(n_trials):
        step(study)
    done.put(time.time())


def prepare(url: str, n: int) -> Any:
    """A study with n completed trials at random points."""
    study = optuna.create_study(study_name=NAME, storage=url, sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(n):
        step(study)
    return study


def measure(url: str, sampler: str, n_workers: int, n_trials: int) -> dict[str, Any]:
    """Suggestions per second while the study grows by `n_trials`, half of them before it has N_TRIALS."""
    each = n_trials // n_workers
    study = prepare(url, N_TRIALS - n_workers - n_workers * each // 2)
    processes = multiprocessing.get_context("spawn")
    ready, done = processes.Barrier(n_workers + 1), processes.Queue()
    workers = [processes.Process(target=work, args=(url, sampler, each, ready, done)) for _ in range(n_workers)]
    for worker in workers:
        worker.start()
    ready.wait()
    begun = time.time()
    ended = max(done.get() for _ in workers)
    for worker in workers:
        worker.join()
    points = Counter(tuple(sorted(trial.params.items())) for trial in study.get_trials(deepcopy=False))
    twice = sum(count - 1 for count in points.values())
    return {"per_second": n_workers * each / (ended - begun), "n_trials": n_workers * each, "duplicates": twice}


@contextlib.contextmanager
def sqlite() -> Iterator[str]:
    """A storage that is a file."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/study.db"


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """A storage that is a server, made for the occasion."""
    binaries = server_binaries()
    assert binaries is not None
    server = PostgresqlServer(binaries)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PGPASSFILE"] = str(Path(folder) / "pgpass")
        server.write_password_file(Path(os.environ["PGPASSFILE"]))
        server.start()
        try:
            yield server.url
        finally:
            server.remove()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=["PBGI", "TPE"])
    parser.add_argument("--storages", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"])
    parser.add_argument("--workers", type=int, default=N_WORKERS)
    parser.add_argument("--trials", type=int, default=64, help="suggestions that are timed, of all workers together")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of this process and of all that it starts
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    met, rows = [], []
    for kind in arguments.storages:
        if kind == "postgresql" and server_binaries() is None:
            print("PostgreSQL: there is no server here")
            continue
        for sampler in arguments.samplers:
            with (sqlite if kind == "sqlite" else postgresql)() as url:
                row = measure(url, sampler, arguments.workers, arguments.trials)
            rows.append({"storage": kind, "sampler": sampler, **row})
            text = f"{row['per_second']:6.2f} suggestions/s, {row['duplicates']} of {row['n_trials']} twice"
            print(f"{kind:12}{sampler:6}{text}", flush=True)
            if sampler == "PBGI":
                met += [report(f"{kind}: seconds per suggestion", 1.0 / row["per_second"], 1.0 / TARGET, "s")]
                met += [report(f"{kind}: points twice", float(row["duplicates"]), 0.0, "")]
    if arguments.json:
        arguments.json.write_text(json.dumps({"pbgi": pbgi.__version__, "rows": rows}, indent=2) + "\n")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
