"""The pages about the paper, from the results: `python -m paper table`.

docs/paper.md             what the paper claims and what was found, on a page
docs/paper-tables.md      every curve beside the published one
docs/paper-deviations.md  where the text and the published runs differ, and what that does to the numbers
"""

import argparse
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from paper.claims import Finding, findings
from paper.comparison import Comparison, compare, default_beside_best, winners
from paper.deviations import deviations
from paper.evidence import SAME, Evidence, loss, told
from paper.figure_names import SHOWN
from paper.markdown import duration
from paper.policies import SMALLER_SEARCH
from paper.reference import Panel, gp_problem, published, published_panels
from paper.results import RESULTS
from paper.summary import MANY_SEEDS, VARIANTS, CurveSummary, best_of_panel, read_summaries, seeds_of
from paper.tables import not_run, tables

DOCS = Path(__file__).parents[1] / "docs"
EXPLANATIONS = Path(__file__).parent / "explanations.toml"
WIDTH = 160  # of a line of text
OTHERS_UNRUN = (
    "Where only pictures are published: kernels and length scales in 32 dimensions, other kernels in 16, and both at "
    "varying cost beyond 8, where they have 2 seeds. They have 8 at most, the studies of lambda and PBGI-D 64 of 256."
)
VARYING_8 = Panel(gp_problem(), 8, "varying")
FLAT = Panel(gp_problem(), 32, "uniform")

TITLE = "# The paper's experiments, run again\n"
INTRODUCTION = (
    "*Cost-aware Bayesian Optimization via the Pandora's Box Gittins Index* published curves over 16 seeds. Here is "
    "what became of them when they were run again with `pbgi`, by one rule for all policies, taken from the text and "
    "the authors' settings and not from how well it fits. Behind this page: [all numbers](paper-tables.md), [where "
    "text and code differ](paper-deviations.md), [the problems](problems.md). It is generated (`python -m paper "
    "figures`, `python -m paper table`); do not edit it."
)
ABOUT_CLAIMS = (
    f"Judged by final medians; to match is to be within {SAME - 1:.0%}, since two runs of one experiment of 16 seeds "
    "differ by so much. In the figures lines are medians over as many seeds as the corner says, with quartiles; "
    "dashed ones are published, dotted ones have one or two seeds, κ is the length scale of a prior; "
    "`python -m paper figures` draws them and those of the appendix as PNG and, for print, as PDF."
)


def read_explanations(path: Path) -> dict[str, dict[str, str]]:
    """Texts by panel and policy, written by hand."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def page(curves: Sequence[CurveSummary], *, variant: str = VARIANTS[0], images: Path) -> str:
    """The page.

    Args:
        curves: Summaries of all experiments.
        variant: Which runs are compared.
        images: Folder of the figures; those that are there are shown.
    """
    evidence, pairs = Evidence(curves, variant), compare(curves, variant)
    parts = [TITLE, _filled(INTRODUCTION), ""]
    if not pairs:
        return "\n".join([*parts, f"No results yet: 0 of {_n_published()} published curves."]) + "\n"
    parts += _section("What comes out otherwise than published", _against(evidence, pairs))
    parts += _section("Claim by claim", [_filled(ABOUT_CLAIMS), "", *_claims(findings(evidence), images)])
    parts += _section("How near the numbers are", _near(pairs, curves))
    parts += _section("Today's default", _default(curves))
    parts += _section("What is not run", _unrun(pairs))
    return "\n".join(parts)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    lines = list(lines)
    return [f"## {title}\n", *lines, ""] if lines else []


def _item(text: str) -> str:
    return _filled(f"- {text}")


def _filled(text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        subsequent_indent="  " if text.startswith("- ") else "",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _n_published() -> int:
    return sum(len(published(panel)) for panel in published_panels())


# What speaks against it -------------------------------------------------------------------------------------------


def _against(evidence: Evidence, pairs: Sequence[Comparison]) -> Iterator[str]:
    for problem, rival in (("hard_for_eipc", "LogEIPC"), ("hard_for_ei", "LogEI")):
        yield from _example(evidence, problem, rival)
    yield from _too_flat(evidence)
    yield from _true_prior(evidence)
    yield from _log_study(evidence)
    lost = [w.panel for w in winners(pairs) if w.theirs == "PBGI-D" and w.ours in ("LogEIPC", "LogEICC", "LogEI")]
    if lost:
        rival = ", ".join(f"{panel.name} ({evidence.leads(panel)})" for panel in lost)
        yield _item(f"**Where the paper has PBGI-D in front, a variant of EI is in front here:** {rival}.")


def _example(evidence: Evidence, problem: str, rival: str) -> Iterator[str]:
    panel = Panel(problem, 1, "varying")
    described, as_run = evidence.on(panel, "as_described"), evidence.on(panel, "as_published")
    if not all(rival in own and "PBGI" in own for own in (described, as_run)):
        return
    numbers, as_numbers = (_two(own[rival], own["PBGI"]) for own in (described, as_run))
    fails = loss(described[rival]) > 2.0 * loss(described["PBGI"])
    says = f"**With the prior that the text describes, {rival} does not fail on `{problem}`**"
    says = f"On `{problem}` {rival} fails with the described prior, too" if fails else says
    yield _item(f"{says}: regret {numbers}. With the model of the published runs: {as_numbers}.")


def _two(rival: CurveSummary, curve: CurveSummary) -> str:
    return f"{told(rival)}, and PBGI {told(curve)} ({rival.n_seeds} and {curve.n_seeds} seeds)"


def _too_flat(evidence: Evidence) -> Iterator[str]:
    own = best_of_panel(evidence.curves, FLAT, evidence.variant)
    if "RS" not in own:
        return
    named = (name for name in ("PBGI", "PBGI-D", "LogEI", "UCB") if name in own)
    moved = [name for name in named if SAME * loss(own[name]) < loss(own["RS"])]
    if moved:
        numbers = ", ".join(f"{name} {told(own[name])} ({seeds_of([own[name]])})" for name in ("RS", *moved))
        yield _item(
            "**In 32 dimensions at uniform cost, where the paper finds nothing better than random search, "
            f"{moved[0]} is**: {numbers}. The published curves of PBGI, PBGI-D, LogEI and UCB are one line: they climb "
            "in vain, see [where text and code differ](paper-deviations.md#where-climbs-do-not-move)."
        )


def _true_prior(evidence: Evidence) -> Iterator[str]:
    described, as_run = evidence.on(VARYING_8, "as_described"), evidence.on(VARYING_8, "as_published")
    names = [name for name in ("PBGI", "PBGI-D", "LogEIPC", "LogEICC") if name in described and name in as_run]
    if "PBGI" in names:
        numbers = ", ".join(f"{name} {told(described[name])} instead of {told(as_run[name])}" for name in names)
        yield _item(
            "**Draws from a prior with varying costs were published with fitted hyperparameters.** With the prior "
            f"itself, as the text has it, runs in 8 dimensions end with: {numbers} ({described['PBGI'].n_seeds} seeds)."
        )


def _log_study(evidence: Evidence) -> Iterator[str]:
    panel = Panel(gp_problem(), 16, "uniform")
    own, theirs = evidence.on(panel), published(panel)
    names = [name for name in ("LogEI", "Log(Unst. EI)", "Exp(LogEI)", "Unst. EI") if name in own]
    if "Unst. EI" in names and "LogEI" in names:
        ours = ", ".join(f"{name} {told(own[name])}" for name in sorted(names, key=lambda name: loss(own[name])))
        paper = sorted(names, key=lambda name: float(theirs[name].median[-1]))
        paper_numbers = ", ".join(f"{name} {float(theirs[name].median[-1]):.2f}" for name in paper)
        yield _item(
            f"**The study of logarithms comes out flatter.** From best to worst here {ours}; in the paper "
            f"{paper_numbers}. The published climbs do not leave starts as flat as those of an EI without logarithm."
        )


# The rest ---------------------------------------------------------------------------------------------------------


def _claims(found: Sequence[Finding], images: Path) -> Iterator[str]:
    shown: set[str] = set()
    for finding in found:
        yield _item(f"{finding.claim}. **{finding.verdict.capitalize()}:** {finding.found}.")
        if (images / f"{finding.figure}.png").exists() and finding.figure not in shown:
            yield f"  ![{SHOWN[finding.figure]}]({images.parent.name}/{images.name}/{finding.figure}.png)"
        shown.add(finding.figure)


def _near(pairs: Sequence[Comparison], curves: Sequence[CurveSummary]) -> Iterator[str]:
    judged = [pair for pair in pairs if pair.has_quartiles]
    points = sum(pair.ours.is_points for pair in pairs)
    small = sum(pair.ours.search == SMALLER_SEARCH for pair in pairs)
    n_inside, won = sum(pair.inside for pair in judged), winners(pairs)
    n_same = sum(winner.ours == winner.theirs for winner in won)
    n_runs, n_batched = sum(curve.n_seeds for curve in curves), sum(curve.n_batched for curve in curves)
    share = f"{n_inside / max(len(judged), 1):.0%}"
    yield _item(
        f"{len(pairs)} of the {_n_published()} curves that are known as numbers (main text and appendix) have been run."
        f" {len(judged)} have {MANY_SEEDS} seeds or more: {n_inside} of these ({share}) end inside the published "
        f"quartiles. {points} have one or two seeds, and are points."
    )
    yield _item(
        f"{small} curves have a smaller search than the paper's, which time did not allow: {SMALLER_SEARCH}. The same "
        f"policy is in front on {n_same} of {len(won)} panels."
    )
    yield _item(
        f"{n_runs:,} runs took {duration(sum(curve.wall_seconds for curve in curves))}; {n_batched:,} of them were done"
        " many at a time on torch (`python -m paper batch`), with the same random numbers "
        "([compared](paper-tables.md#two-engines))."
    )
    yield _item(
        "A run is the same to the last digit on the same machine with the same versions. Fits and climbs of `pbgi` "
        "have changed since most of these were done; after that, and elsewhere (NumPy 2.5 for 2.4, another processor), "
        "a run begins alike, last digits grow, other points are tried, and a seed may end elsewhere."
    )


def _default(curves: Sequence[CurveSummary]) -> Iterator[str]:
    pairs = default_beside_best(curves)
    if pairs:
        many = [pair for pair in pairs if pair.has_quartiles]
        yield _item(
            "`pbgi` as it comes, which chooses neither policy nor model by the problem, ends no worse than the best "
            f"published curve on {_no_worse(pairs)} of {len(pairs)} panels, and on {_no_worse(many)} of the {len(many)}"
            f" that have {MANY_SEEDS} seeds or more "
            "([table](paper-tables.md#todays-default-beside-the-best-published-curve))."
        )


def _no_worse(pairs: Iterable[Comparison]) -> int:
    return sum(pair.no_worse for pair in pairs)


def _unrun(pairs: Sequence[Comparison]) -> Iterator[str]:
    """Published curves without runs, with few seeds, or with a smaller search; the tables have them one by one."""
    missing = not_run(pairs)
    if missing:
        names = ", ".join(f"{policy} {len(panels)}" for policy, panels in missing.items())
        total = sum(map(len, missing.values()))
        yield _item(f"{total} published curves not at all, by policy: {names} ([where](paper-tables.md#not-run)).")
    whole = sorted({p.name for panels in missing.values() for p in panels} - {pair.theirs.panel.name for pair in pairs})
    if whole:
        yield _item(f"No curve of these panels: {', '.join(whole)}.")
    few = [pair for pair in pairs if not pair.has_quartiles]
    named = ", ".join(
        f"{policy} {count}" for policy, count in Counter(pair.theirs.policy for pair in few).most_common()
    )
    yield _item(f"{len(few)} curves with fewer than {MANY_SEEDS} seeds, by policy: {named}.")
    smaller = sorted({pair.theirs.panel.name for pair in pairs if pair.ours.search == SMALLER_SEARCH})
    if smaller:
        yield _item(f"With a search of {SMALLER_SEARCH}: {', '.join(smaller)}.")
    yield _item(OTHERS_UNRUN)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages from the results; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m paper table", description=main.__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the pages")
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0], help="which runs to compare")
    arguments = parser.parse_args(argv)
    curves, images = read_summaries(arguments.results), arguments.docs / "images" / "paper"
    explanations: Mapping[str, Mapping[str, str]] = read_explanations(EXPLANATIONS)
    texts = {
        "paper.md": page(curves, variant=arguments.variant, images=images),
        "paper-tables.md": tables(curves, arguments.variant, explanations),
        "paper-deviations.md": deviations(Evidence(curves, arguments.variant)),
    }
    arguments.docs.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (arguments.docs / name).write_text(text.rstrip() + "\n", encoding="utf-8")
        print(f"wrote {arguments.docs / name}")
    return 0
