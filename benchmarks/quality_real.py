"""Results per second of training on real tuning tables: pbgi beside its peers.

The tables of `real_tables.py`: four of HPOLib, three of NAS-Bench-201, with the true training times as costs.
Optimizers (`peers.py`), processes (`peer_runs.py`) and the keeping of runs (`peer_jobs.py`) are those of
`bench_peers.py`: every run is a process with one thread, and runs that are done are not done again. A budget is for 40
trials of average cost; all costs are charged, and a trial that ends beyond the budget does not count. Prints a section
of docs/comparison.md, and the targets: first in mean rank at 25, 50 and 100 % of the budget; at 50 and 100 %, at most
half of the best peer's regret. Needs the tables: pip install .[benchmarks]

    python benchmarks/quality_real.py --python neps=/path/to/python     all: hours
    python benchmarks/quality_real.py --peers pbgi random --seeds 2     a look
    python benchmarks/quality_real.py --tables-only                     what has been run
"""

import argparse
import json
import sys
from pathlib import Path

from peer_jobs import Interpreters, done_in, quality_jobs, run_all
from real_report import section, summarize, target_lines
from real_tables import TABLES, write_tables

HERE = Path(__file__).parent
SEEDS = {"pbgi": 16, "random": 16, "optuna-tpe": 16, "optuna-gp": 16, "ax": 4, "smac": 4, "neps": 4}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", choices=SEEDS, default=list(SEEDS), metavar="NAME", help=", ".join(SEEDS))
    parser.add_argument(
        "--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME", help=", ".join(TABLES)
    )
    parser.add_argument(
        "--seeds", type=int, default=max(SEEDS.values()), help="runs per table; the slow have at most 4"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the budgets, for a quick try")
    parser.add_argument("--python", nargs="+", default=[], metavar="MODULE=PATH", help="interpreters of their own")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--tables-only", action="store_true", help="run nothing")
    parser.add_argument("--raw", type=Path, default=HERE / "results/raw/real.jsonl", help="where runs are kept")
    parser.add_argument("--json", type=Path, default=HERE / "results/real.json", help="where the summary goes")
    arguments = parser.parse_args()
    if not arguments.tables_only:
        arrays = arguments.raw.resolve().parent / "tables"
        write_tables(arrays, arguments.tables)
        interpreters = Interpreters(arguments.python, given={"tables": str(arrays)})
        seeds = {peer: min(arguments.seeds, SEEDS[peer]) for peer in interpreters.installed(arguments.peers)}
        jobs = list(quality_jobs(seeds, arguments.tables, arguments.share))
        run_all(jobs, interpreters, arguments.raw, arguments.jobs)
    summary = summarize(done_in(arguments.raw))
    print(section(summary), "\nTargets\n", *target_lines(summary), sep="\n")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(summary, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
