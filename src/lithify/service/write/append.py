"""Appends a batch: every record gets its offset at the commit, or none does (C1, C6, C14, C16).

    receive (check, sort to logs) ─► write segments at the log ends seen ─► commit
                                         ▲                                    │
                                         └── a log end moved: write again ────┘

Offsets are part of the files, so a log whose end moved before the commit gets new files; the
others keep theirs. No version names the replaced files; `sweep` deletes them. A batch that was received under
settings which the topic no longer has is received again: they say what is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from lithify.errors import ConflictError, FencedError, InvalidInputError, InvalidRecordError
from lithify.model.message import MessageId
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, volume_of
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LastRecord, LogState
from lithify.model.topic.state import TopicState
from lithify.ports.files import Arrivals
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.admission import check_offsets
from lithify.rules.lifecycle.copies.ids import check_not_copied, with_copied
from lithify.service.commit import commit
from lithify.service.creation import load_or_create

Staged = Mapping[int, tuple[Segment, ...]]
NOWHERE: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets that a batch took in one log: [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The version and the offsets of one atomic batch."""

    topic: str
    version: int
    ranges: tuple[OffsetRange, ...]

    @property
    def records(self) -> int:
        return sum(r.records for r in self.ranges)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records": self.records}


def append(
    warehouse: Warehouse,
    name: TopicName,
    batch: Any,
    *,
    keep_offsets: bool = False,
    end_offsets: Mapping[int, int] = NOWHERE,
    expected_end: Mapping[int, int] = NOWHERE,
) -> AppendResult:
    """Appends a batch of records (or an Arrow table), atomically over all logs it is written to.

    With `keep_offsets` the records bring partition and offset; a first offset below the log end
    refuses the batch, which makes replays harmless. `end_offsets` are, by partition, where logs end
    after it: between the last record and there is a gap, as in Kafka (C2). `expected_end` are, by
    partition, where logs must end before it. Raises `FencedError` for a log that ends elsewhere,
    `InvalidRecordError`, `InvalidInputError`, `UnknownTopicError`, or what `commit` raises.
    """
    if end_offsets and not keep_offsets:
        raise InvalidInputError("end offsets are set, but the records do not keep their offsets")
    run_id = warehouse.clock.new_id()
    state = load_or_create(warehouse, name)
    given = list(batch) if isinstance(batch, Iterator) else batch  # it may be read twice
    received = partial(warehouse.files.receive, batch=given, now_ms=warehouse.clock.now_ms(), keep_offsets=keep_offsets)
    arrivals, settings = received(state), state.settings
    check_ends(state, expected_end)
    if not arrivals and not end_offsets:
        return AppendResult(str(name), state.version, ())
    staged = stage(warehouse, state, arrivals, {}, run_id)

    def decide(newest: TopicState) -> TopicEdit | None:
        nonlocal arrivals, settings, staged
        if newest.identity != state.identity:
            raise ConflictError(f"{name}: the topic was deleted and recreated during the append", hint="append again")
        check_ends(newest, expected_end)
        if newest.settings != settings:
            arrivals, settings, staged = received(newest), newest.settings, {}
        staged = stage(warehouse, newest, arrivals, staged, run_id)
        written = tuple(segment for segments in staged.values() for segment in segments)
        logs = {p: with_arrivals(newest.log(p), staged[p], arrivals[p]) for p in arrivals}
        logs |= ended(newest, logs, end_offsets)
        if not logs:
            return None
        now_ms = warehouse.clock.now_ms()  # of the commit, however long it took to write (C14)
        return TopicEdit(run_id, now_ms, logs, add=written, written=written)

    committed = commit(warehouse, name, run_id, decide)
    return AppendResult(str(name), committed.version, _ranges(staged))


def _ranges(staged: Staged) -> tuple[OffsetRange, ...]:
    return tuple(
        OffsetRange(p, segments[0].base_offset, segments[-1].end_offset, sum(s.records for s in segments))
        for p, segments in sorted(staged.items())
    )


def check_ends(state: TopicState, expected: Mapping[int, int]) -> None:
    """Raises `FencedError` for a log that ends elsewhere, or `UnknownTopicError` (C60)."""
    for partition, end in expected.items():
        state.check_partition(partition)
        actual = state.log(partition).log_end_offset
        if actual != end:
            raise FencedError(
                f"{LogId(state.name, partition)} ends at {actual}, not at {end}, where this writer expects it",
                hint="read up to the new end first: another writer has appended or truncated; nothing was appended",
            )


def stage(
    warehouse: Warehouse, state: TopicState, arrivals: Mapping[int, Arrivals], staged: Staged, run_id: str
) -> Staged:
    """Segments of the arrivals at the log ends of `state`; those written before are used again."""
    fresh: dict[int, tuple[Segment, ...]] = {}
    for partition, arriving in arrivals.items():
        check_not_copied(LogId(state.name, partition), state.log(partition), arriving.message_ids)
        end = state.log(partition).log_end_offset
        first = arriving.first_offset
        if first is not None and first < end:
            raise InvalidRecordError(
                f"{LogId(state.name, partition)}: offset {first} is below the log end {end}",
                hint="use offsets at or above the log end: the log already has the records below it",
            )
        base = end if first is None else first
        if first is None:  # records with offsets of their own were checked one by one
            check_offsets(LogId(state.name, partition), end, arriving.records)
        before = staged.get(partition)
        if before is not None and before[0].base_offset == base:
            fresh[partition] = before
        else:
            fresh[partition] = warehouse.files.write(state, arriving, base, run_id)
    return fresh


def with_arrivals(log: LogState, segments: tuple[Segment, ...], arriving: Arrivals) -> LogState:
    """`log` with what has arrived at its end, in these new segments."""
    ids = arriving.message_ids
    return appended(log, segments, arriving.last_timestamp_ms, None if ids is None else ids[1])


def appended(
    log: LogState, segments: tuple[Segment, ...], last_timestamp_ms: int, last_id: MessageId | None = None
) -> LogState:
    """`log` with new segments at its end; the timestamp and message id are the last record's."""
    last = LastRecord(segments[-1].end_offset - 1, last_timestamp_ms, last_id)
    earliest = min(s.min_timestamp_ms for s in segments)
    known = log.oldest_dirty_timestamp_ms
    longer = replace(
        log,
        log_end_offset=segments[-1].end_offset,
        dirty=log.dirty + volume_of(segments),
        oldest_dirty_timestamp_ms=earliest if known is None else min(known, earliest),
        last_record=last,
    )
    return with_copied(longer, last)


def ended(newest: TopicState, logs: Mapping[int, LogState], end_offsets: Mapping[int, int]) -> dict[int, LogState]:
    """The logs of `end_offsets` whose end moves beyond their last record, from `logs`, else from `newest`.

    Raises `InvalidInputError` for an end below the log's, or `UnknownTopicError`.
    """
    ended_logs: dict[int, LogState] = {}
    for partition, end in end_offsets.items():
        newest.check_partition(partition)
        log = logs.get(partition, newest.log(partition))
        if end < log.log_end_offset:
            raise InvalidInputError(
                f"{LogId(newest.name, partition)}: it cannot end at {end}: it already ends at {log.log_end_offset}",
                hint="lower a log end only with `truncate`",
            )
        if end > log.log_end_offset:
            ended_logs[partition] = replace(log, log_end_offset=end)
    return ended_logs
