"""A file whose bytes are checked as they pass: what decoding would find is found, and nothing else changes (C65)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.parquet.end_sum import EndSum
from lithify.columnar.parquet.footer import UnsoundFileError, read_footer
from lithify.columnar.parquet.page_sums import PageSums
from lithify.columnar.segment.convert import envelope_columns, to_table
from lithify.columnar.segment.file_pieces import checked_pieces, write_pieces
from lithify.columnar.segment.inspect import inspect_segment
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA, VALUE, VALUE_SIZE
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import DamagedError
from lithify.model.finding import Finding
from lithify.model.message import Envelope, MessageId
from lithify.model.record import Record
from lithify.model.segment import Segment
from support.generated.indexed_files import every_file_indexed

ACCESS = FileAccess()
OF_GROUP = 10


def a_record(offset: int) -> Record:
    key, value = b"k%d" % (offset % 13), b"value %d" % offset * (offset % 4)
    headers = (("h", b"x%d" % offset),) if offset % 3 == 0 else ()
    envelope = Envelope(MessageId(7, offset, 0), event_time=offset * 10)
    return Record(
        key if offset % 7 else None, value if offset % 5 else None, offset, headers, 0, offset, envelope=envelope
    )


def written(folder: Path, codec: str, schema: pa.Schema, *, indexes_keys: bool = False) -> Segment:
    """Two row groups: null keys, deletes, empty values, headers, and dictionaries."""
    spec = SegmentSpec(str(folder), "run", 0, 2**30, codec, schema, indexes_keys)
    with every_file_indexed(), SegmentWriter(ACCESS, spec, attempt="a") as writer:
        for start in (0, OF_GROUP):
            records = [a_record(offset) for offset in range(start, start + OF_GROUP)]
            table = to_table(records)
            for name, column in envelope_columns(records).items():
                table = table.append_column(name, column)
            table = table.append_column(VALUE_SIZE, pc.binary_length(table.column(VALUE)).cast(pa.int32()))
            writer.write(table.select(schema.names).cast(schema))
            writer.flush()
        (segment,) = writer.close()
    return segment


def refused(segment: Segment) -> bool:
    try:
        list(checked_pieces(ACCESS, segment))
    except DamagedError as error:
        assert segment.path in error.message
        return True
    return False


@pytest.mark.long
@pytest.mark.parametrize(
    ("codec", "schema", "every", "indexes_keys"),
    [
        ("zstd", SEGMENT_SCHEMA, 5, False),
        ("none", SEGMENT_SCHEMA, 13, False),
        ("lz4", ENVELOPE_SCHEMA, 13, False),
        ("zstd", SEGMENT_SCHEMA, 11, True),
    ],
)
def test_whatever_byte_is_changed_decoding_finds_no_more(
    codec: str, schema: pa.Schema, every: int, indexes_keys: bool, tmp_path: Path
) -> None:
    """Each fifth or thirteenth byte, by another value each time: every field has some that are tried."""
    segment = written(tmp_path, codec, schema, indexes_keys=indexes_keys)
    path = Path(segment.path)
    whole = path.read_bytes()
    chance = random.Random(1)
    assert b"".join(checked_pieces(ACCESS, segment)) == whole
    let_pass = 0
    tried = range(0, len(whole), every)
    for at in tried:
        changed = whole[at] ^ chance.choice([1 << chance.randrange(8), chance.randrange(1, 256)])
        path.write_bytes(whole[:at] + bytes([changed]) + whole[at + 1 :])
        if not refused(segment):
            let_pass += 1
            assert not list(inspect_segment(ACCESS, segment, None, None)), (at, whole[at], changed)
    # The first byte of the file; texts of a footer without a checksum, and bounds that are not among the facts.
    assert let_pass == 1 if indexes_keys else let_pass < len(tried) / 4


@pytest.mark.parametrize("size", [1, 2, 37, 1000])
def test_all_bytes_behind_the_row_groups_have_a_checksum(size: int, tmp_path: Path) -> None:
    """Of a file with lists of its pages: the index of keys, the lists, their bounds, and the footer."""
    path = Path(written(tmp_path, "zstd", SEGMENT_SCHEMA, indexes_keys=True).path)
    whole = path.read_bytes()
    with pa.OSFile(str(path)) as source:
        end = EndSum(read_footer(source))
    assert b"".join(end.pass_on(pieces(whole, size))) == whole
    assert b"".join(end.pass_on(pieces(whole[end.start :], size), end.start)) == whole[end.start :]
    for at in range(end.start, len(whole), 1 if size == 1000 else 97):
        damaged = whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        with pytest.raises(UnsoundFileError, match="after its row groups"):
            list(end.pass_on(pieces(damaged, size)))


@pytest.mark.long
def test_copies_and_verify_find_every_changed_byte_behind_the_row_groups(tmp_path: Path) -> None:
    segment = written(tmp_path, "none", SEGMENT_SCHEMA, indexes_keys=True)
    path = Path(segment.path)
    whole = path.read_bytes()
    with SegmentReader(ACCESS, segment) as reader:
        start = reader.end_sum().start
    assert not list(inspect_segment(ACCESS, segment, None, None))
    for at in range(start, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert refused(segment), at
        (finding, *_) = inspect_segment(ACCESS, segment, None, None)
        assert isinstance(finding, Finding) and segment.path in finding.message, at


@pytest.mark.parametrize("size", [1, 2, 37, 1000])
def test_it_does_not_matter_where_pieces_end(size: int, tmp_path: Path) -> None:
    path = Path(written(tmp_path, "zstd", SEGMENT_SCHEMA).path)
    whole = path.read_bytes()
    with pa.OSFile(str(path)) as source:
        footer = read_footer(source)
    assert b"".join(PageSums(footer).pass_on(pieces(whole, size))) == whole
    value = max((c for group in footer.chunks for c in group.values()), key=lambda chunk: chunk.size_bytes)
    damaged = whole[: value.end - 1] + bytes([whole[value.end - 1] ^ 1]) + whole[value.end :]
    with pytest.raises(UnsoundFileError, match="checksum differs"):
        list(PageSums(footer).pass_on(pieces(damaged, size)))
    with pytest.raises(UnsoundFileError, match="within a column"):
        list(PageSums(footer).pass_on(pieces(whole[: value.end - 1], size)))


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


@pytest.mark.long
def test_counts_of_levels_that_would_end_the_process_are_refused(tmp_path: Path) -> None:
    """Arrow throws where nothing catches it if a footer's list of them has another length (C51)."""
    path = Path(written(tmp_path, "none", SEGMENT_SCHEMA).path)
    whole = path.read_bytes()
    footer_at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    found = 0
    for at in range(footer_at, len(whole) - 8):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with pa.OSFile(str(path)) as source, suppress(OSError):
            try:
                read_footer(source)
            except UnsoundFileError as error:
                found += "counts of the levels" in str(error)
    assert found > 0


@pytest.mark.parametrize("stops_at", [0, 1, 2])
def test_a_write_whose_pieces_fail_leaves_no_file(stops_at: int, tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield from [b"a" * 1000] * stops_at
        raise DamagedError("injected")

    with pytest.raises(DamagedError):
        write_pieces(ACCESS, str(tmp_path / "new" / "copy.parquet"), failing())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
