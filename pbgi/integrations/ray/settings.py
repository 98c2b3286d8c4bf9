"""What a search is told once and for all, checked, and the optimizers that are made of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.integrations.ray.experiment import Experiment
from pbgi.integrations.ray.meter import STEP
from pbgi.integrations.ray.spaces import SearchSpace
from pbgi.optimizer import Optimizer
from pbgi.settings import Settings

DIRECTIONS = {"min": "minimize", "max": "maximize"}


@dataclass(frozen=True)
class SearchSettings:
    """What a search is told besides space, metric and mode.

    Attributes:
        cost: The name under which trials report their cost, or a cost of configurations that is known beforehand.
        engine: All else, as an optimizer takes it.
        step_name: The name under which trials report how far they have come.

    Raises:
        InvalidInputError: The cost is neither, the name is none, or trials are to go on after they were stopped.
    """

    cost: str | Cost
    engine: Settings
    step_name: str = STEP

    def __post_init__(self) -> None:
        if not isinstance(self.step_name, str) or not self.step_name:
            raise InvalidInputError(f"time_attr must be the name of what trials report; got {self.step_name!r}")
        if self.engine.steps is not None and self.engine.steps.resumable:
            raise InvalidInputError("trials that Ray Tune has stopped do not go on: got Steps(resumable=True)")
        priced = isinstance(self.cost, UniformCost) or (isinstance(self.cost, KnownCost) and not self.cost.vectorized)
        if not priced and (not isinstance(self.cost, str) or not self.cost):
            rule = "cost must be the name of what trials report, UniformCost() or KnownCost(price) of a configuration"
            raise InvalidInputError(f"{rule}; got {self.cost!r}; leave it out to count seconds")

    @property
    def cost_name(self) -> str | None:
        """The name under which trials report their cost; None if it is known beforehand."""
        return self.cost if isinstance(self.cost, str) else None

    def fresh_experiment(
        self, space_of: Callable[[], SearchSpace], mode: str, points: Iterable[Mapping[str, Any]]
    ) -> Experiment:
        """An experiment without trials, in the space that `space_of` gives; `points` come first."""
        space = space_of()
        optimizer = Optimizer.of(space.space, DIRECTIONS[mode], self._engine_in(space_of))
        return Experiment(optimizer, self.cost_name, [space.to_engine(point) for point in points], self.step_name)

    def saved_experiment(self, saved: Any, space_of: Callable[[], SearchSpace]) -> Experiment:
        """The experiment that was saved, with the budget of these settings, if they have one."""
        unwritten = self._engine_in(space_of).unwritten
        return Experiment.from_plain(saved, self.cost_name, unwritten, self.engine.budget, self.step_name)

    def _engine_in(self, space_of: Callable[[], SearchSpace]) -> Settings:
        """The settings of an optimizer, whose price is a function of a point, not of a configuration."""
        if not isinstance(self.cost, KnownCost):
            return replace(self.engine, cost=None if isinstance(self.cost, str) else self.cost)
        price = self.cost.price
        # Asked anew each time: a restored search may know its constants only when the Tuner has said them.
        return replace(
            self.engine, cost=KnownCost(lambda point: price(space_of().from_engine(point, with_constants=True)))
        )


def check_metric(metric: Any) -> None:
    """Raise unless it is a name, or None."""
    if metric is not None and not isinstance(metric, str):
        raise InvalidInputError(f"metric must be the name of one value; got {metric!r}")


def check_mode(mode: Any) -> None:
    """Raise unless it is one of Ray's two directions, or None."""
    if mode is not None and mode not in tuple(DIRECTIONS):
        raise InvalidInputError(f"mode must be 'min' or 'max'; got {mode!r}")


def agreed(what: str, own: str | None, other: str | None) -> str | None:
    """The one that is known, if both places that may say it agree."""
    if own is not None and other is not None and own != other:
        raise InvalidInputError(f"{what} must be the same in PBGISearch and TuneConfig; got {own!r} and {other!r}")
    return own if other is None else other
