"""A web server for one machine: where it listens, and what it refuses.

The pages it serves can delete a study, so a request is answered only if it is meant for this server and comes from one
of its own pages:

- `Host` must be a number, or a name that this server goes by. A page of somebody else whose name was made to point here
  (DNS rebinding) still says its own name.
- A request that changes something must come from a page of this server, by its `Origin`.
- No page is shown inside a page of somebody else, and none makes code of text.
- Where other machines can reach it, every request must have the token, which the address that is printed holds; a
  cookie has it from then on.
"""

import errno
import io
import ipaddress
import re
import secrets
import socket
import sys
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, TextIO
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from pbgi.errors import InvalidInputError

READING = ("GET", "HEAD")
TOKEN = "token"  # noqa: S105 (its name in an address and in a cookie)
HEADERS = [("X-Frame-Options", "DENY"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")]
HIGHEST_PORT = 65535
SILENCE = 60.0  # seconds after which a client that has sent nothing is let go


class WebServer(ThreadingMixIn, WSGIServer):
    """Listens as soon as it is made; a thread for each request, so that a slow one is in nobody's way.

    Args:
        host: The name or address to listen at.
        port: The port; 0 for any that is free.
        troubled: Takes what went wrong while a request was answered.

    Raises:
        InvalidInputError: One cannot listen there; the message says why, and what to do.
    """

    daemon_threads = True  # whoever ends the server does not wait for a page

    def __init__(self, host: str, port: int, troubled: Callable[[str], None]) -> None:
        self.troubled, self._names = troubled, {host, "localhost", socket.gethostname()}
        self.address_family, address = _resolved(host, port)
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            raise InvalidInputError(_cannot_listen(host, port, error)) from None

    def answer_with(self, app: WSGIApplication) -> None:
        """What answers, behind the rules at the top of this file; to be said before `serve_forever`."""
        self.set_app(guarded(app, self._names, self.token))

    @cached_property
    def token(self) -> str | None:
        """What every request must have; None where this machine alone can ask."""
        return None if self.is_loopback else secrets.token_urlsafe()

    def server_bind(self) -> None:
        """As the base class, but without asking a name server who we are: that can take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone can reach it."""
        return ipaddress.ip_address(self.server_name).is_loopback

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        address = ipaddress.ip_address(self.server_name)
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        return f"http://{address if address.version == 4 else f'[{address}]'}:{self.server_port}"

    def handle_error(self, _request: Any, _client_address: Any) -> None:
        """Say what went wrong; a browser that has gone away is no error."""
        error = sys.exception()
        if not isinstance(error, (ConnectionError, TimeoutError)):
            self.troubled(f"{type(error).__name__}: {error}")


class _Handler(WSGIRequestHandler):
    server: WebServer
    timeout = SILENCE

    def log_message(self, *_arguments: object) -> None:
        """Nothing: a line for each request would hide the others."""

    def get_stderr(self) -> TextIO:
        return _Complaints(self.server.troubled)


class _Complaints(io.StringIO):
    """Where an application writes tracebacks; what it says in the end is passed on."""

    def __init__(self, troubled: Callable[[str], None]) -> None:
        super().__init__()
        self._troubled = troubled

    def flush(self) -> None:
        lines = self.getvalue().strip().splitlines()
        self.seek(0)
        self.truncate()
        if lines:  # the message is what follows the last place in the code
            places = (number for number, line in enumerate(lines, start=1) if line.startswith(" "))
            self._troubled("".join(lines[max(places, default=0) :][:1]))


# Where to listen -----------------------------------------------------------------------------------------------------


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The one address that a name stands for: what is checked is what is used."""
    if not 0 <= port <= HIGHEST_PORT:
        raise InvalidInputError(f"--port must be between 0 (any that is free) and {HIGHEST_PORT}; got {port}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise InvalidInputError(
            f"--host must be an address of this machine, such as 127.0.0.1; got {host!r}: {error}"
        ) from None
    return family, address


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    rules = {
        errno.EADDRINUSE: f"--port must be free; something listens at {host} port {port} already; "
        "take another one, or --port 0 for any that is free",
        errno.EACCES: f"--port must be one you may use; got {port}; take one above 1023",
        errno.EADDRNOTAVAIL: f"--host must be an address of this machine, such as 127.0.0.1; got {host!r}",
    }
    return rules.get(error.errno or 0, f"cannot listen at {host!r} port {port}: {error.strerror or error}")


# What is refused -----------------------------------------------------------------------------------------------------


def guarded(app: WSGIApplication, names: Collection[str], token: str | None = None) -> WSGIApplication:
    """An application to which only requests get that keep the rules.

    Args:
        app: What answers requests that are let through.
        names: What the server goes by, besides numbers.
        token: What every request must have, if anything.
    """
    known = {name.lower() for name in names}

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        refused = _refusal(environ, known)
        if refused is None and token is not None and not _has_token(environ.get("HTTP_COOKIE", ""), token):
            if _has_token(environ.get("QUERY_STRING", ""), token):
                kept = ("Set-Cookie", f"{TOKEN}={token}; Path=/; HttpOnly; SameSite=Strict")
                start_response("303 See Other", [("Location", environ["PATH_INFO"]), kept, *HEADERS])
                return []
            refused = "Refused: open the address with the token that `pbgi dashboard` has printed.\n"
        if refused is not None:
            start_response("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8"), *HEADERS])
            return [refused.encode()]

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            strict = [(name, value.replace("'unsafe-eval'", "")) for name, value in headers]
            return start_response(status, [*strict, *HEADERS], *error)

        return app(environ, start)

    return answer


def _has_token(fields: str, token: str) -> bool:
    """Whether a cookie or a query holds the token."""
    found = [
        value for name, _, value in (part.strip().partition("=") for part in re.split("[;&]", fields)) if name == TOKEN
    ]
    return any(secrets.compare_digest(value.encode(), token.encode()) for value in found)


def _refusal(environ: WSGIEnvironment, names: Collection[str]) -> str | None:
    """Why a request is not answered; None if it is."""
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
    if not _is_known(host, names):
        return "Refused: this server does not go by that name. Use its address, or start it with --host and the name.\n"
    if environ["REQUEST_METHOD"] not in READING and origin is not None and origin.partition("://")[2] != host:
        return "Refused: only a page of this server may change something.\n"
    return None


def _is_known(host: str, names: Collection[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name in names or _is_number(name)


def _is_number(name: str) -> bool:
    """Whether it is an IP address: nobody can make one point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
