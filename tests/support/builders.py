"""Logs drawn as text, so that a case stays on one screen.

a_log("a=1 b=2 a=∅ | ·=keyless c=''")

space   separates records        ∅     a null value (a tombstone)
|       separates segments       ''    an empty value, or an empty key
@7      the record's offset      ·     a null key
!500    the record's timestamp   both go on from there: offsets by one, timestamps unchanged
□       a whole entry of Pulsar in the place of a key (C53); its id is 0 and the offset
□a      one that is a chunk of a large message with the key a
#5      a header `v` with a version, 8 bytes long; `#x` one with other bytes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lithify.model.log_arithmetic import measured
from lithify.model.message import Envelope, MessageId
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings, settings_of
from lithify.model.topic.log import LastRecord, LogState, TombstoneStep
from lithify.model.topic.state import TopicState
from lithify.rules.compaction.planner import LogPlan, plan_log
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.testing.memory_segments import segment_of
from support.chunks import chunk_metadata

WHOLE = "□"
_TOKEN = re.compile(r"([^=\s]+)=([^=\s@!#]+)(?:@(\d+))?(?:!(-?\d+))?(?:#(\S+))?")


@dataclass(frozen=True, slots=True)
class DrawnLog:
    """A log as drawn: its records by segment, and what the metadata says of them."""

    contents: tuple[tuple[Record, ...], ...]
    partition: int = 0

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(record for segment in self.contents for record in segment)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Facts of the segments; their paths are `s0`, `s1` and so on."""
        return tuple(segment_of(f"s{index}", records) for index, records in enumerate(self.contents))

    def state(self, *, dirty_from: int = 0, start: int = 0, steps: Sequence[TombstoneStep] = ()) -> LogState:
        """The state of this log with D at `dirty_from` and S at `start`."""
        last = self.records[-1] if self.contents else None
        state = LogState(
            partition=self.partition,
            log_start_offset=start,
            first_dirty_offset=max(dirty_from, start),
            log_end_offset=1 + (last.offset or 0) if last else 0,
            steps=tuple(steps),
            last_record=LastRecord(last.offset or 0, last.timestamp or 0) if last else None,
        )
        return measured(state, self.segments)

    def plan(
        self, state: LogState | None = None, *, now_ms: int = 0, view: Sequence[Segment] = (), **config: object
    ) -> LogPlan:
        """The round that would run on it now; settings with underscores for dots."""
        return plan_log(state or self.state(), self.segments, some_settings(**config), now_ms, tuple(view))


def a_log(text: str, *, partition: int = 0, first_offset: int = 0, timestamp: int | None = 0) -> DrawnLog:
    """The log that `text` draws. `timestamp` is that of the records before the first that has one."""
    offset = first_offset
    contents: list[tuple[Record, ...]] = []
    for drawn in text.split("|"):
        records = []
        for token in drawn.split():
            match = _TOKEN.fullmatch(token)
            if match is None:
                raise ValueError(f"not a record: {token!r}")
            key, value, own_offset, own_timestamp, version = match.groups()
            offset = int(own_offset) if own_offset else offset
            timestamp = int(own_timestamp) if own_timestamp else timestamp
            headers = () if version is None else (("v", _version(version)),)
            whole = _whole_entry(key, offset) if key.startswith(WHOLE) else None
            drawn_key = None if whole else _bytes(key, null="·")
            records.append(
                Record(drawn_key, _bytes(value, null="∅"), timestamp, headers, partition, offset, envelope=whole)
            )
            offset += 1
        if records:
            contents.append(tuple(records))
    return DrawnLog(tuple(contents), partition)


def draw(segments: Iterable[Iterable[Record]]) -> str:
    """The inverse of `a_log`, with every offset: `a=1@0 b=2@1 | a=∅@2`."""
    return " | ".join(" ".join(map(draw_record, records)) for records in segments)


def draw_record(record: Record) -> str:
    chunk = record.chunk
    key = WHOLE if record.passed_through else _text(record.key, null="·")
    key += "" if chunk is None else _text(chunk.key, null="·")
    return f"{key}={_text(record.value, null='∅')}@{record.offset}"


def with_id(record: Record) -> Record:
    """The record with Pulsar's message id 0:OFFSET."""
    drawn = record.envelope or Envelope(MessageId(0, 0))
    return record._replace(envelope=drawn._replace(id=MessageId(0, record.offset or 0)))


def some_settings(**config: object) -> TopicSettings:
    """Settings by Kafka's names, with underscores for dots; segments may be as small as a record."""
    small = {name: size for name, size in config.items() if name == "segment_bytes" and isinstance(size, int)}
    named = {name.replace("_", "."): value for name, value in config.items() if name not in small}
    return replace(settings_of(named), **small)  # type: ignore[arg-type]


def some_rules(horizon: int, **changes: object) -> SurvivorRules:
    """Rules over [0, horizon), nothing clean, no tombstone expired, unless `changes` says otherwise."""
    plain = SurvivorRules(
        log_start=0,
        horizon=horizon,
        keep_keyless=False,
        empty_is_tombstone=False,
        tombstones_expire_below=0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def a_topic(*logs: LogState, **facts: object) -> TopicState:
    """The topic `t` with these logs and the settings of `some_settings()`, unless `facts` says otherwise."""
    plain = TopicState(TopicName("default", "t"), "t", "i", 1, "", some_settings(), logs, 0)
    return replace(plain, **facts)  # type: ignore[arg-type]


def a_segment(path: str = "s", base: int = 0, end: int = 10, **facts: object) -> Segment:
    """A segment full of records with keys `a` to `z`, unless `facts` says otherwise."""
    plain = Segment(
        path=path,
        partition=0,
        base_offset=base,
        end_offset=end,
        records=end - base,
        size_bytes=100 * (end - base),
        scan_bytes=10 * (end - base),
        min_timestamp_ms=0,
        max_timestamp_ms=0,
        null_keys=0,
        null_values=0,
        min_value_size=1,
        min_key=b"a",
        max_key=b"z",
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def _whole_entry(drawn: str, offset: int) -> Envelope:
    of_key = drawn.removeprefix(WHOLE)
    metadata = chunk_metadata(_bytes(of_key, null="·")) if of_key else None
    return Envelope(MessageId(0, offset), metadata=metadata, passed_through=True)


def _bytes(text: str, *, null: str) -> bytes | None:
    return None if text == null else b"" if text == "''" else text.encode()


def _version(text: str) -> bytes:
    return int(text).to_bytes(8, "big", signed=True) if re.fullmatch(r"-?\d+", text) else text.encode()


def _text(data: bytes | None, *, null: str) -> str:
    return null if data is None else data.decode() or "''"
