"""What an optimizer is told once and for all, besides its space and direction: checked when made; its life as JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pbgi.checks import checks_arguments, require_count, require_positive, set_fields
from pbgi.constraints.constraint import CONDITIONS, Constraints, checked_constraints
from pbgi.cost import Cost, KnownCost, LearnedCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GammaPrior, GPConfig, Hyperparameters, LogNormalPrior
from pbgi.model import ModelKind, require_model
from pbgi.policy import PBGI, PBGID, POLICIES, Policy
from pbgi.serialization import from_plain, to_plain
from pbgi.space import Space
from pbgi.startup import default_n_startup
from pbgi.stopping import STOP_RULES, AnyOf, BudgetSpent, GittinsStop, StopRule, rules_of
from pbgi.trials.steps import Steps, steps_of

DIRECTIONS = {"minimize": -1.0, "maximize": 1.0}
EXAMPLES = {
    "cost": "pbgi.KnownCost(lambda params: ...)",
    "policy": "pbgi.PBGI(cost_scale=0.1)",
    "stop": "pbgi.MaxTrials(20)",
}


@checks_arguments
@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """Settings of an optimizer besides its space and direction; checked when made, with defaults filled in.

    The arguments are those of `pbgi.Optimizer`. What depends on the space is left to whoever has one.

    Raises:
        InvalidInputError: An argument breaks its rule; the message names it.
    """

    cost: Cost | None = None
    budget: float | None = None
    policy: Policy = None  # type: ignore[assignment]  # filled in: of the policy and the budget depends the stop rule
    stop: StopRule = None  # type: ignore[assignment]
    model: GPConfig | ModelKind = None  # type: ignore[assignment]
    n_startup_trials: int | None = None
    seed: int = None  # type: ignore[assignment]
    constraints: Constraints | None = None
    steps: Steps | None = None
    max_failures: int | None = None

    def __post_init__(self) -> None:
        _require_methods("cost", self.cost, "fit")
        budget = None if self.budget is None else require_positive("budget", self.budget)
        _require_methods("policy", self.policy, "propose")
        policy = PBGID() if self.policy is None else self.policy
        if budget is None and getattr(policy, "needs_budget", False):
            raise InvalidInputError(f"{type(policy).__name__} needs budget=..., with which it cools; got budget=None")
        _require_methods("stop", self.stop, "reason", "note")
        model = GPConfig() if self.model is None else self.model
        require_model(model)
        if self.n_startup_trials is not None:
            set_fields(self, n_startup_trials=require_count("n_startup_trials", self.n_startup_trials, zero=True))
        set_fields(self, budget=budget, policy=policy, stop=_stop_rule(self.stop, policy, budget), model=model)
        set_fields(self, seed=_checked_seed(self.seed), constraints=checked_constraints(self.constraints))
        set_fields(self, steps=steps_of(self.steps))
        if self.max_failures is not None:
            set_fields(self, max_failures=require_count("max_failures", self.max_failures))
        if self.constraints and self.steps is not None:
            rule = "trials that may stop early know no conditions on outcomes yet: give steps or constraints"
            raise InvalidInputError(f"{rule}; got both, steps={self.steps} and constraints={self.constraints}")
        if self.constraints and getattr(policy, "ignores_constraints", False):
            raise InvalidInputError(f"{type(policy).__name__} weighs no conditions; got constraints={self.constraints}")

    @property
    def budget_holds(self) -> bool:
        """Whether a trial must be expected to fit what is left of the budget."""
        return any(isinstance(rule, BudgetSpent) and not rule.overshoot for rule in rules_of(self.stop))

    @property
    def must_tell_cost(self) -> bool:
        """Whether every trial must tell its cost: the budget counts it, and nothing says it beforehand."""
        return self.budget is not None and isinstance(self.cost, LearnedCost | None)

    @property
    def weighs_worth(self) -> bool:
        """Whether the run may end because no trial is worth its price."""
        return any(isinstance(rule, GittinsStop) for rule in rules_of(self.stop))

    def n_startup_in(self, space: Space) -> int:
        """Points before the model takes over, in this space."""
        chosen = self.n_startup_trials
        return default_n_startup(space, stops_early=self.weighs_worth) if chosen is None else chosen

    def is_endless_in(self, space: Space) -> bool:
        """Whether nothing would ever stop a run: no budget, no stop rule, and infinitely many points."""
        limited = self.budget is not None or math.isfinite(space.n_points)
        return not limited and all(isinstance(rule, BudgetSpent) for rule in rules_of(self.stop))

    def to_plain(self) -> dict[str, Any]:
        """As JSON; what cannot be written (functions, models, policies from elsewhere) is named, to be given again."""
        return {
            "cost": _cost_to_plain(self.cost),
            "budget": self.budget,
            "policy": to_plain(self.policy) if isinstance(self.policy, POLICIES) else _to_be_given(self.policy),
            "stop": to_plain(self.stop),
            "model": to_plain(self.model) if isinstance(self.model, GPConfig) else _to_be_given(self.model),
            "n_startup_trials": self.n_startup_trials,
            "seed": self.seed,
            "constraints": conditions_to_plain(self.constraints),
            "steps": to_plain(self.steps),
            "max_failures": self.max_failures,
        }

    @property
    def unwritten(self) -> dict[str, Any]:
        """What `to_plain` only names, functions, models and policies from elsewhere: `from_plain` wants them again."""
        plain = self.to_plain()
        named = [name for name, data in plain.items() if isinstance(data, Mapping) and data.get("given")]
        return {name: getattr(self, name) for name in named}

    @classmethod
    def from_plain(
        cls,
        data: Mapping[str, Any],
        cost: Cost | None = None,
        policy: Policy | None = None,
        model: ModelKind | None = None,
    ) -> "Settings":
        """What `to_plain` wrote, with what had to be given again."""
        configs = (GPConfig, GammaPrior, LogNormalPrior, Hyperparameters)
        read = {
            "cost": _given_or_read("cost", data["cost"], cost, (UniformCost, LearnedCost, *configs)),
            "policy": _given_or_read("policy", data["policy"], policy, POLICIES),
            "stop": from_plain("stop", data["stop"], STOP_RULES),
            "model": _given_or_read("model", data["model"], model, configs),
            "constraints": conditions_from_plain(data.get("constraints")),
            "steps": from_plain("steps", data["steps"], (Steps,)),
            "max_failures": data.get("max_failures"),  # written since there is such a limit
        }
        return cls(**{name: data[name] for name in FIELDS if name not in read} | read)


FIELDS = tuple(field.name for field in fields(Settings))


def require_direction(direction: object) -> str:
    """The direction, if it is one."""
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise InvalidInputError(f"direction must be 'minimize' or 'maximize'; got {direction!r}")
    return direction


def _stop_rule(stop: StopRule | None, policy: Policy, budget: float | None) -> StopRule:
    """What was given, or an exchange rate's own rule; a budget always holds, in the way asked for."""
    rules: tuple[Any, ...] = () if stop is None else rules_of(stop)
    if stop is None and isinstance(policy, PBGI):
        rules = (GittinsStop(policy.cost_scale),)
    if budget is not None and not any(isinstance(rule, BudgetSpent) for rule in rules):
        rules = (BudgetSpent(), *rules)
    return AnyOf(rules)


def _require_methods(name: str, value: Any, *methods: str) -> None:
    if value is not None and (isinstance(value, type) or not all(callable(getattr(value, m, None)) for m in methods)):
        wanted = " and ".join(f"{method}()" for method in methods)
        rule = f"{name} must be None or an object with {wanted}, such as pbgi offers"
        raise InvalidInputError(f"{rule}; got {value!r}; write {name}={EXAMPLES[name]}, say")


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


def conditions_to_plain(constraints: Constraints | None) -> dict[str, Any] | None:
    """Conditions as JSON; null without any."""
    return None if constraints is None else {name: to_plain(condition) for name, condition in constraints.items()}


def conditions_from_plain(data: Any) -> Any:
    """What `conditions_to_plain` wrote; what is no mapping is refused where settings are made."""
    if not isinstance(data, Mapping):
        return data
    return {name: from_plain(f"constraints[{name!r}]", condition, CONDITIONS) for name, condition in data.items()}


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
