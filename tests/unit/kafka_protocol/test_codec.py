"""Requests and responses as bytes: what is written is read again, and bytes that are not one are refused."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.kafka_protocol.codec import (
    API_VERSIONS,
    RequestHeader,
    UnknownVersionError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from lithify.kafka_protocol.reading import MalformedError
from lithify.kafka_protocol.table import ARRAY, STRUCT, Field, apis

NUMBERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
EVERY = [(api.key, version) for api in apis().values() for version in range(api.first, api.last + 1)]
FETCH, METADATA = 1, 3


def values(field: Field, version: int) -> st.SearchStrategy:
    kind = field.kind.removeprefix(ARRAY)
    if kind == STRUCT:
        one = structures(field.fields, version)
    elif kind in NUMBERS:
        one = st.integers(-(2 ** (NUMBERS[kind] - 1)), 2 ** (NUMBERS[kind] - 1) - 1)
    else:
        one = {"bool": st.booleans(), "string": st.text(max_size=200), "uuid": st.binary(min_size=16, max_size=16)}.get(
            kind, st.binary(max_size=300)
        )
    whole = st.lists(one, max_size=3) if field.kind.startswith(ARRAY) else one
    return st.none() | whole if field.may_be_null(version) else whole


def structures(fields: tuple[Field, ...], version: int) -> st.SearchStrategy:
    return st.fixed_dictionaries({f.name: values(f, version) for f in fields if f.is_in(version)})


@settings(max_examples=150)
@given(st.data())
def test_what_is_written_is_read_again(data):
    key, version = data.draw(st.sampled_from(EVERY))
    request = data.draw(structures(apis()[key].request, version))
    response = data.draw(structures(apis()[key].response, version))
    header = RequestHeader(key, version, data.draw(st.integers(0, 2**31 - 1)), data.draw(st.none() | st.text()))
    assert decode_request(encode_request(header, request)[4:]) == (header, request)
    frame = b"".join(encode_response(key, version, 7, response))
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    assert decode_response(key, version, frame[4:]) == (7, response)


@pytest.mark.parametrize(("key", "version"), EVERY)
def test_what_is_not_named_has_the_default_of_kafka(key, version):
    _, request = decode_request(encode_request(RequestHeader(key, version, 1), {})[4:])
    fields = [field for field in apis()[key].request if field.is_in(version)]
    assert {name: value for name, value in request.items() if value != {}} == {
        field.name: field.default for field in fields if field.default != {} and field.kind != STRUCT
    } | {name: value for name, value in request.items() if isinstance(value, dict) and value}


@given(st.sampled_from(EVERY), st.binary(max_size=200))
def test_any_bytes_are_a_request_or_are_refused(which, data):
    frame = struct.pack(">hhi", *which, 1) + data
    with suppress(MalformedError):
        decode_request(frame)


@given(st.data())
def test_a_request_that_ends_too_early_is_refused(data):
    key, version = data.draw(st.sampled_from(EVERY))
    frame = encode_request(RequestHeader(key, version, 1, "me"), data.draw(structures(apis()[key].request, version)))[
        4:
    ]
    with pytest.raises(MalformedError):
        decode_request(frame[: data.draw(st.integers(8, len(frame) - 1))])


@pytest.mark.parametrize("count", [2**31 - 1, 1_000_000, -2])
def test_a_length_beyond_the_frame_is_not_believed(count):
    frame = struct.pack(">hhih", METADATA, 1, 1, -1) + struct.pack(">i", count)
    with pytest.raises(MalformedError):
        decode_request(frame)


def test_a_length_of_endless_bytes_is_refused():
    frame = struct.pack(">hhih", METADATA, 9, 1, -1) + b"\0" + b"\xff" * 100
    with pytest.raises(MalformedError, match="more than five bytes"):
        decode_request(frame)


@pytest.mark.parametrize(("key", "version"), [(METADATA, 99), (METADATA, -1), (9999, 0), (FETCH, 3)])
def test_a_version_that_kafka_does_not_have_is_named(key, version):
    with pytest.raises(UnknownVersionError) as raised:
        decode_request(struct.pack(">hhi", key, version, 5) + b"anything")
    assert (raised.value.header.api_key, raised.value.header.correlation_id) == (key, 5)


def test_bytes_after_a_request_are_not_looked_at():
    """As librdkafka sends them with Metadata for all topics, and a broker takes them."""
    frame = encode_request(RequestHeader(METADATA, 13, 1), {"topics": None})[4:]
    assert decode_request(frame + bytes(3)) == decode_request(frame)


def test_a_tag_that_is_not_known_is_passed_over():
    plain = encode_request(RequestHeader(METADATA, 12, 1), {"topics": None})[4:]
    assert plain.endswith(b"\0")
    _, request = decode_request(plain[:-1] + b"\1\x63\2hi")
    assert request["topics"] is None


def test_the_response_to_api_versions_has_a_header_without_tags():
    tagged = b"".join(encode_response(METADATA, 12, 1, {}))
    plain = b"".join(encode_response(API_VERSIONS, 3, 1, {"error_code": 0x0102}))
    assert tagged[8:9] == b"\0"
    assert plain[8:10] == b"\1\2"


def test_batches_are_passed_on_as_they_are():
    batches = [memoryview(bytes(5000)), memoryview(bytes(6000)), b"small"]
    partitions = [{"partition_index": n, "records": [batch]} for n, batch in enumerate(batches)]
    pieces = encode_response(FETCH, 12, 1, {"responses": [{"topic": "t", "partitions": partitions}]})
    assert [piece for piece in pieces if isinstance(piece, memoryview)] == batches[:2]
    assert all(piece is batch for piece, batch in zip(pieces[1::2], batches, strict=False))
    frame = b"".join(pieces)
    _, read = decode_response(FETCH, 12, frame[4:])
    assert [one["records"] for one in read["responses"][0]["partitions"]] == list(map(bytes, batches))
    assert sum(map(len, chain(pieces))) == len(frame)
