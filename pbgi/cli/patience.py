"""How long a storage is waited for, and that somebody who wants to leave is not kept.

A signal, noticed between two steps, cannot end a wait inside a step. So waits are made of short pauses, and ask at each
of them whether there is haste.
"""

import sys
import time

from pbgi.cli.errors import StorageError

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
