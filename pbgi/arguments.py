"""Keyword arguments that nobody knows are refused with the name that was probably meant."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from pbgi.errors import UnknownArgumentError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def refuse_unknown_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with an `UnknownArgumentError` where Python would raise a bare TypeError."""
    known = [name for name in signature(function).parameters if name not in ("self", "cls")]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                way_out = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
                raise UnknownArgumentError(f"keyword arguments must be known ones; got {name!r}; {way_out}")
        return function(*args, **kwargs)

    return checked


def checks_arguments(cls: C) -> C:
    """The class, a dataclass, say, with the same for what it is made of."""
    cls.__init__ = refuse_unknown_arguments(cls.__init__)  # type: ignore[misc]
    return cls
