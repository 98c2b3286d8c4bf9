"""A search space as scikit-learn users write it, as the engine sees it, and the way back.

    Float, Integer, Categorical       as they are
    a list, a one-dimensional array   Categorical: choices without an order. Choices that JSON cannot hold (estimators,
                                      classes, tuples, NaN), and 1 beside 1.0 or True, are known to the engine by their
                                      position.
    range(1, 20, 2)                   Integer
    scipy.stats: uniform(a, b - a)    Float(a, b)
                 loguniform(a, b)     Float(a, b, log=True)
                 randint(a, b)        Integer(a, b - 1)
    str, int, float, bool, None       fixed

Other distributions have no bounds, or prefer some values for reasons that a search by a model has no use for. A tuple
is refused: it may be meant as bounds or as choices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pbgi.checks import unboxed
from pbgi.cost import Cost, KnownCost, LearnedCost
from pbgi.cost.function import PriceFunction
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.serialization import Value, plain_value
from pbgi.space import Space

WHICH = "which space"  # of a list of them


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The space of the engine, and the choices that it knows by their positions.

    Attributes:
        engine: Where the engine searches.
        objects: Name to choices, of the parameters that are positions there.
        names: Of a list of spaces the names that the estimator knows, by those of the engine.
    """

    engine: Space
    objects: Mapping[str, Sequence[Any]]
    names: Mapping[str, str] | None = None

    @classmethod
    def of(cls, distributions: Any) -> "SearchSpace":
        """The space of these lists and distributions, or an `InvalidInputError` that names the parameter.

        A list of spaces is one space: which of them, and its parameters where it is that one.
        """
        if _is_list(distributions) or isinstance(distributions, tuple):
            return cls._of_several([cls.of(one) for one in distributions])
        _require_one_space(distributions)
        objects = {
            name: list(value) for name, value in distributions.items() if _is_list(value) and not _is_plain(value)
        }
        positions = {name: Categorical(range(len(choices))) for name, choices in objects.items()}
        return cls(
            Space({name: positions.get(name) or _parameter(name, value) for name, value in distributions.items()}),
            objects,
        )

    @classmethod
    def _of_several(cls, spaces: Sequence["SearchSpace"]) -> "SearchSpace":
        if not spaces or any(space.names is not None for space in spaces):
            raise InvalidInputError("a list of spaces must hold at least one mapping, and no other list")
        parameters: dict[str, Parameter | Value] = {WHICH: Categorical(range(len(spaces)))}
        objects, names = dict[str, Sequence[Any]](), dict[str, str]()
        for i, space in enumerate(spaces):
            for name, p in space.engine.parameters.items():
                inner = _prefixed(i, name)
                existing = p if isinstance(p, Parameter) else Categorical([p])
                parents = {_prefixed(i, parent): list(values) for parent, values in (existing.when or {}).items()}
                parameters[inner], names[inner] = replace(existing, when={WHICH: i, **parents}), name
            objects |= {_prefixed(i, name): choices for name, choices in space.objects.items()}
        return cls(Space(parameters), objects, names)

    def candidate(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that an estimator is given."""
        known = {name: self.objects[name][value] if name in self.objects else value for name, value in params.items()}
        return known if self.names is None else {self.names[n]: value for n, value in known.items() if n in self.names}

    def candidates(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The same for many: an array (n,) of values for each name."""
        found = {name: self._column(name, column) for name, column in columns.items()}
        if self.names is None:
            return found
        merged: dict[str, NDArray[Any]] = {}
        for inner, name in self.names.items():
            column, before = found[inner], merged.get(name)
            merged[name] = column if before is None else np.where(_is_absent(before), column, before)
        return merged

    def _column(self, name: str, column: NDArray[Any]) -> NDArray[Any]:
        if name not in self.objects:
            return column
        values = np.empty(len(column), dtype=object)
        for i, position in enumerate(column):
            values[i] = None if position is None else self.objects[name][position]
        return values

    def cost(self, cost: Cost | None) -> Cost | None:
        """A cost whose function takes candidates, as one whose function takes what the engine knows them by."""
        if not self.objects and self.names is None:
            return cost
        if isinstance(cost, KnownCost):
            return replace(cost, price=_PriceOfCandidate(self, cost.price, cost.vectorized))
        if isinstance(cost, LearnedCost) and cost.known_factor is not None:
            return replace(cost, known_factor=_PriceOfCandidate(self, cost.known_factor, cost.vectorized))
        return cost


@dataclass(frozen=True, eq=False)
class _PriceOfCandidate:
    """A class and not a function inside one, so that a fitted search can be pickled."""

    space: SearchSpace
    price: PriceFunction
    vectorized: bool

    def __call__(self, params: Any) -> Any:
        return self.price(self.space.candidates(params) if self.vectorized else self.space.candidate(params))


def _prefixed(i: int, name: str) -> str:
    """A parameter of one of several spaces as the engine knows it: another space may have one of that name, too."""
    return f"{i}:{name}"


def _is_absent(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a parameter does not exist: NaN among numbers, None among choices."""
    return np.array([value is None or value != value for value in column.tolist()], dtype=np.bool_)


def _require_one_space(distributions: Any) -> None:
    if not isinstance(distributions, Mapping):
        rule = "search_space must be a mapping from names to parameters, or a list of such mappings"
        raise InvalidInputError(f"{rule}; got {distributions!r}; write {{'C': pbgi.Float(0.01, 100, log=True)}}")


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _is_plain(choices: Sequence[Any]) -> bool:
    """Whether the engine can know the choices by themselves."""
    try:
        plain = [plain_value("choice", choice) for choice in choices]
    except InvalidInputError:
        return False
    typed = {(type(choice), choice) for choice in plain}
    return len(set(plain)) == len(typed)  # 1 and 1.0 differ to an estimator, but not to a Categorical


def _parameter(name: str, candidates: Any) -> Parameter | Value:
    if isinstance(candidates, Parameter) or isinstance(unboxed(candidates), Value):
        return candidates  # type: ignore[no-any-return]
    try:
        if _is_list(candidates):
            return Categorical(candidates)
        if isinstance(candidates, range) and candidates:
            return Integer(min(candidates), max(candidates), step=abs(candidates.step))
        found = _of_distribution(candidates)
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name!r}: {error}") from None
    if found is None:
        rule = (
            f"parameter {name!r} must be a Float, Integer or Categorical of pbgi, a list of choices, a range, a frozen "
            "uniform, loguniform or randint of scipy.stats, or a plain fixed value"
        )
        shown = f"{candidates.dist.name} of scipy.stats" if hasattr(candidates, "dist") else repr(candidates)
        way_out = "for bounds write pbgi.Float(low, high) or pbgi.Float(low, high, log=True), for choices a list"
        raise InvalidInputError(f"{rule}; got {shown}; {way_out}")
    return found


def _of_distribution(frozen: Any) -> Parameter | None:
    """The parameter with the support of a frozen distribution, if that says all of it."""
    kind = type(getattr(frozen, "dist", None))
    if kind not in (type(stats.uniform), type(stats.loguniform), type(stats.randint)):
        return None
    low, high = (unboxed(bound) for bound in frozen.support())
    if kind is type(stats.randint):
        return Integer(int(low), int(high))  # type: ignore[call-overload]
    if kind is type(stats.uniform):
        return Float(low, high)  # type: ignore[arg-type]
    found = Float(low, high, log=True)  # type: ignore[arg-type]
    # A shifted one (loc=...) is uniform in the logarithm of something else.
    shifted = not math.isclose(frozen.median(), math.sqrt(found.low) * math.sqrt(found.high), rel_tol=1e-9)
    return None if shifted else found
