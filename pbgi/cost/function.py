"""A price known beforehand, as any Python function of the parameters: its logarithm, with a gradient by differences."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pbgi.arrays import Floats
from pbgi.checks import as_float, is_real, unboxed
from pbgi.errors import InvalidInputError
from pbgi.space import MAX_GRID, Space

PriceFunction = Callable[[Mapping[str, Any]], Any]

# Step of differences; on integers too fine for a grid, one that reaches the next level.
DIFFERENCE = 1e-7
LEVEL_DIFFERENCE = 1.0 / MAX_GRID
RULE = "a known cost must be a positive, finite number"


def require_callable(name: str, price: object) -> None:
    """Raise unless a price can be asked of it."""
    if not callable(price):
        raise InvalidInputError(f"{name} must be a function of the parameters, a dict; got {price!r}")


class Price:
    """The logarithm of a price on the unit cube.

    Args:
        space: Turns points of the cube into parameters.
        function: Of a dict of parameters, to a positive number; if `vectorized`, of a dict of arrays (m,), to an array
            (m,) of positive numbers.
        vectorized: Whether one call prices many points.
    """

    def __init__(self, space: Space, function: PriceFunction, vectorized: bool) -> None:
        self._space, self._function, self._vectorized = space, function, vectorized
        self._steps = {
            k: LEVEL_DIFFERENCE if space.has_levels(name) else DIFFERENCE
            for k, (name, grid) in enumerate(zip(space.coordinates, space.grids, strict=True))
            if grid is None
        }

    def log(self, X: Floats) -> Floats:
        """Logarithm of the price at the points X (m, d)."""
        if self._vectorized:
            return self._log_of_columns(X)
        return np.array([math.log(self._checked(params)) for params in self._space.from_unit_many(X)])

    def log_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The same with its gradient (m, d), zero in grids.

        Differences are one-sided in floats, inwards at the faces: that takes half the calls. In integers too fine for
        a grid they span a level on both sides.
        """
        moves = [(k, self._moved(X, k, step)) for k, step in self._steps.items()]
        logs = self.log(np.concatenate([X, *(end for _, ends in moves for end in ends)])).reshape(-1, len(X))
        ends_logs = iter(logs[1:])
        gradient = np.zeros(X.shape)
        for k, ends in moves:
            # Between the levels that were priced.
            run = np.diff([self._space.snap(end)[:, k] for end in (X, *ends)][-2:], axis=0)[0]
            rise = np.diff([logs[0], *(next(ends_logs) for _ in ends)][-2:], axis=0)[0]
            gradient[:, k] = np.where(run != 0, rise / np.where(run != 0, run, 1.0), 0.0)
        return logs[0], gradient

    def _moved(self, X: Floats, k: int, step: float) -> list[Floats]:
        """The points moved along coordinate k: one end of a difference that begins at X, or both ends."""
        one_sided = step == DIFFERENCE
        shifts = (
            [np.where(X[:, k] + step > 1.0, -step, step)] if one_sided else [np.full(len(X), s) for s in (-step, step)]
        )
        ends = [X.copy() for _ in shifts]
        for end, shift in zip(ends, shifts, strict=True):
            end[:, k] = np.clip(X[:, k] + shift, 0.0, 1.0)
        return ends

    def _checked(self, params: Mapping[str, Any]) -> float:
        price = self._function(params)
        plain: Any = unboxed(price)
        number = as_float(plain) if is_real(plain) else math.nan
        if not 0.0 < number < math.inf:
            raise InvalidInputError(f"{RULE}; at {params} it is {price!r}")
        return number

    def _log_of_columns(self, X: Floats) -> Floats:
        prices = np.asarray(self._function(self._space.columns(X)))
        if prices.shape not in ((), (len(X),)) or prices.dtype.kind not in "iuf":
            got = f"shape {prices.shape} and dtype {prices.dtype}"
            raise InvalidInputError(f"a vectorized price of {len(X)} points must be as many real numbers; got {got}")
        prices = np.broadcast_to(prices.astype(np.float64), len(X))
        bad = ~((prices > 0.0) & np.isfinite(prices))
        if bad.any():
            at = int(np.argmax(bad))
            raise InvalidInputError(f"{RULE}; at {self._space.from_unit(X[at])} it is {prices[at]!r}")
        log_prices: Floats = np.log(prices)
        return log_prices
