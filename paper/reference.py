"""The paper's figures as numbers, and the words in which results are compared with them.

`reference/main_figures.json` holds what the authors published: 18 main panels (median and quartiles over 16 seeds on 21
grid points), one of the two 1-D examples, and the time per suggestion. `reference/appendix_figures.json` holds figures
of the appendix in the same form: synthetic problems of 4 and 8 dimensions, Robot Pushing with known cost, the other 1-D
example, and studies of settings. A curve that both have, or that two figures show, counts once.

A `Panel` says which plot a curve belongs to. The reference writes an unknown cost into the name of the problem and
calls a known cost "varying"; records say it in their field `cost`. `Panel.of` makes both the same, and so everything
downstream can compare panels with `==`.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError

REFERENCE = Path(__file__).parent / "reference" / "main_figures.json"
APPENDIX = Path(__file__).parent / "reference" / "appendix_figures.json"
N_GRID = 21  # points of each published curve
# A run may overshoot the published budget by one evaluation; beyond this factor it had another budget.
LARGER_BUDGET = 2.0

Quantity = Literal["regret", "best", "seconds", "shape", "rate"]
# How the reference's units begin -> what is plotted. Shapes are functions of x, not of what was spent.
QUANTITIES: dict[str, Quantity] = {
    "simple regret": "regret",
    "best observed value": "best",
    "CPU seconds": "seconds",
    "prior amplitude": "shape",
    "cost": "shape",
    "lambda_t": "rate",
}
TRACE = " lambda_t trace"  # added to the name of a problem where the figure has the rate of PBGI-D over the trials
# Curves of the main experiments, as the paper names them; other names are studies of settings.
POLICIES = (
    "RS", "LogEI", "LogEIPC", "LogEICC", "TS", "UCB", "KG", "MES", "MFMES", "MSEI", "BMSEI", "PBGI", "PBGI-D",
)  # fmt: skip
# Added to the name of a curve whose search looks around the best points tried too, which the published one did not.
NEAR_BEST = ", near the best too"
DEFAULT = "pbgi"  # the curve of the package as it comes, beside those of the paper
COSTS = {"uniform": "uniform", "varying": "varying", "known": "varying", "unknown": "unknown"}
# The package names kernels by short words, the paper by their names.
KERNELS = {"matern32": "Matern-3/2", "matern52": "Matern-5/2", "rbf": "squared exponential"}
GP_NAME = re.compile(r"GP sample \((?P<kernel>.+), (?:ls=|length scale )(?P<length_scale>[\d.]+)\)")


class Panel(NamedTuple):
    """One plot: a problem, its dimension and what its cost is like ("uniform", "varying" or "unknown")."""

    problem: str
    dim: int
    cost: str

    @classmethod
    def of(cls, problem: str, dim: int, cost: str) -> "Panel":
        """The panel in one spelling: "(unknown cost)" in the name becomes the cost, and "known" is "varying"."""
        if cost not in COSTS:
            raise InvalidInputError(f"cost must be one of {', '.join(COSTS)}; got {cost!r}")
        base = problem.removesuffix(" (unknown cost)")
        cost = "unknown" if base != problem else COSTS[cost]
        base = base.removesuffix(" (known cost)")
        if match := GP_NAME.fullmatch(base):
            base = gp_problem(match["kernel"], float(match["length_scale"]))
        if base.lower().startswith("hard"):
            base = base.lower().replace(" ", "_")
        return cls(base, int(dim), cost)

    @property
    def name(self) -> str:
        """As it is written in tables, e.g. "Ackley d=16 varying"."""
        return f"{self.problem} d={self.dim} {self.cost}"


def gp_problem(kernel: str = "Matern-5/2", length_scale: float = 0.1) -> str:
    """What the reference calls a function drawn from a Gaussian process prior."""
    return f"GP sample ({KERNELS.get(kernel, kernel)}, ls={length_scale:g})"


@dataclass(frozen=True, eq=False)
class PublishedCurve:
    """A curve of the paper, as numbers on a grid of what was spent (or of iterations, for seconds)."""

    figure: str
    panel: Panel
    policy: str
    quantity: Quantity
    n_seeds: int
    grid: Floats
    median: Floats
    q25: Floats
    q75: Floats

    @property
    def key(self) -> tuple[Panel, str]:
        """Which curve it is: the panel and the policy."""
        return self.panel, self.policy


def final_order(quantity: Quantity, median: float) -> float:
    """What to sort final medians by, best first."""
    return -median if quantity == "best" else median


def parameters(policy: str) -> tuple[str, dict[str, float]]:
    """The base name of a policy and the parameters that its name states, e.g.
    "PBGI-D, lambda_0 = 0.1, beta = 2".
    """
    pairs = re.findall(r"(\w+) ?= ?([-+\d.e]+)", policy)
    return re.split(r"[ ,(]", policy, maxsplit=1)[0], {name: float(value) for name, value in pairs}


def policy_named(name: str) -> str:
    """A policy as curves here are called: "PBGI lambda=1e-2" is "PBGI, lambda = 0.01"."""
    base, *pairs = name.removesuffix(" (cost-unaware)").split(" ")
    if not all("=" in pair for pair in pairs):
        return name.removesuffix(" (cost-unaware)")
    settings = (pair.replace("lambda0", "lambda_0").split("=") for pair in pairs)
    return ", ".join([base, *(f"{setting} = {float(value):g}" for setting, value in settings)])


def _curve(entry: dict[str, Any]) -> PublishedCurve:
    quantity = next((name for start, name in QUANTITIES.items() if entry["unit"].startswith(start)), None)
    if quantity is None:
        raise InvalidInputError(f"unit must begin with one of {', '.join(QUANTITIES)}; got {entry['unit']!r}")
    return PublishedCurve(
        figure=entry["figure"],
        panel=Panel.of(entry["problem"].removesuffix(TRACE), entry["dim"], entry["cost"]),
        policy=policy_named(entry["policy"]),
        quantity=quantity,
        n_seeds=entry["seeds"],
        grid=np.array(entry["x"]),
        median=np.array(entry["median"]),
        q25=np.array(entry["q25"]),
        q75=np.array(entry["q75"]),
    )


@cache
def published_curves() -> tuple[PublishedCurve, ...]:
    """All curves of the paper that are known as numbers, those of the main figures first; each once."""
    entries = [entry for path in (REFERENCE, APPENDIX) for entry in json.loads(path.read_text(encoding="utf-8"))]
    known: dict[tuple[Panel, str, Quantity, str], PublishedCurve] = {}
    for curve in map(_curve, entries):
        shape = f"{curve.figure} {len(known)}" if curve.quantity == "shape" else ""  # these have no names
        known.setdefault((*curve.key, curve.quantity, shape), curve)
    return tuple(known.values())


@cache
def published(panel: Panel) -> dict[str, PublishedCurve]:
    """The published regret or best values of a panel by policy; empty if the panel is not in the reference."""
    curves = (curve for curve in published_curves() if curve.panel == panel)
    return {curve.policy: curve for curve in curves if curve.quantity in ("regret", "best")}


@cache
def published_seconds(panel: Panel) -> dict[str, PublishedCurve]:
    """The published CPU seconds per suggestion of a panel by policy."""
    return {c.policy: c for c in published_curves() if c.panel == panel and c.quantity == "seconds"}


@cache
def published_rates(panel: Panel) -> dict[str, PublishedCurve]:
    """The published rate of PBGI-D over the trials of a panel, by policy."""
    return {c.policy: c for c in published_curves() if c.panel == panel and c.quantity == "rate"}


@cache
def published_panels() -> tuple[Panel, ...]:
    """Panels with published regret or best values, in the order of the paper."""
    panels = (curve.panel for curve in published_curves() if curve.quantity in ("regret", "best"))
    return tuple(dict.fromkeys(panels))


@cache
def best_published() -> dict[Panel, PublishedCurve]:
    """The curve that ends best of each panel in more than one dimension, among those of the main policies."""
    found = {}
    for panel in published_panels():
        curves = [curve for policy, curve in published(panel).items() if policy in POLICIES]
        if panel.dim > 1 and curves:
            found[panel] = min(curves, key=lambda curve: final_order(curve.quantity, float(curve.median[-1])))
    return found


def grid_for(panel: Panel, policy: str, budget: float) -> Floats:
    """Where to evaluate a curve: at the published points, else at as many equal steps up to the budget.

    Some published curves end a little before the budget; each policy is compared on its own grid. Runs that may spend
    far more than the published ones (costs as the text describes them) have their own.
    """
    curves = published(panel)
    longest = max((curve.grid for curve in curves.values()), key=lambda grid: float(grid[-1]), default=None)
    if longest is None or budget > LARGER_BUDGET * longest[-1]:
        return np.linspace(0.0, budget, N_GRID)
    return curves[policy].grid if policy in curves else longest
