"""Who runs a trial: processes told apart from their successors of the same number, and groups of them killed.

A process id means something only inside one PID namespace of one boot of one machine: to containers, and to machines
that share a name, the same number is another process. So a process is known to be dead only by one that runs in the
same place, and there by its number and the time it started, since numbers are used again. Elsewhere nothing can be said
of it, but for the processes of an earlier boot.
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
_MACHINE = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_NAMESPACE = Path("/proc/self/ns/pid")
_STATISTICS = Path("/proc/stat")
_PLACE = ("machine", "boot", "namespace")
_START_FIELD = 22 - 3  # of /proc/PID/stat, counted after the name in brackets, which is the second


def identity(pid: int) -> dict[str, Any]:
    """What tells this process from every other; the host is for people to read."""
    return {**_place(), "host": socket.gethostname(), "pid": pid, "start": _start(pid)}


def is_here(who: Mapping[str, Any]) -> bool:
    """Whether it was a process of this machine, boot and PID namespace."""
    here = _place()
    return all(who.get(part) == here[part] for part in _PLACE)


def is_alive(who: Mapping[str, Any]) -> bool:
    """Whether a process of this place still runs."""
    pid = who.get("pid")
    return isinstance(pid, int) and pid > 0 and who.get("start") is not None and _start(pid) == who["start"]


def is_of_earlier_boot(who: Mapping[str, Any], last_sign: float) -> bool:
    """Whether it was a process of this machine that was there before it was booted, and so is gone.

    Another boot alone does not say so: copies of a virtual machine or of an image share its id and its name, and run.
    One of those gives signs of life, so its last one came after this machine was booted.

    Args:
        who: The process.
        last_sign: When it gave its last sign of life.
    """
    here, booted = _place(), _boot_time()
    same = all(who.get(part) == here[part] for part in ("machine", "namespace"))
    named = bool(here["machine"]) and who.get("host") == socket.gethostname()
    return same and named and who.get("boot") != here["boot"] and booted is not None and last_sign < booted


def _place() -> dict[str, str]:
    """Where numbers of processes mean the same as here; where there is no /proc, the name of the machine."""
    if not _BOOT.exists():
        return {"machine": socket.gethostname(), "boot": "", "namespace": ""}
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = str(_NAMESPACE.readlink())
    machine = next((text for text in map(_text, _MACHINE) if text), "")
    return {"machine": machine, "boot": _text(_BOOT), "namespace": namespace}


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _boot_time() -> float | None:
    """When this machine was booted, as its clock says now."""
    found = [line.split()[1] for line in _text(_STATISTICS).splitlines() if line.startswith("btime ")]
    return float(found[0]) if found else None


def _start(pid: int) -> str | None:
    """When a process started, in a form that only it can have; None if it is not there, or only waits to be reaped."""
    if not _BOOT.exists():
        return _start_from_ps(pid)
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else after_name[_START_FIELD]


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
