"""Runs in processes of their own, a few at a time.

One `ProcessPoolExecutor` of one process per job, not one of many: when a process dies, its executor gives up all that
it was asked for. So it is known which run that was, and no other is lost.
"""

import math
import multiprocessing
import time
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, Self

from paper.specification import Run
from paper.worker import Answer, answer, begin


class Finished(NamedTuple):
    """A run that has ended: with a record, or with the reason why there is none."""

    run: Run
    record: dict[str, Any] | None
    error: str | None


def execute_all(runs: Iterable[Run], *, n_jobs: int = 1, deadline: float = math.inf) -> Generator[Finished, None, None]:
    """Execute runs, `n_jobs` at a time, and yield each as soon as it has ended.

    Args:
        runs: Taken one by one, whenever a process is free.
        n_jobs: Number of processes.
        deadline: On the clock of `time.monotonic`; what is running by then is given up.
    """
    waiting = iter(runs)
    with _Processes(n_jobs) as processes:
        while True:
            while processes.n_idle and (run := next(waiting, None)):
                processes.start(run)
            done = processes.wait(deadline)
            if not done:
                return
            yield from done


class _Processes:
    """Executors of one process each, which end when this is closed, whatever they are doing."""

    def __init__(self, n_jobs: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._lifeline, self._held_end = self._context.Pipe(duplex=False)
        self._idle = [self._executor() for _ in range(n_jobs)]
        self._running: dict[Future[Answer], tuple[Run, ProcessPoolExecutor]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held_end.close()
        executors = [*self._idle, *(executor for _, executor in self._running.values())]
        for executor in executors:
            executor.shutdown(cancel_futures=True)
        self._lifeline.close()

    def _executor(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, self._context, initializer=begin, initargs=(self._lifeline,))

    @property
    def n_idle(self) -> int:
        """How many runs can be started now."""
        return len(self._idle)

    def start(self, run: Run) -> None:
        """Begin to execute a run."""
        executor = self._idle.pop()
        self._running[executor.submit(answer, run)] = run, executor

    def wait(self, deadline: float) -> list[Finished]:
        """What has ended, once there is something; nothing if nothing is running, or after the deadline."""
        timeout = None if math.isinf(deadline) else max(deadline - time.monotonic(), 0.0)
        done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        return [self._collected(future) for future in done]

    def _collected(self, future: Future[Answer]) -> Finished:
        run, executor = self._running.pop(future)
        try:
            record, error = future.result()
        except BrokenProcessPool as broken:
            executor.shutdown()
            executor, record, error = self._executor(), None, f"the process of this run died: {broken}"
        self._idle.append(executor)
        return Finished(run, record, error)
