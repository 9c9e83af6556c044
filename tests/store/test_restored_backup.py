"""An earlier state of a warehouse, put back from a backup, is not read on as if nothing had happened (C49)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.errors import LogTruncatedError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import compact_without_spark
from support.store.builders import NOW_MS


def opened(folder: Path) -> Topic:
    FILE_CACHE.clear()
    clock = FakeClock(NOW_MS)
    return Lake(Warehouse(*open_store(str(folder), None, clock.new_id), clock)).topic("orders")


def put_back(folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("backup"), folder)
    FILE_CACHE.clear()


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """With five records, of which there is a backup, and five that came later."""
    clock, folder = FakeClock(NOW_MS), tmp_path / "w"
    topic = Lake(Warehouse(*open_store(str(folder), None, clock.new_id), clock)).create_topic("orders", 1)
    topic.append([Record(b"a", b"%d" % n) for n in range(5)])
    shutil.copytree(folder, tmp_path / "backup")
    topic.append([Record(b"a", b"%d" % n) for n in range(5, 10)])
    return topic


def test_a_follower_gets_an_error(topic: Topic, tmp_path: Path) -> None:
    """Before it waits for an offset that other records will have."""
    reader = topic.reader(0, follow=True)
    for offset in range(10):
        record = reader.read_next()
        assert record is not None and record.offset == offset
    put_back(tmp_path / "w")

    with pytest.raises(LogTruncatedError, match="an earlier state of the topic"):
        reader.read_next()


def test_a_cursor_from_after_a_round_is_distinguished_from_one_before(topic: Topic, tmp_path: Path) -> None:
    compact_without_spark(topic)
    reader = topic.reader(0)
    list(reader)
    put_back(tmp_path / "w")
    restored = opened(tmp_path / "w")
    restored.append([Record(b"b", b"%d" % n) for n in range(20)])

    with pytest.raises(LogTruncatedError, match=r"an earlier state of the topic, .* up to offset 10"):
        restored.reader(0, reader.cursor())
