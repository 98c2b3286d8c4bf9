"""What suggestions depend on, kept in the study: so a study can be asked without its job file.

The parameters, the direction and the units of value and cost stay what they were for the first trials; ranges may get
wider. Budget, policy and limits follow the job file. The seed is the job's, or drawn once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pbgi.constraints.constraint import Constraints
from pbgi.cost import KnownCost
from pbgi.errors import InvalidInputError
from pbgi.policy import PBGI, POLICIES, Policy
from pbgi.serialization import from_plain, require_fields, to_plain
from pbgi.settings import Settings, conditions_from_plain, conditions_to_plain, require_direction
from pbgi.space import Space
from pbgi.stopping import GittinsStop, MaxTrials, StopRule
from pbgi.study.formula import Formula
from pbgi.trials.steps import Steps

FIELDS = (
    *("space", "direction", "budget", "policy", "n_startup_trials", "seed", "trials", "objective", "cost", "price"),
    "formula",
    "constraints",
    "steps",
)


@dataclass(frozen=True, eq=False)
class StudySettings:
    """What an optimizer of this study is made of.

    `objective` and `cost` are what values and costs are called, `price` is that of a second where seconds are what
    costs: with another one costs are in another unit. `formula` is what a trial costs, where that is known,
    `constraints` are conditions on other outcomes, `steps` say how long a trial is, if it may stop early.
    """

    space: Space
    direction: str
    budget: float | None
    policy: Policy | None
    n_startup_trials: int | None
    seed: int
    trials: int | None
    objective: str
    cost: str
    price: float | None
    formula: str | None = None
    constraints: Constraints | None = None
    steps: Steps | None = None

    def __post_init__(self) -> None:
        require_direction(self.direction)
        if not isinstance(self.steps, Steps | None):
            raise InvalidInputError(f"steps must be a Steps or None; got {self.steps!r}")
        _ = self.engine  # which checks the rest

    def to_plain(self) -> dict[str, Any]:
        """As JSON."""
        plain = {name: getattr(self, name) for name in FIELDS}
        own = {"space": self.space.to_plain(), "policy": to_plain(self.policy)}
        return plain | own | {"constraints": conditions_to_plain(self.constraints), "steps": to_plain(self.steps)}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> "StudySettings":
        """What `to_plain` wrote, checked."""
        # What was written before there were formulas, conditions and steps has none.
        data = {"formula": None, "constraints": None, "steps": None, **data} if isinstance(data, Mapping) else data
        require_fields("settings of the study", data, FIELDS)
        read = {"space": Space.from_plain(data["space"]), "policy": from_plain("policy", data["policy"], POLICIES)}
        read |= {"constraints": conditions_from_plain(data["constraints"])}
        return cls(**{**data, **read, "steps": from_plain("steps", data["steps"], (Steps,))})

    @property
    def engine(self) -> Settings:
        """What an optimizer is told besides space and direction."""
        return Settings(
            cost=None if self.formula is None else KnownCost(Formula(self.formula, self.space)),
            budget=self.budget,
            policy=self.policy,  # type: ignore[arg-type]  # defaults are filled in
            stop=self._stop(),  # type: ignore[arg-type]
            n_startup_trials=self.n_startup_trials,
            seed=self.seed,
            constraints=self.constraints,
            steps=self.steps,
        )

    def _stop(self) -> StopRule | None:
        if self.trials is None:
            return None
        limit = MaxTrials(self.trials)
        # A rule that is given takes the place of the exchange rate's own.
        return GittinsStop(self.policy.cost_scale) | limit if isinstance(self.policy, PBGI) else limit
