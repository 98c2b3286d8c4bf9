"""Accuracy against seconds, and the regret at each exchange rate, of the policies of `instalments_lcdb.py`."""

from pathlib import Path

from instalments_lcdb import AT_A_RATE, RATES, Means

COLORS = {  # apart for color-blind readers too
    "instalments": "#D55E00",
    "one payment": "#0072B2",
    "EI per cost, same stop": "#56B4E9",
    "cheapest first, same stop": "#009E73",
}
MARKS = {"train all": "s", "Hyperband": "D"}


def draw_lcdb(means: Means, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (bought, regret) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for name, at in means.items():
        if name in COLORS:
            color = COLORS[name]
            points = [at[rate] for rate in RATES]
            bought.plot([p["seconds"] for p in points], [p["accuracy"] for p in points], "o-", color=color, label=name)
            regret.plot(RATES, [1000 * p["regret"] for p in points], "o-", color=color, label=name)
        elif name not in AT_A_RATE:
            one = at[RATES[0]]
            bought.plot(one["seconds"], one["accuracy"], MARKS.get(name, "^"), color="#666666")
            bought.annotate(name, (one["seconds"], one["accuracy"]), xytext=(4, -9), textcoords="offset points", size=7)
    bought.set(xscale="log", xlabel="mean seconds of training", ylabel="mean accuracy", title="What is bought")
    regret.set(
        xscale="log",
        yscale="log",
        xlabel="what a second costs, in accuracy",
        ylabel="net value lost x 1000",
        title="What is lost to the one best training",
    )
    regret.legend(frameon=False)
    for axes in (bought, regret):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
