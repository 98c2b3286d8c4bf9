"""What is believed of values: how it comes about, and what is kept of it from one trial to the next.

A Gaussian process told by a `GPConfig` is the rule. Any other model may stand in its place that can be fitted and asked
in the same way (`ModelKind`, `Model`).
"""

from typing import Any, Protocol

import numpy as np

from pbgi.arrays import Bools, Floats
from pbgi.errors import InvalidInputError
from pbgi.gp.config import GPConfig, Hyperparameters
from pbgi.gp.fit import fit_gp
from pbgi.history import Trial
from pbgi.notes import ListNote, NumberNote

# Beyond so many values the model sees the best quarter of that number and the latest for the rest.
MOST_VALUES = 2000


class Path(Protocol):
    """A function with its gradient."""

    def __call__(self, X: Floats) -> tuple[Floats, Floats]:
        """Values (m,) and gradients (m, d)."""


class Model(Protocol):
    """What is believed of values now, at points of the unit cube; larger is better."""

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """The warm start of the next fit, if there is one."""

    def posterior(self, X: Floats) -> tuple[Floats, Floats]:
        """Mean (m,) and standard deviation (m,)."""

    def posterior_with_grad(self, X: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean, standard deviation, and their gradients (m, d)."""

    def condition_on_pending(self, X: Floats) -> "Model":
        """The same once the points X (k, d) have been tried too, before their values are known."""

    def sample_path(self, rng: np.random.Generator) -> Path:
        """One function drawn from what is believed."""


class ModelKind(Protocol):
    """How a model comes about; a frozen value. A `GPConfig` serves as one."""

    @property
    def noisy(self) -> bool:
        """Whether one point may give different values."""

    def fit(self, X: Floats, values: Floats, *, categorical: Bools, start: Hyperparameters | None) -> Model:
        """What is believed after seeing `values` (n,) at the points X (n, d)."""


def fit_model(
    kind: GPConfig | ModelKind,
    X: Floats,
    values: Floats,
    *,
    categorical: Bools,
    start: Hyperparameters | None,
    spread: Floats | None = None,
) -> Model:
    """What is believed after seeing `values` (n,) at the points X (n, d), with errors of a known covariance (n, n)."""
    if isinstance(kind, GPConfig):
        return fit_gp(X, values, kind, categorical=categorical, start=start, spread=spread)
    return kind.fit(X, values, categorical=categorical, start=start)


def require_model(model: Any) -> None:
    """Raise unless a model can be made of it."""
    if isinstance(model, GPConfig):
        return
    if isinstance(model, type) or not callable(getattr(model, "fit", None)) or not hasattr(model, "noisy"):
        raise InvalidInputError(f"model must be a GPConfig, or an object with noisy and fit(); got {model!r}")


def seen_by_model(completed: tuple[Trial, ...], sign: float) -> tuple[Trial, ...]:
    """All trials, or of more than MOST_VALUES the best quarter of that number and the latest for the rest."""
    if len(completed) <= MOST_VALUES:
        return completed
    best = sorted(completed, key=lambda t: (-sign * (t.value or 0.0), t.number))[: MOST_VALUES // 4]
    seen = {t.number for t in best}
    latest = [t for t in completed if t.number not in seen][-(MOST_VALUES - len(seen)) :]
    seen |= {t.number for t in latest}
    return tuple(t for t in completed if t.number in seen)


def to_note(hyperparameters: Hyperparameters | None) -> list[float] | None:
    """Hyperparameters as a trial's record holds them."""
    if hyperparameters is None:
        return None
    return [*hyperparameters.length_scales, hyperparameters.output_scale, hyperparameters.noise]


def length_of_note(dimension: int) -> int:
    """How many numbers `to_note` makes of hyperparameters."""
    return dimension + 2


def last_hyperparameters(trials: tuple[Trial, ...], note: ListNote, dimension: int) -> Hyperparameters | None:
    """The hyperparameters noted by the latest trial that has them."""
    for trial in reversed(trials):
        numbers = note.of(trial)
        if numbers is not None and len(numbers) == length_of_note(dimension):
            return Hyperparameters(tuple(numbers[:dimension]), numbers[dimension], numbers[dimension + 1])
    return None


def last_number(trials: tuple[Trial, ...], note: NumberNote, default: float) -> float:
    """The number noted by the latest trial that has one."""
    for trial in reversed(trials):
        number = note.of(trial)
        if number is not None:
            return number
    return default
