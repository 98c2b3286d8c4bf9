"""The points a user begins with: to be tried first, or known already."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from pbgi.checks import check_cost, check_value
from pbgi.errors import InvalidInputError
from pbgi.optimizer import Optimizer
from pbgi.serialization import Value
from pbgi.space import Space

Params: TypeAlias = Mapping[str, Value]
StartingPoint: TypeAlias = Params | tuple[Params, float] | tuple[Params, float, float]


class Known(NamedTuple):
    """A point with what is known of it; without a value it is to be tried."""

    params: dict[str, Value]
    value: float | None = None
    cost: float | None = None

    def to_plain(self) -> list[Any]:
        """As JSON; values as text, since a value may be NaN."""
        return [self.params, None if self.value is None else repr(self.value), self.cost]


def read_points(space: Space, x0: Iterable[Any]) -> list[Known]:
    """The points, checked.

    Raises:
        InvalidInputError: One is something else, or not in the space.
    """
    if isinstance(x0, Mapping | str) or not isinstance(x0, Iterable):
        raise InvalidInputError(f"x0 must be a list of points; got {x0!r}; write x0=[{{...}}]")
    return [_read(space, point) for point in x0]


def _read(space: Space, point: Any) -> Known:
    if isinstance(point, Mapping):
        return Known(space.check(point))
    if isinstance(point, tuple) and len(point) in (2, 3):
        cost = point[2] if len(point) == 3 else None
        return Known(space.check(point[0]), check_value(point[1]), check_cost(cost))
    raise InvalidInputError(f"x0 must hold params, (params, value) or (params, value, cost); got {point!r}")


def tell_known(optimizer: Optimizer, points: Iterable[Known]) -> list[dict[str, Value]]:
    """Tell what is known; return the points to be tried."""
    to_try = []
    for point in points:
        if point.value is None:
            to_try.append(point.params)
        else:
            optimizer.tell(point.params, point.value, cost=point.cost)
    return to_try
