"""The page docs/paper.md, our medians beside the published ones: `python -m paper table`."""

import argparse
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from paper.comparison import FACTOR, Comparison, compare, default_beside_best, final, standings, winners
from paper.experiments import PRICED_PUSHES
from paper.reference import DEFAULT, NEAR_BEST, POLICIES, Panel, published, published_curves, published_panels
from paper.results import RESULTS
from paper.summary import VARIANTS, CurveSummary, best_of_panel, read_summaries

DOCS = Path(__file__).parents[1] / "docs"
EXPLANATIONS = Path(__file__).parent / "explanations.toml"
LESSONS = Path(__file__).parent / "lessons.md"
NOT_EXPLAINED = "not yet explained"
BOTORCH_SEARCHED = ("KG", "MES", "MFMES", "MSEI", "BMSEI")

INTRODUCTION = """\
# The paper's experiments, run again

*Cost-aware Bayesian Optimization via the Pandora's Box Gittins Index* published medians and quartiles over 16 seeds.
Here they stand beside those of `pbgi`. This page is generated from `paper/results/`; do not edit it:

```bash
python -m paper table      # this page
python -m paper figures    # its figures
```

How to read the tables: medians and quartiles over seeds at the end of the budget, in the units of the paper's figures;
regret (smaller is better), or best observed value (larger is better) where no optimum is known. "Here" joins
evaluations by straight lines, as the published curves do; "step" is what had really been reached when the budget was
spent. The ratio is ours over theirs: of regret, or of the progress from the start for best values. Two runs of one
16-seed experiment differ by 5 to 15 % in the median. The search is how the next point was looked for, see
["The search"](#the-search).
"""

ABOUT_SEARCH = """\
The published runs looked for the next point by climbing from Sobol points. In many dimensions none of those is near a
point that was tried, and so the peaks of the acquisition function there, narrow and high, are not found. The tables of
this page have that search. Another one looks around the best points too, and finds those peaks. Here is what finding
them is worth, by final medians, with the paper's models; with the default of `pbgi` it makes no difference.

There are two exceptions. Thompson sampling looks around the best points in the paper too: without, its curves do not
come out. And on Robot Pushing with prices, in runs of hundreds of cheap trials, climbs from Sobol points end far behind
the published curves with 64 d points and d climbs, which are enough elsewhere on this page ("few climbs"). With the
200 d and 10 d of the paper they come close ("many climbs"), which takes several times as long: there the tables have
the search around the best points ("near best"). All of these are in "Studies of settings".
"""

ABOUT_DEFAULT = """\
What `pbgi` does if nothing is chosen: the policy `PBGID()`, the model `GPConfig()`, unknown costs learned, and its own
search. Problems, starts and budgets are those of the other curves. Beside it stands the policy that ended best on that
panel in the paper: another one from panel to panel, chosen with hindsight. Synthetic problems of 4 and 8 dimensions are
the appendix's; no other table of this page has those numbers. Draws from a prior are other draws than the published
ones, and the default learns their prior, which the paper's policies know where costs are uniform; in 32 dimensions none
of those gets ahead of random search. "No worse" means that the median regret is not higher, or that the median best
value is not lower. Medians of a few seeds say little.
"""
MANY_SEEDS = 8  # panels with as many are counted on their own


def number(x: float) -> str:
    """Three significant digits, without an exponent where that can be read."""
    if x != 0 and not 1e-4 <= abs(x) < 1e7:
        return f"{x:.2e}"
    digits = f"{float(f'{x:.3g}'):,.6f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def middle(values: tuple[float, float, float]) -> str:
    """Median with quartiles, e.g. "0.5 [0.4, 0.7]"."""
    median, q25, q75 = (number(value) for value in values)
    return f"{median} [{q25}, {q75}]"


def duration(seconds: float) -> str:
    """Seconds in the unit a reader would choose."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{number(seconds)} s"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], n_text: int = 0) -> str:
    """A table; all columns but the first, and the last `n_text`, are aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1 - n_text), *["---"] * n_text], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def read_explanations(path: Path) -> dict[str, dict[str, str]]:
    """Texts by panel and policy, written by hand."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def page(
    curves: Sequence[CurveSummary],
    *,
    variant: str,
    explanations: Mapping[str, Mapping[str, str]],
    lessons: str,
    images: Path,
) -> str:
    """The whole page.

    Args:
        curves: Summaries of all experiments.
        variant: Which runs are compared; the other variant of a curve gets its own line in the panel's table.
        explanations: Texts by panel and policy.
        lessons: What a user should take from it: text that begins with a heading.
        images: Folder of the figures; those that are there are shown.
    """
    pairs, near = compare(curves, variant), compare(curves, variant, NEAR_BEST)
    parts = [INTRODUCTION, _in_short(pairs, near, curves)]
    if pairs:
        parts += [lessons, _winners(pairs), _differences(pairs, explanations)]
    parts += [
        _default(default_beside_best(curves)),
        _searches(pairs, near),
        _panels(curves, variant),
        _other_curves(curves, variant),
        _studies(curves, variant),
    ]
    parts += [_seconds(curves, variant), _wall_times(curves), _figures(images)]
    return "\n".join(part for part in parts if part)


def _in_short(pairs: Sequence[Comparison], near: Sequence[Comparison], curves: Sequence[CurveSummary]) -> str:
    n_published = sum(len(published(panel)) for panel in published_panels())
    if not pairs:
        return f"## In short\n\nNo results yet: 0 of {n_published} published curves.\n"
    n_inside = sum(pair.inside for pair in pairs)
    within = sum(pair.share_inside for pair in pairs) / len(pairs)
    n_off, n_better = sum(pair.off for pair in pairs), sum(pair.off and pair.better for pair in pairs)
    won = winners(pairs)
    n_same = sum(winner.ours == winner.theirs for winner in won)
    wall = sum(curve.wall_seconds for curve in curves)
    by_near = {pair.theirs.key: pair for pair in near}
    n_near = sum(by_near.get(pair.theirs.key, pair).inside for pair in pairs)
    other = f"; with a search around the best points, {n_near} ({n_near / len(pairs):.0%})" if near else ""
    return f"""\
## In short

- {len(pairs)} of {n_published} published curves have been run here, over {_seeds(pair.ours for pair in pairs)}.
- At the end of the budget {n_inside} of {len(pairs)} medians ({n_inside / len(pairs):.0%}) lie inside the published
  quartiles{other}; over the whole curves {within:.0%} of the grid points do.
- {n_off} medians are off by more than a factor of {FACTOR:g}; in {n_better} of them ours is the better one.
- The same policy wins on {n_same} of {len(won)} panels.
- All runs on this page together took {duration(wall)}.
"""


def _seeds(curves: Iterable[CurveSummary]) -> str:
    counts = sorted({curve.n_seeds for curve in curves})
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def _winners(pairs: Sequence[Comparison]) -> str:
    rows = []
    for winner in winners(pairs):
        same = "yes" if winner.ours == winner.theirs else "no"
        rows.append((winner.panel.name, winner.theirs, winner.ours, same, str(winner.n_policies)))
    head = ("panel", "best in the paper", "best here", "same", "policies compared")
    return "\n".join(["## Who wins\n", markdown_table(head, rows), *_standings(pairs)])


def _standings(pairs: Sequence[Comparison]) -> Iterator[str]:
    for uniform, title in ((True, "uniform"), (False, "varying or unknown")):
        rows = [(s.policy, f"{s.theirs:.1f}", f"{s.ours:.1f}", str(s.n_panels)) for s in standings(pairs, uniform)]
        if rows:
            yield f"Mean rank where costs are {title}, 1 being best:\n"
            yield markdown_table(("policy", "in the paper", "here", "panels"), rows)


def _differences(pairs: Sequence[Comparison], explanations: Mapping[str, Mapping[str, str]]) -> str:
    title = f"## Curves off by more than a factor of {FACTOR:g}\n\n"
    rows = []
    for pair in pairs:
        if pair.off:
            name, policy = pair.theirs.panel.name, pair.theirs.policy
            text = explanations.get(name, {}).get(policy, NOT_EXPLAINED)
            where = "inside the quartiles" if pair.inside else "better" if pair.better else "worse"
            rows.append((name, policy, f"{pair.ratio:.2f}", where, " ".join(text.split())))
    if not rows:
        return title + "None.\n"
    return title + markdown_table(("panel", "policy", "ratio", "here it is", "why"), rows, n_text=1)


def _default(pairs: Sequence[Comparison]) -> str:
    """The package's default beside the best that was published on each panel."""
    if not pairs:
        return ""
    rows = []
    for pair in pairs:
        best = number(float(pair.theirs.median[-1])), pair.theirs.policy
        no_worse = "yes" if pair.no_worse else "no"
        rows.append((pair.theirs.panel.name, middle(final(pair.ours.linear)), *best, no_worse, str(pair.ours.n_seeds)))
    many = [pair for pair in pairs if pair.ours.n_seeds >= MANY_SEEDS]
    told = (
        f"On {_n_no_worse(pairs)} of {len(pairs)} panels the default is no worse than the best published curve;\n"
        f"on {_n_no_worse(many)} of the {len(many)} panels that have {MANY_SEEDS} seeds or more.\n"
    )
    head = ("panel", "default here", "best in the paper", "whose", "no worse", "seeds")
    title = "## Today's default beside the best published curve\n"
    return "\n".join([title, ABOUT_DEFAULT, told, markdown_table(head, rows)])


def _n_no_worse(pairs: Iterable[Comparison]) -> int:
    return sum(pair.no_worse for pair in pairs)


def _searches(pairs: Sequence[Comparison], near: Sequence[Comparison]) -> str:
    by_near = {pair.theirs.key: pair for pair in near}
    both = [(pair, by_near[pair.theirs.key]) for pair in pairs if pair.theirs.key in by_near]
    if not both:
        return ""
    rows = []
    for pair, other in both:
        medians = (middle(final(which.ours.linear)) for which in (pair, other))
        inside = ("yes" if which.inside else "no" for which in (pair, other))
        better = "near best" if other.is_better_than(pair) else "published"
        seeds = f"{pair.ours.n_seeds}, {other.ours.n_seeds}"
        rows.append((pair.theirs.panel.name, pair.theirs.policy, *medians, *inside, better, seeds))
    n_better = sum(row[-2] == "published" for row in rows)
    head = ("panel", "policy", "published search", "near best too", "inside", "inside", "better", "seeds")
    told = f"On {n_better} of {len(rows)} curves the search from Sobol points alone ends better.\n"
    return "\n".join(["## The search", "", ABOUT_SEARCH, told, markdown_table(head, rows)])


def _panels(curves: Sequence[CurveSummary], variant: str) -> str:
    sections = ["## Panels of the paper\n"]
    for panel in published_panels():
        rows = _panel_rows(curves, panel, variant)
        if any(row[2] != "-" for row in rows):
            head = ("policy", "paper", "here", "step", "ratio", "inside", "search", "seeds")
            sections.append(f"### {panel.name}\n\n{markdown_table(head, rows)}")
    return "\n".join(sections) if len(sections) > 1 else ""


def _panel_rows(curves: Sequence[CurveSummary], panel: Panel, variant: str) -> list[Sequence[str]]:
    """A row per published policy, and one more for its other variant."""
    chosen = best_of_panel(curves, panel, variant)
    rows: list[Sequence[str]] = []
    for policy, theirs in published(panel).items():
        shown = middle((theirs.median[-1], theirs.q25[-1], theirs.q75[-1]))
        if policy not in chosen:
            rows.append((policy, shown, "-", "-", "-", "-", "-", "-"))
            continue
        main = chosen[policy]
        others = [c for c in curves if c.panel == panel and c.policy == policy and c.variant != main.variant]
        for curve in [main, *sorted(others, key=lambda c: -c.n_seeds)[:1]]:
            name = policy if curve is main else f"{policy} ({curve.variant.replace('_', ' ')})"
            pair = Comparison(curve, theirs)
            inside = "yes" if pair.inside else "no"
            rows.append((name, shown, *_ours(curve), f"{pair.ratio:.2f}", inside, _search(curve), str(curve.n_seeds)))
    return rows


def _search(curve: CurveSummary) -> str:
    """How the curve's policy looked for the next point."""
    named = {"RS": "none", **dict.fromkeys(BOTORCH_SEARCHED, "BoTorch's")}
    near_best = any(curve.panel == Panel.of(*pushes[1:]) for pushes in PRICED_PUSHES)
    return named.get(curve.policy, "near best" if near_best else "published")


def _ours(curve: CurveSummary) -> tuple[str, str]:
    return middle(final(curve.linear)), number(final(curve.step)[0])


def _other_curves(curves: Sequence[CurveSummary], variant: str) -> str:
    """Medians of curves that are not published as numbers: other dimensions, kernels, length scales."""
    parts = []
    for cost in ("uniform", "varying", "unknown"):
        by_panel = {}
        for panel in sorted({curve.panel for curve in curves if curve.panel.cost == cost}):
            chosen = best_of_panel(curves, panel, variant)
            if own := {p: c for p, c in chosen.items() if p in POLICIES and p not in published(panel)}:
                by_panel[panel] = own
        policies = [policy for policy in POLICIES if any(policy in own for own in by_panel.values())]
        rows = []
        for panel, own in by_panel.items():
            medians = [number(final(own[p].step)[0]) if p in own else "-" for p in policies]
            rows.append((panel.name, *medians, _seeds(own.values()).removesuffix(" seeds")))
        if rows:
            parts.append(markdown_table(("panel", *policies, "seeds"), rows))
    if not parts:
        return ""
    about = "Final medians where the paper's figures are not known as numbers (step; regret, or best value).\n"
    return "\n".join(["## Curves without published numbers\n", about, *parts])


def _studies(curves: Sequence[CurveSummary], variant: str) -> str:
    """Curves of policies whose settings are studied."""
    rows = []
    for panel in sorted({curve.panel for curve in curves}):
        for policy, curve in sorted(best_of_panel(curves, panel, variant).items()):
            if policy not in (*POLICIES, DEFAULT) and not policy.endswith(NEAR_BEST):
                rows.append((panel.name, policy, middle(final(curve.step)), str(curve.n_seeds)))
    return "## Studies of settings\n\n" + markdown_table(("panel", "policy", "here", "seeds"), rows) if rows else ""


def _seconds(curves: Sequence[CurveSummary], variant: str) -> str:
    rows = []
    for theirs in published_curves():
        ours = _suggestion(curves, theirs.panel, theirs.policy, variant)
        if theirs.quantity == "seconds" and ours is not None:
            paper, here = float(theirs.median.mean()), ours[0]
            times = f"{paper / here:,.0f}" if paper > 10 * here else f"{paper / here:.1f}"
            rows.append((theirs.panel.name, theirs.policy, f"{number(paper)} s", f"{number(here)} s", times, ours[1]))
    if not rows:
        return ""
    head = ("panel", "policy", "paper", "here", "times as fast", "measured")
    about = (
        'CPU time, fit and search included. The machines differ. "Alone": median over seeds, averaged over the run,\n'
        'while the machine had nothing else to do. "In passing": the median suggestion of runs of another experiment.\n'
    )
    return f"## Time per suggestion\n\n{about}\n" + markdown_table(head, rows, n_text=1)


def _suggestion(curves: Sequence[CurveSummary], panel: Panel, policy: str, variant: str) -> tuple[float, str] | None:
    """Seconds per suggestion and how they were measured."""
    timed = best_of_panel((curve for curve in curves if curve.seconds is not None), panel, variant).get(policy)
    if timed is not None and timed.seconds is not None:
        return float(timed.seconds.median.mean()), "alone"
    other = best_of_panel(curves, panel, variant).get(policy)
    return None if other is None else (other.suggest_seconds, "in passing")


def _wall_times(curves: Sequence[CurveSummary]) -> str:
    by_experiment: dict[str, list[CurveSummary]] = defaultdict(list)
    for curve in curves:
        by_experiment[curve.experiment].append(curve)
    rows = []
    for experiment, own in sorted(by_experiment.items()):
        n_runs, seconds = sum(curve.n_seeds for curve in own), sum(curve.wall_seconds for curve in own)
        counts = (str(len(own)), str(n_runs))
        rows.append((experiment, *counts, duration(seconds / n_runs), duration(seconds), duration(seconds / 2)))
    if not rows:
        return ""
    head = ("experiment", "curves", "runs", "per run", "all runs", "on 2 cores")
    about = "Wall time of the runs shown, one thread each, on a machine with other work to do.\n"
    return f"## Time per experiment\n\n{about}\n" + markdown_table(head, rows)


def _figures(images: Path) -> str:
    if not any(images.glob("*.png")):
        return ""
    from paper.figures import FIGURES  # here: a page without pictures needs no plotting library

    shown = [figure for figure in FIGURES if (images / figure.file_name).exists()]
    if not shown:
        return ""
    link = f"{images.parent.name}/{images.name}"
    parts = [
        f"### {figure.title}\n\n{figure.caption}\n\n![{figure.title}]({link}/{figure.file_name})\n" for figure in shown
    ]
    return "## Figures\n\n" + "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page from the results; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m paper table", description=main.__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0], help="which runs to compare")
    arguments = parser.parse_args(argv)
    text = page(
        read_summaries(arguments.results),
        variant=arguments.variant,
        explanations=read_explanations(EXPLANATIONS),
        lessons=LESSONS.read_text(encoding="utf-8"),
        images=arguments.docs / "images" / "paper",
    )
    arguments.docs.mkdir(parents=True, exist_ok=True)
    (arguments.docs / "paper.md").write_text(text, encoding="utf-8")
    print(f"wrote {arguments.docs / 'paper.md'}")
    return 0
