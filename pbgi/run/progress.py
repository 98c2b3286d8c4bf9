"""Where a run stands, in a line."""

import math
from typing import TextIO

import numpy as np

from pbgi.optimizer import Optimizer


class Progress:
    """One line that is written over: what is spent, the best value, and how many trials are expected to fit."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._width = stream, 0

    def update(self, optimizer: Optimizer) -> None:
        """Show where the run stands now."""
        if self._stream is None:
            return
        line = describe(optimizer)
        self._width = max(self._width, len(line))
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()

    def close(self) -> None:
        """Leave the line as it is."""
        if self._stream is not None and self._width:
            self._stream.write("\n")


def describe(optimizer: Optimizer) -> str:
    """Where a run stands, in one line."""
    best = "none yet" if optimizer.best is None else f"{optimizer.best.value:.6g}"
    if optimizer.budget is None:
        return f"{len(optimizer.trials)} trials, spent {optimizer.spent:.4g}, best {best}"
    done = min(optimizer.spent / optimizer.budget, 1.0)
    bar = "#" * round(20 * done)
    paid = [t.charged for t in optimizer.trials if t.charged > 0]
    left = optimizer.remaining or 0.0
    # The latest trials say best what the next ones will cost: the search has gone where it pays.
    n_left = "?" if not paid else f"{math.floor(left / float(np.mean(paid[-10:])))}"
    return (
        f"[{bar:<20}] {optimizer.spent:.4g} of {optimizer.budget:.4g} spent, best {best}, "
        f"{len(optimizer.trials)} trials, about {n_left} left"
    )
