"""One program at a time on the file of a run: two would evaluate the same points and write over each other's."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pbgi.errors import InvalidInputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the file for this process, by a lock on a file beside it; the lock ends with the process, however it ends.

    A record lock, since children do not inherit it: workers that outlive a killed run must not keep it.

    Raises:
        InvalidInputError: Another program holds it, or its folder does not exist.
    """
    if not path.parent.is_dir():
        raise InvalidInputError(f"resume must be a file in a folder that exists; got {str(path)!r}")
    if fcntl is None:
        yield
        return
    lock = path.with_name(path.name + ".lock")
    descriptor = _locked(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _opened(lock: Path) -> int:
    """A descriptor of the file, which is no symbolic link: others may be able to write to its folder."""
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise InvalidInputError(f"resume must be a file beside which no link is the lock; got {str(lock)!r}") from None


def _locked(lock: Path, path: Path) -> int:
    """A descriptor of the file that has the name now, locked: one that was just removed would lock out nobody."""
    while True:
        descriptor = _opened(lock)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists() and lock.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise InvalidInputError(
                    f"resume must be a file that no other program uses; got {str(path)!r}, on which one is running"
                ) from None
            raise
        os.close(descriptor)
