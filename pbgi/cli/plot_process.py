"""The process that makes the plots of `pbgi dashboard`: it watches a study and makes them again when trials have ended.

A process of its own, because plots take seconds of computing, in which a thread would keep the answers to a browser
waiting; it makes room for everybody else, for the time of trials on this machine may be what they cost. It reads the
study and writes nothing to it.

Run by `pbgi.cli.live_plots`, it is told on standard input what to watch, says on standard output what came of it, both
in lines of JSON, and ends when standard input closes: with the one who started it, however that ended.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import optuna

from pbgi.cli.masking import masked
from pbgi.cli.storage import Storage
from pbgi.errors import PbgiError

EVERY = 3.0  # seconds between two looks at the study, or as long as the last look took
NICE = 10
PLOTS, TROUBLE = "plots", "trouble"

Figures = Callable[[optuna.Study], Mapping[str, Any]]


def main() -> None:
    """Read what to watch, and watch it until standard input closes."""
    said = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    os.nice(NICE)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    watch = Watch(said["url"], said["study"], _figures_in(said["unit"]))
    while True:
        begun = time.monotonic()
        news = watch.news()
        if news is not None:
            answers.write(json.dumps(news) + "\n")
            answers.flush()
        time.sleep(max(EVERY, time.monotonic() - begun))


def _figures_in(unit: str) -> Figures:
    """The plots of a report."""

    def made(study: optuna.Study) -> Mapping[str, Any]:
        from pbgi.report import figures  # here, so that what is missing for it is told like any other trouble

        return figures(study, unit=unit)

    return made


def _end_with_standard_input() -> None:
    sys.stdin.read()
    os._exit(0)


class Watch:
    """A study that is looked at again and again.

    Args:
        url: The storage.
        name: The study.
        figures: Makes the plots of a study, by title.
    """

    def __init__(self, url: str, name: str, figures: Figures) -> None:
        self._url, self._name, self._figures = url, name, figures
        self._opened: tuple[Storage, optuna.Study] | None = None
        self._n_finished: int | None = None

    def news(self) -> dict[str, Any] | None:
        """Plots, if trials have ended since the last ones; or why there are none; or None."""
        try:
            plots = self._new_plots()
        except Exception as error:  # whatever it was, the next look may find it mended, and new plots will say so
            self._n_finished = None
            kind = "" if isinstance(error, PbgiError) else f"{type(error).__name__}: "
            return {TROUBLE: masked(f"{kind}{error}", self._url)}
        return None if plots is None else {PLOTS: plots}

    def _new_plots(self) -> list[str] | None:
        study, n_finished = self._look()
        if n_finished == self._n_finished:
            return None
        plots = [str(figure.to_json()) for figure in self._figures(study).values()]
        self._n_finished = n_finished
        return plots

    def _look(self) -> tuple[optuna.Study, int]:
        """The study, and how many of its trials have ended; Optuna remembers those, and reads only the others."""
        if self._opened is None:
            storage = Storage(self._url, create=False)
            self._opened = storage, optuna.load_study(study_name=self._name, storage=storage.backend)
        storage, study = self._opened
        with storage.errors():
            trials = study.get_trials(deepcopy=False)
        return study, sum(trial.state.is_finished() for trial in trials)


if __name__ == "__main__":
    main()
