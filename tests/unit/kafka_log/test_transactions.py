"""Aborted and open transactions, put together from segments, are those of the whole log read at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log.batches.decoding import EndKind, TransactionEnd
from lithify.kafka_log.transactions import Aborted, SegmentTransactions, transactions_of

events = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["data", *EndKind])), max_size=30)


def whole(log: list[tuple[int, str | EndKind]]) -> tuple[set[Aborted], dict[int, int]]:
    """By a reader of all of it."""
    open_since, aborted = dict[int, int](), set[Aborted]()
    for offset, (producer, what) in enumerate(log):
        if what == "data":
            open_since.setdefault(producer, offset)
            continue
        start = open_since.pop(producer, None)
        if start is not None and what is EndKind.ABORT:
            aborted.add(Aborted(producer, start, offset))
    return aborted, open_since


@given(events, st.sets(st.integers(0, 30)), st.integers(0, 30), st.integers(0, 30))
def test_segments_come_to_the_same_as_the_whole_log(
    log: list[tuple[int, str | EndKind]], cuts: set[int], start: int, end: int
) -> None:
    segments = [SegmentTransactions()]
    for offset, (producer, what) in enumerate(log):
        if offset in cuts:
            segments.append(SegmentTransactions())
        if isinstance(what, EndKind):
            segments[-1].end(TransactionEnd(offset, producer, what))
        else:
            segments[-1].data(producer, offset)
    found = transactions_of(segments)
    aborted, still_open = whole(log)
    assert (set(found.aborted), found.open) == (aborted, still_open)
    assert found.stable_end(len(log)) == min(still_open.values(), default=len(log))
    assert list(found.aborted) == sorted(found.aborted, key=lambda one: (one.start, one.producer_id))
    assert found.aborted_in(start, end) == tuple(one for one in found.aborted if one.start < end and one.end > start)
