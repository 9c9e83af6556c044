"""A pulse that ends before its time keeps nobody waiting: it says why, and does not take the cluster for silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lithify.errors import BrokerError
from lithify.kafka import pulse
from lithify.kafka.pulse import Pulse, Retries
from lithify.service.snapshot.consumer_narration import KafkaNote
from lithify.testing.fake_clock import FakeClock
from lithify.waits.deadline import Deadline
from support.servers.tcp_proxy import wait_until


class AwayCluster:
    """Never answers."""

    servers = "localhost:9092"
    last_error = None

    def __init__(self, *_: object) -> None: ...

    @contextmanager
    def asking(self) -> Iterator[Any]:
        yield None

    def wait(self, *_: object) -> None:
        raise BrokerError("nobody answers")

    def refused(self) -> None: ...


def test_a_note_that_cannot_be_told_ends_the_run(monkeypatch):
    monkeypatch.setattr(pulse, "Cluster", AwayCluster)
    monkeypatch.setattr(pulse, "SLICE_S", 0.01)
    clock, patience = FakeClock(), Deadline(20)

    def tell(_note: KafkaNote) -> None:
        raise BrokenPipeError("nobody listens")

    def stops() -> bool:
        clock.advance(1000)
        patience.left_s()
        return False

    with Pulse({}, "orders", clock, tell) as beating:
        wait_until(lambda: beating.is_silent, "it asks nobody")
        with pytest.raises(BrokenPipeError, match="nobody listens"):
            Retries(beating, continuous=True, clock=clock, stops=stops).after(BrokerError("it is away"))
        assert not beating.is_silent
