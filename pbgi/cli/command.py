"""One run of the command: its own process group, its output in files, killed with its children when time is up.

Output goes straight into files of the trial's folder, so nothing is buffered here and nothing is lost when this process
dies. A thread waits for the end and timers for the timeout and the end of the budget, so that a slow storage delays
none of them.
"""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pbgi.cli.errors import StartError
from pbgi.cli.job import Job, environment_of, filled, names_in, price_of_second, values_of
from pbgi.cli.outcome import LEAST_COST, Outcome, condense, give_back, read_result
from pbgi.cli.private import for_commands, make_folder, open_private, tail, write_json
from pbgi.cli.processes import Guard, kill_strays, signal_group
from pbgi.errors import InvalidInputError
from pbgi.plain import Value

# Seconds between asking a command to end and killing it.
GRACE = 2.0
SHOWN_BYTES, SHOWN_LINES = 4096, 5


@dataclass(frozen=True)
class Plan:
    """What to run: a point of the job's space, with the number and the folder of its trial."""

    job: Job
    number: int
    params: dict[str, Value]
    folder: Path

    def file(self, name: str, attempt: int) -> Path:
        """A file of one attempt: the first is plain, later ones are numbered."""
        return self.folder / (name if attempt == 0 else f"{name}.{attempt}")


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
    _timers: dict[str, threading.Timer] = field(default_factory=dict, repr=False)

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return max((self.ended or time.monotonic()) - self.started, LEAST_COST)

    def stop(self, why: str, *, overrun: bool = False) -> None:
        """Ask the group to end, and kill it `GRACE` seconds later; `overrun` says that the budget is used up."""
        if self.ended is None and self.killed_for is None:
            self.killed_for, self.overrun = why, overrun
            signal_group(self.process.pid, signal.SIGTERM)
            self._after("kill", GRACE, self.kill)

    def end_in(self, seconds: float, why: str) -> None:
        """Stop it then, since the budget is used up by then; this takes the place of what was said before."""
        if self.ended is None and self.killed_for is None:
            self._after("budget", seconds, lambda: self.stop(why, overrun=True))

    def kill(self) -> None:
        """End the group at once."""
        if self.ended is None:
            signal_group(self.process.pid, signal.SIGKILL)

    def _after(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, instead of what was to be done under this name."""
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), action)
        timer.daemon = True
        before, self._timers[name] = self._timers.get(name), timer
        if before is not None:
            before.cancel()
        timer.start()

    def wait(self, ended: "Callable[[Attempt], None]", guard: Guard) -> None:
        """Call `ended` from a thread once the command and its children are gone."""

        def run() -> None:
            _wait_without_reaping(self.process.pid)
            self.ended = time.monotonic()
            # Until it is reaped its number cannot belong to anyone else, so what it left behind can be killed safely.
            signal_group(self.process.pid, signal.SIGKILL)
            kill_strays(str(self.plan.folder))
            self.process.wait()
            guard.release(self.process.pid)
            for log in self._logs:
                condense(log)
            for timer in tuple(self._timers.values()):
                timer.cancel()
            ended(self)

        guard.watch(self.process.pid, self.plan.folder)
        threading.Thread(target=run, daemon=True).start()
        if (timeout := self.plan.job.timeout) is not None:
            why = f"the command was killed after its timeout of {timeout:g} s"
            self._after("timeout", timeout, lambda: self.stop(why))

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
        reported = read_result(self.plan.file("stdout.log", self.count), result_file, job.objective, job.cost)
        cost = reported.cost if job.cost is not None else None
        if cost is None:
            cost = priced(job, self.seconds)
        problem = self._problem() or reported.problem
        if problem is not None:
            return Outcome(None, cost, self.seconds, problem + self._last_words(), overrun=self.overrun)
        return Outcome(reported.value, cost, self.seconds)

    def _problem(self) -> str | None:
        if self.killed_for is not None:
            return self.killed_for
        code = self.process.returncode
        if code < 0:
            return f"the command was killed by {_signal_name(-code)}"
        return f"the command ended with exit code {code}" if code else None

    def _last_words(self) -> str:
        lines = tail(self.plan.file("stderr.log", self.count), SHOWN_BYTES).strip().splitlines()[-SHOWN_LINES:]
        return "".join(f"\n    {line}" for line in lines)


def priced(job: Job, seconds: float) -> float | None:
    """What so many seconds cost; None where only the program knows."""
    price = price_of_second(job)
    return None if price is None else min(max(seconds * price, LEAST_COST), sys.float_info.max)


def start(plan: Plan, count: int) -> Attempt:
    """Run the command of a trial.

    Raises:
        StartError: This machine cannot start it, nor any other: its disk is full, say, or the program is gone.
        InvalidInputError: It is this point whose command cannot be started.
    """
    job, params_file = plan.job, plan.folder / "params.json"
    try:
        make_folder(plan.folder)
        write_json(params_file, plan.params)
        if job.result_file is not None:  # what an earlier attempt wrote is not the result of this one
            (plan.folder / job.result_file).unlink(missing_ok=True)
        with open_private(plan.file("stdout.log", count)) as out, open_private(plan.file("stderr.log", count)) as err:
            begun = time.monotonic()
            return Attempt(plan, count, _process(plan, params_file, out, err), begun)
    except OSError as error:
        way_out = "mend that, and run it again to go on"
        raise StartError(f"the command of trial {plan.number} could not be started: {error}; {way_out}") from None


def _process(plan: Plan, params_file: Path, out: BinaryIO, err: BinaryIO) -> "subprocess.Popen[bytes]":
    job, given = plan.job, (plan.params, plan.number, plan.folder, params_file)
    try:
        return subprocess.Popen(  # noqa: S603 (an argument list from the user's own file; no shell)
            filled(job.command, values_of(*given)),
            cwd=job.folder,
            env={**for_commands(os.environ), **job.environment, **environment_of(*given)},
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
    program = bool(names_in(job.command[0])) and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
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
