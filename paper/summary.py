"""From the records of runs to one summary per curve: statistics over seeds on the paper's grid."""

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
    rates_on_grid,
    seconds_on_grid,
)
from paper.policies import SMALLER_SEARCH
from paper.reference import Panel, Quantity, grid_for, published, published_rates, published_seconds
from paper.results import ENGINES, RESULTS, TIMING, TRACED, Store
from pbgi.arrays import Floats
from pbgi.errors import InvalidInputError

VARIANTS = ("as_published", "as_described")
MOST_POINTS = 2  # runs that are points, not a sample with a median
MANY_SEEDS = 8  # runs whose median is compared with quartiles


@dataclass(frozen=True, eq=False)
class CurveSummary:
    """One policy on one panel over its seeds.

    Attributes:
        experiment: The experiment that ran it.
        panel: The plot it belongs to.
        policy: As the reference names it.
        variant: "as_published" or "as_described" in the paper.
        search: How its policy looked for the next point, see `paper.policies.search_of`.
        quantity: "regret" or "best".
        grid: Amounts spent.
        step: Statistics of the best value so far, as it was.
        linear: The same with straight lines between evaluations, as published.
        seeds: Sorted.
        wall_seconds: Of all its runs together.
        iterations: Grid of `seconds`; empty but for the experiment of timing.
        seconds: Statistics of seconds per suggestion.
        rates: Statistics of the rate of PBGI-D after so many trials as `iterations` says, where it is traced.
        n_batched: How many of its runs were done many at a time (`paper.batched`).
    """

    experiment: str
    panel: Panel
    policy: str
    variant: str
    search: str
    quantity: Quantity
    grid: Floats
    step: Band
    linear: Band
    seeds: tuple[int, ...]
    wall_seconds: float
    iterations: Floats
    seconds: Band | None
    rates: Band | None
    n_batched: int

    @property
    def n_seeds(self) -> int:
        """How many runs it stands for."""
        return len(self.seeds)

    @property
    def is_points(self) -> bool:
        """Whether its runs are too few for a median."""
        return self.n_seeds <= MOST_POINTS


def seeds_of(curves: Iterable[CurveSummary]) -> str:
    """How many seeds some curves have, in words."""
    counts = sorted({curve.n_seeds for curve in curves})
    most = "1 seed" if counts[-1] == 1 else f"{counts[-1]} seeds"
    return most if len(counts) == 1 else f"{counts[0]} to {most}"


def read_summaries(folder: Path = RESULTS) -> list[CurveSummary]:
    """Summaries of all results in a folder."""
    return summarize(Store(folder).load())


def best_of_panel(
    curves: Iterable[CurveSummary], panel: Panel, variant: str = "as_published"
) -> dict[str, CurveSummary]:
    """The curve to show for each policy of a panel.

    Where the paper's text and its figures agree there are only runs "as_published"; they serve for both variants. Of
    searches the published one is shown, unless it has fewer than 8 seeds and the smaller one has more: never the one
    that fits. Of experiments that with most seeds.
    """
    chosen: dict[str, CurveSummary] = {}
    for curve in sorted(curves, key=lambda c: _preference(c, variant)):
        if curve.panel == panel and curve.variant in (variant, "as_published") and curve.experiment != ENGINES:
            chosen[curve.policy] = curve
    return chosen


def _preference(curve: CurveSummary, variant: str) -> tuple[bool, int, bool, int]:
    is_published = curve.search != SMALLER_SEARCH
    return curve.variant == variant, min(curve.n_seeds, MANY_SEEDS), is_published, curve.n_seeds


def panel_of(record: Record) -> Panel:
    """The panel a record belongs to."""
    return Panel.of(record["problem"], record["dim"], record["cost"])


def summarize(records: Iterable[Record]) -> list[CurveSummary]:
    """One summary per experiment, panel, policy, variant and search, sorted; of two records of a seed the later one."""
    by_curve: dict[tuple[str, Panel, str, str, str], dict[int, Record]] = defaultdict(dict)
    by_objective: dict[tuple[Panel, str, int], list[Record]] = defaultdict(list)
    for record in records:
        panel = panel_of(record)
        key = record["experiment"], panel, record["policy"], record["variant"], record["search"]
        by_curve[key][int(record["seed"])] = record
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
    search: str,
    runs: Mapping[int, Record],
    optima: Mapping[int, float | None],
) -> CurveSummary:
    if variant not in VARIANTS:
        raise InvalidInputError(f"variant must be one of {', '.join(VARIANTS)}; got {variant!r}")
    quantity = _quantity(panel, runs.values())
    grid = grid_for(panel, policy, _budget(runs.values()))
    timing = published_seconds(panel).get(policy) if experiment == TIMING else None
    traced = published_rates(panel).get(policy) if experiment == TRACED else None
    times = timing or traced
    return CurveSummary(
        experiment=experiment,
        panel=panel,
        policy=policy,
        variant=variant,
        search=search,
        quantity=quantity,
        grid=grid,
        step=band([plotted(run, grid, quantity, "step", optima[seed]) for seed, run in runs.items()]),
        linear=band([plotted(run, grid, quantity, "linear", optima[seed]) for seed, run in runs.items()]),
        seeds=tuple(sorted(runs)),
        wall_seconds=float(sum(record["wall_seconds"] for record in runs.values())),
        iterations=times.grid if times else np.array([]),
        seconds=band([seconds_on_grid(run, timing.grid) for run in runs.values()]) if timing else None,
        rates=band([rates_on_grid(run, traced.grid) for run in runs.values()]) if traced else None,
        n_batched=sum(record["engine"] != "numpy" for record in runs.values()),
    )
