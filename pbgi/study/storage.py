"""The only lines that touch Optuna's storage by private names.

Optuna hands a sampler a study and a frozen trial and has no public way to write to either; the three attributes with an
underscore that are used here, and nowhere else, are those by which Optuna's own samplers keep what they must remember.
A fourth leads from the cache that Optuna puts before a database to the database; where it leads nowhere, there is no
lock, and all else works.

Each line may be done twice with the same effect, so a database server that goes away is asked again for a while.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.logging import get_logger
from optuna.storages import RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from pbgi.stopping import StopReason
from pbgi.study import attributes
from pbgi.study.suggestion import Suggestion, to_stored

T = TypeVar("T")

# Less than `turn.PATIENCE`: nobody takes a worker that waits for the server for one that was killed.
SERVER_PATIENCE, PAUSE = 30.0, 0.25
_LOGGER = get_logger("optuna.pbgi")  # below Optuna's own, so that its handlers and its verbosity apply


def is_choosing(trial: FrozenTrial) -> bool:
    """Whether a worker is choosing the point of this trial right now."""
    marked = bool(trial.system_attrs.get(attributes.CHOOSING)) and trial.system_attrs.get(attributes.TRIAL) is None
    return marked and not trial.state.is_finished()


def patiently(operation: Callable[[], T], patience: float | None = None) -> T:
    """The result of an operation on a study, repeated while the database server cannot be reached.

    Args:
        operation: Something that may be done twice with the same effect, `lambda: study.tell(trial, value,
            skip_if_finished=True)`, say.
        patience: Seconds after which the error is raised; by default those of the sampler, `SERVER_PATIENCE`.
    """
    patience = SERVER_PATIENCE if patience is None else patience
    begun, warned = time.monotonic(), False
    while True:
        try:
            return operation()
        except Exception as error:
            if not _is_server_gone(error) or time.monotonic() - begun >= patience:
                raise
            if not warned:
                _LOGGER.warning("The storage cannot be reached; trying again for %g s", patience)
                warned = True
        time.sleep(PAUSE)


def _is_server_gone(error: Exception) -> bool:
    """Whether a database server did not answer; a file that is locked or full is another matter."""
    from sqlalchemy.exc import OperationalError, SQLAlchemyError  # Optuna, too, imports it only when needed

    # A connection that breaks in the middle of a transaction is reported as a transaction that cannot go on.
    cause: BaseException | None = error if isinstance(error, StorageInternalError | SQLAlchemyError) else None
    while cause is not None and not isinstance(cause, OperationalError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None and not isinstance(cause.orig, sqlite3.Error)


def trials_of(study: Study) -> list[FrozenTrial]:
    """All trials by number, shared with the storage: to be read only. A pruner may show a sampler only some."""
    return patiently(lambda: study._storage.get_all_trials(study._study_id, deepcopy=False))


def trial_of(study: Study, number: int) -> FrozenTrial:
    """One trial; that of a finished one most storages remember."""
    storage = study._storage
    return patiently(
        lambda: storage.get_trial(storage.get_trial_id_from_study_id_trial_number(study._study_id, number))
    )


def exists(study: Study, number: int) -> bool:
    """Whether there is a trial with this number: a question that takes a storage a fraction of reading the trials."""
    try:
        patiently(lambda: study._storage.get_trial_id_from_study_id_trial_number(study._study_id, number))
    except KeyError:
        return False
    return True


def keep(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Store an attribute with a trial that is not finished."""
    patiently(lambda: study._storage.set_trial_system_attr(trial._trial_id, key, value))


def note(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Store an attribute of the user's with a trial that is not finished."""
    patiently(lambda: study._storage.set_trial_user_attr(trial._trial_id, key, value))


def add_trial(study: Study, trial: FrozenTrial) -> FrozenTrial:
    """Add a trial, once: a server that went away in between is not asked again, for it may have been added."""
    return study._storage.get_trial(study._storage.create_new_trial(study._study_id, template_trial=trial))


def clear_mark(study: Study, trial: FrozenTrial) -> None:
    """Take away the mark of a trial; its worker, if it is only slow, notices when it has chosen."""
    with contextlib.suppress(UpdateFinishedTrialError):
        keep(study, trial, attributes.CHOOSING, False)


def has_mark(study: Study, trial: FrozenTrial, mark: Any) -> bool:
    """Whether a trial still has the mark that was set."""
    storage = database_of(study) or study._storage  # a cache would ask the database for the whole trial
    return bool(patiently(lambda: storage.get_trial_system_attrs(trial._trial_id)).get(attributes.CHOOSING) == mark)


def database_of(study: Study) -> RDBStorage | None:
    """The database of a study; None if it has another storage, or none."""
    backend = getattr(study._storage, "_backend", study._storage)
    return backend if isinstance(backend, RDBStorage) else None


def keep_suggestion(study: Study, trial: FrozenTrial, suggestion: Suggestion | None) -> None:
    """Store what was suggested for a trial, which also says that the choice is made; or None: it is taken back."""
    here = None if suggestion is None else to_stored(replace(suggestion, study=study.study_name))
    keep(study, trial, attributes.TRIAL, here)


def keep_stop(study: Study, reason: StopReason | None) -> None:
    """Store why the study was stopped, or that it goes on."""
    value = None if reason is None else {**vars(reason), "numbers": dict(reason.numbers)}
    patiently(lambda: study._storage.set_study_user_attr(study._study_id, attributes.STOP, value))
