"""From the records of runs to one summary per curve: statistics over seeds on the paper's grid."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paper.curves import (
    Band,
    Record,
    band,
    best_known,
    best_so_far,
    plotted,
    seconds_on_grid,
    suggestion_seconds,
)
from paper.reference import Panel, Quantity, grid_for, published, published_seconds
from paper.results import RESULTS, TIMING, Store
from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError

VARIANTS = ("as_published", "as_described")


@dataclass(frozen=True, eq=False)
class CurveSummary:
    """One policy on one panel over its seeds.

    Attributes:
        experiment: The experiment that ran it.
        panel: The plot it belongs to.
        policy: As the reference names it.
        variant: "as_published" or "as_described" in the paper.
        quantity: "regret" or "best".
        grid: Amounts spent.
        step: Statistics of the best value so far, as it was.
        linear: The same with straight lines between evaluations, as published.
        seeds: Sorted.
        wall_seconds: Of all its runs together.
        suggest_seconds: Median over all suggestions of all seeds.
        iterations: Grid of `seconds`; empty but for the experiment of timing.
        seconds: Statistics of seconds per suggestion.
    """

    experiment: str
    panel: Panel
    policy: str
    variant: str
    quantity: Quantity
    grid: Floats
    step: Band
    linear: Band
    seeds: tuple[int, ...]
    wall_seconds: float
    suggest_seconds: float
    iterations: Floats
    seconds: Band | None

    @property
    def n_seeds(self) -> int:
        """How many runs it stands for."""
        return len(self.seeds)


def read_summaries(folder: Path = RESULTS) -> list[CurveSummary]:
    """Summaries of all results in a folder."""
    return summarize(Store(folder).load())


def best_of_panel(
    curves: Iterable[CurveSummary], panel: Panel, variant: str = "as_published"
) -> dict[str, CurveSummary]:
    """The curve to show for each policy of a panel, that with most seeds.

    Where the paper's text and its figures agree there are only runs "as_published"; they serve for both variants.
    """
    chosen: dict[str, CurveSummary] = {}
    for curve in sorted(curves, key=lambda c: (c.variant == variant, c.n_seeds)):
        if curve.panel == panel and curve.variant in (variant, "as_published"):
            chosen[curve.policy] = curve
    return chosen


def panel_of(record: Record) -> Panel:
    """The panel a record belongs to."""
    return Panel.of(record["problem"], record["dim"], record["cost"])


def summarize(records: Iterable[Record]) -> list[CurveSummary]:
    """One summary per experiment, panel, policy and variant, sorted; of two records of a seed the later one counts."""
    by_curve: dict[tuple[str, Panel, str, str], dict[int, Record]] = defaultdict(dict)
    by_objective: dict[tuple[Panel, str, int], list[Record]] = defaultdict(list)
    for record in records:
        panel = panel_of(record)
        by_curve[record["experiment"], panel, record["policy"], record["variant"]][int(record["seed"])] = record
        by_objective[panel, record["variant"], int(record["seed"])].append(record)
    optima = {objective: best_known(sharing) for objective, sharing in by_objective.items()}
    return [
        _summary(*key, runs, {seed: optima[key[1], key[3], seed] for seed in runs})
        for key, runs in sorted(by_curve.items(), key=lambda item: item[0])
    ]


def _budget(runs: Iterable[Record]) -> float:
    """What the runs of a curve may spend: as their records say, else what all of them have spent."""
    return min(float(run["budget"]) if run.get("budget") else float(best_so_far(run)[0][-1]) for run in runs)


def _quantity(panel: Panel, runs: Iterable[Record]) -> Quantity:
    """What the paper plots on this panel; elsewhere regret, if there is an optimum."""
    for curve in published(panel).values():
        return curve.quantity
    return "best" if any(record["optimum"] is None for record in runs) else "regret"


def _summary(
    experiment: str,
    panel: Panel,
    policy: str,
    variant: str,
    runs: Mapping[int, Record],
    optima: Mapping[int, float | None],
) -> CurveSummary:
    if variant not in VARIANTS:
        raise InvalidInputError(f"variant must be one of {', '.join(VARIANTS)}; got {variant!r}")
    quantity = _quantity(panel, runs.values())
    grid = grid_for(panel, policy, _budget(runs.values()))
    seconds = np.concatenate([suggestion_seconds(record) for record in runs.values()])
    # Of other experiments than that of timing only the median is kept, which would look like a flat curve.
    timing = published_seconds(panel).get(policy) if experiment == TIMING else None
    return CurveSummary(
        experiment=experiment,
        panel=panel,
        policy=policy,
        variant=variant,
        quantity=quantity,
        grid=grid,
        step=band([plotted(run, grid, quantity, "step", optima[seed]) for seed, run in runs.items()]),
        linear=band([plotted(run, grid, quantity, "linear", optima[seed]) for seed, run in runs.items()]),
        seeds=tuple(sorted(runs)),
        wall_seconds=float(sum(record["wall_seconds"] for record in runs.values())),
        suggest_seconds=float(np.median(seconds)) if len(seconds) else math.nan,
        iterations=timing.grid if timing else np.array([]),
        seconds=band([seconds_on_grid(run, timing.grid) for run in runs.values()]) if timing else None,
    )
