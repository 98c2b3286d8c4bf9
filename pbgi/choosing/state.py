"""All that the next suggestion depends on: a space, a direction, settings and trials, and what follows from them.

A state is a value. The same state gives the same suggestion, bit for bit, in any process.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pbgi.arrays import Floats
from pbgi.constraints.constraint import is_feasible
from pbgi.cost import WARINESS, Cost, KnownCost, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.gp.algebra import LARGEST
from pbgi.history import History, Trial, TrialState, in_state, total_charged, total_reserved
from pbgi.model import ModelKind
from pbgi.policy import Policy
from pbgi.serialization import parsed_json, require_fields
from pbgi.settings import DIRECTIONS, FIELDS, Settings, require_direction
from pbgi.space import Space

FORMAT = 1  # of what `to_json` writes
# A trial fits what is left of the budget to within this share of it: ten trials of 0.1 fit a budget of 1, whatever
# rounding says, and so do ten trials of a learned cost that has always been the same.
ROUNDING, LEARNING = 1e-12, 1e-4
LAST_SHARE = 0.1  # of the budget: over it wariness doubles, and nothing is tried that may well not fit


@dataclass(frozen=True, eq=False)
class RunState:
    """Where a run stands.

    Attributes:
        space: Where points lie.
        direction: "minimize" or "maximize".
        settings: What the run was told once and for all.
        trials: The history.
        X: (n, d) The points of all trials in the unit cube.
    """

    space: Space
    direction: str
    settings: Settings
    trials: tuple[Trial, ...]
    X: Floats

    @classmethod
    def of(cls, space: Space, direction: str, settings: Settings, trials: Iterable[Trial]) -> "RunState":
        """The state of a run with these trials, checked.

        Raises:
            InvalidInputError: The direction is none, or a trial has another number or no point of the space.
        """
        checked = History(trials).trials
        X = space.to_unit_many([trial.params for trial in checked])
        return cls(space, require_direction(direction), settings, checked, X)

    @property
    def sign(self) -> float:
        """What a value is multiplied with so that larger is better."""
        return DIRECTIONS[self.direction]

    def points(self, trials: Sequence[Trial]) -> Floats:
        """(k, d) The points of some of the trials in the unit cube."""
        return self.X[[trial.number for trial in trials]]

    @cached_property
    def completed(self) -> tuple[Trial, ...]:
        """Trials with a value, external ones included."""
        return in_state(self.trials, TrialState.COMPLETE)

    @cached_property
    def running(self) -> tuple[Trial, ...]:
        """Trials whose outcome is not known yet."""
        return in_state(self.trials, TrialState.RUNNING)

    @cached_property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that ended without a value, external ones included."""
        return in_state(self.trials, TrialState.FAILED)

    @cached_property
    def failing(self) -> tuple[Trial, ...]:
        """Failed trials that say something of their points.

        Where as many have given a value, as after a worker was killed and its trial was run again, it was an accident.
        """
        if not self.failed:
            return ()
        given = Counter(self.X[trial.number].tobytes() for trial in self.completed)
        failed = Counter(self.X[trial.number].tobytes() for trial in self.failed)
        accidents = {point for point, n in failed.items() if given[point] >= n}
        return tuple(trial for trial in self.failed if self.X[trial.number].tobytes() not in accidents)

    @cached_property
    def partial(self) -> tuple[Trial, ...]:
        """Trials that have said something on their way and have no value: stopped, running, ended from outside."""
        if self.settings.steps is None:
            return ()
        return tuple(t for t in self.trials if t.reports and t.value is None and t.state is not TrialState.FAILED)

    @cached_property
    def paid(self) -> tuple[Trial, ...]:
        """Trials that say what a success costs: a crash after a second says nothing of what the hours after it cost."""
        partial = {trial.number for trial in self.partial if trial.used > 0.0}
        return tuple(t for t in self.trials if (t.cost is not None and t.value is not None) or t.number in partial)

    @cached_property
    def whole_costs(self) -> tuple[float, ...]:
        """What those trials cost: of one that has not ended, what it would have cost as a whole."""
        return tuple(self._whole_cost(trial) for trial in self.paid)

    def _whole_cost(self, trial: Trial) -> float:
        if trial.cost is not None and trial.value is not None:
            return trial.cost
        told = next(report for report in reversed(trial.reports) if report.cost is not None)
        return min(trial.used / self.share_paid_at(told.step), LARGEST)

    @cached_property
    def shares_paid(self) -> Floats:
        """(R,) The share of the cost of a trial that is paid by the end of each stage, learned from complete trials.

        Costs are taken to be proportional to steps, and that counts like one trial.
        """
        assert self.settings.steps is not None  # noqa: S101 (who asks has looked)
        stages = np.array(self.settings.steps.stages, dtype=np.float64)
        shares = [stages / stages[-1]]
        for trial in self.completed:
            told = [(report.step, report.cost) for report in trial.reports if report.cost is not None]
            if told and trial.cost is not None:
                steps, costs = np.array([(0.0, 0.0), *told]).T
                with np.errstate(under="ignore"):
                    paid_by = np.minimum(costs, trial.cost) / trial.cost  # whatever it said on its way
                shares.append(np.append(np.interp(stages[:-1], steps, paid_by), 1.0))
        paid: Floats = np.minimum(np.mean(shares, axis=0), 1.0)
        return paid

    def share_paid_at(self, step: int) -> float:
        """The same at any step."""
        assert self.settings.steps is not None  # noqa: S101
        return float(np.interp(step, [0, *self.settings.steps.stages], [0.0, *self.shares_paid]))

    @cached_property
    def feasible(self) -> tuple[Trial, ...]:
        """Trials with a value that keep all conditions."""
        constraints = self.settings.constraints
        return tuple(t for t in self.completed if is_feasible(t, constraints)) if constraints else self.completed

    @property
    def best(self) -> Trial | None:
        """The feasible trial with the best value; the first of equals; None if there is none."""
        return max(self.feasible, key=lambda t: (self.sign * (t.value or 0.0), -t.number), default=None)

    # Costs and the budget --------------------------------------------------------------------------------------------

    @cached_property
    def spent(self) -> float:
        """Charged for finished trials, failed ones included."""
        return total_charged(self.trials)

    @cached_property
    def reserved(self) -> float:
        """Expected cost of the running trials: a typical one where nothing was known when they began."""
        unforeseen = [trial for trial in self.running if trial.predicted_cost is None]
        used = sum(min(trial.used, self.typical_cost or 0.0) for trial in unforeseen)
        return total_reserved(self.trials) + len(unforeseen) * (self.typical_cost or 0.0) - used

    @property
    def remaining(self) -> float | None:
        """What is left of the budget after reservations; None without a budget."""
        budget = self.settings.budget
        return None if budget is None else max(budget - self.spent - self.reserved, 0.0)

    @property
    def typical_cost(self) -> float | None:
        """What a trial that gave a value has cost on average; None while none has told its cost."""
        return mean(self.whole_costs)

    @property
    def prices_are_known(self) -> bool:
        """Whether the cost of every point is known beforehand."""
        return isinstance(self.settings.cost, KnownCost | UniformCost)

    @property
    def cost_is_known(self) -> bool:
        """Whether anything can be said of the cost of a point."""
        nothing_said = self.settings.cost is None and self.settings.budget is None
        return bool(self.paid) or self.prices_are_known or nothing_said

    @property
    def in_the_dark(self) -> bool:
        """Whether a budget must hold while nothing is known of costs: values from elsewhere may say none."""
        return math.isfinite(self.affordable) and not self.cost_is_known

    @property
    def affordable(self) -> float:
        """What the next trial may cost; inf if anything."""
        if self.remaining is None or not self.settings.budget_holds:
            return math.inf
        return self.remaining * (1.0 + (ROUNDING if self.prices_are_known else LEARNING))

    @property
    def wariness(self) -> float:
        """How many deviations above its median a cost must fit: twice as many when the last of the budget is spent.

        A search for the best point that just fits finds the one whose cost is underestimated the most. Near the end,
        where that is a trial too many, little is lost by leaving it out.
        """
        if self.settings.budget is None or self.remaining is None:
            return WARINESS
        return WARINESS * (1.0 + max(1.0 - self.remaining / self.settings.budget / LAST_SHARE, 0.0))

    # As JSON ---------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The state as JSON text; functions (known costs) and models of your own must be given again on reading."""
        where = {"space": self.space.to_plain(), "direction": self.direction}
        history = History(self.trials).to_plain()
        return json.dumps({"format": FORMAT, **where, **self.settings.to_plain(), "history": history}, allow_nan=False)

    @classmethod
    def from_json(
        cls, text: str, *, cost: Cost | None = None, policy: Policy | None = None, model: ModelKind | None = None
    ) -> "RunState":
        """The state that `to_json` wrote; the arguments are those of `pbgi.Optimizer.from_json`."""
        try:
            data = parsed_json(text)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"text must be what to_json wrote; got {str(text)[:50]!r}: {error}") from None
        if isinstance(data, Mapping):
            data = {"constraints": None, "steps": None, **data}  # what was written before there were any has none
        require_fields("optimizer", data, ("format", "space", "direction", *FIELDS, "history"))
        if data["format"] != FORMAT:
            raise InvalidInputError(
                f"format must be {FORMAT}; got {data['format']!r}; it was written by another version"
            )
        space, settings = Space.from_plain(data["space"]), Settings.from_plain(data, cost, policy, model)
        return cls.of(space, data["direction"], settings, History.from_plain(data["history"]).trials)


def mean(costs: Sequence[float]) -> float | None:
    """The mean of costs, however large they are; None of none."""
    return math.fsum(cost / len(costs) for cost in costs) if costs else None
