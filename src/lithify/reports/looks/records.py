"""Records as a person is shown them: a few of a log, or all of one key. The field names are the JSON keys.

Texts are UTF-8; what is not is in base64, under a name of its own. Long values are cut.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

from lithify.model.record import Record
from lithify.reports.report import Report

SHOWN_BYTES = 64 * 1024
"""Of a key, a value or a header, at most."""


@dataclass(frozen=True, slots=True)
class ShownBytes:
    """A key or a value: as text, or in base64 if it is not UTF-8."""

    text: str | None
    base64: str | None
    bytes: int
    """Of the whole."""
    cut: bool = False
    """Whether only its beginning is here."""


@dataclass(frozen=True, slots=True)
class ShownHeader:
    name: str
    value: ShownBytes | None


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record. A null value is a tombstone."""

    partition: int
    offset: int
    timestamp_ms: int
    key: ShownBytes | None
    value: ShownBytes | None
    headers: tuple[ShownHeader, ...]
    passed_through: bool = False
    """Whether it is a whole entry of Pulsar."""


@dataclass(frozen=True, slots=True)
class RecordsReport(Report):
    """Records of one log from an offset on."""

    topic: str
    partition: int
    version: int
    log_start_offset: int
    log_end_offset: int
    records: tuple[ShownRecord, ...]
    next_offset: int | None
    """Where the records after these begin; null at the log end."""


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """What a key had at one version of the topic."""

    version: int
    record: ShownRecord | None
    """Null if the key was deleted or not there."""


@dataclass(frozen=True, slots=True)
class KeyReport(Report):
    """The latest record of a key, and what is left of its earlier ones.

    Compaction removes superseded records: the earlier ones are those that no round has removed, in what was read.
    """

    topic: str
    version: int
    key: ShownBytes
    latest: ShownRecord | None
    """Null if it is deleted or was never there."""
    records: tuple[ShownRecord, ...]
    """Of the key, in the part of the logs that was read, newest first."""
    read_from: dict[int, int]
    """By partition, the offset from which the log was read."""
    whole: bool
    """Whether all of every log was read."""
    versions: tuple[KeyVersion, ...]
    """What it had at each retained version, newest first."""


def shown_bytes(value: bytes) -> ShownBytes:
    """Its text, or base64; at most `SHOWN_BYTES` of it."""
    part = value[:SHOWN_BYTES]
    cut = len(part) < len(value)
    try:
        return ShownBytes(part.decode("utf-8", "strict"), None, len(value), cut)
    except UnicodeDecodeError as error:
        if cut and error.start >= len(part) - 3:  # a character that the cut has divided
            return ShownBytes(part[: error.start].decode("utf-8"), None, len(value), cut)
        return ShownBytes(None, b64encode(part).decode(), len(value), cut)


def shown_record(record: Record) -> ShownRecord:
    """One that a reader returned."""
    return ShownRecord(
        partition=record.partition or 0,
        offset=record.offset or 0,
        timestamp_ms=record.timestamp or 0,
        key=None if record.key is None else shown_bytes(record.key),
        value=None if record.value is None else shown_bytes(record.value),
        headers=tuple(ShownHeader(name, None if v is None else shown_bytes(v)) for name, v in record.headers),
        passed_through=record.passed_through,
    )
