"""A database that is busy or away: which of its faults pass, how long they are waited for, and whose turn it is.

Faults  are told by the types and codes of errors, not by their words: words hold names of files and databases, and a
        folder may be called "full". The one exception is a server that refuses a connection: no driver has a code for
        that.
Waits   do not keep somebody who wants to leave. A signal, noticed between two steps, cannot end a wait inside a step.
        So waits are made of short pauses, and ask at each of them whether there is haste.
Turn    what is done under it is one transaction of the connection that holds the lock. A connection that breaks
        takes its lock and what it has done with it, so nothing is ever written by somebody whose turn is over.
Lines   the connections that are open. A server that is silent on one of them is not waited for by somebody in
        haste: the line is cut.
"""

import contextlib
import hashlib
import os
import re
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import sqlalchemy
from optuna.storages import RDBStorage

from pbgi.cli.errors import StorageError

# Faults that pass ----------------------------------------------------------------------------------------------------


_SQLITE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_PRIMARY = 0xFF  # what is above says more about the same fault
# SQLSTATE: the connection broke; the transaction was in another's way.
_STATE_CLASSES = {"08", "40"}
_STATES = {
    "23505",  # two processes make the tables at the same time: an entry is there,
    "42710",  # a type is there,
    "42P07",  # or a table is there
    "25P03",  # ended after having been idle in a transaction
    "25P04",  # ended after too long a transaction
    "53300",  # too many connections
    "55P03",  # a lock was not to be had in time
    "57014",  # ended after the time a statement may take
    "57P01",  # the server is shut down,
    "57P02",  # has crashed,
    "57P03",  # or is starting
    "57P05",  # ended after having been idle
}
# MySQL: too many connections, shutdown, lock wait timeout, deadlock; the server cannot be reached, or is gone.
_MYSQL = {1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2055}
# As the server says it, behind what the driver says: the names of users and databases come later in the sentence.
_REFUSED = re.compile(
    r"FATAL:\s+(?:password authentication failed|no pg_hba\.conf entry|role \"|database \"|permission denied)"
    r"|failed: fe_sendauth: no password supplied"
)
_NEEDS_ANOTHER_CONNECTION = (
    sqlalchemy.exc.PendingRollbackError,
    sqlalchemy.exc.DisconnectionError,
    sqlalchemy.exc.ResourceClosedError,
    sqlalchemy.exc.TimeoutError,
)


def passes(error: BaseException) -> bool:
    """Whether the same may succeed a little later, with another connection."""
    if isinstance(error, BlockingIOError):  # a lock of a file is held by another process
        return True
    for cause in _causes(error):
        if isinstance(cause, sqlalchemy.exc.DBAPIError):
            return _passes(cause)
    return any(isinstance(cause, _NEEDS_ANOTHER_CONNECTION) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it came from: a connection that breaks shows as a transaction that cannot go on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _passes(error: sqlalchemy.exc.DBAPIError) -> bool:
    original = error.orig
    if isinstance(original, sqlite3.Error):
        return getattr(original, "sqlite_errorcode", 0) & _PRIMARY in _SQLITE
    number = original.args[0] if original is not None and original.args else None
    if isinstance(number, int):
        return number in _MYSQL
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    if isinstance(state, str):
        return state in _STATES or state[:2] in _STATE_CLASSES
    lost = isinstance(error, sqlalchemy.exc.OperationalError | sqlalchemy.exc.InterfaceError)
    return (lost or error.connection_invalidated) and not _REFUSED.search(str(original))


# Patience ------------------------------------------------------------------------------------------------------------


PAUSE = 0.05  # seconds
HASTE = 3.0  # seconds that a step may take after a signal


class Haste:
    """Whether to hurry; `ask` may be called from a signal handler.

    Attributes:
        since: When it was asked for first, on the monotonic clock; None if it was not.
        seconds: How long a step may still take.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.seconds = HASTE

    def ask(self, seconds: float = HASTE) -> None:
        """From now on no step takes longer than this, nor longer than was asked before."""
        self.seconds = min(self.seconds, seconds)
        self.since = time.monotonic() if self.since is None else self.since

    def deadline(self, begun: float) -> float:
        """When a step must end that began then."""
        return float("inf") if self.since is None else max(begun, self.since) + self.seconds


class Patience:
    """One wait.

    Args:
        seconds: How long it may take.
        tell_after: Seconds after which the user is told what is waited for.
        haste: Ends it sooner.
    """

    def __init__(self, seconds: float, tell_after: float, haste: Haste) -> None:
        self._seconds, self._tell_after, self._haste = seconds, tell_after, haste
        self._begun, self._told = time.monotonic(), False

    def wait(self, why: StorageError) -> None:
        """Pause a little.

        Raises:
            StorageError: It was long enough.
        """
        now = time.monotonic()
        if now > min(self._begun + self._seconds, self._haste.deadline(self._begun)):
            raise StorageError(str(why))
        if now - self._begun > self._tell_after and not self._told:
            with contextlib.suppress(OSError):  # whoever read it is gone; what runs goes on
                print(f"pbgi: waiting for the storage: {why}", file=sys.stderr, flush=True)
            self._told = True
        time.sleep(PAUSE)


# A server ------------------------------------------------------------------------------------------------------------


# Seconds until a connection is made; until one is given up on which the server does not answer.
CONNECT, SILENT = 5, 30
STATEMENT = 60  # seconds a statement may take
TURN = 2  # seconds that the server waits for the lock before it is asked again: so signals are noticed
LONGEST_TURN = 600  # seconds after which somebody who has stopped in the middle of a turn loses it
_LIBPQ = ("psycopg", "psycopg2", "psycopg2cffi")
_NOT_IN_TIME = "55P03"
# A client whose machine is gone loses its lock within `SILENT` seconds or so.
_SESSION = {
    "statement_timeout": 1000 * STATEMENT,
    "tcp_keepalives_idle": SILENT // 3,
    "tcp_keepalives_interval": SILENT // 6,
    "tcp_keepalives_count": 4,
}


def engine_options(url: str) -> dict[str, Any]:
    """How Optuna's engine is made; what the URL says itself stays."""
    parsed = sqlalchemy.engine.make_url(url)
    options: dict[str, Any] = {"pool_pre_ping": True}
    if parsed.get_driver_name() in _LIBPQ:
        limits = {
            "connect_timeout": CONNECT,
            "keepalives_idle": SILENT // 3,
            "keepalives_interval": SILENT // 6,
            "keepalives_count": 4,
            "tcp_user_timeout": 1000 * SILENT,
        }
        options["connect_args"] = {name: value for name, value in limits.items() if name not in parsed.query}
    return options


# Turns ---------------------------------------------------------------------------------------------------------------


class NotNowError(Exception):
    """The lock is held by somebody else."""


@contextlib.contextmanager
def turn(backend: RDBStorage, study: str) -> Iterator[None]:
    """Take the lock of a study; inside, all that the backend does is one transaction.

    It is kept at the end, and undone if an exception comes out.

    Raises:
        NotNowError: Somebody else has held the lock for `TURN` seconds.
    """
    dialect = backend.engine.dialect.name
    key = int.from_bytes(hashlib.sha256(f"pbgi:{study}".encode()).digest()[:7])
    # What others have written while the lock was waited for is to be seen, whatever the server's default is.
    with backend.engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
        try:
            with connection.begin():
                _take(connection, dialect, key)
                with _sessions_on(backend, connection):
                    yield
        finally:
            _give(connection, dialect, key)


def _take(connection: sqlalchemy.Connection, dialect: str, key: int) -> None:
    if dialect == "postgresql":
        _take_of_postgresql(connection, key)
    if dialect in ("mysql", "mariadb"):
        taken = connection.execute(sqlalchemy.text("SELECT GET_LOCK(CAST(:key AS CHAR), :s)"), {"key": key, "s": TURN})
        if taken.scalar() != 1:
            raise NotNowError


def _take_of_postgresql(connection: sqlalchemy.Connection, key: int) -> None:
    connection.execute(sqlalchemy.text(f"SET LOCAL lock_timeout = '{TURN}s'"))
    try:
        connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
    except sqlalchemy.exc.OperationalError as error:
        if _state(error) == _NOT_IN_TIME:
            raise NotNowError from None
        raise
    # Choosing takes a while, during which the server hears nothing of us.
    connection.execute(sqlalchemy.text(f"SET LOCAL idle_in_transaction_session_timeout = '{LONGEST_TURN}s'"))
    connection.execute(sqlalchemy.text("SET LOCAL lock_timeout = DEFAULT"))


def _state(error: sqlalchemy.exc.DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)


def _give(connection: sqlalchemy.Connection, dialect: str, key: int) -> None:
    """Give the lock back, where it does not go with the transaction."""
    if dialect in ("mysql", "mariadb"):
        with contextlib.suppress(sqlalchemy.exc.SQLAlchemyError):
            connection.execute(sqlalchemy.text("SELECT RELEASE_LOCK(CAST(:key AS CHAR))"), {"key": key})


@contextlib.contextmanager
def _sessions_on(backend: RDBStorage, connection: sqlalchemy.Connection) -> Iterator[None]:
    """Have the backend work inside the transaction of this connection.

    Its own transactions become savepoints. Once the connection is broken everything inside is refused, also what the
    backend tries again by itself: SQLAlchemy takes no other connection before the transaction has been given up.
    """
    backend.remove_session()
    backend.scoped_session.configure(bind=connection, join_transaction_mode="create_savepoint")
    try:
        yield
    finally:
        backend.remove_session()
        backend.scoped_session.configure(bind=backend.engine, join_transaction_mode="conditional_savepoint")


# Lines ---------------------------------------------------------------------------------------------------------------


class Lines:
    """The open connections to a server, to be cut when a step takes too long while there is haste.

    Attributes:
        events: What an engine must call, its `pool_events`.
        busy_since: When the step under way began, on the monotonic clock; None between steps.
    """

    def __init__(self, url: str, haste: Haste) -> None:
        self._open: set[Any] = set()
        self._is_postgresql = sqlalchemy.engine.make_url(url).get_backend_name() == "postgresql"
        self._haste, self._asked = haste, SimpleQueue[None]()
        self.events = [(self._opened, "connect"), (self._closed, "close")]
        self.busy_since: float | None = None
        # Started now: a signal handler must not start a thread, since it may have interrupted somebody who does.
        threading.Thread(target=self._watch, daemon=True).start()

    def hurry(self) -> None:
        """There is haste; may be called from a signal handler."""
        self._asked.put(None)

    def close(self) -> None:
        """Close all: whoever was to do so has failed."""
        while self._open:
            self._open.pop().close()

    def _opened(self, connection: Any, _record: Any) -> None:
        self._open.add(connection)
        if self._is_postgresql:
            with connection.cursor() as cursor:
                for name, value in _SESSION.items():
                    cursor.execute(f"SET {name} = {value}")
            connection.commit()

    def _closed(self, connection: Any, _record: Any) -> None:
        self._open.discard(connection)

    def _watch(self) -> None:
        self._asked.get()
        while True:
            begun = self.busy_since
            if begun is not None and time.monotonic() > self._haste.deadline(begun):
                for connection in tuple(self._open):
                    _cut(connection)
            time.sleep(0.1)


def _cut(connection: Any) -> None:
    """Whoever reads from it finds its end; whoever writes to it gets an error."""
    # Not every driver has file numbers, and it may have been closed meanwhile.
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
