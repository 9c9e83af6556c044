"""Segments with an index of their keys, however small they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.key_hash import HalfHashes
from lithify.columnar.keyindex import building, key_index
from lithify.columnar.segment import writer
from lithify.columnar.segment.schema import SEGMENT_SCHEMA
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.model.record import Record
from lithify.model.segment import Segment
from support.topics.stored_topics import segment_table


@contextmanager
def every_file_indexed(page_records: int = 5) -> Iterator[None]:
    """Also files of few keys get an index, and have pages of few records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "LEAST_KEYS", 1)
        patch.setattr(writer, "PAGE_BYTES", 1)
        patch.setattr(writer, "PAGE_RECORDS", page_records)
        yield


@contextmanager
def weak_hashes() -> Iterator[None]:
    """Most keys share their hash, by which indexes find them, with others."""

    def few(_hashes: object, keys: pa.BinaryArray) -> HalfHashes:
        return np.array([len(key) % 3 << 30 | len(key) % 5 << 20 for key in keys.to_pylist()], np.uint32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "half_hashes", few)
        patch.setattr(key_index, "half_hashes", few)
        yield


def indexed_segment(
    folder: Path,
    groups: Sequence[Sequence[Record]],
    *,
    codec: str = "zstd",
    schema: pa.Schema = SEGMENT_SCHEMA,
    indexes_keys: bool = True,
    page_records: int = 5,
) -> Segment:
    """One segment with these row groups."""
    folder.mkdir(exist_ok=True)
    spec = SegmentSpec(str(folder), "run", 0, 2**40, codec, schema, indexes_keys)
    with every_file_indexed(page_records), SegmentWriter(FileAccess(), spec, attempt="0") as writing:
        for records in groups:
            writing.write(segment_table(records, schema))
            writing.flush()
        (segment,) = writing.close()
    return segment
