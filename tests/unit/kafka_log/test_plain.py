"""Records read in plain Python: as compiled code reads them, and where a name of a header is not UTF-8."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log.batches import decoding
from lithify.kafka_log.batches.codecs import ZSTD, compressed
from lithify.kafka_log.batches.decoding import records_of
from lithify.kafka_log.batches.encoding import encoded
from lithify.kafka_log.batches.frames import MOST_RECORDS, BatchError, frames_of
from lithify.kafka_log.batches.header import HEADER_BYTES, BatchHeader
from lithify.kafka_log.batches.plain import RecordError, check_headers, plain_records
from support.kafka.batches import columns, table_of, tables, varint


@given(tables(), st.sampled_from([-1, 0, 2**63 - 1, -(2**63)]))
def test_they_are_those_that_compiled_code_reads(table: pa.RecordBatch, base_ms: int) -> None:
    for data in encoded(table):
        header = replace(BatchHeader.parsed(data), base_timestamp=base_ms)
        (frame,) = frames_of(io.BytesIO(header.with_records(data[HEADER_BYTES:])))
        assert columns(plain_records(header, data[HEADER_BYTES:])) == columns(records_of(frame))


def test_names_of_headers_that_are_not_utf_8() -> None:
    """Java's client reads them so."""
    record = b"\0\0\0\2k\2v\6\4\xff\xfe\1\4\xe3\xa9\2x\2a\0"
    (frame,) = frames_of(io.BytesIO(BatchHeader(5, 0, 7, 7, 1).with_records(varint(len(record)) + record)))
    (found,) = columns(records_of(frame)).to_pylist()
    assert (found["offset"], found["timestamp"], found["key"], found["value"]) == (5, 7, b"k", b"v")
    assert [(h["key"], h["value"]) for h in found["headers"]] == [("\ufffd\ufffd", None), ("\ufffd", b"x"), ("a", b"")]


@given(st.binary(max_size=60), st.integers(0, 3), st.booleans())
def test_no_body_breaks_the_reader(body: bytes, count: int, framed: bool) -> None:
    given_body = varint(len(body)) + body if framed else body
    try:
        found = plain_records(BatchHeader(5, 9, -1, -1, count), given_body)
    except RecordError:
        return
    assert len(found) == count
    columns(found)


@pytest.mark.parametrize(
    "body", [b"\xff" * 30, b"\x0e\0\0\0\1\1\2\1\1", b"\x0c\0\0\0\1\1\x7e", b"\x0c\0\0\0\1\1\0\0", b"\0"]
)
def test_what_is_no_record(body: bytes) -> None:
    with pytest.raises(RecordError):
        plain_records(BatchHeader(5, 9, 0, 0, 1), body)


def one_record(headers: int) -> bytes:
    record = b"\0\0\0\1\1" + varint(headers) + b"\0\1" * headers
    return varint(len(record)) + record


def test_more_records_or_headers_than_memory_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They compress to a thousandth, and are a hundred times as large in memory."""
    monkeypatch.setattr(decoding, "_CHECKED_BYTES", 0)
    many = compressed(ZSTD, one_record(MOST_RECORDS + 1))
    assert len(many) < 1000
    for count, body, told in ((1, many, "1000000 headers"), (MOST_RECORDS + 1, b"", "1000001 records")):
        (frame,) = frames_of(io.BytesIO(BatchHeader(5, 0, 0, 0, count, attributes=ZSTD).with_records(body)))
        with pytest.raises(BatchError, match=told):
            records_of(frame)
    table = table_of([(n, 0, 0, b"k", b"v" * n, [{"key": "a", "value": b"b"}] * n) for n in range(1, 5)])
    (data,) = encoded(table)
    (frame,) = frames_of(io.BytesIO(data))
    assert columns(records_of(frame)) == table


@given(st.binary(max_size=60), st.integers(0, 3))
def test_no_body_breaks_the_check(body: bytes, count: int) -> None:
    with suppress(RecordError):
        check_headers(count, varint(len(body)) + body)
