"""Opening a storage: where it is, who may read it, and what its errors say.

An SQLite file is made with mode 0600 before the database library sees it. Every error comes out as a `StorageError`
without passwords. A storage that another writer keeps locked, or a server that is away, is asked again for a while,
each time with a fresh connection; a disk that is full is not.
"""

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import optuna
import sqlalchemy
from optuna.storages import RDBStorage

from pbgi.cli.database import HASTE, Haste, Lines, NotNowError, Patience, engine_options, passes, turn
from pbgi.cli.errors import DamagedError, StorageBusyError, StorageError, shortened
from pbgi.cli.private import make_folder, masked, open_lock, touch_private
from pbgi.cli.toml_file import require_text
from pbgi.errors import InvalidInputError, PbgiError

T = TypeVar("T")

PATIENCE = 60.0  # seconds
BUSY = 1.0  # of which the database library waits so many by itself, deaf to signals
TURN_PATIENCE = 600.0  # seconds: that others work is no fault, and many may be before us
TELL_AFTER, TELL_OF_TURN_AFTER = 2.0, 20.0
ROUNDS = 10  # so many times a turn is begun anew whose connection broke
_SQLITE_MAGIC = b"SQLite format 3\0"
# What code that reads rows of the wrong type ends in.
_NOT_AS_WRITTEN = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, RecursionError)


_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH)


def _is_damage(error: BaseException) -> bool:
    """Whether SQLite says that the file, its tables or its columns are not what they should be."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, sqlite3.Error):
        cause = cause.__cause__
    return cause is not None and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


class _Connection(sqlite3.Connection):
    """A connection that calls text which is none by its name; the library's own error looks like one that passes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.text_factory = _text


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DamagedError(f"a text must be UTF-8; {error}") from None


def _require_tables_alone(engine: Any) -> None:
    """Views and triggers are programs, and Optuna makes none."""
    with engine.connect() as connection:
        odd = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')").first()
    if odd is not None:
        raise DamagedError(f"a study is made of tables; got a view or trigger {odd[0]!r}")


class Storage:
    """An open storage.

    Attributes:
        url: Where it is; holds the password.
        backend: Optuna's storage.
    """

    def __init__(self, url: str, *, create: bool) -> None:
        self.url = url
        self._haste = Haste()
        self._in_turn = False
        self._lines: Lines | None = None
        self._lock_file = self._prepare(create)
        if self._lock_file is None:
            self._lines = Lines(url, self._haste)
        self.backend: RDBStorage = self.patiently(self._open)

    def close(self) -> None:
        """Let go of its connections."""
        self.backend.engine.dispose()

    def hurry(self, seconds: float = HASTE) -> None:
        """From now on wait no longer than this for anything; may be called from a signal handler."""
        self._haste.ask(seconds)
        if self._lines is not None:
            self._lines.hurry()

    @property
    def shown(self) -> str:
        """The URL as it may be printed."""
        return masked(self.url, self.url)

    def _prepare(self, create: bool) -> Path | None:
        """Make the SQLite file, closed to others; None where the storage is a server."""
        path = sqlite_path(self.url)
        if path is None:
            return None
        if path.is_dir():
            raise StorageError(f"{path}: must be a file, an SQLite database; it is a folder")
        real = path.resolve()  # by whatever link a study is opened, its lock is one
        lock_file = real.with_name(real.name + ".lock")
        if create:
            with self.errors():
                make_folder(path.parent)
                with self._file_lock(lock_file):
                    make_database(path)
        elif not path.is_file():
            raise StorageError(f"{path}: there is no study yet; `pbgi tune` or `pbgi ask` makes one")
        require_sqlite(path)
        return lock_file

    def _open(self) -> RDBStorage:
        try:
            return self._opened()
        except RuntimeError as error:  # tables of another version of Optuna
            raise DamagedError(f"{self.shown}: {error}") from None

    def _opened(self) -> RDBStorage:
        if self._lines is None:
            opened = RDBStorage(self.url, engine_kwargs={"connect_args": {"timeout": BUSY, "factory": _Connection}})
            _require_tables_alone(opened.engine)
            return opened
        try:
            return RDBStorage(self.url, engine_kwargs={**engine_options(self.url), "pool_events": self._lines.events})
        except BaseException:
            self._lines.close()
            raise

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Whatever goes wrong inside is a `StorageError`, and a `StorageBusyError` if it may pass."""
        try:
            with self._database_errors():
                yield
        except DamagedError as error:
            raise self._damaged(str(error)) from None
        except PbgiError:
            raise
        except _NOT_AS_WRITTEN as error:  # Optuna has read something that it would not have written
            raise self._damaged(f"{type(error).__name__}: {error}") from None
        except ImportError as error:
            raise StorageError(masked(f"{self.shown}: needs a driver: {error.__cause__ or error}", self.url)) from None
        except (OSError, RuntimeError) as error:
            kind = StorageBusyError if passes(error) else StorageError
            raise kind(masked(f"{self.shown}: {error}", self.url)) from None

    @contextlib.contextmanager
    def _database_errors(self) -> Iterator[None]:
        try:
            yield
        except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
            if _is_damage(error):
                raise self._damaged(self._reason(error)) from None
            kind = StorageBusyError if passes(error) else StorageError
            raise kind(f"{self.shown}: {self._reason(error)}") from None

    def _damaged(self, why: str) -> DamagedError:
        if why.startswith(self.shown):
            return DamagedError(why)
        way_out = "" if self._lock_file is None else "; `pbgi check` says what can be read, and exports it"
        return DamagedError(masked(f"{self.shown}: is damaged: {shortened(why)}{way_out}", self.url))

    def _reason(self, error: BaseException) -> str:
        cause = error.__cause__ or error
        original = getattr(cause, "orig", None)
        return masked(f"{type(cause).__name__}: {original or cause}", self.url)

    def patiently(self, operation: Callable[[], T]) -> T:
        """The result of an operation that is repeated while the storage is locked or away.

        In a turn on a server it is not: what was done before in this turn is undone then, see `exclusively`.

        Raises:
            StorageError: It stayed so for `PATIENCE` seconds, or something else is wrong.
        """
        patience = Patience(PATIENCE, TELL_AFTER, self._haste)
        while True:
            try:
                with self.errors(), self._watched():
                    return operation()
            except StorageBusyError as error:
                if self._in_turn:
                    raise
                patience.wait(error)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """While inside, a silent server is not waited for once there is haste."""
        if self._lines is None:
            yield
            return
        self._lines.busy_since = time.monotonic()
        try:
            yield
        finally:
            self._lines.busy_since = None

    def names(self) -> list[str]:
        """The names of the studies that are here."""
        names = self.patiently(lambda: optuna.get_all_study_names(self.backend))
        if not all(isinstance(name, str) for name in names):
            raise self._damaged(f"names of studies must be texts; got {names!r}")
        return names

    def name_of(self, study: str | None) -> str:
        """The name of a study that is here; without one given, that of the only study.

        Raises:
            InvalidInputError: There is no such study, or which one is not clear.
            StorageError: There is none at all.
        """
        names = self.names()
        if study is None and len(names) == 1:
            return names[0]
        if study not in names:
            if not names:
                raise StorageError(f"{self.shown}: there is no study in it; `pbgi tune` or `pbgi ask` makes one")
            wanted = "one of several" if study is None else repr(study)
            raise InvalidInputError(
                f"{self.shown}: a study must be named that is there; got {wanted}; there are {names}"
            )
        return study

    def exclusively(self, study: str, work: Callable[[], T]) -> T:
        """Do something while no other process does: look at the trials, and add or finish some.

        The lock goes with the process that holds it, also when that is killed. On a server the work is done as a whole
        or not at all, and done again if the connection breaks; nobody can say then whether it had been kept, so the
        work must find out. Whatever reads all trials does so before anything is written, since it remembers them.
        """
        if self._lock_file is not None:
            with self._file_lock(self._lock_file):
                return work()
        for _ in range(ROUNDS - 1):
            try:
                return self._in_a_turn(study, work)
            except StorageBusyError:
                continue
        return self._in_a_turn(study, work)

    def _in_a_turn(self, study: str, work: Callable[[], T]) -> T:
        begun = self._begun_turn(study)
        self._in_turn = True
        try:
            with self._database_errors(), begun:
                result = work()
                with self._watched():
                    begun.close()  # until here nothing is kept
                return result
        finally:
            self._in_turn = False

    def _begun_turn(self, study: str) -> contextlib.ExitStack:
        """Wait until it is our turn, and begin it; it ends with what is returned."""
        patience = Patience(TURN_PATIENCE, TELL_OF_TURN_AFTER, self._haste)
        stack = contextlib.ExitStack()
        while True:
            try:
                self.patiently(lambda: stack.enter_context(turn(self.backend, study)))
            except NotNowError:
                patience.wait(StorageBusyError(f"{self.shown}: another process is at work on {study!r}"))
            else:
                return stack

    @contextlib.contextmanager
    def _file_lock(self, path: Path) -> Iterator[None]:
        with self.errors():
            file = open_lock(path)
        try:
            self._flock(file)
            yield
        finally:
            os.close(file)

    def _flock(self, file: int) -> None:
        patience = Patience(TURN_PATIENCE, TELL_OF_TURN_AFTER, self._haste)
        while True:
            try:
                with self.errors():
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except StorageBusyError:
                patience.wait(StorageBusyError(f"{self.shown}: another process is at work on it"))


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite URL; None for other storages.

    Raises:
        StorageError: It is no URL, or names a storage that is gone with the process.
    """
    try:
        parsed: Any = sqlalchemy.engine.make_url(url)
    except (sqlalchemy.exc.SQLAlchemyError, ValueError):
        rule = "a storage must be a URL such as sqlite:///study.db or postgresql://user:password@host/name"
        raise StorageError(f"{rule}; got {masked(url, url)!r}") from None
    if parsed.get_backend_name() != "sqlite":
        return None
    if parsed.database in (None, "", ":memory:") or parsed.database.startswith("file:"):
        raise StorageError(f"an SQLite storage must be a plain file, to be found again; got {url!r}")
    return Path(parsed.database)


def make_database(path: Path) -> None:
    """Make an SQLite file with Optuna's tables, unless there is one: entirely or not at all.

    Tables and their indices are made by many statements. A process killed between two of them would leave a database
    that opens but lets two studies have one name.
    """
    if path.exists() and path.stat().st_size:
        return
    path = path.resolve()
    draft = path.with_name(path.name + ".draft")
    for left in (draft, draft.with_name(draft.name + "-journal")):
        left.unlink(missing_ok=True)
    touch_private(draft)
    RDBStorage(url_of_file(draft)).engine.dispose()
    draft.replace(path)


def require_sqlite(path: Path) -> None:
    """Raise unless the file is empty or an SQLite database: nothing of another kind is ever written to."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_SQLITE_MAGIC))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from None
    if head not in (b"", _SQLITE_MAGIC):
        raise StorageError(f"{path}: must be an SQLite database; it holds something else")


def url_of_file(path: Path) -> str:
    """The URL of an SQLite file, whatever its name."""
    require_text(path)
    return sqlalchemy.engine.URL.create("sqlite", database=str(path.absolute())).render_as_string(hide_password=False)
