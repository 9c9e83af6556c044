"""A real `lithify gateway run` on a warehouse with SQLite, and requests to it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

PROGRAM = (sys.executable, "-m", "lithify")
LINES = "application/x-ndjson"
_LISTENS = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")


@dataclass(slots=True)
class RealGateway:
    """A running one."""

    process: subprocess.Popen[str]
    port: int
    _connection: HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self._connection = HTTPConnection("127.0.0.1", self.port, timeout=600)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
        """The body of an answer. Raises `AssertionError` for another than success."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, f"/api/v1{path}", body, named)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return content

    def append(self, topic: str, lines: bytes) -> None:
        self.asked("POST", f"/topics/{topic}/records", lines, Content_Type=LINES)

    def compact(self, topic: str) -> None:
        """Waits for the end: its events come until then."""
        events = self.asked("POST", f"/topics/{topic}/rounds", b"{}", Accept="text/event-stream")
        assert b'"state":"done"' in events.replace(b'": "', b'":"'), events

    def follow(self) -> None:
        """Reads the events, as an open page does, until the gateway ends."""
        Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", "/api/v1/events")
        answer = connection.getresponse()
        while answer.readline():
            pass

    def memory_mb(self) -> int:
        """Of its own process, without Spark's."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) // 1024


@contextmanager
def a_gateway(folder: str) -> Iterator[RealGateway]:
    """Once it answers."""
    command = [*PROGRAM, "--warehouse", folder, "gateway", "run", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    port = next(int(found[1]) for line in process.stderr if (found := _LISTENS.search(line)))
    Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield RealGateway(process, port)
    finally:
        process.terminate()
        process.wait(60)
