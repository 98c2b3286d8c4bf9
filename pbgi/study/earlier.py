"""`pbgi tune --from other.db`: what an earlier study has found, as trials of this one that inform and are free.

Each is added once, complete and at a cost of 0, with what it was seen to cost for the model of costs. It names the
trial it comes from, so that the same command does not add it again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from optuna.trial import FrozenTrial, TrialState, create_trial

from pbgi.errors import InvalidInputError
from pbgi.history import Trial
from pbgi.serialization import Value, parsed_json
from pbgi.study import attributes
from pbgi.study.engine import trial_of_account
from pbgi.study.ledger import ledger_of
from pbgi.study.outcomes import beyond
from pbgi.study.settings import StudySettings
from pbgi.study.spaces import distributions_of
from pbgi.warm_start import WarmStart


@dataclass(frozen=True)
class EarlierStudy:
    """A study that any program has made with Optuna.

    Attributes:
        name: Of the study.
        directions: Of its objectives.
        trials: All of them.
    """

    name: str
    directions: tuple[str, ...]
    trials: Sequence[FrozenTrial]


@dataclass(frozen=True)
class Taken:
    """How many trials of an earlier study were taken."""

    study: str
    n_added: int
    n_known: int
    n_complete: int

    @property
    def in_words(self) -> str:
        """One line."""
        left_out = self.n_complete - self.n_added - self.n_known
        before = f", {self.n_known} were there already" if self.n_known else ""
        others = f", {left_out} do not fit the parameters" if left_out else ""
        return f"from study {self.study!r}: {self.n_added} trials are known and free{before}{others}"


class OwnStudy(Protocol):
    """The study that takes them over."""

    settings: StudySettings

    def trials(self) -> list[FrozenTrial]:
        """All trials, by number."""

    def add_finished(self, trial: FrozenTrial) -> None:
        """Add a trial that has ended elsewhere."""

    def exclusively(self, work: Callable[[], Taken]) -> Taken:
        """Do something while no other process chooses or adds trials."""


def take_over(study: OwnStudy, earlier: EarlierStudy, *, fill: Sequence[str], ignore: Sequence[str]) -> Taken:
    """Add what an earlier study has found to a study.

    Raises:
        InvalidInputError: The earlier study has another direction, or what is to be filled in does not fit.
    """
    if earlier.directions != (study.settings.direction,):
        rule = f"--from must be a study to {study.settings.direction}"
        raise InvalidInputError(f"{rule}; got {earlier.name!r}, to {' and '.join(earlier.directions)}")
    done = [a for a in ledger_of(earlier.trials).accounts.values() if a.trial.state is TrialState.COMPLETE]
    known = [trial_of_account(account, dict(account.trial.params), {}) for account in done]
    fitting = WarmStart(known, filled=dict(map(_filled, fill)), ignored=ignore).fitting(study.settings.space)

    def add() -> Taken:
        there = {_origin(trial) for trial in study.trials()}
        new = [t for t in fitting if _key(earlier, t) not in there]
        for trial in new:
            study.add_finished(_made(study, trial, _key(earlier, trial)))
        return Taken(earlier.name, len(new), len(fitting) - len(new), len(done))

    return study.exclusively(add)


def _filled(text: str) -> tuple[str, Value]:
    """A name and a value: JSON, or else a text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInputError(f"--fill must be NAME=VALUE; got {text!r}")
    try:
        return name, parsed_json(value)
    except ValueError:
        return name, value


def _key(earlier: EarlierStudy, trial: Trial) -> str:
    """Which trial it was: the time tells studies of one name apart."""
    began = earlier.trials[trial.number].datetime_start
    return f"{earlier.name}:{trial.number}:{'' if began is None else began.isoformat()}"


def _origin(trial: FrozenTrial) -> Any:
    return trial.user_attrs.get(attributes.FROM)


def _made(study: OwnStudy, trial: Trial, key: str) -> FrozenTrial:
    """The trial as it is stored here."""
    notes: dict[str, Any] = {attributes.COST: 0.0, attributes.FROM: key}
    if trial.cost is not None:
        notes[attributes.OBSERVED] = trial.cost
    limits = beyond(study.settings.constraints or {}, trial.constraints)
    if trial.constraints:
        notes[attributes.OUTCOMES] = dict(trial.constraints)
    return create_trial(
        value=trial.value,
        params=dict(trial.params),
        distributions=distributions_of(study.settings.space),
        user_attrs=notes,
        system_attrs={attributes.CONSTRAINTS: limits} if limits else {},
    )
