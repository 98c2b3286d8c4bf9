"""The examples run, as a user would run them, and say what they found."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import pbgi

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*command: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, *map(str, command)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, done.stderr
    return done


def test_every_example_is_tested():
    tested = {
        "ax_budget",
        "compare_sklearn",
        "cost_per_sample",
        "demo",
        "demo_picture",
        "demo_races",
        "draw_idea",
        "draw_simulators",
        "optuna_study",
        "pandoras_box",
        "parallel_with_failures",
        "ray_tune",
        "report",
        "sklearn_search",
        "staged_boxes",
    }
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested


@pytest.mark.skipif(find_spec("Box2D") is None, reason="needs pbgi[problems]")
def test_simulators_are_drawn(tmp_path):
    run("-W", "error", EXAMPLES / "draw_simulators.py", "--out", tmp_path)
    for name in ("lunar_lander.png", "robot_pushing.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(find_spec("ax") is None, reason="needs pbgi[ax]")
def test_ax_budget():
    out = run(EXAMPLES / "ax_budget.py", "--budget", 40).stdout
    seconds = [float(s) for s in re.findall(r"% in +([\d.]+) s; best", out)]
    assert float(re.search(r"trials took ([\d.]+) s", out)[1]) == pytest.approx(sum(seconds), abs=0.1 * len(seconds))
    errors = [float(e) for e in re.findall(r": error +([\d.]+) % in +[\d.]+ s;", out)]
    assert float(re.search(r"Best: error ([\d.]+) %", out)[1]) == min(errors)
    assert sum(seconds[:-1]) < 40


def test_cost_per_sample_stops_and_explains():
    out = run("-W", "error", EXAMPLES / "cost_per_sample.py").stdout
    assert "Stopped by GittinsStop: no further trial is worth its price" in out
    best = float(re.search(r"wastes ([\d.]+) %\.", out)[1])
    assert 4.0 <= best < 4.5  # 4 is the least possible, 10 the most
    price, worth = (float(x) for x in re.search(r"would cost ([\d.]+) .* worth ([\d.]+) euro", out).groups())
    assert worth < price


def test_cost_per_sample_buys_more_where_it_is_worth_more():
    def n_bakes(euro_per_point: float) -> int:
        out = run(EXAMPLES / "cost_per_sample.py", "--euro-per-point", euro_per_point).stdout
        return int(re.search(r"(\d+) bakes cost", out)[1])

    assert n_bakes(0.5) < n_bakes(200.0)


def test_cost_per_sample_refuses_a_worth_of_nothing():
    assert "must be positive" in run(EXAMPLES / "cost_per_sample.py", "--euro-per-point", 0, status=1).stderr


def test_optuna_study_goes_on_with_a_larger_budget(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    counts = []
    for budget in (6, 10):
        out = run("-W", "error", EXAMPLES / "optuna_study.py", "--budget", budget, "--storage", storage).stdout
        n_trials, spent = re.match(r"(\d+) trials, ([\d.]+) spent of", out).groups()
        assert float(spent) < budget + 2.4  # what it learns may be too little, and no trial costs more
        counts.append(int(n_trials))
    assert counts[0] < counts[1]


def test_parallel_with_failures_resumes(tmp_path):
    state = tmp_path / "state.json"
    command = ("-W", "error", EXAMPLES / "parallel_with_failures.py", "--budget", 1.5, "--workers", 3)
    out = run(*command, "--state", state).stdout
    before, after = out.split("Killed. ")
    assert len(re.findall(r"^  trial", before, re.MULTILINE)) == int(re.search(r"knows (\d+) finished", after)[1])
    assert re.search(r"Best: loss [\d.]+ with", after)

    left = pbgi.Optimizer.from_json(state.read_text())
    numbers = [int(number) for number in re.findall(r"^  trial +(\d+),", out, re.MULTILINE)]
    assert sorted(numbers) == list(range(len(left.trials)))  # each trial ended once, before or after
    assert left.reserved == 0.0
    assert sum(trial["state"] == "failed" for trial in json.loads(state.read_text())["history"]["trials"]) == int(
        re.search(r"(\d+) of them failed", out)[1]
    )


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs pbgi[ray]")
def test_ray_tune(tmp_path):
    out = run("-W", "error", EXAMPLES / "ray_tune.py", "--budget", 6, "--folder", tmp_path / "experiment").stdout
    errors = [float(error) for error in re.findall(r"^  error ([\d.]+) in", out, re.MULTILINE)]
    assert float(re.search(r"Best error ([\d.]+) with", out)[1]) == min(errors)
    seconds = [float(s) for s in re.findall(r"^  .* in ([\d.]+) s \(", out, re.MULTILINE)]
    n_trials, spent = re.search(r"(\d+) trials took ([\d.]+) s of 6 s", out).groups()
    assert len(seconds) == int(n_trials)
    assert sum(seconds) <= float(spent) + 0.01 * len(seconds)  # trials that were cut off are charged nothing yet
    assert "Stopped: " in out


@pytest.mark.skipif(find_spec("plotly") is None, reason="needs pbgi[plot]")
def test_report(tmp_path):
    page = tmp_path / "report.html"
    out = run("-W", "error", EXAMPLES / "report.py", "--trials", 14, "--out", page).stdout
    best = float(re.search(r"Best loss ([\d.]+) after", out)[1])
    assert "<title>Tuning a network</title>" in page.read_text()
    shown = float(re.search(r'<p class="value">([\d.e-]+)</p>', page.read_text())[1])
    assert shown == pytest.approx(best, abs=1e-4)


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_idea_is_drawn(tmp_path):
    out = run("-W", "error", EXAMPLES / "draw_idea.py", "--out", tmp_path).stdout
    assert re.match(r"trained: deep, small, wide; kept a score of [\d.]+ for 25 dollars", out)
    assert (tmp_path / "idea.png").read_bytes().startswith(b"\x89PNG")


def test_pandoras_box(tmp_path):
    out = run(EXAMPLES / "pandoras_box.py", "--out", tmp_path).stdout
    assert "Test in this order" in out
    assert (tmp_path / "pandoras_box.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_staged_boxes(tmp_path):
    out = run(EXAMPLES / "staged_boxes.py", "--out", tmp_path).stdout
    nets = {name: float(net) for name, net in re.findall(r"(at once|by stage) .* net +([\d.]+)", out)}
    assert nets["by stage"] > nets["at once"] > 0
    assert "prototype for 30" in out
    assert (tmp_path / "staged_boxes.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_sklearn_search():
    out = run("-W", "error", EXAMPLES / "sklearn_search.py", "--budget", 3, "--samples", 300).stdout
    best, held_out = map(float, re.search(r"Best accuracy ([\d.]+), and ([\d.]+) on digits held out", out).groups())
    assert 0.5 < best <= 1.0
    assert 0.5 < held_out <= 1.0
    rows = [float(score) for score in re.findall(r"^  accuracy ([\d.]+) in", out, re.MULTILINE)]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] == best
    n, spent, least, most = re.search(r"(\d+) candidates took ([\d.]+) s, from ([\d.]+) s to ([\d.]+) s", out).groups()
    assert int(n) * float(least) - 0.1 <= float(spent) <= int(n) * float(most) + 0.1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sklearn") is None or find_spec("matplotlib") is None, reason="needs pbgi[demo]")
def test_compare_sklearn_runs_and_tells_again_without_running(tmp_path):
    command = ("-W", "error", EXAMPLES / "compare_sklearn.py", "--budget", 1, "--seeds", 1, "--out", tmp_path)
    first = run(*command)
    saved = json.loads((tmp_path / "compare_sklearn.json").read_text())
    assert len(saved["runs"]) == first.stderr.count("seed 0, ") == 3
    for told in saved["runs"]:
        assert sum(candidate["seconds"] for candidate in told["evaluated"]) <= 1.0
        losses = [step["cv_loss"] for step in told["steps"]]
        assert losses == sorted(losses, reverse=True)
    assert (tmp_path / "compare_sklearn.png").read_bytes().startswith(b"\x89PNG")

    again = run(*command)
    assert (again.stdout, again.stderr) == (first.stdout, "")
    assert "take another --out" in run(*command, "--budget", 2, status=1).stderr
