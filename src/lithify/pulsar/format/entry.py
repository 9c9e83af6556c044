"""One entry as a broker stores it: read with every bound checked, and written back.

    [0e02][size][broker entry metadata]   [0e01][CRC32C]   [size][message metadata]   payload
    ╰──── both or none: by the broker ╯   ╰ of what follows: absent in old entries ╯

Sizes and checksum are big-endian. What is damaged is a `DamagedError` that names ledger and entry. The parts
of an entry keep the very bytes they were read from, so an untouched entry is written back as it was.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import google_crc32c
from google.protobuf.message import DecodeError

from lithify.errors import DamagedError
from lithify.model.message import NO_BATCH
from lithify.pulsar.format.wire_pb2 import MessageMetadata

BROKER_METADATA_MAGIC: Final = b"\x0e\x02"
CHECKSUM_MAGIC: Final = b"\x0e\x01"

BATCH_LIMIT: Final = 1 << 20
"""Most messages of a batch, a thousand times what clients put into one by default."""

_SIZE: Final = struct.Struct(">I")


class RawEntry(NamedTuple):
    """An entry as it is stored; `data` is what Pulsar calls headers and payload."""

    ledger: int
    entry: int
    data: bytes

    @property
    def place(self) -> str:
        return f"{self.ledger}:{self.entry}"


def damaged(raw: RawEntry, what: str) -> DamagedError:
    """The error for an entry whose bytes cannot be right."""
    hint = (
        "if its producer wrote it so, keep it whole with --skip-damaged; otherwise read it from another bookie, or "
        "have the topic trimmed to after it"
    )
    return DamagedError(f"entry {raw.place} of the topic is damaged: {what}", hint=hint)


class Entry(NamedTuple):
    """An entry in its parts. `broker_metadata` is its bytes, without magic and size; None: absent."""

    raw: RawEntry
    broker_metadata: bytes | None
    has_checksum: bool
    metadata: MessageMetadata
    metadata_bytes: bytes
    payload: bytes

    @property
    def is_batch(self) -> bool:
        return self.metadata.HasField("num_messages_in_batch")

    def to_bytes(self) -> bytes:
        return joined(self.broker_metadata, self.metadata_bytes, self.payload, checksum=self.has_checksum)


def entry_of(raw: RawEntry, *, any_metadata: bool = False) -> Entry:
    """The parts of a stored entry; its checksum is verified where it has one.

    `any_metadata` as in `metadata_of`.
    """
    rest, broker_metadata = raw.data, None
    if rest.startswith(BROKER_METADATA_MAGIC):
        broker_metadata, rest = _sized(raw, rest[2:], "broker entry metadata")
    has_checksum = rest.startswith(CHECKSUM_MAGIC)
    if has_checksum:
        rest = _verified(raw, rest[2:])
    metadata, payload = _sized(raw, rest, "message metadata")
    return Entry(
        raw, broker_metadata, has_checksum, metadata_of(raw, metadata, any_metadata=any_metadata), metadata, payload
    )


def metadata_of(raw: RawEntry, data: bytes, *, any_metadata: bool = False) -> MessageMetadata:
    """The metadata of the entry from its bytes.

    `any_metadata`: even if its producer wrote it wrong (C74), with the count of a batch that has more messages than
    any, or none. If it cannot be read, the metadata is empty. Brokers take metadata that ends within its last field.
    """
    metadata, what = MessageMetadata(), ""
    try:
        metadata.ParseFromString(data)
    except DecodeError:
        what = "its metadata is not a valid protobuf message"
    if not what and not metadata.IsInitialized():
        what = "its metadata lacks a producer, a sequence id or a publish time"
    if what and any_metadata:
        return MessageMetadata(producer_name=b"", sequence_id=0, publish_time=0)
    if what:
        raise damaged(raw, what)
    count = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1
    if not any_metadata and not 1 <= count <= BATCH_LIMIT:
        raise damaged(raw, f"it would be a batch of {count} messages")
    return metadata


def last_index_of(metadata: MessageMetadata) -> int:
    """The batch index of the last message of an entry, whatever was compacted out: -1 if there is but one."""
    return metadata.num_messages_in_batch - 1 if metadata.num_messages_in_batch > 1 else NO_BATCH


def joined(broker_metadata: bytes | None, metadata: bytes, payload: bytes, *, checksum: bool = True) -> bytes:
    """An entry from its parts."""
    content = _SIZE.pack(len(metadata)) + metadata + payload
    before = b"" if broker_metadata is None else b"".join((BROKER_METADATA_MAGIC, *prefixed(broker_metadata)))
    if not checksum:
        return before + content
    return b"".join((before, CHECKSUM_MAGIC, _SIZE.pack(google_crc32c.value(content)), content))


def prefixed(part: bytes) -> tuple[bytes, bytes]:
    """A part that follows its size."""
    return _SIZE.pack(len(part)), part


def _sized(raw: RawEntry, data: bytes, what: str) -> tuple[bytes, bytes]:
    """A part that follows its size, and what comes after it."""
    if len(data) < 4:
        raise damaged(raw, f"it ends before the size of its {what}")
    (size,) = _SIZE.unpack_from(data)
    if size > len(data) - 4:
        raise damaged(raw, f"its {what} would have {size} bytes, but {len(data) - 4} are left")
    return data[4 : 4 + size], data[4 + size :]


def _verified(raw: RawEntry, data: bytes) -> bytes:
    """What follows the checksum, once the checksum is seen to be right."""
    if len(data) < 4:
        raise damaged(raw, "it ends within its checksum")
    (stored,) = _SIZE.unpack_from(data)
    actual = google_crc32c.value(data[4:])
    if stored != actual:
        raise damaged(raw, f"its checksum is {stored:08x}, but its bytes have the checksum {actual:08x}")
    return data[4:]
