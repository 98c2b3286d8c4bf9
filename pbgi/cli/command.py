"""One run of the command, and what it said: the value and the cost, from its output or from a file.

{"value": 0.25, "cost": 1.5}       the keys are the job's `objective` and `cost`
0.25                               a number alone is the value, where the cost is not reported

Programs print other things too. In the output an object that has the key of the objective is the result, the last one
if there are several, whatever follows it. A number alone may be anything, a count of epochs say, so it is the result
only as the last line.

A command has its own process group and is killed with its children when time is up. It writes straight into files of
the trial's folder, so nothing is buffered here and nothing is lost when this process dies. A thread waits for the end
and timers for the timeout and the end of the budget, so that a slow storage delays none of them.

Logs are kept within bounds: their beginning and their end. What is too much in the middle is given back to the disk
while the command runs, as a hole in the file that moves nothing, and cut out when it has ended. Where a file system
knows no holes, the log is cut at the end only.
"""

import contextlib
import ctypes
import errno
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pbgi.checks import check_cost, check_outcomes, check_value
from pbgi.cli.errors import StartError, shortened
from pbgi.cli.job import Job, price_of_second
from pbgi.cli.placeholders import environment_of, filled, names_in, values_of
from pbgi.cli.private import for_commands, make_folder, open_private, tail, write_json
from pbgi.cli.processes import Guard, kill_strays, signal_group
from pbgi.errors import InvalidInputError
from pbgi.serialization import Value, parsed_json

# Outcomes ------------------------------------------------------------------------------------------------------------


# How much of the end of the output is looked at: a last line longer than this is not a result.
MOST_BYTES = 2**20
LEAST_COST = 1e-9  # a cost is positive, however short the command


@dataclass(frozen=True)
class Outcome:
    """How an attempt, or a trial, ended.

    Attributes:
        value: What it gave; None if it failed.
        cost: What it cost; None if that is not known.
        seconds: How long it took, where that was measured.
        message: Why it failed; None if it did not.
        overrun: Whether it was ended because the budget was used up: its cost is then less than it would have been.
        abandoned: Whether it was given up by another process than its own, which may yet come with a result.
        observed: What the attempt that gave the value was seen to cost, where `cost` is only what is charged; 0 for
            nothing.
        outcomes: What conditions are about, by name; None where it is not known.
    """

    value: float | None
    cost: float | None
    seconds: float | None
    message: str | None = None
    overrun: bool = False
    abandoned: bool = False
    observed: float | None = None
    outcomes: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Reported:
    """What was found in a result: a value or why there is none, and a cost and outcomes where they are reported."""

    value: float | None
    cost: float | None
    problem: str | None = None
    outcomes: Mapping[str, float] | None = None


def read_result(
    output: Path, result_file: Path | None, objective: str, cost: str | None, names: Collection[str] = ()
) -> Reported:
    """The result of a command; what is wrong with it comes back as its problem, never as an exception."""
    source = "the output" if result_file is None else f"the file {result_file.name!r}"
    try:
        if result_file is not None:
            return _reported(_json_file(result_file), objective, cost, names)
        return _reported(result_in(tail(output, MOST_BYTES), objective, cost), objective, cost, names)
    except InvalidInputError as error:
        return Reported(None, None, f"{source}: {shortened(str(error))}")


def result_in(text: str, objective: str, cost: str | None) -> Any:
    """The result in an output: an object, or the number in the last line.

    An object without a value may still say what was spent.
    """
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    without_value = []
    for line in reversed(lines):
        found = _parsed(line)
        if isinstance(found, dict):
            if objective in found:
                return found
            without_value.append(found)
    paid = [found for found in without_value if cost in found]
    last = _parsed(lines[-1]) if lines else None
    if not paid and isinstance(last, int | float):
        return last
    if without_value:
        return (paid or without_value)[0]
    rule = 'a line of JSON must say the result, such as {"value": 0.25}, or the last line must be a number'
    raise InvalidInputError(f"{rule}; there is none")


def _parsed(line: str) -> Any:
    """The JSON object or number that a line is; None if it is neither."""
    start = line.strip()[0]
    if start != "{" and start not in "-0123456789NI":
        return None
    try:
        return parsed_json(line)
    except ValueError:
        return None


def not_nested(name: str, value: Any) -> Any:
    """The value, unless it is a list or an object of JSON, which may be nested too deeply to be shown."""
    if isinstance(value, list | dict):
        kind = "a list" if isinstance(value, list) else "an object"
        raise InvalidInputError(f"{name} must be a single JSON value; got {kind} of length {len(value)}")
    return value


def _json_file(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"a result may have at most {MOST_BYTES} bytes; got {path.stat().st_size}")
        return parsed_json(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInputError(f"must be JSON: {error}") from None


def _reported(found: Any, objective: str, cost: str | None, names: Collection[str]) -> Reported:
    if not isinstance(found, dict):
        found = {objective: found}
    paid, problem = None, None
    if cost is not None:
        try:
            paid = check_cost(not_nested("the cost", found.get(cost)))
        except InvalidInputError as error:
            problem = shortened(f"{cost}: {error}")
        if paid is None and problem is None:
            problem = shortened(f"the cost must be under the key {cost!r}; got keys {sorted(found)}")
    if objective not in found:
        keys = shortened(f"the value must be under the key {objective!r}; got keys {sorted(found)}")
        return Reported(None, paid, keys)
    value = check_value(not_nested("the value", found[objective]))
    outcomes = check_outcomes({name: not_nested(name, found[name]) for name in names if name in found}, "the result")
    missing = [name for name in names if name not in outcomes]
    if not math.isfinite(value):
        problem = f"the value must be finite; got {value!r}"
    elif missing and problem is None:
        problem = shortened(f"an outcome must be under the key {missing[0]!r}; got keys {sorted(found)}")
    return Reported(None if problem else value, paid, problem, outcomes or None)


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
    interrupted: bool = False
    _timers: dict[str, threading.Timer] = field(default_factory=dict, repr=False)

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return max((self.ended or time.monotonic()) - self.started, LEAST_COST)

    def stop(self, why: str, *, overrun: bool = False, interrupted: bool = False) -> None:
        """Ask the group to end, and kill it `GRACE` seconds later.

        Args:
            why: In words.
            overrun: Whether that is because the budget is used up.
            interrupted: Whether it is neither the fault of the point nor of the command, so that it is to run again.
        """
        if self.ended is None and self.killed_for is None:
            self.killed_for, self.overrun, self.interrupted = why, overrun, interrupted
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
        names = job.constraints or {}
        reported = read_result(self.plan.file("stdout.log", self.count), result_file, job.objective, job.cost, names)
        cost = reported.cost if job.cost is not None else None
        if cost is None:
            cost = priced(job, self.seconds)
        problem = self._problem() or reported.problem
        if problem is not None:
            message = problem + self._last_words()
            return Outcome(None, cost, self.seconds, message, overrun=self.overrun, outcomes=reported.outcomes)
        return Outcome(reported.value, cost, self.seconds, outcomes=reported.outcomes)

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
    job, of_trial = plan.job, (plan.params, plan.number, plan.folder, params_file)
    try:
        return subprocess.Popen(  # noqa: S603 (an argument list from the user's own file; no shell)
            filled(job.command, values_of(*of_trial)),
            cwd=job.folder,
            env={**for_commands(os.environ), **job.environment, **environment_of(*of_trial)},
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
