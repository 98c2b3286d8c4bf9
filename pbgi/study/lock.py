"""The lock of a study, where its storage has one: it lets workers queue instead of asking again and again.

    SQLite        a lock of the file `<database>.lock`, which `pbgi tune` takes as well
    PostgreSQL    an advisory lock of the server, held by a transaction on a connection of its own

Other storages have none. A lock goes with its process, also when that is killed, so whoever holds it knows that no
other holder is left. It is there for speed: what makes choices safe are the marks of `turn.py`. So where a lock cannot
be had, in a folder that is read-only, say, or because its holder hangs, a worker goes on without it.
"""

import contextlib
import hashlib
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from optuna.storages import RDBStorage
from optuna.study import Study

from pbgi.study.storage import database_of

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_PAUSE = 0.005  # seconds between two looks at the lock of a file, each of which takes microseconds
_SERVER_WAIT = 2.0  # seconds after which a wait for the server's lock is begun again, so that signals are heard
_HANGING = 60.0  # seconds after which the server takes the lock from a holder of which it has heard nothing
_LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's code for a wait that took too long
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class StudyLock:
    """The locks of one sampler, shared by its threads.

    Args:
        patience: Seconds after which it goes on without a lock; the next time at once, until it gets one again.
    """

    def __init__(self, patience: float) -> None:
        self._patience, self._left = patience, patience
        self._threads = threading.Lock()

    @contextlib.contextmanager
    def held(self, study: Study) -> Iterator[str | None]:
        """Wait for the lock of a study and hold it.

        Yields:
            Among whom it is shared: a worker that says the same has held the same lock. None if there is no lock.
        """
        until = time.monotonic() + self._left
        mine = self._threads.acquire(timeout=self._left)
        try:
            with _storage_lock(study, until) if mine else contextlib.nullcontext() as shared_by:
                self._left = 0.0 if shared_by is None else self._patience
                yield shared_by or None
        finally:
            if mine:
                self._threads.release()


@contextlib.contextmanager
def _storage_lock(study: Study, until: float) -> Iterator[str | None]:
    """Yields among whom the lock is shared: "" if there is none, None if it was not to be had in time."""
    database = database_of(study)
    dialect = "" if database is None else database.engine.dialect.name
    if database is not None and dialect == "sqlite" and _is_file(database.engine.url.database):
        with _file_lock(Path(f"{database.engine.url.database}.lock"), until) as shared_by:
            yield shared_by
    elif database is not None and dialect == "postgresql" and _has_a_connection_to_spare(database.engine_kwargs):
        with _server_lock(database, study.study_name, until) as shared_by:
            yield shared_by
    else:
        yield ""


def _is_file(name: str | None) -> bool:
    return fcntl is not None and bool(name) and name != ":memory:" and not str(name).startswith("file:")


@contextlib.contextmanager
def _file_lock(path: Path, until: float) -> Iterator[str | None]:
    """Asked for again and again, which costs next to nothing: the operating system would wait without end."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield ""
        return
    try:
        yield _shared_by(file, until)
    finally:
        os.close(file)


def _shared_by(file: int, until: float) -> str | None:
    assert fcntl is not None  # noqa: S101 (for the type checker)
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return f"file:{_kernel()}"
        except BlockingIOError:
            if time.monotonic() >= until:
                return None
        except OSError:  # a file system without locks
            return ""
        time.sleep(_PAUSE)


@contextlib.contextmanager
def _server_lock(database: RDBStorage, study_name: str, until: float) -> Iterator[str | None]:
    """Its transaction ends with this block; with the process; and when the process has hung for too long."""
    from sqlalchemy.exc import SQLAlchemyError

    connection, shared_by = None, ""
    with contextlib.suppress(SQLAlchemyError):  # no connection is left, or the server is away: what comes next waits
        connection = _locked_connection(database, study_name, until)
        shared_by = "server"
    try:
        yield shared_by if connection is not None or not shared_by else None
    finally:
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):  # it may have broken meanwhile
                connection.close()


def _locked_connection(database: RDBStorage, study_name: str, until: float) -> Any:
    """A connection in a transaction that holds the lock; None if it was not to be had in time."""
    key = int.from_bytes(hashlib.sha256(f"pbgi:{study_name}".encode()).digest()[:7])
    while True:
        left = until - time.monotonic()
        connection = _attempt(database, key, min(left, _SERVER_WAIT))
        if connection is not None or left <= _SERVER_WAIT:
            return connection


def _attempt(database: RDBStorage, key: int, seconds: float) -> Any:
    import sqlalchemy

    limits = {"lock_timeout": seconds, "idle_in_transaction_session_timeout": _HANGING}
    connection = database.engine.connect()
    try:
        connection.execution_options(isolation_level="READ COMMITTED")
        for name, limit in limits.items():
            connection.execute(sqlalchemy.text(f"SET LOCAL {name} = {max(round(1000 * limit), 1)}"))
        connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
    except BaseException as error:
        connection.close()
        if _code(error) != _LOCK_NOT_AVAILABLE:
            raise
        return None
    return connection


def _code(error: BaseException) -> str | None:
    """The server's code of an error; drivers have two names for it."""
    original = getattr(error, "orig", None)
    return getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)


def _has_a_connection_to_spare(engine_kwargs: dict[str, Any]) -> bool:
    """Whether the pool has one for the lock besides the one for the work."""
    if engine_kwargs.keys() & {"poolclass", "pool"}:
        return False
    size, more = engine_kwargs.get("pool_size", 5), engine_kwargs.get("max_overflow", 10)
    return bool(size == 0 or more < 0 or size + more > 1)


def _kernel() -> str:
    """The operating system that runs here and now: who else says the same shares its locks of files."""
    return _BOOT.read_text().strip() if _BOOT.exists() else f"{platform.node()}:{uuid.getnode():x}"
