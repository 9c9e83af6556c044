"""Connections of Kafka's clients: answers in order, and an end of all that could last for ever."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event
from weakref import ref

import pytest

from lithify.kafka_server.connections import connection
from lithify.kafka_server.connections.answering import ClosingError
from lithify.kafka_server.connections.connection import Connections
from lithify.kafka_server.connections.serving import KafkaServing
from support.kafka.wire import WireClient
from support.servers.tcp_proxy import wait_until


@dataclass
class Known:
    is_known: bool = True
    token_id: str | None = None


class Held:
    """What a request was read into."""


@dataclass
class Words:
    """Answers a frame by what it says. `stopped` counts the waits that were ended."""

    session: Known = field(default_factory=Known)
    waits: int = 0
    stopped: Event = field(default_factory=Event)
    held: list[ref[Held]] = field(default_factory=list)

    def begin(self, client, local):
        return self.session

    async def answer(self, session, frame):
        match frame:
            case b"wait":
                held = Held()
                self.held.append(ref(held))
                try:
                    self.waits += 1
                    await asyncio.sleep(3600)
                finally:
                    self.stopped.set()
            case b"nothing":
                return None
            case b"defect":
                raise ZeroDivisionError("a defect")
            case b"end":
                raise ClosingError("it said so", [framed(b"bye")])
            case b"much":
                return [struct.pack(">i", 2**26), *(bytes(2**20) for _ in range(64))]
            case b"whole":
                return [struct.pack(">i", 2**26), bytes(2**26)]
        return [framed(frame)]


@dataclass
class Listener:
    words: Words
    address: tuple[str, int]
    closed: list[str]
    connections: list[Connections]

    def client(self) -> WireClient:
        return WireClient(self.address)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def no_limit(_connections):
    return ()


@contextmanager
def listening(words: Words, make_room=no_limit) -> Iterator[Listener]:
    taken = socket.create_server(("127.0.0.1", 0))
    closed: list[str] = []
    made: list[Connections] = []

    def begin() -> Connections:
        made.append(Connections(words, make_room, lambda _client, reason: closed.append(str(reason))))
        return made[0]

    serving = KafkaServing(taken, begin)
    serving.start()
    try:
        yield Listener(words, taken.getsockname()[:2], closed, made)
    finally:
        serving.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening(Words()) as one:
        yield one


def test_requests_that_come_at_once_are_answered_in_their_order(listener):
    with listener.client() as client:
        client.sock.sendall(b"".join(framed(b"%d" % n) for n in range(500)))
        assert [client.frame() for _ in range(500)] == [b"%d" % n for n in range(500)]


def test_a_request_that_comes_byte_by_byte_is_answered(listener):
    with listener.client() as client:
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(b"slow"):
            client.sock.sendall(bytes([byte]))
        assert client.frame() == b"slow"


def test_a_request_that_expects_no_answer_gets_none(listener):
    with listener.client() as client:
        client.sock.sendall(framed(b"nothing") + framed(b"next"))
        assert client.frame() == b"next"


@pytest.mark.parametrize("size", [2**31 - 1, 2**20 + 1, 0, -1])
def test_a_frame_of_a_wrong_size_closes_the_connection(listener, size):
    with listener.client() as client:
        client.sock.sendall(struct.pack(">i", size) + b"x")
        assert client.is_closed()
    assert [f"{size} bytes" in reason for reason in listener.closed] == [True]


def test_a_client_that_speaks_tls_to_a_plain_address_is_told_apart(listener):
    with listener.client() as client:
        client.sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        assert client.is_closed()
    assert listener.closed == ["it speaks TLS, and this address does not"]


def test_a_stranger_sends_small_frames_only(listener):
    listener.words.session.is_known = False
    with listener.client() as client:
        client.sock.sendall(struct.pack(">i", 2**16 + 1))
        assert client.is_closed()


def test_the_last_answer_comes_before_the_end(listener):
    with listener.client() as client:
        client.sock.sendall(framed(b"end") + framed(b"more"))
        assert client.frame() == b"bye"
        assert client.is_closed()
    assert listener.closed == ["it said so"]


def test_a_defect_closes_the_connection_and_is_told(listener):
    with listener.client() as client, listener.client() as other:
        client.sock.sendall(framed(b"defect"))
        assert client.is_closed()
        other.sock.sendall(framed(b"more"))
        assert other.frame() == b"more"
    (reason,) = listener.closed
    assert "ZeroDivisionError: a defect" in reason


def test_a_wait_ends_with_its_client(listener):
    with listener.client() as client:
        client.sock.sendall(framed(b"wait"))
        wait_until(lambda: listener.words.waits == 1, "the request is not taken", 10)
    assert listener.words.stopped.wait(10)
    wait_until(lambda: not listener.connections[0].all, "the connection is still counted", 10)


@pytest.mark.parametrize("sent", [b"", b"\0\0", framed(b"half of it")[:-3]])
def test_half_a_frame_is_not_waited_for_without_end(monkeypatch, sent):
    monkeypatch.setattr(connection, "FRAME_S", 0.1)
    with listening(Words()) as one, one.client() as client:
        client.sock.sendall(sent)
        assert client.is_closed()


def test_a_client_that_reads_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "UNREAD_S", 1)
    monkeypatch.setattr(connection, "LEAST_RATE", 2**30)
    with listening(Words()) as one, one.client() as client:
        client.sock.sendall(framed(b"much"))
        wait_until(lambda: one.connections and one.connections[0].all, "it does not connect", 10)
        wait_until(lambda: not one.connections[0].all, "it is still waited for", 20)


def test_answers_that_are_not_taken_are_bounded_together(monkeypatch):
    monkeypatch.setattr(connection, "UNSENT_BYTES", 100 * 2**20)
    with listening(Words()) as one, one.client() as slow, one.client() as quick:
        slow.sock.sendall(framed(b"much"))
        wait_until(lambda: one.connections and one.connections[0].unsent_bytes > 2**20, "it is not answered", 10)
        quick.sock.sendall(framed(b"much"))
        assert len(quick.frame()) == 2**26
        with pytest.raises(ConnectionError):
            slow.frame()
        wait_until(lambda: one.connections[0].unsent_bytes == 0, "what is taken is still counted", 10)


def test_answers_that_one_token_does_not_take_close_none_of_another(monkeypatch):
    monkeypatch.setattr(connection, "UNSENT_BYTES", 150 * 2**20)
    with ExitStack() as opened:
        one = opened.enter_context(listening(words := Words(Known(token_id="one"))))
        slow = opened.enter_context(one.client())
        slow.sock.sendall(framed(b"much"))
        wait_until(lambda: one.connections and one.connections[0].unsent_bytes > 2**20, "it is not answered", 10)
        words.session = Known(token_id="other")
        for _ in range(3):
            opened.enter_context(one.client()).sock.sendall(framed(b"much"))
        wait_until(lambda: len(one.closed) == 2, "none of the others is closed", 10)
        assert [reason.split(",")[1] for reason in one.closed] == [" and its was the oldest"] * 2
        assert len(slow.frame()) == 2**26


def test_an_answer_in_one_piece_counts_until_it_is_taken(listener):
    with listener.client() as client:
        client.sock.sendall(framed(b"whole"))
        wait_until(lambda: listener.connections and listener.connections[0].unsent_bytes == 2**26, "not counted", 10)
        assert len(client.frame()) == 2**26
        client.sock.sendall(framed(b"next"))
        assert client.frame() == b"next"
        wait_until(lambda: listener.connections[0].unsent_bytes == 0, "counted for ever", 10)


def test_a_stranger_gains_no_time_by_asking(monkeypatch):
    monkeypatch.setattr(connection, "FRAME_S", 0.5)
    with listening(Words(Known(is_known=False))) as one, one.client() as client, pytest.raises(ConnectionError):
        for _ in range(200):
            client.sock.sendall(framed(b"here"))
            assert client.frame() == b"here"
            time.sleep(0.05)


@pytest.mark.parametrize("is_known", [True, False])
def test_only_requests_of_known_clients_save_a_connection_from_being_closed_for_others(is_known):
    with listening(Words(Known(is_known))) as one, one.client() as client:
        wait_until(lambda: one.connections and one.connections[0].all, "it does not connect", 10)
        (connected,) = one.connections[0].all
        before = connected.strange_since_s
        client.sock.sendall(framed(b"here"))
        assert client.frame() == b"here"
        assert (connected.strange_since_s > before) is is_known


def test_a_client_that_reads_slowly_gets_all(listener):
    with listener.client() as client:
        client.sock.sendall(framed(b"much") + framed(b"next"))
        assert len(client.frame()) == 2**26
        assert client.frame() == b"next"


def test_more_connections_than_allowed_close_one():
    def at_most_two(connections):
        if len(connections) <= 2:
            return []
        oldest = min((one for one in connections if one.is_strange), key=lambda one: one.strange_since_s)
        oldest.give_up()
        return [oldest]

    with listening(Words(Known(is_known=False)), at_most_two) as one:
        first, second, third = (one.client() for _ in range(3))
        assert first.is_closed()
        assert one.closed == ["there were more than 2 connections, and it was idle"]
        for client in (second, third):
            client.sock.sendall(framed(b"here"))
            assert client.frame() == b"here"
            client.close()
        first.close()


def test_the_end_of_the_server_closes_all():
    with listening(Words()) as one:
        client = one.client()
        client.sock.sendall(framed(b"here"))
        assert client.frame() == b"here"
    assert client.is_closed()
    client.close()


def test_requests_that_take_too_much_memory_together_close_the_largest(monkeypatch):
    monkeypatch.setattr(connection, "HELD_BYTES", 50_000)
    with listening(Words()) as one, one.client() as large, one.client() as small:
        large.sock.sendall(struct.pack(">i", 100_000) + bytes(40_000))
        wait_until(lambda: one.connections and one.connections[0].held_bytes == 40_004, "it is not counted", 10)
        small.sock.sendall(struct.pack(">i", 100_000) + bytes(20_000))
        assert large.is_closed()
        assert one.connections[0].held_bytes == 20_004
        assert [reason.split(",")[1] for reason in one.closed] == [" and its was the largest"]
        small.sock.sendall(bytes(10_000))
        with one.client() as other:
            other.sock.sendall(framed(b"here") * 3)
            assert [other.frame() for _ in range(3)] == [b"here"] * 3
        small.close()
        wait_until(lambda: one.connections[0].held_bytes == 0, "counted for ever", 10)


@pytest.mark.parametrize("other", [Known(is_known=False), Known(token_id="other")])
def test_many_connections_with_little_each_close_no_client_with_a_large_request(monkeypatch, other):
    monkeypatch.setattr(connection, "HELD_BYTES", 100_000)
    with ExitStack() as opened:
        one = opened.enter_context(listening(words := Words(Known(token_id="one"))))
        client = opened.enter_context(one.client())
        client.sock.sendall(framed(b"here"))
        assert client.frame() == b"here"
        words.session = other
        others = [opened.enter_context(one.client()) for _ in range(8)]
        for stranger in others:
            stranger.sock.sendall(struct.pack(">i", 20_000) + bytes(10_000))
        wait_until(lambda: one.connections[0].held_bytes == 8 * 10_004, "it is not counted", 10)
        client.sock.sendall(framed(bytes(30_000)))
        assert client.frame() == bytes(30_000)
        assert 1 <= len(one.closed) < len(others)


def test_what_a_request_holds_goes_with_its_connection(listener):
    """At once: the next full garbage collection may be far away."""
    gc.disable()
    try:
        with listener.client() as client:
            client.sock.sendall(framed(b"wait"))
            wait_until(lambda: listener.words.waits == 1, "it does not wait", 10)
            assert listener.words.held[0]() is not None
        wait_until(lambda: listener.words.held[0]() is None, "it is held", 10)
    finally:
        gc.enable()


def test_a_request_counts_until_it_is_answered(listener):
    with listener.client() as client:
        client.sock.sendall(framed(b"wait"))
        wait_until(lambda: listener.words.waits == 1, "it does not wait", 10)
        assert listener.connections[0].held_bytes == 8
    wait_until(lambda: listener.connections[0].held_bytes == 0, "counted for ever", 10)
