"""A PostgreSQL server of its own for a test: made in a temporary folder, on 127.0.0.1 only, with a password.

PostgreSQL refuses to run as root. Where the tests do, it runs as the user that Debian's package makes, or as nobody.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import psutil

USER, DATABASE = "pbgi", "postgres"
# Nothing here need survive a loss of power; what a crashed server had written is with the operating system.
SETTINGS = ("-c listen_addresses=127.0.0.1", "-c fsync=off", "-c shared_buffers=16MB", "-c max_connections=40")


def server_binaries() -> Path | None:
    """The folder of initdb and pg_ctl, which Debian keeps out of the path; None if there is no server here."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


class PostgresqlServer:
    """A server that can be stopped, made to crash, and started again; its data stay until `remove`."""

    def __init__(self, binaries: Path) -> None:
        self._binaries, self._identity = binaries, _identity()
        self._folder = Path(tempfile.mkdtemp(prefix="pbgi-postgresql-"))
        if self._identity:
            os.chown(self._folder, self._identity["user"], self._identity["group"])
        self._data, self._port, self._password = self._folder / "data", _free_port(), secrets.token_hex(16)
        password_file = self._folder / "password"
        password_file.write_text(self._password)
        options = ["--encoding=UTF8", "--locale=C", "--no-sync", "--auth=scram-sha-256", f"--username={USER}"]
        self._run("initdb", "--pgdata", self._data, *options, f"--pwfile={password_file}")

    @property
    def url(self) -> str:
        """For Optuna. The password is not in it."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self._port}/{DATABASE}"

    def write_password_file(self, path: Path) -> None:
        """What PGPASSFILE may point to: host, port, database, user and password, readable by its owner alone."""
        path.touch(mode=0o600)
        path.write_text(f"127.0.0.1:{self._port}:{DATABASE}:{USER}:{self._password}\n")

    def start(self) -> None:
        """Returns when it accepts connections."""
        options = " ".join((*SETTINGS, f"-c unix_socket_directories={self._folder}", f"-p {self._port}"))
        self._control("start", "--log", self._folder / "log", "--options", options)

    def stop(self) -> None:
        """As an administrator does: connections are cut, what is in flight is rolled back."""
        self._control("stop", "--mode", "fast")

    def crash(self) -> None:
        """Its processes end at once, with nothing put in order; the next start recovers from the log."""
        self._control("stop", "--mode", "immediate")

    def freeze(self) -> None:
        """Connections stay open, and nobody answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """The end of that."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        first = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # one of a connection that has just been closed
                process.send_signal(number)

    def remove(self) -> None:
        """Stop it if it runs, and delete its data."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.crash()
        shutil.rmtree(self._folder)

    def _control(self, action: str, *arguments: object) -> None:
        self._run("pg_ctl", action, "--wait", "--silent", "--pgdata", self._data, *arguments)

    def _run(self, program: str, *arguments: object) -> None:
        # No pipe: the server would keep it open.
        subprocess.run(
            [self._binaries / program, *map(str, arguments)],
            cwd=self._folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
            **self._identity,
        )


def _identity() -> dict[str, object]:
    """Whom the server runs as: nothing to say unless we are root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
