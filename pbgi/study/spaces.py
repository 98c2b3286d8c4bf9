"""Optuna's distributions as parameters of the engine, and values there and back.

    FloatDistribution           Float
    FloatDistribution, step     Integer over the number of steps above low
    IntDistribution             Integer
    CategoricalDistribution     Categorical over the positions of the choices, whatever the choices are

Optuna cannot tell equal choices (1, 1.0 and True) apart: it stores the first of them. So only the first is offered.
A distribution of more levels than the engine can count is left to the independent sampler.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from pbgi.cost import Cost, KnownCost, LearnedCost
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.serialization import Value
from pbgi.space import Space

ROUNDING = 1e-8  # how far from a whole number of steps a value may be; as in Optuna


@dataclass(frozen=True)
class Axis:
    """One distribution, and the engine's parameter for it."""

    distribution: BaseDistribution
    parameter: Parameter

    def to_engine(self, value: Any) -> Value:
        """The engine's value for a value of a trial.

        Raises:
            ValueError: It is not one of this distribution.
        """
        internal = self.distribution.to_internal_repr(value)
        if isinstance(self.distribution, FloatDistribution):
            if self.distribution.step is None:
                return self.parameter.check(internal)
            return self.parameter.check(_level(internal, self.distribution.low, self.distribution.step))
        return self.parameter.check(int(internal))

    def from_engine(self, value: Any) -> Any:
        """The value of a trial for the engine's value."""
        if isinstance(self.distribution, FloatDistribution) and self.distribution.step is not None:
            step, low = Decimal(str(self.distribution.step)), Decimal(str(self.distribution.low))
            return min(float(low + value * step), self.distribution.high)
        if isinstance(self.distribution, CategoricalDistribution):
            return self.distribution.choices[value]
        return value

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """The same for an array of them."""
        if isinstance(self.distribution, FloatDistribution | IntDistribution) and not self.is_level:
            return values
        external = [self.from_engine(value) for value in values.tolist()]
        column = np.empty(len(external), dtype=float if self.is_level else object)
        column[:] = external
        return column

    @property
    def is_level(self) -> bool:
        """Whether the engine counts steps instead of seeing values."""
        return isinstance(self.distribution, FloatDistribution) and self.distribution.step is not None


def _level(value: float, low: float, step: float) -> int:
    """How many steps a value is above low; one between two steps is of another range."""
    steps = (value - low) / step
    if abs(steps - round(steps)) > ROUNDING:
        raise InvalidInputError(f"a value must be a whole number of steps of {step} above {low}; got {value!r}")
    return round(steps)


def axis_of(distribution: BaseDistribution) -> Axis | None:
    """The engine's view of a distribution; None if it has too many levels, or only one."""
    if distribution.single():
        return None
    try:
        return Axis(distribution, _parameter(distribution))
    except InvalidInputError:
        return None


def _parameter(distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, CategoricalDistribution):
        choices = enumerate(distribution.choices)
        return Categorical([i for i, choice in choices if distribution.to_internal_repr(choice) == i])
    if isinstance(distribution, IntDistribution):
        return Integer(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    if not isinstance(distribution, FloatDistribution):
        raise InvalidInputError(f"a distribution must be one of Optuna's three kinds; got {distribution!r}")
    if distribution.step is None:
        return Float(distribution.low, distribution.high, log=distribution.log)
    return Integer(0, round((distribution.high - distribution.low) / distribution.step))


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that are chosen together, by name, in order, and those that have one value only."""

    axes: Mapping[str, Axis]
    constants: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, distributions: Mapping[str, BaseDistribution]) -> "SearchSpace":
        """All of them that the engine can take."""
        axes = {name: axis_of(distributions[name]) for name in sorted(distributions)}
        single = {name: distributions[name] for name in axes if distributions[name].single()}
        return cls(
            {name: axis for name, axis in axes.items() if axis is not None},
            {name: _only_value(distribution) for name, distribution in single.items()},
        )

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """As Optuna knows it."""
        return {name: axis.distribution for name, axis in self.axes.items()}

    @cached_property
    def space(self) -> Space:
        """As the engine knows it."""
        return Space({name: axis.parameter for name, axis in self.axes.items()})

    def to_engine(self, params: Mapping[str, Any]) -> dict[str, Value] | None:
        """The engine's point, or None if a value is missing or outside: a trial of another branch or another range."""
        try:
            return {name: axis.to_engine(params[name]) for name, axis in self.axes.items()}
        except (KeyError, ValueError):
            return None

    def from_engine(self, point: Mapping[str, Value]) -> dict[str, Any]:
        """The params of a trial."""
        return {name: axis.from_engine(point[name]) for name, axis in self.axes.items()}

    def internal(self, params: Mapping[str, Any]) -> dict[str, float]:
        """The params of a trial as the numbers that Optuna stores."""
        return {name: axis.distribution.to_internal_repr(params[name]) for name, axis in self.axes.items()}

    def cost_in_values(self, cost: Cost | None) -> Cost | None:
        """The cost, with its function of the user's values turned into one of the engine's."""
        if isinstance(cost, KnownCost):
            return replace(cost, price=self._in_values(cost.price, cost.vectorized))
        if isinstance(cost, LearnedCost) and cost.known_factor is not None:
            return replace(cost, known_factor=self._in_values(cost.known_factor, cost.vectorized))
        return cost

    def _in_values(self, function: Callable[[dict[str, Any]], Any], vectorized: bool) -> Callable[[Any], Any]:
        if not vectorized:
            return lambda point: function({**self.constants, **self.from_engine(point)})
        return lambda columns: function(self._columns(columns))

    def _columns(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        n = len(next(iter(columns.values())))
        constants = {name: np.full(n, value) for name, value in self.constants.items()}
        return constants | {name: self.axes[name].column(column) for name, column in columns.items()}


@dataclass(frozen=True)
class NamedSpace:
    """A space whose values are those of the trials; a trial with more parameters, or fewer, has no point in it."""

    space: Space

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """As Optuna knows it; a fixed value is a choice of one."""
        return distributions_of(self.space)

    def to_engine(self, params: Mapping[str, Any]) -> dict[str, Value] | None:
        """The point, or None if it is none of this space."""
        try:
            return self.space.check(params)
        except InvalidInputError:
            return None

    def cost_in_values(self, cost: Cost | None) -> Cost | None:
        """The cost as it is."""
        return cost


class CommonSpace:
    """The distributions that all completed trials of a study have in common; each trial is looked at once.

    A range that has been widened, from one trial to the next and for good, is the wider one: all trials lie in it. One
    that comes and goes belongs to no common space.
    """

    def __init__(self) -> None:
        self._start("")

    def _start(self, study_name: str) -> None:
        self._study_name, self._seen = study_name, set[int]()
        self._common: dict[str, BaseDistribution] = {}

    def distributions(self, study_name: str, trials: list[FrozenTrial]) -> dict[str, BaseDistribution]:
        """What is common to these trials of this study."""
        done = [t for t in trials if t.state == TrialState.COMPLETE]
        new = [t for t in done if t.number not in self._seen]
        if study_name != self._study_name or max(self._seen, default=-1) >= len(trials) or self._is_earlier(new):
            self._start(study_name)
            new = done
        for trial in new:
            theirs = trial.distributions
            self._common = _in_both(self._common, theirs) if self._seen else dict(theirs)
            self._seen.add(trial.number)
        return self._common

    def _is_earlier(self, new: list[FrozenTrial]) -> bool:
        """Whether one with another range began before others that were looked at: it is their order that counts."""
        latest = max(self._seen, default=-1)
        return any(t.number < latest and not _agrees(self._common, t.distributions) for t in new)


def _agrees(common: Mapping[str, BaseDistribution], theirs: Mapping[str, BaseDistribution]) -> bool:
    return all(theirs.get(name) == distribution for name, distribution in common.items())


def _in_both(
    before: Mapping[str, BaseDistribution], now: Mapping[str, BaseDistribution]
) -> dict[str, BaseDistribution]:
    """Those of the first that the second has too, as the second has them."""
    return {name: now[name] for name, d in before.items() if name in now and _holds_all_of(now[name], d)}


def _holds_all_of(new: BaseDistribution, old: BaseDistribution) -> bool:
    """Whether it is the same, or a wider range with the same steps."""
    if new == old:
        return True
    if not isinstance(new, FloatDistribution | IntDistribution) or type(new) is not type(old):
        return False
    assert isinstance(old, FloatDistribution | IntDistribution)  # noqa: S101 (for the type checker)
    if (new.log, new.step) != (old.log, old.step) or not new.low <= old.low <= old.high <= new.high:
        return False
    steps = 0.0 if new.step is None else (old.low - new.low) / new.step
    return abs(steps - round(steps)) <= ROUNDING


def _only_value(distribution: BaseDistribution) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    return distribution.low if isinstance(distribution, FloatDistribution | IntDistribution) else None


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """The parameters of a space as Optuna's distributions; a fixed value is a choice of one."""
    return {name: _distribution(parameter) for name, parameter in space.parameters.items()}


def _distribution(parameter: Parameter | Value) -> BaseDistribution:
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if isinstance(parameter, Integer):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return CategoricalDistribution(parameter.choices if isinstance(parameter, Categorical) else [parameter])
