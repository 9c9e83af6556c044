"""Frames: a request with its header, and its response.

    length (4)   key (2)   version (2)   correlation id (4)   client id   tags   ║ body       a request
    length (4)                           correlation id (4)               tags   ║ body       a response

Headers have tags in flexible versions. The response to ApiVersions has none: a client reads it before it knows which
versions the server has.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from lithify.kafka_protocol.reading import MalformedError, Reader, struct_reader
from lithify.kafka_protocol.table import Field, apis
from lithify.kafka_protocol.writing import Pieces, Writer, struct_writer

API_VERSIONS: Final = 18
_START, _LENGTH = struct.Struct(">hhi"), struct.Struct(">i")
_LARGE_BYTES: Final = 4096
"""A buffer of this size is passed on by itself, smaller ones are joined."""
_CLIENT_ID: Final = Field("client_id", "string", 0, None, None, 0, None, ())
_CORRELATION_ID: Final = Field("correlation_id", "int32", 0, None, 0, None, None, ())


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What a request says of itself."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None = None


class UnknownVersionError(ValueError):
    """A request in a version that the table does not have, or of an unknown key."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"key {header.api_key} in version {header.version}")
        self.header = header


def decode_request(data: bytes) -> tuple[RequestHeader, dict[str, Any]]:
    """A frame without its length. Raises `MalformedError` or `UnknownVersionError`.

    Bytes that follow the request are ignored, as a broker does: librdkafka sends 3 with Metadata for all topics.
    """
    try:
        key, version, correlation_id = _START.unpack_from(data)
        api = apis().get(key)
        if api is None or not api.first <= version <= api.last:
            raise UnknownVersionError(RequestHeader(key, version, correlation_id))
        header, body = _request_readers(key, version)
        named, at = header(data, _START.size)
        value, _ = body(data, at)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedError(f"the frame ends too early, or has text that is not UTF-8: {error}") from None
    return RequestHeader(key, version, correlation_id, named["client_id"]), value


def encode_response(key: int, version: int, correlation_id: int, body: Mapping[str, Any]) -> Pieces:
    """The frame with its length, as buffers to be sent one after the other."""
    header, write = _response_writers(key, version)
    pieces: Pieces = []
    header(pieces, {"correlation_id": correlation_id})
    write(pieces, body)
    return joined([_LENGTH.pack(sum(map(len, pieces))), *pieces])


def encode_request(header: RequestHeader, body: Mapping[str, Any]) -> bytes:
    """A frame with its length, as clients send it."""
    api = apis()[header.api_key]
    flexible = api.is_flexible(header.version)
    pieces: Pieces = [_START.pack(header.api_key, header.version, header.correlation_id)]
    # The client id has the long form of a length in every version.
    struct_writer([_CLIENT_ID], 0, flexible=False)(pieces, {"client_id": header.client_id})
    struct_writer([], 0, flexible=flexible)(pieces, {})
    struct_writer(api.request, header.version, flexible=flexible)(pieces, body)
    return _LENGTH.pack(sum(map(len, pieces))) + b"".join(pieces)


def decode_response(key: int, version: int, data: bytes) -> tuple[int, dict[str, Any]]:
    """The correlation id and the body of a frame without its length."""
    api = apis()[key]
    flexible = api.is_flexible(version)
    named, at = struct_reader([_CORRELATION_ID], 0, flexible=flexible and key != API_VERSIONS)(data, 0)
    value, at = struct_reader(api.response, version, flexible=flexible)(data, at)
    if at != len(data):
        raise MalformedError(f"{len(data) - at} bytes follow the response")
    return named["correlation_id"], value


def joined(pieces: Pieces) -> Pieces:
    """The same bytes in fewer buffers."""
    together: Pieces = []
    small: Pieces = []
    for piece in pieces:
        if len(piece) < _LARGE_BYTES:
            small.append(piece)
            continue
        together += (b"".join(small), piece)
        small = []
    return [*together, b"".join(small)]


@cache
def _request_readers(key: int, version: int) -> tuple[Reader, Reader]:
    api = apis()[key]
    flexible = api.is_flexible(version)
    client, tags = struct_reader([_CLIENT_ID], 0, flexible=False), struct_reader([], 0, flexible=flexible)

    def header(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        named, at = client(data, at)
        return named, tags(data, at)[1]

    return header, struct_reader(api.request, version, flexible=flexible)


@cache
def _response_writers(key: int, version: int) -> tuple[Writer, Writer]:
    api = apis()[key]
    flexible = api.is_flexible(version)
    header = struct_writer([_CORRELATION_ID], 0, flexible=flexible and key != API_VERSIONS)
    return header, struct_writer(api.response, version, flexible=flexible)
