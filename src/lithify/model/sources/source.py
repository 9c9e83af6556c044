"""Topics of another system, as that system describes them, and the request to copy them."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from lithify.errors import RefusedError
from lithify.model.message import MessageId
from lithify.model.names import TopicName
from lithify.model.topic.log import LogState

SourcePosition = int | MessageId
"""How far a copy of one partition is: the next offset of Kafka, or the id of Pulsar up to which it has everything."""


_FROM_1900_MS = -2_208_988_800_000


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic of the source. `topic_id` is another one once it was deleted and created again; empty: not known.

    So it is for `cluster_id`, the id of the cluster that it is in.
    """

    name: str
    topic_id: str
    partitions: tuple[int, ...]
    cluster_id: str = ""
    is_whole: bool = True
    """Whether these are all partitions that it has."""


@dataclass(frozen=True, slots=True)
class SourceLog:
    """One partition of it, as a reader of committed records sees it: [start_offset, end_offset).

    `leader_epoch` is its leader's: another one whenever it has lost records. None if it is not known.
    """

    partition: int
    start_offset: int
    end_offset: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class EpochAt:
    """Everything below `offset` was read from a log of Kafka in this leader epoch (C72).

    So the records before an earlier offset were, too. The log has lost none of them while the epoch, or a later one,
    still begins at or behind `offset`. A log that was cut below it and has grown again returns where it was cut.
    """

    offset: int
    epoch: int

    def below(self, offset: int) -> EpochAt:
        """The same of the records below `offset`, if those are fewer."""
        return EpochAt(min(offset, self.offset), self.epoch)


def copied_in(log: LogState) -> EpochAt | None:
    """What the state of a copy says of its source's leader epoch; None if it says nothing."""
    return None if log.source_epoch is None else EpochAt(log.log_end_offset, log.source_epoch)


Signs = tuple[int, int]
"""What tells a record of Kafka from another one at its offset: its timestamp, and the checksum of key and value."""


def signs_of(timestamp_ms: int, key: bytes | None, value: bytes | None) -> Signs:
    return timestamp_ms, checksum_of(key, value)


def checksum_of(key: bytes | None, value: bytes | None) -> int:
    """As copies store it of their last records: a CRC-32 of the key and the value, each behind its length."""
    checksum = 0
    for part in (key, value):
        checksum = zlib.crc32(part or b"", zlib.crc32(struct.pack(">q", -1 if part is None else len(part)), checksum))
    return checksum


def differ(ours: Mapping[int, Signs], theirs: Mapping[int, Signs]) -> bool:
    """Whether a copy and its source, by offset, have another record at any. Of times before 1900 see below."""
    return any(theirs.get(at, mine) != mine for at, mine in ours.items() if mine[0] >= _FROM_1900_MS)


@dataclass(frozen=True, slots=True)
class ComparedRecord:
    """The last record of a copy, or that a consumer has read. Kafka must have it there, if it has any there (C72).

    `checksum` is None in copies that an earlier Lithify has made.
    """

    offset: int
    timestamp_ms: int
    checksum: int | None

    def is_not(self, signs: Signs) -> bool:
        """Whether the source has another one there."""
        timestamp_ms, checksum = signs
        return timestamp_ms != self.timestamp_ms or self.checksum not in (None, checksum)

    def is_proven(self, signs: Signs | None) -> bool:
        """Whether the source has this very one there, and so all that was copied before it."""
        return signs == (self.timestamp_ms, self.checksum)


def as_read(offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> ComparedRecord | None:
    """The record of a consumer that has read it. None if its timestamp may come from an earlier version.

    None as well if it does not have a timestamp: Kafka's client for Python returns 0 then, and copies have -1.
    """
    if timestamp_ms < _FROM_1900_MS or timestamp_ms == 0:
        return None
    return ComparedRecord(offset, timestamp_ms, checksum_of(key, value))


def compared_record(log: LogState) -> ComparedRecord | None:
    """None if there is nothing to compare.

    Nor is a record from before 1900 that an earlier version has copied: it had such timestamps as Spark reads them,
    by another calendar.
    """
    last = log.last_record
    if last is None:
        return None
    offset, checksum = (None, None) if log.source_last is None else log.source_last
    record = ComparedRecord(last.offset, last.timestamp_ms, checksum if offset == last.offset else None)
    return None if record.checksum is None and last.timestamp_ms < _FROM_1900_MS else record


def record_to_compare(log: LogState, start_offset: int, end_offset: int) -> ComparedRecord | None:
    """The record to compare, if the source's log [start_offset, end_offset) has its offset.

    It is compared even if the source ends with the copy: later records are read without another check.
    """
    last = compared_record(log)
    return last if last is not None and start_offset <= last.offset < end_offset else None


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """The request of an ingest. `config` are settings of the source's clients, such as `bootstrap.servers`.

    `topics` are the source's topics, or all that match `pattern`; `into` is one topic, for one source, or a stream
    (`shop/`), in which topics keep their names. A record without a key that the topic refuses is left out with
    `drops_keyless`, and stops the ingest without.
    """

    config: Mapping[str, str] = field(repr=False)  # it has secrets
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    into: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings for created topics, overriding the settings of Kafka's topic."""
    continuous: bool = False
    interval_ms: int = 1_000
    max_records: int | None = None
    drops_keyless: bool = False
    accepts_loss: bool = False
    skip_damaged: bool = False
    """Copies entries whole that their producers wrote damaged (C74)."""
    resyncs: bool = False
    """Deletes the keys of copies that their sources no longer have."""
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        """Raises `RefusedError` unless either topics or a regular expression is given."""
        if bool(self.topics) == (self.pattern is not None):
            raise RefusedError("pass either topics or a pattern")
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise RefusedError(f"the pattern {self.pattern!r} is not a regular expression: {error}") from None

    @property
    def into_stream(self) -> bool:
        """Whether topics keep their names, in a stream."""
        return self.into is None or self.into.endswith("/")

    def target(self, topic: str) -> str:
        """The name of the copy: a topic of Pulsar keeps, in a stream that is named, that within its namespace."""
        if not self.into_stream:
            return str(self.into)
        return f"{self.into}{topic.split('/', 4)[-1]}" if self.into and "://" in topic else f"{self.into or ''}{topic}"


def check_apart(targets: Mapping[str, TopicName]) -> None:
    """Raises `RefusedError` if two topics would be copied into one."""
    first: dict[TopicName, str] = {}
    for topic, name in targets.items():
        if first.setdefault(name, topic) != topic:
            raise RefusedError(
                f"{first[name]} and {topic} cannot both be copied into {name}", hint="copy them one by one"
            )
