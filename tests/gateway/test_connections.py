"""Connections on which no whole request comes."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from gateway.served import Seen, an_access, application, read_all, read_one, served, serving
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
    assert read_all(idle[0]) == b""  # the one that has waited longest
    for one in idle:
        one.close()


def test_who_says_nothing_of_tls_is_not_waited_for(monkeypatch, tmp_path):
    """asyncio waits for a minute, and counts no connection until then."""
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    now, seen = datetime.now(UTC), Seen()
    tls = checked_tls(a_certificate(tmp_path, "gateway", now), now)
    with (
        serving(Guard(application(seen), an_access(needs_token=False)), seen, tls) as gateway,
        gateway.connection() as silent,
    ):
        silent.settimeout(30)
        assert read_all(silent) == b""


def test_requests_that_follow_each_other_on_one_connection_are_answered(gateway):
    with gateway.connection() as connection:
        connection.sendall(GET * 2 + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 200") == 3
