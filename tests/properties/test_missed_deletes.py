"""A copy of a compacted topic has its live keys, or its ingest says that deletes may be missing (C71).

Against a model of Kafka's cleaner: appends, rounds and time come between any two records that an ingest reads, and
ingests are days apart, or seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lithify.errors import BrokerError
from lithify.model.names import LogId, TopicName
from lithify.model.record import Record
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.model.sources.source import IngestRequest
from lithify.model.topic.edit import TopicEdit
from lithify.ports.source import OnBatch
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestReport
from lithify.rules.lifecycle.copies.missed_deletes import ENDS_KEPT, begun, learned, lost_error, missed_deletes
from lithify.service.commit import commit
from lithify.service.documents import source_ends_of
from lithify.service.ingest.ingest import ingest
from lithify.service.read.fetch import open_log, table_batches
from support.topics.cleaned_source import CleanedLog, CleanedSource
from support.topics.listed_source import ListedStream
from support.topics.memory_topic import a_warehouse

RETENTION_MS = 100_000
NAME = TopicName("default", "orders")
Event = tuple[str, int]
EVENTS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.integers(0, 3)),
    st.tuples(st.just("clean"), st.integers(0, 3)),
    st.tuples(st.just("lose"), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.sampled_from([1_000, 20_000, 50_000, 95_000, 120_000])),
)
DURING = st.lists(st.lists(EVENTS, max_size=2), max_size=20)
INGESTS = st.lists(st.tuples(st.lists(EVENTS, max_size=8), DURING), min_size=1, max_size=5)


def happen(events: Iterable[Event], log: CleanedLog, warehouse: Warehouse) -> None:
    for what, number in events:
        match what:
            case "lose":  # a delete that comes and goes
                log.append(b"%d" % number, None)
                log.clean(log.end, warehouse.clock.now_ms())
                warehouse.clock.advance(RETENTION_MS)  # type: ignore[attr-defined]
                log.clean(log.end, warehouse.clock.now_ms())
            case "put":
                log.append(b"%d" % number, b"v%d" % log.end)
            case "delete":
                log.append(b"%d" % number, None)
            case "clean":
                log.clean(max(0, log.end - number), warehouse.clock.now_ms())
            case _:
                warehouse.clock.advance(number)  # type: ignore[attr-defined]


def ingested(source: CleanedSource, **how: object) -> IngestReport:
    request = IngestRequest({}, ("orders",), **how)  # type: ignore[arg-type]
    (report,) = ingest(source.warehouse, source, request, lambda _batch: None, lambda: False)
    return report


def table(warehouse: Warehouse) -> dict[bytes, bytes]:
    state = warehouse.store.load(NAME)
    return {r.key: r.value for batch in table_batches(warehouse, state) for r in batch.records()}  # type: ignore[misc]


@pytest.mark.parametrize("limit", [2, 2**31])
@given(ingests=INGESTS)
def test_a_copy_is_as_its_source_or_says_that_it_may_not_be(limit: int, ingests: Sequence[tuple]) -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    for before, during in ingests:
        happen(before, log, warehouse)
        events = iter(during)
        source = CleanedSource(warehouse, log, lambda events=events: happen(next(events, ()), log, warehouse), limit)
        report = ingested(source)
        if report.error is None:
            source = CleanedSource(warehouse, log, limit=limit)
            report = ingested(source)
        if report.error is not None:
            assert "deletes from offset" in report.error
            if not resynced(warehouse, log, events):
                return
        assert table(warehouse) == log.table


def resynced(warehouse: Warehouse, log: CleanedLog, events: Iterator[list[Event]]) -> bool:
    """Whether the copy is whole after a resync, during which more happens, and one in peace if it was too slow."""
    busy = CleanedSource(warehouse, log, lambda: happen(next(events, ()), log, warehouse))
    before = warehouse.store.load(NAME)
    report = ingested(busy, resyncs=True)
    if report.error is not None:
        if "free for their deletes" not in report.error:
            assert "deletes from offset" in report.error
            assert "set a longer delete.retention.ms" in report.error and "resync" not in report.error
        report = ingested(CleanedSource(warehouse, log), resyncs=True)
        if report.error is not None and "free for their deletes" in report.error:
            event("no room")
            return False
    assert report.error is None
    event("resynced")
    assert warehouse.store.load(NAME).version >= before.version
    again = ingested(CleanedSource(warehouse, log), resyncs=True)
    assert (again.error, again.deleted_keys) == (None, 0)
    return True


MOMENTS = 40
"""More than an ingest of a few records has, between its calls of the source and the records that it reads."""


@dataclass(slots=True)
class Moments:
    """Of an ingest: at first so much time passes that it looks again, and in one of them a delete comes and goes."""

    chosen: int
    log: CleanedLog
    warehouse: Warehouse
    passed: int = 0
    lost_at: int = -1

    def __call__(self) -> None:
        if self.passed == self.chosen:
            self.lost_at = self.log.end
            happen([("lose", 2)], self.log, self.warehouse)
        elif self.passed < 8:
            happen([("wait", RETENTION_MS // 20)], self.log, self.warehouse)
        self.passed += 1


@pytest.mark.parametrize("how", [{}, {"resyncs": True}, {"accepts_loss": True}])
@pytest.mark.parametrize("new", [(), (("put", 2),)])
@pytest.mark.parametrize("outage_ms", [0, RETENTION_MS])
def test_a_delete_that_comes_and_goes_at_any_moment_is_not_passed_over(
    how: dict[str, bool], new: Sequence[Event], outage_ms: int
) -> None:
    """Whatever takes long: where the source's end is stored with a time, it was not asked before it."""
    for chosen in range(MOMENTS):
        warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
        happen([("put", 0), ("put", 1), ("put", 2)], log, warehouse)
        assert ingested(CleanedSource(warehouse, log)).error is None
        happen(new, log, warehouse)
        moments = Moments(chosen, log, warehouse)
        reports = [ingested(CleanedSource(warehouse, log, moments), **how)]
        assert moments.passed < MOMENTS
        happen([("wait", outage_ms)], log, warehouse)
        if reports[0].error is None:
            reports.append(ingested(CleanedSource(warehouse, log)))
        told = [m for report in reports for m in report.missed_deletes]
        if reports[-1].error is None and not any(m.start_offset <= moments.lost_at < m.end_offset for m in told):
            assert table(warehouse) == log.table, f"moment {chosen}"


def test_a_delete_that_was_cleaned_away_during_an_outage_is_not_passed_over() -> None:
    """What the issue saw: continued at 2, lag 0, and `k1` for ever."""
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.append(b"k1", b"v")
    log.append(b"k2", b"v")
    assert ingested(source).error is None
    log.append(b"k1", None)
    log.clean(log.end, warehouse.clock.now_ms())
    warehouse.clock.advance(RETENTION_MS + 1)  # type: ignore[attr-defined]
    log.clean(log.end, warehouse.clock.now_ms())
    assert not [r for r in log.kept if r.key == b"k1"]

    report = ingested(source)
    assert report.error is not None and "deletes from offset 2 on may be missing" in report.error
    assert report.error_code == "SourceLost"
    assert ingested(source).error == report.error  # as long as nothing is done about it

    report = ingested(source, accepts_loss=True)
    assert report.error is None
    assert [(m.partition, m.start_offset, m.end_offset) for m in report.missed_deletes] == [(0, 2, 3)]
    log.append(b"k3", b"v")
    assert ingested(source).error is None
    assert table(warehouse) == {**log.table, b"k1": b"v"}


def test_a_resync_deletes_what_its_source_no_longer_has() -> None:
    """At offsets that Kafka gives to no other record; a key that comes back stays, and it is done once."""
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    for key in (b"k1", b"k2", b"k3"):
        log.append(key, b"v")
    ingested(source)
    happen([("lose", 0)], log, warehouse)
    for key in (b"k1", b"k3"):
        log.append(key, None)
    log.append(b"k3", b"again")
    log.clean(log.end, warehouse.clock.now_ms())
    warehouse.clock.advance(RETENTION_MS)  # type: ignore[attr-defined]
    log.clean(log.end, warehouse.clock.now_ms())
    assert ingested(source).error is not None

    report = ingested(source, resyncs=True)
    assert (report.error, report.deleted_keys, report.missed_deletes) == (None, 1, ())
    assert table(warehouse) == log.table == {b"k2": b"v", b"k3": b"again"}
    state = warehouse.store.load(NAME)
    offsets = {record.offset: record.key for record in open_log(warehouse, state, 0)}
    assert offsets == {0: b"k1", 1: b"k2", 2: b"k3", 3: b"k1", 6: b"k3"}
    assert state.log(0).log_end_offset == log.end
    report = ingested(source, resyncs=True)
    assert (report.error, report.deleted_keys, report.batches) == (None, 0, 1)
    assert warehouse.store.load(NAME).version == state.version


@dataclass(slots=True)
class Expires:
    """In one of the moments of an ingest records go, and nobody has deleted their keys."""

    chosen: int
    log: CleanedLog
    below: int
    passed: int = 0

    def __call__(self) -> None:
        if self.passed == self.chosen:
            self.log.expire(self.below)
        self.passed += 1


@pytest.mark.parametrize("below", [1, 3, 9])
def test_keys_whose_records_expire_at_any_moment_of_a_resync_stay(below: int) -> None:
    """Also of one that continues behind records that were not copied. Moment -1 is before it."""
    done = 0
    for chosen in range(-1, MOMENTS):
        warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
        happen([("put", 0), ("put", 1), ("put", 2)], log, warehouse)
        assert ingested(CleanedSource(warehouse, log)).error is None
        before = table(warehouse)
        happen([*[("put", 3)] * 5, ("lose", 2)], log, warehouse)  # what is cleaned leaves room for deletes
        expires = Expires(chosen, log, below)
        if chosen < 0:
            log.expire(below)
        report = ingested(CleanedSource(warehouse, log, expires), resyncs=True, accepts_loss=True)
        assert expires.passed < MOMENTS
        if report.error is None:
            assert table(warehouse) == log.table, f"moment {chosen}"
            done += 1
        else:
            assert f"begins at offset {below}, but the copy has records from offset 0 on" in report.error
            assert (report.error_code, table(warehouse)) == ("Policy", before)
    assert 0 < done < MOMENTS


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete,compact", "", None])
def test_a_resync_of_a_source_that_may_lose_records_of_live_keys_is_refused(policy: str | None) -> None:
    """A copy without records has nothing to lose."""
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS, policy=policy)
    source = CleanedSource(warehouse, log)
    assert ingested(source, resyncs=True).error is None
    happen([("put", 0)], log, warehouse)
    assert ingested(source).error is None
    happen([("lose", 0)], log, warehouse)
    report = ingested(source, resyncs=True)
    assert report.error_code == "Policy" and "cleanup.policy" in str(report.error)
    assert table(warehouse) == {b"0": b"v0"}


def test_a_copy_that_began_above_a_moved_log_start_is_resynced() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    happen([("put", 0), ("put", 1), ("put", 2)], log, warehouse)
    log.expire(2)
    assert ingested(source).error is None
    happen([("lose", 2)], log, warehouse)
    report = ingested(source, resyncs=True)
    assert (report.error, report.deleted_keys, table(warehouse)) == (None, 1, {})


def test_a_resync_after_the_loss_was_accepted_finds_no_room_and_says_so() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.append(b"1", b"v")
    ingested(source)
    happen([("lose", 1)], log, warehouse)
    ingested(source, accepts_loss=True)
    report = ingested(source, resyncs=True)
    assert report.error is not None and "Kafka no longer has 1 key of the copy" in report.error
    assert table(warehouse) == {b"1": b"v"}


def test_a_shorter_retention_that_was_seen_counts_after_it_is_longer_again() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(100 * RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.append(b"1", b"v")
    ingested(source)
    log.retention_ms = RETENTION_MS
    happen([("lose", 1)], log, warehouse)
    assert ingested(source).error is not None
    log.retention_ms = 100 * RETENTION_MS
    report = ingested(source)
    assert report.error is not None and "deletes from offset 1" in report.error
    assert ingested(source, resyncs=True).error is None
    assert table(warehouse) == log.table == {}


def test_a_copy_without_new_records_is_not_late() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.append(b"k1", b"v")
    ingested(source)
    version = warehouse.store.load(NAME).version
    for _ in range(20):
        warehouse.clock.advance(RETENTION_MS // 2)  # type: ignore[attr-defined]
        assert ingested(source).error is None
    assert warehouse.store.load(NAME).version == version
    log.append(b"k1", None)
    assert ingested(source).error is None
    assert table(warehouse) == {}


def test_a_topic_that_is_not_compacted_has_no_cleaner_that_drops_deletes() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.retention_ms = None  # type: ignore[assignment]
    log.append(b"k1", b"v")
    ingested(source)
    warehouse.clock.advance(10 * RETENTION_MS)  # type: ignore[attr-defined]
    log.append(b"k1", None)
    assert ingested(source).error is None


def as_an_earlier_version(warehouse: Warehouse) -> None:
    state = warehouse.store.load(NAME)
    warehouse.store.put_document(state, "source_ends", {"logs": {}})  # type: ignore[arg-type]
    logs = {0: replace(state.log(0), source_begun=None)}
    commit(warehouse, NAME, "r-old", lambda newest: TopicEdit("r-old", 0, logs, origin=newest.origin))


class _Killed(CleanedSource):
    def stream(self, topic: str, starts: Mapping[int, int], run_id: str, on_batch: OnBatch) -> ListedStream:
        raise BrokerError("killed")


def test_an_ingest_that_began_later_and_lost_does_not_make_the_first_batch_newer_than_it_is() -> None:
    """The winner read the value of `k1` long before the other began, and was killed right after its commit."""
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    clock = warehouse.clock
    for key in (b"k1", b"k2", b"k3"):
        log.append(key, b"v")

    def stalls() -> None:
        if source.reads and log.end == 3:
            log.append(b"k1", None)
            log.clean(log.end, clock.now_ms())
            clock.advance(RETENTION_MS * 85 // 100)  # type: ignore[attr-defined]
            assert ingested(_Killed(warehouse, log)).error is not None

    def killed(_batch: object) -> None:
        raise BrokerError("killed")

    source = _Reading(warehouse, log, stalls, limit=2)
    ingest(warehouse, source, IngestRequest({}, ("orders",)), killed, lambda: False)
    assert warehouse.store.load(NAME).log(0).log_end_offset == 2
    clock.advance(RETENTION_MS * 25 // 100)  # type: ignore[attr-defined]
    log.clean(log.end, clock.now_ms())
    report = ingested(CleanedSource(warehouse, log))
    assert report.error is not None and "deletes from offset 2 on may be missing" in report.error
    assert ingested(CleanedSource(warehouse, log), resyncs=True).error is None
    assert table(warehouse) == log.table


class _Reading(CleanedSource):
    reads = False

    def read(self, start: int, end: int) -> list[Record]:
        self.reads = start == 0
        return super().read(start, end)


def test_a_document_that_was_lost_is_not_a_copy_of_an_earlier_version() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.append(b"0", b"v")
    ingested(source)
    happen([("lose", 0)], log, warehouse)
    warehouse.store.put_document(warehouse.store.load(NAME), "source_ends", {"logs": {}})  # type: ignore[arg-type]
    report = ingested(source)
    assert report.error is not None and "deletes from offset 1 on" in report.error


def test_a_copy_of_an_earlier_version_is_told_once_that_nothing_is_known() -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    source = CleanedSource(warehouse, log)
    log.append(b"k1", b"v")
    notes: list[str] = []
    for earlier in (False, True, False):  # a first copy has none before it
        if earlier:
            as_an_earlier_version(warehouse)
            warehouse.clock.advance(10 * RETENTION_MS)  # type: ignore[attr-defined]
        request = IngestRequest({}, ("orders",))
        (report,) = ingest(
            warehouse, source, request, lambda _batch: None, lambda: False, lambda note: notes.append(note.event)
        )
        assert report.error is None
        log.append(b"k3", b"v")
        assert notes.count("unknown_deletes") == earlier
        notes.clear()


class TestKnownEnds:
    """The rule itself, C71."""

    def test_the_smallest_retention_since_counts(self) -> None:
        known = learned(KnownEnds((SourceEnd(5, 0, 100),)), SourceEnd(9, 10, 20), 5)
        assert missed_deletes(known, 5, 9, 50, 1_000) is not None
        assert missed_deletes(known, 5, 9, 17, 1_000) is None
        assert missed_deletes(known, 9, 10, 27, 1_000) is None
        assert missed_deletes(known, 9, 10, 27, 10) is not None

    def test_a_time_ahead_of_the_clock_tells_nothing(self) -> None:
        known = KnownEnds((SourceEnd(5, 1_000_000, 100),))
        assert missed_deletes(known, 5, 9, 50, 100) is not None
        assert missed_deletes(known, 5, 5, 50, 100) is None
        assert missed_deletes(learned(known, SourceEnd(9, 60, 100), 5), 5, 9, 60, 100) is not None

    def test_its_error_says_whether_the_end_was_read_or_only_a_beginning_made(self) -> None:
        def told(known: KnownEnds) -> str:
            missed = missed_deletes(known, 5, 9, 200, 100)
            assert missed is not None
            return str(lost_error(LogId(NAME, 0), "Kafka's orders", missed, 200, "hint"))

        end = SourceEnd(5, 10, 100)
        assert "Kafka's orders was last read to its end" in told(KnownEnds((end,)))
        assert "this read of Kafka's orders began" in told(begun(KnownEnds(), 5, 10, 100))
        assert "last read to its end" in told(replace(begun(KnownEnds(), 0, 5, 100), ends=(end,)))

    @given(
        ends=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1_000)), max_size=100), read_to=st.integers(0, 50)
    )
    def test_few_are_kept_and_each_was_seen(self, ends: list[tuple[int, int]], read_to: int) -> None:
        known = KnownEnds()
        seen = [SourceEnd(offset, time_ms, 100) for offset, time_ms in ends]
        for end in seen:
            known = learned(known, end, read_to)
            assert set(known.ends) <= set(seen)
            assert known.ends[-1] == end
        assert len(known.ends) <= ENDS_KEPT

    def test_what_is_stored_is_what_was_known(self) -> None:
        warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
        log.append(b"k1", b"v")
        ingested(CleanedSource(warehouse, log))
        known = source_ends_of(warehouse.store, warehouse.store.load(NAME))
        assert known == {0: KnownEnds((SourceEnd(1, 1_000_000, RETENTION_MS),))}
        assert warehouse.store.load(NAME).log(0).source_begun == (0, 1_000_000)
