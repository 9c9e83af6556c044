"""A Kafka broker that loses records: it is stopped, and finds logs again as they were earlier."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.kafka.broker import KafkaBroker

CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
"""What the broker keeps beside its logs about how far they go."""


@contextmanager
def stopped(broker: KafkaBroker) -> Iterator[None]:
    broker.stop()
    yield
    broker.start()


def remember(broker: KafkaBroker, topics: Sequence[str]) -> None:
    """Keeps partition 0 of each as it is."""
    with stopped(broker):
        for topic in topics:
            shutil.copytree(broker.data / f"{topic}-0", _kept(broker, topic))


def put_back(broker: KafkaBroker, topics: Sequence[str]) -> None:
    """Partition 0 of each is as it was when it was remembered."""
    with stopped(broker):
        for topic in topics:
            shutil.rmtree(broker.data / f"{topic}-0")
            shutil.copytree(_kept(broker, topic), broker.data / f"{topic}-0")
        for name in CHECKPOINTS:
            (broker.data / name).unlink(missing_ok=True)


def _kept(broker: KafkaBroker, topic: str) -> Path:
    return broker.folder / f"kept-{topic}"
