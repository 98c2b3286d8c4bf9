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
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done


def test_every_example_is_tested():
    tested = {
        "ax_budget",
        "cost_per_sample",
        "demo",
        "draw_simulators",
        "optuna_study",
        "pandoras_box",
        "parallel_with_failures",
        "tune_sklearn",
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


@pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_tune_sklearn():
    out = run(EXAMPLES / "tune_sklearn.py", "--budget", 2, "--samples", 300).stdout
    assert 0.5 < float(re.search(r"Best accuracy ([\d.]+) with", out)[1]) <= 1.0
    n_trials, spent = re.search(r"(\d+) trials took ([\d.]+) s", out).groups()
    groups = re.findall(r"^ +(\d+) trials, +([\d.]+) s, best accuracy", out, re.MULTILINE)
    assert sum(int(n) for n, _ in groups) == int(n_trials)
    assert sum(float(s) for _, s in groups) == pytest.approx(float(spent), abs=0.3)  # each is rounded to a tenth
    assert "Stopped: " in out


def test_tune_sklearn_says_what_to_install():
    code = "import runpy, sys; sys.modules['sklearn'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    assert "pip install" in run("-c", code, EXAMPLES / "tune_sklearn.py", status=1).stderr


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_pandoras_box(tmp_path):
    out = run(EXAMPLES / "pandoras_box.py", "--out", tmp_path).stdout
    assert "Test in this order" in out
    assert (tmp_path / "pandoras_box.png").read_bytes().startswith(b"\x89PNG")
