"""The course of a run that pays step by step: the best loss at shares of its budget."""

import math

import numpy as np

SHARES = np.arange(1, 13) / 12  # of the full budget at which runs are compared


class Course:
    """The best loss so far, by what has been spent."""

    def __init__(self, budget: float) -> None:
        self.budget, self.spent, self.best, self.n_trials = budget, 0.0, math.inf, 0
        self.at = np.full(len(SHARES), np.inf)

    def paid(self, cost: float) -> None:
        """So much more has been spent."""
        reached = self._reached()
        self.spent += cost
        self.at[reached & ~self._reached()] = self.best

    def ended(self, loss: float) -> None:
        """A trial has come to its end."""
        self.best = min(self.best, loss)

    def losses(self) -> list[float]:
        """The best loss at each share of the budget."""
        reached = self._reached()
        return [float(loss) for loss in np.where(reached, self.best, self.at)]

    def _reached(self) -> np.ndarray:
        """Which shares of the budget have not been overspent yet."""
        return np.asarray(self.spent <= SHARES * self.budget * (1.0 + 1e-9))
