"""What came out of `quality_real.py`: a section of docs/comparison.md, and the targets.

Regrets are compared by their medians over the runs that all of a group have, table by table: the geometric mean over
tables of our median over a peer's, or over that of the peer that is best on the table at that point of the budget. A
median below a thousandth of random search's at the end counts as that thousandth: zero has no ratio.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from peer_tables import (
    FLOOR,
    OURS,
    SHARES,
    Group,
    Run,
    Scores,
    errors_of,
    groups,
    random_median,
    rank_table,
    ranks,
    regret_summary,
    regret_table,
    scores_of,
    spent_summary,
    table,
    versions_of,
)
from peers import PEERS
from real_tables import HPOLIB, NASBENCH201, TABLES

TITLES = {
    "naval_propulsion": "Naval",
    "parkinsons_telemonitoring": "Parkinson's",
    "protein_structure": "Protein",
    "slice_localization": "Slice",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "imagenet": "ImageNet16-120",
}
BEST = "the best peer"  # of each table, and at each share
WIDTH = 120  # of a line on the page
MAX_RATIO = 0.5  # the target, at half and at all of the budget
RATIO_SHARES = (0.5, 1.0)

# The summary -----------------------------------------------------------------------------------------------------


def summarize(runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that the section shows, as plain data."""
    scores = scores_of(runs)
    scores = {key: scores[key] for key in sorted(scores, key=lambda key: (list(TABLES).index(key[0]), key[1]))}
    peers = [name for name in PEERS if any(name in row for row in scores.values())]
    found = groups(scores, peers)
    return {
        "versions": versions_of(runs),
        "regrets": regret_summary(runs, scores, peers),
        "ranks": [ranks(scores, group) for group in found],
        "ratios": [ratios(scores, group) for group in found if OURS in group[0]],
        "spent": [spent_summary(runs, peer) for peer in peers],
        "errors": errors_of(runs),
    }


def ratios(scores: Scores, group: Group) -> dict[str, Any]:
    """Our median regret over each peer's and over the best peer's, at each share: geometric means over tables."""
    members, keys = group
    tables = list(dict.fromkeys(problem for problem, _ in keys))
    medians = np.array([floored_medians(scores, group, problem) for problem in tables])  # tables, members, shares
    ours, peers = members.index(OURS), [k for k, name in enumerate(members) if name != OURS]
    logs = np.log(medians[:, [ours]]) - np.log(medians[:, peers])
    worst = logs.max(axis=1)  # our ratio to the best peer is the largest
    return {
        "runs": len(keys),
        "tables": len(tables),
        "by_table": {problem: np.exp(log).tolist() for problem, log in zip(tables, worst, strict=True)},
        "to": {
            **{members[k]: np.exp(logs[:, j].mean(axis=0)).tolist() for j, k in enumerate(peers)},
            BEST: np.exp(worst.mean(axis=0)).tolist(),
        },
    }


def floored_medians(scores: Scores, group: Group, problem: str) -> np.ndarray:
    """Of each member of the group at each share, over the group's runs of a table."""
    members, keys = group
    regrets = [[scores[key][peer] for peer in members] for key in keys if key[0] == problem]
    return np.maximum(np.median(regrets, axis=0), FLOOR * random_median(scores, problem))


class Target(NamedTuple):
    """What we want, what was measured, and whether that is it."""

    wanted: str
    measured: str
    met: bool


def targets(summary: Mapping[str, Any]) -> list[Target]:
    """First in mean rank at every share; at most half of the best peer's regret at half and at all of the budget."""
    found = []
    for group in summary["ranks"]:
        if OURS in group["mean_rank"]:
            found += [rank_target(group, k) for k in range(len(SHARES))]
    for group in summary["ratios"]:
        for share in RATIO_SHARES:
            ratio = group["to"][BEST][SHARES.index(share)]
            where = f"at {share:.0%}, over {group['runs']} runs"
            found.append(
                Target(f"regret over the best peer's {where}: {MAX_RATIO:g}", f"{ratio:.2f}", ratio <= MAX_RATIO)
            )
    return found


def rank_target(group: Mapping[str, Any], k: int) -> Target:
    """Ours against the best of the others at one share."""
    mean = {peer: rank[k] for peer, rank in group["mean_rank"].items()}
    ours = mean.pop(OURS)
    next_best = min(mean, key=mean.__getitem__)
    return Target(
        f"first in mean rank at {SHARES[k]:.0%}, over {group['runs']} runs",
        f"{ours:.2f}, {PEERS[next_best].title} {mean[next_best]:.2f}",
        ours < mean[next_best],
    )


# As text ---------------------------------------------------------------------------------------------------------


def section(summary: Mapping[str, Any]) -> str:
    """Markdown, as it stands in docs/comparison.md."""
    return "\n\n".join(
        [INTRODUCTION, *regret_parts(summary), *rank_parts(summary), *ratio_parts(summary), *end(summary)]
    )


INTRODUCTION = """\
### Real tuning tables

Seven tables in which every configuration of a space was trained and timed (`benchmarks/real_tables.py`). HPOLib (Klein
and Hutter, 2019): 62,208 networks of two layers on each of four data sets; six numbers and three choices, the
validation loss, 4 repeats. NAS-Bench-201 (Dong and Yang, 2020): 15,625 cells on each of three data sets; six choices of
five, the validation error in percent, 2 or 3 repeats. The cost is the true training time: from the cheapest to the
dearest a factor of 44 to 177 on HPOLib and of 6 on NAS-Bench-201, and the best configuration takes 1.5 to 2.8 times the
average.

A number is posed to all as the index of its level. An evaluation is one of the repeats, drawn at random. The regret is
that of the point with the best value seen: the mean over its repeats less the best mean of the table. The budget is for
40 trials of average cost; the start is charged too, and a trial that ends beyond the budget does not count. SMAC3 is
told that values are exact, so that it repeats no point.

```
peers/bin/pip install -e .[benchmarks]
peers/bin/python benchmarks/quality_real.py --python neps=peers-neps/bin/python
```"""


def regret_parts(summary: Mapping[str, Any]) -> list[str]:
    parts = []
    for collection, name in ((HPOLIB, "HPOLib"), (NASBENCH201, "NAS-Bench-201")):
        rows = [row for row in summary["regrets"] if TABLES[row["problem"]] is collection]
        if rows:
            titled = [{**row, "problem": TITLES[row["problem"]]} for row in rows]
            parts += [f"{name}: median regret after 25, 50 and 100 % of the budget:", regret_table(titled)]
    return parts


def rank_parts(summary: Mapping[str, Any]) -> list[str]:
    parts = []
    for group in summary["ranks"]:
        runs, members = group["runs"], len(group["mean_rank"])
        parts += [f"Mean rank of {members}, over the {runs} runs that all of them have:", rank_table(group)]
    return parts


def ratio_parts(summary: Mapping[str, Any]) -> list[str]:
    parts = []
    for group in summary["ratios"]:
        lines = [
            [PEERS[peer].title if peer in PEERS else peer, *(f"{ratio:.2f}" for ratio in mean)]
            for peer, mean in group["to"].items()
        ]
        title = (
            f"pbgi's median regret over a peer's, the geometric mean over {group['tables']} tables, from the "
            f"{group['runs']} runs that all of these have. The best peer is chosen for each table and each point of "
            "the budget. Medians below a thousandth of random search's at the end count as that thousandth:"
        )
        parts += [
            textwrap.fill(title, WIDTH),
            table(["over that of", *(f"{share:.0%} of the budget" for share in SHARES)], lines),
        ]
    return parts


def end(summary: Mapping[str, Any]) -> list[str]:
    """What was spent, and who broke down."""
    lines = [
        [
            PEERS[row["peer"]].title,
            f"{row['mean']:.1%}",
            f"{row['largest']:.1%}",
            f"{row['over']} of {row['runs']}",
            f"{row['mean_over']:.1%}",
        ]
        for row in summary["spent"]
    ]
    header = ["package", "mean", "largest", "runs beyond the budget", "by, in the mean"]
    broken = [f"{PEERS[peer].title} in {sum(counts.values())}" for peer, counts in summary["errors"].items()]
    return [
        "What was spent when a run was over:",
        table(header, lines),
        *([f"Runs that broke down, and count with what they had found: {', '.join(broken)}."] if broken else []),
    ]


def target_lines(summary: Mapping[str, Any]) -> list[str]:
    """One line for each target; one line if there is nothing to say."""
    lines = [f"{t.wanted}: {t.measured}, {'met' if t.met else 'not met'}" for t in targets(summary)]
    return lines or ["pbgi shares no runs with others yet"]
