"""One run of one contestant, in a process of its own: what it spent and found, or how long it took to suggest.

Packages differ in what they import, in the threads they start and in the global generators they draw from, so none
shares a process with another. A job and its outcome are JSON; `bench_peers.py` hands them out and collects.

    python benchmarks/peer_runs.py '{"kind": "quality", "peer": "pbgi", "problem": "Levy", "seed": 0}'
    python benchmarks/peer_runs.py '{"kind": "speed", "peer": "pbgi", "d": 4, "n": 32, "repeats": 3, "seed": 0}'
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MAX_SECONDS = 3600.0  # a hundred times what most take: the machine may have other work


def quality(job: Mapping[str, Any]) -> dict[str, Any]:
    """Spend the budget. A peer that breaks down keeps what it has found."""
    from peer_problems import N_TRIALS
    from peers import PEERS, Task

    problem = problem_of(job)
    budget = problem.budget * job.get("share", 1.0)
    peer = PEERS[job["peer"]].make(Task(problem.space, budget, N_TRIALS, job["seed"]))
    values: list[float] = []
    regrets: list[float] = []
    costs: list[float] = []
    error, spent = None, 0.0
    try:
        while spent < budget and len(regrets) < problem.max_trials:
            params = peer.ask()
            if params is None:
                break
            value, cost = problem.evaluate(params)
            peer.tell(params, value, cost)
            spent += cost
            values.append(value)
            regrets.append(problem.regret(params, value))
            costs.append(cost)
    except Exception as caught:  # whatever breaks in a peer is an outcome
        error = f"{type(caught).__name__}: {caught}"
    return {"budget": budget, "values": values, "regrets": regrets, "costs": costs, "error": error}


def problem_of(job: Mapping[str, Any]) -> Any:
    """A formula, or a table where the job says in which folder the tables lie."""
    if "tables" in job:
        from real_tables import Table

        return Table.load(Path(job["tables"]), job["problem"]).problem(job["seed"])
    from peer_problems import PROBLEMS

    return PROBLEMS[job["problem"]](job["seed"])


def speed(job: Mapping[str, Any]) -> dict[str, Any]:
    """Processor seconds to take in a result and suggest the next point, after n observations."""
    from bench_suggest import Problem
    from peers import PEERS, Task

    import pbgi

    d, n = job["d"], job["n"]
    names = [f"x{k}" for k in range(d)]
    problem = Problem(d)
    peer = PEERS[job["peer"]].make(Task(dict.fromkeys(names, pbgi.Float(0.0, 1.0)), 1000.0, 2 * n, job["seed"]))
    peer.remember([(dict(zip(names, x, strict=True)), *problem(x)) for x in problem.points(n - 1)])
    seconds: list[float] = []
    params = peer.ask()
    for _ in range(job["repeats"]):
        if params is None:
            break
        outcome = problem(list(params.values()))
        start = time.process_time()
        peer.tell(params, *outcome)
        params = peer.ask()
        seconds.append(time.process_time() - start)
    return {"seconds": seconds}


def versions() -> dict[str, str]:
    """Of the packages that this interpreter has, by contestant."""
    from peers import PEERS

    found = {name: entry for name, entry in PEERS.items() if importlib.util.find_spec(entry.module) is not None}
    return {name: importlib.metadata.version(entry.distribution) for name, entry in found.items()}


def run_apart(python: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a job in another process, with one thread; a process that dies or takes too long is an outcome too."""
    command = [python, __file__, json.dumps(job)]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    start = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 (this file, by an interpreter the user named)
            command, env=environment, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {MAX_SECONDS:g} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # some packages greet
    return outcome | {"wall": time.monotonic() - start}


def main() -> int:
    job = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")  # of the packages, about their own parts
    kinds: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {"quality": quality, "speed": speed}
    outcome = versions() if job["kind"] == "versions" else kinds[job["kind"]](job)
    print(json.dumps(outcome), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
