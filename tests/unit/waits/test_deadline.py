"""Waits for other machines that end, whatever these do (C50)."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from threading import Event

import pytest

from lithify.waits import deadline
from lithify.waits.deadline import AnswerDeadline, hanging, within

BOUND_S = 10.0


@pytest.fixture(autouse=True)
def no_calls_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that ran in this process before may have abandoned calls that still hang."""
    monkeypatch.setattr(deadline, "_hanging", set())


@pytest.fixture
def go(no_calls_of_other_tests: None) -> Iterator[Event]:
    """Releases every call that hangs."""
    event = Event()
    yield event
    event.set()
    ends = time.monotonic() + BOUND_S
    while hanging():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_what_a_call_returns_or_raises_comes_out() -> None:
    assert within(BOUND_S, lambda: 7) == 7
    with pytest.raises(KeyError, match="a key"):
        within(BOUND_S, lambda: {}["a key"])
    assert hanging() == 0


def test_a_calls_own_timeout_is_its_own() -> None:
    def gives_up() -> None:
        raise TimeoutError("the server said so")

    with pytest.raises(TimeoutError, match="the server said so"):
        within(BOUND_S, gives_up)


def test_a_call_that_hangs_is_left_to_itself(go: Event) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no whole answer within 0\.1 s"):
        within(0.1, go.wait)
    assert time.monotonic() - begun < BOUND_S
    assert hanging() == 1


def test_so_many_hang_and_no_more(go: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "HANGING_AT_MOST", 3)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            within(0.01, go.wait)
    with pytest.raises(TimeoutError, match="3 requests are already waiting"):
        within(BOUND_S, lambda: 7)
    go.set()
    while hanging():
        time.sleep(0.01)
    assert within(BOUND_S, lambda: 7) == 7


def test_a_waiting_thread_can_be_interrupted(go: Event) -> None:
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)  # SIGINT is the test runner's
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            within(BOUND_S, go.wait)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - begun < BOUND_S / 2
    assert hanging() == 1


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_a_deadline_wakes_a_thread_that_waits_for_bytes(ends: tuple[socket.socket, socket.socket]) -> None:
    deadline = AnswerDeadline()
    deadline.begin(ends[0].fileno(), 0.1)
    assert ends[0].recv(1) == b""


def test_a_deadline_that_is_met_leaves_the_connection_alone(ends: tuple[socket.socket, socket.socket]) -> None:
    deadline = AnswerDeadline()
    for _ in range(3):
        deadline.begin(ends[0].fileno(), 0.05)
        deadline.begin(ends[0].fileno(), 0.05)  # counts already
        deadline.end()
    time.sleep(0.2)
    ends[1].send(b"x")
    assert ends[0].recv(1) == b"x"
