"""Which faults of a storage pass by themselves, and how long that is waited for.

They are told by the types and codes of errors, not by their words: words hold names of files and databases, and a
folder may be called "full". The one exception is a server that refuses a connection: for that no driver has a code.

Somebody who wants to leave is not kept. A signal, noticed between two steps, cannot end a wait inside a step. So waits
are made of short pauses, and ask at each of them whether there is haste.
"""

import re
import sqlite3
import sys
import time
from collections.abc import Iterator

import sqlalchemy

from pbgi.cli.errors import StorageError

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
            print(f"pbgi: waiting for the storage: {why}", file=sys.stderr, flush=True)
            self._told = True
        time.sleep(PAUSE)
