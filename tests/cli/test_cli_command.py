"""Running a program: its group, its time, what it reports; and secrets that stay secret."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from queue import SimpleQueue

import psutil
import pytest
from cli_runs import processes_with, wait_for

from pbgi.cli.command import Plan, start
from pbgi.cli.job import Job
from pbgi.cli.outcome import give_back, read_result, result_in
from pbgi.cli.private import make_folder, masked, open_private, tail, write_json
from pbgi.cli.processes import (
    NOTE,
    Guard,
    _boot_time,
    identity,
    is_alive,
    is_here,
    is_of_earlier_boot,
    kill_orphan,
    kill_strays,
)
from pbgi.cli.storage import Storage, sqlite_path, url_of_file
from pbgi.errors import InvalidInputError
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


def test_the_guard_finds_sessions_of_their_own(tmp_path):
    """As after kill -9. Other trials, and what runs in other folders, are none of its business."""
    guard = Guard()
    children = [
        subprocess.Popen(
            ["sleep", "60"], start_new_session=True, env={**os.environ, "PBGI_FOLDER": str(tmp_path / name)}
        )
        for name in ("a", "a", "ab")
    ]
    guard.watch(children[0].pid, tmp_path / "a")
    guard.close()
    assert [child.wait(timeout=30) for child in children[:2]] == [-signal.SIGKILL] * 2
    assert children[2].poll() is None
    children[2].kill()
    children[2].wait()


def test_the_guard_is_no_part_of_a_command(tmp_path, monkeypatch):
    """A command may run `pbgi tune` itself: when it is killed, that one's guard has work to do."""
    monkeypatch.setenv("PBGI_FOLDER", str(tmp_path))
    guard = Guard()
    kill_strays(str(tmp_path))
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    guard.watch(child.pid, tmp_path / "inner")
    guard.close()
    assert child.wait(timeout=30) == -signal.SIGKILL


def test_long_logs_keep_both_ends(tmp_path, guard, monkeypatch):
    monkeypatch.setattr("pbgi.cli.outcome.KEPT", 2000)
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


def test_long_logs_give_their_middle_back(tmp_path, monkeypatch):
    """While they are written: what is written next, and what was written last, stay where they are."""
    monkeypatch.setattr("pbgi.cli.outcome.KEPT", 2**20)
    path = tmp_path / "stdout.log"
    with path.open("wb", buffering=0) as log:
        log.write(b"a" * 2**20 + b"b" * 20 * 2**20 + b"c" * 2**20)
        os.fsync(log.fileno())
        before = os.fstat(log.fileno()).st_blocks
        give_back(path)
        if os.fstat(log.fileno()).st_blocks == before:
            pytest.skip("this file system knows no holes")
        assert os.fstat(log.fileno()).st_blocks * 512 < 4 * 2**20
        log.write(b"d")
    content = path.read_bytes()
    assert len(content) == 22 * 2**20 + 1
    assert content.startswith(b"a" * 2**20)
    assert content.endswith(b"c" * 2**20 + b"d")
    give_back(tmp_path / "none.log")


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


def test_the_guard_kills_what_is_left(tmp_path):
    guard = Guard()
    child = subprocess.Popen(["sleep", "323.0625"], start_new_session=True)
    guard.watch(child.pid, tmp_path)
    before = time.time()
    guard.close()  # as when its owner dies: the pipe closes
    assert child.wait(timeout=10) == -signal.SIGKILL
    note = json.loads((tmp_path / NOTE).read_text())
    assert note["pid"] == child.pid
    assert before - 1 < note["time"] < time.time() + 1
    assert stat.S_IMODE((tmp_path / NOTE).stat().st_mode) == 0o600


def test_the_guard_spares_what_ended(tmp_path):
    guard = Guard()
    child = subprocess.Popen(["sleep", "324.0625"], start_new_session=True)
    guard.watch(child.pid, tmp_path)
    guard.release(child.pid)
    guard.close()
    assert child.poll() is None
    child.kill()
    child.wait()


# Processes -----------------------------------------------------------------------------------------------------------


def test_processes_are_told_apart():
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    who = identity(child.pid)
    assert is_here(who)
    assert is_alive(who)
    assert not is_alive({**who, "start": "1"})
    assert not is_alive({**who, "pid": 2**22 + 1})
    assert is_here({**who, "host": "a name that was changed"})
    for part in ("machine", "boot", "namespace"):
        assert not is_here({**who, part: "another"})
        assert not is_here({name: value for name, value in who.items() if name != part})
        assert not kill_orphan({**who, part: "another"})
    assert not kill_orphan({**who, "start": "x"})
    assert child.poll() is None
    assert kill_orphan(who)
    assert not is_alive(who)
    child.wait()


def test_a_machine_without_an_id_is_told_by_its_boot(monkeypatch, tmp_path):
    monkeypatch.setattr("pbgi.cli.processes._MACHINE", (tmp_path / "none",))
    who = identity(os.getpid())
    assert who["machine"] == ""
    assert is_here(who)
    assert not is_here({**who, "boot": "another"})
    assert not is_of_earlier_boot({**who, "boot": "another"}, 0.0)  # it may be any machine


@pytest.mark.parametrize(
    ("changed", "last_sign", "gone"),
    [
        ({"boot": "another"}, 999.0, True),
        ({"boot": "another"}, 1001.0, False),  # a copy of this machine, which lives
        ({}, 999.0, False),  # of this boot: whether it is alive can be seen
        ({"boot": "another", "machine": "another"}, 999.0, False),
        ({"boot": "another", "namespace": "another"}, 999.0, False),
        ({"boot": "another", "host": "another"}, 999.0, False),
    ],
)
def test_processes_of_an_earlier_boot(monkeypatch, changed, last_sign, gone):
    monkeypatch.setattr("pbgi.cli.processes._boot_time", lambda: 1000.0)
    assert is_of_earlier_boot({**identity(os.getpid()), **changed}, last_sign) is gone


def test_the_time_of_the_boot():
    assert _boot_time() == pytest.approx(psutil.boot_time(), abs=1.0)


# Results -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "cost", "value", "paid", "problem"),
    [
        ('{"value": 1}', None, 1.0, None, None),
        ('{"value": 1}\nbye', None, 1.0, None, None),
        ('{"value": 1}\n{"value": 2}\n\n', None, 2.0, None, None),
        ("0.25", None, 0.25, None, None),
        ('{"value": 1}\n{"broken', None, 1.0, None, None),
        ('{"value": 1, "cost": 3}', "cost", 1.0, 3.0, None),
        ('{"value": 1, "cost": 3}', None, 1.0, None, None),
        ('{"value": 1}', "cost", None, None, "must be under the key 'cost'; got keys ['value']"),
        ('{"value": 1, "cost": -3}', "cost", None, None, "cost: cost must be a positive"),
        ('{"loss": 1}', None, None, None, "must be under the key 'value'; got keys ['loss']"),
        ('{"value": NaN, "cost": 2}', "cost", None, 2.0, "must be finite; got nan"),
        ('{"value": Infinity}', None, None, None, "must be finite; got inf"),
        ('{"value": "1"}', None, None, None, "must be a real number; got '1'"),
        ('{"value": true}', None, None, None, "must be a real number; got True"),
        ("", None, None, None, "there is none"),
        ("[1, 2]\ntrue\nnull", None, None, None, "there is none"),
        ("[" * 100_000, None, None, None, "there is none"),
        ('{"value": 1}\n' + "x" * 2**20, None, None, None, "there is none"),
        # A number is the result only as the last line.
        ("10\n20\ndiverged", None, None, None, "there is none"),
        ("10\n20\nTraceback (most recent call last):\n", None, None, None, "there is none"),
        ("10\n20\n\n  \n", None, 20.0, None, None),
        ("epoch 3\r\n0.25\r\n", None, 0.25, None, None),
        ("10\n[1, 2]", None, None, None, "there is none"),
        ("10\nnull", None, None, None, "there is none"),
        ("nan", None, None, None, "there is none"),
        ("NaN", None, None, None, "must be finite; got nan"),
        # The object with the key wins.
        ('{"value": 1.5}\n17', None, 1.5, None, None),
        ('{"value": 1.5}\n{"epoch": 17}', None, 1.5, None, None),
        ('{"value": 1.5, "cost": 2}\n{"cost": 17}\n18', "cost", 1.5, 2.0, None),
        ('{"value": 3}\n{"value": 1.5}\n17\nbye', None, 1.5, None, None),
        ('progress 50%\r{"value": 1.5}\n17', None, 1.5, None, None),
        ('{"value": 1.5, "note": "a\u2028b\x85c"}\n17', None, 1.5, None, None),
        ('{"value": null}\n17', None, None, None, "must be a real number; got None"),
        ('{"epoch": 3}\n0.25', None, 0.25, None, None),
        ('{"epoch": 3}\nbye', None, None, None, "must be under the key 'value'; got keys ['epoch']"),
        # What was spent counts, also without a value.
        ('{"cost": 2}\n{"epoch": 3}', "cost", None, 2.0, "must be under the key 'value'; got keys ['cost']"),
        ('{"cost": 2}\n0.25', "cost", None, 2.0, "must be under the key 'value'; got keys ['cost']"),
        ("0.25", "cost", None, None, "must be under the key 'cost'; got keys ['value']"),
    ],
)
def test_results(tmp_path, output, cost, value, paid, problem):
    (tmp_path / "out").write_bytes(output.encode())
    found = read_result(tmp_path / "out", None, "value", cost)
    assert (found.value, found.cost) == (value, paid)
    assert found.problem is None if problem is None else problem in found.problem


def test_result_file(tmp_path):
    path = tmp_path / "result.json"
    assert "'result.json': cannot be read" in read_result(tmp_path / "out", path, "v", None).problem
    path.write_text('{"v": 2}')
    assert read_result(tmp_path / "out", path, "v", None).value == 2.0
    path.write_text("{")
    assert "must be JSON" in read_result(tmp_path / "out", path, "v", None).problem
    path.write_text(" " * 2**21)
    assert "at most" in read_result(tmp_path / "out", path, "v", None).problem


def test_no_result():
    with pytest.raises(InvalidInputError, match="there is none"):
        result_in("done\n", "value", None)


# Files and secrets ---------------------------------------------------------------------------------------------------


def test_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        write_json(tmp_path / "a" / "b" / "c.json", {"x": 1})
        open_private(tmp_path / "a" / "d").close()
        Storage(url_of_file(tmp_path / "a" / "study.db"), create=True).close()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert modes == {"b": 0o700, "c.json": 0o600, "d": 0o600, "study.db": 0o600, "study.db.lock": 0o600}


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


def test_a_study_has_one_lock_by_whatever_name(tmp_path):
    """Two names with a lock each would let two processes choose at a time."""
    Storage(url_of_file(tmp_path / "study.db"), create=True).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "study.db")
    one, other = (Storage(url_of_file(tmp_path / name), create=False) for name in ("study.db", "link.db"))

    def is_held():
        with (tmp_path / "study.db.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True

    assert one.exclusively("job", is_held)
    assert other.exclusively("job", is_held)
    one.close()
    other.close()
    assert not (tmp_path / "link.db.lock").exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t@host:5432/db",
        "postgresql+psycopg2://me:s3cr3t@host/db?sslmode=require",
        "mysql://host/db?user=me&password=s3cr3t",
        "mysql://host/db?ssl_passwd=s3cr3t&x=1",
        "postgresql://me:s3cr3t",
        "postgres//me:s3cr3t@host",
        "nonsense://me:a@b:s3cr3t@host",
    ],
)
def test_passwords_are_masked(url):
    for text in (f"could not connect to {url}", f"'{url}' is wrong", "s3cr3t is not the password of me"):
        assert "s3cr3t" not in masked(text, url)


def test_passwords_are_masked_as_meant():
    assert masked("FATAL: a@b/c is wrong, a%40b%2Fc", "postgresql://me:a%40b%2Fc@host/db") == "FATAL: *** is wrong, ***"


def test_urls(tmp_path):
    from pbgi.cli.errors import StorageError

    assert sqlite_path("postgresql://me@host/db") is None
    odd = tmp_path / "a b?c=%41&d#😀'.db"
    assert sqlite_path(url_of_file(odd)) == odd
    for wrong in ("sqlite://", "sqlite:///:memory:", "nothing", "sqlite:///file:x?mode=memory&uri=true"):
        with pytest.raises(StorageError):
            sqlite_path(wrong)
