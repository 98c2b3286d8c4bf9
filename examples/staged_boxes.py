"""Which prototypes to build, and how far: boxes that are paid in instalments and may be given up after each.

A workshop wants the best of eight designs. A sketch, a model and a prototype each cost more than the one before, and
each says more about what the design will be worth. Whoever pays for all three at once pays for many that a sketch would
have ruled out.

    python examples/staged_boxes.py --out demo-output
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from pbgi.pandora import Box, Gaussian, StagedBox, solve
from pbgi.report import palette

STAGES = ["sketch", "model", "prototype"]
COSTS = np.array([1.0, 5.0, 30.0])
N_DESIGNS = 8
# What is expected of each design, and by how much each stage moves it.
MEANS = np.linspace(0.0, 20.0, N_DESIGNS)
STDS = np.linspace(1.0, 0.6, N_DESIGNS)[:, None] * np.array([14.0, 12.0, 6.0])
COST_SCALE = 0.2
STORY_SEED = 2


def staged() -> list[StagedBox]:
    return [StagedBox(float(mean), stds, COSTS) for mean, stds in zip(MEANS, STDS, strict=True)]


def at_once() -> list[Box]:
    whole = np.linalg.norm(STDS, axis=1)
    return [Box(Gaussian(float(mean), float(std)), float(COSTS.sum())) for mean, std in zip(MEANS, whole, strict=True)]


def tell(seed: int) -> None:
    plan, single = solve(staged(), cost_scale=COST_SCALE), solve(at_once(), cost_scale=COST_SCALE)
    print(f"A unit of cost is worth {COST_SCALE} of value.")
    for name, solution in (("all three stages at once", single), ("stage by stage", plan)):
        print(f"  {name:25s} value {solution.value:5.1f} for {solution.spend:5.1f}, net {solution.net:5.1f}")
    game = plan.play(np.random.default_rng(seed))
    print(f"\nOne year (seed {seed}):")
    for paid in game.openings:
        ended = "" if paid.reward is None else f": worth {paid.reward:.1f}"
        print(
            f"  design {paid.box}, {STAGES[paid.stage - 1]:9s} for {paid.cost:2.0f}, expected {paid.state:5.1f}{ended}"
        )
    print(f"  stopped: {game.stop_reason}; spent {game.spent:.0f}")


def draw(path: Path) -> None:
    """One design seen from a sure value: what it may become, and where it is given up; then what budgets buy."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(palette.MATPLOTLIB):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        paths, buys = figure.subplots(1, 2)
        draw_paths(paths)
        budgets = np.linspace(40.0, 200.0, 9)
        ends = []
        for boxes, name, color in (
            (staged(), "stage by stage", palette.BLUE),
            (at_once(), "all at once", palette.VERMILLION),
        ):
            values = [solve(boxes, budget=float(b)).value for b in budgets]
            buys.plot(budgets, values, color=color)
            ends.append((values[-1], name, color))
        buys.set(xlabel="budget", ylabel="expected value of the best design", title="What a budget buys")
        palette.label_ends(buys, ends)
        figure.savefig(path, dpi=110)


def draw_paths(axes: Any) -> None:
    """Sixty times the same design, as its stages are paid."""
    design, kept = len(MEANS) - 1, 25.0
    # What a design must be expected to be worth to go on beside a sure value: that, less what the stages left add.
    bounds = [
        kept - solve([StagedBox(0.0, STDS[design][k:], COSTS[k:])], cost_scale=COST_SCALE).indices[0] for k in range(3)
    ]
    rng = np.random.default_rng(STORY_SEED)
    stages = np.arange(4)
    for _ in range(60):
        mean = MEANS[design] + np.concatenate([[0.0], np.cumsum(STDS[design] * rng.standard_normal(3))])
        given_up = np.flatnonzero(mean[:3] < bounds)
        end = int(given_up[0]) if given_up.size else 3
        color = palette.BLUE if end == 3 else palette.GREY
        axes.plot(stages[: end + 1], mean[: end + 1], color=color, lw=1.2 if end == 3 else 0.8)
        axes.plot(stages[end], mean[end], "o" if end == 3 else "x", color=color, ms=4)
    axes.plot(stages[:3], bounds, "v-", color=palette.VERMILLION)
    axes.axhline(kept, color=palette.INK, ls=":", lw=1)
    axes.text(3.1, 6.0, "a design that is expected\nto be below is given up", color=palette.VERMILLION, ha="right")
    axes.text(3.1, kept - 0.6, "in hand", va="top", ha="right")
    axes.set_xticks(
        stages, ["nothing yet", *(f"{name}\nfor {cost:.0f}" for name, cost in zip(STAGES, COSTS, strict=True))]
    )
    axes.set(xlabel="paid for this design", ylabel="expected value", title="Few designs are paid to the end")


def main() -> None:
    parser = argparse.ArgumentParser(description="Boxes paid in instalments, and a picture of them.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the picture")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    tell(STORY_SEED)
    draw(out / "staged_boxes.png")
    print(f"picture: {out / 'staged_boxes.png'}")


if __name__ == "__main__":
    main()
