"""Where results live: one JSON line per finished run, in `<directory>/<experiment>.jsonl`.

Files are only ever appended to, one whole line at a time, and each line is on the disk before the next run is counted
as finished. A process that is killed while it writes leaves a torn last line: it is ignored, and its run is done again.
So files of several machines are merged by concatenation (`cat`): of lines with the same key the first counts.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RAW = Path(__file__).parent / "results" / "raw"
SMOKE = Path(__file__).parent / "results" / "smoke"


class Store:
    """The results in a directory.

    Args:
        directory: Made when the first result is written.
        others: Directories that are read too.
    """

    def __init__(self, directory: Path | str = RAW, *others: Path) -> None:
        self.directory, self._others = Path(directory), others

    def path(self, experiment: str) -> Path:
        """The file of an experiment."""
        return self.directory / f"{experiment}.jsonl"

    def append(self, record: dict[str, Any]) -> None:
        """Write a record and wait until it is on the disk."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.path(record["experiment"])
        line = json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n"
        torn = path.exists() and not _ends_with_newline(path)
        # One write in append mode: two runners on one directory do not mix their lines.
        with path.open("ab", buffering=0) as file:
            file.write((("\n" if torn else "") + line).encode())
            os.fsync(file.fileno())

    def load(self, experiments: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """The records of these experiments, or of all, in the order of their files; each key once, its own first."""
        folders = (self.directory, *self._others)
        if experiments is None:
            experiments = sorted({path.stem for folder in folders for path in folder.glob("*.jsonl")})
        files = (folder / f"{name}.jsonl" for name in experiments for folder in folders)
        records = (record for file in files for record in _records(file))
        by_key: dict[str, dict[str, Any]] = {}
        for record in records:
            by_key.setdefault(record["key"], record)
        return list(by_key.values())


def load(directory: Path | str = RAW, experiments: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The records in a directory, see `Store.load`."""
    return Store(directory).load(experiments)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if file.tell() == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _records(path: Path) -> Iterable[dict[str, Any]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            record = _parsed(line)
            if record is not None:
                yield record
            elif line.strip():
                print(f"{path}: line {number} is torn and ignored; its run will be done again", file=sys.stderr)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "key" in record else None
