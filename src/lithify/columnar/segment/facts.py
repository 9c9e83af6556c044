"""Derives the facts of a segment from the footer of its Parquet file, and compares them with its manifest's.

Manifests store them, so that planning need not open the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pyarrow.parquet as pq

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex.layout import ENTRY
from lithify.columnar.segment.schema import (
    ENTRY_ID,
    KEY,
    LEDGER_ID,
    OFFSET,
    PASSED_THROUGH,
    SCAN_COLUMNS,
    TIMESTAMP,
    VALUE_SIZE,
)
from lithify.model.finding import Finding, FindingKind
from lithify.model.message import EnvelopeFacts
from lithify.model.segment import Segment

ONLY_CHUNKS = b"lithify.only-chunks"
"""Key in the footer's metadata, with any value: all that is passed through are chunks (C53)."""

KEY_BOUND_BYTES = 16
"""Key bounds are truncated to this length, as by Iceberg's metrics mode `truncate(16)`."""


def facts_of_file(access: FileAccess, path: str, partition: int) -> Segment:
    """The facts of a segment that no manifest names. Raises what reading a footer raises."""
    with access.open(path) as source:
        size = source.seek(0, 2)
        source.seek(0)
        return facts(path, partition, pq.ParquetFile(source).metadata, size)


def facts(path: str, partition: int, metadata: pq.FileMetaData, size_bytes: int) -> Segment:
    """The facts of a segment, from the footer of its file."""
    index = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]

    def statistics(column: str) -> list[Any]:
        return [group.column(index[column]).statistics for group in groups]

    def bounds(column: str) -> tuple[Any, Any]:
        known = [s for s in statistics(column) if s.has_min_max]
        return min((s.min for s in known), default=None), max((s.max for s in known), default=None)

    def nulls(column: str) -> int:
        return sum(s.null_count for s in statistics(column))

    base, last = bounds(OFFSET)
    earliest, latest = bounds(TIMESTAMP)
    envelopes = None
    if LEDGER_ID in index:
        passed_through = metadata.num_rows - nulls(PASSED_THROUGH)
        envelopes = EnvelopeFacts(*bounds(LEDGER_ID), *bounds(ENTRY_ID), passed_through=passed_through)
    min_key, max_key = _key_bounds(statistics(KEY), [g.num_rows for g in groups])
    return Segment(
        path=path,
        partition=partition,
        base_offset=base,
        end_offset=last + 1,
        records=metadata.num_rows,
        size_bytes=size_bytes,
        scan_bytes=sum(g.column(index[c]).total_compressed_size for g in groups for c in SCAN_COLUMNS),
        min_timestamp_ms=earliest,
        max_timestamp_ms=latest,
        null_keys=nulls(KEY),
        null_values=nulls(VALUE_SIZE),
        min_value_size=bounds(VALUE_SIZE)[0],
        min_key=min_key,
        max_key=max_key,
        envelopes=envelopes,
        only_chunks=ONLY_CHUNKS in (metadata.metadata or {}),
        keys_indexed=ENTRY in (metadata.metadata or {}),
    )


def wrong_facts(named: Segment, actual_facts: Segment) -> Iterator[Finding]:
    """Findings for facts that differ between a manifest and the file that it names, apart from its mask."""
    named = named.unmasked
    for fact in fields(Segment):
        named_fact, actual_fact = getattr(named, fact.name), getattr(actual_facts, fact.name)
        unsaid = fact.name in ("only_chunks", "keys_indexed") and not named_fact  # an earlier version's manifest
        if named_fact != actual_fact and not unsaid:
            message = f"{named.path}: {fact.name} is {actual_fact!r}, but the metadata has {named_fact!r}"
            yield Finding(named.partition, FindingKind.WRONG_METADATA, message, path=named.path)


def _key_bounds(statistics: list[Any], records: list[int]) -> tuple[bytes | None, bytes | None]:
    """Truncated bounds of the keys, the upper one rounded up; (None, None) without keys, upper None for no bound."""
    with_keys = [s for s, n in zip(statistics, records, strict=True) if s.null_count < n]
    if not with_keys:
        return None, None
    if not all(s.has_min_max for s in with_keys):
        return b"", None  # Parquet omits the bounds of very long keys
    highest = max(bytes(s.max) for s in with_keys)
    lowest = min(bytes(s.min) for s in with_keys)[:KEY_BOUND_BYTES]
    return lowest, highest if len(highest) <= KEY_BOUND_BYTES else _rounded_up(highest[:KEY_BOUND_BYTES])


def _rounded_up(prefix: bytes) -> bytes | None:
    """The smallest key above all that begin with `prefix`; None if they begin with 0xff only."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
