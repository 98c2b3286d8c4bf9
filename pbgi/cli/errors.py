"""How a command ends: the exit codes that scripts may rely on, and the errors that lead to them.

PbgiError
    ├── InvalidInputError ── JobError     a file or an argument breaks a rule; the message names file, line and key
    └── StorageError (OSError)            the storage cannot be opened, read or written
        └── DamagedError                  it holds what no study does
"""

from enum import IntEnum
from pathlib import Path

from pbgi.errors import InvalidInputError, PbgiError

# Characters of a message: a program may report, and a file hold, a megabyte of nonsense.
LONGEST_MESSAGE = 1000


class ExitCode(IntEnum):
    """What the shell sees; documented in docs/command-line.md."""

    DONE = 0
    NOTHING_FOUND = 1
    BAD_INPUT = 2
    STORAGE = 3
    NOTHING_LEFT = 4
    INTERNAL = 70
    INTERRUPTED = 130
    TERMINATED = 143


class JobError(InvalidInputError):
    """A file or an argument breaks a rule."""

    @classmethod
    def at(cls, path: Path, line: int | None, message: str) -> "JobError":
        """The error with its place in front, as compilers write it."""
        return cls(f"{path}:{line}: {message}" if line else f"{path}: {message}")


class StorageError(PbgiError, OSError):
    """The storage cannot be opened, read or written; passwords are masked in the message."""


class DamagedError(StorageError):
    """The storage holds what no study does; asking again does not mend it."""


def shortened(message: str) -> str:
    """The message, cut where it quotes too much."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}... (cut)"
