"""`pbgi check job.db`: what can be read of the studies in an SQLite file, however damaged, and all of it as JSON lines.

The file is copied first and the copy is read, table by table and row by row, with SQLite alone: what one row holds is
in nobody else's way. Then the copy is opened as every other command opens it, so that a file is called sound only if
they all work on it. The file itself is never written to.
"""

import json
import math
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import json_to_distribution

from pbgi.cli.errors import StorageError, shortened
from pbgi.cli.private import make_folder
from pbgi.cli.storage import Storage, require_sqlite, url_of_file
from pbgi.cli.study import JobStudy, sound_trials
from pbgi.study import attributes

SHOWN_PROBLEMS = 20
BESIDE = ("", "-journal", "-wal", "-shm")  # the file, and what SQLite may have left beside it


@dataclass
class Findings:
    """What was read, and what could not be."""

    studies: dict[int, str] = field(default_factory=dict)
    trials: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self, where: str) -> Iterator[None]:
        """Whatever goes wrong inside is a problem there, and no reason to stop."""
        try:
            yield
        except Exception as error:
            self.problems.append(shortened(f"{where}: {type(error).__name__}: {error}"))

    def record(self, path: Path, exported: Path | None) -> dict[str, Any]:
        """The same as JSON."""
        left_out = len(self.problems) - SHOWN_PROBLEMS
        states = {
            name: Counter(t["state"] for t in self.trials if t["study"] == name) for name in self.studies.values()
        }
        return {
            "database": str(path),
            "sound": not self.problems,
            "problems": self.problems[:SHOWN_PROBLEMS] + ([f"and {left_out} more"] if left_out > 0 else []),
            "studies": [{"study": name, "trials": dict(counts)} for name, counts in states.items()],
            "exported": None if exported is None else str(exported),
        }


def findings_in(path: Path) -> Findings:
    """What can be read of the studies in a file.

    Raises:
        StorageError: There is no file, or it is of another kind.
    """
    if not path.is_file():
        raise StorageError(f"{path}: there is no such file")
    require_sqlite(path)
    found = Findings()
    with tempfile.TemporaryDirectory() as folder:
        with closing(_opened(_copied(path, make_folder(Path(folder) / "salvage")))) as connection:
            _read_rows(connection, found)
        if not found.problems:
            _read_as_others_do(_copied(path, make_folder(Path(folder) / "usual")), found)
    return found


def as_lines(found: Findings) -> str:
    """All trials that could be read, a line of JSON each."""
    return "".join(json.dumps(trial) + "\n" for trial in found.trials)


def _copied(path: Path, folder: Path) -> Path:
    for ending in BESIDE:
        source = path.with_name(path.name + ending)
        if source.exists():
            shutil.copyfile(source, folder / (path.name + ending))
    return folder / path.name


def _opened(copy: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(copy)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.execute("PRAGMA writable_schema = ON")  # else a file that was cut off is not read at all
    return connection


# Row by row ----------------------------------------------------------------------------------------------------------


def _read_rows(connection: sqlite3.Connection, found: Findings) -> None:
    with found.noting("the file"):
        said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
        found.problems += [f"the file: {line}" for line in said if line != "ok"]
    for row in _rows(connection, "studies", found):
        found.studies[row["study_id"]] = str(row.get("study_name"))
    params, values, notes = (
        _by_trial(connection, table, found) for table in ("trial_params", "trial_values", "trial_user_attributes")
    )
    for row in _rows(connection, "trials", found):
        key, number, study = row.get("trial_id", 0), row.get("number"), found.studies.get(row.get("study_id", 0))
        reading = _Reading(found, f"trial {number} of study {study!r}")
        found.trials.append(
            {
                "study": study,
                "trial": number,
                "state": _plain(row.get("state"), str.lower),
                "params": reading.each(params.get(key, ()), "param_name", _param),
                "value": next(iter(reading.each(values.get(key, ()), "objective", _value).values()), None),
                **reading.notes(notes.get(key, ())),
                "started": _plain(row.get("datetime_start")),
                "ended": _plain(row.get("datetime_complete")),
            }
        )
    found.trials.sort(key=lambda trial: (str(trial["study"]), str(trial["trial"]).rjust(20)))


def _rows(connection: sqlite3.Connection, table: str, found: Findings) -> list[dict[str, Any]]:
    """The rows of a table: from its beginning, and from its end where something in between cannot be read."""
    rows: dict[int, dict[str, Any]] = {}
    with found.noting(f"table {table}"):
        known = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if known is None or known["type"] != "table":  # a view may have rows without end
            raise StorageError("there is no such table")
        for direction in ("ASC", "DESC"):
            before = len(found.problems)
            with found.noting(f"table {table}"):
                query = f"SELECT rowid AS pbgi_row, * FROM {table} ORDER BY rowid {direction}"  # noqa: S608 (our names)
                for row in connection.execute(query):
                    rows[row["pbgi_row"]] = dict(row)
            if len(found.problems) == before:
                break
    return list(rows.values())


def _by_trial(connection: sqlite3.Connection, table: str, found: Findings) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in _rows(connection, table, found):
        grouped.setdefault(row.get("trial_id", 0), []).append(row)
    return grouped


@dataclass(frozen=True)
class _Reading:
    """Reads the rows of one trial; what one of them holds is in no other's way."""

    found: Findings
    where: str

    def each(self, rows: Any, name: str, read: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        read_so_far: dict[str, Any] = {}
        for row in rows:
            with self.found.noting(f"{self.where}, {row.get(name)!r}"):
                read_so_far[str(row[name])] = read(row)
        return read_so_far

    def notes(self, rows: Any) -> dict[str, Any]:
        wanted = {attributes.COST: "cost", attributes.SECONDS: "seconds", attributes.MESSAGE: "message"}
        notes = self.each(
            rows, "key", lambda row: json.loads(row["value_json"], parse_constant=_none, parse_float=_finite)
        )
        return {shown: notes.get(key) for key, shown in wanted.items()}


def _param(row: Mapping[str, Any]) -> Any:
    value = _finite(row["param_value"])
    return json_to_distribution(row["distribution_json"]).to_external_repr(value)


def _finite(number: Any) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(f"a number must be finite; got {number}")
    return float(number)


def _none(constant: str) -> None:
    raise ValueError(f"a number must be finite; got {constant}")


def _value(row: Mapping[str, Any]) -> float | None:
    if row["value_type"] not in ("FINITE", "INF_POS", "INF_NEG"):
        raise ValueError(f"there is no value of type {row['value_type']!r}")
    return _finite(row["value"]) if row["value_type"] == "FINITE" else None  # JSON knows no infinity


def _plain(value: Any, read: Callable[[str], str] = str) -> str | None:
    return None if value is None else read(str(value))


# As every other command does -----------------------------------------------------------------------------------------


def _read_as_others_do(copy: Path, found: Findings) -> None:
    with found.noting("as a whole"), closing(Storage(url_of_file(copy), create=False)) as storage:
        for name in found.studies.values():
            with storage.errors():
                study = optuna.load_study(study_name=name, storage=storage.backend)
                sound_trials(study)
                ours = attributes.SETTINGS in study.user_attrs
            if ours:
                JobStudy.existing(storage, name)
