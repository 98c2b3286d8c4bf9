"""Candidates none of whose fits succeeded.

scikit-learn raises if all fits that it was asked for in one go fail: in a search that evaluates everything at once,
something is wrong then. Here it is one candidate, perhaps one that asks for what the estimator cannot do. The search
goes on, and the candidate gets its row in `cv_results_` as any other whose fits fail.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

from pbgi.checks import unboxed
from pbgi.integrations.sklearn.folds import n_folds

ALL_FAILED = re.compile(r"\s*All the \d+ fits failed")
NOT_FINITE = "One or more of the (test|train) scores are non-finite"


@dataclass(frozen=True)
class Failure:
    """A candidate without a single fit: its parameters, and the seconds that it took."""

    candidate: Mapping[str, Any]
    seconds: float


def error_of_fits(error: ValueError) -> str | None:
    """What the estimator said, if scikit-learn raised because every fit failed; there are other reasons to raise."""
    text = str(error)
    return text.rstrip().rpartition("\n")[2] if ALL_FAILED.match(text) else None


class Complaints:
    """Warns of the first failure in full and of all of them at the end. In between every trial would repeat it."""

    def __init__(self) -> None:
        self.n_failed = 0

    def heard(self, error: str | None = None) -> None:
        """Another candidate failed; with the error of its fits, if scikit-learn raised and did not warn."""
        self.n_failed += 1
        if self.n_failed > 1:
            return
        if error is not None:
            message = f"a candidate failed and is charged, none of its fits succeeded: {error}"
            warnings.warn(f"{message}; error_score='raise' shows where", FitFailedWarning, stacklevel=10)
        warnings.filterwarnings("ignore", message=NOT_FINITE)
        warnings.filterwarnings("ignore", category=FitFailedWarning)

    def sum_up(self, n_trials: int) -> None:
        """How many there were."""
        if self.n_failed > 1:
            message = f"{self.n_failed} of {n_trials} candidates failed and were charged; see cv_results_"
            warnings.warn(message, FitFailedWarning, stacklevel=7)


def put_failures(results: dict[str, Any], failures: Mapping[int, Failure], error_score: float) -> None:
    """Add rows for candidates without a single fit to `cv_results_`, in place; they have no rank yet.

    Args:
        results: What scikit-learn made of the other candidates.
        failures: By row.
        error_score: What stands for their scores.
    """
    if not failures:
        return
    n, folds = len(results["params"]) + len(failures), n_folds(results)
    rows = [row for row in range(n) if row not in failures]
    for key, column in list(results.items()):
        cells = {row: _cell(key, failure, folds, error_score) for row, failure in failures.items()}
        cells |= dict(zip(rows, column, strict=True))
        whole = [cells[row] for row in range(n)]
        results[key] = whole if key == "params" else _column(key, whole)


def _cell(key: str, failure: Failure, folds: int, error_score: float) -> Any:
    """What is in the row of a failure."""
    if key == "params":
        return dict(failure.candidate)
    if key.startswith("param_"):
        return failure.candidate[key.removeprefix("param_")]
    if key == "mean_fit_time":
        return failure.seconds / folds
    if key.endswith("_time") or key.startswith("rank_"):
        return 0.0
    return error_score - error_score if key.startswith("std_") else error_score


def _column(key: str, cells: list[Any]) -> NDArray[Any]:
    """The cells as an array; parameters, as scikit-learn has them, as a masked one."""
    if not key.startswith("param_"):
        return np.array(cells)
    kinds = {type(unboxed(cell)) for cell in cells}
    column = np.ma.empty(len(cells), dtype=kinds.pop() if kinds in ({int}, {float}, {bool}) else object)
    for row, cell in enumerate(cells):
        column[row] = cell
    return column
