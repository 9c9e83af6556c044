"""The server on a thread, beside the cleaner in the main thread."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from lithify.errors import UnusableEnvironmentError
from lithify.model.settings.units import format_address

BACKLOG = 512
IDLE_S = 75
"""How long a connection may be idle."""
END_S = 2
"""For responses that are under way when the gateway ends."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that is bound already, so that a port in use is told before anything starts."""

    host: str
    port: int
    taken: socket.socket

    @property
    def where(self) -> str:
        """Its address, as URLs have it."""
        return format_address(self.host, self.port)


def listen(host: str, port: int, *, option: str = "") -> Listening:
    """Binds the address, which `option` chose; port 0 takes a free one. Raises `UnusableEnvironmentError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise UnusableEnvironmentError(
            f"{format_address(host, port)} cannot be listened on: {error.strerror or error}",
            hint=f"choose another address{option and f' with {option}'}",
        ) from None
    return Listening(host, taken.getsockname()[1], taken)


class Serving:
    """An application that is served until `close`."""

    def __init__(self, app: ASGIApp, listening: Listening, *, cert: str | None = None, key: str | None = None) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            ws="none",
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=END_S,
            ssl_certfile=cert,
            ssl_keyfile=key,
        )
        self._server = uvicorn.Server(config)
        self._taken = listening.taken
        self._thread = Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the server, within `END_S` and a little more."""
        self._server.should_exit = True
        self._thread.join(END_S + 1)
        with suppress(OSError):
            self._taken.close()

    def _run(self) -> None:
        self._server.run([self._taken])
