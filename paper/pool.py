"""Processes that execute runs, one run at a time each.

Processes of our own rather than those of `concurrent.futures`: one that crashes takes no other run with it, and what it
was doing is known; and the number of threads is set in its environment, before it imports anything.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from paper.specification import Run

ROOT = Path(__file__).parents[1]
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}


class Finished(NamedTuple):
    """A run that has ended: with a record, or with the reason why there is none."""

    run: Run
    record: dict[str, Any] | None
    error: str | None


class Pool(Protocol):
    """Where runs are executed."""

    @property
    def n_free(self) -> int:
        """How many runs can be started now."""

    @property
    def n_running(self) -> int:
        """How many are being executed."""

    @property
    def size(self) -> int:
        """How many can be executed at a time."""

    def start(self, run: Run) -> None:
        """Begin to execute a run."""

    def wait(self, timeout: float | None) -> list[Finished]:
        """Wait for at least one run to end; an empty list after so many seconds."""

    def close(self) -> None:
        """End all processes, whatever they are doing."""


class _Worker:
    """One process, and a thread of ours that waits for its answers."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    @property
    def process_id(self) -> int | None:
        """Of its process, if there is one."""
        return None if self._process is None else self._process.pid

    def execute(self, run: Run) -> Finished:
        """Ask for a run and wait for the answer."""
        try:
            process = self._started()
            requests, answers = _pipes(process)
            requests.write(run.to_json() + "\n")
            requests.flush()
            line = answers.readline()
        except OSError:
            line = ""
        if not line.endswith("\n"):
            return Finished(run, None, self._post_mortem())
        answer = json.loads(line)
        return Finished(run, answer.get("record"), answer.get("error"))

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "paper.worker"],
                cwd=ROOT,
                env={**os.environ, **ONE_THREAD},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for the runner, which ends its workers itself
            )
        return self._process

    def _post_mortem(self) -> str:
        """What the process died of; the next run gets a new one."""
        process = self._process
        self.end()
        return f"its process ended with exit status {None if process is None else process.returncode}"

    def kill(self) -> None:
        """Kill the process: whoever waits for its answer gets none."""
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        """Have no process any more."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in _pipes(process):
            with suppress(OSError):  # what was left to be written cannot be any more
                pipe.close()
        process.wait()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    """Where it is asked, and where it answers."""
    return cast(IO[str], process.stdin), cast(IO[str], process.stdout)


class LocalPool:
    """Processes on this machine.

    Args:
        n_jobs: How many.
    """

    def __init__(self, n_jobs: int) -> None:
        self.size = n_jobs
        self._workers = [_Worker() for _ in range(n_jobs)]
        self._idle = list(self._workers)
        self._threads = ThreadPoolExecutor(n_jobs)
        self._running: dict[Future[Finished], _Worker] = {}

    @property
    def n_free(self) -> int:
        """How many runs can be started now."""
        return len(self._idle)

    @property
    def n_running(self) -> int:
        """How many are being executed."""
        return len(self._running)

    @property
    def process_ids(self) -> list[int]:
        """Of the processes that there are."""
        return [worker.process_id for worker in self._workers if worker.process_id is not None]

    def start(self, run: Run) -> None:
        """Begin to execute a run."""
        worker = self._idle.pop()
        self._running[self._threads.submit(worker.execute, run)] = worker

    def wait(self, timeout: float | None) -> list[Finished]:
        """Wait for at least one run to end; an empty list after so many seconds."""
        done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        return list(self._collected(done))

    def _collected(self, done: "set[Future[Finished]]") -> Iterator[Finished]:
        for future in done:
            self._idle.append(self._running.pop(future))
            yield future.result()

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown()
        for worker in self._workers:
            worker.end()
