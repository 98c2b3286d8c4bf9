"""What happened in a game: its payments, and why it ended."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Opening:
    """One payment in a game.

    Attributes:
        box: Its number.
        reward: Its prize; None while stages of the box are left.
        cost: What was paid.
        best: The best prize so far; minus infinity before the first.
        stage: Which payment for this box it was, from 1 on.
        state: What it has shown: the mean of a `StagedBox`, the state of a `MarkovBox`; None of a `Box`.
    """

    box: int
    reward: float | None
    cost: float
    best: float
    stage: int = 1
    state: Any = None


@dataclass(frozen=True)
class Game:
    """One game played to its end."""

    openings: tuple[Opening, ...]
    stop_reason: str

    @property
    def best(self) -> float:
        """The prize kept."""
        return self.openings[-1].best

    @property
    def spent(self) -> float:
        """What all openings cost."""
        return math.fsum(opening.cost for opening in self.openings)
