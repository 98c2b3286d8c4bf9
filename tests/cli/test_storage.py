"""Where a storage is: its URL, and one lock by whatever name."""

import fcntl

import pytest

from pbgi.cli.storage import Storage, sqlite_path, url_of_file


def test_a_study_has_one_lock_by_whatever_name(tmp_path):
    """Two names with a lock each would let two processes choose at a time."""
    Storage(url_of_file(tmp_path / "study.db"), create=True).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "study.db")
    one, other = (Storage(url_of_file(tmp_path / name), create=False) for name in ("study.db", "link.db"))

    def is_held():
        with (tmp_path / "study.db.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True

    assert one.exclusively("job", is_held)
    assert other.exclusively("job", is_held)
    one.close()
    other.close()
    assert not (tmp_path / "link.db.lock").exists()


def test_urls(tmp_path):
    from pbgi.cli.errors import StorageError

    assert sqlite_path("postgresql://me@host/db") is None
    odd = tmp_path / "a b?c=%41&d#😀'.db"
    assert sqlite_path(url_of_file(odd)) == odd
    for wrong in ("sqlite://", "sqlite:///:memory:", "nothing", "sqlite:///file:x?mode=memory&uri=true"):
        with pytest.raises(StorageError):
            sqlite_path(wrong)
