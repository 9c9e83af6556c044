"""Every port call of a resync fails in turn: the copy is as before or right, and says so while it is not (C6, C71)."""

from __future__ import annotations

from contextlib import suppress

import pytest

from lithify.errors import LithifyError
from lithify.model.names import TopicName
from lithify.model.sources.source import IngestRequest
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestReport
from lithify.service.change.cut import truncate
from lithify.service.ingest.ingest import ingest
from lithify.service.read.fetch import open_log, table_batches
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import CrashError, Kind, faulty
from support.faults.struck import strikes
from support.topics.cleaned_source import CleanedLog, CleanedSource
from support.topics.memory_topic import a_warehouse
from support.topics.whole_logs import check_whole

RETENTION_MS = 100_000
NAME = TopicName("default", "orders")


def ingested(warehouse: Warehouse, log: CleanedLog, *, resyncs: bool) -> IngestReport:
    ports = [getattr(port, "_real", port) for port in (warehouse.store, warehouse.files)]
    source = CleanedSource(Warehouse(*ports, warehouse.clock), log)
    request = IngestRequest({}, ("orders",), resyncs=resyncs)
    (report,) = ingest(warehouse, source, request, lambda _batch: None, lambda: False)
    return report


def behind() -> tuple[Warehouse, CleanedLog]:
    """A copy that has missed the delete of `k1`, and of `k2`, which was put again."""
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    for key in (b"k1", b"k2", b"k3"):
        log.append(key, b"v")
    assert ingested(warehouse, log, resyncs=False).error is None
    log.append(b"k1", None)
    log.append(b"k2", None)
    log.append(b"k2", b"again")
    log.clean(log.end, clock.now_ms())
    clock.advance(RETENTION_MS)
    log.clean(log.end, clock.now_ms())
    return warehouse, log


def a_resync() -> None:
    assert ingested(*behind(), resyncs=True).error is None


def table(warehouse: Warehouse) -> dict[bytes, bytes]:
    state = warehouse.store.load(NAME)
    return {r.key: r.value for batch in table_batches(warehouse, state) for r in batch.records()}  # type: ignore[misc]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_a_struck_resync_is_done_whole_and_once_or_not_at_all(kind: Kind) -> None:
    warehouse, log = behind()
    before = table(warehouse)
    assert ingested(warehouse, log, resyncs=True).error is None
    assert table(warehouse) == log.table != before
    done = list(open_log(warehouse, warehouse.store.load(NAME), 0))
    for injector in strikes(kind):
        warehouse, log = behind()
        with suppress(LithifyError, CrashError):
            ingested(faulty(warehouse, injector), log, resyncs=True)
        assert table(warehouse) in (before, log.table), injector
        check_whole(warehouse, NAME)
        log.append(b"k4", b"v")
        if ingested(warehouse, log, resyncs=False).error is None:
            assert table(warehouse) == log.table, injector
        assert ingested(warehouse, log, resyncs=True).error is None, injector
        assert table(warehouse) == log.table
        assert list(open_log(warehouse, warehouse.store.load(NAME), 0))[: len(done)] == done


def test_a_resync_that_was_cut_off_is_not_taken_for_one() -> None:
    """A truncation takes its deletes away, at whichever offset: the next ingest says so, or the copy is right."""
    told = 0
    for end in range(behind()[1].end + 1):
        warehouse, log = behind()
        assert ingested(warehouse, log, resyncs=True).error is None
        truncate(warehouse, NAME, 0, end)
        if ingested(warehouse, log, resyncs=False).error is None:
            assert table(warehouse) == log.table, end
        else:
            told += 1
        assert ingested(warehouse, log, resyncs=True).error is None
        assert table(warehouse) == log.table, end
    assert told
