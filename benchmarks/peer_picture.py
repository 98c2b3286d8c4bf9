"""The picture of `bench_peers.py`: regret on each problem, and seconds per suggestion, from `results/peers.json`.

A line is the median regret over seeds after a quarter, half and all of the budget. Where ten contestants were run,
those of one package share a color, and the second of them is dashed.

    python benchmarks/peer_picture.py --out docs/images/peers.png
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from peer_tables import OURS, SHARES
from peers import PEERS

from pbgi.report import palette

mpl.use("Agg")
HERE = Path(__file__).parent
# Color and dashes.
STYLES = {
    "pbgi": (palette.BLUE, "-"),
    "random": (palette.GREY, ":"),
    "optuna-tpe": (palette.GREEN, "--"),
    "optuna-gp": (palette.VERMILLION, "-"),
    "ax": (palette.ORANGE, "-"),
    "smac": (palette.SKY, "-"),
    "skopt": (palette.PURPLE, "-"),
    "skopt-eips": (palette.PURPLE, "--"),
    "neps": (palette.INK, "-"),
    "neps-cost": (palette.INK, "--"),
}
LEAST = 1e-5  # of random search's regret: what is less is not shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=HERE / "results/peers.json", help="of bench_peers.py")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs/images/peers.png", help="the picture")
    arguments = parser.parse_args()
    draw(json.loads(arguments.json.read_text()), arguments.out)


def draw(summary: Mapping[str, Any], path: Path) -> None:
    """Write the PNG."""
    problems = list(dict.fromkeys(row["problem"] for row in summary["regrets"]))
    n_rows = (len(problems) + 2) // 2
    with mpl.rc_context(palette.MATPLOTLIB):
        figure = Figure(figsize=(10.4, 3.3 * n_rows), layout="constrained")
        places = figure.subplots(n_rows, 2, squeeze=False).ravel()
        for axes, problem in zip(places, problems, strict=False):
            curves(axes, [row for row in summary["regrets"] if row["problem"] == problem], problem)
        used = len(problems)
        if summary["seconds"]:
            bars(places[used], summary["seconds"])
            used += 1
        for axes in places[used:]:
            axes.axis("off")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100)


def curves(axes: Axes, rows: Sequence[Mapping[str, Any]], problem: str) -> None:
    """A line per contestant, with its name at its end."""
    budget = 100.0 * np.array(SHARES)
    ends = []
    lowest = LEAST * next((row["median_regret"][-1] for row in rows if row["peer"] == "random"), 0.0)
    for row in sorted(rows, key=lambda row: list(STYLES).index(row["peer"])):
        color, dashes = STYLES[row["peer"]]
        regrets = np.maximum(row["median_regret"], lowest)
        width = 3.2 if row["peer"] == OURS else 1.8
        axes.plot(budget, regrets, dashes, color=color, linewidth=width, marker="o", markersize=2.0 * width)
        ends.append((float(regrets[-1]), PEERS[row["peer"]].title, color))
    seeds = max(row["seeds"] for row in rows)
    axes.set(yscale="log", xlim=(22.0, 101.5), xlabel="share of the budget spent", ylabel="median regret")
    axes.set_title(f"{problem}, {seeds} runs of each")
    axes.set_xticks(budget, [f"{share:.0%}" for share in SHARES])
    axes.yaxis.set_minor_locator(NullLocator())
    palette.label_ends(axes, ends)


def bars(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Seconds per suggestion, a pair of bars per contestant."""
    peers = [peer for peer in reversed(STYLES) if any(peer in row["peers"] for row in rows)]
    height = 0.8 / max(len(rows), 1)
    for k, row in enumerate(rows):
        medians = [row["peers"].get(peer, {}).get("median", np.nan) for peer in peers]
        places = np.arange(len(peers)) - 0.4 + (k + 0.5) * height
        colors = [STYLES[peer][0] for peer in peers]
        axes.barh(places, medians, 0.92 * height, color=colors, alpha=0.45 + 0.55 * k)
        for place, median in zip(places, medians, strict=True):
            size = f"{median:.3f} s (d = {row['d']}, n = {row['n']})"
            axes.annotate(size, (median, place), xytext=(4, 0), textcoords="offset points", va="center", size=8)
    axes.set_yticks(range(len(peers)), [PEERS[peer].title for peer in peers])
    axes.set(xscale="log", xlabel="processor seconds")
    axes.set_title("Time per suggestion, d parameters and n trials")
    shown = [found["median"] for row in rows for found in row["peers"].values()]
    axes.set_xlim(0.3 * min(shown), 30.0 * max(shown))  # to the right the words
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(LogLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())


if __name__ == "__main__":
    main()
