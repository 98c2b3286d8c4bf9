"""The page docs/paper-tables.md: every curve beside the published one, and what else was measured."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from paper.comparison import FACTOR, Comparison, compare, default_beside_best, final, standings, winners
from paper.markdown import duration, markdown_table, middle, number
from paper.policies import PUBLISHED_SEARCH, SMALLER_SEARCH
from paper.reference import (
    DEFAULT,
    NEAR_BEST,
    POLICIES,
    Panel,
    published,
    published_curves,
    published_panels,
)
from paper.results import ENGINES
from paper.summary import MANY_SEEDS, CurveSummary, best_of_panel, seeds_of

NOT_EXPLAINED = "not yet explained"

INTRODUCTION = f"""\
# The paper's experiments, in tables

Generated from `paper/results/` by `python -m paper table`; [the page about the paper](paper.md) says what it comes to.

Medians and quartiles over seeds at the end of the budget, in the units of the paper's figures: regret (smaller is
better), or best observed value (larger is better) where no optimum is known. "Here" joins evaluations by straight
lines, as the published curves do; "step" is what had really been reached when the budget was spent. The ratio is ours
over theirs: of regret, or of the progress from the start for best values. One or two seeds are points, not medians:
they have no quartiles, and "inside" (the published quartiles) is said of curves with {MANY_SEEDS} seeds or more only.
Two runs of one 16-seed experiment differ by 5 to 15 % in the median.

The search is how the next point was looked for. "{PUBLISHED_SEARCH}" is the published one: so many Sobol points, of
which so many are climbed from. Where it has fewer than {MANY_SEEDS} seeds and a smaller one has more, the row has the
smaller one and says "{SMALLER_SEARCH}". Thompson sampling climbs 20 times from 1024 points.
"""

ABOUT_SEARCH = """\
A study of ours: what the search for the highest point of an acquisition function is worth, with the paper's models. The
published search climbs from Sobol points alone, and in many dimensions none of those is near a point that was tried; so
it misses the peaks there, which are narrow and high. A search "near the best too" finds them. "Smaller" is that from
64 d points and d climbs.
"""

ABOUT_DEFAULT = """\
What `pbgi` does if nothing is chosen: the policy `PBGID()`, the model `GPConfig()`, unknown costs learned, and its own
search. Problems, starts and budgets are those of the other curves. Beside it stands the policy that ended best on that
panel in the paper: another one from panel to panel, chosen with hindsight. Draws from a prior are other draws than the
published ones, and the default learns their prior, which the paper's policies know where costs are uniform. "No worse"
means that the median regret is not higher, or that the median best value is not lower.
The default changes with the package: panels in 4 dimensions were run with the code of 2026-11-19, the others with that
of 2026-11-16.
"""


def tables(curves: Sequence[CurveSummary], variant: str, explanations: Mapping[str, Mapping[str, str]]) -> str:
    """The whole page.

    Args:
        curves: Summaries of all experiments.
        variant: Which runs are compared; the other variant of a curve gets its own line in the panel's table.
        explanations: Texts by panel and policy.
    """
    pairs = compare(curves, variant)
    parts = [
        INTRODUCTION,
        _winners(pairs),
        _differences(pairs, explanations),
        _panels(curves, variant),
        _default(default_beside_best(curves)),
        _searches(curves, variant),
        _other_curves(curves, variant),
        _studies(curves, variant),
        _not_run(pairs),
        _engines(curves),
        _seconds(curves, variant),
        _wall_times(curves),
    ]
    return "\n".join(part for part in parts if part)


# Beside the published curves --------------------------------------------------------------------------------------


def _winners(pairs: Sequence[Comparison]) -> str:
    rows = []
    for winner in winners(pairs):
        same = "yes" if winner.ours == winner.theirs else "no"
        rows.append((winner.panel.name, winner.theirs, winner.ours, same, str(winner.n_policies)))
    if not rows:
        return ""
    head = ("panel", "best in the paper", "best here", "same", "policies compared")
    about = "Among policies with three seeds or more here.\n"
    return "\n".join(["## Who wins\n", about, markdown_table(head, rows), *_standings(pairs)])


def _standings(pairs: Sequence[Comparison]) -> Iterator[str]:
    for uniform, title in ((True, "uniform"), (False, "varying or unknown")):
        rows = [(s.policy, f"{s.theirs:.1f}", f"{s.ours:.1f}", str(s.n_panels)) for s in standings(pairs, uniform)]
        if rows:
            yield f"Mean rank where costs are {title}, 1 being best:\n"
            yield markdown_table(("policy", "in the paper", "here", "panels"), rows)


def _differences(pairs: Sequence[Comparison], explanations: Mapping[str, Mapping[str, str]]) -> str:
    title = f"## Medians off by more than a factor of {FACTOR:g}\n"
    rows = []
    for pair in pairs:
        if pair.off and not pair.ours.is_points:
            name, policy = pair.theirs.panel.name, pair.theirs.policy
            text = explanations.get(name, {}).get(policy, NOT_EXPLAINED)
            inside = pair.has_quartiles and pair.inside
            where = "inside the quartiles" if inside else "better" if pair.better else "worse"
            known = f"{pair.ratio:.2f}", where, pair.ours.search, str(pair.ours.n_seeds)
            rows.append((name, policy, *known, " ".join(text.split())))
    if not rows:
        return f"{title}\nNone.\n"
    head = ("panel", "policy", "ratio", "here it is", "search", "seeds", "why")
    about = "Of curves with three seeds or more.\n"
    return "\n".join([title, about, markdown_table(head, rows, n_text=1)])


def _panels(curves: Sequence[CurveSummary], variant: str) -> str:
    default = {pair.theirs.panel: pair for pair in default_beside_best(curves)}
    sections = ["## Panels of the paper\n"]
    for panel in published_panels():
        rows = _panel_rows(curves, panel, variant)
        if any(row[2] != "-" for row in rows):
            head = ("policy", "paper", "here", "step", "ratio", "inside", "search", "seeds")
            sections.append(f"### {panel.name}\n\n{markdown_table(head, rows)}")
            if panel in default:
                own = default[panel].ours
                sections.append(f"Today's default: {middle(final(own.linear))}, {seeds_of([own])}.\n")
    return "\n".join(sections) if len(sections) > 1 else ""


def _panel_rows(curves: Sequence[CurveSummary], panel: Panel, variant: str) -> list[Sequence[str]]:
    """A row per published policy, and one more for its other variant."""
    pairs = {pair.theirs.policy: pair for pair in compare(curves, variant) if pair.theirs.panel == panel}
    rows: list[Sequence[str]] = []
    for policy, theirs in published(panel).items():
        shown = middle((theirs.median[-1], theirs.q25[-1], theirs.q75[-1]))
        if policy not in pairs:
            rows.append((policy, shown, "-", "-", "-", "-", "-", "-"))
            continue
        main = pairs[policy].ours
        others = [c for c in curves if c.panel == panel and c.policy == main.policy and c.variant != main.variant]
        for curve in [main, *sorted(others, key=lambda c: -c.n_seeds)[:1]]:
            name = policy if curve is main else f"{policy} ({curve.variant.replace('_', ' ')})"
            pair = Comparison(curve, theirs)
            inside = ("yes" if pair.inside else "no") if pair.has_quartiles else "-"
            rows.append((name, shown, *_ours(curve), f"{pair.ratio:.2f}", inside, curve.search, str(curve.n_seeds)))
    return rows


def _ours(curve: CurveSummary) -> tuple[str, str]:
    return sample(curve), number(final(curve.step)[0])


def sample(curve: CurveSummary) -> str:
    """Median and quartiles at the end; of one or two runs the middle alone."""
    values = final(curve.linear)
    return number(values[0]) if curve.is_points else middle(values)


# The default, and studies of ours ---------------------------------------------------------------------------------


def _default(pairs: Sequence[Comparison]) -> str:
    """The package's default beside the best that was published on each panel."""
    rows = []
    for pair in pairs:
        best = number(float(pair.theirs.median[-1])), pair.theirs.policy
        no_worse = "yes" if pair.no_worse else "no"
        rows.append((pair.theirs.panel.name, sample(pair.ours), *best, no_worse, str(pair.ours.n_seeds)))
    if not rows:
        return ""
    head = ("panel", "default here", "best in the paper", "whose", "no worse", "seeds")
    title = "## Today's default beside the best published curve\n"
    return "\n".join([title, ABOUT_DEFAULT, markdown_table(head, rows)])


def searches(curves: Sequence[CurveSummary], variant: str) -> list[tuple[CurveSummary, CurveSummary, str]]:
    """Curves of the published search, each beside that of another one, and what the other is called."""
    found = []
    for panel in published_panels():
        own = [c for c in curves if c.panel == panel and c.variant == variant and not c.is_points]
        published_search = {c.policy: c for c in own if c.search == PUBLISHED_SEARCH}
        for policy, curve in published_search.items():
            near = [c for c in own if c.policy == policy + NEAR_BEST]
            smaller = [c for c in own if c.policy == policy and c.search == SMALLER_SEARCH]
            others = [*((c, "near the best too") for c in near), *((c, "smaller") for c in smaller)]
            found += [(curve, other, name) for other, name in others]
    return found


def ends_better(curve: CurveSummary, other: CurveSummary) -> bool:
    """Whether the median of a curve ends better than that of another one of its panel."""
    ours, theirs = (float(c.linear.median[-1]) for c in (curve, other))
    return ours > theirs if curve.quantity == "best" else ours < theirs


def _searches(curves: Sequence[CurveSummary], variant: str) -> str:
    both = searches(curves, variant)
    if not both:
        return ""
    rows = []
    for curve, other, name in both:
        better = "published" if ends_better(curve, other) else name
        seeds = f"{curve.n_seeds}, {other.n_seeds}"
        rows.append((curve.panel.name, curve.policy, sample(curve), name, sample(other), better, seeds))
    head = ("panel", "policy", "published search", "other search", "with it", "better", "seeds")
    return "\n".join(["## Other searches\n", ABOUT_SEARCH, *_counted(both), markdown_table(head, rows)])


def _counted(both: Sequence[tuple[CurveSummary, CurveSummary, str]]) -> Iterator[str]:
    for name in ("near the best too", "smaller"):
        of_it = [ends_better(curve, other) for curve, other, other_name in both if other_name == name]
        if of_it:
            yield f'Against "{name}" the published search ends better on {sum(of_it)} of {len(of_it)} curves.\n'


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
            named = ", ".join(sorted({c.search for c in own.values() if "/" in c.search}))
            rows.append((panel.name, *medians, named or "-", seeds_of(own.values()).rpartition(" ")[0]))
        if rows:
            parts.append(markdown_table(("panel", *policies, "search", "seeds"), rows))
    if not parts:
        return ""
    about = "Final medians where the paper's figures are not known as numbers (step; regret, or best value).\n"
    return "\n".join(["## Curves without published numbers\n", about, *parts])


def _studies(curves: Sequence[CurveSummary], variant: str) -> str:
    """Curves of policies whose settings are studied, where nothing is published."""
    rows = []
    for panel in sorted({curve.panel for curve in curves}):
        for policy, curve in sorted(best_of_panel(curves, panel, variant).items()):
            is_study = policy not in (*POLICIES, DEFAULT) and policy not in published(panel)
            if is_study and not policy.endswith(NEAR_BEST):
                rows.append((panel.name, policy, sample(curve), curve.search, str(curve.n_seeds)))
    head = ("panel", "policy", "here", "search", "seeds")
    return "## Studies of settings\n\n" + markdown_table(head, rows) if rows else ""


# What is missing, and who computed ---------------------------------------------------------------------------------


def not_run(pairs: Sequence[Comparison]) -> dict[str, list[Panel]]:
    """Panels of published curves that have no run, by policy."""
    known = {pair.theirs.key for pair in pairs}
    missing: dict[str, list[Panel]] = defaultdict(list)
    for panel in published_panels():
        for policy in published(panel):
            if (panel, policy) not in known:
                missing[policy].append(panel)
    return dict(sorted(missing.items(), key=lambda item: (-len(item[1]), item[0])))


def _not_run(pairs: Sequence[Comparison]) -> str:
    rows = [(policy, ", ".join(panel.name for panel in panels)) for policy, panels in not_run(pairs).items()]
    title = "## Not run\n\nPublished curves without a run here.\n"
    return f"{title}\n" + markdown_table(("policy", "panels"), rows, n_text=1) if rows else ""


def _engines(curves: Sequence[CurveSummary]) -> str:
    """The same panels, policies and seeds by the engine in NumPy and on torch."""
    by_curve = {(c.panel, c.policy): c for c in curves if c.experiment == ENGINES}
    rows = []
    for curve in curves:
        other = by_curve.get((curve.panel, curve.policy))
        is_it = curve.variant == "as_published" and curve.search == PUBLISHED_SEARCH and curve.n_batched
        if other is not None and is_it and curve.experiment != ENGINES:
            seeds = f"{other.n_seeds}, {curve.n_seeds}"
            rows.append((curve.panel.name, curve.policy, sample(other), sample(curve), seeds))
    if not rows:
        return ""
    about = (
        "Runs done many at a time on torch (`python -m paper batch`), and the same by the engine of `pbgi` in NumPy.\n"
        "Both have the same starts, pools and rules. From one seed the first suggestion is the same, to the accuracy\n"
        "of a climb (`tests/paper/test_batched.py`); then last digits grow, and seeds part.\n"
    )
    head = ("panel", "policy", "NumPy", "torch", "seeds")
    return f"## Two engines\n\n{about}\n" + markdown_table(head, rows)


# Time -------------------------------------------------------------------------------------------------------------


def _seconds(curves: Sequence[CurveSummary], variant: str) -> str:
    rows = []
    for theirs in published_curves():
        timed = (curve for curve in curves if curve.seconds is not None and curve.search != SMALLER_SEARCH)
        ours = best_of_panel(timed, theirs.panel, variant).get(theirs.policy)
        if theirs.quantity == "seconds" and ours is not None and ours.seconds is not None:
            paper, here = float(theirs.median.mean()), float(ours.seconds.median.mean())
            rows.append((theirs.panel.name, theirs.policy, f"{number(paper)} s", f"{number(here)} s", ours.search))
    if not rows:
        return ""
    head = ("panel", "policy", "paper", "here", "search")
    about = (
        "CPU seconds, fit and search included; median over seeds, averaged over the run. The searches look at as many\n"
        "points and climb as often as the published ones, yet programs and machines differ, so a quotient of two\n"
        "numbers in a row measures neither. In a column the order of the policies can be compared.\n"
    )
    return f"## Time per suggestion\n\n{about}\n" + markdown_table(head, rows)


def _wall_times(curves: Sequence[CurveSummary]) -> str:
    by_experiment: dict[str, list[CurveSummary]] = defaultdict(list)
    for curve in curves:
        by_experiment[curve.experiment].append(curve)
    rows = []
    for experiment, own in sorted(by_experiment.items()):
        n_runs, n_batched = sum(curve.n_seeds for curve in own), sum(curve.n_batched for curve in own)
        seconds = sum(curve.wall_seconds for curve in own)
        counts = (str(len(own)), str(n_runs), str(n_batched))
        rows.append((experiment, *counts, duration(seconds / n_runs), duration(seconds)))
    if not rows:
        return ""
    head = ("experiment", "curves", "runs", "on torch", "per run", "all runs")
    about = (
        "Wall time of the runs shown, one thread each, on machines with other work to do. Runs on torch are done many\n"
        "at a time (`python -m paper batch`), and each counts its share.\n"
    )
    return f"## Time per experiment\n\n{about}\n" + markdown_table(head, rows)
