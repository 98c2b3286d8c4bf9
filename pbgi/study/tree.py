"""Which parameters of a study depend on which: learned from its trials, since a program tells nobody what it will ask.

    if trial.suggest_categorical("model", ["svm", "forest"]) == "svm":
        trial.suggest_float("C", 1e-3, 1e3, log=True)

A parameter that only some trials have is explained by another one, its parent, if the value of the parent alone
decides whether it is there: for a categorical parent a set of choices, for an integer one all levels from some level
on, or up to it, as in `for layer in range(n_layers)`. A parent may itself have a parent. Parameters that are always
there together share their conditions.

A parent whose values were all seen only once explains anything, so there must be repetitions that agree. What cannot be
explained, yet or at all (it may depend on the value of a float), is left out: it is for the independent sampler. A tree
that was learned too early is refuted by the first trial that does not fit it, and is learned again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from pbgi.condition import MOST_PARENT_LEVELS

CONFIRMATIONS = 1  # trials that repeat a value of the parent and agree on what depends on it

When = Mapping[str, tuple[int, ...]]
"""Parents with the values of them under which a parameter is there, choices by their positions; all must hold."""


@dataclass(frozen=True)
class Branch:
    """A parameter with its condition; none if it is always there."""

    distribution: BaseDistribution
    when: When = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What the tree is learned from: one completed trial."""

    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]


def learn_tree(trials: Sequence[Seen], usable: Mapping[str, BaseDistribution]) -> dict[str, Branch]:
    """The parameters that these trials explain, parents before children.

    Args:
        trials: Completed trials.
        usable: Distributions of the parameters that may be part of the tree, in which all their values lie.
    """
    names = _in_order(trials, usable)
    there = {name: frozenset(i for i, trial in enumerate(trials) if name in trial.params) for name in names}
    everywhere = frozenset(range(len(trials)))
    tree = {name: Branch(usable[name]) for name in names if there[name] == everywhere}
    waiting = [name for name in names if name not in tree]
    while waiting:
        explained = {name: when for name in waiting if (when := _condition(name, tree, there, trials)) is not None}
        if not explained:
            break
        tree |= {name: Branch(usable[name], when) for name, when in explained.items()}
        waiting = [name for name in waiting if name not in explained]
    return tree


def _in_order(trials: Sequence[Seen], usable: Mapping[str, BaseDistribution]) -> list[str]:
    """The usable names by their mean place in the trials: a program asks for a parent before what depends on it."""
    places: dict[str, list[int]] = {}
    for trial in trials:
        for place, name in enumerate(trial.params):
            if name in usable:
                places.setdefault(name, []).append(place)
    return sorted(places, key=lambda name: (sum(places[name]) / len(places[name]), name))


def _condition(
    name: str, tree: Mapping[str, Branch], there: Mapping[str, frozenset[int]], trials: Sequence[Seen]
) -> When | None:
    """When the parameter is there, by what is in the tree already; None if nothing explains it."""
    together = next((other for other in tree if there[other] == there[name]), None)
    if together is not None:
        return tree[together].when
    found: list[tuple[int, When]] = []
    for parent in tree:
        if there[name] < there[parent]:
            decides = _decides(parent, tree[parent].distribution, there[name], there[parent], trials)
            values = _generalized(tree[parent].distribution, decides)
            confirmations = len(there[parent]) - len(decides)
            found += [(confirmations, {parent: values})] if values and confirmations >= CONFIRMATIONS else []
    # max takes the first of equals, and the tree is in the order of the program.
    return max(found, key=lambda explanation: explanation[0])[1] if found else None


def _decides(
    parent: str,
    distribution: BaseDistribution,
    present: frozenset[int],
    possible: frozenset[int],
    trials: Sequence[Seen],
) -> dict[int, bool]:
    """For each value of the parent whether the parameter is there with it; empty if a value does not decide that."""
    decides: dict[int, bool] = {}
    if (
        not isinstance(distribution, CategoricalDistribution | IntDistribution)
        or _n_values(distribution) > MOST_PARENT_LEVELS
    ):
        return decides
    for i in sorted(possible):
        value = int(distribution.to_internal_repr(trials[i].params[parent]))
        if decides.setdefault(value, i in present) != (i in present):
            return {}
    return decides


def _n_values(distribution: CategoricalDistribution | IntDistribution) -> int:
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    return (distribution.high - distribution.low) // distribution.step + 1


def _generalized(distribution: BaseDistribution, decides: Mapping[int, bool]) -> tuple[int, ...]:
    """All values under which the parameter is taken to be there; none if the values do not tell."""
    on = [value for value, is_there in decides.items() if is_there]
    off = [value for value, is_there in decides.items() if not is_there]
    if isinstance(distribution, CategoricalDistribution):
        # A choice that no trial has had yet is taken to have nothing of its own: trying it will show.
        return tuple(sorted(on))
    if not on or not off or not isinstance(distribution, IntDistribution):
        return ()
    levels = range(distribution.low, distribution.high + 1, distribution.step)
    if min(on) > max(off):
        return tuple(level for level in levels if level >= min(on))
    return tuple(level for level in levels if level <= max(on)) if max(on) < min(off) else ()
