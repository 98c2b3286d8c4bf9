"""Experiment tracking: a run of `minimize` in MLflow, Weights & Biases or TensorBoard.

    MLflowCallback         into the run of MLflow that is active, or a new one
    WandbCallback          into a run of Weights & Biases
    TensorBoardCallback    into event files

Each is given as `minimize(..., callbacks=[MLflowCallback()])`. After every trial it logs `value`, `best_value`, `cost`,
`spent`, `remaining` and `index`, as far as there are numbers, and at the end the reason why the run ended. In a loop of
ask and tell, call it with the optimizer and the trial that `tell` returned, and `end` with what `should_stop` said.

Each package is imported when a callback is made. `pip install mlflow`, `wandb` or `tensorboardX` brings it.
"""

import os
from importlib import import_module
from typing import Any

from pbgi.errors import MissingPackageError
from pbgi.history import Trial
from pbgi.notes import INDEX
from pbgi.optimizer import Optimizer
from pbgi.stopping import StopReason

__all__ = ["MLflowCallback", "TensorBoardCallback", "WandbCallback", "numbers_of"]

INTERRUPTED = "interrupted"


def numbers_of(optimizer: Optimizer, trial: Trial) -> dict[str, float]:
    """What is logged of a trial that has ended: names to numbers; what is not known is left out."""
    known = {
        "value": trial.value,
        "best_value": None if optimizer.best is None else optimizer.best.value,
        "cost": trial.charged,
        "spent": optimizer.spent,
        "remaining": optimizer.remaining,
        "index": INDEX.of(trial),
    }
    return {name: number for name, number in known.items() if number is not None}


class MLflowCallback:
    """Logs trials as metrics, a step each, and why the run ended as the tag `stop_reason`.

    It logs into the active run, or starts one, which stays open: use `with mlflow.start_run():` around `minimize`.
    """

    def __init__(self) -> None:
        self._mlflow = _package("mlflow", "MLflowCallback", "mlflow")

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        """Log a trial that has ended."""
        self._mlflow.log_metrics(numbers_of(optimizer, trial), step=trial.number)

    def end(self, reason: StopReason | None) -> None:
        """Log why the run ended; None: it was interrupted."""
        self._mlflow.set_tag("stop_reason", str(reason or INTERRUPTED))


class WandbCallback:
    """Logs trials into a run of Weights & Biases, and why the search ended into its summary as `stop_reason`.

    Trials may end in another order than they began, and a step of Weights & Biases never goes back, so that the number
    of the trial is logged beside its numbers, as `trial`.

    Args:
        run: What `wandb.init` returned; None for a new run, which ends with the search.
    """

    def __init__(self, run: Any = None) -> None:
        wandb = _package("wandb", "WandbCallback", "wandb")
        self._run, self._is_ours = (wandb.init(), True) if run is None else (run, False)

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        """Log a trial that has ended."""
        self._run.log({"trial": trial.number, **numbers_of(optimizer, trial)})

    def end(self, reason: StopReason | None) -> None:
        """Log why the run ended; None: it was interrupted."""
        self._run.summary["stop_reason"] = str(reason or INTERRUPTED)
        if self._is_ours:
            self._run.finish()


class TensorBoardCallback:
    """Writes trials as scalars into event files, a step each, and why the run ended as the text `stop_reason`.

    Args:
        folder: Where the event files go; `tensorboard --logdir` shows them.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = _package("tensorboardX", "TensorBoardCallback", "tensorboardX").SummaryWriter(os.fspath(folder))

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        """Write a trial that has ended."""
        for name, number in numbers_of(optimizer, trial).items():
            self._writer.add_scalar(name, number, trial.number)
        self._writer.flush()

    def end(self, reason: StopReason | None) -> None:
        """Write why the run ended; None: it was interrupted."""
        self._writer.add_text("stop_reason", str(reason or INTERRUPTED))
        self._writer.close()


def _package(name: str, needed_by: str, install: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(f"{needed_by} needs {name}: pip install {install}") from error
