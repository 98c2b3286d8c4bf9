"""Where pbgi stands beside Optuna, Ax, SMAC3, scikit-optimize and NePS: time per suggestion, and result per cost.

Time: processor seconds to take in a result and suggest the next point, with n observations; medians over processes
that take turns. Result: the regret of the best point found by 25, 50 and 100 % of a budget, on the problems of
`peer_problems.py`; a trial that ends beyond the budget does not count. Every run is a process of its own with one
thread (`peer_runs.py`), every optimizer has its package's defaults (`peers.py`). Slow ones run fewer seeds, and the
tables say how many. Packages that are not installed do not take part. Runs that are done are kept, one line of JSON
each, and not done again.

    python benchmarks/bench_peers.py                                    about an hour of processor time
    python benchmarks/bench_peers.py --python neps=/path/to/python      some packages need an environment of their own
    python benchmarks/bench_peers.py --peers pbgi random --seeds 2      a look
    python benchmarks/bench_peers.py --tables                           tables and picture of what has been run
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from peer_problems import PROBLEMS
from peer_runs import run_apart
from peer_tables import show, summarise
from peers import PEERS

HERE = Path(__file__).parent
SIZES = ((4, 32), (8, 64))  # d, n of the timing
ROUNDS, REPEATS = 3, 3
SEEDS = 8
# The most seeds of those that take longer: 10 to 30, and 40 to 100, processor seconds per run.
FEWER_SEEDS = {"smac": 4, "skopt": 4, "skopt-eips": 4, "ax": 2, "neps": 2, "neps-cost": 2}
Job = Mapping[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# What is to be run -----------------------------------------------------------------------------------------------


def speed_jobs(peers: Sequence[str]) -> Iterator[Job]:
    """Round by round, so that a busy moment of the machine hits all."""
    for turn in range(ROUNDS):
        for d, n in SIZES:
            for peer in (name for name in peers if name != "random"):
                yield {"kind": "speed", "peer": peer, "d": d, "n": n, "repeats": REPEATS, "seed": turn}


def quality_jobs(peers: Sequence[str], problems: Sequence[str], seeds: int, share: float) -> Iterator[Job]:
    """Seed by seed, so that whatever time there is gives whole comparisons."""
    for seed in range(seeds):
        for problem in problems:
            for peer in peers:
                if seed < FEWER_SEEDS.get(peer, seeds):
                    yield {"kind": "quality", "peer": peer, "problem": problem, "seed": seed, "share": share}


# Running it ------------------------------------------------------------------------------------------------------


class Interpreters:
    """Which Python runs a contestant, and the version of its package there."""

    def __init__(self, own: Sequence[str]) -> None:
        apart = dict(entry.split("=", 1) for entry in own)
        unknown = sorted(set(apart) - {entry.module for entry in PEERS.values()})
        if unknown:
            raise SystemExit(f"--python must name a module of a peer, as in neps=/path/to/python; got {unknown}")
        self._python = {name: apart.get(entry.module, sys.executable) for name, entry in PEERS.items()}
        found = {python: run_apart(python, {"kind": "versions"}) for python in set(self._python.values())}
        self.versions = {name: found[p][name] for name, p in self._python.items() if name in found[p]}

    def installed(self, wanted: Sequence[str]) -> list[str]:
        """Those that can take part; of the others it is said what they lack."""
        for name in wanted:
            if name not in self.versions:
                say(
                    f"{name} does not take part: pip install {PEERS[name].distribution}, or name a --python that has it"
                )
        return [name for name in wanted if name in self.versions]

    def run(self, job: Job) -> dict[str, Any]:
        """The job with its outcome."""
        version = self.versions[job["peer"]]
        return {**job, "version": version, **run_apart(self._python[job["peer"]], job)}


def done_in(raw: Path) -> list[dict[str, Any]]:
    """The runs kept so far; a line that was cut off by a kill is left out."""
    runs = []
    for line in raw.read_text().splitlines() if raw.exists() else []:
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:
            say(f"a line of {raw} is not whole, and is done again: {line[:60]}")
    return runs


def run_all(jobs: Sequence[Job], interpreters: Interpreters, raw: Path, n_processes: int) -> None:
    """Run what has not been run, and write each down as it ends."""
    kept = done_in(raw)
    left = [job for job in jobs if not any(job.items() <= run.items() for run in kept)]
    say(f"{len(jobs) - len(left)} of {len(jobs)} runs are there already")
    raw.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(n_processes) as pool, raw.open("a") as file:
        running = [pool.submit(interpreters.run, job) for job in left]
        for count, future in enumerate(as_completed(running), 1):
            run = future.result()
            file.write(json.dumps(run) + "\n")
            file.flush()
            where = run.get("problem") or f"d = {run.get('d')}"
            trouble = f": {run['error']}" if run.get("error") else ""
            took = f"{run.get('wall', 0.0):.0f} s"
            say(f"{count} of {len(left)}: {run['peer']}, {where}, seed {run['seed']}, {took}{trouble}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs per problem of those that are quick")
    parser.add_argument("--share", type=float, default=1.0, help="of the budgets, for a quick try")
    parser.add_argument("--python", nargs="+", default=[], metavar="MODULE=PATH", help="interpreters of their own")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time; timings are taken one at a time")
    parser.add_argument("--no-speed", action="store_true", help="leave out the timing")
    parser.add_argument("--tables", action="store_true", help="run nothing")
    parser.add_argument("--raw", type=Path, default=HERE / "results/raw/peers.jsonl", help="where runs are kept")
    parser.add_argument("--json", type=Path, default=HERE / "results/peers.json", help="where the summary goes")
    parser.add_argument("--picture", type=Path, help="where the picture goes; needs matplotlib")
    arguments = parser.parse_args()
    if not arguments.tables:
        interpreters = Interpreters(arguments.python)
        peers = interpreters.installed(arguments.peers)
        quality = quality_jobs(peers, arguments.problems, arguments.seeds, arguments.share)
        run_all(list(quality), interpreters, arguments.raw, arguments.jobs)
        if not arguments.no_speed:
            run_all(list(speed_jobs(peers)), interpreters, arguments.raw, 1)
    runs = done_in(arguments.raw)
    summary = summarise(runs)
    show(summary)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(summary, indent=1) + "\n")
    if arguments.picture:
        from peer_picture import draw

        draw(runs, summary, arguments.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
