"""A web server in the place of an admin interface: a function of the test answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Request(BaseHTTPRequestHandler):
    """`answer` of the server does it."""

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.server.answer(self)

    def log_message(self, *_: object) -> None: ...

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def a_web_server(answer: Callable[[Request], None]) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
    server.answer, server.seen, server.closed, server.daemon_threads = answer, [], False, True
    server.handle_error = lambda *_: None  # the client has gone
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.closed = True
        server.shutdown()
        server.server_close()
