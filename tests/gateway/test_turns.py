"""So many requests at once, so many that wait, and the rest refused."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

import pytest

from gateway.served import a_token, an_access, bearer, served
from lithify.gateway.access.middleware import Limits
from lithify.gateway.access.turns import TurnLimits
from lithify.model.access.tokens import Token

LIMITS = Limits(requests=TurnLimits(2, 1, 300.0), streams=TurnLimits(1, 0, 30.0))


@pytest.fixture
def gateway():
    with served(replace(an_access(needs_token=False), limits=LIMITS)) as gateway:
        yield gateway


def test_more_than_run_and_wait_are_refused_and_those_that_wait_get_their_turn(gateway):
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(gateway.ask, "POST", "/hold") for _ in range(6)]
        done = as_completed(asked)
        refused = [next(done).result() for _ in range(3)]  # two run and one waits, until the test lets them end
        assert gateway.ask("GET", "/healthz").status_code == 200  # never waits
        gateway.seen.held.set()
        assert [one.result().status_code for one in done] == [200] * 3
    assert {(one.status_code, one.json()["code"]) for one in refused} == {(503, "Busy")}
    assert int(refused[0].headers["Retry-After"]) >= 1
    assert gateway.ask("GET", "/x").status_code == 200


def test_a_wait_ends():
    limits = Limits(requests=TurnLimits(1, 5, 0.05))
    with served(replace(an_access(needs_token=False), limits=limits)) as gateway, ThreadPoolExecutor(1) as pool:
        held = pool.submit(gateway.ask, "POST", "/hold")
        assert gateway.seen.begun.acquire(timeout=30)
        late = gateway.ask("GET", "/x")
        assert late.status_code == 503 and "waited for 0.05 s" in late.json()["detail"]
        gateway.seen.held.set()
        assert held.result().status_code == 200


def test_streams_have_turns_of_their_own_which_a_reader_that_leaves_gives_back(gateway):
    first = gateway.connection()
    first.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert first.recv(100).startswith(b"HTTP/1.1 200")
    assert gateway.ask("GET", "/events").status_code == 503
    assert gateway.ask("GET", "/x").status_code == 200
    first.close()
    left = threading.Event()
    for _ in range(300):
        second = gateway.connection()
        second.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if second.recv(100).startswith(b"HTTP/1.1 200"):
            left.set()
        second.close()
        if left.wait(0.1):
            break
    assert left.is_set()


def test_a_request_that_fails_gives_its_turn_back(gateway):
    assert [gateway.ask("POST", "/fail").status_code for _ in range(5)] == [500] * 5
    assert gateway.ask("GET", "/x").status_code == 200


def test_requests_that_ask_for_events_take_turns_of_streams(gateway):
    """Those that follow their job would keep all others waiting, for as long as it runs."""
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(gateway.ask, "POST", "/hold", {"Accept": "text/event-stream"})
        assert gateway.seen.begun.acquire(timeout=30)
        assert gateway.ask("GET", "/events").status_code == 503
        gateway.seen.held.set()
        assert held.result().status_code == 200


def test_one_token_leaves_turns_to_others():
    greedy, other = a_token("greedy", "look"), a_token("other", "look", token_id="00000000000000bb")
    limits = Limits(streams=TurnLimits(4, 0, 30.0))
    held = b"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n"
    with served(replace(an_access(greedy, other), limits=limits)) as gateway:

        def follow(token: Token) -> bytes:
            following.append(gateway.connection())
            following[-1].sendall(held % bearer(token)["Authorization"].encode())
            return following[-1].recv(12)

        following: list[socket.socket] = []
        assert [follow(greedy)[-3:] for _ in range(4)] == [b"200", b"200", b"200", b"503"]
        assert "3 streams of this token" in gateway.ask("GET", "/events", bearer(greedy)).json()["detail"]
        assert follow(other)[-3:] == b"200"
        for one in following:
            one.close()


def test_those_of_one_token_that_wait_keep_no_others_waiting():
    greedy, other = a_token("greedy", "look"), a_token("other", "look", token_id="00000000000000bb")
    limits = Limits(requests=TurnLimits(4, 8, 60.0))
    with served(replace(an_access(greedy, other), limits=limits)) as gateway, ThreadPoolExecutor(9) as pool:
        held = [pool.submit(gateway.ask, "POST", "/hold", bearer(greedy)) for _ in range(9)]
        assert all(gateway.seen.begun.acquire(timeout=30) for _ in range(3))
        assert gateway.ask("GET", "/x", bearer(other)).status_code == 200
        gateway.seen.held.set()
        assert [one.result().status_code for one in held] == [200] * 9
