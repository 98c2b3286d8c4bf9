"""Rows of `cv_results_`: one for each candidate, ranked so that none is best that did not come to its end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata


def keep_rows(results: dict[str, Any], rows: Sequence[int]) -> None:
    """Leave these rows, in this order, in place."""
    if list(rows) == list(range(len(results["params"]))):
        return
    for key, column in list(results.items()):
        results[key] = [column[row] for row in rows] if isinstance(column, list) else column[list(rows)]


def put_ranks(results: dict[str, Any], last: NDArray[np.bool_]) -> None:
    """Rank candidates anew, in place; those that are to be last share that place with those that have no score."""
    for key in [key for key in results if key.startswith("rank_")]:
        scores = results[key.replace("rank_", "mean_", 1)]
        results[key] = _ranks(np.where(last, np.nan, scores))


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.int32]:
    """1 for the best; those without a score share the last place."""
    worst = np.nanmin(scores, initial=np.inf) - 1.0
    places = rankdata(-np.where(np.isnan(scores), worst, scores), method="min")
    return np.asarray(places, dtype=np.int32)
