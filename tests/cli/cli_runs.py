"""Running the command line in tests, and what must hold of a study whatever was done to it."""

import contextlib
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import psutil
import pytest

import pbgi
from pbgi.cli import main
from pbgi.cli.choosing import optimizer_of
from pbgi.cli.job import read_job
from pbgi.cli.storage import Storage, url_of_file
from pbgi.cli.study import JobStudy

# `nohup make test` has the tests ignore SIGHUP, and so would every command they start.
HEARS_A_HANGUP = (
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
PBGI = [sys.executable, "-W", "error", "-m", "pbgi"]
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    PBGI = [sys.executable, "-c", HEARS_A_HANGUP, *PBGI]
SHOWN = re.compile(r"^trial (\d+): (?:value (\S+), cost (\S+)|failed, cost (\S+):)", re.MULTILINE)
# The value is x, and so is the cost but for a constant: what is printed depends on the point alone.
ECHO = """
command = ["echo", '{{"value": {x}, "cost": {y}}}']
cost = "cost"
seed = 1
[parameters]
x = { low = 0.0, high = 1.0 }
y = { low = 0.5, high = 1.5 }
"""


def write_job(folder: Path, text: str, name: str = "job.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def start(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    line = [*PBGI, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(line, **{**pipes, **options})


def run(*arguments: object, status: int = 0, **options: Any) -> "subprocess.CompletedProcess[str]":
    """A command that is not killed: in this process, where a start of Python is spared, unless options are given."""
    if options:
        return run_alone(*arguments, status=status, **options)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO())
        code = int(main([str(argument) for argument in arguments]))
    said, complained = (_written(stream) for stream in (out, err))
    assert code == status, complained
    return subprocess.CompletedProcess(arguments, code, said, complained)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return bytes(stream.buffer.getvalue()).decode()  # type: ignore[attr-defined]


def run_alone(*arguments: object, status: int = 0, **options: Any) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own."""
    line = [*PBGI, *map(str, arguments)]
    options = {"stdin": subprocess.DEVNULL, **options} if "input" not in options else options
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == status, done.stderr
    return done


def trials_in(database: Path, name: str = "job") -> list[optuna.trial.FrozenTrial]:
    """Read with Optuna alone."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # It is there and has its tables: nothing to make, and nothing that would keep the command's processor busy.
    options = {"skip_compatibility_check": True, "skip_table_creation": True}
    storage = optuna.storages.RDBStorage(f"sqlite:///{database}", **options)
    try:
        return optuna.load_study(study_name=name, storage=storage).get_trials()
    finally:
        storage.engine.dispose()


def wait_for(condition: Any, seconds: float = 30.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def processes_with(marker: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if marker in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.pid != os.getpid()]


def assert_sound(job_file: Path, shown: str, *, in_order: bool = True) -> list[optuna.trial.FrozenTrial]:
    """What was shown is recorded, nothing runs, costs add up, and suggestions are those of an undisturbed run.

    Args:
        job_file: The job; its study is in the default place.
        shown: All that was printed on stderr, by all runs.
        in_order: Whether trials ran one after the other, so that the undisturbed run can be replayed.
    """
    job = read_job(job_file)
    trials = trials_in(job.database)
    assert all(trial.state.is_finished() for trial in trials)
    assert all("cost" in trial.user_attrs for trial in trials)
    for number, value, cost, failed_cost in SHOWN.findall(shown):
        trial = trials[int(number)]
        assert f"{trial.user_attrs['cost']:.4g}" == (cost or failed_cost)
        assert (f"{trial.value:.6g}" if trial.value is not None else "") == value
    status = json.loads(run("status", job_file).stdout)
    assert status["spent"] == math.fsum(trial.user_attrs["cost"] for trial in trials)
    if in_order:
        assert_undisturbed(job, trials)
    return trials


def assert_undisturbed(job: Any, trials: list[optuna.trial.FrozenTrial]) -> None:
    """An optimizer in one process, told the same outcomes, asks for the same points."""
    stop = None if job.trials is None else pbgi.MaxTrials(job.trials)
    optimizer = pbgi.Optimizer(job.space, direction=job.direction, budget=job.budget, stop=stop, seed=job.seed)
    for trial in trials:
        asked = optimizer.ask()
        assert dict(asked.params) == {name: trial.params[name] for name in job.space.names}, trial.number
        if trial.value is None:
            optimizer.fail(asked, cost=trial.user_attrs["cost"])
        else:
            optimizer.tell(asked, trial.value, cost=trial.user_attrs["cost"])
    if optimizer.should_stop() is None:
        asked = json.loads(run("ask", job.path).stdout)
        assert asked["params"] == dict(optimizer.ask().params)


def engine_trials(folder):
    """The trials of the only study in a folder, as an optimizer sees them."""
    storage = Storage(url_of_file(folder / "job.db"), create=False)
    study = JobStudy.existing(storage, None)
    trials = optimizer_of(study.settings, study.trials()).trials
    storage.close()
    return trials
