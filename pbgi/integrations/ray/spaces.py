"""Tune's search spaces as spaces of the engine, and configurations there and back.

    tune.uniform, tune.loguniform          Float
    tune.quniform, tune.qloguniform        Integer over the multiples of the quantum
    tune.randint, tune.lograndint          Integer; the upper bound is not included
    tune.qrandint, tune.qlograndint        Integer with a step; the upper bound is included, unless the step is 1
    tune.choice                            Categorical; over positions, if the choices are not plain and distinct
    Float, Integer, Categorical of pbgi    themselves
    anything else                          a constant

Dictionaries may be nested: the engine sees "model/layers" for {"model": {"layers": ...}}. What depends on other
parameters (`tune.sample_from`), what must be tried in full (`tune.grid_search`), what has no bounds (`tune.randn`) and
what is inside a list is refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

from ray.tune.search import sample
from ray.tune.search.variant_generator import parse_spec_vars

from pbgi.checks import check_value
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.serialization import Value, require_fields
from pbgi.space import Space

Path: TypeAlias = tuple[str, ...]
Config: TypeAlias = dict[str, Any]

AXIS_FIELDS = ("path", "quantum", "positions")
# How far from a multiple of the quantum rounding may have carried a value, in quanta.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Axis:
    """One parameter: where it is in a configuration, and the engine's view of it.

    Attributes:
        path: Its keys, from the outside in.
        parameter: What the engine searches.
        quantum: The engine counts multiples of this; None if it sees the values themselves.
        positions: Whether the engine sees positions of choices instead of the choices.
        choices: Those choices; None if they are not known, since a file could not hold them.
    """

    path: Path
    parameter: Parameter
    quantum: float | None = None
    positions: bool = False
    choices: tuple[Any, ...] | None = None

    @property
    def name(self) -> str:
        """As the engine calls it."""
        return "/".join(self.path)

    def to_engine(self, value: Any) -> Value:
        """The engine's value for one of a configuration.

        Raises:
            InvalidInputError: It is outside of the space.
        """
        where = f"parameter {self.name!r}"
        if self.positions:
            return _position(where, value, self._known_choices())
        if self.quantum is None:
            return self.parameter.check(value, where)
        level = check_value(value, where) / self.quantum
        if not math.isfinite(level) or abs(level - round(level)) > ROUNDING:
            raise InvalidInputError(f"{where} must be a multiple of {self.quantum}; got {value!r}")
        return self.parameter.check(round(level), f"{where}, in multiples of {self.quantum},")

    def from_engine(self, value: Any) -> Any:
        """The value of a configuration for the engine's."""
        if self.positions:
            return self._known_choices()[value]
        return value if self.quantum is None else float(value * Decimal(str(self.quantum)))

    def _known_choices(self) -> tuple[Any, ...]:
        if self.choices is None:
            rule = f"the choices of parameter {self.name!r} must be given again: what was saved does not hold them"
            raise InvalidInputError(f"{rule}; got none; pass param_space to Tuner.restore")
        return self.choices


@dataclass(frozen=True)
class SearchSpace:
    """The parameters of a configuration that are searched, by the engine's names, and its constants."""

    axes: Mapping[str, Axis]
    constants: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "SearchSpace":
        """The space of a `param_space` of Tune.

        Raises:
            InvalidInputError: Something in it cannot be searched, or nothing is to be.
        """
        if not isinstance(config, Mapping):
            raise InvalidInputError(f"space must be a dict such as {{'lr': tune.uniform(0, 1)}}; got {config!r}")
        resolved, domains, grids = parse_spec_vars(dict(config))
        for path, _ in grids:
            way_out = "write tune.choice, which tries the choices that pay, each at most once"
            raise InvalidInputError(f"a space must not have tune.grid_search; got one for {_name(path)!r}; {way_out}")
        found = [(path, domain) for path, domain in resolved if isinstance(domain, Parameter)] + domains
        if not found:
            way_out = "write tune.uniform(low, high), say, for a value"
            raise InvalidInputError(f"a space must have something to search; got {dict(config)!r}; {way_out}")
        axes = [_axis(path, domain) for path, domain in sorted(found, key=lambda entry: _order(config, entry[0]))]
        if len({axis.name for axis in axes}) < len(axes):
            raise InvalidInputError(f"names of parameters must differ; got {[axis.name for axis in axes]}")
        return cls({axis.name: axis for axis in axes}, _without(config, {axis.path for axis in axes}))

    @cached_property
    def space(self) -> Space:
        """As the engine knows it."""
        return Space({name: axis.parameter for name, axis in self.axes.items()})

    def to_engine(self, config: Mapping[str, Any]) -> dict[str, Value]:
        """The engine's point for a configuration; what is not searched in it does not matter.

        Raises:
            InvalidInputError: A parameter is missing or outside of the space.
        """
        return {name: axis.to_engine(_at(config, axis.path)) for name, axis in self.axes.items()}

    def from_engine(self, point: Mapping[str, Value], *, with_constants: bool = False) -> Config:
        """The configuration for the engine's point."""
        config: Config = _copy(self.constants) if with_constants else {}
        for name, axis in self.axes.items():
            inner = config
            for key in axis.path[:-1]:
                inner = inner.setdefault(key, {})
            inner[axis.path[-1]] = axis.from_engine(point[name])
        return config

    def to_plain(self) -> list[dict[str, Any]]:
        """What the engine's space does not say of it; choices that are not plain are left out."""
        return [{f: getattr(a, f) for f in AXIS_FIELDS} | {"path": list(a.path)} for a in self.axes.values()]

    @classmethod
    def from_plain(cls, data: Any, space: Space) -> "SearchSpace":
        """The space that `to_plain` wrote, for the engine's space that was saved with it."""
        if not isinstance(data, list) or len(data) != len(space.names):
            raise InvalidInputError(f"space must be a list of {len(space.names)} parameters; got {data!r}")
        axes = [_read(name, space.parameters[name], entry) for name, entry in zip(space.names, data, strict=True)]
        return cls({axis.name: axis for axis in axes})

    def require_like(self, other: "SearchSpace") -> None:
        """Raise unless both describe the same space, up to what a file cannot hold."""
        if self.space != other.space or self.to_plain() != other.to_plain():
            raise InvalidInputError(f"space must be that of the search so far, {other.space}; got {self.space}")


# From Tune to the engine -------------------------------------------------------------------------------------------


def _axis(path: tuple[Any, ...], domain: Any) -> Axis:
    name = _name(path)
    if not all(isinstance(key, str) for key in path):
        rule = "what is searched must not be inside a list or under a key that is not a str"
        raise InvalidInputError(f"{rule}; got one at {name!r}; use a dict")
    try:
        return replace(_axis_of(domain), path=path)
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name!r}: {error}") from None


def _axis_of(domain: Any) -> Axis:
    """The axis, without its path."""
    if isinstance(domain, Parameter):
        return Axis((), domain)
    sampler, quantum = domain.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        quantum, sampler = sampler.q, sampler.sampler
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(domain, sample.Categorical):
        return _of_choices(domain.categories)
    if isinstance(domain, sample.Integer):
        return Axis((), _integer(domain, log, None if quantum is None else int(quantum)))
    if isinstance(domain, sample.Float) and (log or isinstance(sampler, sample.Uniform)):
        if quantum is None:
            return Axis((), Float(domain.lower, domain.upper, log=log))
        low, high = _multiples(domain.lower, domain.upper, quantum)
        return Axis((), Integer(low, high, log=log), quantum=float(quantum))
    if isinstance(domain, sample.Function):
        way_out = "let the trainable compute it from the parameters that are searched"
        raise InvalidInputError(f"a domain must have bounds of its own; got tune.sample_from; {way_out}")
    got = f"{type(domain).__name__} with the sampler {sampler}"
    raise InvalidInputError(f"a domain must have bounds; got {got}; write tune.uniform or tune.loguniform")


def _integer(domain: Any, log: bool, quantum: int | None) -> Integer:
    if quantum is None or quantum == 1:
        return Integer(domain.lower, domain.upper - 1, log=log)
    low, high = _multiples(domain.lower, domain.upper, quantum)
    return Integer(low * quantum, high * quantum, log=log, step=quantum)


def _multiples(lower: float, upper: float, quantum: float) -> tuple[int, int]:
    """The first and the last multiple of the quantum within the bounds."""
    low, high = lower / quantum, upper / quantum
    return math.ceil(low - ROUNDING), math.floor(high + ROUNDING)


def _of_choices(choices: list[Any]) -> Axis:
    """The choices themselves where the engine can take them, else their positions."""
    if any(
        isinstance(choice, Mapping | list | tuple) and any(parse_spec_vars({"choice": choice})[1:])
        for choice in choices
    ):
        rule = "a choice must not hold domains: what depends on a choice is not searched here"
        way_out = "put its parameters beside it, and let the trainable ignore those that it does not need"
        raise InvalidInputError(f"{rule}; got {choices!r}; {way_out}")
    try:
        return Axis((), Categorical(choices))
    except InvalidInputError:
        if not choices:
            raise
        return Axis((), Categorical(list(range(len(choices)))), positions=True, choices=tuple(choices))


def _position(where: str, value: Any, choices: tuple[Any, ...]) -> int:
    for position, choice in enumerate(choices):
        if choice is value or (type(choice) is type(value) and choice == value):
            return position
    raise InvalidInputError(f"{where} must be one of {list(choices)!r}; got {value!r}")


# Nested dictionaries -----------------------------------------------------------------------------------------------


def _name(path: tuple[Any, ...]) -> str:
    return "/".join(map(str, path))


def _order(config: Mapping[str, Any], path: tuple[Any, ...]) -> tuple[int, ...]:
    """Where the user wrote it: positions of the keys, from the outside in."""
    positions: list[int] = []
    inner: Any = config
    for key in path:
        if not isinstance(inner, Mapping):  # a list, which is refused later
            break
        positions.append(list(inner).index(key))
        inner = inner[key]
    return tuple(positions)


def _at(config: Mapping[str, Any], path: Path) -> Any:
    inner: Any = config
    for key in path:
        if not isinstance(inner, Mapping) or key not in inner:
            raise InvalidInputError(f"a configuration must have {_name(path)!r}; got {dict(config)!r}")
        inner = inner[key]
    return inner


def _without(config: Mapping[str, Any], paths: set[Path]) -> Config:
    """The constants: what is left when these paths are taken out, without dictionaries that are empty then."""
    left: Config = {}
    for key, value in config.items():
        inside = {path[1:] for path in paths if path[0] == key}
        if not inside:
            left[key] = value
        elif () not in inside and (rest := _without(value, inside)):
            left[key] = rest
    return left


def _copy(config: Mapping[str, Any]) -> Config:
    """A copy of the dictionaries, not of what they hold."""
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in config.items()}


def _read(name: str, parameter: Any, entry: Any) -> Axis:
    require_fields(f"parameter {name!r}", entry, AXIS_FIELDS)
    path, quantum, positions = (entry[f] for f in AXIS_FIELDS)
    named = isinstance(path, list) and all(type(key) is str for key in path) and "/".join(path) == name
    counts = quantum is None or (type(quantum) is float and 0 < quantum < math.inf)
    if not named or not counts or type(positions) is not bool:
        raise InvalidInputError(f"parameter {name!r} must be as it was saved; got {entry!r}")
    return Axis(tuple(path), parameter, quantum, positions)
