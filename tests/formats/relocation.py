"""Moves a stored warehouse to where a test wants it.

Iceberg names files by absolute path, in four kinds of files:

    catalog.db      SQLite: where the newest metadata.json of each table is
    *.json          metadata, and Lithify's records of versions
    *.avro          manifests and manifest lists, in blocks that are compressed
    *.parquet       none

A stored warehouse was written at a path of `PATH_LENGTH` bytes and is unpacked to another one of
exactly that length, so that a path is replaced by one that is as long, and the Avro records around
it stay valid without being understood.
"""

from __future__ import annotations

import sqlite3
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

PATH_LENGTH = 200
STORED_AT = "stored-at.txt"
"""In the archive, beside the warehouse: the path at which it was written."""
CATALOG = "catalog.db"

_AVRO_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16


def padded(folder: Path) -> Path:
    """A path below `folder` that is exactly `PATH_LENGTH` bytes long."""
    missing = PATH_LENGTH - len(str(folder).encode()) - 1
    if not 0 < missing < 256:
        raise ValueError(f"{folder} leaves no room for a path of {PATH_LENGTH} bytes")
    return folder / ("w" * missing)


def pack(warehouse: Path, archive: Path) -> None:
    """Stores a warehouse that was written at a padded path; files in a fixed order, with a fixed date."""
    if len(str(warehouse).encode()) != PATH_LENGTH:
        raise ValueError(f"{warehouse} is not {PATH_LENGTH} bytes long")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as stored:
        stored.writestr(zipfile.ZipInfo(STORED_AT), str(warehouse))
        for file in sorted(path for path in warehouse.rglob("*") if path.is_file() and path.suffix != ".lock"):
            info = zipfile.ZipInfo(str(file.relative_to(warehouse)))
            stored.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def unpack(archive: Path, folder: Path) -> Path:
    """The stored warehouse below `folder`, with every path in it made to fit. Returns where it is."""
    warehouse = padded(folder)
    with zipfile.ZipFile(archive) as stored:
        old, new = stored.read(STORED_AT), str(warehouse).encode()
        stored.extractall(warehouse, [name for name in stored.namelist() if name != STORED_AT])
    for file in warehouse.rglob("*"):
        if file.suffix == ".json":
            file.write_bytes(file.read_bytes().replace(old, new))
        elif file.suffix == ".avro":
            file.write_bytes(relocated_avro(file.read_bytes(), old, new))
    with sqlite3.connect(warehouse / CATALOG) as catalog:
        for column in ("metadata_location", "previous_metadata_location"):
            catalog.execute(
                f"UPDATE iceberg_tables SET {column} = replace({column}, ?, ?)", (old.decode(), new.decode())
            )
        catalog.execute(
            "UPDATE iceberg_namespace_properties SET property_value = replace(property_value, ?, ?)",
            (old.decode(), new.decode()),
        )
    catalog.close()
    return warehouse


@dataclass(frozen=True)
class Block:
    """A block of an Avro file, unpacked."""

    records: int
    data: bytes

    def with_data(self, data: bytes) -> Block:
        return Block(self.records, data)


@dataclass(frozen=True)
class AvroParts:
    """An Avro container file, as far as its blocks."""

    header: dict[bytes, bytes]
    sync: bytes
    blocks: list[Block]

    @staticmethod
    def of(content: bytes) -> AvroParts:
        if not content.startswith(_AVRO_MAGIC):
            raise ValueError("not an Avro container file")
        header, at = _read_map(content, len(_AVRO_MAGIC))
        sync = content[at : at + _SYNC_BYTES]
        at += _SYNC_BYTES
        blocks = []
        while at < len(content):
            records, at = read_long(content, at)
            size, at = read_long(content, at)
            blocks.append(Block(records, _decoded(content[at : at + size], header.get(b"avro.codec", b"null"))))
            at += size + _SYNC_BYTES
        return AvroParts(header, sync, blocks)

    def written(self, header: dict[bytes, bytes], blocks: list[Block]) -> bytes:
        """A file like this one, with another header and other blocks."""
        parts = [_AVRO_MAGIC, written_long(len(header))]
        parts += [written_long(len(text)) + text for pair in header.items() for text in pair]
        parts += [written_long(0), self.sync]
        for block in blocks:
            encoded = _encoded(block.data, header.get(b"avro.codec", b"null"))
            parts += [written_long(block.records), written_long(len(encoded)), encoded, self.sync]
        return b"".join(parts)


def relocated_avro(content: bytes, old: bytes, new: bytes) -> bytes:
    """An Avro container file with `old` replaced by `new`, which is as long, also inside of its blocks."""
    avro = AvroParts.of(content)
    return avro.written(avro.header, [block.with_data(block.data.replace(old, new)) for block in avro.blocks])


def _decoded(block: bytes, codec: bytes) -> bytes:
    match codec:
        case b"null":
            return block
        case b"deflate":
            return zlib.decompress(block, -zlib.MAX_WBITS)
    raise ValueError(f"Avro codec {codec!r}")


def _encoded(block: bytes, codec: bytes) -> bytes:
    if codec == b"null":
        return block
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(block) + compressor.flush()


def _read_map(content: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """An Avro map of bytes: blocks of pairs, ended by an empty one."""
    found: dict[bytes, bytes] = {}
    while True:
        count, at = read_long(content, at)
        if count == 0:
            return found, at
        if count < 0:  # then the block's size in bytes follows
            count = -count
            _, at = read_long(content, at)
        for _ in range(count):
            pair = []
            for _ in range(2):
                size, at = read_long(content, at)
                pair.append(content[at : at + size])
                at += size
            found[pair[0]] = pair[1]


def read_long(content: bytes, at: int) -> tuple[int, int]:
    """Avro's number: seven bits a byte, lowest first, zigzag."""
    number = shift = 0
    while True:
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at


def written_long(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)
