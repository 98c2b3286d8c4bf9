"""Which faults of a storage are waited for: by types and codes, whatever the words."""

import io
import sqlite3

import pytest
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    PendingRollbackError,
    ProgrammingError,
)

from pbgi.cli.database import HASTE, Haste, Patience, engine_options, passes
from pbgi.cli.errors import StorageBusyError, StorageError


def sqlite_error(database, *statements, **options):
    """What the library raises, with its code."""
    connection = sqlite3.connect(database, isolation_level=None, timeout=0.0, **options)
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    raise AssertionError("nothing is wrong")


def locked(path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        return sqlite_error(path, "BEGIN EXCLUSIVE")
    finally:
        holder.close()


def full(path):
    return sqlite_error(path, "PRAGMA max_page_count = 1", "CREATE TABLE t (x)", "CREATE TABLE u (x)")


def read_only(path):
    sqlite3.connect(path).close()
    return sqlite_error(f"file:{path}?mode=ro", "CREATE TABLE t (x)", uri=True)


def no_database(path):
    path.write_text("something else" * 100)
    return sqlite_error(path, "SELECT * FROM sqlite_master")


def cannot_open(path):
    path.mkdir()
    try:
        sqlite3.connect(path)
    except sqlite3.Error as error:
        return error
    raise AssertionError("a folder was opened")


def no_table(path):
    return sqlite_error(path, "SELECT * FROM locked")


@pytest.mark.parametrize(
    ("fault", "waits"),
    [(locked, True), (full, False), (read_only, False), (no_database, False), (cannot_open, False), (no_table, False)],
)
@pytest.mark.parametrize("name", ["job.db", "database is locked.db", "full malformed.db"])
def test_files(tmp_path, fault, waits, name):
    original = fault(tmp_path / name)
    assert passes(OperationalError("SELECT 'database is locked'", {}, original)) is waits
    wrapped = StorageInternalError("full, readonly, malformed, database is locked")
    wrapped.__cause__ = OperationalError("", {}, original)
    assert passes(wrapped) is waits


class Psycopg2Error(Exception):
    """As that driver names it."""

    pgcode = "57P01"


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("AdminShutdown", True),
        ("CrashShutdown", True),
        ("CannotConnectNow", True),
        ("ConnectionFailure", True),
        ("DeadlockDetected", True),
        ("SerializationFailure", True),
        ("LockNotAvailable", True),
        ("QueryCanceled", True),
        ("IdleInTransactionSessionTimeout", True),
        ("TooManyConnections", True),
        ("UniqueViolation", True),  # two processes make the tables
        ("DuplicateTable", True),
        ("DiskFull", False),
        ("UndefinedTable", False),
        ("InsufficientPrivilege", False),
        ("InvalidPassword", False),
        ("InvalidCatalogName", False),
        ("ReadOnlySqlTransaction", False),
        ("DataCorrupted", False),
    ],
)
def test_codes_of_a_server(name, waits):
    errors = pytest.importorskip("psycopg").errors
    original = getattr(errors, name)("database is full, locked, does not exist")
    kind = ProgrammingError if isinstance(original, errors.ProgrammingError) else OperationalError
    assert passes(kind("", {}, original)) is waits


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ('connection to server at "127.0.0.1", port 5432 failed: Connection refused', True),
        ("failed to resolve host 'authentication failed': Name or service not known", True),
        ('connection to server at "does not exist", port 5432 failed: timeout expired', True),
        ("the connection is closed", True),
        ('connection to server at "h" failed: FATAL:  the database system is starting up', True),
        ('connection to server at "h" failed: FATAL:  sorry, too many clients already', True),
        ('connection to server at "h" failed: FATAL:  password authentication failed for user "u"', False),
        ('connection to server at "h" failed: FATAL:  database "starting up" does not exist', False),
        ('connection to server at "h" failed: FATAL:  role "u" does not exist', False),
        ('connection to server at "h" failed: FATAL:  no pg_hba.conf entry for host "h"', False),
        ('connection to server at "h" failed: fe_sendauth: no password supplied', False),
    ],
)
def test_connections_that_are_not_made_have_no_code(text, waits):
    assert passes(OperationalError("", {}, Exception(text))) is waits


@pytest.mark.parametrize(("number", "waits"), [(2003, True), (2013, True), (1205, True), (1045, False), (1114, False)])
def test_numbers_of_mysql(number, waits):
    assert passes(OperationalError("", {}, Exception(number, "full"))) is waits


def broken_transaction():
    try:
        try:
            raise OperationalError("", {}, Exception("server closed the connection unexpectedly"))
        except OperationalError:
            raise PendingRollbackError("Can't reconnect until invalid transaction is rolled back") from None
    except PendingRollbackError as error:
        return error


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (BlockingIOError(11, "Resource temporarily unavailable"), True),
        (OSError(28, "No space left on device"), False),
        (PermissionError(13, "Permission denied"), False),
        (RuntimeError("database is locked"), False),
        (NoSuchModuleError("Can't load plugin: sqlalchemy.dialects:locked"), False),
        (PendingRollbackError("Can't reconnect until invalid transaction is rolled back"), True),
        (broken_transaction(), True),
        (InterfaceError("", {}, Exception("connection already closed")), True),
        (DBAPIError("", {}, Psycopg2Error()), True),
        (IntegrityError("", {}, Exception("something else")), False),
        (DBAPIError("", {}, Exception("lost"), connection_invalidated=True), True),
    ],
)
def test_other_errors(error, waits):
    assert passes(error) is waits


# Patience ------------------------------------------------------------------------------------------------------------


def test_patience_ends(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("pbgi.cli.database.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pbgi.cli.database.time.sleep", lambda _: None)
    patience = Patience(60.0, 1e9, Haste())
    now[0] = 160.0
    patience.wait(StorageBusyError("locked"))
    now[0] = 160.5
    with pytest.raises(StorageError, match="locked") as caught:
        patience.wait(StorageBusyError("locked"))
    assert not isinstance(caught.value, StorageBusyError)  # nobody asks again


def test_haste_ends_it_sooner(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("pbgi.cli.database.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pbgi.cli.database.time.sleep", lambda _: None)
    haste = Haste()
    before = Patience(60.0, 1e9, haste)
    now[0] = 110.0
    before.wait(StorageBusyError("locked"))
    haste.ask()
    now[0] = 110.0 + HASTE
    before.wait(StorageBusyError("locked"))  # a moment is left to a step under way
    after = Patience(60.0, 1e9, haste)
    now[0] += 0.1
    with pytest.raises(StorageError):
        before.wait(StorageBusyError("locked"))
    after.wait(StorageBusyError("locked"))  # and to each that begins later
    haste.ask(0.0)
    with pytest.raises(StorageError):
        after.wait(StorageBusyError("locked"))


def test_limits_of_the_url_stay():
    options = engine_options("postgresql+psycopg://me@host/db?connect_timeout=90")
    assert "connect_timeout" not in options["connect_args"]
    assert options["connect_args"]["tcp_user_timeout"] == 30_000
    assert options["pool_pre_ping"] is True
    assert engine_options("mysql+pymysql://me@host/db") == {"pool_pre_ping": True}


def test_nobody_to_be_told_is_no_reason_to_stop_waiting(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(text)

    monkeypatch.setattr("sys.stderr", Gone())
    monkeypatch.setattr("pbgi.cli.database.time.sleep", lambda _: None)
    Patience(60.0, -1.0, Haste()).wait(StorageError("busy"))
