"""A lake on disk with a topic of four partitions, and readers that are members of its groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import lithify
from lithify import Lake, Record, Topic
from lithify.api.groups import Membership
from lithify.coordination.groups.group_reader import GroupReader

LEASE_MS = 3_000
PATIENCE_S = 120.0
"""For what happens within seconds on a machine that is not busy."""
PARTITIONS = 4

Join = Callable[..., GroupReader]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lithify.open(str(tmp_path / "lake"))


@pytest.fixture
def topic(lake: Lake) -> Topic:
    made = lake.create_topic("orders", partitions=PARTITIONS)
    put(made, range(100))
    return made


@pytest.fixture
def join(topic: Topic) -> Iterator[Join]:
    """Opens a reader that follows as a member of the group `g`; the test's end closes it."""
    with ExitStack() as stack:

        def joined(lease_ms: int = LEASE_MS, **how: object) -> GroupReader:
            group = Membership("g", lease_ms)
            return stack.enter_context(topic.reader(group=group, **{"follow": True, **how}))  # type: ignore[arg-type]

        yield joined


def put(topic: Topic, numbers: range) -> None:
    """Appends records with these numbers as values, in turns to all partitions."""
    topic.append([Record(b"k%d" % n, b"%d" % n, partition=n % PARTITIONS) for n in numbers])


def pulled(reader: GroupReader) -> list[int]:
    """The numbers of the records that can be read now, without waiting for more."""
    return [int(record.value or b"") for batch in reader.poll() for record in batch.records()]


def wait_until(happens: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < until_s
        time.sleep(0.05)
