"""A database server: how long it may be silent, and whose turn it is.

Turn    what is done under it is one transaction of the connection that holds the lock. A connection that breaks
        takes its lock and what it has done with it, so nothing is ever written by somebody whose turn is over.
Lines   the connections that are open. A server that is silent on one of them is not waited for by somebody in
        haste: the line is cut.
"""

import contextlib
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import sqlalchemy
from optuna.storages import RDBStorage

from pbgi.cli.faults import Haste

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
