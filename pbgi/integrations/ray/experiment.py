"""The trials of an experiment of Tune as trials of an optimizer: who they are, what they have cost, how they ended.

Ray names trials by ids, the engine by numbers. A trial that has ended and is run again, by `Tuner.restore`, is another
trial of the same point for the engine, and what it costs beyond what was charged before is charged to that one.

Everything here is saved as JSON, see `Experiment.to_plain`.
"""

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pbgi.checks import check_charge, check_value
from pbgi.choosing.choice import goes_on, undisturbed
from pbgi.choosing.elsewhere import FittedOnce
from pbgi.choosing.state import RunState
from pbgi.errors import InvalidInputError
from pbgi.history import Trial, TrialState
from pbgi.integrations.ray.meter import SECONDS, STEP, Meter, step_of
from pbgi.optimizer import Optimizer
from pbgi.serialization import Value, require_fields
from pbgi.stopping import StopReason

# A cost is positive: what is charged to a trial that never began, or of which nothing at all is known.
LEAST_COST = 1e-9
# Seconds after which a trial is given up that was running when the experiment was saved, and of which nothing was heard
# since. Ray does not say which of them it runs again; one that it does run is taken up again by its next report.
PATIENCE = 600.0
FIELDS = ("optimizer", "trials", "waiting")
ENTRY_FIELDS = ("number", "meter", "charged_before", "value", "seconds")


def now() -> float:
    """Seconds on a clock of this process."""
    return time.monotonic()


@dataclass(frozen=True)
class Entry:
    """A trial of Ray's.

    Attributes:
        number: Of the engine's trial.
        meter: What it has cost so far, over all attempts.
        charged_before: What engine's trials that it was before were charged.
        value: What it has reported last; None if that was not a finite number.
        seconds: How long ago it was handed out when the experiment was saved; time in which nothing ran is not in it.
        since: The clock at that time.
        heard_of: Whether it was handed out, or reported anything, since the experiment was restored.
    """

    number: int
    meter: Meter
    charged_before: float = 0.0
    value: float | None = None
    seconds: float = 0.0
    since: float = field(default_factory=lambda: now())
    heard_of: bool = True

    @property
    def age(self) -> float:
        """Seconds since it was handed out."""
        return self.seconds + now() - self.since

    def to_plain(self) -> dict[str, Any]:
        """As plain JSON values."""
        saved = (self.number, self.meter.to_plain(), self.charged_before, self.value, self.age)
        return dict(zip(ENTRY_FIELDS, saved, strict=True))

    @classmethod
    def from_plain(cls, where: str, data: Any, n_trials: int) -> "Entry":
        """The entry that `to_plain` wrote, of one of so many trials."""
        require_fields(where, data, ENTRY_FIELDS)
        number = data["number"]
        if type(number) is not int or not 0 <= number < n_trials:
            raise InvalidInputError(f"number of {where} must be one of the {n_trials} trials; got {number!r}")
        for name in ("charged_before", "seconds"):
            check_charge(data[name], f"{name} of {where}")
        meter = Meter.from_plain(f"meter of {where}", data["meter"])
        value = None if data["value"] is None else check_value(data["value"], f"value of {where}")
        return cls(number, meter, float(data["charged_before"]), value, float(data["seconds"]), heard_of=False)


class Experiment:
    """The trials of one experiment.

    Args:
        optimizer: Chooses the points, and holds what became of them.
        cost_name: Under which name trials report what they cost; None if it is known beforehand.
        waiting: Points to try first.
        step_name: Under which name they report how far they have come, if the optimizer has steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        cost_name: str | None,
        waiting: Iterable[Mapping[str, Value]] = (),
        step_name: str = STEP,
    ) -> None:
        self.optimizer = optimizer
        self._cost_name, self._step_name = cost_name, step_name
        self._waiting = [optimizer.space.check(point) for point in waiting]
        self._entries: dict[str, Entry] = {}
        self._chooser: Optimizer | None = None  # the last one: until something is told it has the next choice ready
        self._given_up: set[str] = set()  # trials that do not go on, until Ray has ended them
        self._fitted = FittedOnce()

    # What is known ---------------------------------------------------------------------------------------------------

    def __contains__(self, trial_id: object) -> bool:
        return trial_id in self._entries

    def trial(self, trial_id: str) -> Trial:
        """The engine's trial."""
        return self.optimizer.trials[self._entries[trial_id].number]

    def is_running(self, trial_id: str) -> bool:
        """Whether the trial has not ended."""
        return self.trial(trial_id).state is TrialState.RUNNING

    @property
    def n_running(self) -> int:
        """How many trials have not ended."""
        return sum(trial.state is TrialState.RUNNING for trial in self.optimizer.trials)

    @property
    def knows_costs(self) -> bool:
        """Whether a trial has ever told its cost."""
        return any(entry.meter.latest is not None for entry in self._entries.values())

    @property
    def knows_steps(self) -> bool:
        """Whether a trial has ever told how far it has come."""
        return any(trial.reports for trial in self.optimizer.trials)

    @property
    def spent(self) -> float:
        """Charged for trials that have ended, and what the running ones have reported so far."""
        return math.fsum(
            [self.optimizer.spent, *(self._so_far(entry) - trial.used for trial, entry in self._running())]
        )

    def ended(self) -> StopReason | None:
        """Why it is over: the budget is spent, whatever runs, or nothing runs and nothing should begin; else None."""
        budget = self.optimizer.budget
        is_spent = budget is not None and self.spent >= budget
        return self.why_not() if is_spent or not self.n_running else None

    def why_not(self) -> StopReason | None:
        """Why no trial should begin now, or None. While trials run that may change."""
        return self._choosing().should_stop()

    def _choosing(self) -> Optimizer:
        """The optimizer, or if trials cost more than was reserved for them, what it would be had that been known."""
        holds = self._holds()
        if not holds or self.optimizer.budget is None:
            return self.optimizer
        trials = tuple(replace(t, predicted_cost=holds.get(t.number, t.predicted_cost)) for t in self.optimizer.trials)
        if self._chooser is None or self._chooser.trials != trials:
            self._chooser = self._with(trials)
        return self._chooser

    def _with(self, trials: Iterable[Trial]) -> Optimizer:
        return Optimizer.of(self.optimizer.space, self.optimizer.direction, self.optimizer.settings, trials)

    def _holds(self) -> dict[int, float]:
        """What to hold for running trials, by number, where that is more than is reserved.

        That is the case for the first trials, of which nothing could be predicted: they hold what others have cost.
        """
        typical, holds = self.optimizer.typical_cost, {}
        for trial, entry in self._running():
            predicted = trial.predicted_cost or typical or 0.0
            hold = max(predicted + max(entry.meter.lost - entry.charged_before, 0.0), self._so_far(entry))
            if self._cost_name is not None and hold > trial.reserved + trial.used:
                holds[trial.number] = hold
        return holds

    def _running(self) -> list[tuple[Trial, Entry]]:
        trials = self.optimizer.trials
        pairs = [(trials[entry.number], entry) for entry in self._entries.values()]
        return [(trial, entry) for trial, entry in pairs if trial.state is TrialState.RUNNING]

    def _so_far(self, entry: Entry) -> float:
        """What a trial has reported beyond what was charged before, or what it is charged already if that is more."""
        used = self.optimizer.trials[entry.number].used
        total = None if self._cost_name is None else entry.meter.total
        return used if total is None else max(total - entry.charged_before, used)

    # What happens ----------------------------------------------------------------------------------------------------

    def hand_out(self, trial_id: str) -> Trial:
        """The next trial, for Ray's trial of this id."""
        trial = self.optimizer.enqueue(self._waiting.pop(0)) if self._waiting else self._ask()
        self._entries[trial_id] = Entry(trial.number, Meter())
        return trial

    def _ask(self) -> Trial:
        chooser = self._choosing()
        asked: Trial = chooser.ask()
        if chooser is not self.optimizer:
            self.optimizer = self._with((*self.optimizer.trials, asked))
        return asked

    def take_up(self, trial_id: str, point: Mapping[str, Value]) -> None:
        """Begin a trial that nobody asked for: Ray runs one again, under another id or after it had ended."""
        before = self._entries.get(trial_id)
        charged = 0.0 if before is None else before.charged_before + self.trial(trial_id).charged
        trial = self.optimizer.enqueue(point)
        meter = Meter() if before is None else before.meter
        self._entries[trial_id] = Entry(trial.number, meter, charged)

    def is_news(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether a report says more of the trial's cost or progress than the last one."""
        meter = self._entries[trial_id].meter
        return meter.read(result, self._cost_name or SECONDS) != meter

    def is_spent_by(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether the budget is spent if a trial reports this."""
        entry = self._entries.get(trial_id)
        if self.optimizer.budget is None or entry is None or not self.is_running(trial_id):
            return False
        after = replace(entry, meter=entry.meter.read(result, self._cost_name or SECONDS))
        return self.spent - self._so_far(entry) + self._so_far(after) >= self.optimizer.budget

    def report(self, trial_id: str, result: Mapping[str, Any], value: Any) -> None:
        """Note what a trial has cost so far, and how good it is."""
        entry = self._entries[trial_id]
        meter = entry.meter.read(result, self._cost_name or SECONDS)
        self._entries[trial_id] = replace(entry, meter=meter, value=_finite(value), heard_of=True)
        self._report_step(trial_id, step_of(result, self._step_name))

    def _report_step(self, trial_id: str, step: int | None) -> None:
        """Tell the engine how far a trial has come, if further than before; its last step is told as its end."""
        entry, trial, steps = self._entries[trial_id], self.trial(trial_id), self.optimizer.settings.steps
        if steps is None or step is None or entry.value is None or not trial.step < step < steps.last:
            return
        cost = None if self._cost_name is None else self._cost(trial_id)
        if cost is not None or not self.optimizer.settings.must_tell_cost:
            self.optimizer.report(entry.number, step, entry.value, cost=cost)

    def goes_on(self, trial_id: str, result: Mapping[str, Any], *, best_next: bool) -> bool:
        """Whether a trial goes on, that has just reported: not after its last step, nor if it is not worth it.

        The next new trial is the best there is, or, if something else chooses it, one like any other.
        """
        steps, step = self.optimizer.settings.steps, step_of(result, self._step_name)
        if steps is None or step is None or trial_id not in self._entries or not self.is_running(trial_id):
            return True
        if step >= steps.last:
            self._given_up.discard(trial_id)
        if step >= steps.last or self._entries[trial_id].value is None:
            return False
        if trial_id not in self._given_up and not self._is_worth_it(trial_id, best_next=best_next):
            self._given_up.add(trial_id)
        return trial_id not in self._given_up

    def _is_worth_it(self, trial_id: str, *, best_next: bool) -> bool:
        held = self.optimizer
        with undisturbed():
            state = RunState.of(held.space, held.direction, held.settings, held.trials)
            number = self._entries[trial_id].number
            return goes_on(state if best_next else self._fitted(state), number, best_next=best_next)

    def complete(self, trial_id: str, value: Any) -> Trial:
        """Record the value of a trial, and what it cost; without a real number it fails.

        One that was given up has none: it was stopped, and what it has reported informs.
        """
        if trial_id in self._given_up:
            self._given_up.remove(trial_id)
            return self.optimizer.stop(self._entries[trial_id].number, charge=self._cost(trial_id))
        try:
            number = check_value(value)
        except InvalidInputError as error:
            return self.fail(trial_id, str(error))
        trial, charge = self.trial(trial_id), None
        cost = trial.predicted_cost if self._cost_name is None and trial.reports else self._cost(trial_id)
        if cost is None and self.optimizer.budget is not None and self._cost_name is not None:
            charge = trial.predicted_cost or self.optimizer.typical_cost or LEAST_COST
        return self.optimizer.tell(self._entries[trial_id].number, number, cost=cost, charge=charge)

    def fail(self, trial_id: str, message: str, *, began: bool = True) -> Trial:
        """Record that a trial ended without a value; it is charged what it has cost so far."""
        self._given_up.discard(trial_id)
        cost = (self._cost(trial_id) or self._silent_cost(trial_id)) if began else LEAST_COST
        return self.optimizer.fail(self._entries[trial_id].number, cost=cost, message=message)

    def _silent_cost(self, trial_id: str) -> float | None:
        """What to charge to a trial that failed without a word: what was expected of it; None leaves it to the engine.

        Where seconds are counted the clock knows better if it says less: that includes the wait for a processor.
        """
        expected = self.trial(trial_id).predicted_cost or self.optimizer.typical_cost
        if self._cost_name == SECONDS:
            return max(min(self._entries[trial_id].age, math.inf if expected is None else expected), LEAST_COST)
        return LEAST_COST if expected is None and self.optimizer.budget is not None else expected

    def leave(self, trial_id: str) -> Trial:
        """Record that a trial was stopped between two reports: its last value counts, if it has one."""
        value = self._entries[trial_id].value
        if value is not None:
            return self.complete(trial_id, value)
        began = self._entries[trial_id].meter != Meter()
        return self.fail(trial_id, "stopped before it reported a value", began=began)

    def fail_running(self, message: str) -> None:
        """Fail all trials that have not ended."""
        for trial_id in self._entries:
            if self.is_running(trial_id):
                self.fail(trial_id, message)

    def give_up_lost(self) -> None:
        """Fail the trials that Ray seems to have forgotten: others would wait for them for ever."""
        for trial_id, entry in self._entries.items():
            if not entry.heard_of and now() - entry.since > PATIENCE and self.is_running(trial_id):
                self.fail(trial_id, "not heard of since the search was restored")

    def _cost(self, trial_id: str) -> float | None:
        """What to charge to a trial, if that is known."""
        return self._so_far(self._entries[trial_id]) or None

    # Saving ----------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        trials = {trial_id: entry.to_plain() for trial_id, entry in self._entries.items()}
        saved = (json.loads(self.optimizer.to_json()), trials, self._waiting)
        return dict(zip(FIELDS, saved, strict=True))

    @classmethod
    def from_plain(
        cls,
        data: Any,
        cost_name: str | None,
        unwritten: Mapping[str, Any],
        budget: float | None = None,
        step_name: str = STEP,
    ) -> "Experiment":
        """The experiment that `to_plain` wrote.

        Args:
            data: What it returned.
            cost_name: See `Experiment`.
            step_name: See `Experiment`.
            unwritten: What JSON cannot hold of an optimizer's settings, see `pbgi.settings.Settings.unwritten`.
            budget: Another budget than the one that was saved; None for that one.
        """
        require_fields("experiment", data, FIELDS)
        optimizer = Optimizer.from_json(json.dumps(data["optimizer"]), **unwritten)
        if budget is not None:
            settings = replace(optimizer.settings, budget=budget)
            optimizer = Optimizer.of(optimizer.space, optimizer.direction, settings, optimizer.trials)
        if not isinstance(data["waiting"], list) or not isinstance(data["trials"], Mapping):
            raise InvalidInputError("waiting must be a list and trials a mapping, as they were saved")
        experiment = cls(optimizer, cost_name, data["waiting"], step_name)
        for trial_id, entry in data["trials"].items():
            experiment._entries[trial_id] = Entry.from_plain(f"trial {trial_id!r}", entry, len(optimizer.trials))
        return experiment


def _finite(value: Any) -> float | None:
    try:
        number = check_value(value)
    except InvalidInputError:
        return None
    return number if math.isfinite(number) else None
