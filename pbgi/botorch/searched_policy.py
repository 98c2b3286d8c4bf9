"""What the policies on BoTorch share: a search whose climbs are candidates, and the choice among them.

BoTorch's search knows nothing of a snapshot: that some points may not be tried, that an integer is not any number. So
the best of its climbs that is allowed becomes the proposal, and where none is, the engine's own search takes over.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pbgi.acquisition import Cheapness, LogExpectedImprovement
from pbgi.arrays import Bools, Floats
from pbgi.best_point import best_point, restricted
from pbgi.checks import require_count, set_fields
from pbgi.notes import Note
from pbgi.search.maximize import RESOLUTION
from pbgi.snapshot import Proposal, Snapshot, cost_of

if TYPE_CHECKING:
    from botorch.acquisition.acquisition import AcquisitionFunction

    from pbgi.botorch.bridge import Surrogate
    from pbgi.botorch.inner_search import Climbs


@dataclass(frozen=True)
class SearchedPolicy(ABC):
    """A policy that maximizes an acquisition function by BoTorch's search; the settings are the paper's.

    Integers are searched as if continuous, and snapped. The proposal is the best candidate that is affordable, not
    excluded and away from failures; if the search has found none, it is the best allowed point by log expected
    improvement. So it is where numbers fail BoTorch.

    Args:
        n_raw_samples_per_dimension: Points, or sets of points, that are evaluated to choose where to climb from.
        n_restarts_per_dimension: Climbs.
        n_iterations: Of each climb, at most.
    """

    n_raw_samples_per_dimension: int = field(default=200, kw_only=True)
    n_restarts_per_dimension: int = field(default=10, kw_only=True)
    n_iterations: int = field(default=200, kw_only=True)

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            set_fields(self, **{name: require_count(name, getattr(self, name))})

    @property
    def ignores_constraints(self) -> bool:
        """Whether it cannot weigh conditions on outcomes."""
        return True

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The allowed candidate of highest acquisition value, or None if no point is allowed.

        Raises:
            InvalidInputError: The space has categories, or the model is no Gaussian process of this package.
        """
        from pbgi.botorch.bridge import surrogate_of
        from pbgi.botorch.inner_search import NUMERICAL_ERRORS, isolated

        surrogate = surrogate_of(snapshot)
        with isolated(rng):
            try:
                chosen = self._choose(self._climb(surrogate, snapshot, rng), snapshot)
            except NUMERICAL_ERRORS:
                chosen = None
        if chosen is not None:
            return chosen
        log_ei = LogExpectedImprovement(snapshot.model, snapshot.price, snapshot.best_warped)
        found = best_point(snapshot, log_ei, rng)
        return None if found.x is None or not math.isfinite(found.value) else _proposal(snapshot, found.x, {})

    def _climb(self, surrogate: "Surrogate", snapshot: Snapshot, rng: np.random.Generator) -> "Climbs":
        from pbgi.botorch.inner_search import climb

        d = snapshot.space.dimension
        return climb(
            self._acquisition(surrogate, snapshot, rng),
            d,
            self._n_points(),
            self._starts(snapshot, rng),
            n_raw_samples=self.n_raw_samples_per_dimension * d,
            n_restarts=self.n_restarts_per_dimension * d,
            n_iterations=self.n_iterations,
        )

    def _choose(self, climbs: "Climbs", snapshot: Snapshot) -> Proposal | None:
        X = snapshot.space.snap(climbs.X[:, 0])
        good = np.flatnonzero(self._is_worth(climbs.values) & _may_be_tried(snapshot, X))
        if not len(good):
            return None
        best = good[climbs.values[good].argmax()]
        return _proposal(snapshot, X[best], self._note(climbs.X[best], snapshot))

    @abstractmethod
    def _acquisition(
        self, surrogate: "Surrogate", snapshot: Snapshot, rng: np.random.Generator
    ) -> "AcquisitionFunction":
        """What is maximized."""

    def _n_points(self) -> int:
        """How many points are looked at together; those that BoTorch itself adds do not count."""
        return 1

    def _starts(self, snapshot: Snapshot, rng: np.random.Generator) -> Callable[[int], Floats] | None:  # noqa: ARG002
        """Sets of points (n, q, d), for any n, to choose from where to climb; None for Sobol points."""
        return None

    def _is_worth(self, values: Floats) -> Bools:
        """Which acquisition values tell that there is something to gain."""
        return np.isfinite(values)

    def _note(self, X: Floats, snapshot: Snapshot) -> dict[str, Note]:  # noqa: ARG002
        """What to remember of the climb (q, d) that was chosen."""
        return {}


def _proposal(snapshot: Snapshot, x: Floats, record: dict[str, Note]) -> Proposal:
    return Proposal(x.copy(), cost_of(float(snapshot.cost.log_moment(x[None], 1.0)[0])), record)


def _may_be_tried(snapshot: Snapshot, X: Floats) -> Bools:
    """Which points (m, d) are affordable, not excluded and unlikely to fail."""
    allowed = restricted(snapshot, Cheapness(snapshot.cost)).allowed(X)
    if snapshot.excluded is not None and len(snapshot.excluded):
        distance = np.abs(X[:, None, :] - snapshot.excluded[None, :, :]).max(axis=2)
        allowed &= (distance >= RESOLUTION).all(axis=1)
    return allowed
