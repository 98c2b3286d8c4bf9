"""`pbgi report STUDY -o report.html`: one page about a study, whichever program made it with Optuna.

With `--follow` the page is written again whenever the study has changed, and loads itself again in the browser. There
is no server: the page is a file, and a browser on this machine reads it. The last page no longer loads itself.
"""

import contextlib
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import optuna

from pbgi.cli.errors import ExitCode, JobError, StorageError
from pbgi.cli.processes import Interruption
from pbgi.cli.progress import Display
from pbgi.cli.storage import Storage
from pbgi.errors import InvalidInputError
from pbgi.history import TrialState
from pbgi.study import attributes

if TYPE_CHECKING:  # the report needs Plotly, which may be missing
    from pbgi.report.page import Page
    from pbgi.report.subject import Subject

EVERY = 10.0  # seconds
LONGEST_PAUSE = 3600.0  # seconds


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        storage: Where the study is.
        name: The study.
        output: The HTML file, which takes the place of one that is there.
        unit: Of costs; by default what is known of the study.
    """

    storage: Storage
    name: str
    output: Path
    unit: str


@dataclass(frozen=True)
class _Made:
    """A page with what it is about."""

    subject: "Subject"
    page: "Page"

    @property
    def running(self) -> int:
        return sum(trial.state is TrialState.RUNNING for trial in self.subject.trials)

    @property
    def ended(self) -> str | None:
        """Why the run has stopped; None while it goes on, or may."""
        reason = None if self.running else self.subject.stop_reason
        return None if reason is None else reason.message

    @property
    def best_value(self) -> float | None:
        return None if self.subject.best is None else self.subject.best.value


def report(asked: Request) -> dict[str, Any]:
    """Write the page; what was written, as JSON.

    Raises:
        InvalidInputError: Plotly is missing, or the study has several objectives.
        JobError: The file cannot be written.
    """
    made = _make(asked, _load(asked))
    _write(asked, made)
    return _record(asked, made)


def _load(asked: Request) -> optuna.Study:
    # Its sampler is never asked for a trial; one that knows nothing is the quickest to make.
    sampler, backend = optuna.samplers.RandomSampler(), asked.storage.backend
    return asked.storage.patiently(lambda: optuna.load_study(study_name=asked.name, storage=backend, sampler=sampler))


def _make(asked: Request, study: optuna.Study) -> _Made:
    try:
        from pbgi.report.page import draw_page
        from pbgi.report.source import subject_of
    except ImportError as error:
        raise InvalidInputError(f"a report needs Plotly: pip install plotly ({error})") from None
    subject = asked.storage.patiently(lambda: subject_of(study, unit=asked.unit))
    return _Made(subject, draw_page(subject))


def _write(asked: Request, made: _Made, *, every: float | None = None) -> None:
    try:
        made.page.write(asked.output, every=every)
    except OSError as error:
        raise JobError.at(asked.output, None, f"cannot be written: {error.strerror}") from None


def _record(asked: Request, made: _Made) -> dict[str, Any]:
    standing = {"trials": len(made.subject.trials), "spent": made.subject.spent, "best_value": made.best_value}
    return {"study": asked.name, "report": str(asked.output), **standing}


# Following a run -----------------------------------------------------------------------------------------------------


class Follower:
    """One run of `pbgi report --follow`.

    Args:
        asked: The page.
        every: Seconds between two looks at the study.
        display: Where to say what is done.
    """

    def __init__(self, asked: Request, every: float, display: Display) -> None:
        self._asked, self._every, self._display = asked, every, display
        self._signals: SimpleQueue[None] = SimpleQueue()
        self._seen: object = None
        self._made: _Made | None = None

    def run(self) -> tuple[dict[str, Any], int]:
        """Follow the study until its run has stopped or a signal comes.

        Returns:
            The last page as JSON, and the exit code: Ctrl-C is how it is meant to end.

        Raises:
            InvalidInputError: Plotly is missing, or the study has several objectives.
            JobError: The file cannot be written.
            StorageError: The storage stayed away.
        """
        with Interruption(self._woken, self._hurried) as interruption:
            try:
                made = self._follow(interruption)
            finally:
                if self._made is not None:
                    _write(self._asked, self._made)  # the last page, which stays as it is
        code = ExitCode.DONE if interruption.signal in (None, signal.SIGINT) else 128 + interruption.signal
        self._display.say(f"ended: {interruption.reason or made.ended}; {self._asked.output} is complete")
        return _record(self._asked, made), code

    def _woken(self) -> None:
        self._asked.storage.hurry()
        self._signals.put(None)

    def _hurried(self) -> None:
        raise KeyboardInterrupt  # a page that is being made is not waited for

    def _follow(self, interruption: Interruption) -> _Made:
        study = _load(self._asked)
        self._say(f"is written again as trials end, looked for every {self._every:g} s; Ctrl-C ends it")
        while True:
            begun = time.monotonic()
            made = self._look(study, interruption)
            if made.ended is not None or interruption.signal is not None:
                return made
            # Making a page may take long, and the time of trials on this machine may be what they cost.
            pause = min(max(self._every, time.monotonic() - begun), LONGEST_PAUSE)
            with contextlib.suppress(Empty):
                self._signals.get(timeout=pause)
                return made

    def _look(self, study: optuna.Study, interruption: Interruption) -> _Made:
        """The latest page, written again if the study has changed."""
        try:
            seen = self._asked.storage.patiently(lambda: _state_of(study))
            if self._made is None or seen != self._seen:
                self._seen, self._made = seen, _make(self._asked, study)
                _write(self._asked, self._made, every=self._every)
                self._say(_line_about(self._made))
        except StorageError:
            if interruption.signal is None or self._made is None:
                raise
        return self._made

    def _say(self, message: str) -> None:
        self._display.say(f"{self._asked.output}: {message}")


def _state_of(study: optuna.Study) -> object:
    """What a page depends on; signs of life of running trials are not part of it."""
    trials = study.get_trials(deepcopy=False)
    return study.user_attrs, [(trial.state, trial.values, trial.user_attrs.get(attributes.COST)) for trial in trials]


def _line_about(made: _Made) -> str:
    best = "no value yet" if made.best_value is None else f"best {made.best_value:.6g}"
    return f"{len(made.subject.trials)} trials, {made.running} running, spent {made.subject.spent:.4g}, {best}"
