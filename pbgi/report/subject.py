"""What is reported on: one record that all plots read, whatever it was made from (`source.py`).

A subject has its trials in the user's words, while the optimizer behind it, which answers questions about the model,
may see them in others: Optuna's choices are positions to it. `in_words` leads from there to here.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pbgi.arrays import Floats
from pbgi.constraints.constraint import ConditionStatus, Constraints, is_feasible, statuses
from pbgi.errors import InvalidInputError
from pbgi.history import Trial, TrialState
from pbgi.importance import Importance
from pbgi.notes import COST_SCALE
from pbgi.optimizer import Optimizer
from pbgi.parameter import Parameter
from pbgi.policy import PBGI
from pbgi.prediction import Recommendation
from pbgi.report.beliefs import Beliefs, beliefs_of
from pbgi.report.outlook import Outlook, outlook_of
from pbgi.serialization import Value
from pbgi.settings import DIRECTIONS, Settings
from pbgi.stopping import GittinsStop, StopReason, rules_of

PRUNED = "pruned"
EARLY = ("stopped", PRUNED)  # states of trials that were ended because they were not worth going on with
Curve: TypeAlias = tuple[tuple[int, float], ...]
NOTHING_MORE = ("BudgetSpent", "SpaceExhausted")  # reasons after which what is left buys nothing
AT_LEAST = 0.5  # of what was spent, that is how far an outlook reaches


@dataclass(frozen=True, eq=False)
class Subject:
    """A run to be reported on.

    Attributes:
        name: Of the run, for people; may be empty.
        direction: "minimize" or "maximize".
        parameters: Those that vary, by name, with values as in `trials`.
        trials: All that was begun, by number.
        budget: What may be spent, or None.
        unit: Of the costs; may be empty.
        value_name: What a value is called.
        optimizer: What the model is asked through; None if there is nothing to ask.
        numbers: Of the optimizer's trials, as they are among `trials`.
        in_words: A point of the optimizer as the user knows it.
        known_reason: Why it ended, if somebody has noted it.
        ask_reason: Else what to ask, when it is needed: that may take as long as a suggestion.
        pruned: Numbers of the trials that were pruned; they count as failed otherwise.
        curves: By number, what trials said on their way: steps, each with the value then.
    """

    name: str
    direction: str
    parameters: Mapping[str, Parameter]
    trials: tuple[Trial, ...]
    budget: float | None
    unit: str
    value_name: str = "value"
    optimizer: Optimizer | None = None
    numbers: tuple[int, ...] = ()
    in_words: Callable[[Mapping[str, Value]], Mapping[str, Any]] = dict
    known_reason: StopReason | None = None
    ask_reason: Callable[[], StopReason | None] = lambda: None
    pruned: frozenset[int] = field(default_factory=frozenset)
    curves: Mapping[int, Curve] = field(default_factory=dict)

    @property
    def sign(self) -> float:
        """What a value is multiplied with so that larger is better."""
        return DIRECTIONS[self.direction]

    @cached_property
    def spent(self) -> float:
        """Charged for finished trials."""
        return math.fsum(trial.charged for trial in self.trials)

    @cached_property
    def reserved(self) -> float:
        """Held for running trials."""
        return math.fsum(trial.reserved for trial in self.trials)

    @property
    def remaining(self) -> float | None:
        """What is left of the budget after reservations; None without a budget."""
        return None if self.budget is None else max(self.budget - self.spent - self.reserved, 0.0)

    @cached_property
    def spendable(self) -> float:
        """What is left of the budget for more trials: nothing where the run ended because none fits or none is left."""
        ended = self.stop_reason is not None and self.stop_reason.rule in NOTHING_MORE
        return 0.0 if ended else self.remaining or 0.0

    @cached_property
    def importance(self) -> tuple[Importance, ...]:
        """How much goes with each parameter; empty if there is nothing to ask, or all values are equal."""
        if self.beliefs is None or self.optimizer is None or len({trial.value for trial in self.completed}) < 2:
            return ()
        return self.optimizer.importance()

    @cached_property
    def completed(self) -> tuple[Trial, ...]:
        """Trials with a value."""
        return tuple(trial for trial in self.trials if trial.state is TrialState.COMPLETE)

    @property
    def is_flat(self) -> bool:
        """Whether there are several values, and no difference between them: then none of them is the best."""
        return len(self.completed) > 2 and len({trial.value for trial in self.completed}) == 1

    @cached_property
    def feasible(self) -> tuple[Trial, ...]:
        """Trials with a value that keep all conditions."""
        return tuple(trial for trial in self.completed if is_feasible(trial, self.constraints))

    @cached_property
    def best(self) -> Trial | None:
        """The completed trial with the best value that keeps all conditions; the first of equals."""
        return max(self.feasible, key=lambda t: (self.sign * (t.value or 0.0), -t.number), default=None)

    @property
    def constraints(self) -> Constraints | None:
        """Conditions on outcomes, if there are any."""
        return None if self.optimizer is None else self.optimizer.settings.constraints

    @cached_property
    def conditions(self) -> tuple[ConditionStatus, ...]:
        """How the conditions stand."""
        return statuses(self.constraints, self.trials, self.best)

    @cached_property
    def recommended(self) -> Recommendation | None:
        """The trial to choose, as it is among `trials`; None also where the model does not know of the best one."""
        found = None if self.optimizer is None else self.optimizer.recommended
        if found is None or self.best is None or self.best.number not in self.numbers:
            return None
        chosen = self.numbers[found.trial.number]
        return replace(found, trial=next(trial for trial in self.trials if trial.number == chosen))

    @cached_property
    def stop_reason(self) -> StopReason | None:
        """Why it ended, or None: it goes on, or was interrupted."""
        return self.known_reason or self.ask_reason()

    @cached_property
    def exchange_rate(self) -> float | None:
        """The fixed cost_scale at which the run weighs values against costs, if it has one."""
        return None if self.optimizer is None else _exchange_rate(self.optimizer.settings)

    @cached_property
    def cost_scale(self) -> float | None:
        """The latest cost_scale: the fixed one, or what the policy has come down to."""
        rates = [rate for trial in self.trials if (rate := COST_SCALE.of(trial)) is not None]
        return self.exchange_rate or (rates[-1] if rates else None)

    @cached_property
    def beliefs(self) -> Beliefs | None:
        """What the model believes; None if there is nothing to ask."""
        return None if self.optimizer is None else beliefs_of(self.optimizer, self.in_words, self.sign)

    @cached_property
    def outlook(self) -> Outlook | None:
        """What more budget is expected to buy: what is left of it, and at least half as much again as was spent."""
        if self.beliefs is None or self.best is None or self.spent <= 0.0 or self.is_flat:
            return None
        horizon = max(self.spendable, AT_LEAST * self.spent)
        return outlook_of(self.beliefs, self.best.value or 0.0, self.sign, horizon)

    def state_of(self, trial: Trial) -> str:
        """Where a trial stands, in a word."""
        return PRUNED if trial.number in self.pruned else trial.state.value

    def ended_early(self, trial: Trial) -> bool:
        """Whether it was stopped or pruned."""
        return self.state_of(trial) in EARLY

    def coordinates(self, name: str, trials: Iterable[Trial]) -> tuple[list[Trial], Floats]:
        """Those of the trials that have this parameter within its bounds, and where in [0, 1] they have it."""
        parameter = self.parameters[name]
        inside = [trial for trial in trials if _is_inside(parameter, trial.params.get(name))]
        return inside, parameter.to_unit([trial.params[name] for trial in inside]) if inside else np.empty(0)


def _is_inside(parameter: Parameter, value: object) -> bool:
    try:
        parameter.check(value)
    except InvalidInputError:
        return False
    return True


def _exchange_rate(settings: Settings) -> float | None:
    """The rate of its stop rule, else of its policy."""
    rules = [settings.policy, *rules_of(settings.stop)]
    rates = [rule.cost_scale for rule in rules if isinstance(rule, PBGI | GittinsStop)]
    return rates[-1] if rates else None
