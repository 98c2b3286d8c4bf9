"""The table `[parameters]` of a job file as a space."""

import sys
from collections.abc import Mapping
from typing import Any

from pbgi.cli.placeholders import OWN_PREFIX
from pbgi.cli.toml_file import TomlFile
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.serialization import Value, plain_value
from pbgi.space import Space

LONGEST_NAME = 512  # of a parameter or a study, in the tables of the storage
LARGEST_INTEGER = 2**53  # the storage keeps parameters as 64-bit floats


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
