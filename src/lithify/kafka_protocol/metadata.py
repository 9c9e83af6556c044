"""Records of the metadata log, in which a KRaft cluster notes its topics and their settings.

    frame version (1)   kind   version   ║ fields, flexible in every version        all three have seven bits a byte

Of most kinds nothing is read: they are passed over by their number.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final, NamedTuple

from lithify.kafka_protocol.reading import MalformedError, Reader, struct_reader, unsigned
from lithify.kafka_protocol.table import record_kinds

_FRAME_VERSION: Final = 1


class MetadataRecord(NamedTuple):
    """By Kafka's name of its kind, and of its fields in snake case."""

    name: str
    fields: dict[str, Any]


def metadata_record(data: bytes) -> MetadataRecord | None:
    """What a record says; None for a kind that nothing is read of.

    Raises `MalformedError`, also for a version that the table does not have.
    """
    try:
        frame, at = unsigned(data, 0)
        number, at = unsigned(data, at)
        version, at = unsigned(data, at)
        if frame != _FRAME_VERSION:
            raise MalformedError(f"a metadata record in frame version {frame}, not {_FRAME_VERSION}")
        kind = record_kinds().get(number)
        if kind is None:
            return None
        if not kind.first <= version <= kind.last:
            raise MalformedError(f"a {kind.name} of version {version}, not {kind.first} to {kind.last}")
        fields, _ = _reader(number, version)(data, at)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedError(f"a metadata record ends too early, or has text that is not UTF-8: {error}") from None
    return MetadataRecord(kind.name, fields)


@cache
def _reader(number: int, version: int) -> Reader:
    return struct_reader(record_kinds()[number].fields, version, flexible=True)
