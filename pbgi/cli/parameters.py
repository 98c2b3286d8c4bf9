"""Parameters: the table of a job file as a space, and how a point of it reaches the program.

A placeholder `{name}` in an argument becomes the value of the parameter, inside that one argument: nothing is split, no
shell looks at it. `{{` and `}}` are braces. Beside the parameters there are `{pbgi.trial}`, the number of the trial,
`{pbgi.folder}`, its folder, and `{pbgi.params}`, a JSON file with the parameters; where trials may stop early also
`{pbgi.checkpoint}`, a folder that stays the trial's own when it goes on later, and `{pbgi.step}`, how far it had come
then. An argument with a parameter that a point does not have is left out; a list of arguments stands together or not at
all: `["--slope", "{slope}"]`.
"""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from pbgi.cli.processes import FOLDER_VARIABLE
from pbgi.cli.toml_file import TomlFile
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.serialization import Value, plain_value
from pbgi.space import Space

Command: TypeAlias = tuple[str | tuple[str, ...], ...]
"""Arguments, and groups of them that stand together."""

OWN_PREFIX = "pbgi."
# What pbgi tells besides the parameters, as a placeholder and as an environment variable.
OWN = {"trial": "PBGI_TRIAL", "folder": FOLDER_VARIABLE, "params": "PBGI_PARAMS_FILE"}
OWN_OF_STEPS = {"checkpoint": "PBGI_CHECKPOINT", "step": "PBGI_STEP"}
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]", re.DOTALL)
# What any shell and language can name; parameters with other names are in PBGI_PARAMS alone.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
LONGEST_NAME = 512  # of a parameter or a study, in the tables of the storage
LARGEST_INTEGER = 2**53  # the storage keeps parameters as 64-bit floats


# The table ------------------------------------------------------------------------------------------------------------


def space_in(file: TomlFile) -> Space:
    """The space that the table of parameters describes."""
    table = file.data["parameters"]
    if not isinstance(table, Mapping) or not table:
        raise file.error(("parameters",), f"must be a table with at least one parameter; got {table!r}")
    found = {}
    for name, value in table.items():
        keys = ("parameters", name)
        file.checked(keys, _parameter_name, name)
        found[name] = file.checked(keys, _parameter, value)
    space: Space = file.checked(("parameters",), Space, found)
    return space


def _parameter_name(name: str) -> None:
    if not name or len(name) > LONGEST_NAME or "\0" in name or name.startswith(OWN_PREFIX):
        rule = f"a name must have 1 to {LONGEST_NAME} characters, no NUL, and not begin with {OWN_PREFIX!r}"
        raise InvalidInputError(f"{rule}; got {name!r}")


def _parameter(value: Any) -> Parameter | Value:
    if isinstance(value, list):
        return Categorical([_storable(choice) for choice in value])
    if not isinstance(value, Mapping):
        fixed: Value = _storable(plain_value("a fixed value", value))
        return fixed
    if "choices" in value:
        _require_keys(value, ("choices", "when"))
        choices = value["choices"] if isinstance(value["choices"], list) else []
        return Categorical([_storable(choice) for choice in choices], when=value.get("when"))
    if "value" in value:
        _require_keys(value, ("value", "when"))
        return Categorical([_storable(plain_value("a fixed value", value["value"]))], when=value.get("when"))
    _require_keys(value, ("low", "high", "log", "step", "type", "when"))
    missing = [key for key in ("low", "high") if key not in value]
    if missing:
        raise InvalidInputError(f"needs {missing[0]}; write {{ low = 0.0, high = 1.0 }} or a list of choices")
    return _range(value)


def _range(value: Mapping[str, Any]) -> Parameter:
    bounds = (value["low"], value["high"])
    kind = value.get("type", "integer" if all(type(bound) is int for bound in bounds) else "float")
    if kind not in ("float", "integer"):
        raise InvalidInputError(f"type must be 'float' or 'integer'; got {kind!r}")
    log = value.get("log", False)
    if kind == "float":
        return Float(*bounds, log=log, step=value.get("step"), when=value.get("when"))
    found = Integer(*bounds, log=log, step=value.get("step", 1), when=value.get("when"))
    if log and found.step != 1:
        raise InvalidInputError(f"log and step do not go together; got step = {found.step}; write a list of choices")
    if max(abs(found.low), abs(found.high)) > LARGEST_INTEGER:
        raise InvalidInputError(f"whole numbers may go up to 2**53, what the storage keeps; got {bounds}")
    return found


def _require_keys(table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise InvalidInputError(
                f"has no key {key!r}; there are low, high, log, step, type, or choices, or value; and when"
            )


def _storable(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise InvalidInputError(f"a value must not hold a NUL, which no argument can; got {value!r}")
    if isinstance(value, int) and abs(value) > sys.float_info.max:  # Optuna compares values as floats
        raise InvalidInputError(f"a whole number must be within what a 64-bit float holds; got {value!r}; write a text")
    return value


# Placeholders and variables -------------------------------------------------------------------------------------------


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
