"""The picture of `quality_real.py`: what a budget buys on real tuning tables, from `results/real.json`.

A line is the geometric mean over tables of a contestant's median regret, in units of random search's at the end of the
budget. Shown are the contestants with the most seeds. A median below a thousandth of random search's counts as that.

    python benchmarks/real_picture.py --out docs/images/real.png
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from peer_tables import FLOOR, OURS, SHARES

from pbgi.report import palette

HERE = Path(__file__).parent
RANDOM = "random"
LOOKS = {  # words at the end of a line, color, width and dashes
    "pbgi": ("pbgi", palette.BLUE, 3.2, "-"),
    "optuna-gp": ("Optuna, Gaussian process", palette.VERMILLION, 1.8, "-"),
    "optuna-tpe": ("Optuna, TPE (its default)", palette.GREEN, 1.8, "--"),
    "random": ("random search", palette.GREY, 1.8, ":"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=HERE / "results/real.json", help="of quality_real.py")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs/images/real.png", help="the picture")
    arguments = parser.parse_args()
    with mpl.rc_context(palette.MATPLOTLIB):
        figure = Figure(figsize=(8.6, 4.3), layout="constrained")
        draw(figure.subplots(), json.loads(arguments.json.read_text()))
        figure.savefig(arguments.out, dpi=150)


def draw(axes: Axes, summary: Mapping[str, Any]) -> None:
    """A line for each contestant, and how far ours had come when the others were done."""
    lines, n_tables, n_seeds = relative_regrets(summary)
    budget = 100.0 * np.array(SHARES)
    for peer, regrets in lines.items():
        _, color, width, dashes = LOOKS[peer]
        axes.plot(budget, regrets, dashes, color=color, linewidth=width, marker="o", markersize=2.2 * width)
    lowest = min(regrets.min() for regrets in lines.values())
    axes.set(yscale="log", xlim=(22.0, 101.5), ylim=(0.7 * lowest, 1.3 * max(r.max() for r in lines.values())))
    axes.set(xlabel="share of the budget spent", ylabel="regret; 1 is where random search ends")
    axes.set_xticks(budget, [f"{share:.0%}" for share in SHARES])
    axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.set_title(f"{n_tables} real tuning tasks, {n_seeds} runs of each: what the same training time finds")
    palette.label_ends(axes, [(r[-1], LOOKS[peer][0], LOOKS[peer][1]) for peer, r in lines.items()])


def relative_regrets(summary: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], int, int]:
    """By contestant the regret at each share; the number of tables, and of seeds."""
    rows = {(row["problem"], row["peer"]): row for row in summary["regrets"]}
    n_seeds = max(row["seeds"] for row in rows.values())
    tables = list(dict.fromkeys(problem for problem, _ in rows))
    found = {}
    for peer in LOOKS:
        if all(rows.get((table, peer), {}).get("seeds") == n_seeds for table in tables):
            logs = [np.log(np.maximum(_shares_of_random(rows, table, peer), FLOOR)) for table in tables]
            found[peer] = np.exp(np.mean(logs, axis=0))
    if OURS not in found or RANDOM not in found:
        raise SystemExit(f"{OURS} and {RANDOM} must have {n_seeds} runs of each table; run benchmarks/quality_real.py")
    return found, len(tables), n_seeds


def _shares_of_random(rows: Mapping[tuple[str, str], Any], table: str, peer: str) -> np.ndarray:
    end = rows[table, RANDOM]["median_regret"][-1]
    return np.asarray(rows[table, peer]["median_regret"], dtype=np.float64) / float(end)


if __name__ == "__main__":
    main()
