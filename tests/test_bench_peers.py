"""The comparison with other packages runs, skips what is missing, goes on where it stopped, and counts right."""

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import pbgi

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    files = ["--raw", folder / "raw" / "runs.jsonl", "--json", folder / "peers.json"]
    command = [sys.executable, "-W", "error", BENCHMARKS / "bench_peers.py", *map(str, files), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done


# The script --------------------------------------------------------------------------------------------------------


def test_runs_resumes_and_writes(tmp_path):
    tiny = ("--peers", "pbgi", "optuna-tpe", "random", "--problems", "Network", "--seeds", "1", "--share", "0.2")
    assert "0 of 3 runs are there already" in bench(tmp_path, *tiny, "--no-speed").stderr
    raw = tmp_path / "raw" / "runs.jsonl"
    runs = [json.loads(line) for line in raw.read_text().splitlines()]
    assert {run["peer"] for run in runs} == {"pbgi", "optuna-tpe", "random"}
    for run in runs:
        assert run["error"] is None
        assert sum(run["costs"][:-1]) < run["budget"]
        assert min(run["regrets"]) >= 0.0

    lost = raw.read_text().splitlines()
    raw.write_text("\n".join(lost[:2]) + "\n" + lost[2][:40] + "\n")  # killed while it wrote
    again = bench(tmp_path, *tiny, "--no-speed")
    assert "2 of 3 runs are there already" in again.stderr
    assert "not whole" in again.stderr
    summary = json.loads((tmp_path / "peers.json").read_text())
    assert {row["peer"]: row["seeds"] for row in summary["regrets"]} == {"pbgi": 1, "optuna-tpe": 1, "random": 1}
    assert sum(rank[-1] for rank in summary["ranks"][0]["mean_rank"].values()) == pytest.approx(1 + 2 + 3)
    assert "| Optuna, TPE | 1 |" in again.stdout


def test_picture_is_drawn_from_what_has_been_run(tmp_path):
    pytest.importorskip("matplotlib")
    run = {"kind": "quality", "problem": "Network", "seed": 0, "budget": 3.0, "costs": [1.0, 1.0], "error": None}
    (tmp_path / "raw").mkdir()
    lines = [{**run, "peer": "pbgi", "regrets": [0.5, 0.1]}, {**run, "peer": "random", "regrets": [0.6, 0.3]}]
    (tmp_path / "raw" / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    bench(tmp_path, "--tables", "--picture", str(tmp_path / "peers.png"))
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_missing_packages_are_named_and_left_out(monkeypatch, capsys):
    import peer_jobs

    monkeypatch.setattr(peer_jobs, "run_apart", lambda python, job: {"pbgi": "0.1.0"})  # noqa: ARG005
    assert peer_jobs.Interpreters([]).installed(["pbgi", "skopt"]) == ["pbgi"]
    assert "skopt does not take part: pip install scikit-optimize" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="must name a module"):
        peer_jobs.Interpreters(["nonsense=/usr/bin/python3"])


def test_every_installed_peer_remembers_asks_and_tells():
    from peer_runs import run_apart
    from peers import PEERS

    job = {"kind": "speed", "d": 2, "n": 6, "repeats": 1, "seed": 0}
    tried = [name for name, entry in PEERS.items() if importlib.util.find_spec(entry.module) is not None]
    outcomes = {name: run_apart(sys.executable, {**job, "peer": name}) for name in tried}
    assert {"pbgi", "random", "optuna-tpe"} <= set(tried)
    assert {name: outcome.get("error") for name, outcome in outcomes.items()} == dict.fromkeys(tried)
    assert all(len(outcome["seconds"]) == 1 for outcome in outcomes.values())


def test_a_process_that_dies_is_an_outcome():
    from peer_runs import run_apart

    outcome = run_apart(sys.executable, {"kind": "quality", "peer": "nobody", "problem": "Levy", "seed": 0})
    assert outcome == {"error": "KeyError: 'nobody'"}


# The problems ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Ackley", "Levy", "Rosenbrock"])
def test_moved_functions_keep_their_optimum_inside(name):
    from peer_problems import PROBLEMS

    problem = PROBLEMS[name](seed := 3)
    names = list(problem.space)

    def value(x):
        return problem.evaluate(dict(zip(names, map(float, x), strict=True)))[0]

    points = np.random.default_rng(seed).random((300, len(names)))
    values = [value(x) for x in points]
    assert min(values) > problem.optimum
    climbs = [minimize(value, x, bounds=[(0, 1)] * len(names)) for x in points[np.argsort(values)[:40]]]
    assert min(climb.fun for climb in climbs) == pytest.approx(problem.optimum, abs=1e-3)
    middle, other = dict.fromkeys(names, 0.5), PROBLEMS[name](seed + 1)
    assert problem.evaluate(middle)[0] != other.evaluate(middle)[0]
    assert problem.evaluate(middle)[1] == problem.mean_cost == 11.0


def test_network_costs_vary_fifty_fold_and_its_optimum_is_the_least():
    from peer_problems import PROBLEMS, network_cost

    problem = PROBLEMS["Network"](0)
    assert network_cost(1, 16) == pytest.approx(1.0)
    assert network_cost(8, 512) == pytest.approx(50.0)
    points = pbgi.Space(problem.space).from_unit_many(np.random.default_rng(1).random((2000, 4)))
    outcomes = [problem.evaluate(point) for point in points]
    assert min(value for value, _ in outcomes) > problem.optimum
    assert np.mean([cost for _, cost in outcomes]) == pytest.approx(problem.mean_cost, rel=0.1)
    best = {"rate": 10**-2.45, "layers": 6, "width": 181, "activation": "gelu"}
    assert problem.evaluate(best)[0] == pytest.approx(problem.optimum, abs=1e-12)


# The counting ------------------------------------------------------------------------------------------------------


def test_best_at_counts_trials_that_ended_within_the_share():
    from peer_tables import best_at

    run = {"budget": 6.0, "costs": [1.0, 2.0, 3.0, 0.5], "regrets": [5.0, 1.0, 0.5, 0.0]}
    assert [best_at(run, share) for share in (0.1, 0.25, 0.5, 1.0)] == [math.inf, 5.0, 1.0, 0.5]


def test_ranks_and_ratios_by_hand():
    from peer_tables import beside_ours, groups, ranks

    scores = {
        ("Levy", 0): {"pbgi": [2.0, 1.0, 1.0], "random": [1.0, 1.0, 4.0], "ax": [3.0, 3.0, 2.0]},
        ("Levy", 1): {"pbgi": [1.0, 1.0, 2.0], "random": [2.0, 2.0, 8.0]},
    }
    everybody, most = groups(scores, ["pbgi", "random", "ax"])
    assert everybody == (["pbgi", "random", "ax"], [("Levy", 0)])
    assert most == (["pbgi", "random"], [("Levy", 0), ("Levy", 1)])
    assert ranks(scores, everybody) == {
        "runs": 1,
        "mean_rank": {"pbgi": [2.0, 1.5, 1.0], "random": [1.0, 1.5, 3.0], "ax": [3.0, 3.0, 2.0]},
    }
    against_random = beside_ours(scores, "random")
    assert (against_random["runs"], against_random["pbgi_better"]) == (2, 2.0)
    assert against_random["regret_ratio"] == pytest.approx(4.0)
    assert beside_ours(scores, "ax")["regret_ratio"] == pytest.approx(2.0)


def test_the_page_shows_the_committed_numbers():
    from peer_tables import tables

    summary = json.loads((BENCHMARKS / "results" / "peers.json").read_text())
    page = (BENCHMARKS.parent / "docs" / "comparison.md").read_text()
    assert [title for title, text in tables(summary).items() if text not in page] == []
