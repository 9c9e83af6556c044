"""An Arrow stream that anyone may have made, as a table: checked so that it takes no more memory than its bytes do.

compressed buffers          refused, also in the way of Arrow 0.17: a few bytes may become gigabytes
dictionaries, views, ...    refused: many values may be the same bytes
offsets, lengths, text      checked, as Arrow itself trusts them
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa

from lithify.errors import InvalidInputError

RECORDS = 1_000_000
"""The most in one request: null columns have records without any bytes."""
_types = pa.types


def _is_timestamp(kind: pa.DataType) -> bool:
    """Raises `UnicodeDecodeError` for a time zone that is not UTF-8."""
    return _types.is_timestamp(kind) and isinstance(kind.tz, str | None)


_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (
    _types.is_binary,
    _types.is_string,
    _types.is_large_binary,
    _types.is_large_string,
    _types.is_integer,
    _types.is_boolean,
    _is_timestamp,
)
_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (_types.is_list, _types.is_large_list, _types.is_map)
_HEADER, _COMPRESSION = 2, 3
"""Numbers of fields in the tables `Message` and `RecordBatch` of Arrow's format."""
_COMPRESSION_TOO = b"ARROW:experimental_compression"
"""The key by which a message of Arrow 0.17 names its codec, in metadata beside those tables: it is still read."""


def table_of_stream(body: bytes) -> pa.Table:
    """The records of an Arrow IPC stream. Raises `InvalidInputError`."""
    try:
        return _checked(body)
    except (pa.ArrowException, struct.error, OSError, OverflowError, MemoryError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInputError(
            f"the body of the request is not an Arrow IPC stream: {reason}",
            hint="write it with `pyarrow.ipc.new_stream`; nothing was appended",
        ) from None


def _checked(body: bytes) -> pa.Table:
    for message in pa.ipc.MessageReader.open_stream(body):
        metadata = memoryview(message.metadata)
        if message.type == "record batch" and (_COMPRESSION_TOO in bytes(metadata) or _is_compressed(metadata)):
            raise InvalidInputError("the Arrow stream is compressed", hint="send it without compression")
    batches, records = [], 0
    with pa.ipc.open_stream(body) as stream:
        for field in stream.schema:
            name = field.name  # raises where it is not UTF-8, as `_is_plain` does for names within
            if not (_types.is_null(field.type) or _is_plain(field.type)):
                raise InvalidInputError(
                    f"the column {name!r} of type {field.type} is not accepted in a stream",
                    hint="cast it to binary, string or integers; headers are lists of structs of key and value",
                )
        for batch in stream:
            records += batch.num_rows
            if records > RECORDS:
                raise InvalidInputError(f"the request has more than {RECORDS:,} records", hint="send fewer at once")
            batch.validate(full=True)
            batches.append(batch)
        return pa.Table.from_batches(batches, stream.schema)


def _is_plain(kind: pa.DataType) -> bool:
    if any(is_kind(kind) for is_kind in _LISTS):
        return all(_is_named(kind.field(n)) for n in range(kind.num_fields))
    if _types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_named(field) for field in kind)
    return any(is_kind(kind) for is_kind in _PLAIN)


def _is_named(field: pa.Field) -> bool:
    """Whether it is plain. Raises `UnicodeDecodeError` for a name that is not UTF-8."""
    return isinstance(field.name, str) and _is_plain(field.type)


def _is_compressed(metadata: memoryview) -> bool:
    """Whether a record batch has compressed buffers, by the table of flatbuffers that describes it."""
    (message,) = struct.unpack_from("<I", metadata)
    return _field(metadata, _target(metadata, _field(metadata, message, _HEADER)), _COMPRESSION) != 0


def _field(metadata: memoryview, table: int, number: int) -> int:
    """The place of a field of a table; 0 if the table does not have it."""
    (back,) = struct.unpack_from("<i", metadata, table)
    (size,) = struct.unpack_from("<H", metadata, table - back)
    entry = 4 + 2 * number
    if entry + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, table - back + entry)
    return table + int(offset) if offset else 0


def _target(metadata: memoryview, place: int) -> int:
    return place + int(struct.unpack_from("<I", metadata, place)[0])
