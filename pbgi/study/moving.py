"""Parameters whose range moves from trial to trial: `trial.suggest_int("leaves", 2, 2 ** depth)`.

The range of the next trial is known only when the program asks for the value. So what is chosen is a share, the part of
the range that lies below the value, and models see shares too: every share is a value, whatever the range will be. Of
a grid each level has its even part of the shares, and what is told of a level is the middle of its part.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

Range: TypeAlias = FloatDistribution | IntDistribution


class Share(FloatDistribution):
    """The distribution of shares: what a study knows of a parameter in place of its range."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)


def is_moving(first: BaseDistribution, other: BaseDistribution) -> bool:
    """Whether they may be ranges of one parameter that moves: numbers of one kind, on one scale."""
    return (
        isinstance(first, Range)
        and isinstance(other, Range)
        and (type(first), first.log, first.step) == (type(other), other.log, other.step)
    )


def share_of(value: float, of: Range) -> float:
    """Which part of a range lies below a value of it."""
    low, high = _ends(of)
    if low == high:
        return 0.5
    return min(max((_scaled(value, of) - low) / (high - low), 0.0), 1.0)


def value_at(share: float, of: Range) -> float:
    """The value of a range below which this share of it lies."""
    low, high = _ends(of)
    value = low + share * (high - low)
    value = math.exp(value) if of.log else value
    if of.step is None:
        return float(min(max(value, of.low), of.high))
    n_levels = round((of.high - of.low) / of.step)
    level = min(max(round((value - of.low) / of.step), 0), n_levels)
    if isinstance(of, IntDistribution):
        return of.low + level * of.step
    return min(float(Decimal(str(of.low)) + level * Decimal(str(of.step))), of.high)


def _ends(of: Range) -> tuple[float, float]:
    beyond = 0.0 if of.step is None else of.step / 2  # each level has its even part
    return _scaled(of.low - beyond, of), _scaled(of.high + beyond, of)


def _scaled(value: float, of: Range) -> float:
    return math.log(value) if of.log else value


def params_with_shares(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """The params of a trial, by shares where the study knows them so."""
    shares = {
        name: share_of(trial.params[name], own)
        for name, own in trial.distributions.items()
        if isinstance(distributions.get(name), Share) and isinstance(own, Range)
    }
    return trial.params | shares


def has_taken(trial: FrozenTrial, shares: Mapping[str, float]) -> bool:
    """Whether its values are those of the shares, as far as it has them; a user may have fixed some."""
    own = {name: trial.distributions[name] for name in shares if name in trial.params}
    return all(isinstance(d, Range) and value_at(shares[n], d) == trial.params[n] for n, d in own.items())
