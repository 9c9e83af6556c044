"""Servers that are no gateways, or answer as one that is in trouble."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answers = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def a_server(*answers: Answers, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answers each request by the next one of these, and further ones by the last."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            (left.pop(0) if len(left) > 1 else left[0])(self)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_one  # noqa: N815 - names of the base

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # the client, or an answer, has hung up
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def says(body: object, kind: str = "application/json", status: int = 200, **headers: str) -> Answers:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **more}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    return answer


def hangs_up(request: BaseHTTPRequestHandler) -> None:
    request.connection.shutdown(socket.SHUT_RDWR)
    request.close_connection = True


BEGUN = says({"job": "j1", "state": "queued"}, status=202)
"""A job that has been begun."""
ROUND = {"job": "j1", "state": "done", "ended_ms": 5, "progress": None, "error": None}
REPORT = {"topic": "t", "version": 7, "changed": True, "logs": [], "duration_ms": 1, "now_ms": 1}


def problem(code: str, detail: str, status: int, exit_code: int = 1) -> Answers:
    """What a gateway answers for an error."""
    told = {"code": code, "detail": detail, "hint": None, "exit_code": exit_code, "status": status}
    return says(told, "application/problem+json", status)


def events(*told: tuple[str, dict[str, Any]], first: int = 1) -> Answers:
    """The events of a job, after which the connection breaks off."""
    texts = [f"id: {n}\nevent: {name}\ndata: {json.dumps(facts)}\n\n" for n, (name, facts) in enumerate(told, first)]

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b": hello\n\n" + "".join(texts).encode())
        request.close_connection = True

    return answer
