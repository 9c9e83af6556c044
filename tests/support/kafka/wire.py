"""A client of Kafka's protocol that sends whatever it is told to: one connection, one request at a time."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from lithify.kafka_protocol.codec import RequestHeader, decode_response, encode_request

WAIT_S = 30.0


class WireClient:
    """Connected until it is closed. `sock` is for what is no request."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection(address, WAIT_S)
        self.sock = plain if context is None else context.wrap_socket(plain, server_hostname="localhost")
        self._sent = 0
        self.client_id = "wire"

    def ask(self, key: int, version: int, /, **body: Any) -> dict[str, Any]:
        """The answer to a request."""
        self.send(key, version, **body)
        return self.receive(key, version)

    def send(self, key: int, version: int, /, **body: Any) -> None:
        self._sent += 1
        self.sock.sendall(encode_request(RequestHeader(key, version, self._sent, self.client_id), body))

    def receive(self, key: int, version: int, number: int | None = None) -> dict[str, Any]:
        """The next answer, which must be the one to request `number`, by default the last."""
        correlation_id, body = decode_response(key, version, self.frame())
        assert correlation_id == (number or self._sent)
        return body

    def frame(self) -> bytes:
        """The next frame, without its length. Raises `ConnectionError` if there is none."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def is_closed(self) -> bool:
        """Waits for the server to send something, or to close the connection."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise ConnectionError("closed by the server")
            data += more
        return bytes(data)
