"""The demo tunes a network within its budget, tells what it spent on what, draws it, and goes on when run again."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

pytestmark = pytest.mark.skipif(
    find_spec("sklearn") is None or find_spec("matplotlib") is None, reason="needs pbgi[demo]"
)
DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
STUDIES = ("pbgi, seed 3", "random search, seed 3")


def run(out, *arguments, status=0):
    command = [sys.executable, "-W", "error", DEMO, "--out", out, "--seed", "3", *map(str, arguments)]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == status, done.stderr
    return done


def trials_of(out, study):
    return optuna.load_study(study_name=study, storage=f"sqlite:///{out}/demo.db").trials


def spent(trials):
    return sum(trial.user_attrs.get("cost", 0.0) for trial in trials)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A demo of one and a half seconds each."""
    out = tmp_path_factory.mktemp("demo")
    return out, run(out, "--budget", 1.5), {study: trials_of(out, study) for study in STUDIES}


def test_both_spend_the_same_budget(first):
    _, _, trials = first
    for study in STUDIES:
        assert spent(trials[study]) > 0.75
        done = [trial for trial in trials[study] if trial.state == TrialState.COMPLETE]
        assert spent(done[:-1]) < 1.5  # no trial began after the budget was spent


def test_it_tells_the_result_and_what_was_spent_on_what(first):
    _, done, trials = first
    parts = re.split(r"^(?=pbgi:|random search:)", done.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == 2
    for part, study in zip(parts, STUDIES, strict=True):
        n_trials, seconds = re.search(r"(\d+) trials in ([\d.]+) s of training", part).groups()
        assert float(seconds) == pytest.approx(spent(trials[study]), abs=0.06)
        sizes = re.findall(r"networks +(\d+) trials +([\d.]+) s", part)
        assert sum(int(n) for n, _ in sizes) == int(n_trials)
        assert sum(float(s) for _, s in sizes) == pytest.approx(float(seconds), abs=0.3)  # each is rounded to a tenth
        assert re.search(r"^  complete +\d+ trials", part, re.MULTILINE)
        assert "stopped: " in part


def test_the_best_is_the_best_that_ended_within_the_budget(first):
    _, done, trials = first
    told = re.search(r"^pbgi:.*?best: log loss ([\d.]+) in cross-validation", done.stdout, re.MULTILINE | re.DOTALL)
    within = [trial for i, trial in enumerate(trials[STUDIES[0]]) if spent(trials[STUDIES[0]][: i + 1]) <= 1.5]
    losses = [10.0**trial.value for trial in within if trial.state == TrialState.COMPLETE]
    assert float(told[1]) == pytest.approx(min(losses), abs=1e-4)
    assert 0.0 <= float(re.search(r"never saw: log loss [\d.]+, ([\d.]+) % misread", done.stdout)[1]) <= 100.0


def test_progress_goes_to_stderr_and_the_picture_to_the_folder(first):
    out, done, trials = first
    lines = re.findall(r"^(pbgi|random search) +[\d.]+ s spent, +[\d.]+ s left \| best", done.stderr, re.MULTILINE)
    assert len(lines) >= sum(trial.state == TrialState.COMPLETE for study in STUDIES for trial in trials[study])
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_run_again_it_goes_on(first):
    """With the same budget there is nothing to do; with a larger one new points are added to the old trials."""
    out, _, before = first
    again = run(out, "--budget", 1.5)
    assert "This race is over" in again.stderr
    assert [len(trials_of(out, study)) for study in STUDIES] == [len(before[study]) for study in STUDIES]
    run(out, "--budget", 2.5)
    for study in STUDIES:
        after = trials_of(out, study)
        assert [t.params for t in after[: len(before[study])]] == [t.params for t in before[study]]
        points = [tuple(trial.params.values()) for trial in after if trial.state == TrialState.COMPLETE]
        assert len(set(points)) == len(points)
    assert sum(len(trials_of(out, study)) for study in STUDIES) > sum(len(before[study]) for study in STUDIES)


def test_a_budget_of_nothing_is_refused(tmp_path):
    assert "--budget must be positive" in run(tmp_path, "--budget", 0, status=2).stderr
    assert not (tmp_path / "demo.db").exists()
