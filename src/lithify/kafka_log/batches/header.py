"""The header of a record batch of version 2: its first 61 bytes.

    base offset   length   leader epoch   magic   crc  │  attributes   last offset delta   base and max timestamp
                                                       │  producer id and epoch   base sequence   number of records
                                                       ╰─ CRC32C of all from here to the end of the batch

    attributes    codec (3 bits)   timestamp type   transactional   control   has a delete horizon (KIP-534)

All numbers are big-endian. The base offset and the leader epoch are outside of the checksum, so that a broker sets
them. A batch that a round has taken records from keeps its first and its last offset.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, cast

import google_crc32c
import numpy as np
import numpy.typing as npt

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = _HEADER.size
LENGTH_END: Final = 12
"""Where the part begins that `length` counts."""
CHECKED_FROM: Final = 21
"""Where the part begins that the checksum covers."""
MAGIC: Final = 2
NONE: Final = -1
"""The producer id, its epoch and sequence, and the leader epoch, of a batch without them."""

_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0b111, 1 << 3, 1 << 4, 1 << 5
DELETE_HORIZON: Final = 1 << 6
"""The attribute of a batch with tombstones, or a marker without a transaction, that a cleaner has met."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Timestamps are epoch ms. The timestamps of records are relative to `base_timestamp`."""

    base_offset: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    records: int
    attributes: int = 0
    leader_epoch: int = NONE
    producer_id: int = NONE
    producer_epoch: int = NONE
    base_sequence: int = NONE

    @classmethod
    def parsed(cls, data: bytes) -> BatchHeader:
        """The header of a batch whose length and magic are known to be right."""
        base, _, epoch, _, _, attributes, last, first_ms, max_ms, *producer, records = _HEADER.unpack_from(data)
        return cls(base, last, first_ms, max_ms, records, attributes, epoch, *producer)

    @property
    def last_offset(self) -> int:
        """The last offset that the batch had when it was appended. Its record may have been compacted away."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC

    @property
    def timestamp_type(self) -> int:
        """0 CreateTime, 1 LogAppendTime: then every record has the timestamp `max_timestamp`."""
        return int(bool(self.attributes & _LOG_APPEND_TIME))

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether its record is a marker, which ends a transaction, and no consumer gets."""
        return bool(self.attributes & _CONTROL)

    def without_codec(self, data: bytes, records: bytes) -> bytes:
        """The batch `data`, whose header this is, with decompressed records. Its length and checksum remain."""
        attributes = (self.attributes & ~_CODEC).to_bytes(2, signed=True)
        return b"".join((data[:CHECKED_FROM], attributes, data[CHECKED_FROM + 2 : HEADER_BYTES], records))

    @property
    def delete_horizon_ms(self) -> int | None:
        """When its tombstones may go, which is in place of the base of its timestamps; None if no cleaner met it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def with_records(self, records: bytes) -> bytes:
        """The whole batch: its records are encoded as the header says."""
        data = np.frombuffer(bytearray(HEADER_BYTES) + records, np.uint8)
        self.write_into(data, 0, len(data))
        return data.tobytes()

    def write_into(self, data: npt.NDArray[np.uint8], start: int, end: int) -> None:
        """Writes it before records that stand in `data`, in a batch from `start` to `end`."""
        fields = (self.attributes, self.last_offset_delta, self.base_timestamp, self.max_timestamp)
        producer = (self.producer_id, self.producer_epoch, self.base_sequence)
        before = (self.base_offset, end - start - LENGTH_END, self.leader_epoch, MAGIC)
        _HEADER.pack_into(data.data, start, *before, 0, *fields, *producer, self.records)
        checksum = google_crc32c.value(cast(bytes, data[start + CHECKED_FROM : end]))
        struct.pack_into(">I", data.data, start + CHECKED_FROM - 4, checksum)


def attributes_of(
    codec: int, timestamp_type: int = 0, *, is_transactional: bool = False, is_control: bool = False
) -> int:
    """The attributes of a batch without a delete horizon."""
    flags = ((timestamp_type, _LOG_APPEND_TIME), (is_transactional, _TRANSACTIONAL), (is_control, _CONTROL))
    return codec | sum(bit for is_set, bit in flags if is_set)


def has_right_checksum(data: bytes) -> bool:
    """Whether a batch is as it was written."""
    (stated,) = struct.unpack_from(">I", data, CHECKED_FROM - 4)
    return bool(stated == google_crc32c.value(data[CHECKED_FROM:]))
