"""Many batches at once: the same records, offsets, epochs and damage as one by one."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log import committed, segment_scan
from lithify.kafka_log.batches import frames
from lithify.kafka_log.batches.encoding import BatchLimits, encoded
from lithify.kafka_log.batches.frames import BatchError
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.segment_scan import SegmentScan, scanned
from support.kafka.batches import batch, changed, table_of, tables

ONE = BatchLimits(records=1)


def read(data: bytes, scan: SegmentScan, start: int, end: int) -> tuple[list[Any], str]:
    """The records in [start, end), and why there are no more."""
    found: list[Any] = []
    try:
        passed = {error.position for error in scan.damaged}
        for part in Committed(start, end, passed_over=passed).columns(io.BytesIO(data), scan.whole):
            found += part.to_pylist()
    except BatchError as error:
        return found, str(error)
    return found, ""


def both_ways(data: bytes, start: int, end: int, cuts: bool = False) -> tuple[Any, Any]:
    """At once, and one by one."""
    ways = []
    for at_once in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(committed, "_LEAST_AT_ONCE", 1)
            patch.setattr(frames, "PIECE_BYTES", 300)
            if not at_once:
                patch.setattr(segment_scan, "plain_batches", lambda _piece: None)
                patch.setattr(committed, "plain_batches", lambda _piece: None)
            scan = scanned(io.BytesIO(data), cuts=cuts)
            told = [str(error) for error in (*scan.damaged, scan.broken)]
            facts = (scan.first_offset, scan.end_offset, scan.whole, scan.batches, scan.epochs, scan.damaged_frames)
            ways.append((facts, told, read(data, scan, start, end)))
    return ways[0], ways[1]


@given(tables(), st.booleans(), st.data())
def test_records_at_once_and_one_by_one(table: Any, cuts: bool, draw: st.DataObject) -> None:
    """Of batches with one record and with more, at any start and end, also where bytes are changed."""
    data = bytearray(b"".join(encoded(table, limits=draw.draw(st.sampled_from([ONE, BatchLimits(records=3)])))))
    for at, value in draw.draw(st.lists(st.tuples(st.integers(0, 2**12), st.integers(1, 255)), max_size=2)):
        if at < len(data):
            data[at] ^= value
    offsets = table.column(0).to_pylist() or [0]
    start, end = (draw.draw(st.sampled_from([offsets[0], offsets[len(offsets) // 2], offsets[-1] + 1])) for _ in "12")
    one, two = both_ways(bytes(data), start, end, cuts)
    assert one == two


def header_of_one(**fields: int) -> bytes:
    return changed(batch(7, b"v"), **fields)


@pytest.mark.parametrize(
    "one",
    [
        header_of_one(last_offset_delta=-1),
        header_of_one(last_offset_delta=5),
        header_of_one(records=2),
        header_of_one(records=0),
        header_of_one(base_timestamp=-1),
        header_of_one(attributes=8),
        header_of_one(base_offset=2**63 - 1, last_offset_delta=9),
        header_of_one(leader_epoch=-1),
        header_of_one(leader_epoch=9),
        header_of_one(attributes=1),
        batch(7, b"v" * 100),
        batch(7, b"v" * 20_000),
        batch(7, b"v" * 3 * 2**20),
        batch(7, b"a", b"b"),
        batch(7, b"v", producer=3, transactional=True),
    ],
)
def test_a_batch_that_is_not_as_its_neighbours(one: bytes) -> None:
    data = b"".join(batch(n, b"x") for n in range(7)) + one + b"".join(batch(n, b"y") for n in range(20, 30))
    ways = both_ways(data, 0, 100)
    assert ways[0] == ways[1]
    records, error = ways[0][2]
    assert len(records) >= 7 or error


@pytest.mark.parametrize("stated", [5, 9, 1, 0x7F])
def test_a_record_does_not_reach_into_the_next_batch(stated: int) -> None:
    """Its batch has a right checksum; what is wrong is the size that it states."""
    right = batch(1, b"v")
    wrong = bytearray(right)
    wrong[61] = stated
    data = batch(0, b"x") + changed(bytes(wrong)) + batch(2, b"y")
    ways = both_ways(data, 0, 100)
    assert ways[0] == ways[1] and ways[0][2][1]


def test_a_normal_file_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of([(n, 1_700_000_000_000 + n, 0, b"k", b"%d" % n, None) for n in range(100)])
    data = b"".join(encoded(table, limits=ONE))
    scan = scanned(io.BytesIO(data))
    monkeypatch.setattr(committed, "records_of", None)
    (part,) = Committed(0, 100).columns(io.BytesIO(data), scan.whole)
    assert part == table
