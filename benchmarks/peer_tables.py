"""What came out of `bench_peers.py`: medians, ranks, and every peer beside pbgi, as Markdown tables.

A run is a dict as `peer_runs.py` makes it. Ranks compare runs of one problem and seed, so they are given for two
groups: all contestants on the seeds that all of them ran, and those that ran every seed.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from peers import PEERS

SHARES = (0.25, 0.5, 1.0)
OURS = "pbgi"
# In ratios, regrets below this share of random search's at the end are taken to be this: all as good as nothing.
FLOOR = 1e-3
ROUNDING = 1e-9
Run = Mapping[str, Any]
Scores = dict[tuple[str, int], dict[str, list[float]]]  # by problem and seed, then by peer: regrets at SHARES
Group = tuple[list[str], list[tuple[str, int]]]  # contestants, and the problems and seeds that all of them ran


def best_at(run: Run, share: float) -> float:
    """The regret of the point with the best value when so much was spent; infinite if no trial had ended.

    With noise that is not the least regret: nobody can see it. Runs without noise may leave out the values.
    """
    ended = np.cumsum(run["costs"]) <= share * run["budget"] * (1.0 + ROUNDING)
    if not ended.any():
        return math.inf
    best = np.asarray(run.get("values", run["regrets"]))[ended].argmin()
    return float(np.asarray(run["regrets"])[ended][best])


def of_kind(runs: Sequence[Run], kind: str) -> list[Run]:
    """Those that came to an outcome; the last one of each job."""
    found = [run for run in runs if run["kind"] == kind and ("regrets" in run or "seconds" in run)]
    keys = ("peer", "problem", "d", "n", "seed")
    return list({tuple(run.get(key) for key in keys): run for run in found}.values())


def scores_of(runs: Sequence[Run]) -> Scores:
    scores: Scores = {}
    for run in of_kind(runs, "quality"):
        row = scores.setdefault((run["problem"], run["seed"]), {})
        row[run["peer"]] = [best_at(run, share) for share in SHARES]
    return scores


# The summary -----------------------------------------------------------------------------------------------------


def summarize(runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that the tables show, as plain data."""
    scores = scores_of(runs)
    peers = [name for name in PEERS if any(name in row for row in scores.values())]
    return {
        "versions": versions_of(runs),
        "seconds": speed_summary(runs),
        "regrets": regret_summary(runs, scores, peers),
        "ranks": [ranks(scores, group) for group in groups(scores, peers)],
        "beside_pbgi": [beside_ours(scores, peer) for peer in peers if peer != OURS],
        "spent": [spent_summary(runs, peer) for peer in peers],
        "errors": errors_of(runs),
    }


def versions_of(runs: Sequence[Run]) -> dict[str, str]:
    """Of the packages, by contestant; those of the latest run."""
    return {run["peer"]: run["version"] for run in runs if "version" in run}


def speed_summary(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Median seconds by size and peer, how many were timed, and how many times ours that is."""
    times: dict[tuple[int, int], dict[str, list[float]]] = {}
    for run in of_kind(runs, "speed"):
        times.setdefault((run["d"], run["n"]), {}).setdefault(run["peer"], []).extend(run["seconds"])
    rows = []
    for (d, n), by_peer in sorted(times.items()):
        medians = {peer: statistics.median(by_peer[peer]) for peer in PEERS if peer in by_peer}
        ours = medians.get(OURS, math.nan)
        cells = {
            peer: {"median": m, "timed": len(by_peer[peer]), "times_pbgi": m / ours} for peer, m in medians.items()
        }
        rows.append({"d": d, "n": n, "peers": cells})
    return rows


def regret_summary(runs: Sequence[Run], scores: Scores, peers: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for problem in dict.fromkeys(problem for problem, _ in scores):
        for peer in peers:
            regrets = [row[peer] for (name, _), row in scores.items() if name == problem and peer in row]
            mine = [r for r in of_kind(runs, "quality") if r["problem"] == problem and r["peer"] == peer]
            if regrets:
                rows.append(
                    {
                        "problem": problem,
                        "peer": peer,
                        "seeds": len(regrets),
                        "median_regret": np.median(regrets, axis=0).tolist(),
                        "median_trials": statistics.median(len(run["costs"]) for run in mine),
                        "errors": sum(run["error"] is not None for run in mine),
                    }
                )
    return rows


def groups(scores: Scores, peers: Sequence[str]) -> list[Group]:
    """Contestants with the runs that all of them have: everybody, and those with the most runs."""
    count = {peer: sum(peer in row for row in scores.values()) for peer in peers}
    most = [peer for peer in peers if count[peer] == max(count.values())]
    found = []
    for members in ([*peers], most) if len(most) < len(peers) else ([*peers],):
        shared = [key for key, row in scores.items() if all(peer in row for peer in members)]
        if len(members) > 1 and shared:
            found.append((members, shared))
    return found


def ranks(scores: Scores, group: Group) -> dict[str, Any]:
    """Mean ranks of the members, at each share; equal ones share theirs."""
    members, keys = group
    rows = np.array([[scores[key][peer] for peer in members] for key in keys])  # runs, members, shares
    better, equal = rows[:, None] < rows[:, :, None], rows[:, None] == rows[:, :, None]
    mean = (0.5 + (better + 0.5 * equal).sum(axis=2)).mean(axis=0)  # each is equal to itself
    return {"runs": len(keys), "mean_rank": dict(zip(members, mean.tolist(), strict=True))}


def beside_ours(scores: Scores, peer: str) -> dict[str, Any]:
    """At the end of the budget: runs in which ours is better, and the geometric mean of peer's regret over ours."""
    by_problem: dict[str, list[float]] = {}  # logarithms of the ratio
    for (problem, _), row in scores.items():
        if peer in row and OURS in row:
            floor = FLOOR * random_median(scores, problem)
            ratio = max(row[peer][-1], floor) / max(row[OURS][-1], floor)
            by_problem.setdefault(problem, []).append(math.log(ratio))
    logs = [log for mine in by_problem.values() for log in mine]
    return {
        "peer": peer,
        "runs": len(logs),
        "pbgi_better": better_of(logs),
        "by_problem": {problem: [better_of(mine), len(mine)] for problem, mine in by_problem.items()},
        "regret_ratio": math.exp(statistics.fmean(logs)) if logs else math.nan,
    }


def better_of(logs: Sequence[float]) -> float:
    """How many ratios speak for ours; equal ones count half."""
    return sum(1.0 if log > 0.0 else 0.5 if log == 0.0 else 0.0 for log in logs)


def random_median(scores: Scores, problem: str) -> float:
    found = [row["random"][-1] for (name, _), row in scores.items() if name == problem and "random" in row]
    return statistics.median(found) if found else 0.0


def spent_summary(runs: Sequence[Run], peer: str) -> dict[str, Any]:
    """Shares of the budget that were spent when a run was over: the last trial may have ended beyond it."""
    shares = [sum(run["costs"]) / run["budget"] for run in of_kind(runs, "quality") if run["peer"] == peer]
    over = [share - 1.0 for share in shares if share > 1.0 + ROUNDING]
    return {
        "peer": peer,
        "runs": len(shares),
        "mean": statistics.fmean(shares),
        "largest": max(shares),
        "over": len(over),
        "mean_over": statistics.fmean(over) if over else 0.0,
    }


def errors_of(runs: Sequence[Run]) -> dict[str, dict[str, int]]:
    """How often each contestant broke down, by message."""
    counts: dict[str, dict[str, int]] = {}
    for run in runs:
        if run.get("error"):
            message = f"{run.get('problem') or run['kind']}: {run['error']}"[:200]
            mine = counts.setdefault(run["peer"], {})
            mine[message] = mine.get(message, 0) + 1
    return counts


# As text ---------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tables(summary: Mapping[str, Any]) -> dict[str, str]:
    """By title."""
    return {
        "Seconds per suggestion": speed_table(summary["seconds"]),
        "Median regret at 25, 50 and 100 % of the budget": regret_table(summary["regrets"]),
        **{f"Mean rank over {group['runs']} runs": rank_table(group) for group in summary["ranks"]},
        "Beside pbgi at the end of the budget": beside_table(summary["beside_pbgi"]),
        "Spent when the run was over": spent_table(summary["spent"]),
    }


def show(summary: Mapping[str, Any]) -> None:
    """Print the tables."""
    for title, text in tables(summary).items():
        print(f"\n{title}\n\n{text}")


def speed_table(rows: Sequence[Mapping[str, Any]]) -> str:
    header = ["package", *(f"d = {row['d']}, n = {row['n']}" for row in rows)]
    peers = [peer for peer in PEERS if any(peer in row["peers"] for row in rows)]
    lines = []
    for peer in peers:
        cells = [row["peers"].get(peer) for row in rows]
        lines.append([PEERS[peer].title, *("-" if c is None else seconds_cell(c, peer) for c in cells)])
    return table(header, lines)


def seconds_cell(cell: Mapping[str, Any], peer: str) -> str:
    times = cell["times_pbgi"]
    factor = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
    return f"{cell['median']:.3f} s" + ("" if peer == OURS else f" ({factor} x)")


def regret_table(rows: Sequence[Mapping[str, Any]]) -> str:
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    cells = {(row["peer"], row["problem"]): row for row in rows}
    peers = [peer for peer in PEERS if any(peer == row["peer"] for row in rows)]
    lines = []
    for peer in peers:
        mine = [cells.get((peer, problem)) for problem in problems]
        seeds = max(row["seeds"] for row in mine if row is not None)
        lines.append([PEERS[peer].title, str(seeds), *("-" if row is None else regret_cell(row) for row in mine)])
    return table(["package", "seeds", *problems], lines)


def regret_cell(row: Mapping[str, Any]) -> str:
    return "; ".join(f"{regret:,.0f}" if regret >= 100 else f"{regret:.2g}" for regret in row["median_regret"])


def rank_table(group: Mapping[str, Any]) -> str:
    ordered = sorted(group["mean_rank"].items(), key=lambda item: item[1][-1])
    lines = [[PEERS[peer].title, *(f"{rank:.1f}" for rank in mean)] for peer, mean in ordered]
    return table(["package", *(f"{share:.0%} of the budget" for share in SHARES)], lines)


def beside_table(rows: Sequence[Mapping[str, Any]]) -> str:
    problems = list(dict.fromkeys(problem for row in rows for problem in row["by_problem"]))
    lines = []
    for row in rows:
        counts = [row["by_problem"].get(problem) for problem in problems]
        cells = ["-" if count is None else f"{count[0]:g} of {count[1]}" for count in counts]
        ratio = f"{row['regret_ratio']:.1f}"
        lines.append([PEERS[row["peer"]].title, *cells, f"{row['pbgi_better']:g} of {row['runs']}", ratio])
    return table(["pbgi is better than", *problems, "in all", "its regret over pbgi's"], lines)


def spent_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [[PEERS[row["peer"]].title, f"{row['mean']:.1%}", f"{row['largest']:.1%}"] for row in rows]
    return table(["package", "mean", "largest"], lines)
