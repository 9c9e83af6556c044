"""A Kafka broker that loses records: it is stopped, and finds its disk again as it was earlier."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from support.kafka.broker import KafkaBroker


@contextmanager
def stopped(broker: KafkaBroker) -> Iterator[None]:
    broker.stop()
    yield
    broker.start()


def remember_disk(broker: KafkaBroker) -> None:
    """Keeps all that the broker and its controller have."""
    with stopped(broker):
        shutil.copytree(broker.data, broker.folder / "kept")


def put_back_disk(broker: KafkaBroker) -> None:
    """Everything is as it was when it was remembered: the cluster counts the same leader epochs once more."""
    with stopped(broker):
        shutil.rmtree(broker.data)
        shutil.copytree(broker.folder / "kept", broker.data)
