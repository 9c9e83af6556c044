"""Requests to a REST catalog end, whatever the service does (C50)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from requests import Session
from requests.exceptions import ReadTimeout

from lithify.store.iceberg.catalog import configured
from lithify.store.iceberg.catalog.configured import bound_session

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
PAUSES_S = {"at once": 0.0, "slow": 0.005, "trickling": 0.3, "silent": 60.0}
BOUND_S = 10.0


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(configured, "REQUEST_S", 1.0)
    with Session() as made:
        bound_session(made)
        yield made


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[str]:
    """Answers one request, with a pause after each byte."""
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                for byte in ANSWER:
                    connection.sendall(bytes([byte]))
                    if over.wait(PAUSES_S[request.param]):
                        return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/config"
        over.set()
        serving.join()


@pytest.mark.parametrize("service", ["at once", "slow"], indirect=True)
def test_an_answer_is_waited_for(session: Session, service: str) -> None:
    assert session.get(service).json() == {}


@pytest.mark.parametrize("service", ["trickling", "silent"], indirect=True)
def test_an_answer_that_does_not_come_whole_is_given_up(session: Session, service: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ReadTimeout, match=r"GET http://127\.0\.0\.1.*no whole answer within 1 s"):
        session.get(service)
    assert time.monotonic() - begun < BOUND_S
