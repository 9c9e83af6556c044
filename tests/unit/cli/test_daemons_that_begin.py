"""A signal before a daemon has begun ends it in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from lithify.cleaner.stop import Stop
from lithify.cli.cleaner.run import begun

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Idle:
    """A daemon that does nothing."""

    def __init__(self) -> None:
        self.stop = Stop()

    def run(self, *, once: bool) -> bool:
        return once


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_it_begins_is_told_and_one_after_it_stops_the_daemon(number: signal.Signals) -> None:
    told: list[str] = []

    def interrupted() -> Idle:
        os.kill(os.getpid(), number)
        raise AssertionError("it has gone on")

    assert begun(interrupted, told.append) is None
    assert told == [number.name]
    daemon = begun(Idle, told.append)
    assert daemon is not None
    os.kill(os.getpid(), number)
    assert daemon.stop.asked.wait(10)
    assert (daemon.stop.reason, told) == (number.name, [number.name])
