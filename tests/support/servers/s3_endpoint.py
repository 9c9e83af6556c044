"""An S3 endpoint of our own: moto's server as a process, with what it holds in memory.

It takes any credentials, so what a real one refuses is answered by a proxy in front of it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from support.servers.tcp_proxy import free_port, takes_connections, wait_until

SERVER = Path(sys.prefix) / "engines" / "bin" / "moto_server"
START_S = 60.0


class S3Endpoint:
    """A server. Buckets are for one test each."""

    def __init__(self) -> None:
        self.port = free_port()
        self._buckets = 0
        self._process = subprocess.Popen(
            [str(SERVER), "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        wait_until(lambda: takes_connections(self.port), "the S3 endpoint does not start", START_S)

    def make_bucket(self) -> str:
        """An empty one, by name."""
        self._buckets += 1
        name = f"bucket{self._buckets}"
        with urlopen(Request(f"http://127.0.0.1:{self.port}/{name}", method="PUT"), timeout=10):
            return name

    def properties(self, port: int | None = None) -> dict[str, str]:
        """What PyIceberg's configuration says about it; `port` is that of a proxy in between."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{port or self.port}",
            "s3.access-key-id": "an-id",
            "s3.secret-access-key": "a-secret",
            "s3.region": "us-east-1",
        }

    def freeze(self) -> None:
        """From now on it takes connections and answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()


@contextmanager
def an_s3_endpoint() -> Iterator[S3Endpoint]:
    endpoint = S3Endpoint()
    try:
        yield endpoint
    finally:
        endpoint.stop()
