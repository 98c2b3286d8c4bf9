"""Accuracy against seconds, and the regret at each exchange rate, of the policies of `instalments_lcdb.py`."""

from pathlib import Path

from instalments_lcdb import AT_A_RATE, RATES, Means

from pbgi.report import palette

STYLES = {  # color and dashes
    "instalments": (palette.BLUE, "-"),
    "one payment": (palette.VERMILLION, "-"),
    "EI per cost, same stop": (palette.GREEN, "--"),
    "cheapest first, same stop": (palette.PURPLE, ":"),
}
MARKS = {"train all": "s", "Hyperband": "D"}
# Where names are written, from their mark: some marks are close to each other.
BESIDE = {"Hyperband": (7, -4, "left"), "successive halving, 1 in 2": (-6, 5, "right")}


def draw_lcdb(means: Means, path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.use("Agg")
    with mpl.rc_context(palette.MATPLOTLIB):
        figure = Figure(figsize=(11, 4.4), layout="constrained")
        bought, regret = figure.subplots(1, 2)
        for name, at in means.items():
            if name in STYLES:
                color, dashes = STYLES[name]
                look = {"color": color, "linestyle": dashes, "marker": "o", "markersize": 4}
                points = [at[rate] for rate in RATES]
                bought.plot([p["seconds"] for p in points], [p["accuracy"] for p in points], **look)
                regret.plot(RATES, [1000 * p["regret"] for p in points], **look)
            elif name not in AT_A_RATE:
                one = at[RATES[0]]
                x, y, side = BESIDE.get(name, (6, -3, "left"))
                bought.plot(one["seconds"], one["accuracy"], MARKS.get(name, "^"), color=palette.GREY)
                place = (one["seconds"], one["accuracy"])
                bought.annotate(name, place, xytext=(x, y), textcoords="offset points", size=8, ha=side)
        bought.set(xscale="log", xlabel="mean seconds of training", ylabel="mean accuracy", title="What is bought")
        regret.set(
            xscale="log", yscale="log", xlabel="what a second costs, in accuracy", ylabel="net value lost x 1000"
        )
        regret.set_title("What is lost to the one best training")
        ends = [(1000 * means[name][RATES[-1]]["regret"], name, color) for name, (color, _) in STYLES.items()]
        palette.label_ends(regret, ends)
        figure.savefig(path, dpi=110)
