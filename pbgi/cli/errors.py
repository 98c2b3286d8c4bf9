"""How a command ends: the exit codes that scripts may rely on, and the errors that lead to them.

PbgiError
    ├── InvalidInputError ── JobError     a file or an argument breaks a rule; the message names file, line and key
    ├── StorageError (OSError)            the storage cannot be opened, read or written
    │       ├── StorageBusyError          not now, but perhaps a little later
    │       └── DamagedError              it holds what no study does
    ├── StartError (OSError)              a command cannot be started
    └── InterruptedRunError               a signal came, and the storage was away
"""

import signal
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


class StorageBusyError(StorageError):
    """The storage is locked, or its server away: to ask again may help."""


class StartError(PbgiError, OSError):
    """A command cannot be started: nothing was spent, and the next one could not be started either."""


class InterruptedRunError(PbgiError):
    """A signal came while the storage was away, so that the outcomes are kept beside the logs alone."""

    def __init__(self, message: str, number: signal.Signals) -> None:
        super().__init__(message)
        self.code = 128 + number


def shortened(message: str) -> str:
    """The message, cut where it quotes too much."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}... (cut)"
