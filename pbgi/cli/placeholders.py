"""Placeholders: how the arguments of a command get the values of a point.

A placeholder `{name}` in an argument becomes the value of the parameter, inside that one argument: nothing is split, no
shell looks at it. `{{` and `}}` are braces. Beside the parameters there are `{pbgi.trial}`, the number of the trial,
`{pbgi.folder}`, its folder, and `{pbgi.params}`, a JSON file with the parameters. An argument with a parameter that a
point does not have is left out; a list of arguments stands together or not at all: `["--slope", "{slope}"]`.
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

from pbgi.errors import InvalidInputError

Command: TypeAlias = tuple[str | tuple[str, ...], ...]
"""Arguments, and groups of them that stand together."""

OWN_PREFIX = "pbgi."
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]", re.DOTALL)


def names_in(argument: str) -> list[str]:
    """The names in an argument, or an `InvalidInputError` for a brace without its twin."""
    names = []
    for token in _TOKEN.finditer(argument):
        if token[0] in ("{", "}"):
            raise InvalidInputError(f"braces must come in pairs, or doubled; got {argument!r}")
        if token[1] is not None:
            names.append(token[1])
    return names


def parts_of(argument: str | tuple[str, ...]) -> tuple[str, ...]:
    """The arguments of a group; a single one of itself."""
    return (argument,) if isinstance(argument, str) else argument


def filled(command: Command, values: Mapping[str, str]) -> list[str]:
    """The command with every placeholder replaced, without arguments and groups that name what the point has not."""

    def replaced(token: re.Match[str]) -> str:
        return token[0][0] if token[1] is None else values[token[1]]

    there = [group for group in map(parts_of, command) if all(n in values for part in group for n in names_in(part))]
    return [_TOKEN.sub(replaced, part) for group in there for part in group]
