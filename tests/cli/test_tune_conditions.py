"""Conditions on outcomes in `pbgi tune`, `ask` and `tell`: read, kept, weighed and reported."""

import json
import sys

import pytest
from cli_runs import write_job

from pbgi.cli import main

PROGRAM = """
import json, sys
x, y = map(float, sys.argv[1:3])
print(json.dumps({"value": x + y, sys.argv[3]: 15 - 10 * x - 10 * y}))
"""
JOB = """
command = [PYTHON, "program.py", "{x}", "{y}", "ms"]
trials = 8
seed = 0
[parameters]
x = { low = 0.0, high = 1.0 }
y = { low = 0.0, high = 1.0 }
[constraints]
ms = { at_most = 10 }
""".replace("PYTHON", json.dumps(sys.executable))


def job_in(folder, *changes):
    (folder / "program.py").write_text(PROGRAM)
    text = JOB
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return write_job(folder, text)


def said(capfd, *arguments, status=0):
    code = main(list(map(str, arguments)))
    out, err = capfd.readouterr()
    assert code == status, err
    return json.loads(out) if code == 0 else err


def test_the_best_trial_keeps_them(tmp_path, capfd):
    """The least x + y with 15 - 10 (x + y) at most 10 is 1/2; what is less is no result."""
    job = job_in(tmp_path)
    ended, trials = said(capfd, "tune", job), said(capfd, "trials", job)
    kept = [trial for trial in trials if trial["outcomes"]["ms"] <= 10.0]
    assert 0 < len(kept) < len(trials) == 8
    assert all(t["outcomes"]["ms"] == pytest.approx(15 - 10 * t["value"]) for t in trials)
    assert ended["best"]["value"] == min(trial["value"] for trial in kept)
    (condition,) = ended["conditions"]
    assert (condition["told"], condition["broken"]) == (8, 8 - len(kept))
    best = said(capfd, "best", job)
    assert best["conditions"] == said(capfd, "status", job)["conditions"] == [condition]
    assert best["recommended"]["outcomes"]["ms"] <= 10.0


def test_a_stricter_limit_takes_effect_at_once(tmp_path, capfd):
    before = said(capfd, "tune", job_in(tmp_path))["best"]
    job = job_in(tmp_path, ("at_most = 10", "at_most = 2"), ("trials = 8", "trials = 12"))
    best = said(capfd, "tune", job)["best"]
    assert before["outcomes"]["ms"] > 2.0 >= best["outcomes"]["ms"]


def test_a_result_without_the_outcome_is_none(tmp_path, capfd):
    job = job_in(tmp_path, ('"ms"]', '"s"]'), ("trials = 8", "trials = 1"))
    main(["tune", str(job)])
    assert "an outcome must be under the key 'ms'" in capfd.readouterr().err


def test_ask_and_tell(tmp_path, capfd, monkeypatch):
    job = job_in(tmp_path)
    trial = said(capfd, "ask", job)["trial"]

    def tell(result, status=0):
        monkeypatch.setattr("sys.stdin", type("Text", (), {"read": lambda _: json.dumps({"trial": trial, **result})})())
        return said(capfd, "tell", job, status=status)

    assert "the outcome 'ms'" in tell({"value": 1.0}, status=2)
    assert "must be a finite number" in tell({"value": 1.0, "ms": "fast"}, status=2)
    assert tell({"value": 1.0, "ms": 5})["outcomes"] == {"ms": 5.0}


def test_outcomes_are_told_by_flags(tmp_path, capfd):
    job = job_in(tmp_path)
    asked = said(capfd, "ask", job)["trial"]
    for flags, rule in (
        ([], "add --outcome ms=NUMBER"),
        (["--outcome", "ms"], "--outcome must be NAME=NUMBER, such as latency_ms=12.3; got 'ms'"),
        (["--outcome", "seconds=1"], "got 'seconds'; ms"),
        (["--outcome", "ms=1", "--outcome", "ms=2"], "--outcome must tell each outcome once; got ms=1, ms=2"),
        (["--outcome", "ms=nan"], "must be"),
    ):
        assert rule in said(capfd, "tell", job, asked, "--value", 1, "--cost", 1, *flags, status=2)
    told = said(capfd, "tell", job, asked, "--value", 1, "--cost", 1, "--outcome", "ms=12.5")
    assert (told["outcomes"], told["value"]) == ({"ms": 12.5}, 1.0)
    failed = said(capfd, "ask", job)["trial"]
    assert said(capfd, "tell", job, failed, "--failed", "--outcome", "ms=99")["outcomes"] == {"ms": 99.0}
    assert "must go with the number" in said(capfd, "tell", job, "--outcome", "ms=1", status=2)


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("ms = 10", "ms must be { at_most = number }"),
        ("ms = { at_most = 10, at_least = 1 }", "ms must be { at_most = number }"),
        ('ms = { at_most = "fast" }', "limit must be a finite number"),
        ("value = { at_most = 1 }", "other than 'value'"),
    ],
)
def test_conditions_that_are_none(tmp_path, capfd, table, rule):
    assert rule in said(capfd, "tune", job_in(tmp_path, ("ms = { at_most = 10 }", table)), status=2)
