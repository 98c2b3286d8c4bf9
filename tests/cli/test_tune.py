"""`pbgi tune` as a user runs it: budget, resuming, failures, odd names, several processes, the progress line."""

import json
import math
import os
import pty
import re
import select
import signal
import stat
import sys
from pathlib import Path

import optuna
import pytest
from cli_runs import ECHO, assert_sound, engine_trials, processes_with, run, start, trials_in, wait_for, write_job
from command_line import said

from pbgi.cli import main
from pbgi.cli.errors import StorageError
from pbgi.cli.program.result import Outcome
from pbgi.cli.study import JobStudy
from pbgi.cli.tune import Tuner
from pbgi.integrations.optuna import cost_summary

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune"


def tune(capfd, *arguments, status=0):
    code = main(["tune", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert code == status, err
    return json.loads(out) if out else None, err


def test_a_whole_run(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 8.0\n" + ECHO)
    said, err = tune(capfd, job)
    trials = assert_sound(job, err)
    assert len(re.findall(r"^trial \d+: value", err, re.MULTILINE)) == len(trials) == said["trials"]["complete"]
    assert said["spent"] <= 8.0
    assert "left of the budget of 8" in said["stop_reason"]
    assert said["best"]["value"] == min(trial.value for trial in trials)
    assert said["best"]["value"] == said["best"]["params"]["x"]
    assert all(trial.user_attrs["cost"] == trial.params["y"] for trial in trials)


def test_maximize_and_number_of_trials(tmp_path, capfd):
    said, _ = tune(capfd, write_job(tmp_path, 'trials = 4\ndirection = "maximize"\n' + ECHO))
    assert said["best"]["value"] == max(trial.value for trial in trials_in(tmp_path / "job.db"))
    assert said["trials"] == {"complete": 4, "failed": 0, "running": 0}
    assert said["stop_reason"] == "Reached the limit of 4 trials"


def test_running_again_goes_on(tmp_path, capfd):
    job = write_job(tmp_path, "budget = 10.0\n" + ECHO)
    text = []
    for budget in (3, 6, 10):
        text.append(tune(capfd, job, "--budget", budget)[1])
    shared = trials_in(tmp_path / "job.db")
    # Up to where the smaller budgets had their say, the points are those of one run.
    assert len(shared) > 6
    assert math.fsum(t.user_attrs["cost"] for t in shared) <= 10.0
    _, err = tune(capfd, job)
    assert "trial" not in err.replace("no trial is expected", "")


def test_the_same_in_one_go_and_in_three(tmp_path, capfd):
    """With a limit on trials instead of the budget, nothing but the crash points differs."""
    whole = write_job(tmp_path, "trials = 9\n" + ECHO, "whole.toml")
    tune(capfd, whole)
    for limit in (2, 5, 9):
        tune(capfd, write_job(tmp_path, f"trials = {limit}\n" + ECHO, "parts.toml"))
    parts, once = trials_in(tmp_path / "parts.db", "parts"), trials_in(tmp_path / "whole.db", "whole")
    assert [t.params for t in parts] == [t.params for t in once]


def test_the_summary_of_the_sampler_agrees(tmp_path, capfd):
    said, _ = tune(capfd, write_job(tmp_path, "budget = 5.0\n" + ECHO))
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    summary = cost_summary(optuna.load_study(study_name="job", storage=storage), budget=5.0)
    storage.engine.dispose()
    assert (summary.spent, summary.remaining, summary.best_value) == (
        said["spent"],
        said["left"],
        said["best"]["value"],
    )


def test_seconds_are_the_default_cost(tmp_path, capfd):
    job = 'command = ["sleep", "{x}"]\nbudget = 50.0\nprice_per_second = 100.0\nmax_failures = 2\n'
    said, _ = tune(capfd, write_job(tmp_path, job + "[parameters]\nx = { low = 0.05, high = 0.06 }\n"), status=1)
    trials = trials_in(tmp_path / "job.db")
    assert said["best"] is None
    assert "the first 2 trials failed" in said["stop_reason"]
    for trial in trials:
        assert trial.user_attrs["cost"] == pytest.approx(100.0 * trial.user_attrs["pbgi:seconds"])
        assert trial.user_attrs["pbgi:seconds"] >= trial.params["x"]


def test_every_attempt_is_charged(tmp_path, capfd):
    script = tmp_path / "flaky.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "seen = pathlib.Path(sys.argv[1]) / 'seen'\n"
        "n = len(seen.read_text()) if seen.exists() else 0\n"
        "seen.write_text('x' * (n + 1))\n"
        "print(json.dumps({'value': 1, 'cost': 2.0 ** n}))\n"
        "sys.exit(n < 2)\n"
    )
    job = f"""
        command = ['{sys.executable}', '{script}', '{{pbgi.folder}}']
        cost = "cost"
        trials = 1
        retries = 2
        [parameters]
        x = [1, 2]
        """
    said, err = tune(capfd, write_job(tmp_path, job))
    assert said["spent"] == 1.0 + 2.0 + 4.0
    assert [(t.cost, t.charged) for t in engine_trials(tmp_path)] == [(4.0, 7.0)]  # a success costs what the last did
    assert said["best"]["value"] == 1.0
    assert "attempt 1 failed, trying again" in err
    (trial,) = trials_in(tmp_path / "job.db")
    folder = tmp_path / "job.trials" / f"0-{trial.user_attrs['pbgi:token']}"
    assert {path.name for path in folder.iterdir()} >= {"stdout.log", "stdout.log.1", "stdout.log.2", "params.json"}


def test_a_timeout_is_charged_and_not_retried(tmp_path, capfd):
    job = 'command = ["sleep", "60"]\ntimeout = 0.3\nretries = 3\ntrials = 1\n[parameters]\nx = [1, 2]\n'
    said, err = tune(capfd, write_job(tmp_path, job), status=1)
    assert "killed after its timeout of 0.3 s" in err
    assert 0.3 <= said["spent"] < 30.0
    assert "trying again" not in err


def test_result_file_and_environment(tmp_path, capfd):
    code = (
        "import json, os; f = os.environ['PBGI_FOLDER']; x = json.loads(os.environ['PBGI_PARAM_x']); "
        "json.dump({{'loss': x}}, open(f + '/r.json', 'w'))"
    )
    job = f"""
        command = ['{sys.executable}', '-c', "{code}"]
        result_file = "r.json"
        objective = "loss"
        trials = 2
        [parameters]
        x = [3, 4]
        """
    said, _ = tune(capfd, write_job(tmp_path, job))
    assert said["best"]["value"] == 3.0


ODD = ["-rf", "$(touch pwned)", "`touch pwned`", "a'b\"c", "new\nline", "😀 é", "", "; touch pwned", "%s {x} \\"]


def test_odd_names_and_values_go_through_unharmed(tmp_path, capfd):
    names = ["-x", "$(touch pwned)", "a\nb", 'q"q', "😀", "a.b", "PATH"]
    folder = tmp_path / "a folder with $(x) and 'quotes'"
    folder.mkdir()
    script = folder / "echo it.py"
    script.write_text(
        "import json, os, sys\n"
        "params = json.load(open(os.environ['PBGI_PARAMS_FILE']))\n"
        "assert list(params.values()) == sys.argv[1:] and params == json.loads(os.environ['PBGI_PARAMS'])\n"
        "print(json.dumps({'value': 1}))\n"
    )
    lines = [f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(ODD, ensure_ascii=False)}" for name in names]
    command = json.dumps([sys.executable, "echo it.py", *(f"{{{name}}}" for name in names)], ensure_ascii=False)
    text = f"command = {command}\ntrials = 12\nname = {json.dumps(ODD[3] + ODD[4] + ODD[5], ensure_ascii=False)}\n"
    job = write_job(folder, text + "[parameters]\n" + "\n".join(lines) + "\n", "it's a job.toml")
    said, err = tune(capfd, job)
    assert said["trials"] == {"complete": 12, "failed": 0, "running": 0}, err
    assert sorted(said["best"]["params"]) == sorted(names)
    assert not list(tmp_path.rglob("pwned"))
    seen = {value for trial in trials_in(folder / "it's a job.db", said["study"]) for value in trial.params.values()}
    assert len(seen) > 6
    assert main(["export", str(job), "--format", "csv"]) == 0
    assert "$(touch pwned)" in capfd.readouterr().out


def test_everything_made_is_private(tmp_path, capfd):
    before = os.umask(0)
    try:
        job = write_job(tmp_path, "trials = 2\n" + ECHO)
        job.chmod(0o644)
        tune(capfd, job)
        main(["export", str(job), "--output", str(tmp_path / "out.csv")])
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path != job]
    assert {"job.db", "out.csv", "stdout.log", "outcome.json"} <= {path.name for path in made}
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_two_processes_share_the_budget(tmp_path):
    command = (
        "command = ['sh', '-c', 'sleep 0.4; echo \"{{\\\"value\\\": $1, \\\"cost\\\": $2}}\"', 'sh', '{x}', '{y}']"
    )
    text = ECHO.replace(ECHO.splitlines()[1], command).replace("low = 0.5, high = 1.5", "low = 1.0, high = 1.2")
    job = write_job(tmp_path, "budget = 14.0\nparallel = 2\n" + text)
    workers = [start("tune", job) for _ in range(2)]
    shown = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], shown
    trials = assert_sound(job, "".join(err for _, err in shown), in_order=False)
    assert math.fsum(t.user_attrs["cost"] for t in trials) <= 14.0
    assert len(trials) >= 10
    assert len({tuple(t.params.values()) for t in trials}) == len(trials)
    by_worker = {json.dumps(t.user_attrs["pbgi:worker"], sort_keys=True) for t in trials}
    assert len(by_worker) == 2


def test_progress_in_a_terminal(tmp_path):
    job = write_job(tmp_path, "budget = 4.0\n" + ECHO)
    ours, theirs = pty.openpty()
    worker = start("tune", job, stderr=theirs)
    os.close(theirs)
    text = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            text += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    worker.communicate(timeout=300)
    os.close(ours)
    lines = text.decode().split("\r\x1b[K")
    assert worker.returncode == 0
    live = [line for line in lines if " left = 4.00 | " in line]
    whole = re.compile(r"(\S+) \+ (\S+) held \+ (\S+) left = 4\.00 \| best \S+ \(x \S+.*\) \| \d+ more, \d+ s")
    found = [match for match in map(whole.match, live) if match is not None]
    assert found, live
    assert all(sum(map(float, match.groups())) == pytest.approx(4.0, abs=1e-9) for match in found)
    assert all(len(line.splitlines()[0]) <= 80 for line in live)


def test_a_cost_that_is_known_is_charged_and_nothing_reported(tmp_path, capfd):
    """Failures are charged as well, and scripts that have the study alone know the cost too."""
    code = "import sys; w = int(sys.argv[1]); sys.exit(1) if w == 3 else print(abs(w - 5))"
    space = "[parameters]\nw = { low = 1, high = 8 }\n"
    head = f'command = ["{sys.executable}", "-c", "{code}", "{{w}}"]\ncost = "2 + 0.5 * w"\nbudget = 24.0\nseed = 1\n'
    job = write_job(tmp_path, head + space)
    said(capfd, "tune", job, "--quiet")
    trials = said(capfd, "trials", job)
    for trial in trials:
        assert trial["cost"] == pytest.approx(2.0 + 0.5 * trial["params"]["w"], rel=1e-12)
    spent = sum(trial["cost"] for trial in trials)
    assert 24.0 - 6.0 < spent <= 24.0
    asked = said(capfd, "ask", write_job(tmp_path, head.replace("24.0", "90.0") + space))
    assert asked["predicted_cost"] == pytest.approx(2.0 + 0.5 * asked["params"]["w"], rel=1e-12)
    assert said(capfd, "tell", tmp_path / "job.db", asked["trial"], "--value", 1)["cost"] == asked["predicted_cost"]
    other = head.replace("0.5 * w", "0.6 * w") + space
    assert "cost must stay as in study" in said(capfd, "tune", write_job(tmp_path, other), status=2)


def test_progress_elsewhere_is_a_line_per_trial(tmp_path):
    job = write_job(tmp_path, "trials = 3\n" + ECHO)
    err = run("tune", job).stderr
    assert re.findall(r"^trial (\d+): value \S+, cost \S+$", err, re.MULTILINE) == ["0", "1", "2"]
    assert err.endswith("ended: Reached the limit of 3 trials\n")
    assert "\x1b" not in err
    assert run("tune", job, "--quiet").stderr == ""


def test_output_cannot_drive_the_terminal(tmp_path, capfd):
    code = "import sys; print('\\x1b]0;owned\\x07', file=sys.stderr); sys.exit(1)"
    job = f'command = ["{sys.executable}", "-c", "{code}"]\ntrials = 1\n[parameters]\nx = [1, 2]\n'
    _, err = tune(capfd, write_job(tmp_path, job.replace("\\x", "\\\\x")), status=1)
    assert "owned" in err
    assert "\x1b" not in err


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ECHO, "budget: a search must end"),
        ("trials = 1\n[parameters]\nx = [1, 2]\n", "command: must be given"),
        ('trials = 1\ncommand = ["no-such-program"]\n[parameters]\nx = [1, 2]\n', "got 'no-such-program'"),
        ('trials = 1\ncommand = ["./train.py"]\n[parameters]\nx = [1, 2]\n', "got './train.py'"),
    ],
)
def test_a_job_that_cannot_run(tmp_path, capfd, text, says):
    _, err = tune(capfd, write_job(tmp_path, text), status=2)
    assert err.startswith(f"pbgi: {tmp_path / 'job.toml'}: ")
    assert says in err


def test_a_study_keeps_its_parameters(tmp_path, capfd):
    job = write_job(tmp_path, "trials = 1\n" + ECHO)
    tune(capfd, job)
    write_job(tmp_path, "trials = 1\n" + ECHO.replace("high = 1.0", "high = 0.9"))
    err = tune(capfd, job, status=2)[1]
    assert "parameters must stay as in study 'job'" in err
    assert "ranges may only get wider" in err
    write_job(tmp_path, "trials = 1\ndirection = 'maximize'\n" + ECHO)
    assert "direction must stay" in tune(capfd, job, status=2)[1]
    assert len(trials_in(tmp_path / "job.db")) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("", "budget: a search must end"),
        ("trials = 4\npolicy = { kind = 'PBGI', cost_scale = -1.0 }\n", "cost_scale"),
        ("trials = 4\ncommand = ['no-such-program']\n", "no-such-program"),
    ],
)
def test_a_refused_job_leaves_nothing_behind(tmp_path, capfd, wrong, says):
    """Another space, direction, objective and cost than those of the job that is run in the end."""
    space = "[parameters]\na = { low = 0.0, high = 9.0 }\n"
    command = "" if "command" in wrong else 'command = ["echo", "1"]\n'
    job = write_job(tmp_path, wrong + command + "direction = 'maximize'\nobjective = 'gain'\n" + space)
    assert says in tune(capfd, job, status=2)[1]
    assert not (tmp_path / "job.db").exists()
    said, _ = tune(capfd, write_job(tmp_path, "trials = 2\n" + ECHO))
    assert said["trials"]["complete"] == 2


def test_a_study_without_trials_follows_the_job(tmp_path, capfd, monkeypatch):
    """The first run ended before it had a trial."""
    job = write_job(
        tmp_path,
        "trials = 2\ndirection = 'maximize'\nseed = 7\n" + ECHO.replace("seed = 1\n", "").replace("1.5", "2.5"),
    )
    with monkeypatch.context() as patched:
        patched.setattr("pbgi.cli.tune.hand_out", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert main(["tune", str(job)]) == 130
    capfd.readouterr()
    said, _ = tune(capfd, write_job(tmp_path, "trials = 3\n" + ECHO))
    assert said["best"]["value"] == min(trial.value for trial in trials_in(tmp_path / "job.db"))
    assert_sound(job, "")


@pytest.mark.parametrize("directions", [["maximize"], ["minimize", "minimize"]])
def test_a_study_of_another_program_keeps_its_direction(tmp_path, capfd, directions):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'job.db'}")
    optuna.create_study(study_name="job", storage=storage, directions=directions)
    storage.engine.dispose()
    _, err = tune(capfd, write_job(tmp_path, "trials = 1\n" + ECHO), status=2)
    assert "direction must be that of study 'job'" in err


SECONDS = 'command = ["echo", \'{{"value": 1, "other": 2, "cost": 3, "dollars": 4}}\']\ntrials = 2\n'
UNITS = "[parameters]\nx = { low = 0.0, high = 1.0 }\n"


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("", "objective = 'other'\n", "objective must stay as in study 'job', 'value'; got 'other'"),
        ("", "cost = 'cost'\n", "cost must stay as in study 'job', 'seconds'; got 'cost'"),
        ("cost = 'cost'\n", "", "cost must stay as in study 'job', 'cost'; got 'seconds'"),
        ("cost = 'cost'\n", "cost = 'dollars'\n", "cost must stay as in study 'job', 'cost'; got 'dollars'"),
        ("", "price_per_second = 5.0\n", "cost must stay as in study 'job', 'seconds'; got 'price'"),
        ("price_per_second = 4.0\n", "price_per_second = 5.0\n", "price_per_second must stay as in study 'job', 4.0"),
    ],
)
@pytest.mark.parametrize("command", ["tune", "ask"])
def test_units_are_not_mixed(tmp_path, capfd, before, after, what, command):
    job = write_job(tmp_path, before + SECONDS + UNITS)
    tune(capfd, job)
    write_job(tmp_path, after + SECONDS.replace("trials = 2", "trials = 4") + UNITS)
    assert main([command, str(job)]) == 2
    err = capfd.readouterr().err
    assert what in err
    assert "give the job another name" in err
    assert len(trials_in(tmp_path / "job.db")) == 2


def test_a_price_of_one_is_that_of_seconds(tmp_path, capfd):
    job = write_job(tmp_path, SECONDS + UNITS)
    tune(capfd, job)
    write_job(tmp_path, "price_per_second = 1.0\n" + SECONDS.replace("trials = 2", "trials = 4") + UNITS)
    assert tune(capfd, job)[0]["trials"]["complete"] == 4


def test_a_running_trial_has_a_unit(tmp_path, capfd):
    job = write_job(tmp_path, SECONDS + UNITS)
    assert main(["ask", str(job)]) == 0
    capfd.readouterr()
    for head in ("objective = 'other'\n", "cost = 'cost'\n"):
        write_job(tmp_path, head + SECONDS + UNITS)
        assert "must stay" in tune(capfd, job, status=2)[1]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("objective = 'valu'\ncost = 'cost'", "objective = 'value'\ncost = 'cost'"),
        ("objective = 'valu'", "objective = 'value'"),
        ("cost = 'cots'", "cost = 'cost'"),
    ],
)
def test_a_mistyped_key_can_be_mended(tmp_path, capfd, wrong, right):
    """No trial has a value yet, and what they have cost is in the unit of the others, or not known."""
    job = write_job(tmp_path, f"{wrong}\n{SECONDS}{UNITS}")
    tune(capfd, job, status=1)
    write_job(tmp_path, f"{right}\n{SECONDS.replace('trials = 2', 'trials = 4')}{UNITS}")
    assert tune(capfd, job)[0]["trials"] == {"complete": 2, "failed": 2, "running": 0}


def test_failures_that_have_cost_something_have_a_unit(tmp_path, capfd):
    job = write_job(tmp_path, "objective = 'valu'\n" + SECONDS + UNITS)
    tune(capfd, job, status=1)
    write_job(tmp_path, "cost = 'cost'\n" + SECONDS.replace("trials = 2", "trials = 4") + UNITS)
    assert "cost must stay as in study 'job', 'seconds'" in tune(capfd, job, status=2)[1]


def test_a_seed_is_drawn_once(tmp_path, capfd):
    text = "trials = 1\n" + ECHO.replace("seed = 1\n", "")
    seeds = set()
    for name in ("a.toml", "a.toml", "b.toml"):
        job = write_job(tmp_path, text, name)
        tune(capfd, job)
        storage = optuna.storages.RDBStorage(f"sqlite:///{job.with_suffix('.db')}")
        study = optuna.load_study(study_name=job.stem, storage=storage)
        seeds.add(study.user_attrs["pbgi:settings"]["seed"])
        storage.engine.dispose()
    assert len(seeds) == 2


def test_a_result_that_was_saved_is_not_lost(tmp_path, capfd, monkeypatch):
    """The worker dies after the command ended and before the storage had the result."""
    job = write_job(tmp_path, "trials = 2\n" + ECHO)
    finish = JobStudy.finish

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(JobStudy, "finish", dies)
    assert main(["tune", str(job)]) == 130
    monkeypatch.setattr(JobStudy, "finish", finish)
    monkeypatch.setattr("pbgi.cli.running.is_alive", lambda _: False)  # the worker is this process
    capfd.readouterr()
    said, err = tune(capfd, job)
    trials = assert_sound(job, err)
    assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials]
    assert said["trials"] == {"complete": 2, "failed": 0, "running": 0}


@pytest.mark.parametrize(("comes", "code"), [(True, 130), (False, 3)])
def test_what_ran_when_the_storage_went_away_is_tried_again(tmp_path, monkeypatch, comes, code):
    """A signal in the middle of a wait for the storage is still the reason why it ended."""
    job = write_job(tmp_path, "trials = 2\n" + ECHO.replace('"echo"', '"sh", "-c", "sleep 60"'))

    def goes_away(_):
        if comes:
            signal.raise_signal(signal.SIGINT)
        raise StorageError("the storage is away")

    with monkeypatch.context() as patched:
        patched.setattr(Tuner, "_beat", goes_away)
        assert main(["tune", str(job)]) == code
    (left,) = (tmp_path / "job.trials").glob("*/outcome.json")
    (attempt,) = json.loads(left.read_text())["attempts"]
    assert attempt["interrupted"] is True
    (before,) = trials_in(tmp_path / "job.db")
    monkeypatch.setattr("pbgi.cli.running.is_alive", lambda _: False)  # the worker is this process
    run("tune", write_job(tmp_path, "trials = 2\n" + ECHO))
    after, other = trials_in(tmp_path / "job.db")
    assert (after.params, after.value) == (before.params, before.params["x"])
    assert after.user_attrs["pbgi:attempts"] == [attempt]
    assert other.value is not None


def test_trials_of_other_machines_are_left_alone(tmp_path, capfd, monkeypatch):
    job = write_job(tmp_path, "trials = 3\n" + ECHO)
    elsewhere = {"machine": "another", "boot": "another", "namespace": "another"}
    monkeypatch.setattr("pbgi.cli.processes._place", lambda: elsewhere)  # and with the name of this one
    monkeypatch.setattr(JobStudy, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["tune", str(job)]) == 130
    monkeypatch.undo()
    said, _ = tune(capfd, job)
    assert said["trials"] == {"complete": 2, "failed": 0, "running": 1}
    said, _ = tune(capfd, job, "--reclaim")
    assert said["trials"]["running"] == 1  # not silent for long enough
    monkeypatch.setattr("pbgi.cli.running.SILENCE", 0.0)
    assert tune(capfd, job, "--reclaim")[0]["trials"]["running"] == 0


def test_a_result_of_a_trial_that_was_reclaimed_is_taken(tmp_path, capfd, monkeypatch):
    """Another machine takes the worker for dead while its command runs; then the command ends."""
    job = write_job(tmp_path, "trials = 3\n" + ECHO)
    save = Tuner._save

    def reclaimed_first(tuner, trial, outcome):
        save(tuner, trial, outcome)
        if trial.number == 1 and not reclaimed:
            reclaimed.append(tuner._study.finish(1, Outcome(None, 7.0, 7.0, "no sign of life", abandoned=True)))

    reclaimed = []
    monkeypatch.setattr(Tuner, "_save", reclaimed_first)
    said, err = tune(capfd, job)
    assert len(reclaimed) == 1
    trials = trials_in(tmp_path / "job.db")
    late = trials[2]
    assert (trials[1].state.name, late.params, late.value) == ("FAIL", trials[1].params, trials[1].params["x"])
    assert "trial 1 had been given up; its result is trial 2\n" in err
    assert said["trials"]["complete"] == 3  # the failed one does not count against the limit
    charged = [trial.params["y"] for trial in trials if trial.value is not None]
    assert said["spent"] == pytest.approx(sum(charged), rel=1e-12)


def test_nothing_is_left_running(tmp_path):
    marker = "328.0625"
    job = write_job(
        tmp_path, f'command = ["sleep", "{marker}"]\ntrials = 9\nparallel = 3\n[parameters]\nx = [1, 2, 3]\n'
    )
    worker = start("tune", job)
    wait_for(lambda: len(processes_with(f"sleep {marker}")) == 3)
    worker.send_signal(2)
    out, err = worker.communicate(timeout=300)
    assert worker.returncode == 130, err
    assert not processes_with(f"sleep {marker}")
    assert [t.state for t in trials_in(tmp_path / "job.db")] == [optuna.trial.TrialState.RUNNING] * 3
    assert json.loads(out)["stop_reason"] == "interrupted by Ctrl-C"


def test_the_example(tmp_path):
    for path in EXAMPLE.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_text(path.read_text())
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    out = json.loads(run("tune", tmp_path / "job.toml", "--budget", 2, env=environment).stdout)
    assert 0.0 < out["best"]["value"] < 0.1  # the noise alone is 0.01, a constant has 0.5
    assert out["spent"] <= 3.0


def test_a_command_gets_the_parameters_that_are_there(tmp_path, capfd):
    program = "import json, os, sys; p = json.loads(os.environ['PBGI_PARAMS']); s = sys.argv[1:];" + (
        "assert ('PBGI_PARAM_C' in os.environ) == ('-C' in s) == ('C' in p) == (p['model'] == 'svm'), (s, p);"
        "assert ('depth' in p) == ('--depth' in s[-1]), (s, p);"
        "print(p.get('C', 1.0) + p.get('depth', 0))"
    )
    text = f"""trials = 9
command = [{json.dumps(sys.executable)}, "-c", {json.dumps(program)}, ["-C", "{{C}}"], "--depth={{depth}}"]
[parameters]
model = ["svm", "tree"]
C = {{ low = 0.1, high = 10.0, log = true, when = {{ model = "svm" }} }}
depth = {{ low = 1, high = 9, when = {{ model = "tree" }} }}
"""
    job = write_job(tmp_path, text)
    said, err = tune(capfd, job)
    assert said["trials"]["complete"] == 9, err
    shapes = {tuple(trial.params) for trial in trials_in(tmp_path / "job.db")}
    assert shapes == {("model", "C"), ("model", "depth")}
    capfd.readouterr()
    assert main(["export", str(job), "--format", "csv"]) == 0
    header, *rows = capfd.readouterr().out.splitlines()
    assert header.endswith("params.model,params.C,params.depth")
    assert all(("svm" in row) == row.endswith(",") for row in rows)
