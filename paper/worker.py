"""What a process of the pool does: prepare itself, execute runs, and end with the process that started it.

Nothing that computes is imported before `begin` has said how many threads there may be: numerical libraries read that
when they are loaded.
"""

import os
import signal
import threading
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from paper.specification import Run

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}

Answer: TypeAlias = tuple[dict[str, Any] | None, str | None]
"""The record of a run, or the reason why there is none."""


def begin(lifeline: Connection) -> None:
    """Prepare this process; it ends at once when the other end of the lifeline is closed."""
    os.environ.update(ONE_THREAD)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the runner, which ends its processes itself
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)  # nothing is ever sent: this returns when the other end is closed, or its process was killed
    os._exit(1)


def answer(run: "Run") -> Answer:
    """Execute a run; an error comes back as its traceback, since not every exception survives the way."""
    try:
        from paper.execution import execute

        return execute(run), None
    except Exception:  # whatever it is, it is reported, and the next run is another one
        return None, traceback.format_exc()
