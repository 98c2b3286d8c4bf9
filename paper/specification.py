"""What a run is: a frozen, hashable value that says all that its numbers depend on, and the labels it is plotted under.

A `Specification` is plain data (names of functions, numbers, policies as values), so that it can be sent to another
process and hashed: the hash is the identity of the run, and a run whose hash has a result is never repeated. Names of
classes and fields are part of it, so results in git keep the spelling of those here. Labels are not part of it. Neither
are the fields of `GPConfig`, which may grow: models are named here, and made in `paper.execution`.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from paper.policies import search_of
from pbgi.botorch.policies import BOTORCH_POLICIES
from pbgi.serialization import Value, to_plain

KEY_DIGITS = 16  # of a hash in hexadecimal: two of a million runs share them with a probability of 3e-8


@dataclass(frozen=True)
class FittedModel:
    """The paper's Gaussian process with hyperparameters fitted at every step.

    Attributes:
        kernel: As `GPConfig` names it.
        standardize: Whether values are standardized first.
    """

    kernel: str = "matern52"
    standardize: bool = True


@dataclass(frozen=True)
class TrueModel:
    """The prior that the objective was drawn from; only the constant mean is fitted."""

    kernel: str
    length_scale: float


@dataclass(frozen=True)
class OwnModel:
    """The model that the problem brings with it."""


@dataclass(frozen=True)
class DefaultModel:
    """What `pbgi` assumes of values and of unknown costs if it is told nothing."""


@dataclass(frozen=True)
class ProblemSpec:
    """A problem: a function of `pbgi.problems`, and what it is called with.

    Attributes:
        function: Its name.
        arguments: Names and values.
        factor: What values are multiplied with, see `paper.described`.
        price: "own", or "norm" for the cost as the paper's text has it.
    """

    function: str
    arguments: tuple[tuple[str, Value], ...] = ()
    factor: float = 1.0
    price: str = "own"


@dataclass(frozen=True)
class Specification:
    """All that the numbers of a run depend on.

    Attributes:
        experiment: The experiment it belongs to.
        problem: What is optimized.
        policy: A policy of `pbgi.policy`, `pbgi.botorch.policies` or `paper.policies`.
        model: What the policy believes.
        seed: Of the start, the policy and, where the problem is random, the problem.
        start: Points of the start, in the unit cube; None for random ones.
        n_start: How many random ones; None for the paper's 2 (d + 1).
        n_evaluations: The most evaluations after the start; None for as many as the budget buys.
    """

    experiment: str
    problem: ProblemSpec
    policy: Any
    model: FittedModel | TrueModel | OwnModel | DefaultModel
    seed: int
    start: tuple[tuple[float, ...], ...] | None = None
    n_start: int | None = None
    n_evaluations: int | None = None

    @cached_property
    def key(self) -> str:
        """The identity of the run: the first digits of the SHA-256 of its canonical JSON."""
        text = json.dumps(to_plain(self), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


@dataclass(frozen=True)
class Run:
    """A specification, and how its result is labelled.

    Attributes:
        specification: What is computed.
        problem: The problem as the paper writes it.
        dim: Its dimension.
        cost: "uniform", "varying", "known" or "unknown".
        curve: The curve it is one seed of: a policy as the paper writes it, with its settings where they are compared.
        variant: "as_published", or "as_described" where the paper's text differs from its figures.
    """

    specification: Specification
    problem: str
    dim: int
    cost: str
    curve: str
    variant: str = "as_published"

    @property
    def panel(self) -> str:
        """The plot it belongs to, e.g. "Ackley d=16 varying"."""
        return f"{self.problem} d={self.dim} {self.cost}"

    @property
    def search(self) -> str:
        """How its policy looks for the next point."""
        return search_of(self.specification.policy)

    @property
    def labels(self) -> dict[str, Any]:
        """What its record says of it besides the specification."""
        return {
            "problem": self.problem,
            "dim": self.dim,
            "cost": self.cost,
            "policy": self.curve,
            "variant": self.variant,
            "search": self.search,
        }

    @property
    def lacks_botorch(self) -> bool:
        """Whether its policy needs BoTorch, and BoTorch is not installed."""
        return isinstance(self.specification.policy, BOTORCH_POLICIES) and find_spec("botorch") is None

    @property
    def key(self) -> str:
        """The identity of its specification."""
        return self.specification.key

    def __str__(self) -> str:
        """One line for messages."""
        variant = "" if self.variant == "as_published" else f" | {self.variant}"
        spec = self.specification
        return f"{spec.experiment} | {self.panel} | {self.curve}{variant} | seed {spec.seed}"

    def to_plain(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        labels = {name: value for name, value in vars(self).items() if name != "specification"}
        return {**labels, "specification": to_plain(self.specification)}
