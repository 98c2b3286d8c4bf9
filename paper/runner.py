"""Executes what is not finished yet, in parallel, and can be interrupted at any time.

Results are written by this process alone, each as soon as it is there; whatever ends it, the next call goes on from
there. A run that fails is reported with its specification and does not stop the others.
"""

import json
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from paper.pool import Finished, execute_all
from paper.progress import Durations, in_order, in_words
from paper.results import Store
from paper.specification import Run


class Pool(Protocol):
    """What executes runs: `paper.pool.execute_all`, or the like."""

    def __call__(self, runs: Iterable[Run], *, n_jobs: int, deadline: float) -> Generator[Finished, None, None]:
        """Each run as soon as it has ended."""


@dataclass
class Report:
    """How it went.

    Attributes:
        n_skipped: Runs that need BoTorch.
        n_before: Runs that were finished before.
        n_finished: Runs that were executed now.
        failed: Those that ended without a result.
        n_left: Runs that there was no time for.
        interrupted: Whether it was by Ctrl-C.
    """

    n_skipped: int = 0
    n_before: int = 0
    n_finished: int = 0
    failed: list[Finished] = field(default_factory=list)
    n_left: int = 0
    interrupted: bool = False

    @property
    def exit_status(self) -> int:
        """0 if all is well, 1 if runs failed, 130 after Ctrl-C."""
        return 130 if self.interrupted else 1 if self.failed else 0

    def __str__(self) -> str:
        """A summary in one line."""
        parts = [f"{self.n_finished} runs finished", f"{self.n_before} were before"]
        parts += [f"{len(self.failed)} failed"] * bool(self.failed) + [f"{self.n_left} left"] * bool(self.n_left)
        parts += [f"{self.n_skipped} skipped"] * bool(self.n_skipped)
        return ", ".join(parts) + ("; interrupted: run the same again to go on" if self.interrupted else "")


class Runner:
    """Works off runs.

    Args:
        store: Where results are, and go to.
        n_jobs: Number of runs at a time.
        max_seconds: After so many seconds whatever is running is given up; runs not expected to end by then are not
            started.
        pool: What executes runs.
        log: Where messages go; by default standard error.
    """

    def __init__(
        self,
        store: Store,
        *,
        n_jobs: int = 1,
        max_seconds: float | None = None,
        pool: Pool = execute_all,
        log: TextIO | None = None,
    ) -> None:
        self._store, self._n_jobs, self._pool, self._log = store, n_jobs, pool, log or sys.stderr
        self._deadline = float("inf") if max_seconds is None else time.monotonic() + max_seconds

    def run(self, runs: Iterable[Run]) -> Report:
        """Execute the runs that have no result yet."""
        report = Report()
        try:
            self._work_off(self._without_botorch(list(runs), report), report)
        except KeyboardInterrupt:
            report.interrupted = True
        for number, failure in enumerate(report.failed, start=1):
            self._say(f"failed ({number} of {len(report.failed)}): {_described(failure)}")
        self._say(str(report))
        return report

    def _work_off(self, runs: list[Run], report: Report) -> None:
        records = self._store.load(dict.fromkeys(run.specification.experiment for run in runs))
        durations, finished = Durations(records), {record["key"] for record in records}
        left = {run.key: run for run in runs if run.key not in finished}
        report.n_before, report.n_left, n_all = len(runs) - len(left), len(left), len(left)
        ordered = in_order(left.values(), durations, self._deadline)
        # Closed whatever happens here: an interrupt may come between two runs, and the processes end all the same.
        with closing(self._pool(ordered, n_jobs=self._n_jobs, deadline=self._deadline)) as ended:
            for done in ended:
                del left[done.run.key]
                report.n_left = len(left)
                self._note(done, durations, report)
                seconds = durations.total(left.values())
                ahead = in_words(None if seconds is None else seconds / self._n_jobs)
                what = in_words(done.record["wall_seconds"]) if done.record else "FAILED"
                self._say(f"[{n_all - len(left)}/{n_all}] {done.run} | {what} | {ahead} left")

    def _without_botorch(self, runs: list[Run], report: Report) -> list[Run]:
        able = [run for run in runs if not run.lacks_botorch]
        names = sorted({run.curve for run in runs if run.lacks_botorch})
        report.n_skipped = len(runs) - len(able)
        if report.n_skipped:
            self._say(f"skipped {report.n_skipped} runs of {', '.join(names)}: pip install pbgi[botorch] for them")
        return able

    def _note(self, done: Finished, durations: Durations, report: Report) -> None:
        if done.record is None:
            report.failed.append(done)
            return
        self._store.append(done.record)
        durations.add(done.record)
        report.n_finished += 1

    def _say(self, message: str) -> None:
        print(message, file=self._log, flush=True)


def _described(failure: Finished) -> str:
    plain = json.dumps(failure.run.to_plain(), sort_keys=True)
    return f"{failure.run}\n  {plain}\n  {(failure.error or '').strip()}"
