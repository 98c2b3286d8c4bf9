"""The problems on which optimizers of several packages are compared, all with costs that vary over the space.

Ackley, Levy and Rosenbrock are the paper's, d = 4, at a cost of 1 + 20 mean(x). Some packages, ours among them, begin
in the middle of the space, and that is where Ackley's function is best. So the functions are moved: by an offset of up
to a quarter of the range in each coordinate, drawn from the seed of a run, the same for all contestants. The cost stays
where it is, so the good points of some runs are cheap and those of others dear.

"Network" is a mixed space, a caricature of training a network: the best rate falls with depth, each activation has its
own best depth, and a trial costs from 1 to 50, by a factor, with depth and width. The best point costs 16.

The budget of each is for 40 trials of average cost.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import pbgi
from pbgi.problems.synthetic import StretchedFunction, ackley_value, levy_value, rosenbrock_value
from pbgi.problems.unit_cube import mean_price

DIMENSION = 4
MAX_OFFSET = 0.25
N_TRIALS = 40


@dataclass(frozen=True)
class PeerProblem:
    """To be minimized.

    Attributes:
        space: Names to parameters.
        evaluate: Parameters to value and cost.
        optimum: The least value.
        mean_cost: Of points drawn at random.
        exact: Parameters to their value without noise, where `evaluate` has noise.
        max_trials: Of one run: cheap points could otherwise go on for hours.
    """

    space: Mapping[str, Any]
    evaluate: Callable[[Mapping[str, Any]], tuple[float, float]]
    optimum: float
    mean_cost: float
    exact: Callable[[Mapping[str, Any]], float] | None = None
    max_trials: int = 200

    def regret(self, params: Mapping[str, Any], value: float) -> float:
        """How far parameters that gave this value are from the best."""
        return (value if self.exact is None else self.exact(params)) - self.optimum

    @property
    def budget(self) -> float:
        """For so many trials of average cost."""
        return N_TRIALS * self.mean_cost


def moved(function: StretchedFunction, seed: int) -> PeerProblem:
    """A function of the unit cube, its best point moved by an offset drawn from the seed, in its own units."""
    offset = np.random.default_rng([seed, DIMENSION]).uniform(-MAX_OFFSET, MAX_OFFSET, DIMENSION)

    def evaluate(params: Mapping[str, Any]) -> tuple[float, float]:
        return -function.unit * function(np.array(list(params.values())) - offset), float(mean_price(params))

    space = {f"x{k}": pbgi.Float(0.0, 1.0) for k in range(DIMENSION)}
    middle = dict.fromkeys(space, 0.5)  # the cost is linear
    return PeerProblem(space, evaluate, 0.0, float(mean_price(middle)))


LAYERS, WIDTHS = (1, 8), (16, 512)
ACTIVATIONS = {"relu": (5, 0.0, 0.05), "tanh": (3, 0.4, 0.10), "gelu": (6, -0.2, 0.0)}  # best depth, rate, handicap
COST_RATIO = 50.0


def network_handicap(layers: int, width: int, activation: str) -> float:
    """What a network loses against the best, trained at its best rate."""
    best_depth, _, handicap = ACTIVATIONS[activation]
    return handicap + 0.08 * abs(layers - best_depth) + 0.03 * (math.log2(width) - 7.5) ** 2


def network_cost(layers: int, width: int) -> float:
    """From 1 to 50: half of the logarithm is depth, half is the logarithm of the width."""
    depth = (layers - LAYERS[0]) / (LAYERS[1] - LAYERS[0])
    return float(COST_RATIO ** (0.5 * depth + 0.5 * math.log(width / WIDTHS[0]) / math.log(WIDTHS[1] / WIDTHS[0])))


def network_value(params: Mapping[str, Any]) -> tuple[float, float]:
    """Value and cost."""
    layers, width, activation = params["layers"], params["width"], params["activation"]
    best_rate = -1.5 - 0.15 * (layers - 1) + ACTIVATIONS[activation][1]  # its logarithm
    value = 0.2 * (math.log10(params["rate"]) - best_rate) ** 2 + network_handicap(layers, width, activation)
    return value, network_cost(layers, width)


def network(seed: int) -> PeerProblem:  # noqa: ARG001 (it is where it is)
    """The mixed space: a rate, two integers and a choice."""
    space: dict[str, pbgi.Float | pbgi.Integer | pbgi.Categorical] = {
        "rate": pbgi.Float(1e-4, 1.0, log=True),
        "layers": pbgi.Integer(*LAYERS),
        "width": pbgi.Integer(*WIDTHS, log=True),
        "activation": pbgi.Categorical(list(ACTIVATIONS)),
    }
    networks = itertools.product(range(LAYERS[0], LAYERS[1] + 1), range(WIDTHS[0], WIDTHS[1] + 1), ACTIVATIONS)
    points = pbgi.Space(space).from_unit_many(np.random.default_rng(0).random((4096, len(space))))
    mean_cost = float(np.mean([network_cost(p["layers"], p["width"]) for p in points]))
    return PeerProblem(space, network_value, min(itertools.starmap(network_handicap, networks)), mean_cost)


PROBLEMS: dict[str, Callable[[int], PeerProblem]] = {
    "Ackley": lambda seed: moved(StretchedFunction(ackley_value, -1.0, 1.0, 1.0), seed),
    "Levy": lambda seed: moved(StretchedFunction(levy_value, -10.0, 10.0, 100.0), seed),
    "Rosenbrock": lambda seed: moved(StretchedFunction(rosenbrock_value, -5.0, 10.0, 1e5), seed),
    "Network": network,
}
