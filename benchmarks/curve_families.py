"""Synthetic families of learning curves, for `quality_early_stopping.py`. None was changed once a rule had seen it.

settling      three parameters; all curves fall alike towards their last value, with noise
crossing      the same, but what falls slowly ends lower: early values mislead
overfitting   what falls fast rises again: the last value counts, and the best on the way says little of it
plateau       nothing happens for a while, then the loss falls steeply; what begins later ends lower
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import pbgi
from pbgi.arrays import Floats


class Problem(NamedTuple):
    """A curve of losses and costs for every point.

    Attributes:
        space: Names to parameters of pbgi.
        steps: How long a trial is.
        curve: (point, seed) -> losses (steps,) and costs so far (steps,).
        typical: What a trial costs, as a rule.
    """

    space: Mapping[str, pbgi.Float | pbgi.Integer]
    steps: int
    curve: Callable[[Mapping[str, Any], int], tuple[np.ndarray, np.ndarray]]
    typical: float


STEPS, NOISE = 27, 0.005
CUBE = {name: pbgi.Float(0.0, 1.0) for name in ("speed", "shape", "size")}
TIMES = np.arange(1, STEPS + 1)
# (speed, bowl of the other two) -> losses without noise.
Shape = Callable[[float, float], Floats]


def _from_one(last: float, fall: Floats) -> Floats:
    """Losses that fall to the last value as `fall` does, by 0.9 in all."""
    losses: Floats = last + 0.9 * (fall - fall[-1]) / (1.0 - fall[-1])
    return losses


def settling(speed: float, bowl: float) -> Floats:
    return _from_one(0.1 + bowl + 0.1 * (speed - 0.5) ** 2, (1.0 + TIMES / 2.0) ** -1.5)


def crossing(speed: float, bowl: float) -> Floats:
    return _from_one(0.1 + bowl + 0.4 * (speed - 0.15) ** 2, (1.0 + TIMES / (8.0 * 0.08**speed)) ** -1.5)


def overfitting(speed: float, bowl: float) -> Floats:
    falls = np.exp(-TIMES / (9.0 * 0.1**speed))
    rises = 0.4 * max(speed - 0.35, 0.0) ** 2 * (TIMES / STEPS) ** 2
    return np.asarray(0.1 + bowl + 0.9 * falls + rises)


def plateau(speed: float, bowl: float) -> Floats:
    begins = 1.0 + 13.0 * (1.0 - speed)
    return _from_one(0.1 + bowl + 0.2 * (speed - 0.3) ** 2, 1.0 / (1.0 + np.exp((TIMES - begins) / 1.5)))


def family(shape: Shape) -> Problem:
    def curve(point: Mapping[str, Any], seed: int) -> tuple[Floats, Floats]:
        at = np.array([float(point[name]) for name in CUBE])
        speed, x, size = at.tolist()
        bowl = (x - 0.35) ** 2 + (size - 0.6) ** 2 + 0.05 * (1.0 - math.cos(12.0 * (x - 0.35)))
        rng = np.random.default_rng([seed, *at.view(np.uint64).tolist()])
        losses = shape(speed, 0.5 * bowl) + NOISE * rng.standard_normal(STEPS)
        return losses, TIMES * (1.0 + 3.0 * size)

    return Problem(CUBE, STEPS, curve, STEPS * 2.5)


FAMILIES: dict[str, Callable[[], Problem]] = {
    "settling": lambda: family(settling),
    "crossing": lambda: family(crossing),
    "overfitting": lambda: family(overfitting),
    "plateau": lambda: family(plateau),
}
