"""The paper's baselines that look ahead or weigh information, as policies: frozen values with `propose`.

| policy | in the paper |
|---|---|
| `KnowledgeGradient` | KG |
| `MaxValueEntropy` | MES |
| `MultiFidelityMaxValueEntropy` | MFMES |
| `MultiStepEI` | MSEI |
| `BudgetedMultiStepEI` | BMSEI |

They use the engine's Gaussian process (`pbgi.botorch.bridge`) and BoTorch's search (`pbgi.botorch.searched_policy`),
and need a space of numbers.

Importing this module does not import torch: a policy is a value, to be made, compared and written as JSON by anyone.
What it needs of BoTorch it imports when it is asked for a point. `BOTORCH_POLICIES` lists them for reading from JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.best_point import cheap_points
from pbgi.botorch.searched_policy import SearchedPolicy
from pbgi.cost import fits
from pbgi.errors import InvalidInputError
from pbgi.history import TrialState
from pbgi.notes import PATH, WINDOW, Note
from pbgi.snapshot import Snapshot

if TYPE_CHECKING:
    from botorch.acquisition.acquisition import AcquisitionFunction

    from pbgi.botorch.bridge import Surrogate

# What a trial's record holds of a lookahead: the points of the path one after the other, and what they may cost.


@dataclass(frozen=True)
class KnowledgeGradient(SearchedPolicy):
    """Knowledge gradient, blind to cost: how much the best posterior mean is expected to rise.

    Args:
        n_fantasies: Imagined values per point, at least two; BoTorch's default.
        n_raw_samples_per_dimension: See `SearchedPolicy`, as for the others.
        n_restarts_per_dimension: Climbs.
        n_iterations: Of each climb, at most.
    """

    n_fantasies: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_fantasies < 2:
            raise InvalidInputError(f"n_fantasies must be at least 2; got {self.n_fantasies}")

    def _acquisition(
        self,
        surrogate: "Surrogate",
        snapshot: Snapshot,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> "AcquisitionFunction":
        from pbgi.botorch.knowledge_gradient import OneShotKnowledgeGradient

        return OneShotKnowledgeGradient(surrogate, self.n_fantasies, int(rng.integers(2**31)))


@dataclass(frozen=True)
class MaxValueEntropy(SearchedPolicy):
    """Max-value entropy search, blind to cost: how much a value is expected to tell about the largest one.

    Args:
        n_candidates_per_dimension: Random points that the largest value is sampled from, besides those tried.
        n_max_values: Samples of the largest value; BoTorch's default.
        n_values: Samples of the value at a point; BoTorch's default.
        n_raw_samples_per_dimension: See `SearchedPolicy`, as for the others.
        n_restarts_per_dimension: Climbs.
        n_iterations: Of each climb, at most.
    """

    n_candidates_per_dimension: int = 1000
    n_max_values: int = 10
    n_values: int = 128

    def _acquisition(
        self, surrogate: "Surrogate", snapshot: Snapshot, rng: np.random.Generator
    ) -> "AcquisitionFunction":
        from pbgi.botorch.entropy import max_value_entropy

        n_candidates = self.n_candidates_per_dimension * snapshot.space.dimension
        return max_value_entropy(surrogate, n_candidates, self.n_max_values, self.n_values, rng)


@dataclass(frozen=True)
class MultiFidelityMaxValueEntropy(MaxValueEntropy):
    """Max-value entropy search per cost, known or learned: what is left of its multi-fidelity form with one fidelity.

    The arguments are those of `MaxValueEntropy`.
    """

    def _acquisition(
        self, surrogate: "Surrogate", snapshot: Snapshot, rng: np.random.Generator
    ) -> "AcquisitionFunction":
        from pbgi.botorch.entropy import PerCost

        return PerCost(super()._acquisition(surrogate, snapshot, rng), snapshot.price)


@dataclass(frozen=True)
class MultiStepEI(SearchedPolicy):
    """Lookahead expected improvement, blind to cost: what this point and the next few promise together.

    Every value is imagined to be what is expected of it. A search starts near the path that the last one chose, one
    step further on; that path is in the record of its trial.

    Args:
        n_steps: Points looked at together, the next one included; 1 is expected improvement.
        n_raw_samples_per_dimension: See `SearchedPolicy`, as for the others.
        n_restarts_per_dimension: Climbs.
        n_iterations: Of each climb, at most.
    """

    n_steps: int = 4

    def _acquisition(
        self,
        surrogate: "Surrogate",
        snapshot: Snapshot,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> "AcquisitionFunction":
        from pbgi.botorch.lookahead import PathImprovement

        return PathImprovement(surrogate)

    def _n_points(self) -> int:
        return self.n_steps

    def _is_worth(self, values: Floats) -> Bools:
        return np.isfinite(values) & (values > 0.0)

    def _starts(self, snapshot: Snapshot, rng: np.random.Generator) -> Callable[[int], Floats] | None:
        last = self._last_path(snapshot)
        return None if last is None else lambda n: paths_near(last, n, rng)

    def _last_path(self, snapshot: Snapshot) -> Floats | None:
        for trial in reversed(snapshot.trials):
            path = PATH.of(trial)
            if path is not None and len(path) == self.n_steps * snapshot.space.dimension:
                return np.array(path, dtype=np.float64).reshape(self.n_steps, -1)
        return None

    def _note(self, X: Floats, snapshot: Snapshot) -> dict[str, Note]:  # noqa: ARG002
        return {PATH.name: X.ravel().tolist()}


@dataclass(frozen=True)
class BudgetedMultiStepEI(MultiStepEI):
    """Lookahead expected improvement of paths that fit a window of the budget.

    The window is what the last `n_steps` trials cost together, and never more than what is left of the budget.

    Args:
        n_steps: Points looked at together, the next one included.
        n_raw_samples_per_dimension: See `SearchedPolicy`, as for the others.
        n_restarts_per_dimension: Climbs.
        n_iterations: Of each climb, at most.
    """

    def _acquisition(
        self,
        surrogate: "Surrogate",
        snapshot: Snapshot,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> "AcquisitionFunction":
        from pbgi.botorch.lookahead import BudgetedPathImprovement

        return BudgetedPathImprovement(surrogate, snapshot.price, self.window(snapshot))

    def window(self, snapshot: Snapshot) -> float:
        """What the next `n_steps` trials may cost together."""
        finished = [trial for trial in snapshot.trials if trial.state is not TrialState.RUNNING]
        known = [trial.predicted_cost if trial.cost is None else trial.cost for trial in finished]
        costs = [cost for cost in known if cost is not None][-self.n_steps :]
        if not costs:
            costs = np.exp(snapshot.cost.log_moment(snapshot.X[-self.n_steps :], 1.0)).tolist()
        if snapshot.budget is None:
            return float(sum(costs))
        left = snapshot.budget - snapshot.spent - sum(trial.reserved for trial in snapshot.trials)
        return float(min(left, sum(costs)))

    def _starts(self, snapshot: Snapshot, rng: np.random.Generator) -> Callable[[int], Floats] | None:
        """As before, but where most points do not fit the window, those paths begin at cheap ones."""
        near_last, window = super()._starts(snapshot, rng), self.window(snapshot)

        def starts(n: int) -> Floats:
            anywhere = rng.random((n, self.n_steps, snapshot.space.dimension))
            paths = anywhere if near_last is None else near_last(n)
            dear = ~fits(snapshot.cost, snapshot.space.snap(paths[:, 0]), window)
            if 2 * dear.sum() > n:
                cheap = cheap_points(snapshot.space, snapshot.cost, paths[:, 0], None, rng)
                paths[dear, 0] = rng.choice(cheap, dear.sum())
            return paths

        return starts

    def _note(self, X: Floats, snapshot: Snapshot) -> dict[str, Note]:
        return {**super()._note(X, snapshot), WINDOW.name: self.window(snapshot)}


def paths_near(last: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Paths (n, q, d), from the last one (q, d) without its first point, which has been tried, to random ones."""
    paths = rng.random((n, *last.shape))
    share = np.linspace(0.0, 1.0, n)[:, None, None]
    paths[:, :-1] = (1.0 - share) * last[1:] + share * paths[:, :-1]
    return paths


BOTORCH_POLICIES: tuple[type, ...] = (
    KnowledgeGradient,
    MaxValueEntropy,
    MultiFidelityMaxValueEntropy,
    MultiStepEI,
    BudgetedMultiStepEI,
)
