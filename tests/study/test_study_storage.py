"""A server that goes away is asked again for a while; nothing else is."""

import sqlite3

import pytest
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import OperationalError, PendingRollbackError

from pbgi.study.storage import patiently


class Storage:
    """Fails so many times, and then works."""

    def __init__(self, n_failures, original):
        self.n_calls, self._n_failures, self._original = 0, n_failures, original

    def __call__(self):
        self.n_calls += 1
        if self.n_calls <= self._n_failures:
            raise StorageInternalError from OperationalError("SELECT 1", {}, self._original)
        return "done"


def test_an_operation_is_repeated_until_the_server_is_back(monkeypatch):
    monkeypatch.setattr("pbgi.study.storage.PAUSE", 0.0)
    storage = Storage(3, ConnectionError("the server is away"))
    assert patiently(storage) == "done"
    assert storage.n_calls == 4


def test_a_transaction_that_was_cut_off_is_repeated(monkeypatch):
    monkeypatch.setattr("pbgi.study.storage.PAUSE", 0.0)
    storage = Storage(1, ConnectionError("the server is away"))

    def read():
        try:
            return storage()
        except StorageInternalError as error:
            try:
                raise PendingRollbackError from error.__cause__
            except PendingRollbackError as pending:
                raise StorageInternalError from pending

    assert patiently(read) == "done"


def test_patience_ends():
    storage = Storage(3, ConnectionError("the server is away"))
    with pytest.raises(StorageInternalError):
        patiently(storage, patience=0.0)
    assert storage.n_calls == 1


@pytest.mark.parametrize("original", [sqlite3.OperationalError("disk is full"), sqlite3.OperationalError("locked")])
def test_a_file_is_not_waited_for(original):
    storage = Storage(1, original)
    with pytest.raises(StorageInternalError):
        patiently(storage)
    assert storage.n_calls == 1


def test_other_errors_are_not_repeated():
    with pytest.raises(ZeroDivisionError):
        patiently(lambda: 1 / 0)
