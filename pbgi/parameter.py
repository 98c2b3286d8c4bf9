"""One parameter of a search space, and its coordinate in the unit cube.

    Float          linear, or linear in log(value)
    Float, step    an Integer over the number of steps above low
    Integer        k levels; level i sits at (i + 0.5) / k, and [0, 1] is cut in k equal pieces, one per level. That is
                   linear from low - step/2 to high + step/2: the end levels get as much as the others.
    Integer, log   linear in log(value) from log(low - step/2) to log(high + step/2); a level sits at its own logarithm
                   and owns the piece from half a step below it to half a step above
    Categorical    an Integer over the positions of the choices; no meaning is to be read into their order

No conversion leaves the bounds. Going to the cube and back is exact for integers, choices, fixed values and for the
bounds of floats. Between its bounds a float comes back to within (eps = 2^-52, ulp = spacing of floats at the value)

    linear   2 eps (high - low) + 1 ulp              log   4 eps (1 + log(high / low)) value + 1 ulp

which is about what a coordinate in [0, 1] can hold: its own spacing, near 1, is eps / 2 of the range.
"""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pbgi.arrays import Floats
from pbgi.checks import as_float, checks_arguments, is_real, refuse_unknown_arguments, set_fields, unboxed
from pbgi.condition import checked_when
from pbgi.errors import InvalidInputError
from pbgi.serialization import Value, plain_value

# A log level is found again while the rounding of (b + k) log(1 + k/b) stays below half a level (see `Integer`): 2^40
# levels leave a factor of ten in the worst case.
MAX_LEVELS = 2**40
STEP_ROUNDING = 1e-8  # how far from a whole number of steps a value may be; as in Optuna


@checks_arguments
@dataclass(frozen=True)
class Float:
    """A real number between two bounds, both included.

    Attributes:
        low: Lower bound; finite, positive if `log`.
        high: Upper bound; finite, not below `low`.
        log: Search on a logarithmic scale.
        step: Distance between neighbors, if only low, low + step, ..., high are wanted; not with `log`.
        when: Parents with the values under which this parameter exists, `{"model": "svm"}` or
            `{"model": ["svm", "tree"]}`; all must hold. By default it always exists.
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, low=_real("low", self.low), high=_real("high", self.high), when=checked_when(self.when))
        _require_bounds(self.low, self.high, self.log)
        if self.step is not None:
            set_fields(self, step=_real("step", self.step))
            _ = self.levels  # which checks it

    def __repr__(self) -> str:
        return _as_written(self, self.low, self.high)

    @property
    def n_levels(self) -> float:
        """Number of distinct values: infinite unless there is a step or the bounds are equal."""
        return 1 if self.low == self.high else math.inf if self.levels is None else self.levels.n_levels

    @cached_property
    def levels(self) -> "Integer | None":
        """The number of steps above low, which is what is searched over; None without a step."""
        if self.step is None:
            return None
        if self.log:
            raise InvalidInputError(f"log and step do not go together; got step={self.step!r}; drop one of them")
        if self.step <= 0:
            raise InvalidInputError(f"step must be positive; got {self.step!r}")
        steps = as_float((self.high - self.low) / self.step)
        if not steps < MAX_LEVELS:
            raise InvalidInputError(f"a Float may have at most 2**40 steps; got step={self.step!r}; drop it")
        # A step far beyond the range is no whole number of them either, however near to zero the share is.
        if abs(steps - round(steps)) > STEP_ROUNDING or (round(steps) == 0 and self.high > self.low):
            got = f"got low={self.low!r}, high={self.high!r}, step={self.step!r}"
            fits = f"the largest high that fits is {self._at_level(math.floor(steps))!r}"
            raise InvalidInputError(f"high - low must be a whole number of steps; {got}; {fits}")
        return Integer(0, round(steps))

    def _at_level(self, level: int) -> float:
        """The value so many steps above low, in decimals: three steps of 0.1 are 0.3."""
        return min(float(Decimal(str(self.low)) + level * Decimal(str(self.step))), self.high)

    def check(self, value: object, name: str = "value") -> float:
        """The value as a float, or an error that calls it `name`."""
        number = _real(name, value)
        if not self.low <= number <= self.high:
            raise InvalidInputError(f"{name} must be from {self.low!r} to {self.high!r}; got {value!r}")
        if self.step is None:
            return number
        steps = (number - self.low) / self.step
        if abs(steps - round(steps)) > STEP_ROUNDING:
            raise InvalidInputError(f"{name} must be {self.low!r} plus a multiple of {self.step!r}; got {value!r}")
        return self._at_level(round(steps))

    def to_unit(self, values: Sequence[Any]) -> Floats:
        """Coordinates of checked values."""
        v = np.array(values, dtype=np.float64)
        if self.levels is not None and self.step is not None:
            return self.levels.at(np.rint((v - self.low) / self.step).astype(np.int64))
        with np.errstate(all="ignore"):
            if self.log:
                units = self._log_from_low(v) / self._log_from_low(np.array([self.high]))
            else:
                low, high, scale = self._scaled_bounds()
                units = (v * scale - low) / np.float64(high - low)
        return np.where(v <= self.low, 0.0, np.where(v >= self.high, 1.0, np.clip(units, 0.0, 1.0)))

    def from_unit(self, units: Floats) -> list[Any]:
        """Values at coordinates in [0, 1]."""
        return list(self.column(units).tolist())

    def column(self, units: Floats) -> NDArray[Any]:
        """The same as an array."""
        if self.levels is not None:
            return np.array([self._at_level(level) for level in self.levels.positions(units).tolist()])
        with np.errstate(all="ignore"):
            if self.log:
                v = self._exp_from_low(units * self._log_from_low(np.array([self.high])))
            else:
                low, high, scale = self._scaled_bounds()
                v = (low + units * (high - low)) / scale
        # Rounding may step over a bound, or stop short of one; the coordinates 0 and 1 mean the bounds themselves.
        return np.where(units <= 0.0, self.low, np.where(units >= 1.0, self.high, np.clip(v, self.low, self.high)))

    def _scaled_bounds(self) -> tuple[float, float, float]:
        """The bounds times the factor, a power of two, that keeps their difference from overflowing."""
        scale = 1.0 if math.isfinite(self.high - self.low) else 0.5
        return self.low * scale, self.high * scale, scale

    def _log_from_low(self, v: Floats) -> Floats:
        """log(v / low), accurate next to low; where high / low overflows, the plain difference of logarithms."""
        if math.isfinite(self.high / self.low):
            return np.log1p((v - self.low) / self.low)
        return np.log(v) - math.log(self.low)

    def _exp_from_low(self, t: Floats) -> Floats:
        """The inverse of `_log_from_low`: low * exp(t)."""
        if math.isfinite(self.high / self.low):
            return self.low + self.low * np.expm1(t)
        return np.exp(math.log(self.low) + t)


class Discrete:
    """A parameter with finitely many values: level i owns [scale(i), scale(i + 1)], sits at scale(i + 0.5)."""

    @property
    def _values(self) -> Sequence[Value]:
        raise NotImplementedError

    @property
    def n_levels(self) -> int:
        """Number of distinct values."""
        return len(self._values)

    def to_unit(self, values: Sequence[Any]) -> Floats:
        """Coordinates of checked values."""
        return self.at(np.array([self._level(value) for value in values], dtype=np.int64))

    def from_unit(self, units: Floats) -> list[Any]:
        """Values whose pieces of [0, 1] hold the coordinates."""
        return [self._values[level] for level in self.positions(units).tolist()]

    def column(self, units: Floats) -> NDArray[Any]:
        """The same as an array; choices keep their types."""
        raise NotImplementedError

    def snap(self, units: Floats) -> Floats:
        """Coordinates of the levels whose pieces hold the given ones."""
        return self.at(self.positions(units))

    def grid(self) -> Floats:
        """Coordinates of all levels, rising."""
        return self.at(np.arange(self.n_levels))

    def _level(self, value: Any) -> int:
        return self._values.index(value)

    def positions(self, units: Floats) -> NDArray[np.int64]:
        """Positions of the levels whose pieces hold coordinates."""
        return np.clip(np.floor(self._unscale(units)), 0, self.n_levels - 1).astype(np.int64)

    def at(self, positions: NDArray[np.int64]) -> Floats:
        """Coordinates of the levels at positions."""
        return self._scale(np.asarray(positions, dtype=np.float64) + 0.5)

    def _scale(self, x: Floats) -> Floats:
        return x / self.n_levels

    def _unscale(self, units: Floats) -> Floats:
        return units * self.n_levels


@checks_arguments
@dataclass(frozen=True)
class Integer(Discrete):
    """A whole number low, low + step, ..., high.

    Attributes:
        low: Lowest value; an int, and more than half a step if `log`.
        high: Highest value; an int, a whole number of steps above `low`.
        log: Search on a logarithmic scale.
        step: Distance between neighbors; a positive int.
        when: Parents with the values under which this parameter exists, `{"model": "svm"}` or
            `{"model": ["svm", "tree"]}`; all must hold. By default it always exists.
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        low, high, step = _integer("low", self.low), _integer("high", self.high), _integer("step", self.step)
        set_fields(self, low=low, high=high, step=step, when=checked_when(self.when))
        _require_bounds(low, high, self.log)
        if step < 1:
            raise InvalidInputError(f"step must be at least 1; got {step}")
        if rest := (high - low) % step:
            got = f"got low={low}, high={high}, step={step}; the largest high that fits is {high - rest}"
            raise InvalidInputError(f"high - low must be a whole number of steps; {got}")
        if self.log and 2 * low <= step:  # the scale begins half a step below low
            way_out = f"raise low to {step // 2 + 1} or take a smaller step"
            raise InvalidInputError(f"low must exceed step / 2 with log=True; got low={low}, step={step}; {way_out}")
        if (high - low) // step >= MAX_LEVELS:
            got = f"got {(high - low) // step + 1}; take a larger step or a Float"
            raise InvalidInputError(f"an Integer may have at most 2**40 values; {got}")

    def __repr__(self) -> str:
        return _as_written(self, self.low, self.high)

    @property
    def _values(self) -> range:
        return range(self.low, self.high + 1, self.step)

    def column(self, units: Floats) -> NDArray[Any]:
        """Values at coordinates in [0, 1], as an array."""
        return np.asarray(self.low + self.step * self.positions(units))

    def check(self, value: object, name: str = "value") -> int:
        """The value as an int, or an error that calls it `name`."""
        number = _integer(name, value)
        if not self.low <= number <= self.high:
            raise InvalidInputError(f"{name} must be from {self.low} to {self.high}; got {value!r}")
        if (number - self.low) % self.step:
            raise InvalidInputError(f"{name} must be {self.low} plus a multiple of {self.step}; got {value!r}")
        return number

    # On a log scale, in steps above low - step/2 = b steps: log(b + x) - log(b) = log1p(x / b), for x from 0 to k.

    @property
    def _b(self) -> float:
        return (2 * self.low - self.step) / (2 * self.step)

    def _scale(self, x: Floats) -> Floats:
        return np.log1p(x / self._b) / math.log1p(self.n_levels / self._b) if self.log else super()._scale(x)

    def _unscale(self, units: Floats) -> Floats:
        if not self.log:
            return super()._unscale(units)
        return self._b * np.expm1(units * math.log1p(self.n_levels / self._b))


@dataclass(frozen=True, eq=False)
class Categorical(Discrete):
    """One of a list of choices.

    Attributes:
        choices: A list or tuple of distinct str, int, float, bool or None. 1, 1.0 and True are not distinct. A set is
            refused: its order may change from run to run.
        when: Parents with the values under which this parameter exists, `{"model": "svm"}` or
            `{"model": ["svm", "tree"]}`; all must hold. By default it always exists.
    """

    choices: tuple[Value, ...]
    when: Mapping[str, Any] | None = None

    @refuse_unknown_arguments
    def __init__(self, choices: Sequence[Value], *, when: Mapping[str, Any] | None = None) -> None:
        if isinstance(choices, np.ndarray):
            choices = choices.tolist()
        if isinstance(choices, str | bytes) or not isinstance(choices, Sequence):
            raise InvalidInputError(f"choices must be a list or tuple; got {choices!r}; write [...]")
        if not choices:
            raise InvalidInputError(f"choices must not be empty; got {choices!r}; give at least one")
        choices = tuple(plain_value("each choice", choice) for choice in choices)
        set_fields(self, choices=choices, when=checked_when(when))
        seen: dict[Value, Value] = {}
        for choice in self.choices:
            if choice in seen:
                got = f"got {seen[choice]!r} and {choice!r}; drop one"
                raise InvalidInputError(f"choices must differ, and 1, 1.0 and True count as one; {got}")
            seen[choice] = choice

    def __repr__(self) -> str:
        return _as_written(self, list(self.choices))

    @property
    def _values(self) -> tuple[Value, ...]:
        return self.choices

    def column(self, units: Floats) -> NDArray[Any]:
        """Choices at coordinates in [0, 1], as an array: of numbers if all of them are of one type, else of objects."""
        dtype = np.array(self.choices).dtype  # of choices of several types, and of huge ints, one of another kind
        kinds = {type(choice) for choice in self.choices}
        column = np.empty(len(units), dtype=dtype if kinds in ({int}, {float}, {bool}) else object)
        column[:] = self.from_unit(units)
        return column

    @cached_property
    def _positions(self) -> dict[tuple[type, object], int]:
        return {_typed(choice): i for i, choice in enumerate(self.choices)}

    def check(self, value: object, name: str = "value") -> Value:
        """The choice itself, or an error that calls it `name`."""
        try:
            return self.choices[self._positions[_typed(unboxed(value))]]
        except (KeyError, TypeError):  # unknown, or not even hashable
            rule = f"{name} must be one of {list(self.choices)!r}, of the same type"
            raise InvalidInputError(f"{rule}; got {value!r}") from None

    def _level(self, value: Value) -> int:
        return self._positions[_typed(value)]

    def __eq__(self, other: object) -> bool:
        # Choices of one value and different types are different choices, which the tuples would not see.
        if not isinstance(other, Categorical):
            return False
        return list(self._positions) == list(other._positions) and self.when == other.when

    def __hash__(self) -> int:
        return hash((tuple(self._positions), self.when))


Parameter: TypeAlias = Float | Integer | Categorical


def levels_of(parameter: Parameter) -> Discrete | None:
    """The levels that a parameter is searched on, with their places in the unit interval; None if it has none."""
    return parameter.levels if isinstance(parameter, Float) else parameter


def _typed(value: object) -> tuple[type, object]:
    return type(value), value


def _real(name: str, value: object) -> float:
    # The first test only spares floats the second, which is slow; so in `_integer`.
    if type(value) is not float and not is_real(value):
        raise InvalidInputError(f"{name} must be a real number; got {value!r}")
    number = as_float(value)
    if not math.isfinite(number):
        raise InvalidInputError(f"{name} must be finite; got {value!r}")
    return number + 0.0  # -0.0 becomes 0.0


def _integer(name: str, value: object) -> int:
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        raise InvalidInputError(f"{name} must be a whole number of type int; got {value!r}")
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise InvalidInputError(f"{name} must fit in 64 bits; got {value!r}")
    return number


def _as_written(parameter: Any, *positional: Any) -> str:
    """The parameter as one would write it down: what is as usual is left out."""
    others = [f for f in fields(parameter) if f.default is not MISSING]
    named = [f"{f.name}={value!r}" for f in others if (value := getattr(parameter, f.name)) != f.default]
    return f"{type(parameter).__name__}({', '.join([*map(repr, positional), *named])})"


def _require_bounds(low: float, high: float, log: object) -> None:
    if low > high:
        raise InvalidInputError(f"low must not exceed high; got low={low!r}, high={high!r}; swap them")
    if not isinstance(log, bool):
        raise InvalidInputError(f"log must be True or False; got {log!r}")
    if log and low <= 0:
        raise InvalidInputError(f"low must be positive with log=True; got low={low!r}; raise it or drop log")
