"""What the model of a run believes now: along each parameter through the best point, and of points all over the space.

An optimizer fits its model for every question, so all points are asked about in one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError
from pbgi.model import last_hyperparameters
from pbgi.notes import VALUE_MODEL
from pbgi.optimizer import Optimizer
from pbgi.prediction import INTERVAL_Z
from pbgi.search import build_pool
from pbgi.serialization import Value

N_ALONG = 41
N_SPREAD, N_INCUMBENTS = 512, 3
# What is assumed where no trial has noted how far values are alike.
USUAL_LENGTH_SCALE = 0.5


@dataclass(frozen=True, eq=False)
class Slice:
    """What is believed along one parameter, all others as in the best point.

    Attributes:
        name: Of the parameter.
        values: Its values, as the user knows them.
        median: What the objective is as likely to exceed as not.
        low: The lower end of an 80 % interval.
        high: Its upper end.
        cost: Expected costs.
    """

    name: str
    values: tuple[Any, ...]
    median: Floats
    low: Floats
    high: Floats
    cost: Floats


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What is believed.

    Attributes:
        slices: By parameter.
        X: (m, d) Points of the unit cube: spread all over it, and close to the best trials.
        median: (m,) What values there are as likely to exceed as not, in the user's direction.
        low: (m,) The lower end of an 80 % interval.
        high: (m,) Its upper end.
        cost: (m,) Expected costs per trial that keeps all conditions.
        length_scales: (d,) How far along each coordinate values are alike.
        categorical: (d,) Which coordinates are categories.
    """

    slices: tuple[Slice, ...]
    X: Floats
    median: Floats
    low: Floats
    high: Floats
    cost: Floats
    length_scales: Floats
    categorical: np.ndarray[tuple[int], np.dtype[np.bool_]]


def hope(part: Slice | Beliefs, sign: float) -> Floats:
    """The deviation of a Gaussian that is as wide as the interval on its better side: what decides of improvements."""
    better = part.high if sign > 0 else part.low
    return np.asarray(np.abs(better - part.median) / INTERVAL_Z)


def beliefs_of(
    optimizer: Optimizer, in_words: Callable[[Mapping[str, Value]], Mapping[str, Any]], sign: float
) -> Beliefs | None:
    """What an optimizer believes; None while no trial has completed, or where nothing varies.

    Args:
        optimizer: What is asked.
        in_words: A point of it as the user knows it.
        sign: 1 if larger values are better, else -1.
    """
    if optimizer.best is None or not optimizer.space.dimension:
        return None
    along, spread = _along(optimizer), _spread(optimizer, sign)
    points = optimizer.space.from_unit_many(np.concatenate([*along.values(), spread]))
    try:
        found = optimizer.predict(points)
    except InvalidInputError:
        return None
    slices, start = [], 0
    for name, X in along.items():
        part = slice(start, start + len(X))
        values = tuple(in_words(_varying(optimizer, point))[name] for point in points[part])
        slices.append(Slice(name, values, found.median[part], found.low[part], found.high[part], found.cost[part]))
        start += len(X)
    return Beliefs(
        slices=tuple(slices),
        X=spread,
        median=found.median[start:],
        low=found.low[start:],
        high=found.high[start:],
        cost=found.cost[start:] / np.maximum(found.chance[start:], np.finfo(np.float64).tiny),
        length_scales=_length_scales(optimizer),
        categorical=optimizer.space.categorical,
    )


def _along(optimizer: Optimizer) -> dict[str, Floats]:
    """For each parameter of the best point that varies the points (k, d) on the line through it; each level once.

    Where another value lets other parameters exist, these are in the middle of their ranges.
    """
    space, best = optimizer.space, optimizer.best
    params = {} if best is None else best.params
    center, lines = space.to_unit(params), {}
    for j, (name, grid) in enumerate(zip(space.coordinates, space.grids, strict=True)):
        if name not in params:
            continue
        all_levels = grid is not None and (len(grid) <= N_ALONG or space.categorical[j])
        line = np.tile(center, (len(grid) if all_levels and grid is not None else N_ALONG, 1))
        line[:, j] = grid if all_levels else np.linspace(0.0, 1.0, N_ALONG)
        lines[name] = np.unique(space.snap(line), axis=0)
    return lines


def _spread(optimizer: Optimizer, sign: float) -> Floats:
    """Points all over the space and close to the best trials, each once."""
    space = optimizer.space
    done = sorted((t for t in optimizer.trials if t.value is not None), key=lambda t: -sign * (t.value or 0.0))
    incumbents = space.to_unit_many([t.params for t in done[:N_INCUMBENTS]])
    pool = build_pool(space.dimension, np.random.default_rng(0), n_sobol=N_SPREAD, incumbents=incumbents)
    return np.unique(space.snap(pool), axis=0)


def _length_scales(optimizer: Optimizer) -> Floats:
    dimension = optimizer.space.dimension
    latest = last_hyperparameters(optimizer.trials, VALUE_MODEL, dimension)
    return np.full(dimension, USUAL_LENGTH_SCALE) if latest is None else np.array(latest.length_scales)


def _varying(optimizer: Optimizer, point: Mapping[str, Value]) -> dict[str, Value]:
    return {name: point[name] for name in optimizer.space.coordinates if name in point}
