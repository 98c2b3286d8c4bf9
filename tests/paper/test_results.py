"""Results on the disk: what is kept of a run, torn lines, merging, and the results in git."""

import json

import numpy as np
import pytest
from toy_runs import on_ackley, record

from paper.curves import plotted
from paper.experiments import EXPERIMENTS
from paper.results import RESULTS, TIMING, Store, condensed, restored
from paper.summary import summarize


def keys(store: Store) -> list[str]:
    return [kept["key"] for kept in store.load()]


def test_store_keeps_records_in_order(tmp_path):
    store = Store(tmp_path / "new")
    assert store.load() == []
    for key in "abc":
        store.append(record(key=key))
    store.append(record(key="d", experiment="another"))
    assert [kept["key"] for kept in store.load(["made_up"])] == ["a", "b", "c"]
    assert keys(store) == ["d", "a", "b", "c"]
    assert {kept["experiment"] for kept in store.load()} == {"made_up", "another"}


def test_torn_line_is_ignored_and_written_again(tmp_path, capsys):
    store = Store(tmp_path)
    store.append(record(key="a"))
    store.append(record(key="b"))
    whole = store.path("made_up").read_bytes()
    for n_lost in (1, 5, 30):
        store.path("made_up").write_bytes(whole[:-n_lost])
        assert keys(store) == (["a", "b"] if n_lost == 1 else ["a"])  # without its newline a line is still whole
        store.append(record(key="b"))
        store.append(record(key="c"))
        assert keys(store) == ["a", "b", "c"]
    assert "line 2 is torn and ignored" in capsys.readouterr().err


def test_merging_is_concatenation(tmp_path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    for key in "ab":
        here.append(record(key=key, wall_seconds=1.0))
    for key in "bc":
        there.append(record(key=key, wall_seconds=2.0))
    with here.path("made_up").open("ab") as file:
        file.write(there.path("made_up").read_bytes())
    merged = [(kept["key"], kept["wall_seconds"]) for kept in here.load()]
    assert merged == [("a", 1.0), ("b", 1.0), ("c", 2.0)]


def test_a_line_by_hand():
    """Minimized from 3; 10 + 5 spent in vain, then 1 for 30, then 0.5 at once for 2, then 4 in vain."""
    run = record((5.0, 3.0, 4.0, 3.0, 1.0, 0.5, 2.0), (7.0, 9.0, 10.0, 5.0, 30.0, 2.0, 4.0))
    line = condensed(run)
    assert line["best"] == [3, 1, 0.5]
    assert line["costs"] == [15, 30, 0, 2, 4]
    assert "values" not in line
    assert "suggest_seconds" not in line
    back = restored(line)
    assert (back["values"], back["costs"]) == ([3, 3, 1, 1, 0.5, 0.5], [0.0, 15, 30, 0, 2, 4])


def test_timing_keeps_the_seconds_of_every_suggestion():
    assert condensed(record(experiment=TIMING))["suggest_seconds"] == [0.5, 1.5]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_condensed_run_is_plotted_as_the_run(direction):
    rng = np.random.default_rng(0)
    for n_start, n in ((1, 1), (1, 2), (3, 60), (5, 5)):
        whole = record(rng.normal(size=n), rng.uniform(0.1, 5.0, n), n_start=n_start, direction=direction)
        short = condensed(whole)
        grid = np.linspace(0.0, 150.0, 301)
        for form in ("step", "linear"):
            expected = plotted(whole, grid, "regret", form)
            np.testing.assert_allclose(plotted(restored(short), grid, "regret", form), expected, rtol=1e-5, atol=1e-5)
        assert len(short["best"]) <= n - n_start + 1
        assert condensed({"experiment": "made_up", **restored(short)}) == short


def test_kept_runs_give_the_same_summary(tmp_path):
    runs = on_ackley("PBGI", (0.4, 0.5, 0.6))
    store = Store(tmp_path)
    for run in runs:
        store.append(run)
    assert store.path("synthetic").read_text().count("\n") == 3
    np.testing.assert_allclose(summarize(store.load())[0].linear.median, summarize(runs)[0].linear.median, rtol=1e-6)


# In git -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_results_in_git_belong_to_runs_of_today(path):
    """A change of a name that is part of a specification would have all of them run again."""
    records = Store().load([path.stem])
    assert records
    n_seeds = 1 + max(kept["seed"] for kept in records)
    experiment = EXPERIMENTS[path.stem]
    runs = {run.key: run for s in (False, True) for run in experiment(n_seeds, variant=None, smaller=s)}
    for kept in records:
        run = runs[kept["key"]]
        labels = {**run.labels, "seed": run.specification.seed}
        assert labels == {name: kept[name] for name in labels}


def test_results_and_figures_in_git_are_small():
    """Every clone has all of them, of every commit: at most 5 MB together."""
    root = RESULTS.parents[1]
    folders = ("docs/images/*", "docs/images/paper/*", "paper/reference/*", "paper/results/*", "benchmarks/results/*")
    files = (path for pattern in folders for path in root.glob(pattern) if path.is_file())
    paths = [path for path in files if path.suffix != ".pdf"]  # made beside the pictures, and not kept
    assert len(paths) > 50
    assert sum(path.stat().st_size for path in paths) <= 5_000_000


def test_a_line_in_git_is_plain_json():
    for path in RESULTS.glob("*.jsonl"):
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            assert len(line["costs"]) == 2 * len(line["best"]) - 1
