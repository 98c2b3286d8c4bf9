"""Results: one line of JSON per finished run, in `results/<experiment>.jsonl`, which is committed.

A line holds what is plotted of a run in less than a kilobyte: the best values one after another, to seven digits, and
what was spent between them, to six. Evaluations that improved nothing are not kept, nor is the specification, since
the key says which one it was, nor what is usual (`USUAL`). Every table and every figure is made of these files, and a
campaign goes on where another machine left off.

Files are only ever appended to, one whole line at a time, and each line is on the disk before the next run is counted
as finished. A process that is killed while it writes leaves a torn last line: it is ignored, and its run is done again.
So files of several machines are merged by concatenation (`cat`): of lines with the same key the first counts.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from paper.curves import Record, best_so_far, sign_of, suggestion_seconds
from paper.policies import PUBLISHED_SEARCH

RESULTS = Path(__file__).parent / "results"
SMOKE = RESULTS / "smoke"
DIGITS, COST_DIGITS, OPTIMUM_DIGITS = 7, 6, 10
# What most lines would say, and none does.
USUAL: dict[str, Any] = {
    "variant": "as_published",
    "search": PUBLISHED_SEARCH,
    "engine": "numpy",
    "unit": 1,
    "direction": "maximize",
    "suggest_seconds": [],
}
KEPT = (
    "key", "problem", "dim", "cost", "policy", "variant", "search", "engine", "seed", "budget", "unit", "direction",
    "optimum",
)  # fmt: skip
ENGINES = "engines"  # the one experiment that no figure and no table of the paper's shows
TRACED = "decay_sensitivity"  # the one experiment of which it is plotted when the rate was lowered
TIMING = "timing"  # the one experiment of which the seconds of each suggestion are plotted: its machine was quiet


class Store:
    """The results in a folder.

    Args:
        folder: Made when the first result is written.
    """

    def __init__(self, folder: Path | str = RESULTS) -> None:
        self.folder = Path(folder)

    def path(self, experiment: str) -> Path:
        """The file of an experiment."""
        return self.folder / f"{experiment}.jsonl"

    def append(self, record: Record) -> None:
        """Write a record, condensed, and wait until it is on the disk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(record["experiment"])
        line = json.dumps(condensed(record), allow_nan=False, separators=(",", ":")) + "\n"
        torn = path.exists() and not _ends_with_newline(path)
        # One write in append mode: two runners on one folder do not mix their lines.
        with path.open("ab", buffering=0) as file:
            file.write((("\n" if torn else "") + line).encode())
            os.fsync(file.fileno())

    def load(self, experiments: Iterable[str] | None = None) -> list[Record]:
        """The records of these experiments, or of all, in the order of their lines; each key once."""
        if experiments is None:
            experiments = sorted(path.stem for path in self.folder.glob("*.jsonl"))
        by_key: dict[str, Record] = {}
        for experiment in experiments:
            for line in _lines(self.path(experiment)):
                by_key.setdefault(line["key"], {"experiment": experiment, **restored(line)})
        return list(by_key.values())


# One line ---------------------------------------------------------------------------------------------------------


def condensed(record: Record) -> dict[str, Any]:
    """What is kept of a run.

    `best` is the best value of the start and then each one that improved on it; `costs` has two numbers for each of
    those, what was spent in vain before it and what it cost itself, and at last what was spent in vain after them all.
    """
    spent, best = best_so_far(record)
    improved = np.flatnonzero(np.diff(best) > 0.0) + 1
    marks = np.stack([spent[improved - 1], spent[improved]], axis=1).ravel()
    timed = {"suggest_seconds": [_rounded(s, 3) for s in suggestion_seconds(record)]}
    traced = {"lowered": record["lowered"]} if record["experiment"] == TRACED else {}
    kept = {name: _short(record[name]) for name in KEPT}
    if record["optimum"] is not None:
        kept["optimum"] = _rounded(record["optimum"], OPTIMUM_DIGITS)
    line = {
        **kept,
        "best": [_rounded(sign_of(record) * value) for value in best[[0, *improved]]],
        "costs": [_rounded(cost, COST_DIGITS) for cost in np.diff(marks, prepend=0.0, append=spent[-1])],
        **traced,
        **(timed if record["experiment"] == TIMING else {}),
        "wall_seconds": _rounded(record["wall_seconds"], 3),
    }
    return {name: value for name, value in line.items() if name not in USUAL or value != USUAL[name]}


def restored(line: Record) -> dict[str, Any]:
    """A record of which the same is plotted as of the run; its start is a single point."""
    others = USUAL | {name: value for name, value in line.items() if name != "best"}
    values = [value for value in line["best"] for _ in range(2)]  # each stays the best until the next was paid for
    return others | {"n_start": 1, "values": values, "costs": [0.0, *line["costs"]]}


def _rounded(x: float, digits: int = DIGITS) -> float:
    short: float = _short(float(f"{float(x):.{digits}g}"))
    return short


def _short(x: Any) -> Any:
    """Whole numbers without ".0"."""
    return int(x) if isinstance(x, float) and x.is_integer() else x


# One file ---------------------------------------------------------------------------------------------------------


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if file.tell() == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _lines(path: Path) -> Iterator[Record]:
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, start=1):
            line = _parsed(text)
            if line is not None:
                yield line
            elif text.strip():
                print(f"{path}: line {number} is torn and ignored; its run will be done again", file=sys.stderr)


def _parsed(text: str) -> Record | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "key" in line else None
