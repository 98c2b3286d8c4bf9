"""What a candidate gets little of at first: samples, or a parameter such as the number of trees.

A candidate is trained anew at each stage, and pays for each. So a step of the engine is one unit of the resource, all
stages of the candidate added up: stages of 100, 300 and 900 samples end at steps 100, 400 and 1300. Costs in proportion
to steps, which the engine expects until it knows better, are then costs in proportion to samples.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from sklearn.utils.validation import _num_samples

from pbgi.checks import require_count, require_positive, unboxed
from pbgi.errors import InvalidInputError
from pbgi.history import Trial, TrialState
from pbgi.integrations.sklearn.folds import labels_of
from pbgi.integrations.sklearn.spaces import SearchSpace
from pbgi.optimizer import Optimizer
from pbgi.trials.steps import Steps

SAMPLES = "n_samples"
AUTO = "auto"
# By default there are at most so many stages before the last one, and the first has at least so many samples per class.
MOST_CUTS, LEAST_SAMPLES = 2, 10
ROUNDING = 1e-9  # of a budget: a price is added up stage by stage


class Asked(Protocol):
    """What a search was told of its stages."""

    estimator: Any
    cv: Any
    resource: Any
    max_resources: Any
    min_resources: Any
    factor: Any


@dataclass(frozen=True)
class Resource:
    """The stages of a candidate.

    Attributes:
        name: "n_samples", or a parameter of the estimator.
        amounts: What a candidate gets at each stage, rising.
        n_samples: How many samples there are.
    """

    name: str
    amounts: tuple[int, ...]
    n_samples: int

    @classmethod
    def of(cls, asked: Asked, X: Any, y: Any) -> "Resource | None":
        """The stages that a search was told to have; None if it was told of none.

        Raises:
            InvalidInputError: There cannot be such stages.
        """
        if asked.resource is None:
            if (asked.max_resources, asked.min_resources) != (AUTO, AUTO):
                given = f"max_resources={asked.max_resources!r}, min_resources={asked.min_resources!r}"
                raise InvalidInputError(f"max_resources and min_resources need resource='n_samples', say; got {given}")
            return None
        if hasattr(asked.cv, "__next__"):
            raise InvalidInputError("with a resource cv must be what can be asked twice; got a generator: list(cv)")
        own = _own_value(asked)
        n_samples, factor = int(_num_samples(X)), require_positive("factor", asked.factor)
        if factor <= 1.0:
            raise InvalidInputError(f"factor must be above 1, by how much a stage has more; got {asked.factor!r}")
        most = n_samples if own is None else own
        if not _is_auto(asked.max_resources):
            most = require_count("max_resources", asked.max_resources)
        if own is None and most > n_samples:
            raise InvalidInputError(f"max_resources must be at most the {n_samples} samples that there are; got {most}")
        return cls(asked.resource, _amounts(asked, most, factor, y), n_samples)

    @cached_property
    def steps(self) -> Steps:
        """As the engine knows them. What is trained anew can always go on later."""
        ends = tuple(itertools.accumulate(self.amounts))
        return Steps(ends[-1], ends, resumable=True)

    def require_not_searched(self, space: SearchSpace) -> None:
        """Raise if candidates have a value of their own."""
        searched = set(space.engine.names if space.names is None else space.names.values())
        if self.name in searched:
            raise InvalidInputError(f"resource must not be searched as well; got {self.name!r}, which is in the space")

    def stage_of(self, trial: Trial) -> int:
        """Which stage comes next."""
        return self.steps.n_stages_at(trial.step)

    def share(self, stage: int) -> float:
        """Of the samples, those that are trained with."""
        return self.amounts[stage] / self.n_samples if self.name == SAMPLES else 1.0

    def given(self, candidate: Mapping[str, Any], stage: int) -> dict[str, Any]:
        """A candidate with what it gets of a parameter."""
        return {**candidate, **({} if self.name == SAMPLES else {self.name: self.amounts[stage]})}

    def fits(self, optimizer: Optimizer, trial: Trial) -> bool:
        """Whether a budget holds the rest of a trial, which is expected to cost as many times as much as in others.

        While none has come to its end there is nothing to lose by going on: without it there is no result.
        """
        told = [t for t in optimizer.trials if t.state is TrialState.COMPLETE and t.cost and len(t.reports) > 1]
        if optimizer.budget is None or not optimizer.settings.budget_holds or not told:
            return True
        at = self.stage_of(trial) - 1
        shares = [(t.reports[at].cost or 0.0) / (t.cost or 1.0) for t in told]
        share = min(math.fsum(shares) / len(shares), 1.0)
        others = optimizer.reserved - trial.reserved
        return trial.used / share + optimizer.spent - trial.used + others <= optimizer.budget * (1.0 + ROUNDING)


def _own_value(asked: Asked) -> int | None:
    """What the estimator has of a parameter by itself; None of samples, 0 where it has no number."""
    if asked.resource == SAMPLES:
        return None
    known = {name: unboxed(value) for name, value in asked.estimator.get_params().items()}
    if not isinstance(asked.resource, str) or asked.resource not in known:
        rule = f"resource must be 'n_samples' or a parameter of {type(asked.estimator).__name__}"
        whole = ", ".join(repr(name) for name, value in known.items() if type(value) is int) or "none of them"
        raise InvalidInputError(f"{rule} that is a whole number: {whole}; got {asked.resource!r}")
    own = known[asked.resource]
    if own is not None and type(own) is not int:
        raise InvalidInputError(f"resource must be a parameter with whole numbers; got {asked.resource!r}, {own!r}")
    if type(own) is int and own > 0:
        return own
    if _is_auto(asked.max_resources):
        rule = f"max_resources must be given where the estimator has no number of its own of {asked.resource!r}"
        raise InvalidInputError(f"{rule}; got 'auto', and {own!r} there")
    return 0


def _amounts(asked: Asked, most: int, factor: float, y: Any) -> tuple[int, ...]:
    """What a candidate gets at each stage: the last has all, and each before it the factor less."""
    if _is_auto(asked.min_resources):
        least, cuts = _least(asked, y), float(MOST_CUTS)
    else:
        least, cuts = require_count("min_resources", asked.min_resources), math.inf
    amounts, k = [most], 1
    while k <= cuts and (amount := math.ceil(most / factor**k)) >= least and amount < amounts[0]:
        amounts.insert(0, amount)
        k += 1
    if len(amounts) < 2:
        rule = f"there must be room for two stages, the first with at least {least}; got {asked.resource}={most}"
        raise InvalidInputError(f"{rule} and factor={asked.factor!r}; lower min_resources, or leave resource out")
    return tuple(amounts)


def _least(asked: Asked, y: Any) -> int:
    """By default: enough samples of each class, or anything of a parameter."""
    if asked.resource != SAMPLES:
        return 1
    labels = labels_of(asked.estimator, y)
    return LEAST_SAMPLES * (1 if labels is None else int(labels.max()) + 1)


def _is_auto(given: Any) -> bool:
    return isinstance(given, str) and given == AUTO
