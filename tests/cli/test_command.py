"""Running a program: its group, its time, what it reports; and secrets that stay secret."""

import os
import signal
import stat
import sys
from functools import partial
from queue import SimpleQueue

import pytest
from cli_runs import processes_with, wait_for

from pbgi.cli.job import Job
from pbgi.cli.private import make_folder, tail
from pbgi.cli.processes import (
    Guard,
)
from pbgi.cli.program.command import Plan, start
from pbgi.cli.program.result import result_in
from pbgi.cli.storage import Storage, url_of_file
from pbgi.parameter import Categorical
from pbgi.space import Space


@pytest.fixture
def guard():
    made = Guard()
    yield made
    made.close()


def attempt(tmp_path, guard, *command, params=None, **given):
    given = {"path": tmp_path / "job.toml", "name": "job", "folder": tmp_path, **given}
    job = Job(space=Space({"x": Categorical([1, 2])}), command=command, **given)
    running = start(Plan(job, 7, params or {"x": 1}, tmp_path / "trial"), 0)
    ended = SimpleQueue()
    running.wait(ended.put, guard)
    return running, lambda: ended.get(timeout=30)


def test_value_and_cost(tmp_path, guard):
    running, wait = attempt(tmp_path, guard, "echo", 'noise\n{{"value": 2.5, "cost": 4}}', cost="cost")
    wait()
    outcome = running.outcome()
    assert (outcome.value, outcome.cost, outcome.message) == (2.5, 4.0, None)


def test_cost_is_seconds_times_their_price(tmp_path, guard):
    running, wait = attempt(tmp_path, guard, "sleep", "0.2", price_per_second=100.0)
    wait()
    outcome = running.outcome()
    assert outcome.cost == pytest.approx(100.0 * outcome.seconds)
    assert outcome.seconds >= 0.2
    assert "there is none" in outcome.message


def test_a_group_is_killed_when_its_time_is_up(tmp_path, guard):
    marker = "321.0625"
    script = f"import subprocess, time; subprocess.Popen(['sleep', '{marker}']); print(1, flush=True); time.sleep(60)"
    running, wait = attempt(tmp_path, guard, sys.executable, "-c", script, timeout=0.8)
    wait_for(lambda: processes_with(f"sleep {marker}"))
    wait()
    outcome = running.outcome()
    assert outcome.value is None
    assert "killed after its timeout of 0.8 s" in outcome.message
    assert outcome.cost == outcome.seconds >= 0.8
    wait_for(lambda: not processes_with(f"sleep {marker}"), 5)


def test_time_that_is_left_may_change(tmp_path, guard):
    running, wait = attempt(tmp_path, guard, "sh", "-c", "sleep 0.6; echo 1")
    running.end_in(0.3, "too soon")
    running.end_in(60.0, "not yet")
    wait()
    assert (running.outcome().value, running.overrun) == (1.0, False)
    running, wait = attempt(tmp_path, guard, "sleep", "60")
    running.end_in(60.0, "not yet")
    running.end_in(0.0, "used up")
    wait()
    assert (running.outcome().message, running.outcome().overrun) == ("used up", True)


def test_what_ignores_a_request_is_killed(tmp_path, guard):
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    running, wait = attempt(tmp_path, guard, sys.executable, "-c", script)
    wait_for(lambda: tail(tmp_path / "trial" / "stdout.log", 9))
    running.stop("enough")
    wait()
    assert running.process.returncode == -signal.SIGKILL
    assert running.outcome().message.startswith("enough")


def test_what_a_command_leaves_behind_is_killed(tmp_path, guard):
    marker = "322.0625"
    script = f"import subprocess; subprocess.Popen(['sleep', '{marker}']); print('{{{{\"value\": 1}}}}')"
    running, wait = attempt(tmp_path, guard, sys.executable, "-c", script)
    wait()
    assert running.outcome().value == 1.0
    wait_for(lambda: not processes_with(f"sleep {marker}"), 5)


@pytest.mark.parametrize(
    "script",
    [
        "setsid sleep {0} & wait",  # a session of its own
        "setsid -f sleep {0}; sleep 60",  # and no parent
        "(setsid sleep {0} &); (setsid sh -c 'setsid sleep {0}; true' &); sleep 60",
        "setsid -f sleep {0}; echo 1",  # the command itself ends well
    ],
)
def test_sessions_of_their_own_are_killed_too(tmp_path, guard, script):
    marker = f"sleep 324.0{os.getpid()}"
    running, wait = attempt(tmp_path, guard, "sh", "-c", script.format(marker.split()[1]), timeout=0.5)
    wait_for(lambda: processes_with(marker) or running.ended)
    wait()
    assert not processes_with(marker)  # before anybody is told that the command has ended
    assert running.outcome().value == (1.0 if "echo" in script else None)


def test_long_logs_keep_both_ends(tmp_path, guard, monkeypatch):
    monkeypatch.setattr("pbgi.cli.program.command.KEPT", 2000)
    script = "print('first'); [print(i) for i in range(100000)]; print('{{\"value\": 3}}')"
    running, wait = attempt(tmp_path, guard, sys.executable, "-c", script)
    wait()
    assert running.outcome().value == 3.0
    log = (tmp_path / "trial" / "stdout.log").read_bytes()
    size = len("first\n") + sum(len(f"{i}\n") for i in range(100_000)) + len('{"value": 3}\n')
    note = f"\n[pbgi: {size - 4000} bytes left out; a log keeps its first and last 2000 bytes]\n".encode()
    assert log[:2000].startswith(b"first\n0\n1\n")
    assert log[2000:-2000] == note
    assert log.endswith(b'99999\n{"value": 3}\n')
    assert stat.S_IMODE((tmp_path / "trial" / "stdout.log").stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "trial").iterdir()) == ["params.json", "stderr.log", "stdout.log"]


def test_failures_show_the_last_lines(tmp_path, guard):
    script = "import sys; print('\\n'.join(map(str, range(99))), file=sys.stderr); sys.exit(3)"
    running, wait = attempt(tmp_path, guard, sys.executable, "-c", script)
    wait()
    assert running.outcome().message == "the command ended with exit code 3" + "".join(
        f"\n    {n}" for n in range(94, 99)
    )


def test_a_killed_command_says_so(tmp_path, guard):
    running, wait = attempt(tmp_path, guard, sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    wait()
    assert running.outcome().message == "the command was killed by SIGKILL"


def test_arguments_environment_and_file_agree(tmp_path, guard):
    odd = "-rf $(x) `y` \"q\" 'q'\n\t😀 %PATH% {x}"
    script = (
        "import json, os, sys; e = os.environ; p = json.load(open(e['PBGI_PARAMS_FILE'])); "
        "print(json.dumps({{'value': 1, 'argv': sys.argv[1:], 'file': p, 'env': json.loads(e['PBGI_PARAMS']), "
        "'named': e['PBGI_PARAM_x'], 'trial': e['PBGI_TRIAL'], 'more': e['MORE'], 'cwd': os.getcwd()}}))"
    )
    params = {"x": odd, "odd\nname": 0.1}
    command = (sys.executable, "-c", script, "{x}", "--x={x}", "{odd\nname}", "{pbgi.trial}", "{pbgi.params}")
    _, wait = attempt(tmp_path, guard, *command, params=params, environment={"MORE": "$HOME"})
    wait()
    said = result_in((tmp_path / "trial" / "stdout.log").read_text(), "value", None)
    assert said["argv"] == [odd, f"--x={odd}", "0.1", "7", str(tmp_path / "trial" / "params.json")]
    assert said["file"] == said["env"] == params
    assert (said["named"], said["trial"], said["more"], said["cwd"]) == (odd, "7", "$HOME", str(tmp_path))


def test_commands_do_not_get_the_storage(tmp_path, guard, monkeypatch):
    """Not by themselves; a job may hand it on."""
    monkeypatch.setenv("PBGI_STORAGE", "postgresql://me:s3cr3t@host/db")
    monkeypatch.setenv("OTHER", "kept")
    _, wait = attempt(tmp_path, guard, "env")
    wait()
    said = (tmp_path / "trial" / "stdout.log").read_text()
    assert "OTHER=kept" in said
    assert "s3cr3t" not in said
    assert "PBGI_STORAGE" not in said
    _, wait = attempt(tmp_path, guard, "env", environment={"PBGI_STORAGE": "sqlite:///mine.db"})
    wait()
    assert "PBGI_STORAGE=sqlite:///mine.db" in (tmp_path / "trial" / "stdout.log").read_text()


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("name", ["stdout.log", "stderr.log", "params.json.draft", "study.db.lock"])
def test_symbolic_links_are_not_followed(tmp_path, guard, name, there):
    """Nothing is written, emptied or made where a link leads."""
    target = tmp_path / "target"
    if there:
        target.write_text("precious")
    folder = make_folder(tmp_path / "trial")
    (folder / name).symlink_to(target)
    if name == "study.db.lock":
        made = partial(Storage, url_of_file(folder / "study.db"), create=True)
    else:
        made = partial(attempt, tmp_path, guard, "echo", "1")
    with pytest.raises(OSError, match=f"must not be a symbolic link.*{name}"):
        made()
    assert (target.read_text() == "precious") if there else not target.exists()
