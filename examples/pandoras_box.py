"""Which suppliers to sample: a dozen boxes, a price on every look, and what another euro would buy.

A workshop needs one alloy. Twelve suppliers claim a strength, some with a long record, some with none. Testing a
supplier's alloy costs money, more for the exotic ones. How many to test, in which order, and when to stop?

    python examples/pandoras_box.py --out demo-output
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from pbgi.pandora import Box, Discrete, Gaussian, Solution, solve

# Name, belief about the strength (MPa above the minimum), cost of a test (euro).
SUPPLIERS: list[tuple[str, object, float]] = [
    ("Steady & Sons", Gaussian(62, 4), 90),
    ("Northforge", Gaussian(58, 9), 110),
    ("Alloyworks", Gaussian(55, 14), 150),
    ("Bergmann", Gaussian(60, 6), 80),
    ("Cheap Metals", Gaussian(45, 12), 30),
    ("Backyard Foundry", Gaussian(35, 22), 45),
    ("University lab", stats.lognorm(0.45, scale=50), 240),
    ("Startup (works or not)", Discrete([20, 105], [0.8, 0.2]), 180),
    ("Recycler", stats.uniform(30, 45), 35),
    ("Catalogue standard", Discrete([64], [1.0]), 20),
    ("Old test reports", [48, 57, 61, 61, 66, 72], 60),
    ("Exotic imports", stats.gamma(4.0, scale=15), 320),
]
NAMES = [name for name, _, _ in SUPPLIERS]
BUDGET = 400.0
STORY_SEED = 0


def boxes() -> list[Box]:
    return [Box(reward, cost) for _, reward, cost in SUPPLIERS]


def tell_the_plan(solution: Solution) -> None:
    print(f"Budget {BUDGET:.0f} euro in expectation: one euro is then worth {solution.cost_scale:.4f} MPa.")
    print(
        f"Expected strength {solution.value:.1f} MPa for an expected {solution.spend:.0f} euro. Test in this order:\n"
    )
    print("      supplier                  cost   worth up to (MPa)")
    for rank, box in enumerate(solution.order, start=1):
        cost = solution.boxes[box].expected_cost
        print(f"  {rank:2d}  {NAMES[box]:24s} {cost:5.0f}   {solution.indices[box]:8.1f}")
    print("\nStop as soon as a tested alloy is at least as strong as the next one on the list is worth.\n")


def tell_a_game(solution: Solution, seed: int) -> None:
    game = solution.play(np.random.default_rng(seed))
    print(f"One season (seed {seed}):")
    for opening in game.openings:
        print(f"  {NAMES[opening.box]:24s} {opening.reward:6.1f} MPa, best so far {opening.best:6.1f}")
    print(f"  stopped: {game.stop_reason}; spent {game.spent:.0f} euro\n")


def draw(budgets: np.ndarray, solutions: list[Solution], path: Path) -> None:
    """What a budget buys: the expected strength, what is spent of it, and the price of a euro."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from pbgi.report import palette

    strengths, chosen = [s.value for s in solutions], solve(boxes(), budget=BUDGET)
    tangent = chosen.value + chosen.cost_scale * (budgets - BUDGET)
    net = [s.value - chosen.cost_scale * s.spend for s in solutions]
    with mpl.rc_context(palette.MATPLOTLIB):
        figure, (value, spend) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.15, 1), layout="constrained")
        value.plot(budgets, strengths, color=palette.BLUE)
        value.plot(budgets, tangent, color=palette.VERMILLION, ls="--", lw=1.5)
        value.plot(budgets, net, color=palette.GREEN, ls="-.", lw=1.5)
        value.plot(BUDGET, chosen.value, "o", color=palette.VERMILLION, ms=7)
        value.set(xlabel="budget (euro)", ylabel="strength (MPa)", title="More money buys less and less")
        value.set(xlim=(0, budgets[-1]), ylim=(min(net) - 1, max(strengths) + 2))
        words = f"what a euro buys\nat {BUDGET:.0f} euro"
        value.text(BUDGET + 40, chosen.value - 0.5, words, color=palette.VERMILLION, va="top")
        ends = [
            (strengths[-1], "expected\nstrength", palette.BLUE),
            (net[-1], "less what the\nmoney is worth", palette.GREEN),
        ]
        palette.label_ends(value, ends, gap=0.15)
        spend.plot(budgets, budgets, color=palette.GREY, ls=":", lw=1.5)
        spend.plot(budgets, [s.spend for s in solutions], color=palette.BLUE)
        spend.set(xlabel="budget (euro)", ylabel="euro", xlim=(0, budgets[-1]), ylim=(0, budgets[-1]))
        spend.set_title("How much of it is spent")
        ends = [
            (budgets[-1], "the whole\nbudget", palette.GREY),
            (solutions[-1].spend, "expected\nspend", palette.BLUE),
        ]
        palette.label_ends(spend, ends, gap=0.15)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Play a Pandora's Box problem and draw it.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the picture")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    solution = solve(boxes(), budget=BUDGET)
    tell_the_plan(solution)
    tell_a_game(solution, seed=STORY_SEED)
    costs = [cost for _, _, cost in SUPPLIERS]
    budgets = np.linspace(min(costs), 1.1 * sum(costs), 24)
    solutions = []
    for done, budget in enumerate(budgets, start=1):
        solutions.append(solve(boxes(), budget=float(budget)))
        print(f"\rsolving for {len(budgets)} budgets: {done}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    picture = out / "pandoras_box.png"
    draw(budgets, solutions, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
