"""The study of a job: its trials in an Optuna storage, and the rules by which they are written.

- A trial is added in one transaction, with its parameters and the process that runs it: there are no half trials.
- A finished trial has its cost: that is written first, then the state and the value in one transaction.
- Adding and finishing happen under a lock, so two processes never hand out a point twice, and share the budget.
- A trial is finished once. Saying the same again changes nothing; saying something else is refused. The value of a
  trial that was given up is kept as another trial, see `pbgi.integrations.optuna.late`.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from pbgi.cli import attributes
from pbgi.cli.errors import DamagedError, StorageError
from pbgi.cli.job import Job
from pbgi.cli.outcome import Outcome
from pbgi.cli.settings import StudySettings
from pbgi.cli.sound import require_sound
from pbgi.cli.storage import Storage
from pbgi.cli.widening import holds_all_of
from pbgi.errors import InvalidInputError, UnknownTrialError
from pbgi.history import Trial
from pbgi.integrations.optuna.kept import ENDED_KEY, TRIAL_KEY, Suggestion, suggestion_of, to_stored
from pbgi.integrations.optuna.late import late_result, late_trial, require_same, was_abandoned
from pbgi.parameter import Categorical, Float, Integer, Parameter
from pbgi.plain import Value
from pbgi.space import Space

T = TypeVar("T")


class StudyBook:
    """The trials of one study."""

    def __init__(self, storage: Storage, name: str, settings: StudySettings) -> None:
        self.storage, self.name, self.settings = storage, name, settings
        self._study = storage.patiently(lambda: _load(storage, name))
        self._id: int = storage.patiently(lambda: storage.backend.get_study_id_from_name(name))

    @classmethod
    def of_job(cls, job: Job, storage: Storage) -> "StudyBook":
        """The study of a job, made if there is none; its settings follow the job.

        Raises:
            InvalidInputError: The study has parameters that are not the job's, or wider ones, or another direction.
        """
        with storage.locked(job.name):
            storage.patiently(lambda: _create(storage, job))
            study = storage.patiently(lambda: _load(storage, job.name))
            kept = storage.patiently(lambda: study.user_attrs.get(attributes.SETTINGS))
            settings = _merged(job, None if kept is None else _read(storage, kept))
            plain = settings.to_plain()
            if plain != kept:
                storage.patiently(lambda: study.set_user_attr(attributes.SETTINGS, plain))
        return cls(storage, job.name, settings)

    @classmethod
    def existing(cls, storage: Storage, name: str | None) -> "StudyBook":
        """A study that is there already; without a name, the only one.

        Raises:
            InvalidInputError: There is no such study, or which one is not clear.
        """
        found = storage.name_of(name)
        study = storage.patiently(lambda: _load(storage, found))
        kept = storage.patiently(lambda: study.user_attrs.get(attributes.SETTINGS))
        if kept is None:
            raise InvalidInputError(f"{storage.shown}: study {found!r} was not made by this command line")
        return cls(storage, found, _read(storage, kept))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """See `Storage.locked`."""
        with self.storage.locked(self.name):
            yield

    def trials(self) -> list[FrozenTrial]:
        """All trials, by number; what others have written meanwhile included."""
        return self._patiently(lambda: list(require_sound(self._study.get_trials(deepcopy=False))))

    def trial(self, number: int) -> FrozenTrial:
        """The trial with this number."""
        trials = self.trials()
        if not 0 <= number < len(trials):
            known = f"numbers go from 0 to {len(trials) - 1}" if trials else "there are no trials yet"
            raise UnknownTrialError(f"a trial must be one of this study; got number {number}; {known}")
        return trials[number]

    def add(self, trial: Trial, notes: Mapping[str, Any]) -> FrozenTrial:
        """Add a running trial; call it under the lock. Its notes gain a token of its own."""
        distributions = distributions_of(self.settings.space)
        internal = {name: d.to_internal_repr(trial.params[name]) for name, d in distributions.items()}
        suggestion = Suggestion(internal, trial.predicted_cost, record=dict(trial.record))
        made = create_trial(
            state=TrialState.RUNNING,
            params=dict(trial.params),
            distributions=distributions,
            user_attrs={**notes, attributes.TOKEN: secrets.token_hex(4)},
            system_attrs={TRIAL_KEY: to_stored(suggestion)},
        )
        backend = self.storage.backend
        trial_id = self._patiently(lambda: backend.create_new_trial(self._id, template_trial=made))
        return self._patiently(lambda: backend.get_trial(trial_id))

    def set_note(self, number: int, key: str, value: Any) -> None:
        """Write an attribute of a running trial."""
        self._patiently(lambda: self._set_note(number, key, value))

    def _set_note(self, number: int, key: str, value: Any) -> None:
        backend = self.storage.backend
        with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError):
            backend.set_trial_user_attr(backend.get_trial_id_from_study_id_trial_number(self._id, number), key, value)

    def finish(self, number: int, outcome: Outcome) -> FrozenTrial:
        """Record how a trial ended; call it under the lock.

        Returns:
            The finished trial: another one if it had been given up, and its result is late.

        Raises:
            TrialStateError: It has ended otherwise before.
        """
        known = self.trial(number)
        if known.state.is_finished():
            return self._ended_before(known, outcome)
        notes = {
            attributes.COST: outcome.cost,
            attributes.OBSERVED: outcome.observed,
            attributes.SECONDS: outcome.seconds,
            attributes.MESSAGE: outcome.message,
            attributes.OVERRUN: outcome.overrun or None,
        }
        for key, value in notes.items():
            if value is not None:
                self.set_note(number, key, value)
        failed = outcome.value is None
        state = TrialState.FAIL if failed else TrialState.COMPLETE
        if failed and not outcome.abandoned:
            self._patiently(lambda: self.storage.backend.set_trial_system_attr(known._trial_id, ENDED_KEY, True))
        self._patiently(lambda: self._study.tell(number, outcome.value, state, skip_if_finished=True))
        return self.trial(number)

    def _ended_before(self, known: FrozenTrial, outcome: Outcome) -> FrozenTrial:
        """A trial that has ended stays as it is, unless it was given up and has a value now: that is another trial."""
        trials = self.trials()
        found = late_result(trials, known)
        if found is None and outcome.value is not None and was_abandoned(known):
            notes = {attributes.SECONDS: outcome.seconds, attributes.OBSERVED: outcome.observed}
            told = {key: value for key, value in notes.items() if value is not None}
            late = late_trial(trials, known, outcome.value, outcome.cost, told)
            backend = self.storage.backend
            return backend.get_trial(backend.create_new_trial(self._id, template_trial=late))
        return require_same(found or known, outcome.value, outcome.cost)

    def _patiently(self, operation: Callable[[], T]) -> T:
        return self.storage.patiently(operation)


def _load(storage: Storage, name: str) -> optuna.Study:
    # The sampler of this object is never asked: suggestions come from `suggest`.
    try:
        return optuna.load_study(study_name=name, storage=storage.backend, sampler=optuna.samplers.RandomSampler())
    except KeyError:
        raise StorageError(
            f"{storage.shown}: there is no study {name!r} yet; `pbgi tune` or `pbgi ask` makes one"
        ) from None


def _read(storage: Storage, kept: Any) -> StudySettings:
    """The settings in a study; ours, so that a mistake in them is damage and not the user's."""
    with storage.errors():
        try:
            settings = StudySettings.from_plain(kept)
            settings.optimizer()  # checks what a mapping does not
        except (InvalidInputError, TypeError) as error:
            raise DamagedError(str(error)) from None
    return settings


def _create(storage: Storage, job: Job) -> None:
    if job.name in optuna.get_all_study_names(storage.backend):
        return
    with contextlib.suppress(optuna.exceptions.DuplicatedStudyError):
        optuna.create_study(
            storage=storage.backend,
            study_name=job.name,
            direction="minimize" if job.direction == "minimize" else "maximize",
            sampler=optuna.samplers.RandomSampler(),
        )


def _merged(job: Job, kept: StudySettings | None) -> StudySettings:
    """The settings of the job, with what the study has fixed before."""
    if kept is None:
        return StudySettings.of(job)
    if not holds_all_of(job.space, kept.space) or kept.direction != job.direction:
        what = "parameters" if kept.direction == job.direction else "direction"
        old = kept.direction if what == "direction" else dict(kept.space.parameters)
        way_out = "change it back, or give the job another name to begin a new study"
        way_out = way_out if what == "direction" else f"ranges may only get wider; {way_out}"
        raise InvalidInputError(f"{job.path}: {what} must stay as in study {job.name!r}, {old!r}; {way_out}")
    seed = kept.seed if job.seed is None else job.seed
    return StudySettings.from_plain({**StudySettings.of(job).to_plain(), "seed": seed})


# Spaces in Optuna's words --------------------------------------------------------------------------------------------


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """The parameters of a space as Optuna's distributions; a fixed value is a choice of one."""
    return {name: _distribution(parameter) for name, parameter in space.parameters.items()}


def _distribution(parameter: Parameter | Value) -> BaseDistribution:
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    if isinstance(parameter, Integer):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return CategoricalDistribution(parameter.choices if isinstance(parameter, Categorical) else [parameter])


def predicted_cost(trial: FrozenTrial) -> float | None:
    """What a trial was expected to cost; None if nothing was known."""
    suggestion = suggestion_of(trial)
    return None if suggestion is None else suggestion.predicted_cost
