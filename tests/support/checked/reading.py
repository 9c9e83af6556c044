"""What readers, `status`, `versions` and `verify` say of a topic, held to its textbook.

Readers of every kind (C2, C3, C7, C33, C36, C37), tombstone steps (C18, C19), what is due (C21, C28),
kept versions (C7), and `verify`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lithify.errors import OffsetOutOfRangeError, VersionSweptError
from lithify.model.cursor import AtTime, Start
from lithify.model.message import EARLIEST, NO_BATCH, MessageId, MessagePosition
from lithify.model.record import Record
from lithify.model.segment import sizes_of
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LastRecord, LogState
from lithify.model.topic.state import TopicState
from lithify.rules.reading.pieces import Reading
from lithify.service.look.status import topic_status
from lithify.service.proof.verify import verify
from lithify.service.read.fetch import LogReader, open_log, table_batches
from support.checked.topic import BOTH, NAME, CheckedTopic
from support.engines.reading_inspector import ReadingInspector
from support.textbook.log import TextbookLog
from support.textbook.records import Records, at, deletes, key_in, order
from support.textbook.topic import TextbookTopic
from support.topics.whole_logs import check_whole


def check_topic(topic: CheckedTopic) -> bool:
    """Every log reads as the textbook has it, and the metadata says the truth; whether there was a new version."""
    state = topic.state
    is_new = state.version != topic.checked[0]
    if is_new:
        check_picture(topic, state, topic.model)
        check_whole(topic.place.warehouse, NAME)
        for log in topic.model.logs:
            check_steps(topic, state.log(log.partition), log)
    if (state.version, topic.place.clock.now_ms()) != topic.checked:
        check_due(topic)
    topic.checked = state.version, topic.place.clock.now_ms()
    return is_new


def check_picture(topic: CheckedTopic, state: TopicState, model: TextbookTopic) -> None:
    """A version, the newest or a kept one, against the textbook of that version."""
    assert state.settings == model.settings
    assert len(state.logs) == len(model.logs)
    for log in model.logs:
        found = state.log(log.partition)
        assert (found.log_start_offset, found.first_dirty_offset, found.log_end_offset) == (
            log.start,
            log.dirty_from,
            log.end,
        )
        assert (found.view is None, found.generation, found.epoch) == (log.view is None, len(log.cuts), log.epoch)
        assert found.copied_to == log.copied_to
        lost = found.losers_removed, found.view is not None and found.view.losers_removed
        assert lost == (log.lost, log.view_lost)
        for compacted in BOTH:
            reader = open_log(topic.place.warehouse, state, log.partition, "earliest", Reading(compacted=compacted))
            wanted = log.reading(compacted=compacted)
            assert reader.position == log.first_place(compacted=compacted)
            assert reader.last_message_id() == _last_id(wanted, model.settings)
            assert reader.has_message_available() == bool(wanted)
            assert tuple(reader) == wanted, f"log {log.partition}, {'compacted' if compacted else 'plain'}"
            assert not reader.has_message_available()
            assert reader.position == log.end


def check_places(topic: CheckedTopic, partition: int, share: float, at_ms: int) -> None:
    """C2, C36, C37: any offset and any time is a place to start; what is outside is refused."""
    log, state = topic.model.logs[partition], topic.state
    for compacted in BOTH:
        how = Reading(compacted=compacted)

        def opened(start: Start, how: Reading = how) -> LogReader:
            return open_log(topic.place.warehouse, state, partition, start, how)

        first, every = log.first_place(compacted=compacted), log.reading(compacted=compacted)
        offset = first + round(share * (log.end - first))
        reader = opened(offset)
        wanted = tuple(r for r in every if at(r) >= offset)
        assert reader.has_message_available() == bool(wanted)
        assert tuple(reader) == wanted
        reader.seek(offset)
        assert tuple(reader) == wanted
        later = next((n for n, r in enumerate(every) if (r.timestamp or 0) >= at_ms), len(every))
        assert tuple(opened(AtTime(at_ms))) == every[later:]
        assert tuple(opened("latest")) == ()
        if every and every[-1].envelope is not None:
            check_ids(every, share, opened)
        for outside in (first - 1, log.end + 1):
            with pytest.raises(OffsetOutOfRangeError):
                opened(outside)


def check_ids(every: Records, share: float, opened: Callable[[Start], LogReader]) -> None:
    """C52: any id that was copied is a place to start, and so is its whole entry, also by an index that it has not."""
    envelope = every[round(share * (len(every) - 1))].envelope
    assert envelope is not None
    ledger, entry, index = envelope.id
    for sought in (envelope.id, MessageId(ledger, entry), MessageId(ledger, entry, index + 1), MessageId(-1, -1)):
        wanted = tuple(
            r
            for r in every
            if r.envelope is not None
            and (r.envelope.id >= sought or (_is_one(r) and r.envelope.id.place == sought.place))
        )
        assert tuple(opened(sought)) == wanted


def _is_one(record: Record) -> bool:
    """Whether it is all of its entry: one that is no batch, or that was copied whole."""
    return record.envelope is not None and (record.passed_through or record.envelope.id.batch_index == NO_BATCH)


def check_verified(topic: CheckedTopic) -> None:
    """Nothing is lost that `verify` would find (C1, C3, C4, C5, C8, C33)."""
    report = verify(topic.place.warehouse, ReadingInspector(topic.place.warehouse.files), NAME)
    assert report.findings == (), [str(finding) for finding in report.findings]


def check_table(topic: CheckedTopic) -> None:
    """The latest value of every live key, log by log, and of each key alone."""
    wanted = [r for log in topic.model.logs for r in sorted(log.table(topic.model.settings).values(), key=at)]
    warehouse, state = topic.place.warehouse, topic.state
    assert [record for batch in table_batches(warehouse, state) for record in batch.records()] == wanted
    read = [record for log in topic.model.logs for record in log.reading(compacted=True)]
    for key in {record.key for record in read} - {None} | {b"never"}:
        found = [record for batch in table_batches(warehouse, state, key=key) for record in batch.records()]
        assert found == [record for record in wanted if record.key == key], f"the record of {key!r} alone"


def check_versions(topic: CheckedTopic, share: float) -> None:
    """C7: kept versions, of which there are at most `versions.kept`, read as they were."""
    store = topic.place.warehouse.store
    kept = [v for v in store.versions(NAME) if v.version in topic.pictures]
    assert [v.version for v in kept] == sorted((v.version for v in kept), reverse=True)
    if kept:
        chosen = kept[round(share * (len(kept) - 1))].version
        check_picture(topic, store.load_version(NAME, chosen), topic.pictures[chosen])


def check_steps(topic: CheckedTopic, state: LogState, log: TextbookLog) -> None:
    """C18, C19: the age of every tombstone that a round has covered is known, and not too young or old."""
    tombstones = [r for r in log.judged if r.key is not None and deletes(r, topic.model.settings)]
    assert state.uncovered == log.uncovered
    ends = [step.end_offset for step in state.steps]
    for record in tombstones if not log.uncovered else ():
        step = next((step for step in state.steps if at(record) < step.end_offset), None)
        first, last = log.ages(at(record))
        assert step is not None, f"no step has the age of the tombstone at {at(record)} (C19)"
        assert first is not None and last is not None
        assert first <= step.time_ms <= last, f"T({at(record)}) is {step.time_ms}, not {first} to {last} (C18)"
    for index, step in enumerate(state.steps if not log.uncovered else ()):
        since = ends[index - 1] if index else 0
        there = sum(since <= at(r) < step.end_offset for r in tombstones)
        assert there <= step.tombstones, f"{there} tombstones below {step.end_offset}, {step.tombstones} known"


def check_due(topic: CheckedTopic) -> None:
    """C21, C26, C28, C43, C53: a round that is required, and tombstones that may go, make a log due."""
    settings, now_ms = topic.model.settings, topic.place.clock.now_ms()
    segments = topic.moment().segments
    for status, log in zip(topic_status(topic.place.warehouse, topic.state).logs, topic.model.logs, strict=True):
        if not settings.compacts:
            continue
        says_so = status.due_reason.startswith(("changed: ", "records below "))
        assert status.due or not log.round_required, f"log {log.partition} requires a round: {status.due_reason}"
        assert not says_so or log.round_required or log.deleted_below, status.due_reason
        gone = len(log.gone(segments[log.partition], settings, now_ms))
        horizon = log.horizon(segments[log.partition][gone:], settings, now_ms)
        above_horizon = [r for r in log.reading(compacted=False) if at(r) >= horizon]
        beside = settings.compaction_strategy != "offset"  # entries above D count as well (C53)
        for record in log.judged:
            if log.may_be_hidden(record.key, below=None if beside else log.dirty_from):
                continue
            last = log.ages(at(record))[1]
            if record.key is None or not deletes(record, settings) or last is None or log.uncovered:
                continue
            _, expired = log.may_go(record, settings, now_ms, horizon)
            held = any(key_in(r) == record.key and order(r, settings) < order(record, settings) for r in above_horizon)
            if expired and last + settings.delete_retention_ms <= now_ms and not held:
                assert status.due, f"the tombstone at {at(record)} has expired (C21): {status.due_reason}"


@dataclass(slots=True)
class OpenReader:
    """A reader of a version, opened before whatever came since (C7)."""

    topic: CheckedTopic
    reader: LogReader
    wanted: Records
    paths: tuple[str, ...]

    @classmethod
    def open(cls, topic: CheckedTopic, partition: int, *, compacted: bool) -> OpenReader:
        state, store = topic.state, topic.place.warehouse.store
        reader = open_log(topic.place.warehouse, state, partition, "earliest", Reading(compacted=compacted))
        paths = tuple(sizes_of((*store.segments(state, [partition]), *store.view(state, [partition]))))
        return cls(topic, reader, topic.model.logs[partition].reading(compacted=compacted), paths)

    def read_on(self, most: int) -> bool:
        """Reads some records more; returns whether the end was reached."""
        got: list[Record] = []
        if not most:
            return False
        try:
            for record in self.reader:
                got.append(record)
                if len(got) == most:
                    break
        except VersionSweptError:
            assert self.topic.place.warehouse.files.missing(self.paths), "no file of the version is gone"
            assert tuple(got) == self.wanted[: len(got)]
            return True
        assert tuple(got) == self.wanted[:most]
        self.wanted = self.wanted[most:]
        return len(got) < most


def _last_id(records: Records, settings: TopicSettings) -> LastRecord | MessagePosition | None:
    """C36, C52."""
    if settings.message_ids == "none":
        return LastRecord(at(records[-1]), records[-1].timestamp or 0) if records else None
    if not records:
        return EARLIEST
    assert records[-1].envelope is not None
    return MessagePosition(*records[-1].envelope.id, records[-1].timestamp or 0)
