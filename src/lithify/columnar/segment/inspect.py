"""Reads a whole data file to check its facts and its order, and computes a digest of each record.

The digest covers every field of a record, so that records of one offset in two files can be compared without
their values. Orders in headers (C10) are computed by SQL, independently of the code that rounds use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex.key_index import KeyIndexProof
from lithify.columnar.segment.chunk_keys import CHUNK_KEY, chunk_keys, has_only_chunks
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.facts import wrong_facts
from lithify.columnar.segment.mask_file import read_mask
from lithify.columnar.segment.schema import (
    ENVELOPE_COLUMNS,
    KEY,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    VALUE,
    VALUE_SIZE,
)
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.errors import DamagedError
from lithify.model.finding import Finding, FindingKind, TombstoneCount
from lithify.model.segment import Segment

DIGESTS = pa.schema(
    [
        pa.field("offset", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value_size", pa.int32()),
        pa.field("timestamp", pa.int64()),
        pa.field("passed_through", pa.bool_()),
        pa.field(CHUNK_KEY, pa.binary()),
        pa.field("digest", pa.int64()),
        pa.field("orders", pa.list_(pa.int64())),
    ]
)
"""One row per record; `orders` has one element per requested header, null if the record lacks it. `chunk_key` is the
key of the message that the record is a chunk of."""

_DIGEST = """
SELECT "offset", key, value_size, "timestamp", {passed_through} AS passed_through,
       {chunk_key} AS chunk_key,
       (hash("timestamp", timestamp_type, key, value, value_size, headers{envelope}) >> 1)::BIGINT AS digest,
       [{orders}]::BIGINT[] AS orders
FROM records
"""

_ORDER = """
(SELECT CASE WHEN octet_length(last) <> 8 THEN NULL
             WHEN last >= '\\x80'::BLOB THEN (('0x' || hex(last))::UBIGINT::HUGEINT - 18446744073709551616)::BIGINT
             ELSE ('0x' || hex(last))::UBIGINT::BIGINT END
 FROM (SELECT list_filter(headers, lambda h: h.key = {name})[-1].value AS last))
"""

_IN_MEMORY = {"threads": 1, "temp_directory": ""}
"""A row group fits into memory; without this DuckDB could spill records into the current folder."""


@dataclass(frozen=True, slots=True)
class TombstonesOf:
    """The number of tombstones of a segment in each of the given steps, and above the last."""

    partition: int
    counts: tuple[int, ...]


Piece: TypeAlias = pa.Table | Finding | TombstonesOf


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to find of a segment: tombstones if `count` is given, digests unless `headers` is None.

    `headers` names the headers that hold orders.
    """

    segment: Segment
    headers: Sequence[str] | None = None
    count: TombstoneCount | None = None


def inspect_segment(
    access: FileAccess,
    segment: Segment,
    headers: Sequence[str] | None,
    count: TombstoneCount | None,
    acquire: Callable[[int], None] = lambda _count: None,
) -> Iterator[Piece]:
    """What `inspect_file` yields of one segment."""
    return (piece for _, piece in inspect_file(access, [Wanted(segment, headers, count)], acquire))


def inspect_file(
    access: FileAccess, wanted: Sequence[Wanted], acquire: Callable[[int], None]
) -> Iterator[tuple[int, Piece]]:
    """Reads a data file once, for the segments that it is, each with a mask of its own or none.

    Yields findings about the file and the masks, `DIGESTS` by row group, and tombstones, each with the number in
    `wanted` of what it is of. If a mask is damaged, it is not known which records are left, and only the file is
    checked. Damage is yielded as a finding, not raised. `acquire`, a throttle, is called with the compressed bytes of
    each mask, and of each row group, before they are read.
    """
    parts: list[_Part] = []
    for number, one in enumerate(wanted):
        segment = one.segment
        if segment.mask is not None:
            acquire(segment.mask.size_bytes)
        try:
            parts.append(_Part(number, one, read_mask(access, segment)))
        except DamagedError as error:
            yield number, _damage(segment.partition, segment.id, error)
    yield from _inspect(access, wanted, parts, acquire)


class _Part:
    """What is found of one segment of a file, without its masked records."""

    def __init__(self, number: int, wanted: Wanted, masked: BitMap) -> None:
        self.number = number
        self.headers = wanted.headers
        self._count = wanted.count
        self._masked = masked
        self._tombstones = np.zeros(0 if wanted.count is None else len(wanted.count.step_ends) + 1, np.int64)

    def pieces(self, records: pa.Table, digests: pa.Table | None, first: int) -> Iterator[tuple[int, Piece]]:
        """The digests of what is left of some records, whose first is number `first` of the file; counts tombstones."""
        last = first + records.num_rows
        if self._masked.range_cardinality(first, last):
            left = pa.array(~DeadPositions(self._masked).flags(first, last))
            records = records.select([OFFSET, KEY, VALUE_SIZE]).filter(left)
            digests = None if digests is None else digests.filter(left)
        if self._count is not None:
            self._tombstones += _tombstones(records, self._count)
        if self.headers is not None and digests is not None and digests.num_rows:
            yield self.number, digests

    def tombstones(self, partition: int) -> Iterator[tuple[int, Piece]]:
        if self._count is not None:
            yield self.number, TombstonesOf(partition, tuple(self._tombstones.tolist()))


def _inspect(
    access: FileAccess, wanted: Sequence[Wanted], parts: Sequence[_Part], acquire: Callable[[int], None]
) -> Iterator[tuple[int, Piece]]:
    """All records of the file that `wanted` share, of which `parts` have some each."""
    segment = wanted[0].segment.unmasked
    headers = next((part.headers for part in parts if part.headers is not None), None)
    digesting: AbstractContextManager[duckdb.DuckDBPyConnection | None] = (
        nullcontext() if headers is None else duckdb.connect(config=_IN_MEMORY)  # which takes longer than small files
    )
    try:
        with SegmentReader(access, segment) as reader, digesting as connection:
            facts = reader.facts()
            yield from ((n, finding) for n, one in enumerate(wanted) for finding in wrong_facts(one.segment, facts))
            acquire(reader.check_end())
            index = reader.key_index()
            proof = None if index is None else index.proof()
            digest, last, first = _digest(headers or (), reader.schema), -1, 0
            for group in range(reader.row_groups):
                acquire(reader.compressed_bytes(group, reader.schema.names))
                records = reader.read(group, reader.schema.names)
                yield from ((0, finding) for finding in _wrong_rows(segment, records, last))
                if proof is not None:
                    yield from ((0, one) for one in _wrong_index(segment, records, proof, reader.positions(group)))
                last = records.column(OFFSET)[-1].as_py()
                digests = None if connection is None else _digested(connection, digest, records)
                for part in parts:
                    yield from part.pieces(records, digests, first)
                first += records.num_rows
    except DamagedError as error:
        yield 0, _damage(segment.partition, segment.path, error)
    else:
        for part in parts:
            yield from part.tombstones(segment.partition)


def _digest(headers: Sequence[str], schema: pa.Schema) -> str:
    has_envelopes = PASSED_THROUGH in schema.names
    return _DIGEST.format(
        orders=", ".join(_ORDER.format(name=_quoted(name)) for name in headers),
        passed_through=PASSED_THROUGH if has_envelopes else "NULL::BOOLEAN",
        chunk_key=CHUNK_KEY if has_envelopes else "NULL::BLOB",
        envelope="".join(f", {name}" for name in ENVELOPE_COLUMNS) if has_envelopes else "",
    )


def _digested(connection: duckdb.DuckDBPyConnection, digest: str, records: pa.Table) -> pa.Table:
    """In the order of the records, which DuckDB preserves."""
    if PASSED_THROUGH in records.column_names:
        records = records.append_column(CHUNK_KEY, chunk_keys(records))
    connection.register("records", records)
    return connection.execute(digest).to_arrow_table().cast(DIGESTS)


def _wrong_index(
    segment: Segment, records: pa.Table, proof: KeyIndexProof, positions: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Iterator[Finding]:
    """A finding if the index of keys says anything else of these records."""
    keys, sizes = (records.column(name).combine_chunks() for name in (KEY, VALUE_SIZE))
    wrong = proof.wrong(positions, keys, sizes)
    if len(wrong):
        offset = int(records.column(OFFSET)[int(np.searchsorted(positions, wrong[0]))].as_py())
        message = f"{segment.path}: its index of keys is wrong about the record at offset {offset}"
        yield Finding(segment.partition, FindingKind.FILE_DAMAGED, message, offset, segment.path)


def _damage(partition: int, path: str, error: DamagedError) -> Finding:
    missing = isinstance(error.__cause__, FileNotFoundError)
    kind = FindingKind.FILE_MISSING if missing else FindingKind.FILE_DAMAGED
    return Finding(partition, kind, error.message, path=path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _tombstones(records: pa.Table, count: TombstoneCount) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of tombstones in `records` by step, int64, one more than `count.step_ends` (C19)."""
    sizes = records.column(VALUE_SIZE)
    deletes = sizes.is_null()
    if count.empty_is_tombstone:
        deletes = pc.or_(deletes, pc.fill_null(pc.equal(sizes, 0), False))
    of_key = pc.and_(deletes, records.column(KEY).is_valid())
    offsets = records.column(OFFSET).filter(of_key).to_numpy()
    offsets = offsets[(offsets >= count.start) & (offsets < count.end)]
    steps = np.searchsorted(np.array(count.step_ends, np.int64), offsets, side="right")
    return np.bincount(steps, minlength=len(count.step_ends) + 1).astype(np.int64)


def _wrong_rows(segment: Segment, records: pa.Table, last: int) -> Iterator[Finding]:
    """Findings for rows that are out of order, of another partition, or have a wrong `value_size`."""
    offsets = records.column(OFFSET).to_numpy()
    backwards = np.flatnonzero(np.diff(offsets, prepend=last) <= 0)
    if len(backwards):
        offset = int(offsets[backwards[0]])
        message = f"{segment.path}: offset {offset} follows an equal or higher one"
        yield Finding(segment.partition, FindingKind.OUT_OF_ORDER, message, offset, segment.path)
    elsewhere = np.flatnonzero(records.column(PARTITION).to_numpy() != segment.partition)
    sizes = pc.binary_length(records.column(VALUE)).cast(pa.int32())
    wrong_size = np.flatnonzero(pc.fill_null(pc.not_equal(sizes, records.column(VALUE_SIZE)), False).to_numpy())
    nulls_differ = not sizes.is_null().equals(records.column(VALUE_SIZE).is_null())
    for rows, what in ((elsewhere, "belongs to another partition"), (wrong_size, "has a wrong value_size")):
        if len(rows):
            offset = int(offsets[rows[0]])
            message = f"{segment.path}: the record at offset {offset} {what}"
            yield Finding(segment.partition, FindingKind.FILE_DAMAGED, message, offset, segment.path)
    if segment.only_chunks and has_only_chunks(records) is False:
        message = f"{segment.path}: it has a whole entry that is not a chunk, but its footer states that it has none"
        yield Finding(segment.partition, FindingKind.FILE_DAMAGED, message, path=segment.path)
    if nulls_differ:
        message = f"{segment.path}: null values and null value_sizes belong to different records"
        yield Finding(segment.partition, FindingKind.FILE_DAMAGED, message, path=segment.path)
