"""Logs of commands, which are kept within bounds: their beginning and their end.

A command writes straight into its log, so that nothing is lost when this process dies. What is too much in the middle
is given back to the disk while the command runs, as a hole in the file that moves nothing, and cut out when it has
ended. Where a file system knows no holes, the log is cut at the end only.
"""

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Any

from pbgi.cli.private_files import open_private

KEPT = 8 * 2**20  # bytes, at either end
BLOCK = 2**20  # what lies between is given back in pieces of this size or more
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)


def give_back(path: Path) -> None:
    """Free what lies between the ends of a log that is being written."""
    with contextlib.suppress(OSError, AttributeError), path.open("r+b") as file:
        about = os.fstat(file.fileno())
        if about.st_blocks * 512 > 2 * KEPT + BLOCK and about.st_size > 2 * KEPT + BLOCK:
            _punch(file.fileno(), KEPT, about.st_size - 2 * KEPT)


def _punch(file: int, offset: int, length: int) -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    call = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
    call(file, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_longlong(offset), ctypes.c_longlong(length))


def condense(path: Path) -> None:
    """Cut a log that nobody writes to any more, and say so in it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        too_much = os.fstat(file.fileno()).st_size - 2 * KEPT
        if too_much <= 0:
            return
        draft = path.with_name(path.name + ".draft")
        with open_private(draft) as kept:
            kept.write(file.read(KEPT))
            kept.write(f"\n[pbgi: {too_much} bytes left out; a log keeps its first and last {KEPT} bytes]\n".encode())
            file.seek(-KEPT, os.SEEK_END)
            kept.write(file.read())
        draft.replace(path)
