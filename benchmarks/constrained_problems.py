"""Eight constrained problems of the literature, in two dimensions: what is minimized, and what must not be above 0.

    gardner_1   Gardner et al. 2014, "Bayesian optimization with inequality constraints": a wavy band is feasible, and
                the best point of all lies inside it
    gardner_2   the same authors: a hundredth of the square is feasible, and the best point lies on the border
    gramacy     Gramacy et al. 2016, "Modeling an augmented Lagrangian": a plane under a wavy and a round border
    g24         Floudas and Pardalos 1990, number 24 of the competition CEC 2006: two separate feasible regions, and the
                best point where both borders meet
    townsend    Townsend 2014, an example of Chebfun: waves inside a heart, the best point on its border
    simionescu  Simionescu and Beale 2002: a saddle inside a wheel with eight teeth, the best points on two of them
    bird        Mishra 2006: steep waves inside a disk
    gomez_levy  Gomez and Levy 1982: six humps, of which a wavy border takes one of the two lowest away

The optima were found by looking: the best of a fine grid, polished (`tests/test_quality_constraints.py` does it again).
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pbgi

Params = Mapping[str, float]


class Problem(NamedTuple):
    """A problem.

    Attributes:
        bounds: Of x and y.
        value: What is minimized.
        outcomes: What must not be above 0.
        optimum: The least value of a point where none of them is.
        on_border: Whether one of them is 0 there.
    """

    bounds: tuple[tuple[float, float], tuple[float, float]]
    value: Callable[[float, float], float]
    outcomes: tuple[Callable[[float, float], float], ...]
    optimum: float
    on_border: bool

    @property
    def space(self) -> dict[str, pbgi.Float]:
        """The parameters."""
        return {name: pbgi.Float(*ends) for name, ends in zip("xy", self.bounds, strict=True)}

    def evaluate(self, params: Params) -> tuple[float, dict[str, float]]:
        """The value, and the outcomes by name."""
        x, y = params["x"], params["y"]
        return self.value(x, y), {f"c{k}": outcome(x, y) for k, outcome in enumerate(self.outcomes)}

    @property
    def names(self) -> list[str]:
        """What the outcomes are called."""
        return [f"c{k}" for k in range(len(self.outcomes))]


def _heart(angle: float) -> float:
    """The square of how far Townsend's heart reaches."""
    across = 2 * math.cos(angle) - math.cos(2 * angle) / 2 - math.cos(3 * angle) / 4 - math.cos(4 * angle) / 8
    return across**2 + (2 * math.sin(angle)) ** 2


PROBLEMS = {
    "gardner_1": Problem(
        ((0.0, 6.0), (0.0, 6.0)),
        lambda x, y: math.cos(2 * x) * math.cos(y) + math.sin(x),
        (lambda x, y: math.cos(x) * math.cos(y) - math.sin(x) * math.sin(y) - 0.5,),
        -2.0,
        False,
    ),
    "gardner_2": Problem(
        ((0.0, 6.0), (0.0, 6.0)),
        lambda x, y: math.sin(x) + y,
        (lambda x, y: math.sin(x) * math.sin(y) + 0.95,),
        0.2532359,
        True,
    ),
    "gramacy": Problem(
        ((0.0, 1.0), (0.0, 1.0)),
        lambda x, y: x + y,
        (
            lambda x, y: 1.5 - x - 2 * y - 0.5 * math.sin(2 * math.pi * (x**2 - 2 * y)),
            lambda x, y: x**2 + y**2 - 1.5,
        ),
        0.5997880,
        True,
    ),
    "g24": Problem(
        ((0.0, 3.0), (0.0, 4.0)),
        lambda x, y: -x - y,
        (
            lambda x, y: -2 * x**4 + 8 * x**3 - 8 * x**2 + y - 2,
            lambda x, y: -4 * x**4 + 32 * x**3 - 88 * x**2 + 96 * x + y - 36,
        ),
        -5.5080133,
        True,
    ),
    "townsend": Problem(
        ((-2.25, 2.5), (-2.5, 1.75)),
        lambda x, y: -(math.cos((x - 0.1) * y) ** 2) - x * math.sin(3 * x + y),
        (lambda x, y: x**2 + y**2 - _heart(math.atan2(x, y)),),
        -2.0239884,
        True,
    ),
    "simionescu": Problem(
        ((-1.25, 1.25), (-1.25, 1.25)),
        lambda x, y: 0.1 * x * y,
        (lambda x, y: x**2 + y**2 - (1 + 0.2 * math.cos(8 * math.atan2(x, y))) ** 2,),
        -0.072,
        True,
    ),
    "bird": Problem(
        ((-10.0, 0.0), (-6.5, 0.0)),
        lambda x, y: (
            math.sin(y) * math.exp((1 - math.cos(x)) ** 2)
            + math.cos(x) * math.exp((1 - math.sin(y)) ** 2)
            + (x - y) ** 2
        ),
        (lambda x, y: (x + 5) ** 2 + (y + 5) ** 2 - 25,),
        -106.7645367,
        False,
    ),
    "gomez_levy": Problem(
        ((-1.0, 0.75), (-1.0, 1.0)),
        lambda x, y: 4 * x**2 - 2.1 * x**4 + x**6 / 3 + x * y - 4 * y**2 + 4 * y**4,
        (lambda x, y: -math.sin(4 * math.pi * x) + 2 * math.sin(2 * math.pi * y) ** 2 - 1.5,),
        -1.0316285,
        False,
    ),
}
