"""Connections on which no whole request comes."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from gateway.served import (
    LARGE,
    Seen,
    a_token,
    an_access,
    application,
    bearer,
    read_all,
    read_one,
    served,
    serving,
)
from lithify.gateway.access.middleware import Guard
from lithify.gateway.listening import connections
from lithify.gateway.listening.tls import checked_tls
from support.servers.certificates import a_certificate

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def gateway():
    with served(an_access(needs_token=False)) as gateway:
        yield gateway


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 0.3)


@pytest.mark.usefixtures("impatient")
def test_a_connection_without_a_request_is_closed(gateway):
    with gateway.connection() as connection:
        assert read_all(connection) == b""


@pytest.mark.usefixtures("impatient")
def test_a_head_that_comes_slowly_is_not_waited_for(gateway):
    sent = 0
    with gateway.connection() as connection, suppress(OSError):
        for byte in GET[:-1] * 50:
            connection.sendall(bytes([byte]))
            sent += 1
            time.sleep(0.05)
    assert sent < 1_000


def test_nor_between_two_requests_of_a_connection(monkeypatch, gateway):
    with gateway.connection() as connection:
        connection.sendall(GET)
        assert read_one(connection)[0] == 200
        monkeypatch.setattr(connections, "HEAD_S", 0.3)
        connection.sendall(GET[:10])
        assert read_all(connection) == b""


def test_a_request_that_takes_longer_is_answered(monkeypatch, gateway):
    monkeypatch.setattr(connections, "HEAD_S", 3.0)
    with gateway.connection() as connection:
        connection.sendall(b"POST /hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        assert gateway.seen.begun.acquire(timeout=60)
        time.sleep(3.5)
        gateway.seen.held.set()
        assert read_one(connection)[0] == 200


@pytest.mark.parametrize(("most", "files"), [(5, 2**20), (2_000, 10)])
def test_idle_connections_keep_no_others_away(monkeypatch, gateway, most, files):
    monkeypatch.setattr(connections, "HEAD_S", 300.0)
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", most)
    monkeypatch.setattr(connections, "getrlimit", lambda _kind: (files, files))
    idle = [gateway.connection() for _ in range(20)]
    assert [gateway.ask("GET", "/x").status_code for _ in range(3)] == [200] * 3
    for one in idle[:15]:  # those that have waited longest
        assert read_all(one) == b""
    for one in idle:
        one.close()


def test_connections_that_had_an_answer_keep_no_others_away(monkeypatch, gateway):
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", 5)
    idle = []
    for _ in range(8):
        idle.append(gateway.connection())
        idle[-1].sendall(GET)
        assert read_one(idle[-1])[0] == 200
    assert [gateway.ask("GET", "/x").status_code for _ in range(3)] == [200] * 3
    for one in idle:
        one.close()


def test_who_does_not_read_what_is_open_to_all_keeps_no_others_away(monkeypatch):
    """Of two requests that follow each other, the second waits until the first answer has been read."""
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", 3)
    token = a_token("alice", "look")
    with served(an_access(token)) as gateway:
        silent = []
        for _ in range(5):
            silent.append(gateway.connection())
            silent[-1].sendall(GET.replace(b"/x", b"/large") * 2)
            assert silent[-1].recv(1) == b"H"
        assert [gateway.ask("GET", "/x", bearer(token)).status_code for _ in range(3)] == [200] * 3
        for one in silent:
            one.close()


def test_who_does_not_read_a_whole_answer_is_not_waited_for(monkeypatch, gateway):
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.3)
    monkeypatch.setattr(connections, "LEAST_RATE", LARGE)
    with gateway.connection() as connection:
        connection.sendall(GET.replace(b"/x", b"/large"))
        time.sleep(3)
        assert len(read_all(connection)) < LARGE


@pytest.fixture
def with_tls(tmp_path):
    now, seen = datetime.now(UTC), Seen()
    tls = checked_tls(a_certificate(tmp_path, "gateway", now), now)
    with serving(Guard(application(seen), an_access(needs_token=False)), seen, tls) as gateway:
        yield gateway


@pytest.fixture
def trusting(tmp_path):
    return ssl.create_default_context(cafile=tmp_path / "gateway.crt")


def test_who_says_nothing_of_tls_keeps_no_others_away(monkeypatch, with_tls, trusting):
    """They need no token, and are no connections yet for uvicorn and for asyncio's servers."""
    monkeypatch.setattr(connections, "HEAD_S", 300.0)
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", 5)
    silent = [with_tls.connection() for _ in range(20)]
    with with_tls.connection() as plain, trusting.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(GET)
        assert read_one(connection)[0] == 200
    for one in silent[:15]:
        assert read_all(one) == b""
    for one in silent:
        one.close()


def test_an_answer_over_tls_may_be_read_slowly(monkeypatch, with_tls, trusting):
    """asyncio cuts what has not been read 30 s after the end of the answer."""
    monkeypatch.setattr("asyncio.constants.SSL_SHUTDOWN_TIMEOUT", 0.3)
    with with_tls.connection() as plain, trusting.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(GET.replace(b"/x", b"/large").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        time.sleep(2)
        assert len(read_all(connection)) > LARGE


def test_a_request_may_come_with_the_end_of_a_handshake(with_tls, trusting):
    read, written = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting.wrap_bio(read, written, server_hostname="127.0.0.1")
    with with_tls.connection() as connection:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(written.read())
                read.write(connection.recv(65_536))
        tls.write(GET)
        connection.sendall(written.read())
        answer = b""
        while not answer:
            read.write(connection.recv(65_536))
            with suppress(ssl.SSLWantReadError):
                answer = tls.read()
    assert answer.startswith(b"HTTP/1.1 200")


def test_who_says_nothing_of_tls_is_not_waited_for(monkeypatch, with_tls):
    """asyncio waits for a minute, and counts no connection until then."""
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    with with_tls.connection() as silent:
        silent.settimeout(30)
        assert read_all(silent) == b""


def test_requests_that_follow_each_other_on_one_connection_are_answered(gateway):
    with gateway.connection() as connection:
        connection.sendall(GET * 2 + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 200") == 3
