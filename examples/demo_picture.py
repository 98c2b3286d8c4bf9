"""The picture of a race: the best loss against the seconds, what each trial cost, and other races behind it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from demo_races import PBGI, RANDOM, Course, Finished, Races, shown

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from pbgi.report import palette

COLORS = {PBGI: palette.BLUE, RANDOM: palette.VERMILLION}
OFF_THE_PICTURE = 1e3
TIMES_WORST = 3.0  # losses shown, of the worse of the two at the end: what lies above was over in a moment


def draw(trials: Mapping[str, Sequence[Finished]], budget: float, seed: int, others: Races | None, path: Path) -> None:
    """Draw one race.

    Args:
        trials: Those of each contestant, in order.
        budget: Of each, in seconds.
        seed: Of this race.
        others: Races with the same budget to draw behind it, or None.
        path: Of the PNG.
    """
    figure = plt.figure(figsize=(11, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[5, 1], width_ratios=[1.15, 1])
    progress, both = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])
    spending = figure.add_subplot(grid[1, 0], sharex=progress)
    draw_progress(progress, trials, budget, others)
    draw_spending(spending, trials)
    draw_trials(both, trials)
    for axes in (progress, both):
        axes.grid(visible=True, color=palette.SOFT_GRID, lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"A neural network for handwritten digits, {budget:g} s of training for each search (seed {seed})")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_progress(axes: Axes, trials: Mapping[str, Sequence[Finished]], budget: float, others: Races | None) -> None:
    """The best loss so far, before the quartiles of other races."""
    courses = {name: Course.of(own) for name, own in trials.items()}
    for name, course in courses.items():
        draw_course(axes, course, budget, color=COLORS[name], lw=3.0, label=f"{name}: {shown(course.loss).strip()}")
    if others:
        draw_others(axes, others)
    axes.legend(frameon=False, loc="upper right")
    own = [course.loss for course in courses.values() if course.steps] or [1.0]
    behind = [course.loss for race in others.races for course in race.courses().values()] if others else []
    axes.set(xlim=(0.0, 1.01 * budget), ylabel="best log loss so far", title="What the seconds bought")
    axes.set(yscale="log", ylim=(0.94 * min(own + behind), TIMES_WORST * max(own)))
    axes.tick_params(labelbottom=False)
    round_numbers(axes.yaxis, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0))


def draw_others(axes: Axes, others: Races) -> None:
    """Of each contestant, where the middle half of the races was."""
    seconds = np.linspace(0.0, others.budget, 601)
    for name, color in COLORS.items():
        courses = [race.courses()[name] for race in others.races]
        losses = [[course.loss_after(second) for second in seconds] for course in courses]
        # Of an even number it takes a loss that there was, for the mean with one that is infinite says nothing.
        low, high = np.minimum(np.quantile(losses, (0.25, 0.75), axis=0, method="inverted_cdf"), OFF_THE_PICTURE)
        axes.fill_between(seconds, low, high, color=color, alpha=0.18, lw=0, step="post", zorder=1)
    told = f"the middle half of {len(others.races)} races (pbgi {others.version})"
    axes.fill_between([], [], [], color="grey", alpha=0.3, lw=0, label=told)


def draw_course(axes: Axes, course: Course, budget: float, **style: object) -> None:
    seconds, losses = [spent for spent, _ in course.steps], [loss for _, loss in course.steps]
    axes.step([*seconds, budget], [*losses, course.loss], where="post", solid_joinstyle="miter", **style)


def draw_spending(axes: Axes, trials: Mapping[str, Sequence[Finished]]) -> None:
    """A bar for each contestant, cut into its trials; hatched where a trial has no loss."""
    for row, (name, own) in enumerate(trials.items()):
        for trial in own:
            lost = {"facecolor": "white", "hatch": "/////", "edgecolor": COLORS[name], "lw": 0.5}
            had = {"facecolor": COLORS[name], "edgecolor": "white", "lw": 0.4}
            axes.barh(
                row, trial.cost, left=trial.spent - trial.cost, height=0.7, **(lost if trial.loss is None else had)
            )
    axes.set_yticks(range(len(trials)), list(trials))
    axes.set(ylim=(len(trials) - 0.5, -0.5), xlabel="training so far (s), each trial a block; hatched: no loss")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def draw_trials(axes: Axes, trials: Mapping[str, Sequence[Finished]]) -> None:
    """What each trial cost and what its loss was."""
    for name, own in trials.items():
        done = [trial for trial in own if trial.loss is not None]
        costs, losses = [trial.cost for trial in done], [trial.loss for trial in done]
        axes.plot(costs, losses, "o", color=COLORS[name], ms=5.5, alpha=0.65, mew=0, label=f"{name}: {len(own)} trials")
        lost = [trial.cost for trial in own if trial.loss is None]
        axes.plot(lost, [0.97] * len(lost), "x", color=COLORS[name], ms=7, mew=2, transform=axes.get_xaxis_transform())
    costs = [trial.cost for own in trials.values() for trial in own] or [1.0]
    losses = [trial.loss for own in trials.values() for trial in own if trial.loss is not None] or [1.0]
    axes.set(xscale="log", xlim=(0.8 * min(costs), 1.25 * max(costs)), xlabel="training of one trial (s)")
    axes.set(yscale="log", ylim=(0.85 * min(losses), 1.6 * max(losses)), ylabel="log loss")
    axes.set_title("What each trial cost (x: no loss)")
    axes.legend(frameon=False, loc="best")
    round_numbers(axes.xaxis)
    round_numbers(axes.yaxis)


def round_numbers(axis: mpl.axis.Axis, digits: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Marks at these times the powers of ten, written out."""
    axis.set_major_locator(mpl.ticker.LogLocator(subs=digits))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(mpl.ticker.NullLocator())
