"""Records read in plain Python: as compiled code reads them, and where a name of a header is not UTF-8."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log.batches.decoding import columns, records_of
from lithify.kafka_log.batches.encoding import encoded
from lithify.kafka_log.batches.frames import frames_of
from lithify.kafka_log.batches.header import HEADER_BYTES, BatchHeader
from lithify.kafka_log.batches.plain import RecordError, plain_records
from support.kafka.batches import tables, varint


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
