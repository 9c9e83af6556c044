"""A wire that can be cut: a TCP proxy in front of a server, whose behaviour tests change while it runs.

    client ──► proxy ──► server        pass    as if it were not there
                                       cut     connections end, new ones are refused
                                       slow    every chunk waits
                                       silent  connections are taken, and nothing ever comes back
                                       trickle answers come a byte at a time
                                       answer  the next HTTP requests get an error of S3's, and no server sees them

`on_request` sees every chunk on its way to the server before it goes on, and `on_answer` those on their
way back: either may end the connections there.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import SystemRandom

CHUNK_BYTES = 64 * 1024
PORTS = (20_000, 32_000)
POLL_S, LONGEST_POLL_S = 0.05, 1.0
"""Between two looks at what is waited for."""

_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) (\S*) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpError:
    """What S3 answers when it does not do what it is asked for."""

    status: int
    code: str
    message: str = ""

    def response(self, method: bytes) -> bytes:
        said = f"<Code>{self.code}</Code><Message>{self.message or self.code}</Message>"
        body = f"<?xml version='1.0'?><Error>{said}</Error>".encode()
        head = (
            f"HTTP/1.1 {self.status} {self.code}\r\nContent-Type: application/xml\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if method == b"HEAD" else body)


SLOW_DOWN = HttpError(503, "SlowDown")


class TcpProxy:
    """Listens on a port of its own; safe to switch from any thread."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._refusing = False
        self._closed = False
        self.delay_s = 0.0
        self.silent = False
        self.trickle_s = 0.0
        self.errors_left = 0
        self.error = SLOW_DOWN
        self.requests: list[str] = []
        self.on_request: Callable[[bytes], None] | None = None
        self.on_answer: Callable[[bytes], None] | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return self._port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def cut(self) -> None:
        """Ends all connections and refuses new ones, until `mend`."""
        self._refusing = True
        self.drop()

    def drop(self) -> None:
        """Ends the connections that there are; new ones are taken."""
        with self._lock:
            ending, self._open = self._open, set()
        for connection in ending:
            _end(connection)

    def mend(self) -> None:
        """Back to passing everything on."""
        self._refusing = self.silent = False
        self.delay_s = self.trickle_s = 0.0
        self.errors_left = 0
        self.on_request = self.on_answer = None

    def answer(self, requests: int, error: HttpError = SLOW_DOWN) -> None:
        """The next so many HTTP requests get this error."""
        self.error, self.errors_left = error, requests

    def close(self) -> None:
        self._closed = True
        _end(self._listener)
        self.drop()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                _end(client)
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target, timeout=10)
        except OSError:
            _end(client)
            return
        server.settimeout(None)
        for connection in (client, server):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open |= {client, server}
        threading.Thread(target=self._pump, args=(server, client, self._towards_client), daemon=True).start()
        self._pump(client, server, self._towards_server)

    def _pump(self, source: socket.socket, sink: socket.socket, look: Callable[[bytes, socket.socket], bool]) -> None:
        try:
            while data := source.recv(CHUNK_BYTES):
                if not look(data, source):
                    break
                if look == self._towards_client:
                    data = self._trickled(data, sink)
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for connection in (source, sink):
                _end(connection)
            with self._lock:
                self._open -= {source, sink}

    def _towards_server(self, data: bytes, client: socket.socket) -> bool:
        if self.on_request is not None:
            self.on_request(data)
        if request := _REQUEST.match(data):
            self.requests.append(f"{request[1].decode()} {request[2].decode()}")
            with self._lock:
                failing = self.errors_left > 0
                self.errors_left -= failing
            if failing:
                _take_in(data, client)
                client.sendall(self.error.response(request[1]))
                return False
        return self._hold(data, client)

    def _towards_client(self, data: bytes, server: socket.socket) -> bool:
        if self.on_answer is not None:
            self.on_answer(data)
        return self._hold(data, server)

    def _hold(self, _data: bytes, _source: socket.socket) -> bool:
        """Lets the chunk wait for as long as the wire is slow or silent."""
        time.sleep(self.delay_s)
        while self.silent and not self._closed:
            time.sleep(POLL_S)
        return not self._refusing

    def _trickled(self, data: bytes, sink: socket.socket) -> bytes:
        """Sends bytes one by one for as long as the wire is like that; what is left then."""
        while self.trickle_s and data and not self._closed:
            sink.sendall(data[:1])
            data = data[1:]
            time.sleep(self.trickle_s)
        return data


def _take_in(data: bytes, client: socket.socket) -> None:
    """Reads the rest of a request, so that its sender gets to the answer."""
    while b"\r\n\r\n" not in data:
        data += client.recv(CHUNK_BYTES)
    head, _, body = data.partition(b"\r\n\r\n")
    if b"100-continue" in head.lower():
        return
    length = _LENGTH.search(head)
    left = int(length[1]) - len(body) if length else 0
    while left > 0 and (more := client.recv(CHUNK_BYTES)):
        left -= len(more)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def a_proxy(host: str, port: int) -> Iterator[TcpProxy]:
    proxy = TcpProxy((host, port))
    try:
        yield proxy
    finally:
        proxy.close()


def free_port() -> int:
    """A port of this machine on which no program listened just now.

    It is none of those that the system gives out by itself: a client that still tries a server that is gone would meet
    another section's, such as one of Spark's that takes a single connection.
    """
    while True:
        port = SystemRandom().randrange(*PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def wait_until(ready: Callable[[], object], what: str, timeout_s: float = 30.0) -> None:
    """Waits until it is so; fails with `what` after the time.

    Looks take at most a fifth of a processor, or what is waited for would have the less of them: some read a log.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        used_s = time.process_time()
        if ready():
            return
        assert time.monotonic() < deadline, what
        time.sleep(min(max(POLL_S, 4 * (time.process_time() - used_s)), LONGEST_POLL_S))


def takes_connections(port: int) -> bool:
    """Whether a program listens on a port of this machine."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
