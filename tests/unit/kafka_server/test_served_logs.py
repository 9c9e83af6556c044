"""Logs as clients of Kafka read them, beside the plain reading of the same logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import DamagedError, LithifyError, OffsetOutOfRangeError, VersionSweptError
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.served_topics import LOOK_MS, ServedTopics
from lithify.model.record import Record
from lithify.service.change.cut import delete_records, truncate
from support.generated.records import records
from support.kafka.served_batches import headers_in, read_on, row_of
from support.topics.memory_topic import ORDERS, MemoryTopic


@dataclass
class Served:
    """A topic in memory, and what clients of Kafka see of it."""

    topic: MemoryTopic = field(default_factory=lambda: MemoryTopic(delete_retention_ms=0))

    def __post_init__(self) -> None:
        self.served = ServedTopics(self.topic.warehouse)

    def log(self, name: str = "orders") -> ServedLog:
        self.topic.clock.advance(LOOK_MS)
        topic = self.served.topic(name)
        assert topic is not None and self.served.topic(topic.topic_id).kafka_name == topic.kafka_name == name
        return topic.log(0)

    def append(self, *keys: str, keep: int | None = None) -> None:
        """Records with these keys; a key in capitals is deleted. `keep` is the offset of the first."""
        given = [
            Record(
                key.lower().encode(), None if key.isupper() else b"v", 1_000 + n, partition=0, offset=keep and keep + n
            )
            for n, key in enumerate(keys)
        ]
        self.topic.append(given, keep_offsets=keep is not None)


@pytest.fixture
def served() -> Served:
    return Served()


steps = st.one_of(
    st.tuples(st.just("append"), st.lists(records((b"a", b"b", b"", b"c")), min_size=1, max_size=6)),
    st.tuples(st.just("jump"), st.integers(1, 2**33)),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("truncate"), st.integers(1, 5)),
    st.tuples(st.just("delete"), st.integers(1, 5)),
)


@given(st.lists(steps, max_size=12), st.sampled_from(["in-place", "side-by-side"]), st.integers(1, 400), st.data())
def test_a_client_reads_what_a_reader_reads(story, mode: str, max_bytes: int, draw: st.DataObject) -> None:
    topic = MemoryTopic(delete_retention_ms=0, compaction_mode=mode)
    served = Served(topic)
    for verb, what in story:
        log = topic.log()
        match verb:
            case "append":
                topic.append(what)
            case "jump":
                topic.append(
                    [Record(b"j", b"", 1_500, partition=0, offset=log.log_end_offset + what)], keep_offsets=True
                )
            case "compact":
                topic.compact()
            case "truncate":
                to = max(log.log_start_offset, log.log_end_offset - what)
                truncate(topic.warehouse, ORDERS, 0, to, below_compacted=True)
            case "delete":
                delete_records(topic.warehouse, ORDERS, 0, min(log.log_end_offset, log.log_start_offset + what))
        check(served.log(), topic, topic.log().log_start_offset, topic.records(), max_bytes, draw)
        if mode == "side-by-side":
            compacted = topic.records(compacted=True)
            check(served.log("orders.compacted"), topic, topic.log().compacted_start, compacted, max_bytes, draw)


def check(
    log: ServedLog, topic: MemoryTopic, start: int, there: list[Record], max_bytes: int, draw: st.DataObject
) -> None:
    state = topic.log()
    assert (log.start, log.end, log.leader_epoch) == (start, state.log_end_offset, state.generation)
    assert read_on(log, log.start, max_bytes) == [row_of(record) for record in there]
    offset = draw.draw(st.integers(log.start, log.end))
    assert read_on(log, offset, max_bytes) == [row_of(record) for record in there if record.offset >= offset]
    times = [(record.offset, record.timestamp) for record in there]
    for time in {0, 1, 2_001, *(time for _, time in times)}:
        assert log.offset_at(time) == next((at for at in times if at[1] >= time), None)
    assert log.max_time() == max(times, key=lambda at: (at[1], -at[0]), default=None)


def test_an_empty_log(served: Served) -> None:
    log = served.log()
    assert (log.start, log.end, log.batches(0, 100), log.offset_at(0), log.max_time()) == (0, 0, [], None, None)


@pytest.mark.parametrize("offset", [-1, 4])
def test_offsets_that_are_not_there(served: Served, offset: int) -> None:
    served.append("a", "b", "c")
    with pytest.raises(OffsetOutOfRangeError):
        served.log().batches(offset, 100)


def test_a_log_whose_end_was_compacted_away_is_read_to_its_end(served: Served) -> None:
    served.append("a", "B", "B")
    served.topic.compact()
    log = served.log()
    assert [(h.base_offset, h.last_offset, h.records) for h in headers_in(log.batches(0, 200))] == [
        (0, 0, 1),
        (1, 2, 0),
    ]
    assert [h.base_offset for h in headers_in(log.batches(0, 100))] == [0]  # there is no room for both
    assert [(h.base_offset, h.last_offset) for h in headers_in(log.batches(2, 100))] == [(2, 2)]
    assert log.batches(3, 100) == []


def test_an_end_that_is_far_away_is_reached_by_one_batch(served: Served) -> None:
    served.append("a")
    served.append("A", keep=2**40)
    served.topic.compact()
    (header,) = headers_in(served.log().batches(1, 100))
    assert (header.base_offset, header.last_offset, header.records) == (2**40 + 1 - 2**31, 2**40, 0)


def test_after_a_truncation_batches_have_the_next_epoch(served: Served) -> None:
    served.append("a", "b", "c")
    before = served.log()
    before.batches(0, 100)
    truncate(served.topic.warehouse, ORDERS, 0, 2)
    served.append("d")
    after = served.log()
    assert [header.leader_epoch for header in headers_in(before.batches(0, 100))] == [0]
    assert {header.leader_epoch for header in headers_in(after.batches(0, 100))} == {1}
    assert after.epoch_end(0) == (0, 2)


def test_a_cut_below_a_trimmed_backlog_is_told_to_readers_of_the_view() -> None:
    served = Served(MemoryTopic(compaction_mode="side-by-side", cleanup_policy="compact,delete", retention_ms=1_000))
    served.append("a", "b", "c", "d")
    truncate(served.topic.warehouse, ORDERS, 0, 1)
    served.append("e", "f", "g", "h")
    served.topic.clock.advance(60_000)
    served.topic.compact()  # the view has all, and the backlog is trimmed
    log, view = served.log(), served.log("orders.compacted")
    assert (log.start, log.epoch_end(0)) == (5, (0, 5))
    assert (view.start, view.epoch_end(0)) == (0, (0, 1))


def test_deleted_records_are_in_no_batch(served: Served) -> None:
    served.append("a", "b", "c")
    served.log().batches(0, 100)
    delete_records(served.topic.warehouse, ORDERS, 0, 2)
    log = served.log()
    assert [(h.base_offset, h.records) for h in headers_in(log.batches(2, 100))] == [(2, 1)]


def test_a_client_whose_version_was_swept_reads_the_newest(served: Served) -> None:
    served.append("a", "a", "b")
    before = served.log()
    served.topic.compact()
    served.topic.files.data.pop(before.files.pieces(0, before.how)[0].segment.path)
    with pytest.raises(VersionSweptError, match="orders-0: version 2, which is being read, was replaced"):
        before.batches(0, 100)
    after = served.served.topic("orders")  # without a further look
    assert after is not None and [row[0] for row in read_on(after.log(0), 0)] == [1, 2]


def test_damage_is_an_error_of_one_log() -> None:
    topic = MemoryTopic(partitions=2)
    topic.append([Record(b"a", b"v", 1, partition=n) for n in range(2)])
    topic.files.data.pop(topic.segments(1)[0].path)
    found = ServedTopics(topic.warehouse).topic("orders")
    assert found is not None and len(read_on(found.log(0), 0)) == 1
    for read in (lambda: found.log(1).batches(0, 100), lambda: found.log(1).offset_at(0), found.log(1).max_time):
        with pytest.raises(DamagedError, match="missing"):
            read()


def test_manifests_that_are_damaged_are_an_error_of_one_log(monkeypatch) -> None:
    """Even where the next version is opened for several logs at once."""
    topic = MemoryTopic(partitions=2)
    topic.append([Record(b"a", b"v", 1, partition=n) for n in range(2)])
    served = Served(topic)
    assert all(len(served.served.topic("orders").log(n).batches(0, 100)) == 1 for n in range(2))
    topic.append([Record(b"b", b"v", 1, partition=n) for n in range(2)])
    segments = topic.store.segments

    def damaged(state, partitions=None):
        if 1 in partitions:
            raise DamagedError("a manifest")
        return segments(state, partitions)

    monkeypatch.setattr(topic.store, "segments", damaged)
    assert len(read_on(served.log(), 0)) == 2
    with pytest.raises(DamagedError):
        served.served.topic("orders").log(1).batches(0, 100)


def test_a_log_without_commits_since_is_not_opened_again(monkeypatch) -> None:
    topic = MemoryTopic(partitions=2)
    topic.append([Record(b"a", b"v", 1, partition=n) for n in range(2)])
    served = Served(topic)
    served.log().batches(0, 100)
    topic.append([Record(b"b", b"v", 1, partition=1)])
    monkeypatch.setattr(topic.store, "segments", _refused)
    assert len(read_on(served.log(), 0)) == 1


def _refused(*_: object) -> Iterator[LithifyError]:
    raise AssertionError("manifests are opened")
