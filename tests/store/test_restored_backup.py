"""An earlier state of a warehouse, put back from a backup, is not read on as if nothing had happened (C49)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.errors import LogTruncatedError
from lithify.model.cursor import Cursor
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
    for _ in range(100):
        clock.new_id()  # runs have ids of their own, also after a restoration
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


def read_on(topic: Topic, cursor: Cursor) -> list[int | None]:
    return [record.offset for record in topic.reader(0, cursor)]


@pytest.mark.parametrize("appends", [1, 4])
def test_a_log_that_has_grown_beyond_the_cursor_since_is_found_by_its_commits(
    topic: Topic, tmp_path: Path, appends: int
) -> None:
    """Without a round in between; a cursor from before the backup, or from a version before this, goes on."""
    reader = topic.reader(0)
    list(reader)
    put_back(tmp_path / "w")
    restored = opened(tmp_path / "w")
    before = restored.reader(0)
    list(before)
    for _ in range(appends):
        restored.append([Record(b"b", b"new")] * 8)

    with pytest.raises(LogTruncatedError, match=r"an earlier state of the topic, .* up to offset 10"):
        read_on(restored, reader.cursor())
    end = 5 + 8 * appends
    assert read_on(restored, before.cursor()) == list(range(5, end))
    assert read_on(restored, reader.cursor().without_run()) == list(range(10, end))


def test_a_follower_finds_another_version_of_the_number_that_it_has(topic: Topic, tmp_path: Path) -> None:
    reader = topic.reader(0, follow=True)
    assert [reader.read_next() is not None for _ in range(10)] == [True] * 10
    version = reader.cursor().version
    put_back(tmp_path / "w")
    restored = opened(tmp_path / "w")
    restored.append([Record(b"b", b"new")] * 8)
    again = restored.reader(0)
    assert again.cursor().version == version

    with pytest.raises(LogTruncatedError, match="an earlier state of the topic"):
        reader.read_next()


def test_a_follower_of_a_partition_that_is_no_more(topic: Topic, tmp_path: Path) -> None:
    lake = Lake(topic.warehouse)
    reader = lake.create_topic("clicks", 2).reader(1, follow=True)
    lake.delete_topic("clicks")
    lake.create_topic("clicks", 1)

    with pytest.raises(LogTruncatedError, match="no longer exists"):
        reader.has_message_available()


def test_a_cursor_is_taken_in_an_earlier_version_that_is_named(topic: Topic) -> None:
    earlier = topic.reader(0).cursor()
    compact_without_spark(topic)
    later = topic.reader(0).cursor()
    assert (earlier.version, later.version) == (3, 4)
    cursor = replace(later, offset=7, epoch=earlier.epoch)
    assert [record.offset for record in topic.reader(0, cursor, version=3)] == [7, 8, 9]
    assert [record.offset for record in topic.reader(start={0: cursor}, version=3)] == [7, 8, 9]


def test_a_position_of_a_group_is_a_cursor_too(topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C58: also after a `group reset`; its lag says the same."""
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", f"sqlite:///{tmp_path}/shared.db")
    with topic.reader(group="g") as reader:
        assert len(list(reader)) == 10
        reader.commit()
    shutil.rmtree(tmp_path / "backup")
    shutil.copytree(tmp_path / "w", tmp_path / "backup")
    topic.append([Record(b"a", b"10")])
    with topic.reader(group="g") as reader:
        assert [record.offset for record in reader] == [10]
        reader.commit()
    put_back(tmp_path / "w")
    lake = Lake(opened(tmp_path / "w").warehouse)
    restored = lake.topic("orders")
    restored.append([Record(b"b", b"new")] * 8)

    with pytest.raises(LogTruncatedError, match="an earlier state of the topic"), restored.reader(group="g") as reader:
        next(iter(reader))
    (lag,) = lake.group("g").describe()
    assert "an earlier state of the topic" in (lag.error or "")
    lake.group("g").reset("orders", to=10, partition=0)
    with restored.reader(group="g") as reader:
        assert [record.offset for record in reader] == list(range(10, 18))
