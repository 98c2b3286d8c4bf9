"""What ends a run before its rules do: a function that fails again and again, that exits, or somebody who says so."""

from pbgi.errors import BrokenFunctionError
from pbgi.history import Trial
from pbgi.run.evaluation import NoValueError, Outcome
from pbgi.run.log import LOG, warn
from pbgi.stopping import StopReason

# After a success the function is not broken everywhere: so many times as many failures in a row end a run.
LATER_FAILURES = 10
STOPPED = "Stopped by a callback or the function"


class EndedError(Exception):
    """There is a reason to end the run, beyond the rules of the optimizer."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.message)
        self.reason = reason


def stopped(message: str) -> EndedError:
    """What `StopRun(message)` comes to, wherever it was raised."""
    return EndedError(StopReason("StopRun", message or STOPPED))


class Failures:
    """The failures of a run, counted: how many may come in a row, and what was the last.

    Args:
        most: How many may come before the first success; None for any number.
        n_succeeded: How many trials have given a value already, in the part of the run that is resumed.
    """

    def __init__(self, most: int | None, n_succeeded: int) -> None:
        self._most, self.n_succeeded = most, n_succeeded
        self._in_a_row, self._warned = 0, False
        self.last: str | None = None
        self._missing: NoValueError | None = None

    def success(self) -> None:
        """A trial has given a value."""
        self.n_succeeded, self._in_a_row = self.n_succeeded + 1, 0

    def failure(self, trial: Trial, message: str, outcome: Outcome, error: Exception | None = None) -> None:
        """A trial has failed; the first one is worth a warning, all of them a line of the log."""
        where = "" if outcome.line is None else f" ({outcome.line})"
        if not self._warned:
            warn(f"trial {trial.number} failed and is charged: {message}{where}")
        LOG.warning("trial %d failed and is charged: %s%s", trial.number, message, where)
        LOG.debug("trial %d: %s", trial.number, outcome.where)
        self.last, self._in_a_row, self._warned = message, self._in_a_row + 1, True
        self._missing = error if isinstance(error, NoValueError) else None

    def no_number(self, trial: Trial) -> None:
        """A trial has given NaN or an infinity, by which many functions say on purpose that a point is bad."""
        LOG.warning("trial %d failed and is charged: %s", trial.number, trial.message)
        self.last, self._in_a_row = trial.message, self._in_a_row + 1

    def require_sense(self, ended: Trial, outcome: Outcome) -> None:
        """Raise where going on makes no sense.

        Raises:
            EndedError: The run ends with what there is.
            SystemExit: The function called `sys.exit` before the first success.
            NoValueError: It returned no value before the first success.
            BrokenFunctionError: Too many trials have failed before the first success.
        """
        if outcome.stopped is not None:
            raise stopped(outcome.stopped)
        if outcome.exit_code is not None:
            if not self.n_succeeded:
                raise SystemExit(*outcome.exit_code)
            raise EndedError(StopReason("FunctionExited", str(outcome.error)))
        if ended.value is not None:
            return
        if not self.n_succeeded and self._missing is not None:
            raise self._missing
        if self._most is not None and self._in_a_row >= self._most * (LATER_FAILURES if self.n_succeeded else 1):
            self._give_up(outcome.where or self.last or "")

    def _give_up(self, where: str) -> None:
        n, way_out = self._in_a_row, "mend the function, or go on whatever happens with max_failures=None"
        if not self.n_succeeded:
            raise BrokenFunctionError(
                f"the first {n} trials failed, and none gave a value; {way_out}; the last:\n{where}"
            )
        raise EndedError(StopReason("Failures", f"the last {n} trials failed; {way_out}; the last: {self.last}"))
