"""Two decoders of manifests, ours by columns and PyIceberg's by entries: they read the same, whatever is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io import OutputFile
from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile

from lithify.model.message import EnvelopeFacts
from lithify.model.segment import Mask, Segment
from lithify.store.iceberg.manifests import writers
from lithify.store.iceberg.manifests.avro import decoded_entries
from lithify.store.iceberg.manifests.avro_blocks import AvroFile
from lithify.store.iceberg.manifests.columns import columns_of
from lithify.store.iceberg.manifests.mask_entries import mask_file
from lithify.store.iceberg.manifests.reading import _MASKS, SEGMENTS, _Kind, _live
from lithify.store.iceberg.manifests.segment_columns import PARTITION, STATUS
from lithify.store.iceberg.manifests.segment_entries import data_file
from lithify.store.iceberg.manifests.whole_output import WholeOutput
from lithify.store.iceberg.table_columns import ENVELOPE_SCHEMA, PARTITION_SPEC, SCHEMA

_COLUMN_SIZES, _NANS, _KEY_METADATA, _SPLITS, _EQUALITY = 6, 9, 12, 13, 14
"""Where PyIceberg has what Lithify does not go by, but other programs may write."""

LONGS = st.sampled_from([0, 1, 63, 64, 8_191, 8_192, 2**31, 2**62]) | st.integers(0, 2**63 - 2)
TIMES = LONGS | st.integers(-(2**63) + 1, -1)
KEYS = st.none() | st.binary(max_size=16)
PATHS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
INTS = st.integers(0, 2**31 - 1)


@st.composite
def segments(draw: st.DrawFn, *, pulsars: bool) -> Segment:
    """Any facts, also such as no segment has."""
    records = draw(st.integers(1, 2**40))
    facts = EnvelopeFacts(*(draw(LONGS) for _ in range(4)), draw(st.integers(0, records))) if pulsars else None
    return Segment(
        *(draw(PATHS), draw(INTS), draw(LONGS), draw(LONGS), records, draw(LONGS), draw(LONGS)),
        *(draw(TIMES), draw(TIMES), draw(LONGS), draw(LONGS), draw(st.none() | INTS), draw(KEYS), draw(KEYS)),
        envelopes=facts,
        only_chunks=pulsars and draw(st.booleans()),
        keys_indexed=draw(st.booleans()),
    )


@st.composite
def files(draw: st.DrawFn, *, of_masks: bool, pulsars: bool) -> DataFile:
    segment = draw(segments(pulsars=pulsars))
    dead = Mask(draw(PATHS), draw(LONGS), draw(st.integers(1, segment.records)))
    file = mask_file(segment, dead) if of_masks else data_file(segment)
    file.column_sizes.update(draw(st.dictionaries(st.integers(20, 99), LONGS, max_size=3)))
    if not file.nan_value_counts and draw(st.booleans()):
        file._data[_NANS] = None
    file._data[_KEY_METADATA] = draw(st.none() | st.binary(max_size=3))
    file._data[_SPLITS] = draw(st.none() | st.lists(LONGS, max_size=3))
    file._data[_EQUALITY] = draw(st.none() | st.lists(INTS, max_size=3))
    return file


def written(
    files: Sequence[tuple[DataFile, ManifestEntryStatus]], schema: Any, in_block: int, codec: str, *, of_masks: bool
) -> tuple[bytes, ManifestFile]:
    """A manifest, as commits write it."""
    content: list[bytes] = []
    output = WholeOutput(_Nowhere("memory.avro"), lambda _, whole: content.append(whole))
    kind = writers.MaskWriter if of_masks else writers.SegmentWriter
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "ENTRIES_PER_BLOCK", in_block)
        with kind(PARTITION_SPEC, schema, output, 1, codec) as writer:
            for file, status in files:
                entry = ManifestEntry.from_args(
                    status=status, snapshot_id=1, sequence_number=1, file_sequence_number=1, data_file=file
                )
                writer.add_entry(entry)
    return content[0], writer.to_manifest_file()


class _Nowhere(OutputFile):
    """Keeps nothing."""

    def __len__(self) -> int:
        return 0

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> Any:
        raise NotImplementedError

    def create(self, overwrite: bool = False) -> Any:
        return _Sink()


class _Sink:
    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, piece: bytes) -> int:
        return len(piece)


@pytest.mark.long
@pytest.mark.parametrize("of_masks", [False, True])
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_both_read_the_same(of_masks: bool, data: st.DataObject) -> None:
    pulsars = data.draw(st.booleans())
    some = st.tuples(files(of_masks=of_masks, pulsars=pulsars), st.sampled_from(ManifestEntryStatus))
    manifests = [
        written(
            data.draw(st.lists(some, min_size=1, max_size=20)),
            ENVELOPE_SCHEMA if pulsars else SCHEMA,
            data.draw(st.integers(1, 7)),
            data.draw(st.sampled_from(["null", "deflate"])),
            of_masks=of_masks,
        )
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    kind: _Kind[Any] = _MASKS if of_masks else SEGMENTS
    avro = [AvroFile.of(content) for content, _ in manifests]
    columns = columns_of(avro, kind.wanted)
    entries = zip(
        kind.inside(columns), columns.number(STATUS).tolist(), columns.number(PARTITION).tolist(), strict=True
    )
    ours = [_live(file.rows, entries) for file in avro]
    for (content, file), found in zip(manifests, ours, strict=True):
        for known in (False, True):
            theirs = [e.data_file for e in decoded_entries(content, file, known=known)]
            by_partition: dict[int, list[Any]] = {}
            for one in theirs:
                by_partition.setdefault(one.partition[0], []).append(kind.by_pyiceberg(one))
            assert found == {partition: tuple(those) for partition, those in by_partition.items()}
            for partition, those in found.items():
                assert list(map(repr, those)) == list(map(repr, by_partition[partition]))  # facts that do not compare
