"""`pbgi dashboard`: optuna-dashboard for one study, with our plots in it, for the browser of this machine.

    web_server.py                   where it listens, what it refuses
    live_plots.py plot_process.py   the plots, as trials end; the process that makes them
    dashboard_pages.py              optuna-dashboard's pages, with room for them

It ends with Ctrl-C. Nothing that goes wrong before then ends it: a storage that is gone for a moment and a plot that
cannot be made are told once, and tried again.
"""

import logging
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from pbgi.cli.dashboard_pages import pages
from pbgi.cli.interruption import Interruption
from pbgi.cli.live_plots import LivePlots, PlottedStorage
from pbgi.cli.masking import masked
from pbgi.cli.progress import Display
from pbgi.cli.storage import Storage
from pbgi.cli.web_server import TOKEN, WebServer

FIRST_PLOTS = 5.0  # seconds that the address is held back for them: pages look for new ones every ten seconds only
POLL = 0.1  # seconds until the server notices that it is to end
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
EXPOSED = (
    "whoever has this address with its token can read, change and delete every study in this storage, and what is sent "
    "to port {port} of this machine is not encrypted; without --host nobody else can ask"
)


def serve(
    storage: Storage, name: str, *, host: str, port: int, unit: str, ready: Callable[[dict[str, str]], None]
) -> None:
    """Serve the dashboard until a signal comes.

    Args:
        storage: Where the study is.
        name: The study that gets plots.
        host: The name or address to listen at.
        port: The port; 0 for any that is free.
        unit: Of costs, for the plots.
        ready: Told the address once it can be opened.

    Raises:
        InvalidInputError: One cannot listen there, or optuna-dashboard is not installed.
    """
    study_id = storage.patiently(lambda: storage.backend.get_study_id_from_name(name))
    plotted = storage.patiently(lambda: PlottedStorage(storage.url, name))
    notices, ended = _Notices(storage.url), threading.Event()

    def show(made: list[str]) -> None:
        plotted.show(made)
        notices.forget()

    def end() -> None:
        ended.set()
        plots.heard.set()  # do not wait for them any longer

    watched = {"url": storage.url, "study": name, "unit": unit}
    plots = LivePlots(watched, show, lambda why: notices.tell(f"no new plots for now: {why}"))
    with closing(plotted), WebServer(host, port, notices.unanswered) as server, plots:
        server.answer_with(storage.patiently(lambda: pages(plotted)))
        with Interruption(end, end), notices, _serving(server):
            if not server.is_loopback:
                notices.tell(EXPOSED.format(port=server.server_port))
            plots.heard.wait(FIRST_PLOTS)
            query = "" if server.token is None else f"?{TOKEN}={server.token}"
            ready({"study": name, "url": f"{server.url}/dashboard/studies/{study_id}{query}"})
            ended.wait()


def open_browser(url: str) -> None:
    """Open a page where there is somebody to see it, and a screen: not the text browser of a server."""
    if sys.stdout.isatty() and (sys.platform == "darwin" or any(map(os.environ.get, DISPLAYS))):
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


@contextmanager
def _serving(server: WebServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(POLL,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


class _Notices(logging.Handler):
    """What is said on stderr, from any thread: without passwords, and nothing twice until it is forgotten.

    Inside, what optuna-dashboard logs is told too; of a traceback, what went wrong.
    """

    def __init__(self, url: str) -> None:
        super().__init__(logging.ERROR)  # a warning is that a study is too young for some plot
        self._url, self._display, self._told = url, Display(), set[str]()
        self._logger, self._talking = logging.getLogger("optuna_dashboard"), threading.Lock()

    def __enter__(self) -> None:
        self._logger.addHandler(self)

    def __exit__(self, *_error: object) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Tell what was logged."""
        self.unanswered(record.getMessage().partition("\n")[0])

    def unanswered(self, why: str) -> None:
        """Tell that a page asked in vain."""
        self.tell(f"a page got no answer: {why}")

    def tell(self, message: str) -> None:
        """Say it, unless it was said before."""
        with self._talking:
            if message not in self._told:
                self._told.add(message)
                self._display.say(f"pbgi: {masked(message, self._url)}")

    def forget(self) -> None:
        """What was wrong is mended; if it comes again, it is news."""
        with self._talking:
            self._told.clear()
