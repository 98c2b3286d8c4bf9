"""What a run leaves behind."""

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pbgi.display.notebook import heading, params_table, sentence
from pbgi.display.wording import number, plural, short
from pbgi.errors import MissingPackageError
from pbgi.history import Trial
from pbgi.optimizer import Optimizer
from pbgi.prediction import Recommendation
from pbgi.serialization import Value
from pbgi.stopping import StopReason


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a search.

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
    trials: tuple[Trial, ...]
    optimizer: Optimizer

    def __repr__(self) -> str:
        """A line for each of the things to know."""
        params = None if self.params is None else {name: short(value) for name, value in self.params.items()}
        written = "None" if params is None else "{" + ", ".join(f"{n!r}: {v}" for n, v in params.items()) + "}"
        fun = None if self.fun is None else short(self.fun)
        counts = f"nfev={self.nfev}, spent={short(self.spent)}, success={self.success}"
        return f"Result(\n  fun={fun},\n  params={written},\n  {counts},\n  message={self.message!r},\n)"

    def _repr_html_(self) -> str:
        """For a notebook."""
        after = f"{plural(self.nfev, 'trial')}, {number(self.spent)} spent: {self.message}"
        if self.params is None or self.fun is None:
            return heading("No value was found") + sentence(after)
        found = "Lowest" if self.optimizer.direction == "minimize" else "Highest"
        return heading(f"{found} value {number(self.fun, 6)}") + params_table(self.params) + sentence(after)

    def plot(self, *, unit: str = "") -> Any:
        """The best value against what was spent, as a Plotly figure; see `pbgi.report` for all other plots.

        Args:
            unit: Of the costs, "s" or "dollars", say.
        """
        return _report().plot_best_value(self, unit=unit)

    def report(self, path: str | os.PathLike[str], *, unit: str = "", title: str = "") -> Path:
        """Write a report to an HTML file: the result in words, plots and all trials; see `pbgi.report.write_report`.

        Args:
            path: The file; one that is there is replaced.
            unit: Of the costs, "s" or "dollars", say.
            title: Of the page.
        """
        written: Path = _report().write_report(self, path, unit=unit, title=title)
        return written

    @property
    def recommended(self) -> Recommendation | None:
        """The trial to choose if values are noisy; without noise the best one, see `Optimizer.recommended`."""
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


def _report() -> Any:
    """Plots and pages are made upstairs, and imported when they are asked for."""
    return import_module("pbgi.report")


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
