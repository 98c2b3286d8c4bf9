"""The idea in a picture: boxes with prices, what each is worth opening for, and where to stop.

Each box is a network that could be trained: what it costs, and what score it is believed to reach. Indices, order and
stop are those of `pbgi.pandora`, the prizes those of one game.

    python examples/draw_idea.py --out demo-output
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pbgi.pandora import Box, Game, Gaussian, Solution, solve
from pbgi.report import palette

# Name, belief about the score, price of training it (dollars).
NETWORKS = (
    ("tiny", Gaussian(80.0, 3.0), 1.0),
    ("small", Gaussian(82.0, 5.0), 3.0),
    ("wide", Gaussian(83.0, 5.0), 10.0),
    ("deep", Gaussian(80.0, 11.0), 12.0),
    ("huge", Gaussian(88.0, 5.0), 60.0),
)
COST_SCALE = 0.1  # points of score that a dollar is worth
SEED = 0
WIDEST = 0.36  # half the width of a belief


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the idea of Pandora's Box.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the picture")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    solution = solve([Box(belief, price) for _, belief, price in NETWORKS], cost_scale=COST_SCALE)
    game = solution.play(np.random.default_rng(SEED))
    with mpl.rc_context(palette.MATPLOTLIB | {"axes.grid": False}):
        figure = Figure(figsize=(8.6, 4.6), layout="constrained")
        draw(figure.subplots(), solution, game)
        figure.savefig(out / "idea.png", dpi=150)
    opened = ", ".join(NETWORKS[opening.box][0] for opening in game.openings)
    print(
        f"trained: {opened}; kept a score of {game.best:.1f} for {game.spent:.0f} dollars; picture: {out / 'idea.png'}"
    )


def draw(axes: Axes, solution: Solution, game: Game) -> None:
    """Boxes from the highest index to the lowest, the prizes that were found, and the line that says stop."""
    lowest, highest = 60.0, 112.0
    axes.set(xlim=(-0.6, len(NETWORKS) - 0.42), ylim=(lowest, highest), ylabel="score, as believed")
    axes.set_yticks(range(60, 111, 10))
    for place, box in enumerate(solution.order):
        draw_box(axes, place, NETWORKS[box][1], float(solution.indices[box]))
    axes.annotate("index", (-0.4, solution.indices[solution.order[0]] + 0.8), color=palette.GREEN, va="bottom")
    n_opened = len(game.openings)
    for place, opening in enumerate(game.openings):
        axes.plot(place, opening.reward, "o", color=palette.BLUE, ms=9, zorder=5)
        axes.text(place + 0.07, opening.reward - 0.9, f"{opening.reward:.0f}", color=palette.BLUE, va="top", zorder=5)
    best = [opening.best for opening in game.openings]
    axes.step([*range(n_opened), len(NETWORKS) - 0.5], [*best, best[-1]], where="post", color=palette.BLUE, lw=2.0)
    palette.label_ends(axes, [(best[-1], "best prize\nso far", palette.BLUE)])
    axes.axvline(n_opened - 0.5, color=palette.VERMILLION, ls="--", lw=1.6)
    words = "stop: what is found is worth\nmore than any closed box"
    axes.text(n_opened - 0.45, highest, words, color=palette.VERMILLION, va="top")
    axes.text(n_opened - 0.55, highest, "opened, highest\nindex first", va="top", ha="right")
    names = [f"{NETWORKS[box][0]}\nprice ${NETWORKS[box][2]:g}".replace("$", r"\$") for box in solution.order]
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)


def draw_box(axes: Axes, place: int, belief: Gaussian, index: float) -> None:
    """What is believed of its prize, as wide as it is likely; and the sure prize that the box is worth as much as."""
    values = belief.mean + belief.std * np.linspace(-2.8, 2.8, 201)
    half = WIDEST * np.exp(-0.5 * ((values - belief.mean) / belief.std) ** 2)
    axes.fill_betweenx(values, place - half, place + half, color=palette.GREY, alpha=0.3, lw=0)
    axes.hlines(index, place - 0.4, place + 0.3, color=palette.GREEN, lw=3, zorder=3)
    axes.text(place + 0.32, index + 0.4, f"{index:.0f}", color=palette.GREEN, va="top")


if __name__ == "__main__":
    main()
