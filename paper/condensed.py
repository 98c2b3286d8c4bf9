"""Results that are kept: every run in a kilobyte, so that a campaign goes on where another machine left off.

A condensed record is a record: all that is plotted of it is the same, to seven digits. Of the start it keeps the best
value; of the evaluations those that improved on the best and the ones right before them, between which a published
curve is a straight line. Specifications are not kept, since the key says which one it was.
"""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from paper.curves import Record, best_so_far, sign_of, suggestion_seconds
from paper.store import Store

RUNS = Path(__file__).parent / "results" / "runs"
DIGITS = 7
LABELS = ("key", "experiment", "panel", "problem", "dim", "cost", "policy", "variant", "seed", "budget", "unit")
OTHERS = ("direction", "optimum", "versions", "finished")
TIMING = "timing"  # the one experiment that plots the seconds of each suggestion


def condensed(record: Record) -> dict[str, Any]:
    """The same run, as far as it is plotted."""
    spent, best = best_so_far(record)
    changes = np.flatnonzero(np.diff(best) > 0.0) + 1
    kept = np.unique(np.concatenate([[0], changes - 1, changes, [len(best) - 1]]))
    seconds = [_rounded(s, 3) for s in suggestion_seconds(record)]
    if record["experiment"] != TIMING and seconds:
        seconds = [statistics.median(seconds)]
    return {
        **{name: record[name] for name in LABELS + OTHERS},
        "n_start": 1,
        "values": [_rounded(sign_of(record) * value) for value in best[kept]],
        "costs": [0.0, *(_rounded(cost) for cost in np.diff(spent[kept]))],
        "suggest_seconds": seconds,
        "evaluate_seconds": _rounded(record["evaluate_seconds"], 3),
        "wall_seconds": _rounded(record["wall_seconds"], 3),
    }


def keep(records: Iterable[Record], folder: Path = RUNS) -> list[Path]:
    """Write these runs, and nothing else, one file per experiment, in an order that new ones hardly change."""
    by_experiment: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_experiment.setdefault(record["experiment"], []).append(condensed(record))
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for experiment, own in by_experiment.items():
        own.sort(key=lambda run: (run["panel"], run["policy"], run["variant"], run["seed"]))
        path = Store(folder).path(experiment)
        lines = (json.dumps(run, allow_nan=False, separators=(",", ":")) + "\n" for run in own)
        path.write_text("".join(lines), encoding="utf-8")
        paths.append(path)
    return paths


def _rounded(x: float, digits: int = DIGITS) -> float:
    return float(f"{float(x):.{digits}g}")
