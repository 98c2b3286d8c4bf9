"""The same folds for all candidates, and their number.

Candidates are evaluated one after the other, and scikit-learn splits the data anew each time. A splitter that shuffles
without a `random_state` would give every candidate other folds, and the luck of the draw would count as a difference.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
