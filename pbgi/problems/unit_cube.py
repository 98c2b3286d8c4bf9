"""Problems whose parameters are the coordinates of the unit cube, with the price that the paper gives to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pbgi.arrays import Floats
from pbgi.checks import require_count, unboxed
from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.parameter import Float
from pbgi.problems.problem import Outcome
from pbgi.space import Space

T = TypeVar("T")

# Of the paper's cost function (Appendix D): c(x) = 1 + 20 mean(x). The text has the 1-norm, which is d times as much;
# the published curves were made with the mean.
BASE_PRICE, MEAN_PRICE = 1.0, 20.0


def unit_cube(dimension: int) -> Space:
    """The space of x0, ..., x{d-1}, each from 0 to 1."""
    return Space({f"x{k}": Float(0.0, 1.0) for k in range(require_count("dimension", dimension))})


def mean_price(params: Mapping[str, Any]) -> Any:
    """The price 1 + 20 mean(x), from 1 to 21, of a point, or of many if the parameters are arrays."""
    return BASE_PRICE + MEAN_PRICE * (sum(params.values()) / len(params))


def unit_price(params: Mapping[str, Any]) -> float:  # noqa: ARG001 (a price takes the parameters)
    """The price of every point where costs are uniform."""
    return 1.0


def chosen(name: str, choice: str, options: Mapping[str, T]) -> T:
    """The option of that name.

    Raises:
        InvalidInputError: There is none.
    """
    if choice not in options:
        raise InvalidInputError(f"{name} must be one of {', '.join(options)}; got {choice!r}")
    return options[choice]


def checked_seed(seed: object) -> int:
    """The seed, if it is one."""
    plain = unboxed(seed)
    if isinstance(plain, bool) or not isinstance(plain, int) or not 0 <= plain < 2**32:
        raise InvalidInputError(f"seed must be a whole number from 0 to 2**32 - 1; got {seed!r}")
    return plain


def mean_cost(cost: str) -> tuple[Cost, Callable[[Mapping[str, Any]], Any]]:
    """What an optimizer is told of the cost and what a point costs, for "uniform" or "varying" cost."""
    varying: tuple[Cost, Callable[[Mapping[str, Any]], Any]] = (KnownCost(mean_price, vectorized=True), mean_price)
    return chosen("cost", cost, {"uniform": (UniformCost(), unit_price), "varying": varying})


@dataclass(frozen=True)
class PricedFunction:
    """A function on the unit cube as the `evaluate` of a problem.

    Attributes:
        space: Made by `unit_cube`.
        function: Maps a point (d,) to its value.
        price: Maps parameters to the cost.
    """

    space: Space
    function: Callable[[Floats], float]
    price: Callable[[Mapping[str, Any]], Any]

    def __call__(self, params: Mapping[str, Any]) -> Outcome:
        """The value and the cost at a point of the space."""
        checked = self.space.check(params)
        point = np.array(list(checked.values()))  # coordinates of this cube are the parameters themselves
        return Outcome(float(self.function(point)), float(self.price(checked)))
