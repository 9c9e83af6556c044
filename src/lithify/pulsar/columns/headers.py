"""The metadata of many entries at once: what `format/entry.py` reads of each, checksums verified.

    entry 0  [0e02 …][0e01][CRC32C][size][metadata] payload
    entry 1          [0e01][CRC32C][size][metadata] payload

The parts before the payload are found for all entries by the same few operations, and their fields by `fields.py`.
An entry in which anything is unusual, and so each that is damaged, is read by `format/entry.py`, which says why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import google_crc32c
import numpy as np
import pyarrow as pa

from lithify.pulsar.columns.batches import drop_bad_properties
from lithify.pulsar.columns.binary import binary_of, in_order
from lithify.pulsar.columns.fields import PADDING, Bools, Buffer, Ints, MessageFields, Schema, Spans, fields_of
from lithify.pulsar.format.batch import kept_indexes
from lithify.pulsar.format.codecs import KNOWN, NONE, CodecError, decompressed
from lithify.pulsar.format.entry import BATCH_LIMIT, RawEntry, damaged, entry_of
from lithify.pulsar.format.kinds import Kind, is_empty, kind_of, shown_key

_PREFIX_BYTES: Final = 2048
"""The number of bytes of an entry that are decoded here; longer metadata is unusual."""

_BROKER_MAGIC: Final = 0x0E02
_CHECKSUM_MAGIC: Final = 0x0E01
_LARGEST: Final = 2**31 - 1

_PRODUCER: Final = 1 << 3 | 2
_SEQUENCE_ID: Final = 2 << 3
_PUBLISH_TIME: Final = 3 << 3
_PROPERTY: Final = 4 << 3 | 2
_KEY: Final = 6 << 3 | 2
_COMPRESSION: Final = 8 << 3
_UNCOMPRESSED_SIZE: Final = 9 << 3
_COUNT: Final = 11 << 3
_EVENT_TIME: Final = 12 << 3

_METADATA: Final = Schema(
    numbers={
        **{_SEQUENCE_ID: -1, _PUBLISH_TIME: -1, _COMPRESSION: NONE},
        **{_UNCOMPRESSED_SIZE: -1, _COUNT: -1, _EVENT_TIME: 0},
    },
    spans=(_PRODUCER, _KEY),
    repeated=_PROPERTY,
    others=tuple(
        [number << 3 for number in (17, 19, 22, 23, 24, 25, 30)]
        + [number << 3 | 2 for number in (5, 7, 14, 15, 16, 18, 32)]
    ),
)
"""`MessageMetadata` of wire.proto, except what is unusual: encryption, markers, chunks, and field 31."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Columns with a row per entry.

    `count` is the number of messages of a batch, -1 without a batch; `size` is the payload's when it is uncompressed;
    `metadata_start` and `payload_start` are places in the entry's bytes. `kept` has field 31 of entries that have it.
    """

    kind: Ints
    key: pa.Array
    publish_time: Ints
    event_time: Ints
    empty: Bools
    count: Ints
    codec: Ints
    size: Ints
    metadata_start: Ints
    payload_start: Ints
    kept: dict[int, list[int]]

    def part(self, start: int, end: int) -> Headers:
        """The headers of some entries in a row."""
        columns = {each.name: getattr(self, each.name)[start:end] for each in fields(self) if each.name != "kept"}
        kept = {row - start: indexes for row, indexes in self.kept.items() if start <= row < end}
        return Headers(**columns, kept=kept)

    def metadata(self, raw: RawEntry, row: int) -> bytes:
        """The metadata of the entry of that row as it is stored."""
        return raw.data[self.metadata_start[row] : self.payload_start[row]]

    def value(self, raw: RawEntry, row: int) -> bytes:
        """The uncompressed payload of the entry of that row, which is not sealed."""
        payload = raw.data[self.payload_start[row] :]
        try:
            return decompressed(int(self.codec[row]), payload, int(self.size[row]))
        except CodecError as error:
            raise damaged(raw, str(error)) from error


def headers_of(entries: Sequence[RawEntry], whole: Collection[tuple[int, int]] = ()) -> Headers:
    """The metadata of entries without frames. Raises DamagedError, which names ledger and entry.

    Batches at the places in `whole` are taken for sealed ones, of which nothing shows.
    """
    prefixes = [raw.data[:_PREFIX_BYTES] for raw in entries]
    size: Ints = np.array([len(prefix) for prefix in prefixes], np.int64)
    buffer = Buffer(b"".join((*prefixes, PADDING)))
    end = np.cumsum(size)
    start = end - size
    metadata_start, metadata_end = _verified(entries, buffer, start, end)
    metadata = fields_of(buffer, metadata_start, metadata_end, _METADATA)
    drop_bad_properties(buffer, metadata)
    numbers = metadata.numbers
    plain = metadata.plain & (metadata.spans[_PRODUCER].start >= 0) & (numbers[_COUNT] != 0)
    for tag in (_SEQUENCE_ID, _PUBLISH_TIME):
        plain &= numbers[tag] >= 0
    for tag, most in ((_COMPRESSION, _LARGEST), (_UNCOMPRESSED_SIZE, _LARGEST), (_COUNT, BATCH_LIMIT)):
        plain &= numbers[tag] <= most
    if whole:
        plain &= np.array([raw[:2] not in whole for raw in entries], np.bool_)
    return _Reader(entries, buffer, metadata, metadata_start - start, metadata_end - start, whole).headers(plain)


def _verified(entries: Sequence[RawEntry], buffer: Buffer, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """From where to where the metadata is in the buffer; nowhere if it does not fit or a checksum is wrong."""
    magic, size = _head(buffer, start)
    at = start + np.where(magic == _BROKER_MAGIC, 6 + size, 0)
    magic, stored = _head(buffer, at)
    summed: Bools = magic == _CHECKSUM_MAGIC
    at = at + np.where(summed, 6, 0)
    size = _head(buffer, at - 2)[1]
    metadata_end = at + 4 + size
    fits: Bools = metadata_end <= end
    checked = np.flatnonzero(fits & summed)
    offsets = (at - start)[checked].tolist()
    actual = [_crc(entries[row].data[offset:]) for row, offset in zip(checked.tolist(), offsets, strict=True)]
    fits[checked] = stored[checked] == np.array(actual, np.int64)
    return np.where(fits, at + 4, 0), np.where(fits, metadata_end, 0)


_crc = google_crc32c.value


def _head(buffer: Buffer, at: Ints) -> tuple[Ints, Ints]:
    """The two bytes at each place, and the four after them; whatever is there beyond the end."""
    words = buffer.words[np.clip(at, 0, len(buffer.words) - 1)].byteswap()
    return (words >> np.uint64(48)).astype(np.int64), ((words >> np.uint64(16)) & np.uint64(2**32 - 1)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes the columns; `metadata_start` and `payload_start` are places in each entry."""

    entries: Sequence[RawEntry]
    buffer: Buffer
    metadata: MessageFields
    metadata_start: Ints
    payload_start: Ints
    whole: Collection[tuple[int, int]]

    def headers(self, plain: Bools) -> Headers:
        numbers, key = self.metadata.numbers, self.metadata.spans[_KEY]
        count, codec, size = numbers[_COUNT], numbers[_COMPRESSION], numbers[_UNCOMPRESSED_SIZE]
        length = np.array([len(raw.data) for raw in self.entries], np.int64)
        opened = np.isin(codec, list(KNOWN))
        batch = np.where(opened, Kind.BATCH, Kind.SEALED_BATCH)
        kind = np.where(count > 0, batch, np.where(opened, Kind.PLAIN, Kind.SEALED))
        shown = plain & ~((kind == Kind.SEALED_BATCH) & (count > 1))
        headers = Headers(
            kind,
            binary_of(self.buffer.data, Spans(np.where(shown, key.start, -1), key.size)),
            numbers[_PUBLISH_TIME],
            numbers[_EVENT_TIME],
            np.where(size < 0, self.payload_start == length, size == 0),
            count,
            codec,
            np.maximum(size, 0),
            self.metadata_start,
            self.payload_start,
            {},
        )
        return headers if plain.all() else self._completed(headers, np.flatnonzero(~plain))

    def _completed(self, headers: Headers, unusual: Ints) -> Headers:
        """With the entries that are not plain, each by protobuf."""
        keys = []
        for row in unusual.tolist():
            is_whole = self.entries[row][:2] in self.whole
            entry = entry_of(self.entries[row], any_metadata=is_whole)
            metadata, kind = entry.metadata, Kind.SEALED_BATCH if is_whole else kind_of(entry)
            keys.append(None if is_whole else shown_key(entry, kind))
            headers.kind[row], headers.empty[row] = kind, is_empty(entry)
            headers.publish_time[row], headers.event_time[row] = metadata.publish_time, metadata.event_time
            headers.count[row] = 1 if is_whole else metadata.num_messages_in_batch if entry.is_batch else -1
            headers.codec[row], headers.size[row] = metadata.compression, metadata.uncompressed_size
            payload_start = len(entry.raw.data) - len(entry.payload)
            headers.payload_start[row] = payload_start
            headers.metadata_start[row] = payload_start - len(entry.metadata_bytes)
            if kind is Kind.BATCH and (kept := kept_indexes(entry)):
                headers.kept[row] = kept
        order = np.arange(len(self.entries))
        order[unusual] = len(order) + np.arange(len(unusual))
        return replace(headers, key=in_order([headers.key, pa.array(keys, pa.binary())], order))
