"""Every sample has a price: take one more only while it is expected to be worth it.

A baker looks for the oven temperature and time that waste the fewest loaves. A trial bake costs energy, more for hot
and long ones, and a point of waste (in percent) is worth money. There is no budget: the exchange rate alone says when
to stop.

    python examples/cost_per_sample.py --euro-per-point 20
    python examples/cost_per_sample.py --out demo-output          with a picture; needs Matplotlib
"""

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import pbgi

SPACE = {"temperature": pbgi.Float(160.0, 280.0), "minutes": pbgi.Float(15.0, 90.0, log=True)}


def energy_price(params: dict) -> float:
    """What a bake costs, in euro: known beforehand."""
    return 0.004 * params["minutes"] * (params["temperature"] - 100.0) / 10.0


def waste(params: dict) -> float:
    """Percent of the loaves thrown away; what a real bakery would have to bake to find out."""
    heat = (params["temperature"] - 221.0) / 25.0
    length = math.log(params["minutes"] / 38.0) / 0.35
    return 4.0 + 6.0 * (1.0 - math.exp(-0.5 * (heat**2 + length**2 + heat * length)))


def show(optimizer: pbgi.Optimizer, trial: pbgi.Trial) -> None:
    point = f"{trial.params['temperature']:5.1f} C, {trial.params['minutes']:4.1f} min"
    paid = f"{trial.charged:.2f} euro"
    print(f"  bake {trial.number:2d}: {point}, {paid}, waste {trial.value:.3f} %, best {optimizer.best.value:.3f} %")


def explain(result: pbgi.Result, euro_per_point: float) -> None:
    reason, best = result.stop_reason, result.params
    print(f"\nBest: {best['temperature']:.1f} C for {best['minutes']:.1f} minutes wastes {result.fun:.3f} %.")
    print(f"{result.nfev} bakes cost {result.spent:.2f} euro.")
    print(f"Stopped by {reason.rule}: {reason}.")
    if reason.rule == "GittinsStop":
        cost, loss = reason.numbers["predicted_cost"], -reason.numbers["net_gain"]
        print(
            f"In words: the most promising bake would cost {cost:.2f} euro. What it is expected to save is worth "
            f"{cost - loss * euro_per_point:.2f} euro. So no more baking."
        )


def draw(result: pbgi.Result, path: Path) -> None:
    """The bakes on the map that nobody has, and what they bought."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from pbgi.report import draw_best_value, palette

    with mpl.rc_context(palette.MATPLOTLIB):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        where, when = figure.subplots(1, 2)
        draw_bakes(where, result)
        draw_best_value(when, [result], unit="euro", color=palette.BLUE)
        when.axvline(result.spent, color=palette.VERMILLION, ls="--")
        words = {"s": "not worth another bake ", "color": palette.VERMILLION, "ha": "right", "va": "top"}
        when.text(result.spent, when.get_ylim()[1], **words)
        when.set(ylabel="least waste so far (%)", title="It stops by itself")
        figure.savefig(path, dpi=110)


def draw_bakes(axes: Any, result: pbgi.Result) -> None:
    """Every bake on a map of waste."""
    import numpy as np

    from pbgi.report import palette

    temperatures, minutes = np.linspace(160, 280, 80), np.geomspace(15, 90, 80)
    wasted = [[waste({"temperature": t, "minutes": m}) for t in temperatures] for m in minutes]
    shades = axes.contourf(temperatures, minutes, wasted, levels=12, cmap="Greys", alpha=0.7)
    axes.figure.colorbar(shades, ax=axes, label="waste (%)")
    points = [(t.params["temperature"], t.params["minutes"], t.charged) for t in result.trials]
    x, y, paid = zip(*points, strict=True)
    axes.scatter(x, y, s=[90 * cost for cost in paid], facecolor=palette.BLUE, edgecolor="white", alpha=0.8)
    axes.plot(result.params["temperature"], result.params["minutes"], "*", color=palette.VERMILLION, ms=16, mec="white")
    title = f"{result.nfev} bakes; large circles cost more, the star is the best"
    axes.set(xlabel="temperature (C)", ylabel="minutes", yscale="log", title=title)
    axes.set_yticks([15, 30, 60, 90], labels=["15", "30", "60", "90"])
    axes.minorticks_off()
    axes.grid(visible=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Search with a price on every sample, and stop when it no longer pays."
    )
    parser.add_argument("--euro-per-point", type=float, default=20.0, help="what one percent less waste is worth")
    parser.add_argument("--max-trials", type=int, default=60, help="give up after so many bakes, worth it or not")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for a picture")
    args = parser.parse_args()
    if args.euro_per_point <= 0:
        sys.exit("--euro-per-point must be positive: without a worth there is nothing to weigh the costs against")

    cost_scale = 1.0 / args.euro_per_point  # percent of waste that one euro is worth
    print(f"One percent of waste is worth {args.euro_per_point:g} euro; so one euro is worth {cost_scale:g} percent.\n")
    result = pbgi.minimize(
        waste,
        SPACE,
        cost=pbgi.KnownCost(energy_price),
        policy=pbgi.PBGI(cost_scale),
        # Naming the rule keeps it beside the limit on trials: `stop` replaces what the policy would bring along.
        stop=pbgi.GittinsStop(cost_scale) | pbgi.MaxTrials(args.max_trials),
        callbacks=[show],
        seed=args.seed,
    )
    explain(result, args.euro_per_point)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        draw(result, args.out / "cost_per_sample.png")


if __name__ == "__main__":
    main()
