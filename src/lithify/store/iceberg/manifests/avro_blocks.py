"""The blocks of an Avro file whose checksum is known (C48): `columns` decodes what is in them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_MAGIC, _SYNC_BYTES = b"Obj\x01", 16
UNPACKED_BYTES = 2**30
"""No file unpacks to more: it has 64 MiB at most, and manifests unpack to some six times their size."""


@dataclass(frozen=True, slots=True)
class AvroFile:
    """The header of an Avro file, and its blocks unpacked, each with the number of its entries."""

    header: Mapping[str, str]
    blocks: Sequence[tuple[int, bytes]]

    @staticmethod
    def of(content: bytes) -> AvroFile:
        """Raises any exception for other bytes."""
        if not content.startswith(_MAGIC):
            raise ValueError("it is not an Avro file")
        header, at = {}, len(_MAGIC)
        pairs, at = _varint(content, at)
        while pairs:
            for _ in range(pairs):
                name, at = _text(content, at)
                header[name], at = _text(content, at)
            pairs, at = _varint(content, at)
        codec = header.get("avro.codec", "null")
        if codec not in _UNPACKED:
            raise ValueError(f"it is compressed with {codec}")
        return AvroFile(header, list(_blocks(content, at, _UNPACKED[codec])))

    @property
    def rows(self) -> int:
        return sum(rows for rows, _ in self.blocks)

    @property
    def unpacked_bytes(self) -> int:
        return sum(len(data) for _, data in self.blocks)


def _inflated(packed: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    data = inflater.decompress(packed, most + 1)
    if len(data) <= most and not inflater.eof:
        raise ValueError("packed data does not end")
    return data


_UNPACKED: Mapping[str, Callable[[bytes, int], bytes]] = {"null": lambda data, _most: data, "deflate": _inflated}
"""By codec, the bytes of a block; of one that has more than so many perhaps only the first of them."""


def _blocks(content: bytes, at: int, unpacked: Callable[[bytes, int], bytes]) -> Iterator[tuple[int, bytes]]:
    sync, at, left = content[at : at + _SYNC_BYTES], at + _SYNC_BYTES, UNPACKED_BYTES
    if len(sync) < _SYNC_BYTES:
        raise ValueError("the file ends within its header")
    while at < len(content):
        rows, at = _varint(content, at)
        size, at = _varint(content, at)
        end = at + size
        if rows < 0 or size < 0 or content[end : end + _SYNC_BYTES] != sync:
            raise ValueError("a block does not end where its header states")
        data = unpacked(content[at:end], left)
        left -= len(data)
        if left < 0:
            raise ValueError(f"it unpacks to more than {UNPACKED_BYTES} bytes")
        if rows > len(data):
            raise ValueError(f"a block of {len(data)} bytes has {rows} entries")
        yield rows, data
        at = end + _SYNC_BYTES


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _text(content: bytes, at: int) -> tuple[str, int]:
    size, at = _varint(content, at)
    if not 0 <= size <= len(content) - at:
        raise ValueError("a text does not end")
    return content[at : at + size].decode(), at + size
