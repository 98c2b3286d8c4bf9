"""Where the search takes place: named parameters, and the unit cube in which the models see them.

A space is an ordered mapping from names to `Float`, `Integer`, `Categorical` or a plain value. A plain value is fixed:
it is carried in every point and takes no dimension, and so it is with `low == high` and with a single choice. Every
other parameter is one coordinate of the unit cube, as `pbgi.parameter` says.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pbgi.arrays import Bools, Floats
from pbgi.checks import set_fields, unboxed
from pbgi.condition import (
    ABSENT_CATEGORY,
    ABSENT_NUMBER,
    MOST_PARENT_LEVELS,
    Child,
    Conditions,
    Parent,
    checked_when,
    ordered,
)
from pbgi.display.notebook import table
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter, levels_of
from pbgi.serialization import Value, plain_value, require_fields

# Levels worth listing; those of a finer integer are computed where they are needed.
MAX_GRID = 1024
# How far outside the cube rounding may have carried a coordinate before it counts as a mistake.
ROUNDING = 1e-9


# What `to_plain` writes of each kind, and all that `from_plain` accepts.
_KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "float": (Float, ("low", "high", "log")),
    "integer": (Integer, ("low", "high", "log", "step")),
    "categorical": (Categorical, ("choices",)),
}


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Space:
    """An ordered set of named parameters, and the way from their values to the unit cube and back. Immutable.

    Args:
        parameters: Name to `Float`, `Integer`, `Categorical` or a plain value (str, int, float, bool, None), which is
            fixed.

    Attributes:
        parameters: The same, read-only.
        names: All names, in order.
        order: All names, parents before what depends on them.
        coordinates: The names that move, in order: the columns of the unit cube.
        dimension: Number of coordinates.
        grids: Per coordinate the values it may take, rising, or None: it is continuous, or a number of more than
            MAX_GRID levels, to be rounded by `snap`.
        categorical: Per coordinate, whether it is categorical; shape (d,).
        n_points: Number of distinct points, `math.inf` if a Float without a step moves.
        conditions: Which parameters are active where; None if all of them are everywhere. Points have the active ones.
    """

    parameters: Mapping[str, Parameter | Value]
    names: tuple[str, ...]
    order: tuple[str, ...]
    coordinates: tuple[str, ...]
    dimension: int
    grids: tuple[Floats | None, ...]
    categorical: Bools
    n_points: float
    conditions: Conditions | None
    _all: dict[str, Parameter]
    _moving: tuple[Parameter, ...]

    def __init__(self, parameters: Mapping[str, Parameter | Value]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            rule = "a space must be a mapping with at least one parameter"
            raise InvalidInputError(f"{rule}; got {parameters!r}; write {{'lr': Float(0.0, 1.0)}}")
        checked = {_name(name): _parameter(name, value) for name, value in parameters.items()}
        every = {name: p if isinstance(p, Parameter) else Categorical([p]) for name, p in checked.items()}
        moving = {name: p for name, p in every.items() if p.n_levels > 1}
        set_fields(self, parameters=MappingProxyType(checked), names=tuple(checked), coordinates=tuple(moving))
        set_fields(self, dimension=len(moving), grids=tuple(map(_grid, moving.values())))
        set_fields(self, categorical=np.array([isinstance(p, Categorical) for p in moving.values()], dtype=bool))
        set_fields(self, _all=every, _moving=tuple(moving.values()))
        self.categorical.setflags(write=False)
        order = ordered({name: checked_when(p.when) for name, p in every.items()})
        set_fields(self, order=tuple(order), conditions=_conditions(order, every, self.coordinates))
        set_fields(self, n_points=self._count(lambda p: p.n_levels))

    def _count(self, n_levels: Callable[[Parameter], float]) -> float:
        """Number of distinct points, if parameters have so many values."""
        counted = {name: n_levels(self._all[name]) for name in self.order}
        if math.inf in counted.values():
            return math.inf
        whole = {name: int(n) for name, n in counted.items()}
        return math.prod(whole.values()) if self.conditions is None else self.conditions.count(whole)

    @cached_property
    def n_branches(self) -> int:
        """In how many ways parameters that others depend on can be decided; 1 without conditions."""
        parents = {} if self.conditions is None else self.conditions.parents
        counted = {name: parents[name].levels.n_levels if name in parents else 1 for name in self.order}
        return 1 if self.conditions is None else self.conditions.count(counted)

    def check(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A clean copy of a point: every active parameter, in order, as a builtin.

        Raises:
            InvalidInputError: A name is missing, unknown or that of a parameter which is not active, or a value breaks
                the rule of its parameter.
        """
        if self.conditions is not None:
            return self._check_active(params)
        if not isinstance(params, Mapping) or params.keys() != self._all.keys():
            require_fields("params", params, self.names)
        return {name: p.check(params[name], f"parameter {name!r}") for name, p in self._all.items()}

    def _check_active(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(params, Mapping):
            raise InvalidInputError(f"params must be a mapping of names to values; got {params!r}")
        unknown = [name for name in params if name not in self._all]
        if unknown:
            rule = f"params may have {', '.join(map(repr, self.names))}"
            raise InvalidInputError(f"{rule}; unknown: {', '.join(map(repr, unknown))}")
        checked: dict[str, Any] = {}
        for name in self.order:
            p, when = self._all[name], checked_when(self._all[name].when)
            if not self.exists(name, checked):
                if name in params:
                    got = ", ".join(f"{parent}={checked[parent]!r}" for parent in when or () if parent in checked)
                    rule = f"parameter {name!r} exists only where {when}"
                    raise InvalidInputError(f"{rule}; got {name}={params[name]!r} with {got or 'none of them'}")
            elif name not in params:
                where = "" if when is None else f" where {when}"
                raise InvalidInputError(f"parameter {name!r} must be given{where}; got {dict(params)!r}")
            else:
                checked[name] = p.check(params[name], f"parameter {name!r}")
        return {name: checked[name] for name in self.names if name in checked}

    def key(self, params: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
        """A hashable identity: equal for two points if and only if they are the same point of this space."""
        return tuple((type(value).__name__, value) for value in self.check(params).values())

    def to_unit(self, params: Mapping[str, Any]) -> Floats:
        """The point of the unit cube, of shape (d,), at which the models see `params`."""
        row: Floats = self.to_unit_many([params])[0]
        return row

    def to_unit_many(self, rows: Sequence[Mapping[str, Any]]) -> Floats:
        """Unit points of n points, of shape (n, d); each the same to the bit as `to_unit` of that point alone."""
        checked = [self.check(params) for params in rows]
        X = np.empty((len(checked), self.dimension))
        for j, (name, p) in enumerate(zip(self.coordinates, self._moving, strict=True)):
            if self.conditions is None or name not in self.conditions.children:
                X[:, j] = p.to_unit([params[name] for params in checked])
            else:
                there = [name in params for params in checked]
                X[:, j] = self.conditions.children[name].absent
                X[there, j] = p.to_unit([params[name] for params in checked if name in params])
        return X

    def from_unit(self, x: ArrayLike) -> dict[str, Any]:
        """The point at `x`, of shape (d,), as builtins: floats, ints and the choices themselves."""
        return self.from_unit_many(self._in_cube(x, 1)[None])[0]

    def from_unit_many(self, X: ArrayLike) -> list[dict[str, Any]]:
        """The n points at the rows of `X`, of shape (n, d)."""
        columns = [p.from_unit(units) for p, units in self._coordinates_of_all(X)]
        points = [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]
        if self.conditions is not None:
            for name, there in self.conditions.active(self._in_cube(X, 2)).items():
                for i in np.flatnonzero(~there):
                    del points[i][name]
        return points

    def columns(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        """The same by parameter: an array (n,) of values for each name.

        Where a parameter is not active a number is NaN, which makes whole numbers floats, and a choice is None.
        """
        columns = {
            name: p.column(units) for name, (p, units) in zip(self.names, self._coordinates_of_all(X), strict=True)
        }
        if self.conditions is not None:
            for name, there in self.conditions.active(self._in_cube(X, 2)).items():
                is_number = not isinstance(self._all[name], Categorical)
                columns[name] = columns[name].astype(np.float64 if is_number else object)
                columns[name][~there] = np.nan if is_number else None
        return columns

    def _coordinates_of_all(self, X: ArrayLike) -> list[tuple[Parameter, Floats]]:
        """Every parameter, in order, with its coordinates (n,) in the rows of `X`."""
        rows = self._in_cube(X, 2)
        units = dict(zip(self.coordinates, rows.T, strict=True))
        still = np.zeros(len(rows))  # for what does not move, any coordinate gives the only value there is
        return [(p, np.ascontiguousarray(units.get(name, still))) for name, p in self._all.items()]

    def snap(self, X: ArrayLike) -> Floats:
        """Unit rows, of shape (..., d), with the discrete coordinates moved to the level whose piece they are in.

        Those of parameters that are not active are moved to where they belong.
        """
        snapped = self._in_cube(X)
        for j, p in enumerate(self._moving):
            levels = levels_of(p)
            if levels is not None:
                snapped[..., j] = levels.snap(np.ascontiguousarray(snapped[..., j]))
        return self.settle(snapped)

    def settle(self, X: Floats) -> Floats:
        """Unit rows, of shape (..., d), with the coordinates of parameters that are not active where they belong."""
        if self.conditions is None or not self.dimension:
            return X
        return self.conditions.settle(X.reshape(-1, self.dimension)).reshape(X.shape)

    def exists(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a parameter is active, given checked values of those before it in `order` that are."""
        when = checked_when(self._all[name].when)
        return when is None or when.holds(params)

    def may_be_absent(self, name: str) -> bool:
        """Whether some points do not have a parameter."""
        return self.conditions is not None and name in self.conditions.children

    def has_levels(self, name: str) -> bool:
        """Whether a parameter has finitely many values."""
        return levels_of(self._all[name]) is not None

    def to_plain(self) -> dict[str, Any]:
        """The space as plain JSON values. A list, since the order of the parameters is part of the space."""
        return {"parameters": [_write(name, value) for name, value in self.parameters.items()]}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> "Space":
        """The space that `to_plain` wrote; anything else is refused."""
        require_fields("space", data, ("parameters",))
        if not isinstance(data["parameters"], list):
            raise InvalidInputError(f"parameters of a space must be a list; got {data['parameters']!r}")
        pairs = [_read(f"parameters[{i}]", entry) for i, entry in enumerate(data["parameters"])]
        if len(dict(pairs)) < len(pairs):
            raise InvalidInputError(f"names of parameters must differ; got {[name for name, _ in pairs]}")
        return cls(dict(pairs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"Space({dict(self.parameters)!r})"

    def _repr_html_(self) -> str:
        """For a notebook."""
        return table(("parameter", "values"), self.parameters.items())

    def __reduce__(self) -> tuple[Any, ...]:
        return Space, (dict(self.parameters),)  # a read-only mapping does not pickle

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.to_plain())

    def _in_cube(self, X: ArrayLike, ndim: int | None = None) -> Floats:
        """A fresh array of unit points: shape checked, rounding at the faces undone."""
        try:
            array = np.asarray(X)
        except ValueError:  # a ragged list
            array = np.asarray(None)
        if array.dtype.kind not in "iuf":
            raise InvalidInputError(f"unit points must be real numbers; got {X!r}")
        if array.shape[-1:] != (self.dimension,) or ndim not in (None, array.ndim):
            shape = {None: "(..., {})", 1: "({},)", 2: "(n, {})"}[ndim].format(self.dimension)
            raise InvalidInputError(f"unit points must be of shape {shape}; got {array.shape}")
        outside = ~((array >= -ROUNDING) & (array <= 1.0 + ROUNDING))  # written so that NaN is outside
        if outside.any():
            raise InvalidInputError(f"unit points must be in [0, 1]; got {array[outside][0]}")
        return np.clip(array.astype(np.float64), 0.0, 1.0)


def _name(name: object) -> str:
    if type(name) is not str or not name:
        raise InvalidInputError(f"the name of a parameter must be a str and not empty; got {name!r}")
    if "\0" in name or not _is_text(name):
        raise InvalidInputError(f"the name of a parameter must be text that files and databases hold; got {name!r}")
    return name


def _is_text(name: str) -> bool:
    """Whether it can be written as UTF-8, which half of a surrogate pair cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parameter(name: str, value: object) -> Parameter | Value:
    if isinstance(value, Parameter):
        return value
    if not isinstance(unboxed(value), Value):
        rule = f"parameter {name!r} must be a Float, Integer, Categorical or a plain fixed value"
        raise InvalidInputError(
            f"{rule}; got {value!r}; for bounds write Float(low, high), for choices Categorical([...])"
        )
    return plain_value(f"parameter {name!r}", value)


def _write(name: str, value: Parameter | Value) -> dict[str, Any]:
    for kind, (cls, fields) in _KINDS.items():
        if type(value) is cls:
            arguments = {f: getattr(value, f) for f in (*fields, *_given(value))}
            condition = checked_when(getattr(value, "when", None))
            when = {} if condition is None else {"when": condition.to_plain()}
            plain = {f: list(v) if f == "choices" else v for f, v in arguments.items()}
            return {"name": name, "kind": kind} | plain | when
    return {"name": name, "kind": "fixed", "value": value}


def _given(value: Any) -> tuple[str, ...]:
    """What is written only where it is given: before there were steps of floats, none was."""
    return ("step",) if isinstance(value, Float) and value.step is not None else ()


def _read(where: str, entry: object) -> tuple[str, Parameter | Value]:
    if not isinstance(entry, Mapping) or "kind" not in entry:
        raise InvalidInputError(f"{where} must be a mapping with a kind; got {entry!r}")
    kind = entry["kind"]
    if kind != "fixed" and (not isinstance(kind, str) or kind not in _KINDS):
        raise InvalidInputError(f"kind of {where} must be one of {[*_KINDS, 'fixed']}; got {kind!r}")
    fields = ("value",) if kind == "fixed" else _KINDS[kind][1]
    if kind == "float" and "step" in entry:
        fields = (*fields, "step")
    if kind != "fixed" and "when" in entry:
        fields = (*fields, "when")
    require_fields(where, entry, ("name", "kind", *fields))
    name = _name(entry["name"])
    if kind == "fixed":
        return name, plain_value(f"parameter {name!r}", entry["value"])
    try:
        return name, _KINDS[kind][0](**{f: entry[f] for f in fields})
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name!r}: {error}") from None


def _grid(parameter: Parameter) -> Floats | None:
    levels = levels_of(parameter)
    if levels is None or (not isinstance(parameter, Categorical) and levels.n_levels > MAX_GRID):
        return None
    grid = levels.grid()
    grid.setflags(write=False)
    return grid


def _conditions(order: list[str], every: Mapping[str, Parameter], coordinates: tuple[str, ...]) -> Conditions | None:
    """What the parameters say of when they exist, checked; None if all of them always do."""
    places = {name: j for j, name in enumerate(coordinates)}
    children = {
        name: Child(
            {parent: _wanted(name, parent, every[parent], values) for parent, values in when.items()},
            places.get(name),
            ABSENT_CATEGORY if isinstance(every[name], Categorical) else ABSENT_NUMBER,
        )
        for name in order
        if (when := checked_when(every[name].when)) is not None
    }
    needed = {parent for child in children.values() for parent in child.when}
    parents = {
        name: Parent(p, places.get(name))
        for name in order
        if name in needed and isinstance(p := every[name], Integer | Categorical)
    }
    return Conditions(parents, children) if children else None


def _wanted(name: str, parent: str, p: Parameter, values: tuple[Value, ...]) -> Bools:
    """Whether a parameter is there with the first value of its parent, the second, ..."""
    where = f"when of parameter {name!r}"
    if isinstance(p, Float):
        raise InvalidInputError(f"{where} must name an Integer or a Categorical; {parent!r} is {p!r}")
    if p.n_levels > MOST_PARENT_LEVELS:
        got = f"{parent!r} has {p.n_levels}"
        raise InvalidInputError(f"{where} must name a parameter of at most {MOST_PARENT_LEVELS} values; {got}")
    wanted = np.zeros(p.n_levels, dtype=bool)
    for value in values:
        try:
            wanted[p.positions(p.to_unit([p.check(value, f"{parent!r}")]))] = True
        except InvalidInputError as error:
            raise InvalidInputError(f"{where}: {error}") from None
    return wanted
