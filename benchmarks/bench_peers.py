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
from collections.abc import Iterator, Sequence
from pathlib import Path

from peer_jobs import Interpreters, Job, done_in, quality_jobs, run_all
from peer_problems import PROBLEMS
from peer_tables import show, summarize
from peers import PEERS

HERE = Path(__file__).parent
SIZES = ((4, 32), (8, 64))  # d, n of the timing
ROUNDS, REPEATS = 3, 3
SEEDS = 8
# The most seeds of those that take longer: 10 to 30, and 40 to 100, processor seconds per run.
FEWER_SEEDS = {"smac": 4, "skopt": 4, "skopt-eips": 4, "ax": 2, "neps": 2, "neps-cost": 2}


# What is to be run -----------------------------------------------------------------------------------------------


def speed_jobs(peers: Sequence[str]) -> Iterator[Job]:
    """Round by round, so that a busy moment of the machine hits all."""
    for turn in range(ROUNDS):
        for d, n in SIZES:
            for peer in (name for name in peers if name != "random"):
                yield {"kind": "speed", "peer": peer, "d": d, "n": n, "repeats": REPEATS, "seed": turn}


# The command -----------------------------------------------------------------------------------------------------


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
        seeds = {peer: min(arguments.seeds, FEWER_SEEDS.get(peer, arguments.seeds)) for peer in peers}
        quality = quality_jobs(seeds, arguments.problems, arguments.share)
        run_all(list(quality), interpreters, arguments.raw, arguments.jobs)
        if not arguments.no_speed:
            run_all(list(speed_jobs(peers)), interpreters, arguments.raw, 1)
    runs = done_in(arguments.raw)
    summary = summarize(runs)
    show(summary)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(summary, indent=1) + "\n")
    if arguments.picture:
        from peer_picture import draw

        draw(summary, arguments.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
