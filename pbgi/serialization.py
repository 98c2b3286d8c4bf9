"""What survives JSON: plain values, and frozen dataclasses by the names of their classes and fields.

Only classes named by the caller are ever made, and only through their own constructors, which check their arguments.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from pbgi.checks import unboxed
from pbgi.errors import InvalidInputError

KIND = "kind"  # under which the name of a class is written

Value: TypeAlias = str | int | float | bool | None
"""What a parameter may hold: the values that survive JSON."""


def plain_value(name: str, value: object) -> Value:
    """The value, if JSON can hold it (NumPy scalars as builtins), or an error that calls it `name`."""
    plain = unboxed(value)
    # Exact types: an Enum that is also a str would come back from JSON as something else.
    if type(plain) not in (str, int, float, bool, type(None)):
        raise InvalidInputError(f"{name} must be a str, int, float, bool or None; got {value!r}")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise InvalidInputError(f"{name} must be finite; got {value!r}; use a string to stand for it")
    return plain  # type: ignore[return-value]


def parsed_json(text: str | bytes) -> Any:
    """What the JSON says.

    Raises:
        ValueError: It is none, or nested more deeply than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def require_fields(where: str, data: object, names: Sequence[str]) -> None:
    """Raise unless `data` is a mapping with exactly these fields."""
    if not isinstance(data, Mapping):
        raise InvalidInputError(f"{where} must be a mapping with {', '.join(names)}; got {data!r}")
    wrong = {
        "missing": [name for name in names if name not in data],
        "unknown": [name for name in data if name not in names],
    }
    for what, listed in wrong.items():
        if listed:
            wrong_names = ", ".join(map(repr, listed))
            raise InvalidInputError(f"{where} must have exactly {', '.join(map(repr, names))}; {what}: {wrong_names}")


def to_plain(value: Any) -> Any:
    """A frozen value as JSON: a mapping with its class name under "kind" and its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: to_plain(getattr(value, f.name)) for f in fields(value) if f.init}
        return {KIND: type(value).__name__} | own
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if callable(value):
        raise InvalidInputError(f"a function cannot be written to JSON; got {value!r}")
    return value


def from_plain(where: str, data: Any, classes: Iterable[type]) -> Any:
    """The value that `to_plain` wrote, if it is made of these classes.

    Raises:
        InvalidInputError: Another kind, other fields, or fields that the class refuses.
    """
    known = {cls.__name__: cls for cls in classes}
    if isinstance(data, list):
        return tuple(from_plain(where, item, known.values()) for item in data)
    if not isinstance(data, Mapping):
        return data
    kind = data.get(KIND)
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInputError(f"kind of {where} must be one of {', '.join(sorted(known))}; got {kind!r}")
    names = [f.name for f in fields(known[kind]) if f.init]
    require_fields(where, data, (KIND, *names))
    try:
        return known[kind](**{name: from_plain(f"{where}.{name}", data[name], known.values()) for name in names})
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{where}: {error}") from None
