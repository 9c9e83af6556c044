"""Tables that are filled from the lake alone: that of the topic, continued, kept up to date, refused (C6, C9, C49)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lithify.api.lake import open_lake
from lithify.api.topic import Topic
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json
from lithify.errors import InvalidInputError, LogTruncatedError, RefusedError
from lithify.hydration import hydrate
from lithify.hydration.rows import Change, TableName
from lithify.hydration.sqlite_table import SqliteTable
from lithify.model.record import Record
from lithify.service.snapshot.consumer_narration import KafkaNote
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import compact_without_spark
from support.kafka.tables import expected_table, stored_table

LINES = partial(format_json, encodings=Encodings.of("utf-8"), topic="t")


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    lake = open_lake(str(tmp_path / "lake"))
    lake = replace(lake, warehouse=replace(lake.warehouse, clock=FakeClock(1_000)))
    return lake.create_topic("t", 2, config={"delete.retention.ms": 0})


def put(topic: Topic, first: int, count: int = 40) -> None:
    """Values and deletes of 13 keys in two partitions."""
    numbers = range(first, first + count)
    topic.append([Record(b"k%d" % (n % 13), None if n % 5 == 4 else b"%d" % n, 7, partition=n % 2) for n in numbers])


def wanted(topic: Topic) -> object:
    return expected_table(topic.reader())


@pytest.mark.parametrize("kind", ["db", "duckdb"])
def test_a_table_is_filled_and_continued(topic: Topic, tmp_path: Path, kind: str) -> None:
    to, notes = tmp_path / f"t.{kind}", list[KafkaNote]()
    put(topic, 0)
    compact_without_spark(topic)
    put(topic, 40)
    report = hydrate(topic, str(to), notes=notes.append)
    assert stored_table(to, "t") == wanted(topic)
    assert (report.resumed, report.caught_up, report.source) == (False, True, "t")
    assert report.records < 80, "some were compacted away"
    assert [log.lag for log in report.logs] == [0, 0]
    assert [note.text for note in notes] == [f"t → {to}: begins, lag 80 offsets"]

    put(topic, 80)
    topic.alter(partitions=3)
    topic.append([Record(b"new", b"1", 7, partition=2)])
    again = hydrate(topic, str(to))
    assert (again.resumed, again.records) == (True, 41)
    assert stored_table(to, "t") == wanted(topic)
    assert hydrate(topic, str(to)).records == 0


@pytest.mark.long
def test_it_is_kept_up_to_date_until_it_is_to_end(topic: Topic, tmp_path: Path) -> None:
    to, looks, events = tmp_path / "t.db", list[object](), list[str]()
    put(topic, 0)

    def stops() -> bool:
        if len(looks) < 4 and events[-1:] == ["waiting"]:
            events.pop()
            looks.append(stored_table(to, "t") == wanted(topic))
            put(topic, 40 * len(looks))
            topic.warehouse.clock.sleep(60)
        return len(looks) >= 4

    report = hydrate(topic, str(to), continuous=True, stops=stops, notes=lambda note: events.append(note.event))
    assert looks == [True] * 4
    assert report.caught_up


def test_a_file_of_lines_is_written_whole(topic: Topic, tmp_path: Path) -> None:
    to = tmp_path / "t.jsonl"
    put(topic, 0)
    assert hydrate(topic, str(to), lines=LINES).caught_up
    rows = [json.loads(line) for line in to.read_text().splitlines()]
    assert {(row["partition"], row["key"].encode()): row["value"].encode() for row in rows} == {
        place: value for place, (value, *_) in expected_table(topic.reader()).items()
    }
    assert not hydrate(topic, str(to), lines=LINES, stops=lambda: True).caught_up
    with pytest.raises(RefusedError, match="written once"):
        hydrate(topic, str(to), lines=LINES, continuous=True)


def test_a_table_that_has_missed_a_delete_is_left_as_it_was(topic: Topic, tmp_path: Path) -> None:
    """C49."""
    to = tmp_path / "t.db"
    put(topic, 0)
    hydrate(topic, str(to))
    before = stored_table(to, "t")
    put(topic, 40)
    for _ in range(2):
        compact_without_spark(topic)
        topic.warehouse.clock.sleep(1)
    with pytest.raises(LogTruncatedError, match="delete") as raised:
        hydrate(topic, str(to))
    assert raised.value.hint == f"drop the table t in {to} and hydrate the topic again"
    assert stored_table(to, "t") == before


def test_a_table_that_continues_in_kafka_is_not_continued_from_the_lake_alone(topic: Topic, tmp_path: Path) -> None:
    to = tmp_path / "t.db"
    table = SqliteTable(TableName(to, "t", "offset"))
    table.apply(Change([], [], {}, "", json.dumps({"format": 2, "lake": "default/t", "kafka": "t", "places": {}})))
    table.close()
    with pytest.raises(
        InvalidInputError,
        match="it was stored by a consumer that continues in Kafka, but this one continues in Lithify",
    ):
        hydrate(topic, str(to))


def test_the_catalog_of_a_warehouse_gets_no_tables(topic: Topic, tmp_path: Path) -> None:
    catalog = tmp_path / "lake" / "catalog.db"
    before = catalog.read_bytes()
    with pytest.raises(RefusedError, match="is a catalog of Iceberg tables"):
        hydrate(topic, str(catalog))
    assert catalog.read_bytes() == before


def test_lines_are_read_by_nobody_else_than_the_lines_before(topic: Topic, tmp_path: Path) -> None:
    to = tmp_path / "t.jsonl"
    to.touch(0o600)
    put(topic, 0)
    hydrate(topic, str(to), lines=LINES)
    assert to.stat().st_mode & 0o777 == 0o600


def test_a_topic_of_any_name_is_written_as_lines_into_a_file_of_any_name(topic: Topic, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    for name in ("lithify_positions", "sqlite_master"):
        other = lake.create_topic(name)
        other.append([Record(b"k", b"v")])
        to = tmp_path / ("n" * 250 + name[:5])
        assert hydrate(other, str(to), lines=partial(format_json, encodings=Encodings.of("utf-8"), topic=name)).records
        assert len(to.read_text().splitlines()) == 1
