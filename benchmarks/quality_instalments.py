"""What paying in instalments saves. Each part is a module: it runs what is not done yet and prints its tables.

    python benchmarks/quality_instalments.py lcdb --jobs 2      twenty classifiers on 248 data sets: half an hour
    python benchmarks/quality_instalments.py lcdb --tables-only

Needs pip install .[benchmarks].
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent


def lcdb(arguments: argparse.Namespace) -> int:
    import instalments_lcdb as part
    from instalments_picture import draw_lcdb
    from lcdb_curves import read_curves

    raw = arguments.raw / "instalments_lcdb.jsonl"
    if not arguments.tables_only:
        part.run(read_curves(arguments.raw / "lcdb.npz"), raw, arguments.jobs)
    records = part.records_in(raw)
    if not records:
        print("nothing has been run", file=sys.stderr)
        return 1
    means = part.summarize(records)
    print(part.section(means))
    lines = part.targets(means)
    for line, met in lines:
        print("ok    " if met else "MISSED", line)
    if arguments.picture:
        draw_lcdb(means, arguments.picture)
    return 0 if all(met for _, met in lines) else 1


PARTS = {"lcdb": lcdb}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--tables-only", action="store_true", help="run nothing")
    parser.add_argument("--raw", type=Path, default=HERE / "results/raw", help="folder where runs are kept")
    parser.add_argument("--picture", type=Path, help="file to draw")
    arguments = parser.parse_args()
    return PARTS[arguments.part](arguments)


if __name__ == "__main__":
    sys.exit(main())
