"""Logs of stored topics as clients of Kafka read them: files of several row groups, masks, rounds, sweeps, damage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lithify.columnar.files.access import local_path
from lithify.columnar.segment import writer
from lithify.errors import DamagedError, VersionSweptError
from lithify.kafka_server.logs import parts
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.served_topics import LOOK_MS, ServedTopics
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.creation import create_warehouse
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from support.builders import some_settings
from support.engines.kernel import KernelEngine
from support.kafka.served_batches import Row, read_on, row_of
from support.store.builders import NOW_MS, ORDERS, an_iceberg_place

DAY_MS = 86_400_000


@dataclass
class Lake:
    """A topic with a log in files, and what clients see of it."""

    warehouse: Warehouse
    clock: FakeClock
    served: ServedTopics

    def append(self, first: int, end: int, value: bytes = b"v" * 100) -> None:
        records = [
            Record(b"%d" % n, value if n % 11 else None, NOW_MS + n, (("h", None), ("", b"x")) if n % 5 == 0 else ())
            for n in range(first, end)
        ]
        append(self.warehouse, ORDERS, records)

    def compact(self) -> None:
        assert compact(self.warehouse, KernelEngine(), ORDERS, RunRequest()).failed == ()

    @property
    def state(self) -> TopicState:
        return self.warehouse.store.load(ORDERS)

    def log(self) -> ServedLog:
        self.clock.advance(LOOK_MS)
        topic = self.served.topic("orders")
        assert topic is not None
        return topic.log(0)

    def rows(self, offset: int | str = "earliest") -> list[Row]:
        """What a reader reads."""
        return [row_of(record) for record in open_log(self.warehouse, self.state, 0, offset)]  # type: ignore[arg-type]

    def check(self) -> None:
        """From the start in all sizes of responses, and from every seventh offset."""
        log, rows = self.log(), self.rows()
        for size in (1, 1_000, 2**20):
            assert read_on(log, log.start, size) == rows
        for offset in range(log.start, log.end, 7):
            assert read_on(log, offset, 3_000) == [row for row in rows if row[0] >= offset]
        for number in (0, 13, 57, 1_000):
            at = log.offset_at(NOW_MS + number)
            assert at == next((row[:2] for row in rows if row[1] >= NOW_MS + number), None)
        assert log.max_time() == max((row[:2] for row in rows), key=lambda at: (at[1], -at[0]), default=None)


@pytest.fixture(params=["in-place", "side-by-side"])
def lake(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 32)
    monkeypatch.setattr(parts, "PART_BYTES", 1_500)
    clock = FakeClock(NOW_MS)
    place = an_iceberg_place(tmp_path / "warehouse", clock)
    create_warehouse(place.store)
    settings = some_settings(compaction_mode=request.param, delete_retention_ms=0, segment_bytes=6_000)
    place.store.create_topic(NewTopic(ORDERS, "orders", settings, 1, NOW_MS))
    warehouse = Warehouse(place.store, place.files, clock)
    served = ServedTopics(warehouse)
    yield Lake(warehouse, clock, served)
    served.close()


def test_what_is_appended_compacted_cut_and_undone(lake: Lake) -> None:
    lake.append(0, 150)
    lake.check()
    lake.append(5, 15)
    lake.compact()
    masked = [s for s in lake.warehouse.store.segments(lake.state) if s.mask is not None]
    assert bool(masked) == (not lake.state.settings.side_by_side)
    lake.check()
    lake.append(40, 160)
    lake.compact()
    lake.check()
    undo(lake.warehouse, ORDERS)
    lake.check()
    delete_records(lake.warehouse, ORDERS, 0, 20)
    lake.check()
    truncate(lake.warehouse, ORDERS, 0, 100, below_compacted=True)
    lake.append(300, 310)
    lake.check()
    assert {(log := lake.log()).leader_epoch, log.epoch_end(0)} == {1, (0, 100)}


def test_a_round_in_the_middle_of_reading(lake: Lake) -> None:
    lake.append(0, 150)
    first = read_on(lake.log(), 0)[:50]
    lake.append(30, 90)
    lake.compact()
    assert read_on(lake.log(), 50, 2_000) == [row for row in lake.rows() if row[0] >= 50]
    assert [row[0] for row in first] == [*range(50)]


def test_a_version_that_is_swept_while_it_is_read(lake: Lake) -> None:
    lake.append(0, 64)
    before = lake.log()
    assert before.batches(0, 1)
    lake.append(0, 64)
    lake.compact()
    lake.clock.advance(3 * DAY_MS)
    expire_versions(lake.warehouse, ORDERS)
    sweep(lake.warehouse, ORDERS, delete=True, allow_unusual=True)
    assert before.batches(0, 1), "it is in memory"
    if lake.state.settings.side_by_side:
        assert len(read_on(before, 0)) == 64, "a backlog remains"
    else:
        with pytest.raises(VersionSweptError, match="is being read, was replaced"):
            read_on(before, 50)
    lake.check()


def test_a_damaged_file_is_told(lake: Lake) -> None:
    lake.append(0, 64)
    lake.append(64, 128)
    (_, second) = lake.warehouse.store.segments(lake.state)
    path = Path(local_path(second.path) or "")
    content = bytearray(path.read_bytes())
    for at in range(4, len(content) // 2, 50):
        content[at] ^= 0xFF
    path.write_bytes(content)
    log = lake.log()
    assert log.batches(0, 1)
    for _ in range(2):
        with pytest.raises(DamagedError, match=second.path):
            read_on(log, 64)
