"""From one run to a curve, and from the curves of many seeds to a band.

A run is worth what its best value was when so much had been spent. The start is not charged: at spent = 0 stands the
best of the start. Between two evaluations the best value does not move, so the truth is a step function ("step"); the
published curves join the points with straight lines ("linear"), which shows progress before it was paid for.

Inside, larger is better: values of problems that are minimized change sign. What is plotted is the simple regret
(optimum - best) * unit, or best * unit where no optimum is known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from paper.reference import Quantity, parameters
from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError

Record: TypeAlias = Mapping[str, Any]
"""One run, as `paper.execution` makes it and `paper.results` keeps it."""

Form = Literal["step", "linear"]
SIGNS = {"maximize": 1.0, "minimize": -1.0}
# Sums of costs carry rounding: an evaluation that ends within this fraction of a grid point was paid for by then.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Band:
    """Statistics over seeds, each at the points of a grid."""

    median: Floats
    q25: Floats
    q75: Floats
    mean: Floats
    standard_error: Floats


def sign_of(record: Record) -> float:
    """What values are multiplied by so that larger is better."""
    if record["direction"] not in SIGNS:
        raise InvalidInputError(f"direction must be one of {', '.join(SIGNS)}; got {record['direction']!r}")
    return SIGNS[record["direction"]]


def best_so_far(record: Record) -> tuple[Floats, Floats]:
    """What had been spent and the best value by then (larger is better), from the end of the start on."""
    values = sign_of(record) * np.array(record["values"], dtype=np.float64)
    costs = np.array(record["costs"], dtype=np.float64)
    n_start = int(record["n_start"])
    if len(values) != len(costs) or not 1 <= n_start <= len(values):
        counts = f"{len(values)} values, {len(costs)} costs, n_start {n_start}"
        raise InvalidInputError(f"a record needs one cost per value and a start within them; got {counts}")
    # A failed evaluation has no value: it costs, and the best stays what it was.
    best = np.fmax.accumulate(values)[n_start - 1 :]
    spent = np.concatenate([[0.0], np.cumsum(costs[n_start:])])
    return spent, best


def best_on_grid(record: Record, grid: ArrayLike, form: Form = "step") -> Floats:
    """The best value (larger is better) when so much as each point of the grid had been spent."""
    spent, best = best_so_far(record)
    grid = np.asarray(grid, dtype=np.float64)
    if form == "linear":
        return np.asarray(np.interp(grid, spent, best))
    reached = np.searchsorted(spent, grid + ROUNDING * np.maximum(1.0, np.abs(grid)), side="right") - 1
    return np.asarray(best[np.maximum(reached, 0)])


def plotted(
    record: Record, grid: ArrayLike, quantity: Quantity, form: Form = "step", optimum: float | None = None
) -> Floats:
    """What the paper plots of one run: simple regret or best value, in plotted units.

    Args:
        record: The run.
        grid: Amounts spent.
        quantity: "regret" or "best".
        form: "step" or "linear".
        optimum: The best value there is (larger is better); the record's own if not given.
    """
    best = best_on_grid(record, grid, form)
    unit = float(record["unit"])
    if quantity == "best":
        return best * unit
    if optimum is None:
        if record["optimum"] is None:
            raise InvalidInputError(f"regret needs an optimum; the record {record['key']!r} has none: plot best values")
        optimum = sign_of(record) * float(record["optimum"])
    return (optimum - best) * unit


def best_known(records: Iterable[Record]) -> float | None:
    """The optimum of an objective that these records share (larger is better), never below the best value seen.

    The optimum of a function drawn from a prior was searched for, not derived: a run may have found a better point.
    None if the records know no optimum.
    """
    records = list(records)
    known = [sign_of(record) * float(record["optimum"]) for record in records if record["optimum"] is not None]
    if not known:
        return None
    return max(*known, *(float(best_so_far(record)[1][-1]) for record in records))


def band(curves: ArrayLike) -> Band:
    """Statistics of curves (n_seeds, n_grid) over the seeds; quartiles by linear interpolation.

    One seed has no standard error: it is given as zero.
    """
    curves = np.atleast_2d(np.asarray(curves, dtype=np.float64))
    q25, median, q75 = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    n = len(curves)
    spread = curves.std(axis=0, ddof=1) if n > 1 else np.zeros(curves.shape[1])
    return Band(median, q25, q75, curves.mean(axis=0), spread / np.sqrt(n))


def suggestion_seconds(record: Record) -> Floats:
    """Seconds that each suggestion took; nobody suggested the points of the start."""
    return np.array(record["suggest_seconds"], dtype=np.float64)


def seconds_on_grid(record: Record, iterations: ArrayLike) -> Floats:
    """Seconds per suggestion at iterations 0, 1, ..., joined by straight lines as in the paper's timing figure."""
    seconds = suggestion_seconds(record)
    return np.interp(np.asarray(iterations, dtype=np.float64), np.arange(len(seconds)), seconds)


def rates_on_grid(record: Record, iterations: ArrayLike) -> Floats:
    """The rate of PBGI-D after so many trials: its settings are in the name of the curve."""
    _, settings = parameters(record["policy"])
    lowered = np.searchsorted(np.array(record["lowered"]), np.asarray(iterations, dtype=np.float64))
    return np.asarray(settings["lambda_0"] / settings["beta"] ** lowered)
