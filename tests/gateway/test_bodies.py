"""Bodies that are too large, never end or come slowly, on raw connections."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from select import select

import pytest

from gateway.served import a_token, an_access, bearer, parsed, read_all, read_one, served
from lithify.gateway.access.middleware import Limits

ALICE = a_token("alice", "admin")
MOST = 100_000
"""What `kind_of` of the small application allows."""
HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def gateway():
    with served(an_access(needs_token=False, limits=Limits(body_grace_s=60.0))) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def nothing_asked(gateway):
    gateway.seen.asked.clear()


@pytest.fixture(scope="module")
def impatient():
    with served(an_access(needs_token=False, limits=Limits(body_grace_s=0.3))) as gateway:
        yield gateway


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def test_a_body_at_the_bound_is_read_and_one_byte_more_is_not(gateway):
    assert gateway.ask("POST", "/x", data=b"a" * MOST).json()["bytes"] == MOST
    refused = gateway.ask("POST", "/x", data=b"a" * (MOST + 1))
    assert (refused.status_code, refused.json()["code"]) == (413, "InvalidInput")
    assert "larger than 97.7 KiB" in refused.json()["detail"]
    assert len(gateway.seen.asked) == 1


def test_chunks_are_bounded_by_their_bytes(gateway):
    assert gateway.ask("POST", "/x", data=iter([b"a" * 1000] * 100)).json()["bytes"] == MOST
    refused = gateway.ask("POST", "/x", data=iter([b"a" * 1000] * 101))
    assert (refused.status_code, refused.headers["Content-Type"]) == (413, "application/problem+json")
    assert refused.headers["Connection"] == "close"


@pytest.mark.parametrize("length", ["9" * 18, "9" * 19, "9" * 5_000])
def test_a_huge_length_is_refused_before_anything_is_read(gateway, length):
    status, _ = gateway.head("POST /x HTTP/1.1", f"Content-Length: {length}", "Expect: 100-continue")
    assert (status, gateway.seen.asked) in ((413, []), (400, []))


def test_a_body_that_never_ends_is_refused_when_it_is_too_large(gateway):
    with gateway.connection() as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        ended = threading.Event()

        def send() -> None:
            with suppress(OSError):
                while not ended.is_set():
                    connection.sendall(chunk(b"a" * 10_000))

        sender = threading.Thread(target=send)
        sender.start()
        status, _ = parsed(read_all(connection))
        ended.set()
        connection.close()
        sender.join()
    assert (status, gateway.seen.asked) == (413, [])


def test_a_sender_of_one_byte_now_and_then_is_refused(impatient):
    with impatient.connection() as connection:
        connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        connection.setblocking(False)
        deadline = time.monotonic() + 60
        while not select([connection], [], [], 0.05)[0] and time.monotonic() < deadline:
            connection.sendall(b"a")
        connection.settimeout(60)
        status, problem = read_one(connection)
    assert (status, problem["code"]) == (408, "Busy")
    assert impatient.seen.asked == []


def test_a_sender_that_stops_is_refused(impatient):
    with impatient.connection() as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\naaa")
        assert parsed(read_all(connection))[0] == 408


def test_a_client_that_hangs_up_in_the_middle_reaches_no_application_and_harms_no_other(gateway):
    with gateway.connection() as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\naaa")
    assert gateway.ask("POST", "/x", data=b"abc").json()["bytes"] == 3
    assert gateway.seen.asked == ["POST /x"]


def test_a_request_hidden_in_a_body_is_not_read(gateway):
    """What follows a refused request on its connection is dropped with it."""
    hidden = b"POST /hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with gateway.connection() as connection:
        connection.sendall(HEAD + b"Origin: null\r\nContent-Length: 3\r\n\r\nabc" + hidden)
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1") == 1 and parsed(answer)[0] == 403
    assert gateway.seen.asked == []


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
    ],
)
def test_two_ways_to_say_where_a_body_ends_are_refused(gateway, headers):
    """Else a proxy before the gateway may see another request than the gateway."""
    hidden = b"POST /hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    answer = gateway.raw(HEAD + headers + b"\r\n0\r\n\r\n" + hidden)
    assert parsed(answer)[0] in (400, 501) and answer.count(b"HTTP/1.1 ") == 1
    assert gateway.seen.asked == []


def test_a_stranger_is_refused_before_the_body_is_read():
    with served(an_access(ALICE)) as gateway:
        assert gateway.head("POST /x HTTP/1.1", "Content-Length: 90000", "Expect: 100-continue")[0] == 401
        assert gateway.ask("POST", "/x", bearer(ALICE), b"a").status_code == 200
