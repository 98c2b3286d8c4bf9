"""Processes told apart, and the guard that ends what is left."""

import json
import os
import signal
import stat
import subprocess
import time

import psutil
import pytest

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
