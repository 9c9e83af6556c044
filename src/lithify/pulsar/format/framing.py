"""The frames around the entries of a compacted ledger: they say which entry of the topic it was.

[size][MessageIdData: ledger, entry, partition -1]   [size][the entry]

Nothing follows. A broker writes the partition, although -1 is its default, and so do we.
"""

from __future__ import annotations

import struct
from typing import Final

from google.protobuf.message import DecodeError

from lithify.errors import DamagedError
from lithify.pulsar.format.entry import BROKER_METADATA_MAGIC, CHECKSUM_MAGIC, RawEntry, prefixed
from lithify.pulsar.format.wire_pb2 import MessageIdData

_SIZE: Final = struct.Struct(">I")


def framed(raw: RawEntry) -> bytes:
    """The entry as a compacted ledger holds it."""
    source = MessageIdData(ledger_id=raw.ledger, entry_id=raw.entry, partition=-1).SerializeToString()
    return b"".join((*prefixed(source), *prefixed(raw.data)))


def unframed(data: bytes) -> RawEntry:
    """The entry in a frame. Raises DamagedError for bytes that are not a frame."""
    entry = _read(data)
    if entry is None:
        raise DamagedError("an entry of a compacted ledger has no valid frame", hint="compact the topic again")
    return entry


def without_frame(raw: RawEntry) -> RawEntry:
    """The entry itself, if it is in the frame that belongs to it; else as it is."""
    if raw.data[:2] in (CHECKSUM_MAGIC, BROKER_METADATA_MAGIC):
        return raw  # a frame would start with a size of a quarter of a gigabyte
    inner = _read(raw.data)
    return inner if inner is not None and inner[:2] == raw[:2] else raw


def _read(data: bytes) -> RawEntry | None:
    if len(data) < 8:
        return None
    (size,) = _SIZE.unpack_from(data)
    if size > len(data) - 8:
        return None
    (inner,) = _SIZE.unpack_from(data, 4 + size)
    if inner != len(data) - 8 - size:
        return None
    source = MessageIdData()
    try:
        source.ParseFromString(data[4 : 4 + size])
    except DecodeError:
        return None
    if not source.IsInitialized():
        return None
    return RawEntry(source.ledger_id, source.entry_id, data[8 + size :])
