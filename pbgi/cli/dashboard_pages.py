"""optuna-dashboard's pages as we serve them: plots in the order in which they were made, and room for them.

Both are for the eye only. Should a later version of optuna-dashboard name things otherwise, plots come in any order, in
cells of a fixed size that cut the tall ones off.
"""

from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from optuna.storages import RDBStorage

from pbgi.cli.live_plots import NAMES
from pbgi.errors import InvalidInputError

PAGES, PLOTS = "/dashboard", "plotly_graph_objects"
_PLOT = f'[id^="user-defined-plot:{NAMES}"]'
# A plot gets the height it asks for; the cell around it, the whole width.
STYLE = f"""<style>
{_PLOT} {{ height: auto !important; min-height: 420px; }}
div:has(> * > * > {_PLOT}) {{ flex-basis: 100% !important; max-width: 100% !important; padding: 16px 0 0 16px; }}
</style>""".encode()


def pages(storage: RDBStorage) -> WSGIApplication:
    """The application.

    Raises:
        InvalidInputError: optuna-dashboard is not installed.
    """
    try:
        from optuna_dashboard import wsgi
    except ImportError as error:
        needed = 'the dashboard needs another package: pip install "pbgi[dashboard]"'
        raise InvalidInputError(f"{needed} ({error})") from None
    app = wsgi(storage)
    if hasattr(app, "install"):  # a plugin of Bottle, which hears what is answered before it becomes text
        app.install(_in_order)
    return _roomy(app)


def _in_order(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Sorts plots by name: they come as a set."""

    def ordered(*arguments: Any, **named: Any) -> Any:
        body = answer(*arguments, **named)
        if isinstance(body, dict) and isinstance(body.get(PLOTS), list):
            body[PLOTS].sort(key=lambda plot: str(plot["id"]))
        return body

    return ordered


def _roomy(app: WSGIApplication) -> WSGIApplication:
    """Adds the style to every page."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET" or not environ["PATH_INFO"].startswith(PAGES):
            return app(environ, start_response)
        for condition in ("HTTP_IF_MODIFIED_SINCE", "HTTP_IF_NONE_MATCH"):  # what the browser has may lack the style
            environ.pop(condition, None)
        status, headers, page = _whole(app, environ)
        page = page.replace(b"</head>", STYLE + b"</head>", 1)
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start_response(status, [*kept, ("Content-Length", str(len(page)))])
        return [page]

    return answer


def _whole(app: WSGIApplication, environ: WSGIEnvironment) -> tuple[str, list[tuple[str, str]], bytes]:
    """What an application answers, in one piece: status, headers, body."""
    said: list[Any] = []

    def start(status: str, headers: list[tuple[str, str]], *_error: Any) -> Callable[[bytes], object]:
        said[:] = [status, headers]
        return lambda _: None

    parts = app(environ, start)
    try:
        body = b"".join(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    return said[0], said[1], body
