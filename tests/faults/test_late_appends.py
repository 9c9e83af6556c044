"""Records that come between a round's plan and its commit, and that a tombstone beats which the round drops (C20, C44).

The round sees them when it is planned again. Where more of them come each time, it commits without dropping any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.log import LogState
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import LogReport
from lithify.service.look.status import topic_status
from lithify.service.proof.verify import verify
from lithify.service.read.fetch import table_batches
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.engines.phased import PhasedEngine
from support.engines.reading_inspector import ReadingInspector
from support.faults.topics import MAKERS, NAME
from support.topics.whole_logs import check_whole

CONFIGS: Mapping[str, dict[str, object]] = {
    "timestamp": {"compaction.strategy": "timestamp"},
    "header": {"compaction.strategy": "header", "compaction.strategy.header": "v"},
    "view": {"compaction.strategy": "timestamp", "compaction.mode": "side-by-side"},
}
RETENTIONS_MS = (1_000, 0)
TOMBSTONES = (b"a", b"aa")
LIVE = {b"b": b"1", b"c": b"1"}
Makes = Callable[[Path], Warehouse]

every_topic = pytest.mark.parametrize(
    ("make", "config"),
    [
        pytest.param(make, {**config, "delete.retention.ms": retention_ms}, id=f"{store}-{name}-{retention_ms}")
        for store, make in MAKERS.items()
        for name, config in CONFIGS.items()
        for retention_ms in RETENTIONS_MS
    ],
)


def add(warehouse: Warehouse, key: bytes, value: bytes | None, time_ms: int) -> None:
    """One record, whose timestamp and version are the same."""
    append(warehouse, NAME, [Record(key, value, time_ms, (("v", time_ms.to_bytes(8, "big")),), 0)])


def a_topic(make: Makes, folder: Path, config: dict[str, object]) -> Warehouse:
    """The next round drops the tombstones, which are of time 500: at once, or as they have expired."""
    warehouse = make(folder)
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of(config), 1, clock.now_ms()))
    for key in TOMBSTONES:
        add(warehouse, key, b"old", 100)
        add(warehouse, key, None, 500)
    add(warehouse, b"b", b"1", 400)
    clock.advance(5_000)
    if config["delete.retention.ms"]:
        round_(warehouse)
        clock.advance(5_000)
    add(warehouse, b"c", b"1", 600)
    return warehouse


def round_(warehouse: Warehouse, meanwhile: Callable[[int], object] = bool) -> tuple[LogReport, int]:
    """The report of a round, and how often it was tried; each time others do something before its commit."""
    tries: list[int] = []

    def happens() -> None:
        tries.append(len(tries))
        meanwhile(tries[-1])

    engine = PhasedEngine(OracleEngine(warehouse.files), {"commit": happens})
    (report,) = compact(warehouse, engine, NAME, RunRequest()).logs
    assert report.error is None
    check_whole(warehouse, NAME)
    return report, len(tries)


def table(warehouse: Warehouse) -> dict[bytes | None, bytes | None]:
    """The latest value of every live key (C10)."""
    batches = table_batches(warehouse, warehouse.store.load(NAME))
    return {record.key: record.value for batch in batches for record in batch.records()}


def log_of(warehouse: Warehouse) -> LogState:
    return warehouse.store.load(NAME).log(0)


def check_verified(warehouse: Warehouse) -> None:
    for version in warehouse.store.versions(NAME):
        found = verify(warehouse, ReadingInspector(warehouse.files), NAME, against=version.version)
        assert found.findings == ()


@every_topic
def test_a_late_record_does_not_come_back_for_a_round_that_has_not_seen_it(
    make: Makes, config: dict[str, object], tmp_path: Path
) -> None:
    """C20, C44: it is planned again, once."""
    warehouse = a_topic(make, tmp_path, config)

    def late(tries: int) -> None:
        if not tries:
            add(warehouse, b"a", b"late", 300)
            assert table(warehouse) == LIVE

    report, tries = round_(warehouse, late)
    assert (tries, report.losers.expired_tombstone, report.horizon) == (2, 2, log_of(warehouse).log_end_offset)
    assert table(warehouse) == LIVE
    assert log_of(warehouse).tombstones == 0
    assert round_(warehouse)[0].changed is False
    check_verified(warehouse)


@every_topic
def test_where_late_records_come_each_time_the_round_keeps_the_tombstones(
    make: Makes, config: dict[str, object], tmp_path: Path
) -> None:
    """C20, C44, C21: the third attempt keeps all tombstones, and the log stays due for them."""
    warehouse = a_topic(make, tmp_path, config)
    report, tries = round_(warehouse, lambda tries: add(warehouse, b"a", b"late", 200 + tries))
    assert (tries, report.changed, report.losers.expired_tombstone, report.tombstones_out) == (3, True, 0, 2)
    log = log_of(warehouse)
    assert (log.tombstones, log.dropped, log.held) == (2, (), None)
    assert (log.first_dirty_offset, log.log_end_offset) == (report.horizon, report.horizon + 1)
    assert table(warehouse) == LIVE
    (status,) = topic_status(warehouse, warehouse.store.load(NAME)).logs
    expiry_ms = status.next_tombstone_expiry_ms
    assert status.due and expiry_ms is not None and expiry_ms <= warehouse.clock.now_ms()
    report, tries = round_(warehouse)
    assert (tries, report.losers.expired_tombstone) == (1, 2)
    assert (log_of(warehouse).tombstones, table(warehouse)) == (0, LIVE)
    (status,) = topic_status(warehouse, warehouse.store.load(NAME)).logs
    assert (status.due, status.next_tombstone_expiry_ms) == (False, None)
    assert round_(warehouse)[0].changed is False
    check_verified(warehouse)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("name", CONFIGS)
def test_where_it_had_nothing_else_to_do_it_changes_nothing(make: Makes, name: str, tmp_path: Path) -> None:
    """C20, C41: here what comes meanwhile is too young for a round, and waits above the horizon."""
    young = {"min.compaction.lag.ms": 4_000, "min.compaction.lag.from": "commit"}
    warehouse = a_topic(make, tmp_path, {**CONFIGS[name], **young, "delete.retention.ms": 1_000})
    report, tries = round_(warehouse, lambda tries: add(warehouse, TOMBSTONES[tries], b"late", 200))
    assert (tries, report.changed, log_of(warehouse).tombstones) == (2, False, 2)  # the third had nothing to read
    (status,) = topic_status(warehouse, warehouse.store.load(NAME)).logs
    assert status.due
    report, tries = round_(warehouse)
    assert (tries, report.tombstones_held, report.losers.expired_tombstone) == (1, 2, 0)
    assert table(warehouse) == LIVE
    (status,) = topic_status(warehouse, warehouse.store.load(NAME)).logs
    assert not status.due


IN_ORDER = [("timestamp", b"a"), ("view", b"a"), ("timestamp", b"z"), ("view", b"z"), ("header", b"z")]
"""By kind of topic, the key of a record that no tombstone beats by what metadata says."""


@pytest.mark.parametrize("retention_ms", RETENTIONS_MS)
@pytest.mark.parametrize(("name", "key"), IN_ORDER)
def test_records_in_order_are_no_reason_to_plan_again(name: str, key: bytes, retention_ms: int, tmp_path: Path) -> None:
    """C44: a producer in order never delays a round."""
    warehouse = a_topic(MAKERS["memory"], tmp_path, {**CONFIGS[name], "delete.retention.ms": retention_ms})
    report, tries = round_(warehouse, lambda _: add(warehouse, key, b"new", 700))
    assert (tries, report.losers.expired_tombstone) == (1, 2)
    assert table(warehouse) == {**LIVE, key: b"new"}
