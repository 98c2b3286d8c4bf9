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

from pbgi.cost import Cost, KnownCost, LearnedCost
from pbgi.errors import InvalidInputError
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.serialization import Value
from pbgi.space import Space
from pbgi.study.moving import Share
from pbgi.study.tree import When

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
        # Where the parameter is not there the engine has NaN or None, and so has the user.
        external = [value if value is None or value != value else self.from_engine(value) for value in values.tolist()]
        column = np.empty(len(external), dtype=float if self.is_level else object)
        column[:] = external
        return column

    def under(self, when: When) -> "Axis":
        """The same where parents have certain positions or levels, which are the engine's values of them."""
        return replace(self, parameter=replace(self.parameter, when={name: list(on) for name, on in when.items()}))

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


class NotThereError(KeyError):
    """A function of the user's asks for a parameter that trials like this one have not been seen to have."""


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that are chosen together, by name, in order, and those that have one value only.

    Attributes:
        axes: Those that are chosen. The engine's parameters know under which values of others they exist.
        constants: The values of the others.
        whole: Whether these are all parameters that completed trials have.
    """

    axes: Mapping[str, Axis]
    constants: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = True

    @classmethod
    def of(
        cls, distributions: Mapping[str, BaseDistribution], tree: Mapping[str, When] | None = None, whole: bool = True
    ) -> "SearchSpace":
        """All of them that the engine can take; `tree` has the conditions of those that are not always there."""
        tree, axes = tree or {}, {name: axis_of(distributions[name]) for name in sorted(distributions)}
        single = {name: distributions[name] for name in axes if distributions[name].single()}
        taken = {name: axis for name, axis in axes.items() if axis is not None}
        while lost := [name for name in taken if any(parent not in taken for parent in tree.get(name, ()))]:
            taken = {name: axis for name, axis in taken.items() if name not in lost}
        return cls(
            {name: axis.under(tree[name]) if tree.get(name) else axis for name, axis in taken.items()},
            {name: _only_value(distribution) for name, distribution in single.items()},
            whole,
        )

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """What is chosen of each parameter, and seen by models: values, or shares of a range that moves."""
        return {name: axis.distribution for name, axis in self.axes.items()}

    @property
    def fixed(self) -> dict[str, BaseDistribution]:
        """As Optuna knows it: those whose range is known before a trial."""
        return {name: known for name, known in self.distributions.items() if not isinstance(known, Share)}

    @cached_property
    def space(self) -> Space:
        """As the engine knows it."""
        return Space({name: axis.parameter for name, axis in self.axes.items()})

    def to_engine(self, params: Mapping[str, Any]) -> dict[str, Value] | None:
        """The engine's point, or None if a value is missing or outside: a trial of another range or another tree.

        Params are those of `params_with_shares`.

        Values of parameters that do not exist there are left out.
        """
        point: dict[str, Value] = {}
        try:
            for name in self.space.order:
                if self.space.exists(name, point):
                    point[name] = self.axes[name].to_engine(params[name])
        except (KeyError, ValueError):
            return None
        return {name: point[name] for name in self.axes if name in point}

    def from_engine(self, point: Mapping[str, Value]) -> dict[str, Any]:
        """The params of a trial, and shares."""
        return {name: axis.from_engine(point[name]) for name, axis in self.axes.items() if name in point}

    def internal(self, params: Mapping[str, Any]) -> dict[str, float]:
        """The params of a trial as the numbers that Optuna stores, without shares."""
        return {name: known.to_internal_repr(params[name]) for name, known in self.fixed.items() if name in params}

    def cost_in_values(self, cost: Cost | None) -> Cost | None:
        """The cost, with its function of the user's values turned into one of the engine's."""
        if isinstance(cost, KnownCost):
            return replace(cost, price=self._in_values(cost.price, cost.vectorized))
        if isinstance(cost, LearnedCost) and cost.known_factor is not None:
            return replace(cost, known_factor=self._in_values(cost.known_factor, cost.vectorized))
        return cost

    def _in_values(self, function: Callable[[dict[str, Any]], Any], vectorized: bool) -> Callable[[Any], Any]:
        of: Callable[[Any], Any] = self._columns if vectorized else self._values

        def in_values(point: Any) -> Any:
            try:
                return function(of(point))
            except KeyError as error:
                raise NotThereError(*error.args) from error

        return in_values

    def _values(self, point: Mapping[str, Value]) -> dict[str, Any]:
        """What a user knows of a point before its trial begins."""
        values, known = self.from_engine(point), self.fixed
        return {**self.constants, **{name: value for name, value in values.items() if name in known}}

    def _columns(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        n = len(next(iter(columns.values())))
        constants = {name: np.full(n, value) for name, value in self.constants.items()}
        known = self.fixed
        return constants | {name: self.axes[name].column(column) for name, column in columns.items() if name in known}


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


def holds_all_of(new: BaseDistribution, old: BaseDistribution) -> bool:
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
