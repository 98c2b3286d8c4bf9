"""What an optimizer is told once and for all, checked, and its life as JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pbgi.checks import require_count, require_positive
from pbgi.cost import Cost, KnownCost, LearnedCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GammaPrior, GPConfig, Hyperparameters, LogNormalPrior
from pbgi.model import ModelKind, require_model
from pbgi.plain import from_plain, to_plain
from pbgi.policy import PBGI, PBGID, POLICIES, Policy
from pbgi.space import Space
from pbgi.startup import default_n_startup
from pbgi.stopping import STOP_RULES, AnyOf, BudgetSpent, GittinsStop, StopRule, rules_of

DIRECTIONS = {"minimize": -1.0, "maximize": 1.0}
FORMAT = 1
FIELDS = ("direction", "cost", "budget", "policy", "stop", "model", "n_startup_trials", "seed")


@dataclass(frozen=True, eq=False)
class Settings:
    """The arguments of `Optimizer`, checked, with defaults filled in."""

    space: Space
    direction: str
    cost: Cost | None
    budget: float | None
    policy: Policy
    stop: StopRule
    model: GPConfig | ModelKind
    n_startup_trials: int
    seed: int

    @classmethod
    def checked(
        cls,
        space: Any,
        direction: Any,
        cost: Any,
        budget: Any,
        policy: Any,
        stop: Any,
        model: Any,
        n_startup_trials: Any,
        seed: Any,
    ) -> "Settings":
        """The settings, or an `InvalidInputError` that names the argument."""
        space = space if isinstance(space, Space) else Space(space)
        if direction not in DIRECTIONS:
            raise InvalidInputError(f"direction must be 'minimize' or 'maximize'; got {direction!r}")
        _require_methods("cost", cost, "fit")
        budget = None if budget is None else require_positive("budget", budget)
        _require_methods("policy", policy, "propose")
        policy = PBGID() if policy is None else policy
        if budget is None and getattr(policy, "needs_budget", False):
            raise InvalidInputError(f"{type(policy).__name__} needs budget=..., with which it cools; got budget=None")
        _require_methods("stop", stop, "reason", "note")
        model = GPConfig() if model is None else model
        require_model(model)
        rule = _stop_rule(stop, policy, budget)
        weighs = any(isinstance(part, GittinsStop) for part in rules_of(rule))
        n_startup = default_n_startup(space, stops_early=weighs) if n_startup_trials is None else n_startup_trials
        return cls(
            space=space,
            direction=direction,
            cost=cost,
            budget=budget,
            policy=policy,
            stop=rule,
            model=model,
            n_startup_trials=require_count("n_startup_trials", n_startup, zero=True),
            seed=_checked_seed(seed),
        )

    @property
    def sign(self) -> float:
        """What a value is multiplied with so that larger is better."""
        return DIRECTIONS[self.direction]

    @property
    def budget_holds(self) -> bool:
        """Whether a trial must be expected to fit what is left of the budget."""
        return any(isinstance(rule, BudgetSpent) and not rule.overshoot for rule in rules_of(self.stop))

    @property
    def endless(self) -> bool:
        """Whether nothing would ever stop a run: no budget, no stop rule, and infinitely many points."""
        limited = self.budget is not None or math.isfinite(self.space.n_points)
        return not limited and self.stop == AnyOf(())

    def to_plain(self) -> dict[str, Any]:
        """As JSON; what cannot be written (functions, models, policies from elsewhere) is named, to be given again."""
        return {
            "space": self.space.to_json(),
            "direction": self.direction,
            "cost": _cost_to_plain(self.cost),
            "budget": self.budget,
            "policy": to_plain(self.policy) if isinstance(self.policy, POLICIES) else _to_be_given(self.policy),
            "stop": to_plain(self.stop),
            "model": to_plain(self.model) if isinstance(self.model, GPConfig) else _to_be_given(self.model),
            "n_startup_trials": self.n_startup_trials,
            "seed": self.seed,
        }

    @classmethod
    def from_plain(
        cls, data: Mapping[str, Any], cost: Cost | None, policy: Policy | None, model: ModelKind | None
    ) -> "Settings":
        """What `to_plain` wrote, with what had to be given again."""
        configs = (GPConfig, GammaPrior, LogNormalPrior, Hyperparameters)
        return cls.checked(
            Space.from_json(data["space"]),
            data["direction"],
            _given_or_read("cost", data["cost"], cost, (UniformCost, LearnedCost, *configs)),
            data["budget"],
            _given_or_read("policy", data["policy"], policy, POLICIES),
            from_plain("stop", data["stop"], STOP_RULES),
            _given_or_read("model", data["model"], model, configs),
            data["n_startup_trials"],
            data["seed"],
        )


def _stop_rule(given: StopRule | None, policy: Policy, budget: float | None) -> StopRule:
    """What was given, or an exchange rate's own rule; a budget always holds, in the way asked for."""
    rules: tuple[Any, ...] = () if given is None else rules_of(given)
    if given is None and isinstance(policy, PBGI):
        rules = (GittinsStop(policy.cost_scale),)
    if budget is not None and not any(isinstance(rule, BudgetSpent) for rule in rules):
        rules = (BudgetSpent(), *rules)
    return AnyOf(rules)


def _require_methods(name: str, value: Any, *methods: str) -> None:
    if value is not None and (isinstance(value, type) or not all(callable(getattr(value, m, None)) for m in methods)):
        wanted = " and ".join(f"{method}()" for method in methods)
        raise InvalidInputError(f"{name} must be None or an object with {wanted}, such as pbgi offers; got {value!r}")


def _checked_seed(seed: Any) -> int:
    if seed is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInputError(f"seed must be a whole number that is not negative; got {seed!r}")
    return int(seed)


def _to_be_given(value: Any) -> dict[str, Any]:
    return {"kind": type(value).__name__, "given": True}


def _cost_to_plain(cost: Any) -> Any:
    holds_function = isinstance(cost, KnownCost) or (isinstance(cost, LearnedCost) and cost.known_factor is not None)
    return _to_be_given(cost) if holds_function else to_plain(cost)


def _given_or_read(name: str, data: Any, given: Any, classes: tuple[type, ...]) -> Any:
    if isinstance(data, Mapping) and data.get("given"):
        if type(given).__name__ != data.get("kind"):
            raise InvalidInputError(
                f"{name} must be given again, a {data.get('kind')}: what was saved does not hold it; got {given!r}"
            )
        return given
    if given is not None:
        raise InvalidInputError(f"{name} must be left out: the one that was saved is complete; got {given!r}")
    return from_plain(name, data, classes)
