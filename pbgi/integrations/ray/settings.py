"""What a search is told once and for all, checked, and the optimizers that are made of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from pbgi.cost import Cost, KnownCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig
from pbgi.integrations.ray.books import Books
from pbgi.integrations.ray.spaces import SearchSpace
from pbgi.optimizer import Optimizer
from pbgi.parameter import Float
from pbgi.policy import POLICIES, Policy
from pbgi.stopping import StopRule

DIRECTIONS = {"min": "minimize", "max": "maximize"}


@dataclass(frozen=True)
class Settings:
    """The arguments of `PBGISearch` that are for the engine.

    Raises:
        InvalidInputError: One breaks its rule: now, not when Tune has begun.
    """

    budget: float | None
    cost: str | Cost
    policy: Policy | None
    stop: StopRule | None
    model: GPConfig | None
    n_startup_trials: int | None
    seed: int | None

    def __post_init__(self) -> None:
        priced = isinstance(self.cost, UniformCost) or (isinstance(self.cost, KnownCost) and not self.cost.vectorized)
        if not priced and (not isinstance(self.cost, str) or not self.cost):
            rule = "cost must be the name of what trials report, UniformCost() or KnownCost(price) of a configuration"
            raise InvalidInputError(f"{rule}; got {self.cost!r}; leave it out to count seconds")
        Optimizer({"any": Float(0.0, 1.0)}, **self._for_engine)

    @property
    def cost_name(self) -> str | None:
        """The name under which trials report their cost; None if it is known beforehand."""
        return self.cost if isinstance(self.cost, str) else None

    def fresh_books(self, space_of: Callable[[], SearchSpace], mode: str, points: Iterable[Mapping[str, Any]]) -> Books:
        """Books without trials, for the space that `space_of` gives; `points` are configurations to try first."""
        space, cost = space_of(), self._engine_cost(space_of)
        optimizer = Optimizer(space.space, direction=DIRECTIONS[mode], cost=cost, **self._for_engine)
        waiting = [space.to_engine(point) for point in points]
        return Books(optimizer, self.cost_name, waiting, self._again(space_of))

    def saved_books(self, saved: Any, space_of: Callable[[], SearchSpace]) -> Books:
        """The books that were saved, with the budget of these settings, if they have one."""
        if self.budget is not None and isinstance(saved, Mapping) and isinstance(saved.get("optimizer"), dict):
            saved = {**saved, "optimizer": saved["optimizer"] | {"budget": self.budget}}
        return Books.from_json(saved, self.cost_name, self._again(space_of))

    def _again(self, space_of: Callable[[], SearchSpace]) -> dict[str, Any]:
        """What JSON cannot hold of an optimizer: functions, and what is not of pbgi's making."""
        cost = self._engine_cost(space_of)
        given = {"cost": cost} if isinstance(cost, KnownCost) else {}
        return given | ({} if isinstance(self.policy, (*POLICIES, NoneType)) else {"policy": self.policy})

    @property
    def _for_engine(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "cost"}

    def _engine_cost(self, space_of: Callable[[], SearchSpace]) -> Cost | None:
        """The cost as the engine takes it: there a price is a function of a point, not of a configuration."""
        if not isinstance(self.cost, KnownCost):
            return None if isinstance(self.cost, str) else self.cost
        price = self.cost.price
        # Asked anew each time: a restored search may know its constants only when the Tuner has said them.
        return KnownCost(lambda point: price(space_of().from_engine(point, with_constants=True)))


def check_metric(metric: Any) -> None:
    """Raise unless it is a name, or None."""
    if metric is not None and not isinstance(metric, str):
        raise InvalidInputError(f"metric must be the name of one value; got {metric!r}")


def check_mode(mode: Any) -> None:
    """Raise unless it is one of Ray's two directions, or None."""
    if mode is not None and mode not in tuple(DIRECTIONS):
        raise InvalidInputError(f"mode must be 'min' or 'max'; got {mode!r}")


def agreed(what: str, own: str | None, given: str | None) -> str | None:
    """The one that is known, if both places that may say it agree."""
    if own is not None and given is not None and own != given:
        raise InvalidInputError(f"{what} must be the same in PBGISearch and TuneConfig; got {own!r} and {given!r}")
    return own if given is None else given
