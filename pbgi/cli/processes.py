"""Who runs a trial: processes told apart from their successors of the same number, and groups of them killed.

A process id is used again. Together with the host, the boot and the time the process started it is not: so a trial
whose worker is no longer there is known to be dead, also after a reboot.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD = 22 - 3  # of /proc/PID/stat, counted after the name in brackets, which is the second


def identity(pid: int) -> dict[str, Any]:
    """What tells this process from every other."""
    return {"host": socket.gethostname(), "pid": pid, "start": _start(pid)}


def is_here(who: Mapping[str, Any]) -> bool:
    """Whether it was a process of this machine."""
    return who.get("host") == socket.gethostname()


def is_alive(who: Mapping[str, Any]) -> bool:
    """Whether a process of this machine still runs."""
    pid = who.get("pid")
    return isinstance(pid, int) and pid > 0 and who.get("start") is not None and _start(pid) == who["start"]


def _start(pid: int) -> str | None:
    """When a process started, in a form that only it can have; None if it is not there, or only waits to be reaped."""
    if not _BOOT.exists():
        return _start_from_ps(pid)
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else f"{_BOOT.read_text().strip()}/{after_name[_START_FIELD]}"


def _start_from_ps(pid: int) -> str | None:
    """The same where there is no /proc."""
    command = ["ps", "-o", "lstart=", "-p", str(int(pid))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (a fixed program, a number)
    return done.stdout.strip() or None


def signal_group(pid: int, number: signal.Signals) -> bool:
    """Send a signal to the group that a process leads; whether there was one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
        return True
    return False


def kill_orphan(who: Mapping[str, Any]) -> bool:
    """Kill the group of a command whose worker died; whether it was still running."""
    if not (is_here(who) and is_alive(who)):
        return False
    signal_group(who["pid"], signal.SIGKILL)
    for _ in range(100):
        if not is_alive(who):
            break
        time.sleep(0.02)
    return True
