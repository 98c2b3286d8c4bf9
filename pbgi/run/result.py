"""What a run leaves behind."""

from dataclasses import dataclass, field
from typing import Any

from pbgi.errors import MissingPackageError
from pbgi.history import Trial
from pbgi.optimizer import Optimizer
from pbgi.prediction import Recommendation
from pbgi.serialization import Value
from pbgi.stopping import StopReason


@dataclass(frozen=True, eq=False)
class Result:
    """What a search found.

    Attributes:
        params: The best parameters; None if no trial succeeded, or none kept all conditions on outcomes.
        fun: Their value.
        nfev: How many trials were run.
        success: Whether there are such parameters.
        message: Why it ended, in words.
        spent: What was charged.
        stop_reason: Why it ended; None if it was interrupted.
        trials: Every trial.
    """

    params: dict[str, Value] | None
    fun: float | None
    nfev: int
    success: bool
    message: str
    spent: float
    stop_reason: StopReason | None
    trials: tuple[Trial, ...] = field(repr=False)
    optimizer: Optimizer = field(repr=False)

    @property
    def recommended(self) -> Recommendation | None:
        """The trial to go with where values are noisy; without noise the best one, see `Optimizer.recommended`."""
        return self.optimizer.recommended

    def to_dataframe(self) -> Any:
        """The trials as a pandas DataFrame, a column per parameter and per outcome; needs pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingPackageError("Result.to_dataframe() needs pandas: pip install pandas") from error
        columns = ("number", "state", "value", "cost", "predicted_cost", "external", "message")
        rows = [{**t.params, **{name: getattr(t, name) for name in columns}, **t.constraints} for t in self.trials]
        return pd.DataFrame(rows)


def result_of(optimizer: Optimizer, reason: StopReason | None, last_error: str | None) -> Result:
    """What an optimizer has found when its run ended for this reason."""
    best = optimizer.best
    message = "interrupted" if reason is None else reason.message
    if best is None and last_error is not None:
        message += f"; no trial succeeded, the last error was: {last_error}"
    elif best is None and optimizer.conditions:
        message += f"; no trial kept all conditions: {'; '.join(map(str, optimizer.conditions))}"
    return Result(
        params=None if best is None else dict(best.params),
        fun=None if best is None else best.value,
        nfev=sum(not trial.external for trial in optimizer.trials),
        success=best is not None,
        message=message,
        spent=optimizer.spent,
        stop_reason=reason,
        trials=optimizer.trials,
        optimizer=optimizer,
    )
