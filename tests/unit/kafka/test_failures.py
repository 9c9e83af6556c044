"""What is said of a client that cannot connect, whichever of its lines about the handshake comes last (C50)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Thread

import pytest
from confluent_kafka import KafkaError

from lithify.kafka_client.broker_failures import error_of

CUT_OFF = "ssl://{}/bootstrap: Disconnected: SSL connection closed by peer (after 1ms in state SSL_HANDSHAKE)"
NAMED = "ssl://{}/bootstrap: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?"


@pytest.fixture
def plain_server() -> Iterator[str]:
    """A server without TLS, which closes every connection as a broker closes what it does not understand."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(64)

        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("line", [CUT_OFF, NAMED])
def test_a_broker_without_tls_is_named(plain_server: str, line: str) -> None:
    failure = KafkaError(KafkaError._TRANSPORT, line.format(plain_server))
    error = error_of(failure, {"security.protocol": "ssl"}, plain_server)
    assert "it uses plain text, but security.protocol is SSL" in error.message
    assert "set security.protocol to PLAINTEXT" in error.hint


def test_what_is_no_handshake_is_no_matter_of_tls(plain_server: str) -> None:
    failure = KafkaError(KafkaError._TRANSPORT, f"{plain_server}/bootstrap: Connect failed: Connection refused")
    assert "plain text" not in error_of(failure, {"security.protocol": "ssl"}, plain_server).message
