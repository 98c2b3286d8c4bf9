"""How far results are from the published ones, curve by curve, at the end of the budget.

Curves are compared in the form in which they were published (straight lines between evaluations). Regrets are compared
by their ratio. Best values have no natural zero, so there the ratio is of progress: how far the median came from the
published start, over how far it came in the paper.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from paper.curves import Band
from paper.reference import (
    DEFAULT,
    POLICIES,
    Panel,
    PublishedCurve,
    best_published,
    final_order,
    published,
    published_panels,
)
from paper.summary import MANY_SEEDS, CurveSummary, best_of_panel
from pbgi.arrays import Floats

# Two runs of a 16-seed experiment differ by 5 to 15 % in the median; beyond this factor a difference is explained.
FACTOR = 1.5
# There is one form of the index here, which is the stable one: the paper's two curves are compared with one of ours.
SAME_HERE = {"S-PBGI": "PBGI"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """One curve of the paper beside ours."""

    ours: CurveSummary
    theirs: PublishedCurve

    @property
    def ratio(self) -> float:
        """Ours over theirs at the end: of regret, or of progress from the published start."""
        ours, theirs = float(self.ours.linear.median[-1]), float(self.theirs.median[-1])
        start = float(self.theirs.median[0]) if self.theirs.quantity == "best" else 0.0
        return (ours - start) / (theirs - start) if theirs != start else float("nan")

    @property
    def has_quartiles(self) -> bool:
        """Whether there are seeds enough here to say whether the median lies within the published quartiles."""
        return self.ours.n_seeds >= MANY_SEEDS

    @property
    def inside(self) -> bool:
        """Whether our final median lies within the published quartiles."""
        return bool(self.theirs.q25[-1] <= self.ours.linear.median[-1] <= self.theirs.q75[-1])

    @property
    def off(self) -> bool:
        """Whether the ratio is beyond the factor, either way."""
        return not 1.0 / FACTOR <= self.ratio <= FACTOR

    @property
    def no_worse(self) -> bool:
        """Whether our final median is as good as the published one, or better."""
        ours, theirs = (float(median[-1]) for median in (self.ours.linear.median, self.theirs.median))
        return final_order(self.theirs.quantity, ours) <= final_order(self.theirs.quantity, theirs)

    @property
    def better(self) -> bool:
        """Whether our final median is the better one."""
        difference = self.ours.linear.median[-1] - self.theirs.median[-1]
        return bool(difference > 0) if self.theirs.quantity == "best" else bool(difference < 0)


@dataclass(frozen=True)
class Winner:
    """Who is best on a panel at the end of the budget, among the policies that both the paper and we have."""

    panel: Panel
    theirs: str
    ours: str
    n_policies: int


def compare(curves: Iterable[CurveSummary], variant: str = "as_published", suffix: str = "") -> list[Comparison]:
    """All curves that are in the reference and, with this suffix, in our results, in the order of the paper.

    Those of one or two seeds are among them: they are points, see `CurveSummary.is_points`.
    """
    curves = list(curves)
    pairs = []
    for panel in published_panels():
        chosen = best_of_panel(curves, panel, variant)
        both = ((chosen.get(SAME_HERE.get(name, name) + suffix), theirs) for name, theirs in published(panel).items())
        pairs += [Comparison(ours, theirs) for ours, theirs in both if ours is not None]
    return pairs


def default_beside_best(curves: Iterable[CurveSummary]) -> list[Comparison]:
    """The package's default beside the published curve that ends best, on each panel where it was run."""
    curves = list(curves)
    both = ((best_of_panel(curves, panel).get(DEFAULT), best) for panel, best in best_published().items())
    return [Comparison(ours, best) for ours, best in both if ours is not None]


def _by_panel(comparisons: Iterable[Comparison]) -> dict[Panel, list[Comparison]]:
    """The main policies that have a median here, by panel, where there are two at least."""
    by_panel: dict[Panel, list[Comparison]] = {}
    for pair in comparisons:
        if pair.theirs.policy in POLICIES and not pair.ours.is_points:
            by_panel.setdefault(pair.theirs.panel, []).append(pair)
    return {panel: pairs for panel, pairs in by_panel.items() if len(pairs) > 1}


def winners(comparisons: Iterable[Comparison]) -> list[Winner]:
    """The best policy of each panel in the paper and here, among those that have a median here."""
    by_panel = _by_panel(comparisons)
    found = []
    for panel, pairs in by_panel.items():
        by_policy = {pair.theirs.policy: pair for pair in pairs}
        order = partial(final_order, pairs[0].theirs.quantity)
        theirs = _best({name: order(float(pair.theirs.median[-1])) for name, pair in by_policy.items()})
        ours = _best({name: order(float(pair.ours.linear.median[-1])) for name, pair in by_policy.items()})
        found.append(Winner(panel, theirs, ours, len(pairs)))
    return found


@dataclass(frozen=True)
class Standing:
    """The mean rank of a policy, 1 being best, over the panels where both the paper and we have it."""

    policy: str
    theirs: float
    ours: float
    n_panels: int


def standings(comparisons: Iterable[Comparison], cost_is_uniform: bool) -> list[Standing]:
    """Of each policy, best first here; policies of panels with uniform cost, or of the others."""
    by_panel = _by_panel(p for p in comparisons if (p.theirs.panel.cost == "uniform") == cost_is_uniform)
    ranks: dict[str, list[tuple[float, float]]] = {}
    for pairs in by_panel.values():
        order = partial(final_order, pairs[0].theirs.quantity)
        theirs = _ranks([order(float(pair.theirs.median[-1])) for pair in pairs])
        ours = _ranks([order(float(pair.ours.linear.median[-1])) for pair in pairs])
        for pair, both in zip(pairs, zip(theirs, ours, strict=True), strict=True):
            ranks.setdefault(pair.theirs.policy, []).append(both)
    means = [_mean_ranks(name, np.array(own)) for name, own in ranks.items()]
    return sorted(means, key=lambda standing: standing.ours)


def _mean_ranks(policy: str, ranks: Floats) -> Standing:
    theirs, ours = ranks.mean(axis=0)
    return Standing(policy, float(theirs), float(ours), len(ranks))


def _ranks(scores: list[float]) -> Floats:
    """1 for the lowest; equals share the mean of their ranks."""
    values = np.array(scores)
    below, equal = values[:, None] > values, values[:, None] == values
    return np.asarray(below.sum(axis=1) + (equal.sum(axis=1) + 1) / 2)


def _best(scores: Mapping[str, float]) -> str:
    return min(scores, key=lambda name: scores[name])


def final(band: Band) -> tuple[float, float, float]:
    """Median and quartiles at the end of the grid."""
    return float(band.median[-1]), float(band.q25[-1]), float(band.q75[-1])
