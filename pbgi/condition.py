"""Parameters that exist only where others have certain values.

    Space({
        "model": Categorical(["svm", "forest"]),
        "C": Float(1e-3, 1e3, log=True, when={"model": "svm"}),
        "depth": Integer(1, 20, when={"model": "forest"}),
    })

A point has only the parameters that are there, its *active* ones. In the unit cube every parameter keeps its
coordinate, and one that is not active has always the same, so that equal points have equal coordinates: the middle for
a number, where the trend of costs is level, and for a choice a code that no choice has, which puts it at one distance
from all of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pbgi.arrays import Bools, Floats, Ints
from pbgi.checks import unboxed
from pbgi.errors import InvalidInputError
from pbgi.serialization import Value, plain_value

ABSENT_NUMBER, ABSENT_CATEGORY = 0.5, 0.0  # levels sit at (i + 1/2) / k: no choice is at 0
# A parent is searched value by value, and integers of more levels than that are not.
MOST_PARENT_LEVELS = 64


class When(Mapping[str, tuple[Value, ...]]):
    """Parents with the values of them under which a parameter exists; all must hold. Immutable."""

    def __init__(self, conditions: Mapping[str, Any]) -> None:
        if not isinstance(conditions, Mapping) or not conditions:
            rule = "when must map names of parameters to a value or a list of values"
            raise InvalidInputError(f"{rule}; got {conditions!r}; write when={{'model': 'svm'}}, or leave it out")
        self._values = {name: _values_of(name, wanted) for name, wanted in conditions.items()}

    def __getitem__(self, name: str) -> tuple[Value, ...]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        # 1 and True are different choices, which tuples would not see.
        return isinstance(other, When) and self._typed() == other._typed()

    def __hash__(self) -> int:
        return hash(frozenset(self._typed().items()))

    def __repr__(self) -> str:
        return repr(self.to_plain())

    def __str__(self) -> str:
        return " and ".join(f"{name} is {' or '.join(map(repr, values))}" for name, values in self.items())

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Whether the parents have such values in a checked point, or in what is known of one."""
        return all(
            parent in params
            and any(type(value) is type(params[parent]) and value == params[parent] for value in values)
            for parent, values in self.items()
        )

    def to_plain(self) -> dict[str, list[Value]]:
        """As JSON."""
        return {name: list(values) for name, values in self.items()}

    def _typed(self) -> dict[str, tuple[tuple[type, Value], ...]]:
        return {name: tuple((type(value), value) for value in values) for name, values in self.items()}


def checked_when(when: Mapping[str, Any] | None) -> When | None:
    """The condition of a parameter, checked as far as it can be without its space."""
    return when if when is None or isinstance(when, When) else When(when)


def _values_of(name: object, wanted: Any) -> tuple[Value, ...]:
    if type(name) is not str:
        raise InvalidInputError(f"when must map names of parameters to values; got the name {name!r}")
    wanted = wanted.tolist() if isinstance(wanted, np.ndarray) else wanted
    listed = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str | bytes) else [wanted]
    if not listed:
        raise InvalidInputError(f"when must give at least one value of {name!r}; got {wanted!r}")
    return tuple(plain_value(f"each value of {name!r} in when", unboxed(value)) for value in listed)


class Levels(Protocol):
    """A parameter with finitely many values."""

    @property
    def n_levels(self) -> int:
        """How many there are."""

    def positions(self, units: Floats) -> NDArray[np.int64]:
        """Positions of the levels to which coordinates belong."""


@dataclass(frozen=True, eq=False)
class Parent:
    """A parameter that others depend on, with its coordinate: None if it has one value and does not move."""

    levels: Levels
    column: int | None

    def positions(self, X: Floats) -> NDArray[np.int64]:
        """Positions (m,) of its values at the points X (m, d)."""
        if self.column is None:
            return np.zeros(len(X), dtype=np.int64)
        return self.levels.positions(np.ascontiguousarray(X[:, self.column]))


@dataclass(frozen=True, eq=False)
class Child:
    """A parameter with a condition, and its coordinate.

    Attributes:
        when: For each parent, whether this parameter is active with its first value, its second, ...
        column: Its coordinate, None if it does not move.
        absent: What that is where the parameter is not active.
    """

    when: Mapping[str, Bools]
    column: int | None
    absent: float


@dataclass(frozen=True, eq=False)
class Conditions:
    """Which parameters of a space are active at points of the unit cube.

    Attributes:
        parents: By name, a parent of a parent before it.
        children: By name, a parent of a child before it.
    """

    parents: Mapping[str, Parent]
    children: Mapping[str, Child]

    def active(self, X: Floats) -> dict[str, Bools]:
        """For each parameter with a condition, at which of the points X (m, d) it is there."""
        positions = {name: parent.positions(X) for name, parent in self.parents.items()}
        found: dict[str, Bools] = {}
        for name, child in self.children.items():
            there = np.ones(len(X), dtype=np.bool_)
            for parent, wanted in child.when.items():
                there &= wanted[positions[parent]]
                if parent in found:
                    there &= found[parent]
            found[name] = there
        return found

    def mask(self, X: Floats) -> Bools:
        """(m, d) Which coordinates are active at the points X (m, d)."""
        mask, active = np.ones(X.shape, dtype=np.bool_), self.active(X)
        for name, child in self.children.items():
            if child.column is not None:
                mask[:, child.column] = active[name]
        return mask

    def settle(self, X: Floats) -> Floats:
        """The points X (m, d) with inactive coordinates where they belong."""
        X, active = X.copy(), self.active(X)
        for name, child in self.children.items():
            if child.column is not None:
                X[~active[name], child.column] = child.absent
        return X

    def decisions(self, X: Floats) -> Ints:
        """(m, k) Which branch the points X (m, d) are in: the positions of the k parents, -1 where one is not there."""
        active = self.active(X)
        columns = [np.where(active.get(name, True), p.positions(X), -1) for name, p in self.parents.items()]
        return np.stack(columns, axis=1).astype(np.intp)

    def is_in(self, branch: tuple[int, ...], X: Floats) -> Bools:
        """Which points (m, d) are in a branch, said by what its parents are, from the first one on."""
        return np.asarray((self.decisions(X)[:, : len(branch)] == branch).all(axis=1))

    def count(self, n_levels: Mapping[str, int]) -> int:
        """How many points there are, if the parameters, parents before children, have so many values each.

        Parents are decided one after the other, and forgotten once their last child is reached.
        """
        names = list(n_levels)
        counts: Counter[frozenset[tuple[str, int]]] = Counter({frozenset(): 1})
        for i, name in enumerate(names):
            needed = {p for later in names[i + 1 :] if later in self.children for p in self.children[later].when}
            grown: Counter[frozenset[tuple[str, int]]] = Counter()
            for decided, n in counts.items():
                kept = frozenset(pair for pair in decided if pair[0] in needed)
                if not self._is_there(name, dict(decided)):
                    grown[kept] += n
                elif name in needed:
                    for position in range(n_levels[name]):
                        grown[kept | {(name, position)}] += n
                else:
                    grown[kept] += n * n_levels[name]
            counts = grown
        return counts.total()

    def _is_there(self, name: str, decided: Mapping[str, int]) -> bool:
        """Whether a parameter is active, given the positions of the parents that are."""
        when = self.children[name].when if name in self.children else {}
        return all(parent in decided and wanted[decided[parent]] for parent, wanted in when.items())


def ordered(whens: Mapping[str, When | None]) -> list[str]:
    """The names with every parent before its children, children as soon as all their parents are there.

    Raises:
        InvalidInputError: A parent is unknown, or parameters depend on each other in a circle.
    """
    order: list[str] = []

    def add(name: str) -> None:
        order.append(name)
        for other, when in whens.items():
            if when is not None and name in when and other not in order and all(parent in order for parent in when):
                add(other)

    for name, when in whens.items():
        unknown = [parent for parent in when or () if parent not in whens]
        if unknown:
            rule = f"when of parameter {name!r} must name parameters of the space, {', '.join(map(repr, whens))}"
            raise InvalidInputError(f"{rule}; got {unknown[0]!r}")
        if when is None:
            add(name)
    circle = [name for name in whens if name not in order]
    if circle:
        rule = "parameters must not depend on each other in a circle"
        raise InvalidInputError(f"{rule}; got {', '.join(map(repr, circle))}; drop a when")
    return order
