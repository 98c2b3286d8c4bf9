"""The same folds for all candidates, and their number; and folds of which only a part is trained with.

Candidates are evaluated one after the other, and scikit-learn splits the data anew each time. A splitter that shuffles
without a `random_state` would give every candidate other folds, and the luck of the draw would count as a difference.
For the same reason smaller training sets are parts of larger ones, and what is tested with is always all of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import type_of_target

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


class Splitter(Protocol):
    """What scikit-learn takes as `cv`."""

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[Fold]:
        """Indices to train and to test with, fold by fold."""


def same_folds(cv: Any) -> "SameFolds | None":
    """What to split with instead of `cv`; None if that is a number or a list of splits, which never change."""
    return SameFolds(cv) if hasattr(cv, "split") else None


def n_folds(results: Mapping[str, Any]) -> int:
    """How many folds `cv_results_` has columns of."""
    return len({found[1] for key in results if (found := re.match(r"split(\d+)_test_", key))})


class SameFolds:
    """A splitter that asks another one once."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter
        self._folds: list[Fold] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[Fold]:
        """The folds that the first call found; all calls of one search are for the same data."""
        if self._folds is None:
            self._folds = list(self._splitter.split(X, y, **params))
        return iter(self._folds)


class GrowingFolds:
    """Folds whose training sets have as large a share of their samples as one asks for.

    Args:
        cv: How to split, as scikit-learn takes it.
        estimator: What is trained; of a classifier every class keeps its share.
        seed: Of the order in which samples are added.
    """

    def __init__(self, cv: Any, estimator: Any, seed: int) -> None:
        self._cv, self._estimator, self._seed = cv, estimator, seed
        self._folds: SameFolds | None = None
        self._orders: dict[int, NDArray[np.intp]] = {}

    def of(self, share: float) -> "Splitter":
        """A splitter with this share of the training samples."""
        return _Part(self, share)

    def split(self, share: float, X: Any, y: Any, **params: Any) -> Iterator[Fold]:
        """The folds, with this share of the training samples, in the order in which they come in the data."""
        if self._folds is None:
            labels = labels_of(self._estimator, y)
            self._folds = SameFolds(check_cv(self._cv, y, classifier=is_classifier(self._estimator)))
            for fold, (train, _) in enumerate(self._folds.split(X, y, **params)):
                own = None if labels is None else labels[train]
                self._orders[fold] = growth(len(train), own, [self._seed, fold])
        for fold, (train, test) in enumerate(self._folds.split(X, y, **params)):
            n = max(round(share * len(train)), 1)
            yield np.asarray(train)[np.sort(self._orders[fold][:n])], test


class _Part:
    def __init__(self, folds: GrowingFolds, share: float) -> None:
        self._folds, self._share = folds, share

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[Fold]:
        return self._folds.split(self._share, X, y, **params)


def labels_of(estimator: Any, y: Any) -> NDArray[np.intp] | None:
    """The classes of the samples as numbers from 0; None where there are none."""
    if y is None or not is_classifier(estimator) or type_of_target(y) not in ("binary", "multiclass"):
        return None
    return np.unique(np.asarray(y).ravel(), return_inverse=True)[1]


def growth(n: int, labels: NDArray[np.intp] | None, seed: Sequence[int]) -> NDArray[np.intp]:
    """The order in which n samples are added: at random, each class at the same pace and none missing for long."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    if labels is None:
        return order
    shuffled, sizes = labels[order], np.bincount(labels)
    by_class = np.argsort(shuffled, kind="stable")
    rank = np.empty(n)  # within its class
    rank[by_class] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Of five samples one comes in each fifth; the first of each class comes before all others.
    place = np.where(rank > 0, (rank + rng.random(n)) / sizes[shuffled], rng.random(n) - 1.0)
    return np.asarray(order[np.argsort(place, kind="stable")])
