"""Masks of segments, written and read by nothing but PyArrow."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lithify.columnar.files.access import local_path
from lithify.model.segment import Mask, Segment


def _column(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={b"PARQUET:field_id": str(field_id).encode()})


_SCHEMA = pa.schema([_column("file_path", pa.string(), 2147483546), _column("pos", pa.int64(), 2147483545)])


def with_mask(segment: Segment, dead: Collection[int], run_id: str = "masking") -> Segment:
    """The segment with these positions of its file masked, in a new file, in place of its mask if it has one."""
    folder, _, name = segment.path.rpartition("/")
    number = len(list(_file(folder).glob(f"{name[:20]}-*.deletes.parquet")))
    path = f"{folder}/{name[:20]}-{run_id}-0-{number}.deletes.parquet"
    rows = pa.table({"file_path": [segment.path] * len(dead), "pos": sorted(dead)}, schema=_SCHEMA)
    pq.write_table(rows, _file(path), compression="zstd", write_page_checksum=True)
    whole = segment.unmasked
    mask = Mask(path, _file(path).stat().st_size, len(dead))
    return replace(whole, records=whole.records - len(dead), mask=mask)


def dead_positions(segment: Segment) -> set[int]:
    """The positions that its mask names, all of them in its file."""
    if segment.mask is None:
        return set()
    rows = pq.read_table(_file(segment.mask.path), partitioning=None).to_pylist()
    assert {row["file_path"] for row in rows} == {segment.path}
    assert segment.mask == Mask(segment.mask.path, _file(segment.mask.path).stat().st_size, len(rows))
    return {row["pos"] for row in rows}


def offsets_left(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """Partition and offset of every record that segments have left, in order."""
    left: list[tuple[int, int]] = []
    for segment in segments:
        dead = dead_positions(segment)
        offsets = pq.read_table(_file(segment.path), columns=["offset"], partitioning=None)["offset"].to_pylist()
        assert segment.records_in_file == len(offsets)
        left += [(segment.partition, offset) for position, offset in enumerate(offsets) if position not in dead]
    return sorted(left)


def no_longer_named(location: str, version: int) -> list[str]:
    """The files that the commit which closed a version says it stopped naming."""
    (record,) = (_file(location) / "lithify" / "versions").glob(f"{version:020d}-*.json")
    return list(json.loads(record.read_text())["no_longer_named"])


def _file(path: str) -> Path:
    local = local_path(path)
    assert local is not None
    return Path(local)
