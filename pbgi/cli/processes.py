"""Processes that run trials: told apart, ended with `pbgi tune` however that ends, and signals to `pbgi` itself.

A process id means something only inside one PID namespace of one boot of one machine: to containers, and to machines
that share a name, the same number is another process. So a process is known to be dead only by one that runs in the
same place, and there by its number and the time it started, since numbers are used again. Elsewhere nothing can be said
of it, but for the processes of an earlier boot.

The guard is a process that outlives `pbgi tune` by a moment, and then kills its commands. `kill -9` and the kernel's
out-of-memory killer leave a program no time to clean up, and what it started would go on
costing money. It holds the other end of a pipe. Lines of JSON say which process groups are under way; when the
pipe closes, those left over are killed, and when that was is noted beside their logs, since it says what they cost. It
is this file, run as a script: so nothing of pbgi is imported here.

A program may start others in a session of their own (`setsid`, daemons), out of reach of a signal to its group. Those
are known by their environment, which has the folder of the trial.

Signals are noticed between two steps instead of in the middle of one.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

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


# The guard -----------------------------------------------------------------------------------------------------------


NOTE = "killed.json"
FOLDER_VARIABLE = "PBGI_FOLDER"
ROUNDS, PAUSE = 50, 0.02  # a program that starts others may be quicker than we are, but not for ever


class Guard:
    """The near end of the pipe."""

    def __init__(self) -> None:
        # A session of its own: Ctrl-C in the terminal is not meant for it.
        self._process = subprocess.Popen(  # noqa: S603 (this file)
            [sys.executable, "-I", "-S", __file__],
            # Of a command that runs `pbgi tune` itself it is no part: it must live to end what that has started.
            env={name: value for name, value in os.environ.items() if name != FOLDER_VARIABLE},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, pid: int, folder: Path) -> None:
        """Kill this group when I die, and note in the folder when that was."""
        self._say({"watch": pid, "folder": str(folder)})

    def release(self, pid: int) -> None:
        """The group is gone."""
        self._say({"release": pid})

    def close(self) -> None:
        """No longer needed; a group still watched is killed."""
        with contextlib.suppress(OSError):
            self._pipe.close()
        self._process.wait()

    def _say(self, line: dict[str, int | str]) -> None:
        with contextlib.suppress(OSError):  # without its guard a run goes on
            self._pipe.write(json.dumps(line).encode() + b"\n")
            self._pipe.flush()

    @property
    def _pipe(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise OSError("the guard has no pipe")
        return self._process.stdin


def main() -> None:
    """Read until the pipe closes, then kill what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, str] = {}
    for line in sys.stdin:
        with contextlib.suppress(ValueError):  # half a line, if the end came while it was written
            said = json.loads(line)
            watched.pop(said.get("release", 0), None)
            watched |= {said["watch"]: said["folder"]} if "watch" in said else {}
    for pid, folder in watched.items():
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        kill_strays(folder)
        with contextlib.suppress(OSError):
            _note(Path(folder) / NOTE, pid)


def kill_strays(folder: str) -> None:
    """Kill what the command of the trial with this folder has started, in whatever session."""
    for _ in range(ROUNDS):
        if not sum(_killed(int(entry.name), folder) for entry in Path("/proc").glob("[1-9]*")):
            return
        time.sleep(PAUSE)


def _killed(pid: int, folder: str) -> bool:
    """Whether a process was one of them, and got the signal."""
    if pid == os.getpid():
        return False
    with contextlib.suppress(OSError, AttributeError):  # it is gone, or somebody else's, or this is not Linux
        handle = os.pidfd_open(pid)  # so that its number cannot become another's meanwhile
        try:
            if f"{FOLDER_VARIABLE}={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False


def _note(path: Path, pid: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        json.dump({"pid": pid, "time": time.time()}, file)


# Signals -------------------------------------------------------------------------------------------------------------


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While inside, a signal is remembered, and `woken` is called; from the second one on, `hurried`.

    Attributes:
        signal: The first signal that came, or None.
    """

    def __init__(self, woken: Callable[[], None], hurried: Callable[[], None]) -> None:
        self.signal: signal.Signals | None = None
        self._woken, self._hurried = woken, hurried
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:  # nohup asks not to be bothered
                self._before[number] = before
                signal.signal(number, self._notice)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _notice(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
            self._woken()
        else:
            self._hurried()

    @property
    def reason(self) -> str:
        """The signal in words."""
        words = {signal.SIGINT: "interrupted by Ctrl-C", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
        return "" if self.signal is None else words[self.signal]


if __name__ == "__main__":
    main()
