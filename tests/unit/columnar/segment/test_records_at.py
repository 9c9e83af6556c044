"""Records at positions: the same as of the whole file, whatever pages they are in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment import records_at
from lithify.columnar.segment.checked_file import CheckedFile
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.errors import DamagedError
from lithify.model.message import Envelope, MessageId
from lithify.model.record import Record
from lithify.model.segment import Segment
from support.generated.indexed_files import indexed_segment

ACCESS = FileAccess()
SCHEMAS = {"ordinary": SEGMENT_SCHEMA, "pulsar": ENVELOPE_SCHEMA}


def a_record(offset: int) -> Record:
    key = None if offset % 11 == 0 else b"%d" % offset * (offset % 5)
    value = None if offset % 7 == 0 else b"value %d" % (offset % 1000)
    headers = (("h", b"%d" % offset), ("g", None)) if offset % 3 == 0 else ()
    return Record(key, value, 10**12 + offset, headers, 0, offset, envelope=Envelope(MessageId(7, offset, -1)))


def written(folder: Path, kind: str, codec: str = "zstd", *, indexes_keys: bool = True) -> Segment:
    groups = [[a_record(n) for n in range(first, end)] for first, end in ((0, 2500), (2500, 2600), (2600, 6000))]
    how = {"codec": codec, "schema": SCHEMAS[kind], "indexes_keys": indexes_keys}
    return indexed_segment(folder, groups, page_records=300, **how)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("codec", ["zstd", "none", "gzip", "lz4", "snappy"])
@pytest.mark.parametrize("indexes_keys", [True, False])
def test_reads_the_records_of_the_file(tmp_path: Path, kind: str, codec: str, indexes_keys: bool) -> None:
    segment = written(tmp_path, kind, codec, indexes_keys=indexes_keys)
    whole, chance = pq.read_table(segment.path), np.random.default_rng(1)
    with SegmentReader(ACCESS, segment) as reader:
        for count in (1, 3, 40, 3000, 6000):
            positions = np.sort(chance.choice(6000, count, replace=False))
            read = reader.records_at(positions).read(reader.schema.names)
            assert read.schema.names == reader.schema.names
            assert read.to_pylist() == whole.take(pa.array(positions)).to_pylist()
        assert reader.records_at(np.zeros(0, np.int64)).read(["key", "offset"]).num_rows == 0


def test_reads_few_pages_for_few_records(tmp_path: Path) -> None:
    segment = written(tmp_path, "ordinary", "none")
    with SegmentReader(ACCESS, segment) as reader:
        one, two = reader.records_at(np.array([5])), reader.records_at(np.array([5, 5999]))
        assert one.read(["key"]).to_pylist() == [{"key": a_record(5).key}]
        assert two.read(["key"]).num_rows == 2
        assert one.bytes_read < two.bytes_read < reader.compressed_bytes(0, ["key"])


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_BYTES"])
def test_pages_are_decoded_together_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """C38: of large keys few rows take much memory."""
    decoded, of_pages = [], CheckedFile.in_memory
    monkeypatch.setattr(CheckedFile, "in_memory", lambda *given: decoded.append(1) or of_pages(*given))
    with SegmentReader(ACCESS, written(tmp_path, "ordinary", "none")) as reader:
        together = reader.records_at(np.array([5, 2550, 5999])).read(["key"])
        assert len(decoded) == 1
        monkeypatch.setattr(records_at, limit, 1)
        assert reader.records_at(np.array([5, 2550, 5999])).read(["key"]).equals(together)
        assert len(decoded) == 1 + 3


def test_positions_of_the_file_among_the_records_left(tmp_path: Path) -> None:
    segment = written(tmp_path, "ordinary")
    with SegmentReader(ACCESS, segment, BitMap([0, 4, 5])) as reader:
        left, numbers = reader.left_of(np.array([0, 1, 4, 6, 5999]))
        assert (left.tolist(), numbers.tolist()) == ([1, 6, 5999], [0, 3, 5996])
    with SegmentReader(ACCESS, segment) as reader:
        left, numbers = reader.left_of(np.array([0, 5]))
        assert (left.tolist(), numbers.tolist()) == ([0, 5], [0, 5])


def test_a_changed_list_of_pages_or_page_is_found(tmp_path: Path) -> None:
    segment = written(tmp_path, "ordinary", "none")
    content = Path(segment.path).read_bytes()
    with SegmentReader(ACCESS, segment) as reader:
        expected = reader.records_at(np.array([1500, 5000])).read(["key", "offset"]).to_pylist()
        chunk = reader._file.footer.chunks[0]["key"]
    assert chunk.offset_index is not None
    start, size = chunk.offset_index
    page = content.index(a_record(1501).key or b"", chunk.start)
    for at in [*range(start, start + size), *range(page, page + 20)]:
        Path(segment.path).write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            with SegmentReader(ACCESS, segment) as reader:
                assert reader.records_at(np.array([1500, 5000])).read(["key", "offset"]).to_pylist() == expected, at
        except DamagedError as error:
            assert segment.path in error.message
