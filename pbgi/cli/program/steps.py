"""What a program says on its way: a line of JSON for each step that it has done, read while it runs.

{"step": 3, "value": 0.21, "cost": 1.5}     the keys are `step` and the job's `objective` and `cost`

Other lines are other output. A report that breaks a rule is a problem of the program, which nobody listens to any
longer: what it says later may be just as wrong. The cost is that of this run of the program so far: what the job's
price of a second makes of the time until the line was read, or what the program says of itself.
"""

import contextlib
import math
import re
import threading
from pathlib import Path
from typing import Any

from pbgi.checks import check_cost, check_value, require_count
from pbgi.cli.errors import shortened
from pbgi.cli.job import STEP, Job
from pbgi.cli.program.result import not_nested, parsed, priced
from pbgi.errors import InvalidInputError
from pbgi.trials.steps import Report, Steps, require_next

# Bytes of a line: a longer one is no report. Of one without an end no more than this is kept in memory.
LONGEST_LINE = 2**16
CHUNK = 2**20
_ENDS = re.compile(rb"[\r\n]")


class Listener:
    """Reads the output of one run as it grows; threads may share it.

    Attributes:
        reports: What was said so far, with what this run had cost by then; None where a formula says what trials cost.
        problem: Why nobody listens any longer, if so.
    """

    def __init__(self, job: Job, steps: Steps, log: Path) -> None:
        self._job, self._steps, self._log = job, steps, log
        self.reports: list[Report] = []
        self.problem: str | None = None
        self._offset, self._rest, self._too_long = 0, b"", False
        self._lock = threading.Lock()

    @property
    def end(self) -> Report | None:
        """The report of the last step, once it was made."""
        return self.reports[-1] if self.reports and self.reports[-1].step == self._steps.last else None

    def read(self, seconds: float, *, ended: bool = False) -> bool:
        """Take in what was written since the last time; whether a stage has ended, or there is a problem.

        Args:
            seconds: How long the command has run.
            ended: Whether nothing more will come, so that the last line needs no end.
        """
        with self._lock:
            known = self._n_stages, self.problem
            with contextlib.suppress(OSError), self._log.open("rb") as file:
                file.seek(self._offset)
                while chunk := file.read(CHUNK):
                    self._offset += len(chunk)
                    self._take(chunk, seconds)
            if ended and self._rest:
                self._take(b"\n", seconds)
            return (self._n_stages, self.problem) != known

    @property
    def _n_stages(self) -> int:
        return self._steps.n_stages_at(self.reports[-1].step) if self.reports else 0

    def _take(self, chunk: bytes, seconds: float) -> None:
        *lines, rest = _ENDS.split(self._rest + chunk)
        for line in lines:
            if len(line) <= LONGEST_LINE and not self._too_long and self.problem is None:
                self._hear(line.decode("utf-8", errors="replace"), seconds)
            self._too_long = False
        self._too_long |= len(rest) > LONGEST_LINE
        self._rest = b"" if self._too_long else rest

    def _hear(self, line: str, seconds: float) -> None:
        found = parsed(line) if line.strip() else None
        if not isinstance(found, dict) or STEP not in found or self._job.objective not in found:
            return
        try:
            report = self._report(found, seconds)
            last = self.reports[-1] if self.reports else None
            if last is not None and report[:2] == last[:2] and (self._job.cost is None or report.cost == last.cost):
                return  # the same again
            require_next("a trial", self.reports, report)
        except InvalidInputError as error:
            self.problem = shortened(f"the command must report its steps as they are done; {error}")
        else:
            self.reports.append(report)

    def _report(self, found: dict[str, Any], seconds: float) -> Report:
        step, last = require_count(STEP, not_nested(STEP, found[STEP])), self._steps.last
        if step > last:
            raise InvalidInputError(f"step must not exceed the last one, {last}; got {step}")
        value = check_value(not_nested("the value", found[self._job.objective]))
        if not math.isfinite(value):
            raise InvalidInputError(f"the value of step {step} must be finite; got {value!r}")
        if self._job.cost is None:
            return Report(step, value, priced(self._job, seconds))
        cost = check_cost(not_nested("the cost", found.get(self._job.cost)))
        if cost is None:
            raise InvalidInputError(f"the cost so far must be under the key {self._job.cost!r}; got {sorted(found)}")
        return Report(step, value, cost)
