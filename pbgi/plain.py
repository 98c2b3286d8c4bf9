"""Plain values: what survives JSON, and checks of what comes from it."""

import math
import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from pbgi.errors import InvalidInputError

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


def require_fields(where: str, data: object, fields: Sequence[str]) -> None:
    """Raise unless `data` is a mapping with exactly these fields."""
    if not isinstance(data, Mapping):
        raise InvalidInputError(f"{where} must be a mapping with {', '.join(fields)}; got {data!r}")
    wrong = {"missing": [f for f in fields if f not in data], "unknown": [f for f in data if f not in fields]}
    for what, listed in wrong.items():
        if listed:
            names = ", ".join(map(repr, listed))
            raise InvalidInputError(f"{where} must have exactly {', '.join(map(repr, fields))}; {what}: {names}")


def unboxed(value: object) -> object:
    """The builtin inside a NumPy scalar, else the value itself."""
    return value.item() if isinstance(value, np.generic) else value


def is_real(value: object) -> bool:
    """Whether it is a real number of any kind: a bool is none, and a Decimal, unlike `numbers.Real`, is one."""
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool)


def set_fields(frozen: object, **fields: object) -> None:
    """Set fields of a frozen dataclass while it is being made."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def require_positive(name: str, value: object) -> float:
    """The value as a float, if it is a positive, finite real number."""
    plain = unboxed(value)
    number = as_float(plain) if is_real(plain) else math.nan
    if not 0.0 < number < math.inf:
        raise InvalidInputError(f"{name} must be a positive, finite number; got {value!r}")
    return number


def as_float(number: Any) -> float:
    """A real number as the nearest float; an infinity beyond the largest one, NaN for a Decimal that is no number."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a Decimal that signals
        return math.nan


def require_count(name: str, value: object) -> int:
    """The value as an int, if it is a positive whole number."""
    plain = unboxed(value)
    if isinstance(plain, bool) or not isinstance(plain, int) or plain < 1:
        raise InvalidInputError(f"{name} must be a positive whole number; got {value!r}")
    return plain
