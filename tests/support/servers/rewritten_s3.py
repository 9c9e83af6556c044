"""An S3 endpoint with one object at a time, which is rewritten between a client's HEAD and its GET.

    HEAD ──► size of the version before ... PUT of the next version ... GET of a range ──► its bytes

A real endpoint does so when a writer is fast enough; this one does it at each look, as often as it is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class RewrittenObject:
    """What is stored at any path: each HEAD tells the size of the first version, then the next one is there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.versions: list[bytes] = []
        self.looks = 0

    def rewrite(self, versions: Sequence[bytes]) -> None:
        """The versions of the object; the last one stays."""
        self.versions, self.looks = list(versions), 0

    def properties(self) -> dict[str, str]:
        """What PyIceberg's configuration says about it."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.port}",
            "s3.access-key-id": "an-id",
            "s3.secret-access-key": "a-secret",
            "s3.region": "us-east-1",
        }


@contextmanager
def a_rewritten_object() -> Iterator[RewrittenObject]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None: ...

        def do_HEAD(self) -> None:
            stored.looks += 1
            self.answer(200, stored.versions[0], head=True)
            if len(stored.versions) > 1:
                del stored.versions[0]

        def do_GET(self) -> None:
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            whole = stored.versions[0]
            self.answer(206, whole[int(found[1]) : int(found[2]) + 1] if found else whole)

        def answer(self, status: int, content: bytes, *, head: bool = False) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", '"any"')
            self.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
            self.end_headers()
            if not head:
                self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stored = RewrittenObject(server.server_port)
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield stored
        finally:
            server.shutdown()
            thread.join()
