"""Manifests and manifest lists decoded from memory, with PyIceberg's readers but with checks (C48).

    checksum known    the bytes are those that were written: PyIceberg's fast decoder
    not known         any bytes: a decoder with bounds checks, blocks that unpack to at most
                      `BLOCK_BYTES`, and a file that ends where a block does

PyIceberg's fast decoder reads past the end of its buffer where a length is wrong, and reads a cut file as
a shorter one. Beside the adapter the only module that uses private names of PyIceberg.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from pyiceberg.avro.codecs.deflate import DeflateCodec
from pyiceberg.avro.decoder import BinaryDecoder, StreamingBinaryDecoder, new_decoder
from pyiceberg.avro.file import SYNC_SIZE, AvroFile, Block
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.schema import Schema
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

BLOCK_BYTES = 64 * 2**20
"""No block of an Avro file unpacks to more: ours have one entry each, or one list."""
_NUMBER_BYTES = 10
"""Avro's longest number."""
SCHEMAS_KEPT = 64
SCHEMA_KEPT_LENGTH = 65_536
"""Schemas whose readers are cached, each of at most this number of characters: ours have some 8,000."""


def decoded_list(content: bytes, *, known: bool) -> tuple[dict[str, str], list[ManifestFile]]:
    """The header of a manifest list and its manifests. Raises any exception for other bytes."""
    return _decoded(content, _LIST, known=known)


def decoded_entries(content: bytes, manifest: ManifestFile, *, known: bool) -> list[ManifestEntry]:
    """The live entries of a manifest. Raises any exception for other bytes."""
    _, entries = _decoded(content, _ENTRIES, known=known)
    return [_inherit_from_manifest(entry, manifest) for entry in entries if entry.status != ManifestEntryStatus.DELETED]


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """What is read of a file: fields, and the types of their values by the field's id."""

    schema: Schema
    structs: dict[int, Callable[..., Any]]
    enums: dict[int, Callable[..., Any]]


_LIST = _Wanted(
    MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION],
    {-1: ManifestFile, 508: PartitionFieldSummary},
    {517: ManifestContent},
)
_ENTRIES = _Wanted(
    MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
    {-1: ManifestEntry, 2: DataFile},
    {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
)


def _decoded(content: bytes, wanted: _Wanted, *, known: bool) -> tuple[dict[str, str], list[Any]]:
    reader = _AvroFile if known else _BoundedAvroFile
    with reader(content, wanted) as file:
        return dict(file.header.meta), list(file)


@lru_cache(SCHEMAS_KEPT)
def _reader(written: str, wanted: _Wanted) -> Reader:
    """What reads the `wanted` fields of files with the schema that they were `written` with."""
    schema = AvroSchemaConversion().avro_to_iceberg(json.loads(written))
    return resolve_reader(schema, wanted.schema, wanted.structs, wanted.enums)


class _AvroFile(AvroFile[Any]):
    """An Avro file in memory. All manifests of a table have one schema, so a reader is made once and not for each."""

    __slots__ = ("_content", "_wanted")

    def __init__(self, content: bytes, wanted: _Wanted) -> None:
        self._content, self._wanted, self.block = content, wanted, None

    def __enter__(self) -> Self:
        self.decoder = self._decoder()
        self.header = self._read_header()
        written = self.header.meta["avro.schema"]
        reader = _reader if len(written) <= SCHEMA_KEPT_LENGTH else _reader.__wrapped__
        self.reader = reader(written, self._wanted)
        return self

    def _decoder(self) -> BinaryDecoder:
        return new_decoder(self._content)


class _BoundedAvroFile(_AvroFile):
    """An untrusted Avro file."""

    __slots__ = ()

    def _decoder(self) -> BinaryDecoder:
        return _BoundedDecoder(self._content)

    def _read_block(self) -> int:
        if self.block is not None and self._ended(self.block):
            raise EOFError  # at which PyIceberg's iteration ends
        try:
            records, packed = self.decoder.read_int(), self.decoder.read_bytes()
        except EOFError as error:
            raise ValueError("the file ends within a block") from error
        codec = self.header.compression_codec()
        data = packed if codec is None else _inflated(packed) if codec is DeflateCodec else codec.decompress(packed)
        last = len(self._content) - self.decoder.tell() == SYNC_SIZE
        if not (0 < records <= len(data) or (last and records == len(data) == 0)):
            raise ValueError(f"a block of {len(data)} bytes has {records} records")
        self.block = Block(reader=self.reader, block_records=records, block_decoder=_BoundedDecoder(data))
        return records

    def _ended(self, block: Block[Any]) -> bool:
        """Reads the end of a block that was read; whether it is the file's end."""
        assert isinstance(block.block_decoder, _BoundedDecoder)  # as `_read_block` made it
        if not block.block_decoder.at_end():
            raise ValueError("a block has more than its records")
        if len(self._content) - self.decoder.tell() < SYNC_SIZE or self.decoder.read(SYNC_SIZE) != self.header.sync:
            raise ValueError("a block does not end where its header states")
        return bool(self.decoder.tell() == len(self._content))


class _BoundedDecoder(StreamingBinaryDecoder):
    """A decoder that never moves back, nor beyond the end."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._left = len(content)

    def read(self, n: int) -> bytes:
        if n > self._left:
            raise EOFError(f"{n} bytes of {self._left}")
        content = super().read(n)
        self._left -= n
        return content

    def skip(self, n: int) -> None:
        self.read(n)

    def read_int(self) -> int:
        number = shift = 0
        for _ in range(_NUMBER_BYTES):
            byte = self.read(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return (number >> 1) ^ -(number & 1)
        raise ValueError("a number does not end")

    def at_end(self) -> bool:
        return self._left == 0


def _inflated(block: bytes) -> bytes:
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacking.decompress(block, BLOCK_BYTES)
    if not unpacking.eof:
        raise ValueError(f"a block does not end, or unpacks to more than {BLOCK_BYTES} bytes")
    return data
