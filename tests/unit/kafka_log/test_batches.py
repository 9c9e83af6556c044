"""Record batches: what is written is read, by us and by another reader; what is damaged or hostile is refused."""

from __future__ import annotations

import io
import zlib
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log.batches import codecs
from lithify.kafka_log.batches.codecs import NAMES, CodecError, compressed, decompressed
from lithify.kafka_log.batches.decoding import (
    EndKind,
    Gathered,
    Placed,
    TransactionEnd,
    header_of,
    records_of,
    transaction_end_of,
)
from lithify.kafka_log.batches.encoding import BatchLimits, empty_batch, encoded
from lithify.kafka_log.batches.frames import BatchError, frames_of
from lithify.kafka_log.batches.header import BatchHeader
from support.kafka.batches import columns_of, control_batch, table_of, tables, transaction_end, varint


def read(data: bytes) -> pa.RecordBatch:
    return columns_of(frames_of(io.BytesIO(data)))


@given(tables(), st.integers(0, 5), st.sampled_from(sorted(NAMES)), st.integers(1, 8), st.integers(1, 200))
def test_what_is_written_is_read(table: pa.RecordBatch, start: int, codec: int, most: int, size: int) -> None:
    table = table.slice(start)
    batches = [*encoded(table, codec=codec, leader_epoch=7, limits=BatchLimits(most, size))]
    assert read(b"".join(batches)) == table
    frames = [frame for data in batches for frame in frames_of(io.BytesIO(data))]
    assert [frame.data for frame in frames] == batches
    headers = [header_of(frame) for frame in frames]
    assert all(header.last_offset < after.base_offset for header, after in pairwise(headers))
    assert all((h.codec, h.leader_epoch) == (codec, 7) and h.records <= most for h in headers)
    assert {h.last_offset for h in headers[-1:]} == {*table.column("offset").to_pylist()[-1:]}


@given(tables(), st.sampled_from(sorted(NAMES)))
def test_another_reader_reads_the_same(table: pa.RecordBatch, codec: int) -> None:
    """But for times of batches of LogAppendTime without one, which it does not see."""
    no_time = pc.and_(pc.equal(table.column(1), -1), pc.equal(table.column(2), 1))
    table = table.set_column(1, table.schema.field(1), pc.if_else(no_time, 0, table.column(1)))
    theirs, found = MemoryRecords(b"".join(encoded(table, codec=codec))), Gathered()
    while theirs.has_next():
        batch = theirs.next_batch()
        assert batch is not None and batch.validate_crc()
        found.add(Placed.of([*batch]))
    assert found.columns() == table


def test_a_batch_without_records_takes_a_reader_to_its_end() -> None:
    (frame,) = frames_of(io.BytesIO(empty_batch(5, 9, leader_epoch=3)))
    header = header_of(frame)
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.records) == (5, 9, 3, 0)
    assert not records_of(frame)


@pytest.mark.parametrize("kind", EndKind)
def test_markers(kind: EndKind) -> None:
    (frame,) = frames_of(io.BytesIO(transaction_end(11, 77, kind)))
    assert transaction_end_of(frame) == TransactionEnd(11, 77, kind)
    (other,) = frames_of(io.BytesIO(transaction_end(11, 77, 2)))
    assert transaction_end_of(other) is None
    (short,) = frames_of(io.BytesIO(control_batch(11, 77, b"\0")))
    with pytest.raises(BatchError, match="control record"):
        transaction_end_of(short)


def test_every_damaged_byte_is_noticed() -> None:
    """But for those that brokers set: the base offset and the leader epoch."""
    table = table_of([(n, 1000 + n, 0, b"k%d" % n, b"v" * n, None) for n in range(5)])
    (data,) = encoded(table, codec=codecs.ZSTD)
    for position in [*range(8, 12), *range(16, len(data))]:
        damaged = bytearray(data)
        damaged[position] ^= 0x15
        with pytest.raises(BatchError):
            read(bytes(damaged))


@given(tables(), st.data())
def test_a_file_that_ends_too_early_has_a_torn_tail(table: pa.RecordBatch, draw: st.DataObject) -> None:
    batches = [*encoded(table, limits=BatchLimits(records=3))]
    whole = b"".join(batches)
    end = draw.draw(st.integers(0, len(whole)))
    found, torn = [], None
    try:
        found += [frame.data for frame in frames_of(io.BytesIO(whole[:end]))]
    except BatchError as error:
        torn = error
    before = b"".join(found)
    assert whole.startswith(before)
    assert (torn is None) == (before == whole[:end])
    assert torn is None or torn.is_torn


@given(tables(), st.data())
def test_frames_before_a_damaged_one_are_read(table: pa.RecordBatch, draw: st.DataObject) -> None:
    batches = [*encoded(table, limits=BatchLimits(records=3))]
    found = []
    with pytest.raises(BatchError) as told:
        for frame in frames_of(io.BytesIO(b"".join(batches) + bytes(17))):
            found.append(frame.data)
    assert found == batches
    assert told.value.position == sum(map(len, batches)) and not told.value.is_torn


def bomb(codec: int) -> bytes:
    if codec == codecs.SNAPPY:
        size = codecs.LARGEST_RECORDS_BYTES + 1
        varint = b"".join(bytes([(size >> shift) & 0x7F | (0x80 if shift < 28 else 0)]) for shift in range(0, 35, 7))
        return varint + bytes(size // 64 + 64)
    return compressed(codec, bytes(codecs.LARGEST_RECORDS_BYTES + 1))


@pytest.mark.parametrize("codec", [codec for codec in NAMES if codec != codecs.NO_CODEC])
def test_what_becomes_too_large_is_refused(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "LARGEST_RECORDS_BYTES", 2**20)
    assert decompressed(codec, compressed(codec, bytes(2**20))) == bytes(2**20)
    with pytest.raises(CodecError, match="more than the 1048576 bytes"):
        decompressed(codec, bomb(codec))


@pytest.mark.parametrize("codec", [*NAMES, 5, 7])
@given(data=st.binary(max_size=60))
def test_no_bytes_break_a_codec(codec: int, data: bytes) -> None:
    for given_bytes in (data, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + data):
        try:
            decompressed(codec, given_bytes)
        except CodecError:
            continue
        assert codec in NAMES


@given(st.binary(max_size=80), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_no_body_breaks_a_reader(body: bytes, count: int, last: int) -> None:
    """Its checksum is right: it was written so."""
    data = BatchHeader(5, last, 0, 0, count).with_records(body)
    (frame,) = frames_of(io.BytesIO(data))
    try:
        found = records_of(frame)
    except BatchError:
        return
    assert len(found) == count
    assert all(5 <= record.offset <= 5 + last for record in found)


@pytest.mark.parametrize("size", [2**63 - 1, 2**63 - 40, 2**62, 2**31, -(2**63)])
@pytest.mark.parametrize(
    "before",
    [varint(0) * 3, varint(0) * 3 + varint(-1), b"\0\0\0\1\1\2", b"\0\0\0\1\1\2\2k", b"\0\0", b"\0", b""],
    ids=["key", "value", "header name", "header value", "offset", "time", "attributes"],
)
def test_no_size_in_a_record_breaks_a_reader(before: bytes, size: int) -> None:
    record = before + varint(size) + bytes(30)
    (frame,) = frames_of(io.BytesIO(BatchHeader(5, 0, 0, 0, 1).with_records(varint(len(record)) + record)))
    with pytest.raises(BatchError):
        records_of(frame)


@pytest.mark.parametrize("codec", NAMES)
def test_a_batch_without_records_is_read_whatever_its_codec(codec: int) -> None:
    (frame,) = frames_of(io.BytesIO(BatchHeader(5, 3, 0, 0, 0, attributes=codec).with_records(b"")))
    assert not records_of(frame)


def test_raw_snappy_of_other_clients() -> None:
    raw = pa.Codec("snappy").compress(b"abc" * 100, asbytes=True)
    assert decompressed(codecs.SNAPPY, raw) == b"abc" * 100


def test_streams_in_several_parts() -> None:
    twice = zlib.compress(b"a", wbits=31) + zlib.compress(b"b", wbits=31)
    assert decompressed(codecs.GZIP, twice) == b"ab"


def test_records_at_the_last_offsets_are_written() -> None:
    first = 2**63 - 10
    table = table_of([(offset, 1, 0, b"k", b"v", None) for offset in (first - 2**32, first, first + 8)])
    headers = [BatchHeader.parsed(data) for data in encoded(table)]
    assert [(header.base_offset, header.last_offset_delta) for header in headers] == [(first - 2**32, 0), (first, 8)]
