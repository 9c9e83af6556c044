"""Segments with transactions, damage and torn ends: what a scan says, and what a reader of committed records gets."""

from __future__ import annotations

import io
import pickle
import struct
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import RefusedError
from lithify.kafka_log import committed, segment_scan
from lithify.kafka_log.batches.decoding import EndKind
from lithify.kafka_log.batches.encoding import encoded
from lithify.kafka_log.batches.frames import BatchError, frames_in
from lithify.kafka_log.batches.header import BatchHeader
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.directories.described import reading
from lithify.kafka_log.log_epochs import EpochRun
from lithify.kafka_log.segment_scan import scanned
from lithify.kafka_log.transactions import transactions_of
from support.kafka.batches import batch, table_of, transaction_end

events = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["data", "plain", *EndKind])), max_size=25)


@given(events, st.integers(0, 25), st.data())
def test_readers_get_what_is_committed(log: list[tuple[int, Any]], cut: int, draw: st.DataObject) -> None:
    segments, expected, pending = [b"", b""], dict[int, bytes](), dict[int, list[int]]()
    for offset, (producer, what) in enumerate(log):
        value = b"%d" % offset
        if isinstance(what, EndKind):
            data = transaction_end(offset, producer, what)
            for at in pending.pop(producer, []):
                if what is EndKind.ABORT:
                    del expected[at]
        else:
            expected[offset] = value
            data = batch(offset, value, producer=producer, transactional=what == "data")
            if what == "data":
                pending.setdefault(producer, []).append(offset)
        segments[offset >= cut] += data
    stable = min((offsets[0] for offsets in pending.values()), default=len(log))
    found = transactions_of([scanned(io.BytesIO(segment)).transactions for segment in segments])
    assert found.stable_end(len(log)) == stable
    start = draw.draw(st.integers(0, len(log)))
    reader = Committed(start, stable, found.aborted)
    rows = [row for segment in segments for part in reader.columns(io.BytesIO(segment)) for row in part.to_pylist()]
    assert {row["offset"]: row["value"] for row in rows} == {
        offset: value for offset, value in expected.items() if start <= offset < stable
    }


def test_a_scan_tells_offsets_and_epochs() -> None:
    scan = scanned(io.BytesIO(batch(3, b"a", b"b", epoch=2) + batch(9, b"c", epoch=1)))
    assert (scan.first_offset, scan.end_offset, scan.batches) == (3, 10, 2)
    assert scan.epochs == [EpochRun(2, 3, 3), EpochRun(1, 9, 9)]
    assert (scan.damaged, scan.broken) == ([], None)
    empty = scanned(io.BytesIO(b""))
    assert (empty.first_offset, empty.end_offset, empty.batches) == (None, None, 0)


def test_a_damaged_batch_is_named_and_can_be_passed_over() -> None:
    first, second, third = (bytearray(batch(n, b"%d" % n)) for n in range(3))
    second[-1] ^= 1
    data = bytes(first + second + third)
    scan = scanned(io.BytesIO(data))
    assert [(error.position, error.what) for error in scan.damaged] == [
        (len(first), "the checksum of a batch is wrong")
    ]
    assert (scan.end_offset, scan.batches, scan.damaged_frames, scan.whole.end) == (3, 3, 1, len(data))
    with pytest.raises(BatchError):
        [*Committed(0, 3).columns(io.BytesIO(data))]
    (part,) = Committed(0, 3, passed_over={len(first)}).columns(io.BytesIO(data))
    assert part.column("offset").to_pylist() == [0, 2]


def test_what_follows_a_batch_whose_offset_is_damaged_is_read() -> None:
    """It may seem to begin behind all that is to be read."""
    first, second, third = (bytearray(batch(n, b"%d" % n)) for n in range(3))
    second[0] ^= 0x40
    data = bytes(first + second + third)
    scan = scanned(io.BytesIO(data), offsets=range(1000))
    assert [error.position for error in scan.damaged] == [len(first)] and scan.end_offset == 3
    (part,) = Committed(0, 3, passed_over={len(first)}).columns(io.BytesIO(data), scan.whole)
    assert part.column("offset").to_pylist() == [0, 2]


def test_a_torn_end_is_told_and_all_before_it_read() -> None:
    data = batch(0, b"a") + batch(1, b"b")[:-1]
    scan = scanned(io.BytesIO(data))
    assert scan.broken is not None and scan.broken.is_torn
    assert (scan.end_offset, scan.whole.end) == (1, len(batch(0, b"a")))
    (part,) = Committed(0, 1).columns(io.BytesIO(data), scan.whole)
    assert part.column("value").to_pylist() == [b"a"]


def test_a_scan_can_be_sent() -> None:
    scan = scanned(io.BytesIO(batch(0, b"a") + batch(1, b"b")[:-1]))
    sent = pickle.loads(pickle.dumps(scan))
    assert scan.broken is not None and sent.end_offset == 1
    assert (str(sent.broken), sent.broken.is_torn) == (str(scan.broken), True)


def test_batches_that_go_back_are_damaged() -> None:
    scan = scanned(io.BytesIO(batch(5, b"a", b"b") + batch(6, b"c")))
    assert [error.what for error in scan.damaged] == ["it begins at offset 6, before 7, where the batch before it ends"]


def test_what_is_in_memory_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "RECORDS_AT_ONCE", 2)
    data = b"".join(batch(n, b"v") for n in range(5))
    assert [part.num_rows for part in Committed(0, 5).columns(io.BytesIO(data))] == [2, 2, 1]
    monkeypatch.setattr(committed, "BYTES_AT_ONCE", 1)
    assert [part.num_rows for part in Committed(0, 5).columns(io.BytesIO(data))] == [1] * 5
    headers = [{"key": "a", "value": b"v"}]
    data = b"".join(next(encoded(table_of([(n, 0, 0, None, None, headers)]))) for n in range(3))
    assert [part.num_rows for part in Committed(0, 3).columns(io.BytesIO(data))] == [1] * 3


def moved(data: bytes, offset: int) -> bytes:
    """A batch whose checksum is right: it does not cover the offset."""
    return struct.pack(">q", offset) + data[8:]


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize(
    ("offset", "told"),
    [(2**40 + 1, "offsets 1099511627777 to 1099511627777"), (4, "4 to 4"), (-9, "negative"), (2**63 - 1, "")],
)
def test_offsets_that_a_file_cannot_have_are_damage_which_no_broker_cuts(cuts: bool, offset: int, told: str) -> None:
    data = batch(5, b"a") + moved(batch(6, b"b"), offset) + batch(7, b"c")
    scan = scanned(io.BytesIO(data), cuts=cuts and offset > 0, offsets=range(5, 9))
    assert [error.position for error in scan.damaged] == [len(batch(5, b"a"))] and told in scan.damaged[0].what
    assert (scan.end_offset, scan.broken) == (8, None)


def test_a_file_that_has_changed_since_it_was_scanned_is_refused() -> None:
    first, second, other = batch(0, b"a"), batch(1, b"b"), batch(1, b"c")
    scan = scanned(io.BytesIO(first + second))
    for changed in (first, first + other, second, b"", moved(first, 7) + second):
        with pytest.raises(BatchError, match="not those that it had"):
            [*Committed(0, 9).columns(io.BytesIO(changed), scan.whole)]
    (grown,) = Committed(0, 9).columns(io.BytesIO(first + second + batch(2, b"d")), scan.whole)
    assert grown.column("offset").to_pylist() == [0, 1]


def test_records_that_cannot_be_read_are_damage_if_it_is_asked() -> None:
    unknown = BatchHeader(1, 0, 0, 0, 1, attributes=7).with_records(b"?")
    data = batch(0, b"a") + unknown + batch(2, b"c")
    assert not scanned(io.BytesIO(data)).damaged
    scan = scanned(io.BytesIO(data), cuts=True, reads_records=True)
    assert [(error.position, error.what) for error in scan.damaged] == [
        (len(batch(0, b"a")), "its codec 7 is not known")
    ]
    (part,) = Committed(0, 3, passed_over={scan.damaged[0].position}).columns(io.BytesIO(data), scan.whole)
    assert part.column("offset").to_pylist() == [0, 2]


@given(st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), min_size=1, max_size=3), st.booleans())
def test_no_damaged_byte_takes_more_than_is_told(bytes_changed: list[tuple[int, int]], cuts: bool) -> None:
    """But for the offset of a batch, which may be another one that its file can have, without a sign of it."""
    batches = [batch(3 * n, b"a" * n, b"b", epoch=1) for n in range(6)]
    data, ends = bytearray(b"".join(batches)), [*accumulate(map(len, batches))]
    for at, byte in bytes_changed:
        position = at % len(data)
        if position - max([end for end in ends if end <= position], default=0) >= 8:
            data[position] = byte
    scan = scanned(io.BytesIO(data), cuts=cuts, offsets=range(20), reads_records=True)
    reader = Committed(0, 20, passed_over={error.position for error in scan.damaged})
    found = [row for part in reader.columns(io.BytesIO(data), scan.whole) for row in part.to_pylist()]
    lost = [(frame.position, frame.end) for frame in frames_in(io.BytesIO(data), scan.whole)]
    lost = [(start, end) for start, end in lost if start in reader.passed_over] + [(scan.whole.end, len(data))]
    for n, (start, end) in enumerate(pairwise([0, *ends])):
        values = [row["value"] for row in found if row["offset"] // 3 == n]
        is_told = any(at < end and start < after for at, after in lost)
        assert values == ([] if is_told else [b"a" * n, b"b"])


@pytest.mark.parametrize(
    "one",
    [
        lambda n: batch(n, b"v", epoch=n),
        lambda n: batch(n, b"v", producer=n, transactional=True),
        lambda n: transaction_end(n, n, EndKind.COMMIT),
        lambda n: batch(n, b"v", producer=1, transactional=True) + transaction_end(n + 1, 1, EndKind.ABORT),
    ],
)
def test_what_grows_with_batches_is_bounded(monkeypatch: pytest.MonkeyPatch, one: Any) -> None:
    monkeypatch.setattr(segment_scan, "MOST_FACTS", 10)
    whole, more = (io.BytesIO(b"".join(one(2 * n) for n in range(count))) for count in (10, 15))
    assert 9 <= scanned(whole).facts <= 10
    with pytest.raises(RefusedError, match=r"orders.log has more than"), reading(Path("orders.log")):
        scanned(more)
