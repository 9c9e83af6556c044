"""Messages of the versions 0 and 1: what another program writes is read, compressed or not."""

from __future__ import annotations

import io
import struct
from typing import Any
from zlib import crc32

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log.batches import codecs, legacy
from lithify.kafka_log.batches.codecs import NAMES
from lithify.kafka_log.batches.frames import BatchError, frames_of
from support.kafka.batches import columns_of

some_bytes = st.none() | st.binary(max_size=40)
rows = st.lists(st.tuples(st.integers(0, 2**50), some_bytes, some_bytes), min_size=1, max_size=10)
OLD = [codec for codec in NAMES if codec != codecs.ZSTD]


def written(magic: int, codec: int, messages: list[Any]) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 2**30)
    for offset, (timestamp, key, value) in enumerate(messages):
        builder.append(offset, timestamp, key, value)
    return bytes(builder.build())


def moved(data: bytes, offset: int) -> bytes:
    """As a broker stores it: at the offset of its last message."""
    return struct.pack(">q", offset) + data[8:]


def read(data: bytes) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in columns_of(frames_of(io.BytesIO(data))).to_pylist()]


@pytest.mark.parametrize(
    ("magic", "codec"), [(magic, codec) for magic in (0, 1) for codec in OLD if (magic, codec) != (0, codecs.LZ4)]
)
@given(messages=rows)
def test_what_another_program_writes_is_read(magic: int, codec: int, messages: list[Any]) -> None:
    data = written(magic, codec, messages)
    if len([*frames_of(io.BytesIO(data))]) < len(messages):
        data = moved(data, len(messages) - 1)
    times = [time if magic else -1 for time, *_ in messages]
    assert read(data) == [
        (offset, time, 0, key, value, None)
        for offset, (time, (_, key, value)) in enumerate(zip(times, messages, strict=True))
    ]


@given(messages=rows)
def test_lz4_of_version_0_is_read_whatever_the_checksum_of_its_header_is(messages: list[Any]) -> None:
    """Kafka before 0.10 wrote one that no library takes."""
    frame = bytearray(codecs.compressed(codecs.LZ4, written(0, codecs.NO_CODEC, messages)))
    frame[6] ^= 0xFF
    rest = bytes([0, codecs.LZ4]) + struct.pack(">ii", -1, len(frame)) + frame
    data = struct.pack(">qiI", 3, len(rest) + 4, crc32(rest)) + rest
    assert read(data) == [(n, -1, 0, key, value, None) for n, (_, key, value) in enumerate(messages)]


@pytest.mark.parametrize("frame", [b"", b"\x04", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x68\x40"])
def test_lz4_of_version_0_that_is_too_short_is_damaged(frame: bytes) -> None:
    rest = bytes([0, codecs.LZ4]) + struct.pack(">ii", -1, len(frame)) + frame
    with pytest.raises(BatchError):
        read(struct.pack(">qiI", 3, len(rest) + 4, crc32(rest)) + rest)


@pytest.mark.parametrize("codec", [codec for codec in OLD if codec != codecs.NO_CODEC])
def test_offsets_within_a_message_are_relative(codec: int) -> None:
    data = moved(written(1, codec, [(5, b"k", bytes(100))] * 3), 41)
    assert [row[0] for row in read(data)] == [39, 40, 41]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("offsets", [(0, 0, 1), (2, 1, 3)])
def test_offsets_within_a_message_that_are_not_in_order(magic: int, offsets: tuple[int, ...]) -> None:
    data = b"".join(moved(written(magic, codecs.NO_CODEC, [(5, b"k", b"v")]), offset) for offset in offsets)
    inner = codecs.compressed(codecs.GZIP, data)
    rest = bytes([magic, codecs.GZIP]) + bytes(8 * magic) + struct.pack(">ii", -1, len(inner)) + inner
    with pytest.raises(BatchError, match="messages are not in order"):
        read(struct.pack(">qiI", 3, len(rest) + 4, crc32(rest)) + rest)


def test_the_time_of_the_append_is_that_of_the_message_around() -> None:
    data = bytearray(written(1, codecs.GZIP, [(5, b"k", bytes(100)), (6, b"l", None)]))
    data[17] |= 1 << 3
    struct.pack_into(">q", data, 18, 99)
    assert [(row[1], row[2]) for row in read(with_checksum(data))] == [(99, 1), (99, 1)]


def with_checksum(data: bytearray) -> bytes:
    return bytes(data[:12] + struct.pack(">I", crc32(data[16:])) + data[16:])


@pytest.mark.parametrize("magic", [0, 1])
def test_every_damaged_byte_is_noticed(magic: int) -> None:
    data = written(magic, codecs.GZIP, [(5, b"k", bytes(100))] * 3)
    for position in range(8, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x15
        with pytest.raises(BatchError):
            read(bytes(damaged))


@pytest.mark.parametrize("magic", [0, 1])
@given(body=st.binary(min_size=8, max_size=60), attributes=st.integers(0, 255))
def test_no_message_breaks_a_reader(magic: int, body: bytes, attributes: int) -> None:
    """Its checksum is right: it was written so."""
    rest = bytes([magic, attributes]) + bytes(8 * magic) + body
    data = struct.pack(">qiI", 3, len(rest) + 4, crc32(rest)) + rest
    try:
        read(data)
    except BatchError:
        return


def test_more_messages_than_memory_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "MOST_RECORDS", 2)
    with pytest.raises(BatchError, match="more than the 2 messages"):
        read(written(1, codecs.GZIP, [(5, b"k", bytes(100))] * 3))


def test_messages_that_are_compressed_twice_are_refused() -> None:
    once = written(1, codecs.GZIP, [(5, b"k", bytes(100))])
    (frame,) = frames_of(io.BytesIO(once))
    inner = codecs.compressed(codecs.GZIP, once)
    rest = once[16:26] + struct.pack(">i", -1) + struct.pack(">i", len(inner)) + inner
    data = struct.pack(">qiI", frame.offset, len(rest) + 4, crc32(rest)) + rest
    with pytest.raises(BatchError, match="compressed again"):
        read(data)
