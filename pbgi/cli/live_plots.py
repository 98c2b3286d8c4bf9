"""Plots that follow a study: made by another process (`pbgi.cli.plot_process`), shown in the dashboard, stored nowhere.

optuna-dashboard finds plots among the attributes of a study. Writing them there would take hundreds of transactions for
each trial that ends, in the way of the workers, and a page could read one plot half old and half new. So the dashboard
is given a storage that adds them to what it reads.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import InMemoryStorage, RDBStorage

import pbgi
from pbgi.cli.plot_process import EVERY, PLOTS, TROUBLE

NAMES = "pbgi-"  # what the names of our plots begin with


class PlottedStorage(RDBStorage):
    """A storage in which one study seems to have plots.

    Args:
        url: Where it is.
        study_name: The study.
    """

    def __init__(self, url: str, study_name: str) -> None:
        super().__init__(
            url, engine_kwargs={"pool_pre_ping": True}, skip_compatibility_check=True, skip_table_creation=True
        )
        self._study_name, self._plots = study_name, dict[str, str]()

    def show(self, plots: Sequence[str]) -> None:
        """From now on these, each as JSON; a page that is being answered gets all of the old ones or of the new."""
        self._plots = as_attributes(plots)

    def close(self) -> None:
        """Let go of its connections."""
        self.engine.dispose()

    def get_all_studies(self) -> list[Any]:
        """All studies, one of them with plots."""
        studies = super().get_all_studies()
        for study in studies:
            if study.study_name == self._study_name:
                study.system_attrs.update(self._plots)
        return studies


@dataclass(frozen=True)
class _Made:
    """A plot that another process has made: all that optuna-dashboard asks of a figure."""

    json: str

    def to_json(self) -> str:
        return self.json


def as_attributes(plots: Sequence[str]) -> dict[str, str]:
    """Plots as optuna-dashboard keeps them in a study; their names are in the order of the plots.

    It puts them into a study of this process alone, from which they are read.
    """
    from optuna_dashboard import save_plotly_graph_object

    storage, name = InMemoryStorage(), "plots"
    study = optuna.create_study(storage=storage, study_name=name)
    for number, plot in enumerate(plots):
        save_plotly_graph_object(study, _Made(plot), graph_object_id=f"{NAMES}{number:03d}")
    return dict(storage.get_study_system_attrs(storage.get_study_id_from_name(name)))


class LivePlots:
    """A process that makes plots, started again should it die, and a thread that hears from it.

    Args:
        watched: What `plot_process` is told: `url`, `study` and `unit`.
        show: Takes new plots.
        troubled: Takes what went wrong.

    Attributes:
        heard: Set as soon as there are plots, or it is known why not.
    """

    def __init__(
        self, watched: dict[str, str], show: Callable[[list[str]], None], troubled: Callable[[str], None]
    ) -> None:
        self.heard = threading.Event()
        self._watched, self._show, self._troubled = watched, show, troubled
        self._ended = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> "LivePlots":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.kill()  # it holds nothing that could be lost
        self._thread.join()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                self._follow()
            except OSError as error:
                self._troubled(f"they are made by a process that cannot be started: {error}")
            self.heard.set()
            self._ended.wait(EVERY)

    def _follow(self) -> None:
        """Hear what one process has to say, until it ends."""
        with _started(self._watched) as self._process:
            if self._ended.is_set():  # meanwhile
                self._process.kill()
            for line in self._process.stdout or ():
                with contextlib.suppress(ValueError):  # half a line, if it was killed
                    self._take(json.loads(line))
        if not self._ended.is_set():
            self._troubled(f"the process that makes them ended with code {self._process.returncode}")

    def _take(self, said: dict[str, Any]) -> None:
        if PLOTS in said:
            self._show(said[PLOTS])
        else:
            self._troubled(said[TROUBLE])
        self.heard.set()


def _started(watched: dict[str, str]) -> "subprocess.Popen[str]":
    """The process; what it watches goes through a pipe, for a list of arguments is no place for a password."""
    path = [str(Path(pbgi.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pbgi.cli.plot_process"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in the terminal is not meant for it
        text=True,
        encoding="utf-8",
    )
    with contextlib.suppress(BrokenPipeError):  # it has died; its code will tell
        print(json.dumps(watched), file=process.stdin, flush=True)
    return process
