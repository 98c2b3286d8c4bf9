"""How a point of the space reaches the program of a job: as arguments, environment variables and JSON.

A placeholder `{name}` in an argument becomes the value of the parameter, inside that one argument: nothing is split, no
shell looks at it. `{{` and `}}` are braces. Beside the parameters there are `{pbgi.trial}`, the number of the trial,
`{pbgi.folder}`, its folder, and `{pbgi.params}`, a JSON file with the parameters; where trials may stop early also
`{pbgi.checkpoint}`, a folder that stays the trial's own when it goes on later, and `{pbgi.step}`, how far it had come
then. An argument with a parameter that a point does not have is left out; a list of arguments stands together or not at
all: `["--slope", "{slope}"]`.
"""

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from pbgi.cli.processes import FOLDER_VARIABLE
from pbgi.errors import InvalidInputError
from pbgi.serialization import Value

Command: TypeAlias = tuple[str | tuple[str, ...], ...]
"""Arguments, and groups of them that stand together."""

OWN_PREFIX = "pbgi."
# What pbgi tells besides the parameters, as a placeholder and as an environment variable.
OWN = {"trial": "PBGI_TRIAL", "folder": FOLDER_VARIABLE, "params": "PBGI_PARAMS_FILE"}
OWN_OF_STEPS = {"checkpoint": "PBGI_CHECKPOINT", "step": "PBGI_STEP"}
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]", re.DOTALL)
# What any shell and language can name; parameters with other names are in PBGI_PARAMS alone.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


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


def as_text(value: Value) -> str:
    """A value as an argument: floats in the fewest digits that give them back, true and false as in JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def own_names(*, with_steps: bool) -> tuple[str, ...]:
    """What pbgi's own placeholders are called."""
    return (*OWN, *(OWN_OF_STEPS if with_steps else ()))


def values_of(params: Mapping[str, Value], own: Mapping[str, object]) -> dict[str, str]:
    """What placeholders stand for: parameters, and pbgi's own."""
    return {name: as_text(value) for name, value in params.items()} | {OWN_PREFIX + k: str(v) for k, v in own.items()}


def environment_of(params: Mapping[str, Value], own: Mapping[str, object]) -> dict[str, str]:
    """The same as environment variables."""
    named = {f"PBGI_PARAM_{name}": as_text(value) for name, value in params.items() if _PLAIN_NAME.fullmatch(name)}
    variables = {variable: str(own[name]) for name, variable in (OWN | OWN_OF_STEPS).items() if name in own}
    return named | variables | {"PBGI_PARAMS": json.dumps(params)}
