"""Copies of any segments are their survivors: every field, in order, however they are read (C1, C39)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar import rewrite as rewriting
from lithify.columnar.files.access import local_path
from lithify.columnar.rewrite import Source, Throttles, mask, rewrite
from lithify.columnar.segment import checked_file, writer
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA
from lithify.columnar.segment.writer import SegmentSpec
from lithify.model.message import Envelope, MessageId
from lithify.model.record import Header, Record
from support.topics.stored_topics import ACCESS, records_in, write_segments

pytestmark = pytest.mark.long

SIZES: dict[tuple[Any, str], list[Any]] = {
    (writer, "ROW_GROUP_RECORDS"): [1, 2, 7, 50, 200],
    (writer, "ROW_GROUP_BYTES"): [200, 3000, 2**26],
    (writer, "LARGE_PAGE_BYTES"): [1, 100, 2**20],
    (rewriting, "PIECE_BYTES"): [1, 50, 5000, 2**21],
    (rewriting, "PART_BYTES"): [1, 300, 2**24],
    (rewriting, "LARGE_SOURCE_BYTES"): [0, 0, 2**22],
    (checked_file, "BUFFER_BYTES"): [1, 64, 2**20],
    (checked_file, "WHOLE_BYTES"): [0],
    (checked_file, "local_path"): [local_path, local_path, lambda _path: None],
}
"""The last has files read as those of an object store."""


def some_records(random: Random, first: int, count: int, *, enveloped: bool) -> list[Record]:
    """With gaps in their offsets, null and empty keys and values, and few values larger than anything that is read."""
    offsets = [first + 2 * n + random.randrange(2) for n in range(count)]
    some_headers: list[tuple[Header, ...]] = [(), (("h", None), ("", b"x"))]
    headers = some_headers[: random.randrange(1, 3)]
    return [
        Record(
            random.choice([None, b"", b"k%d" % random.randrange(20), random.randbytes(100)]),
            random.choice([None, b"", random.randbytes(random.choice([1, 300, 300, 20_000]))]),
            random.randrange(3000),
            random.choice(headers),
            0,
            offset,
            envelope=Envelope(MessageId(7, offset, 0), event_time=random.choice([None, 5])) if enveloped else None,
        )
        for offset in offsets
    ]


@given(st.integers(0, 2**32))
def test_what_is_copied_are_the_survivors(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    random, folder = Random(seed), tmp_path_factory.mktemp("copied")
    enveloped = random.random() < 0.4
    schema = ENVELOPE_SCHEMA if enveloped else SEGMENT_SCHEMA
    share = random.choice([0, 0.05, 0.3, 0.5, 0.95, 1])
    sources: list[Source] = []
    expected: list[Record] = []
    paid: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), sizes in SIZES.items():
            patch.setattr(module, name, random.choice(sizes))
        # More than some tens of row groups take seconds.
        few_groups = writer.ROW_GROUP_RECORDS > 2 and writer.ROW_GROUP_BYTES > 200
        for number in range(random.randrange(1, 6)):
            count = random.choice([1, 2, 9, 40, 150 if few_groups else 40])
            records = some_records(random, 400 * number, count, enveloped=enveloped)
            indexed = random.random() < 0.5
            (segment,) = write_segments(folder, f"append{number}", records, schema=schema, indexes_keys=indexed)
            if random.random() < 0.4 and count > 1:
                hidden = set(random.sample(range(count), random.randrange(1, count)))
                to_hide = Source(segment, count - len(hidden), DeadPositions.of(hidden))
                segment, _ = mask(ACCESS, SegmentSpec(str(folder), "m", 0, 2**40, "zstd"), to_hide, attempt=f"{number}")
                records = [record for n, record in enumerate(records) if n not in hidden]
            left = [n for n in range(len(records)) if random.random() < random.choice([share, share, 0, 1])]
            dead = [DeadPositions.all_but(left), DeadPositions.of(set(range(len(records))) - set(left))]
            sources.append(Source(segment, len(left), random.choice(dead)))
            expected += [records[n] for n in left]
        spec = SegmentSpec(str(folder), "round", 0, random.choice([1, 3000, 2**40]), "zstd", schema, seed % 2 == 0)
        copied, bytes_read = rewrite(ACCESS, spec, sources, attempt="g", throttles=Throttles(read=paid.append))
        assert [record for segment in copied for record in records_in(segment)] == expected
    assert sum(paid) == bytes_read
