"""The server on a thread, beside the cleaner in the main thread."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from lithify.gateway.listening.bound import BoundSocket
from lithify.gateway.listening.connections import uvicorn_settings
from lithify.gateway.listening.tls import TlsFiles

END_S = 2
"""For responses that are under way when the gateway ends."""


class Serving:
    """An application that is served until `close`."""

    def __init__(self, app: ASGIApp, bound: BoundSocket, tls: TlsFiles | None = None) -> None:
        settings = uvicorn_settings(bound.address, tls)
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=END_S, **settings)
        self._server = uvicorn.Server(config)
        self._taken = bound.socket
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
