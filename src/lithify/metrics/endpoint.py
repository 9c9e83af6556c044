"""Serves the metrics of one process over HTTP: GET /metrics, and nothing else.

A request has `DEADLINE_S` in all, and at most `MOST_AT_ONCE` are answered at once: a client that sends slowly or never
ends keeps neither a thread nor memory. It runs on threads that end with the process.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from threading import BoundedSemaphore, Thread, Timer
from typing import Any

from lithify.errors import UnusableEnvironmentError
from lithify.errors.defects import as_lithify_error
from lithify.model.settings.units import format_address

PATH = "/metrics"
DEADLINE_S = 10.0
MOST_AT_ONCE = 8
POLL_S = 0.1

Render = Callable[[str], tuple[bytes, str]]
"""Takes the header `Accept`; returns a body and its content type."""


@contextmanager
def served(host: str, port: int, render: Render, *, option: str = "") -> Iterator[int]:
    """Serves meanwhile what `render` returns; gives the port, which is chosen if it is 0.

    Raises `UnusableEnvironmentError` if it cannot listen there; `option` is what chose the address.
    """
    try:
        server = _Server(host, port, render)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnusableEnvironmentError(
            f"metrics cannot be served at {format_address(host, port)}: {reason}",
            hint=f"another process may listen there; choose another address{option and f' with {option}'}",
        ) from error
    thread = Thread(target=server.serve_forever, args=(POLL_S,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingMixIn, TCPServer):
    """Raises `OSError` if it cannot listen."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * MOST_AT_ONCE

    def __init__(self, host: str, port: int, render: Render) -> None:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        self.render = render
        self._free = BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, _Handler)  # type: ignore[arg-type]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        timer = Timer(DEADLINE_S, _hang_up, [request])
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is printed of a client that hung up."""


def _hang_up(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = DEADLINE_S
    server_version = "lithify"
    sys_version = ""

    def do_GET(self) -> None:
        """The metrics."""
        if self.path.partition("?")[0] != PATH:
            self._answer(404, f"there is only {PATH}\n".encode(), "text/plain; charset=utf-8")
            return
        try:
            body, content_type = self.server.render(self.headers.get("Accept", ""))
        except Exception as error:
            text = f"{as_lithify_error(error, 'the metrics')}\n"
            self._answer(500, text.encode(), "text/plain; charset=utf-8")
            return
        self._answer(200, body, content_type)

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_given: object) -> None:
        """Nothing is printed of requests."""

    def log_error(self, *_given: object) -> None:
        """Nothing is printed of requests that are wrong."""
