"""One run of the command of a trial: started, listened to, ended.

A command has its own process group and is killed with its children when time is up. It writes straight into files of
the trial's folder, so nothing is buffered here and nothing is lost when this process dies. A thread waits for the end
and timers for the timeout and the end of the budget, so that a slow storage delays none of them. Where trials may stop
early another thread listens to what it says on its way.

Logs are kept within bounds: their beginning and their end. What is too much in the middle is given back to the disk
while the command runs, as a hole in the file that moves nothing, and cut out when it has ended. Where a file system
knows no holes, the log is cut at the end only.
"""

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pbgi.cli.errors import StartError
from pbgi.cli.job import Job
from pbgi.cli.parameters import environment_of, filled, names_in, values_of
from pbgi.cli.private import for_commands, make_folder, open_private, tail, write_json
from pbgi.cli.processes import Guard, kill_strays, signal_group
from pbgi.cli.program.result import LEAST_COST, Outcome, priced, read_result
from pbgi.cli.program.steps import Listener
from pbgi.errors import InvalidInputError
from pbgi.serialization import Value

# Logs ----------------------------------------------------------------------------------------------------------------


KEPT = 8 * 2**20  # bytes, at either end
BLOCK = 2**20  # what lies between is given back in pieces of this size or more
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)


def give_back(path: Path) -> None:
    """Free what lies between the ends of a log that is being written."""
    with contextlib.suppress(OSError, AttributeError), path.open("r+b") as file:
        about = os.fstat(file.fileno())
        if about.st_blocks * 512 > 2 * KEPT + BLOCK and about.st_size > 2 * KEPT + BLOCK:
            _punch(file.fileno(), KEPT, about.st_size - 2 * KEPT)


def _punch(file: int, offset: int, length: int) -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    call = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
    call(file, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_longlong(offset), ctypes.c_longlong(length))


def condense(path: Path) -> None:
    """Cut a log that nobody writes to any more, and say so in it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        too_much = os.fstat(file.fileno()).st_size - 2 * KEPT
        if too_much <= 0:
            return
        draft = path.with_name(path.name + ".draft")
        with open_private(draft) as short:
            short.write(file.read(KEPT))
            short.write(f"\n[pbgi: {too_much} bytes left out; a log keeps its first and last {KEPT} bytes]\n".encode())
            file.seek(-KEPT, os.SEEK_END)
            short.write(file.read())
        draft.replace(path)


# The command ---------------------------------------------------------------------------------------------------------


# Seconds between asking a command to end and killing it.
GRACE = 2.0
LISTEN = 0.05  # and between two looks at what it says
SHOWN_BYTES, SHOWN_LINES = 4096, 5


@dataclass(frozen=True)
class Plan:
    """What to run: a point of the job's space, with the number and the folder of its trial.

    Where trials may stop early it has a folder for checkpoints, and the step that it goes on from.
    """

    job: Job
    number: int
    params: dict[str, Value]
    folder: Path
    checkpoint: Path | None = None
    step: int = 0

    def file(self, name: str, attempt: int) -> Path:
        """A file of one attempt: the first is plain, later ones are numbered."""
        return self.folder / (name if attempt == 0 else f"{name}.{attempt}")

    @property
    def params_file(self) -> Path:
        """Where the command finds the point."""
        return self.folder / "params.json"

    @property
    def own(self) -> dict[str, object]:
        """What the command is told besides the point."""
        own = {"trial": self.number, "folder": self.folder, "params": self.params_file}
        return own if self.checkpoint is None else {**own, "checkpoint": self.checkpoint, "step": self.step}


@dataclass(eq=False)
class Attempt:
    """A command under way."""

    plan: Plan
    count: int
    process: "subprocess.Popen[bytes]"
    started: float
    ended: float | None = None
    killed_for: str | None = None
    overrun: bool = False
    interrupted: bool = False
    early: bool = False
    listener: Listener | None = None
    _timers: dict[str, threading.Timer] = field(default_factory=dict, repr=False)

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return max((self.ended or time.monotonic()) - self.started, LEAST_COST)

    def stop(self, why: str, *, overrun: bool = False, interrupted: bool = False, early: bool = False) -> None:
        """Ask the group to end, and kill it `GRACE` seconds later.

        Args:
            why: In words.
            overrun: Whether that is because the budget is used up.
            interrupted: Whether it is neither the fault of the point nor of the command, so that it is to run again.
            early: Whether what is left of it is not worth its price.
        """
        if self.ended is None and self.killed_for is None:
            self.killed_for, self.overrun, self.interrupted, self.early = why, overrun, interrupted, early
            signal_group(self.process.pid, signal.SIGTERM)
            self._after("kill", GRACE, self.kill)

    def end_in(self, seconds: float, why: str) -> None:
        """Stop it then, since the budget is used up by then; this takes the place of what was said before."""
        if self.ended is None and self.killed_for is None:
            self._after("budget", seconds, lambda: self.stop(why, overrun=True))

    def kill(self) -> None:
        """End the group at once; if it was not to end yet, that is an interruption."""
        if self.ended is None:
            if self.killed_for is None:
                self.killed_for, self.interrupted = "the command was killed", True
            signal_group(self.process.pid, signal.SIGKILL)

    def _after(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, instead of what was to be done under this name."""
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), action)
        timer.daemon = True
        before, self._timers[name] = self._timers.get(name), timer
        if before is not None:
            before.cancel()
        timer.start()

    def wait(self, ended: "Callable[[Attempt], None]", guard: Guard, heard: Callable[[], None] = lambda: None) -> None:
        """Call `ended` from a thread once the command and its children are gone, and `heard` when a stage has ended."""

        def run() -> None:
            _wait_without_reaping(self.process.pid)
            self.ended = time.monotonic()
            # Until it is reaped its number cannot belong to anyone else, so what it left behind can be killed safely.
            signal_group(self.process.pid, signal.SIGKILL)
            kill_strays(str(self.plan.folder))
            self.process.wait()
            guard.release(self.process.pid)
            self._listen_to_the_end()
            for log in self._logs:
                condense(log)
            for timer in tuple(self._timers.values()):
                timer.cancel()
            ended(self)

        guard.watch(self.process.pid, self.plan.folder)
        threading.Thread(target=run, daemon=True).start()
        if self.listener is not None:
            threading.Thread(target=self._listen, args=(self.listener, heard), daemon=True).start()
        if (timeout := self.plan.job.timeout) is not None:
            why = f"the command was killed after its timeout of {timeout:g} s"
            self._after("timeout", timeout, lambda: self.stop(why))

    def _listen(self, listener: Listener, heard: Callable[[], None]) -> None:
        while self.ended is None and listener.problem is None:
            if listener.read(self.seconds):
                heard()
            time.sleep(LISTEN)

    def _listen_to_the_end(self) -> None:
        if self.listener is not None:
            self.listener.read(self.seconds, ended=True)
            self.killed_for = self.killed_for or self.listener.problem

    @property
    def _logs(self) -> tuple[Path, Path]:
        return self.plan.file("stdout.log", self.count), self.plan.file("stderr.log", self.count)

    def trim_logs(self) -> None:
        """Keep what it writes within bounds."""
        for log in self._logs:
            give_back(log)

    def outcome(self) -> Outcome:
        """How it ended. The cost is the one reported, or seconds times their price, or not known."""
        job, folder = self.plan.job, self.plan.folder
        result_file = None if job.result_file is None else folder / job.result_file
        told, end = self._told()
        output, names = self.plan.file("stdout.log", self.count), job.constraints or {}
        reported = read_result(output, result_file, job.objective, job.cost, names, end)
        cost = (reported.cost or told) if job.cost is not None else None
        if cost is None:
            cost = priced(job, self.seconds)
        if self.early:
            # One that has come to its end before it could be stopped is complete.
            value = end[job.objective] if end else None
            return Outcome(value, cost, self.seconds, None if end else self.killed_for, stopped=not end)
        problem = self._problem() or (reported.problem and reported.problem + self._how_far())
        if problem is not None:
            message = problem + self._last_words()
            return Outcome(None, cost, self.seconds, message, overrun=self.overrun, outcomes=reported.outcomes)
        return Outcome(reported.value, cost, self.seconds, outcomes=reported.outcomes)

    def _told(self) -> tuple[float | None, Mapping[str, Any] | None]:
        """What it has said that it cost, and the report of its last step as a result; nothing if it was not done."""
        if self.listener is None:
            return None, None
        told, end = self.listener.reports, self.listener.end
        job, cost = self.plan.job, told[-1].cost if told else None
        if end is None:
            return cost, {}
        return cost, {job.objective: end.value} | ({} if job.cost is None else {job.cost: end.cost})

    def _problem(self) -> str | None:
        if self.killed_for is not None:
            return self.killed_for
        code = self.process.returncode
        if code < 0:
            return f"the command was killed by {_signal_name(-code)}"
        return f"the command ended with exit code {code}" if code else None

    def _how_far(self) -> str:
        if self.listener is None or self.plan.job.steps is None:
            return ""
        step = self.listener.reports[-1].step if self.listener.reports else 0
        return f"; it has reported step {step} of {self.plan.job.steps.last}"

    def _last_words(self) -> str:
        lines = tail(self.plan.file("stderr.log", self.count), SHOWN_BYTES).strip().splitlines()[-SHOWN_LINES:]
        return "".join(f"\n    {line}" for line in lines)


def start(plan: Plan, count: int) -> Attempt:
    """Run the command of a trial.

    Raises:
        StartError: This machine cannot start it, nor any other: its disk is full, say, or the program is gone.
        InvalidInputError: It is this point whose command cannot be started.
    """
    job, log = plan.job, plan.file("stdout.log", count)
    try:
        make_folder(plan.folder)
        if plan.checkpoint is not None:
            make_folder(plan.checkpoint)
        write_json(plan.params_file, plan.params)
        if job.result_file is not None:  # what an earlier attempt wrote is not the result of this one
            (plan.folder / job.result_file).unlink(missing_ok=True)
        with open_private(log) as out, open_private(plan.file("stderr.log", count)) as err:
            listener = None if job.steps is None else Listener(job, job.steps, log)
            begun = time.monotonic()
            return Attempt(plan, count, _process(plan, out, err), begun, listener=listener)
    except OSError as error:
        way_out = "mend that, and run it again to go on"
        raise StartError(f"the command of trial {plan.number} could not be started: {error}; {way_out}") from None


def _process(plan: Plan, out: BinaryIO, err: BinaryIO) -> "subprocess.Popen[bytes]":
    job = plan.job
    try:
        return subprocess.Popen(  # noqa: S603 (an argument list from the user's own file; no shell)
            filled(job.command, values_of(plan.params, plan.own)),
            cwd=job.folder,
            env={**for_commands(os.environ), **job.environment, **environment_of(plan.params, plan.own)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and not _is_about_the_point(job, error):
            raise
        raise InvalidInputError(f"the command could not be started: {error}") from None


def _is_about_the_point(job: Job, error: OSError) -> bool:
    """Whether the command of another point may start: its program is another, or its arguments are shorter."""
    program = bool(names_in(job.program)) and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
    return program or error.errno in (errno.E2BIG, errno.ENAMETOOLONG)


def _wait_without_reaping(pid: int) -> None:
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
