"""A process that outlives `pbgi tune` by a moment: when that dies, however it dies, its commands are killed.

`kill -9` and the kernel's out-of-memory killer leave a program no time to clean up, and what it started would go on
costing money. The guard holds the other end of a pipe. Lines of JSON say which process groups are under way; when the
pipe closes, those left over are killed, and when that was is noted beside their logs, since it says what they cost. It
is run as a script, without pbgi, to be small.

A program may start others in a session of their own (`setsid`, daemons), out of reach of a signal to its group. Those
are known by their environment, which has the folder of the trial.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

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


if __name__ == "__main__":
    main()
