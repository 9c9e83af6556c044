"""Which records of a log belong to transactions that were aborted, or have no end yet.

    producer 7    ab      c  A              A abort, C commit: markers, which are control records
    producer 8      xy  z       C   w
    log           abxy z cA     C   w
                  ╰─ 7's are left out       ╰─ 8's next transaction is open: a reader of committed records ends here

A task reads one segment and tells what crosses its borders; these are put together in order, so that what grows with
records stays in the tasks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from lithify.kafka_log.batches.decoding import EndKind, TransactionEnd


@dataclass(frozen=True, slots=True)
class Aborted:
    """The records of a producer in [start, end) were aborted; a marker is at `end`."""

    producer_id: int
    start: int
    end: int


class AbortedRecords:
    """Whether a record was aborted, by its producer and its offset; `aborted` is in the order of starts."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._by_producer: dict[int, list[Aborted]] = {}
        for one in aborted:
            self._by_producer.setdefault(one.producer_id, []).append(one)

    def has(self, producer_id: int, offset: int) -> bool:
        own = self._by_producer.get(producer_id, [])
        at = bisect_right(own, offset, key=lambda one: one.start) - 1
        return at >= 0 and offset < own[at].end


@dataclass(frozen=True, slots=True)
class FirstEnd:
    """The first marker of a producer in a segment, and where the segment has its first record before it."""

    ending: TransactionEnd
    start: int | None


@dataclass(slots=True)
class SegmentTransactions:
    """The transactions of one segment; filled in the order of its batches."""

    aborted: list[Aborted] = field(default_factory=list)
    """Those that begin after the first marker of their producer."""
    first_ends: dict[int, FirstEnd] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)
    """By producer, the first offset of the transaction that is open at the end."""

    def data(self, producer_id: int, first_offset: int) -> None:
        """A batch of a transaction."""
        self.open.setdefault(producer_id, first_offset)

    def end(self, ending: TransactionEnd) -> None:
        """The end of a transaction, which may have no records."""
        start = self.open.pop(ending.producer_id, None)
        if ending.producer_id not in self.first_ends:
            self.first_ends[ending.producer_id] = FirstEnd(ending, start)
        elif start is not None and ending.kind is EndKind.ABORT:
            self.aborted.append(Aborted(ending.producer_id, start, ending.offset))


@dataclass(frozen=True, slots=True)
class LogTransactions:
    """What the transactions of a log come to."""

    aborted: tuple[Aborted, ...]
    """In the order of their starts."""
    open: Mapping[int, int]
    _latest_ends: Sequence[int] = field(init=False, repr=False)
    """The latest end of each and all before it. As these only go up, a segment's are found without a pass over all."""

    def __post_init__(self) -> None:
        ends = [*accumulate((one.end for one in self.aborted), max)]
        object.__setattr__(self, "_latest_ends", ends)

    def aborted_in(self, start: int, end: int) -> tuple[Aborted, ...]:
        """Those with records in [start, end)."""
        first = bisect_right(self._latest_ends, start)
        last = bisect_left(self.aborted, end, lo=first, key=lambda one: one.start)
        return tuple(one for one in self.aborted[first:last] if one.end > start)

    def stable_end(self, log_end: int) -> int:
        """Where a reader of committed records ends."""
        return min(self.open.values(), default=log_end)


def transactions_of(segments: Iterable[SegmentTransactions]) -> LogTransactions:
    """What the transactions of a log come to, by what its segments have, in order."""
    aborted: list[Aborted] = []
    pending: dict[int, int] = {}
    for segment in segments:
        for producer_id, first in segment.first_ends.items():
            start = pending.pop(producer_id, first.start)
            if start is not None and first.ending.kind is EndKind.ABORT:
                aborted.append(Aborted(producer_id, start, first.ending.offset))
        aborted += segment.aborted
        for producer_id, start in segment.open.items():
            pending.setdefault(producer_id, start)
    return LogTransactions(tuple(sorted(aborted, key=lambda one: (one.start, one.producer_id))), pending)


def open_before(segments: Iterable[SegmentTransactions]) -> Iterator[Mapping[int, int]]:
    """For each segment in order, the transactions that are open where it begins: by producer, their first offset."""
    pending: dict[int, int] = {}
    for segment in segments:
        yield dict(pending)
        for producer_id in segment.first_ends:
            pending.pop(producer_id, None)
        for producer_id, start in segment.open.items():
            pending.setdefault(producer_id, start)
