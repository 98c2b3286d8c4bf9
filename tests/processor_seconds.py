"""How long a command takes in processor seconds, which a busy machine does not change much."""

import resource
import statistics
import subprocess
from collections.abc import Sequence


def median_seconds(command: Sequence[str], repeats: int = 5) -> float:
    """The median over repeats, the start of the interpreter included."""
    seconds = []
    for _ in range(repeats):
        before = _used()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(_used() - before)
    return statistics.median(seconds)


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
