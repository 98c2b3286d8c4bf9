"""Frozen dataclasses as plain JSON and back, by the names of their classes and fields.

Only classes named by the caller are ever made, and only through their own constructors, which check their arguments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pbgi.errors import InvalidInputError
from pbgi.plain import require_fields

KIND = "kind"


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
    if kind not in known:
        raise InvalidInputError(f"kind of {where} must be one of {', '.join(sorted(known))}; got {kind!r}")
    names = [f.name for f in fields(known[kind]) if f.init]
    require_fields(where, data, (KIND, *names))
    try:
        return known[kind](**{name: from_plain(f"{where}.{name}", data[name], known.values()) for name in names})
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{where}: {error}") from None
