"""Policies that only the paper needs: improvement without care for digits, another decay, another search, other units.

`pbgi` has one form of each acquisition function, the stable one. The study of log-scaling compares it with the textbook
formula, which loses its digits where little improvement is expected, and with the logarithm of that formula. And it has
one search, which looks around the best points tried; the published runs climbed from Sobol points alone. Its entropy
search works in standardized units; in those of the values it is another policy, and on uniform costs that is the
published one.
"""

import math
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from pbgi.acquisition import Exponential, GittinsIndex, LogExpectedImprovement, PathValue
from pbgi.arrays import Floats
from pbgi.best_point import best_point
from pbgi.botorch.policies import BOTORCH_POLICIES, MaxValueEntropy, MultiFidelityMaxValueEntropy
from pbgi.model import Model
from pbgi.policy import RandomSearch, Thompson
from pbgi.search import Acquisition, Search, build_pool, search
from pbgi.snapshot import Proposal, Snapshot

if TYPE_CHECKING:
    from botorch.acquisition.acquisition import AcquisitionFunction

    from pbgi.botorch.bridge import Surrogate


@dataclass(frozen=True, eq=False)
class TextbookImprovement:
    """EI = (mean - best) Phi(z) + std phi(z), as it is written: a difference of nearly equal numbers where z << 0."""

    model: Model
    best_value: float

    def value(self, X: Floats) -> Floats:
        """The expected improvement."""
        mean, std = self.model.posterior(X)
        return self._parts(mean, std)[0]

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The same and its gradient, Phi(z) dmean + phi(z) dstd."""
        mean, std, dmean, dstd = self.model.posterior_with_grad(X)
        value, density, mass = self._parts(mean, std)
        return value, mass[:, None] * dmean + density[:, None] * dstd

    def _parts(self, mean: Floats, std: Floats) -> tuple[Floats, Floats, Floats]:
        with np.errstate(over="ignore", under="ignore"):
            z = (mean - self.best_value) / std
            density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
            mass = np.asarray(ndtr(z))
            return (mean - self.best_value) * mass + std * density, density, mass


@dataclass(frozen=True, eq=False)
class OffsetLogarithm:
    """log(a + offset) of an acquisition function a, which is not negative but for rounding."""

    of: Acquisition
    offset: float

    def value(self, X: Floats) -> Floats:
        """The logarithm."""
        return np.asarray(np.log(self.of.value(X) + self.offset))

    def value_and_grad(self, X: Floats) -> tuple[Floats, Floats]:
        """The logarithm and its gradient."""
        value, gradient = self.of.value_and_grad(X)
        return np.log(value + self.offset), gradient / (value + self.offset)[:, None]


def _propose_best(snapshot: Snapshot, acquisition: Acquisition, rng: np.random.Generator) -> Proposal | None:
    found = best_point(snapshot, acquisition, rng)
    return None if found.x is None else Proposal(found.x, _expected_cost(snapshot, found.x))


def _expected_cost(snapshot: Snapshot, x: Floats) -> float:
    return math.exp(float(snapshot.cost.log_moment(x[None], 1.0)[0]))


@dataclass(frozen=True)
class TextbookEI:
    """Expected improvement by the textbook formula ("Unst. EI" in the paper)."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point where the formula is highest."""
        return _propose_best(snapshot, TextbookImprovement(snapshot.model, snapshot.best_warped), rng)


@dataclass(frozen=True)
class LogTextbookEI:
    """The logarithm of the textbook formula, with an offset that keeps it finite ("Log(Unst. EI)" in the paper)."""

    offset: float = 1e-6

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point where the logarithm is highest."""
        formula = TextbookImprovement(snapshot.model, snapshot.best_warped)
        return _propose_best(snapshot, OffsetLogarithm(formula, self.offset), rng)


@dataclass(frozen=True)
class ExpLogEI:
    """exp(log EI): the stable digits, without the logarithm's landscape."""

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest EI."""
        log_ei = LogExpectedImprovement(snapshot.model, snapshot.price, snapshot.best_warped)
        return _propose_best(snapshot, Exponential(log_ei), rng)


@dataclass(frozen=True)
class DescribedPBGID:
    """PBGI-D with the decay of the text (Section 3.3).

    There lambda falls when the best value *before* a trial is no less than the index of that trial. The published
    curves, and `pbgi.PBGID`, compare with the best value after it.
    """

    initial_cost_scale: float
    decay: float

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The point of highest index at the current lambda."""
        cost_scale = self.initial_cost_scale / self.decay ** self._n_fired(snapshot)
        found = best_point(snapshot, GittinsIndex(snapshot.model, snapshot.price, cost_scale), rng)
        if found.x is None:
            return None
        return Proposal(found.x, _expected_cost(snapshot, found.x), {"index": found.value, "cost_scale": cost_scale})

    def _n_fired(self, snapshot: Snapshot) -> int:
        valued = [(trial, value) for trial in snapshot.trials if (value := snapshot.value_of(trial)) is not None]
        best_before = accumulate((value for _, value in valued), max, initial=-math.inf)
        indices = (trial.record.get("index") for trial, _ in valued)
        return sum(
            isinstance(index, float) and best >= index for index, best in zip(indices, best_before, strict=False)
        )


@dataclass(frozen=True)
class SearchedFromSobol:
    """Another policy, whose search climbs from Sobol points alone: it finds no peak that is narrow and near the data.

    Args:
        policy: The policy.
        n_points_per_dimension: Sobol points, of which the best are climbed from.
        n_climbs_per_dimension: Climbs.
    """

    policy: Any
    n_points_per_dimension: int = 64
    n_climbs_per_dimension: int = 1

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """What the policy proposes."""
        how = Search(self.n_points_per_dimension, self.n_climbs_per_dimension, near_best=False)
        proposal: Proposal | None = self.policy.propose(replace(snapshot, search=how), rng)
        return proposal


@dataclass(frozen=True)
class SearchedNearBest:
    """Another policy, whose search also begins from the best points tried and their neighbors, whatever the dimension.

    Args:
        policy: The policy.
    """

    policy: Any

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """What the policy proposes."""
        proposal: Proposal | None = self.policy.propose(replace(snapshot, search=Search(near_best=True)), rng)
        return proposal


@dataclass(frozen=True)
class MaxValueEntropyInUnits(MaxValueEntropy):
    """Max-value entropy search in the units of the values, as if they had not been standardized.

    BoTorch estimates information with samples, and the error of the estimate depends on the unit: a density is part of
    it whose weights sum to one on average only. A search for the highest estimate finds the largest errors.
    """

    def _acquisition(
        self, surrogate: "Surrogate", snapshot: Snapshot, rng: np.random.Generator
    ) -> "AcquisitionFunction":
        from pbgi.botorch.bridge import botorch_model

        model: Any = snapshot.model  # a GP, or there would be no surrogate; no trial is running in the paper's runs
        surrogate = surrogate._replace(
            model=botorch_model(model),
            training=surrogate.training._replace(center=0.0, scale=1.0),
        )
        return super()._acquisition(surrogate, snapshot, rng)


@dataclass(frozen=True)
class MultiFidelityMaxValueEntropyInUnits(MultiFidelityMaxValueEntropy, MaxValueEntropyInUnits):
    """The same per cost."""


@dataclass(frozen=True)
class PublishedThompson:
    """Thompson sampling with the published search: the same number of points and climbs in every dimension.

    Args:
        n_points: Sobol points, of which the best are climbed from.
        n_climbs: Climbs.
    """

    n_points: int = 1024
    n_climbs: int = 20

    def propose(self, snapshot: Snapshot, rng: np.random.Generator) -> Proposal | None:
        """The maximizer of a draw from the posterior."""
        path = PathValue(snapshot.model.sample_path(rng))
        pool = build_pool(snapshot.space.dimension, rng, n_sobol=self.n_points)
        found = search(path, pool, rng=rng, n_starts=self.n_climbs)
        return None if found.x is None else Proposal(found.x, _expected_cost(snapshot, found.x))


# How a search is named in records and tables: points / climbs.
PUBLISHED_SEARCH, SMALLER_SEARCH = "200 d / 10 d", "64 d / d"
NO_SEARCH, BOTORCH_SEARCH, OWN_SEARCH = "none", "BoTorch's", "pbgi's"


def search_of(policy: Any) -> str:
    """The name of the search of a policy."""
    if isinstance(policy, SearchedFromSobol):
        if isinstance(policy.policy, Thompson):
            return f"{policy.n_points_per_dimension} d, many"  # a path is climbed several times as often
        climbs = policy.n_climbs_per_dimension
        return f"{policy.n_points_per_dimension} d / {climbs} d" if climbs > 1 else SMALLER_SEARCH
    if isinstance(policy, PublishedThompson):
        return f"{policy.n_points} / {policy.n_climbs}"
    if isinstance(policy, RandomSearch):
        return NO_SEARCH
    return BOTORCH_SEARCH if isinstance(policy, BOTORCH_POLICIES) else OWN_SEARCH
