"""From the records of runs to summaries, and from summaries to the page: `python -m paper table`.

`results/raw/<experiment>.jsonl` (one run per line) is read if it is there, condensed into `results/runs/`, which is
committed, and merged into the summaries `results/<experiment>.json`; `docs/paper.md` is made from the summaries alone.
A checkout without raw results can redo the page and the figures, and go on where the last campaign ended.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from paper.condensed import keep
from paper.curves import Record, band, best_known, best_so_far, plotted, seconds_on_grid, suggestion_seconds
from paper.page import EXPLANATIONS, LESSONS, page, read_explanations
from paper.reference import Panel, Quantity, grid_for, published, published_seconds
from paper.store import Store
from paper.summary_file import RESULTS, CurveSummary, read_summaries, write_summaries
from pbgi.errors import InvalidInputError

DOCS = Path(__file__).parents[1] / "docs"
VARIANTS = ("as_published", "as_described")


def panel_of(record: Record) -> Panel:
    """The panel a record belongs to."""
    return Panel.of(record["problem"], record["dim"], record["cost"])


def summarise(records: Iterable[Record]) -> list[CurveSummary]:
    """One summary per experiment, panel, policy and variant; of two records of a seed the later one counts."""
    by_curve: dict[tuple[str, Panel, str, str], dict[int, Record]] = defaultdict(dict)
    by_objective: dict[tuple[Panel, str, int], list[Record]] = defaultdict(list)
    for record in records:
        panel = panel_of(record)
        by_curve[record["experiment"], panel, record["policy"], record["variant"]][int(record["seed"])] = record
        by_objective[panel, record["variant"], int(record["seed"])].append(record)
    optima = {objective: best_known(sharing) for objective, sharing in by_objective.items()}
    return [
        _summary(*key, runs, {seed: optima[key[1], key[3], seed] for seed in runs}) for key, runs in by_curve.items()
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
    timing = published_seconds(panel).get(policy)
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


def main(argv: Sequence[str] | None = None) -> int:
    """Summarise what raw results there are and write the page; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m paper table", description=main.__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the summaries; raw results in raw/")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0], help="which runs to compare")
    arguments = parser.parse_args(argv)
    raw, runs = arguments.results / "raw", arguments.results / "runs"
    records = Store(raw, runs).load()
    for written in [*keep(records, runs), *write_summaries(summarise(records), arguments.results)]:
        print(f"wrote {written}")
    text = page(
        read_summaries(arguments.results),
        variant=arguments.variant,
        explanations=read_explanations(EXPLANATIONS),
        lessons=LESSONS.read_text(encoding="utf-8"),
        images=arguments.docs / "images" / "paper",
    )
    arguments.docs.mkdir(parents=True, exist_ok=True)
    (arguments.docs / "paper.md").write_text(text, encoding="utf-8")
    print(f"wrote {arguments.docs / 'paper.md'}")
    return 0
