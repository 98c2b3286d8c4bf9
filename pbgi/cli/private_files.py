"""Files that only their owner may read, whatever the umask: parameters, logs and results are nobody else's business.

Their names can be guessed, and the folder may be one that others write to. So a name that is a symbolic link is
refused: it would have us write, or lock, a file of somebody else's choice.
"""

import errno
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_folder(path: Path) -> Path:
    """The folder, made with its parents if need be; ours are closed to others."""
    if not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    return path


def open_private(path: Path, flags: int = os.O_TRUNC | os.O_NOFOLLOW) -> BinaryIO:
    """A file for writing, made with mode 0600."""
    return os.fdopen(_made(path, os.O_WRONLY | flags), "wb")


def open_lock(path: Path) -> int:
    """The descriptor of a file to be locked, made with mode 0600 if need be."""
    return _made(path, os.O_RDWR | os.O_NOFOLLOW)


def _made(path: Path, flags: int) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_CLOEXEC | flags, FILE_MODE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "must not be a symbolic link", str(path)) from None


def touch_private(path: Path) -> None:
    """Make an empty file with mode 0600 unless there is one."""
    open_private(path, os.O_NOFOLLOW).close()


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is there entirely or not at all, also after a power cut."""
    draft = path.with_name(path.name + ".draft")
    with open_private(draft) as file:
        file.write(json.dumps(value).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def tail(path: Path, most_bytes: int) -> str:
    """The end of a file as text, whatever its bytes; empty if there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most_bytes, 0))
            return file.read(most_bytes).decode("utf-8", errors="replace")
    except OSError:
        return ""
