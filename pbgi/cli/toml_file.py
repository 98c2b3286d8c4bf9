"""TOML files whose mistakes are shown with their lines.

`tomllib` says where it stopped reading, but not where a key that it has read stands. `TomlFile` looks for the key in
the text, line by line. That finds keys as people write them; inside a multi-line string or table it may find none, and
then the message names the key alone.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pbgi.cli.errors import JobError
from pbgi.errors import InvalidInputError

MOST_BYTES = 16 * 2**20  # a job is a page; 100,000 boxes are some megabytes


@dataclass(frozen=True)
class TomlFile:
    """A TOML file that was read.

    Attributes:
        path: Where it is.
        data: What it holds.
        text: As it is written.
    """

    path: Path
    data: Mapping[str, Any]
    text: str

    @classmethod
    def read(cls, path: Path) -> "TomlFile":
        """Read and parse, or raise a `JobError` that says where and why not."""
        require_text(path)
        try:
            with path.open("rb") as file:
                read = file.read(MOST_BYTES + 1)  # a device has no end, whatever its size is said to be
            if len(read) > MOST_BYTES:
                raise JobError.at(path, None, f"a TOML file may have at most {MOST_BYTES} bytes")
            text = read.decode()
        except OSError as error:
            raise JobError.at(path, None, f"cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise JobError.at(path, None, f"must be UTF-8; {error}") from None
        try:
            return cls(path, tomllib.loads(text), text)
        except RecursionError:
            raise JobError.at(path, None, "is not TOML that can be read: it is nested too deeply") from None
        except ValueError as error:  # among them numbers with thousands of digits
            raise JobError.at(path, None, f"is not TOML: {error}") from None

    def error(self, keys: tuple[str | int, ...], message: str) -> JobError:
        """An error about the entry under these keys."""
        name = shown(keys)
        return JobError.at(self.path, self.line(keys), f"{name}: {message}" if name else message)

    def checked(self, keys: tuple[str | int, ...], rule: Callable[[Any], Any], value: Any) -> Any:
        """What a rule makes of the value under these keys."""
        try:
            return rule(value)
        except (InvalidInputError, TypeError) as error:
            raise self.error(keys, str(error)) from None
        except RecursionError:  # the value cannot even be shown
            raise self.error(keys, "must not be nested so deeply") from None

    def line(self, keys: tuple[str | int, ...]) -> int | None:
        """The line of the entry, or of the closest table around it; None if neither is found."""
        places = _places(self.text)
        for n in range(len(keys), 0, -1):
            if keys[:n] in places:
                return places[keys[:n]]
        return None


def require_text(path: Path) -> None:
    """Raise unless the path can be written in UTF-8: it becomes the name of a study, and part of a URL."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        rule = "a path must be UTF-8, in this locale too"
        raise JobError(f"{rule}; got {str(path)!r}; rename it, or set LC_ALL=C.UTF-8") from None


def shown(keys: tuple[str | int, ...]) -> str:
    """Keys as TOML writes them: parameters."odd name".low, box[3].cost."""
    parts: list[str] = []
    for key in keys:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        else:
            bare = key.replace("-", "").replace("_", "").isalnum() and key.isascii()
            parts.append(("." if parts else "") + (key if bare else _quoted(key)))
    return "".join(parts)


def _quoted(key: str) -> str:
    return '"' + key.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'


def _places(text: str) -> dict[tuple[str | int, ...], int]:
    """Line numbers by key."""
    places: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    counts: dict[tuple[str | int, ...], int] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if line.startswith("[["):
            name = _path(line)
            if name:
                counts[name] = counts.get(name, -1) + 1
                table = (*name, counts[name])
                places.setdefault(table, number)
        elif line.startswith("["):
            table = _numbered(_path(line), counts) or table
            places.setdefault(table, number)
        elif "=" in line and not line.startswith("#"):
            own = _path(line)
            for n in range(1, len(own) + 1):
                places.setdefault((*table, *own[:n]), number)
    return places


def _numbered(name: tuple[str | int, ...], counts: Mapping[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """The keys of a table inside an array of tables: [box.reward] belongs to the box that came last."""
    for n in range(len(name), 0, -1):
        if name[:n] in counts:
            return (*name[:n], counts[name[:n]], *name[n:])
    return name


def _path(line: str) -> tuple[str, ...]:
    """The keys of a header or of the left side of an assignment; empty if this line alone is neither."""
    end = len(line)
    while end > 0:  # a quoted key may hold "=" or "]": the shortest left side that is TOML is the right one
        head = line[:end]
        try:
            found: Any = tomllib.loads(head if head.startswith("[") else head + "=0")
        except (ValueError, RecursionError):
            end = line.rfind("=", 0, end)
            continue
        return _only_path(found)
    return ()


def _only_path(found: Any) -> tuple[str, ...]:
    """The keys down to the only leaf."""
    path: list[str] = []
    while isinstance(found, dict) and found:
        key = next(iter(found))
        path.append(key)
        found = found[key][0] if isinstance(found[key], list) else found[key]
    return tuple(path)
