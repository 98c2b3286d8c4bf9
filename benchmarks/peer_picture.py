"""The picture of `bench_peers.py`: regret against money spent on each problem, and seconds per suggestion.

Lines are medians over seeds. Contestants of one package share a color (of a palette that color-blind readers can tell
apart); the second of them is dashed. Needs matplotlib.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from peer_tables import OURS, best_at, of_kind
from peers import PEERS

mpl.use("Agg")
# Color and dashes.
STYLES = {
    "pbgi": ("#000000", "-"),
    "random": ("#999999", ":"),
    "optuna-tpe": ("#0072B2", "--"),
    "optuna-gp": ("#0072B2", "-"),
    "ax": ("#E69F00", "-"),
    "smac": ("#009E73", "-"),
    "skopt": ("#D55E00", "-"),
    "skopt-eips": ("#D55E00", "--"),
    "neps": ("#CC79A7", "-"),
    "neps-cost": ("#CC79A7", "--"),
}
GRID = np.linspace(0.05, 1.0, 96)  # shares of the budget
LEAST = 1e-5  # of random search's regret: what is less is not shown


def draw(runs: Sequence[Mapping[str, Any]], summary: Mapping[str, Any], path: Path) -> None:
    """Write the PNG."""
    quality = of_kind(runs, "quality")
    problems = list(dict.fromkeys(run["problem"] for run in quality))
    n_columns = (len(problems) + 1) // 2 + 1
    figure = Figure(figsize=(4.1 * n_columns, 7.0), layout="constrained")
    axes = figure.subplots(2, n_columns, squeeze=False)
    places = [axes[k // (n_columns - 1), k % (n_columns - 1)] for k in range(2 * (n_columns - 1))]
    for place in places[len(problems) :]:
        place.axis("off")
    for place, problem in zip(places, problems, strict=False):
        curves(place, [run for run in quality if run["problem"] == problem], problem)
    bars(axes[0, -1], summary["seconds"])
    legend(axes[1, -1], summary["regrets"])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def curves(axes: Axes, runs: Sequence[Mapping[str, Any]], problem: str) -> None:
    ends = {}
    for peer, (color, dashes) in STYLES.items():
        mine = [[best_at(run, share) for share in GRID] for run in runs if run["peer"] == peer]
        if mine:
            median = np.median(mine, axis=0)
            ends[peer] = median[-1]
            width = 2.6 if peer == OURS else 1.4
            axes.plot(100.0 * GRID, median, dashes, color=color, linewidth=width, drawstyle="steps-post")
    axes.set(title=problem, xlabel="budget spent, %", ylabel="median regret", yscale="log")
    if ends.get("random"):
        axes.set_ylim(bottom=max(0.7 * min(ends.values()), LEAST * ends["random"]))
    axes.grid(alpha=0.3, which="both", linewidth=0.5)


def bars(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Seconds per suggestion, a pair of bars per contestant."""
    peers = [peer for peer in reversed(STYLES) if any(peer in row["peers"] for row in rows)]
    height = 0.8 / max(len(rows), 1)
    for k, row in enumerate(rows):
        medians = [row["peers"].get(peer, {}).get("median", np.nan) for peer in peers]
        places = np.arange(len(peers)) - 0.4 + (k + 0.5) * height
        colors = [STYLES[peer][0] for peer in peers]
        axes.barh(places, medians, height, color=colors, alpha=0.55 + 0.45 * k)
    axes.set_yticks(range(len(peers)), [PEERS[peer].title for peer in peers])
    sizes = "; ".join(f"d = {row['d']}, n = {row['n']}" for row in rows)
    axes.set(title="Seconds per suggestion", xscale="log", xlabel=f"processor seconds\n({sizes}: darker)")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))  # within a decade the usual labels overlap
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, axis="x", linewidth=0.5)


def legend(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Names with their number of seeds."""
    axes.axis("off")
    for peer, (color, dashes) in STYLES.items():
        seeds = max((row["seeds"] for row in rows if row["peer"] == peer), default=0)
        if seeds:
            width = 2.6 if peer == OURS else 1.4
            axes.plot([], [], dashes, color=color, linewidth=width, label=f"{PEERS[peer].title} ({seeds} seeds)")
    axes.legend(loc="center", frameon=False)
