"""Signals, noticed between two steps instead of in the middle of one."""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While inside, a signal is remembered, and `woken` is called; from the second one on, `hurried`.

    Attributes:
        signal: The first signal that came, or None.
    """

    def __init__(self, woken: Callable[[], None], hurried: Callable[[], None]) -> None:
        self.signal: signal.Signals | None = None
        self._woken, self._hurried = woken, hurried
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:  # nohup asks not to be bothered
                self._before[number] = before
                signal.signal(number, self._notice)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _notice(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
            self._woken()
        else:
            self._hurried()

    @property
    def reason(self) -> str:
        """The signal in words."""
        words = {signal.SIGINT: "interrupted by Ctrl-C", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
        return "" if self.signal is None else words[self.signal]
