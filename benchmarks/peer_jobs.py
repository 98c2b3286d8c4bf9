"""Runs of several contestants: which are to be made, by which Python, and what has been made already.

A run is a job with its outcome, kept as a line of JSON when it ends; a job that has a line is not run again.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from peer_runs import run_apart
from peers import PEERS

Job = Mapping[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def quality_jobs(seeds: Mapping[str, int], problems: Sequence[str], share: float) -> Iterator[Job]:
    """Seed by seed, so that whatever time there is gives whole comparisons; `seeds` says how many each peer runs."""
    for seed in range(max(seeds.values(), default=0)):
        for problem in problems:
            for peer in seeds:
                if seed < seeds[peer]:
                    yield {"kind": "quality", "peer": peer, "problem": problem, "seed": seed, "share": share}


class Interpreters:
    """Which Python runs a contestant, and the version of its package there.

    Args:
        own: "module=path" of those that do not run by this one.
        given: What every job is told and none is known by, such as where its data lie.
    """

    def __init__(self, own: Sequence[str], given: Mapping[str, Any] | None = None) -> None:
        self._given = given or {}
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
        return {**job, "version": version, **run_apart(self._python[job["peer"]], {**job, **self._given})}


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
