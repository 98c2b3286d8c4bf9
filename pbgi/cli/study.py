"""The study of a job: its trials in an Optuna storage, and the rules by which they are written.

- A trial is added in one transaction, with its parameters and the process that runs it: there are no half trials.
- A finished trial has its cost: that is written first, then the state and the value in one transaction.
- Adding and finishing happen in turns, so two processes never hand out a point twice, and share the budget.
- A trial is finished once. Saying the same again changes nothing; saying something else is refused. The value of a
  trial that was given up is stored as another trial, see `pbgi.study.late`.
- Nothing is remembered between two suggestions but the trials, so every process that asks gets what an undisturbed run
  would have got.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from pbgi.cli.errors import DamagedError, StorageError, shortened
from pbgi.cli.job import Job, price_of_second
from pbgi.cli.program.result import LEAST_COST, Outcome
from pbgi.cli.storage import Storage
from pbgi.errors import InvalidInputError, UnknownTrialError
from pbgi.history import Trial
from pbgi.parameter import STEP_ROUNDING, Float, Integer, Parameter
from pbgi.serialization import Value
from pbgi.space import Space
from pbgi.study import attributes
from pbgi.study.late import late_result, late_trial, require_same, was_abandoned
from pbgi.study.ledger import told_cost
from pbgi.study.outcomes import beyond
from pbgi.study.settings import StudySettings
from pbgi.study.sound import fault_in
from pbgi.study.spaces import distributions_of
from pbgi.study.suggestion import Suggestion, suggestion_of, to_stored
from pbgi.trials.steps import Report


def settings_of(job: Job) -> StudySettings:
    """The settings of a job; a seed is drawn if it has none."""
    seed = int(np.random.default_rng().integers(2**63)) if job.seed is None else job.seed
    price = None if job.cost else price_of_second(job)
    unit = job.cost or ("cost" if job.formula else "seconds" if price == 1.0 else "price")
    limits = (job.n_startup_trials, seed, job.trials)
    units = (job.objective, unit, price)
    told = (job.space, job.direction, job.budget, job.policy, *limits, *units)
    return StudySettings(*told, formula=job.formula, constraints=job.constraints, steps=job.steps)


def holds_all_of(new: Space, old: Space) -> bool:
    """Whether every point of the old space is one of the new, of the same kind."""
    if new.parameters.keys() != old.parameters.keys():
        return False
    return all(_holds(new.parameters[name], parameter) for name, parameter in old.parameters.items())


def _holds(new: Parameter | Value, old: Parameter | Value) -> bool:
    if isinstance(new, Parameter) and isinstance(old, Parameter) and new.when != old.when:
        return False
    if isinstance(new, Float) and isinstance(old, Float):
        same = (new.log, new.step) == (old.log, old.step) and new.low <= old.low and old.high <= new.high
        return same and (new.step is None or _is_whole((old.low - new.low) / new.step))
    if isinstance(new, Integer) and isinstance(old, Integer):
        same = (new.log, new.step) == (old.log, old.step) and (old.low - new.low) % new.step == 0
        return same and new.low <= old.low and old.high <= new.high
    return type(new) is type(old) and new == old


def _is_whole(steps: float) -> bool:
    return abs(steps - round(steps)) <= STEP_ROUNDING


T = TypeVar("T")


class JobStudy:
    """The trials of one study."""

    def __init__(self, storage: Storage, name: str, settings: StudySettings) -> None:
        self.storage, self.name, self.settings = storage, name, settings
        self._study = storage.patiently(lambda: load_study(storage, name))
        self._id: int = storage.patiently(lambda: storage.backend.get_study_id_from_name(name))

    @classmethod
    def of_job(cls, job: Job, storage: Storage) -> "JobStudy":
        """The study of a job, made if there is none; its settings follow the job.

        Raises:
            InvalidInputError: The job breaks a rule, or the study has other parameters, another direction or other
                units than the job. Nothing is left behind then.
        """
        require_possible(job)
        return cls(storage, job.name, storage.exclusively(job.name, lambda: _joined(storage, job)))

    @classmethod
    def existing(cls, storage: Storage, name: str | None) -> "JobStudy":
        """A study that is there already; without a name, the only one.

        Raises:
            InvalidInputError: There is no such study, or which one is not clear.
        """
        found = storage.name_of(name)
        study = storage.patiently(lambda: load_study(storage, found))
        stored = storage.patiently(lambda: study.user_attrs.get(attributes.SETTINGS))
        if stored is None:
            raise InvalidInputError(f"{storage.shown}: study {found!r} was not made by this command line")
        return cls(storage, found, _read(storage, stored))

    def exclusively(self, work: Callable[[], T]) -> T:
        """See `Storage.exclusively`."""
        return self.storage.exclusively(self.name, work)

    def trials(self) -> list[FrozenTrial]:
        """All trials, by number; what others have written meanwhile included."""
        return self._patiently(lambda: sound_trials(self._study))

    def trial(self, number: int) -> FrozenTrial:
        """The trial with this number."""
        trials = self.trials()
        if not 0 <= number < len(trials):
            known = f"numbers go from 0 to {len(trials) - 1}" if trials else "there are no trials yet"
            raise UnknownTrialError(f"a trial must be one of this study; got number {number}; {known}")
        return trials[number]

    def add(self, trial: Trial, notes: Mapping[str, Any], begins_again: FrozenTrial | None = None) -> FrozenTrial:
        """Add a running trial, which may begin a stopped one again; call it in a turn."""
        distributions = {n: d for n, d in distributions_of(self.settings.space).items() if n in trial.params}
        internal = {name: d.to_internal_repr(trial.params[name]) for name, d in distributions.items()}
        suggestion = Suggestion(internal, trial.predicted_cost, record=dict(trial.record), study=self.name)
        made = create_trial(
            state=TrialState.RUNNING,
            params=dict(trial.params),
            distributions=distributions,
            user_attrs=dict(notes),
            system_attrs={attributes.TRIAL: to_stored(suggestion)}
            | ({} if begins_again is None else {attributes.BEGUN_AGAIN: begins_again.number}),
        )
        return self._added(made)

    def go_on(self, stopped: FrozenTrial, notes: Mapping[str, Any]) -> FrozenTrial:
        """Add a running trial that goes on with a stopped one and takes its place; call it in a turn.

        Optuna lets nobody change a trial that has ended. What the stopped one has said and cost comes along.
        """
        paid = {"seconds": stopped.user_attrs.get(attributes.SECONDS, 0.0), "cost": told_cost(stopped) or 0.0}
        known = {
            attributes.STEP_COSTS: stopped.user_attrs.get(attributes.STEP_COSTS, {}),
            attributes.CHECKPOINT: stopped.user_attrs.get(attributes.CHECKPOINT, folder_name(stopped)),
            attributes.ATTEMPTS: [{**paid, "interrupted": True}],
        }
        before = stopped.system_attrs.get(attributes.GOES_ON, [])
        made = create_trial(
            state=TrialState.RUNNING,
            params=stopped.params,
            distributions=stopped.distributions,
            intermediate_values=stopped.intermediate_values,
            user_attrs=known | dict(notes),
            system_attrs={
                attributes.TRIAL: stopped.system_attrs.get(attributes.TRIAL),
                attributes.GOES_ON: [*before, stopped.number],
            },
        )
        return self._added(made)

    def _added(self, made: FrozenTrial) -> FrozenTrial:
        backend = self.storage.backend
        trial_id = self._patiently(lambda: backend.create_new_trial(self._id, template_trial=made))
        return self._patiently(lambda: backend.get_trial(trial_id))

    def report(self, number: int, new: Sequence[Report], costs: Mapping[int, float]) -> None:
        """Write what a running trial has said of its steps, and what it had cost by those where that counts."""
        # Costs first: a value whose cost is not there yet would be free.
        self.set_note(number, attributes.STEP_COSTS, {str(step): cost for step, cost in costs.items()})
        for report in new:
            self._patiently(partial(self._set_value, number, report.step, report.value))

    def _set_value(self, number: int, step: int, value: float) -> None:
        with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError):
            self.storage.backend.set_trial_intermediate_value(self._trial_id(number), step, value)

    def add_finished(self, trial: FrozenTrial) -> None:
        """Add a trial that has ended elsewhere; call it in a turn."""
        self._patiently(lambda: self.storage.backend.create_new_trial(self._id, template_trial=trial))

    def set_note(self, number: int, key: str, value: Any) -> None:
        """Write an attribute of a running trial."""
        self._patiently(lambda: self._set_note(number, key, value))

    def _set_note(self, number: int, key: str, value: Any) -> None:
        with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError):
            self.storage.backend.set_trial_user_attr(self._trial_id(number), key, value)

    def _set_system_note(self, number: int, key: str, value: Any) -> None:
        backend = self.storage.backend
        self._patiently(lambda: backend.set_trial_system_attr(self._trial_id(number), key, value))

    def _trial_id(self, number: int) -> int:
        return self.storage.backend.get_trial_id_from_study_id_trial_number(self._id, number)

    def _now(self, number: int) -> FrozenTrial:
        """A trial as it is now, also if that may be undone yet: nothing is remembered."""
        return self._patiently(lambda: self.storage.backend.get_trial(self._trial_id(number)))

    def finish(self, number: int, outcome: Outcome) -> FrozenTrial:
        """Record how a trial ended; call it in a turn.

        Returns:
            The finished trial: another one if it had been given up, and its result is late.

        Raises:
            TrialStateError: It has ended otherwise before.
        """
        known = self._now(number)
        if known.state.is_finished():
            return self._ended_before(known, outcome)
        notes = {
            attributes.COST: outcome.cost,
            attributes.OBSERVED: outcome.observed,
            attributes.SECONDS: outcome.seconds,
            attributes.MESSAGE: outcome.message,
            attributes.OVERRUN: outcome.overrun or None,
            attributes.OUTCOMES: outcome.outcomes and dict(outcome.outcomes),
        }
        for key, value in notes.items():
            if value is not None:
                self.set_note(number, key, value)
        if outcome.outcomes and self.settings.constraints:
            self._set_system_note(number, attributes.CONSTRAINTS, beyond(self.settings.constraints, outcome.outcomes))
        failed = outcome.value is None and not outcome.stopped
        state = TrialState.FAIL if failed else TrialState.PRUNED if outcome.stopped else TrialState.COMPLETE
        if failed and not outcome.abandoned:
            self._set_system_note(number, attributes.ENDED, True)
        self._patiently(lambda: self._study.tell(number, outcome.value, state, skip_if_finished=True))
        return self._now(number)

    def put_back(self, number: int, attempts: Sequence[Mapping[str, Any]]) -> FrozenTrial:
        """Leave a trial whose command was ended from outside to the worker that looks next; call it in a turn.

        It stays a running one, so that the number of trials, on which randomness depends, is as undisturbed.
        """
        # Without a command it is taken to wait, so a death between two of these writes loses at most a charge.
        waiting: dict[str, Any] = {attributes.COMMAND: None, attributes.ATTEMPTS: list(attempts), attributes.WORKER: {}}
        for key, value in waiting.items():
            self.set_note(number, key, value)
        return self._now(number)

    def _ended_before(self, known: FrozenTrial, outcome: Outcome) -> FrozenTrial:
        """A trial that has ended stays as it is, unless it was given up and has a value now: that is another trial."""
        trials = self.trials()
        found = late_result(trials, known)
        if found is None and outcome.value is not None and was_abandoned(known):
            notes = {
                attributes.SECONDS: outcome.seconds,
                attributes.OBSERVED: outcome.observed,
                attributes.OUTCOMES: outcome.outcomes and dict(outcome.outcomes),
            }
            notes = {key: value for key, value in notes.items() if value is not None}
            late = late_trial(trials, known, outcome.value, outcome.cost, notes)
            backend = self.storage.backend
            return backend.get_trial(backend.create_new_trial(self._id, template_trial=late))
        return require_same(found or known, outcome.value, outcome.cost)

    def _patiently(self, operation: Callable[[], T]) -> T:
        return self.storage.patiently(operation)


def sound_trials(study: optuna.Study) -> list[FrozenTrial]:
    """The trials of a study.

    Raises:
        DamagedError: One holds what nobody would have written.
    """
    trials = study.get_trials(deepcopy=False)
    fault = fault_in(trials)
    if fault is not None:
        raise DamagedError(shortened(fault))
    return trials


def load_study(storage: Storage, name: str) -> optuna.Study:
    """The study with this name, whichever program made it."""
    # The sampler of this object is never asked: suggestions come from `suggest`.
    try:
        return optuna.load_study(study_name=name, storage=storage.backend, sampler=optuna.samplers.RandomSampler())
    except KeyError:
        raise StorageError(
            f"{storage.shown}: there is no study {name!r} yet; `pbgi tune` or `pbgi ask` makes one"
        ) from None


def _read(storage: Storage, stored: Any) -> StudySettings:
    """The settings in a study; ours, so that a mistake in them is damage and not the user's."""
    with storage.errors():
        try:
            return StudySettings.from_plain(stored)
        except (InvalidInputError, TypeError) as error:
            raise DamagedError(str(error)) from None


def require_possible(job: Job) -> None:
    """Raise unless a study of this job can be made and asked: before anything is written."""
    settings_of(job)
    distributions_of(job.space)


def _joined(storage: Storage, job: Job) -> StudySettings:
    """The settings of the job's study, which is made if there is none."""
    study = storage.patiently(lambda: _opened(storage, job))
    stored = storage.patiently(lambda: study.user_attrs.get(attributes.SETTINGS))
    trials = storage.patiently(lambda: study.get_trials(deepcopy=False))
    settings = _merged(job, None if stored is None else _read(storage, stored), trials)
    if stored is not None and not _agrees(study, job) and not trials:
        # An empty study has nothing to lose, and Optuna does not let its direction change.
        storage.patiently(lambda: optuna.delete_study(study_name=job.name, storage=storage.backend))
        study = storage.patiently(lambda: _opened(storage, job))
    if not _agrees(study, job):
        way_out = "change it, or give the job another name to begin a new study"
        has = [direction.name.lower() for direction in study.directions]
        raise InvalidInputError(f"{job.path}: direction must be that of study {job.name!r}, {has}; {way_out}")
    if settings.to_plain() != storage.patiently(lambda: study.user_attrs.get(attributes.SETTINGS)):
        storage.patiently(lambda: study.set_user_attr(attributes.SETTINGS, settings.to_plain()))
    return settings


def _agrees(study: optuna.Study, job: Job) -> bool:
    return [direction.name.lower() for direction in study.directions] == [job.direction]


def _opened(storage: Storage, job: Job) -> optuna.Study:
    """The study with the job's name, made if there is none."""
    if job.name not in storage.names():
        with contextlib.suppress(optuna.exceptions.DuplicatedStudyError):
            optuna.create_study(
                storage=storage.backend,
                study_name=job.name,
                direction="minimize" if job.direction == "minimize" else "maximize",
                sampler=optuna.samplers.RandomSampler(),
            )
    return load_study(storage, job.name)


def _merged(job: Job, stored: StudySettings | None, trials: Sequence[FrozenTrial]) -> StudySettings:
    """The settings of the job, with what the study has fixed before: nothing, while it has no trials."""
    wanted = settings_of(job)
    if stored is None:
        return wanted
    if trials:
        _require_same(job, stored, wanted, trials)
    return wanted if job.seed is not None else replace(wanted, seed=stored.seed)


def _require_same(job: Job, stored: StudySettings, wanted: StudySettings, trials: Sequence[FrozenTrial]) -> None:
    """Raise if the job would mix what must not be mixed."""
    # Ranges may get wider: all trials so far count in the wider range.
    wider = wanted.space if holds_all_of(wanted.space, stored.space) else stored.space
    fixed: dict[str, tuple[Any, Any]] = {
        "parameters": (wider, wanted.space),
        "direction": (stored.direction, wanted.direction),
    }
    if stored.steps is not None and wanted.steps is not None:  # the value of a trial is that of its last step
        fixed["steps"] = (stored.steps.last, wanted.steps.last)
    if any(trial.state in (TrialState.RUNNING, TrialState.COMPLETE) for trial in trials):
        fixed["objective"] = (stored.objective, wanted.objective)
    if any(_has_cost(trial) for trial in trials):
        fixed["cost"] = (stored.formula or stored.cost, wanted.formula or wanted.cost)
        fixed["price_per_second"] = (stored.price, wanted.price if stored.price is not None else None)
    for what, (old, new) in fixed.items():
        if old != new:
            way_out = "change it back, or give the job another name to begin a new study"
            way_out = f"ranges may only get wider; {way_out}" if what == "parameters" else way_out
            was, is_now = (dict(x.parameters) if isinstance(x, Space) else x for x in (old, new))
            raise InvalidInputError(
                f"{job.path}: {what} must stay as in study {job.name!r}, {was!r}; got {is_now!r}; {way_out}"
            )


def _has_cost(trial: FrozenTrial) -> bool:
    """Whether a trial has cost something, or may: in a unit, then. A failure whose cost nobody knows has none."""
    charged = told_cost(trial) or 0.0
    unknown = charged <= LEAST_COST or charged == predicted_cost(trial)
    return trial.state is not TrialState.FAIL or not unknown


def folder_name(trial: FrozenTrial) -> str:
    """What the folder of a trial is called; its token tells it from trials of other studies."""
    return f"{trial.number}-{trial.user_attrs.get(attributes.TOKEN, 'x')}"


def predicted_cost(trial: FrozenTrial) -> float | None:
    """What a trial was expected to cost; None if nothing was known."""
    suggestion = suggestion_of(trial)
    return None if suggestion is None else suggestion.predicted_cost
