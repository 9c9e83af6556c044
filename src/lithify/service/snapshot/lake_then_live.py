"""Reads the logs of a topic endlessly: from the lake, then what the cluster has more, and what was ingested meanwhile.

    from_lake, of each log ─► up_to_live, of each log ─► tail, of all at once ─► again, after `close_tail`

`read` says how far. It may be beyond what has arrived where a call was interrupted: `go_back` says where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lithify.errors import SourceLostError
from lithify.model.record import Record
from lithify.model.sources.source import copied_in
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.snapshot.cursors import Cursors, compacted_records, log_of
from lithify.service.snapshot.live import LiveSource, LiveTail, Reached
from lithify.service.snapshot.newest import Newest
from lithify.service.snapshot.numbering import check_numbering

SLICE_S = 1.0
"""How long one wait for records is at most."""


@dataclass(slots=True)
class LakeThenLive:
    """`settled` is what the user of the consumer has processed, by partition."""

    warehouse: Warehouse
    newest: Newest
    live: LiveSource
    cursors: Cursors
    settled: Mapping[int, Reached]
    read: dict[int, Reached] = field(init=False)
    tail: LiveTail | None = field(default=None, init=False)
    _batches: Iterator[Sequence[Record]] = field(init=False)
    _wait_s: float = field(default=SLICE_S, init=False)

    def __post_init__(self) -> None:
        self.go_back({})

    def next(self, wait_s: float) -> Sequence[Record]:
        """The next records, perhaps none. After a failure only `go_back` goes on."""
        self._wait_s = min(wait_s, SLICE_S)
        return next(self._batches)

    def go_back(self, beyond: Mapping[int, Reached]) -> None:
        """Continues where the user is, which in some partitions is `beyond` what is settled."""
        self.close_tail()
        self.read = {**self.settled, **beyond}
        self._batches = self._endless()

    def reached_by(self, records: Iterable[Record]) -> dict[int, Reached]:
        """By partition, behind the last of these records, which were read."""
        ahead = self.reached
        last = {record.partition: record for record in records}
        return {p: Reached.by(record, ahead[p].epoch) for p, record in last.items() if p is not None}

    def close_tail(self) -> None:
        if self.tail is not None:
            self.read.update(self.tail.reached)
            tail, self.tail = self.tail, None
            tail.close()

    @property
    def reached(self) -> Mapping[int, Reached]:
        """How far it has read, from the lake or the cluster."""
        return self.read if self.tail is None else self.tail.reached

    def has_read(self, ends: Mapping[int, Reached]) -> bool:
        """Whether everything up to these ends was read, from the cluster or the lake."""
        reached = self.reached
        return all(reached[partition].has(end) for partition, end in ends.items())

    def _endless(self) -> Iterator[Sequence[Record]]:
        while True:  # again whenever the topic got more partitions
            for partition in list(self.read):
                yield from self._from_lake(partition, self.newest.recent())
            for partition in list(self.read):
                yield from self._up_to_live(partition)
            self.tail = self.live.tail(self.read)
            while self.tail is not None:
                try:
                    taken = self.tail.take(self._wait_s)
                except SourceLostError:  # the lake may have it by now; `_up_to_live` raises it if not
                    self.close_tail()
                else:
                    yield taken

    def _from_lake(self, partition: int, state: TopicState) -> Iterator[Sequence[Record]]:
        log, at = log_of(state, partition), self.read[partition]
        check_numbering(self.warehouse, state, partition, at)
        self.live.enter(partition, log, at)
        self.cursors.see(partition, state, self.settled[partition].offset, at.offset)
        epoch = copied_in(log) or at.epoch
        for batch in compacted_records(self.warehouse, state, partition, at.offset):
            self.read[partition] = Reached.by(batch[-1], epoch)
            yield batch
        if log.log_end_offset >= self.read[partition].offset:
            beyond = at.message is not None and (log.copied_to is None or not log.copied_to.covers(at.message))
            message = at.message if beyond else log.copied_to
            self.read[partition] = Reached(log.log_end_offset, message, epoch, self.read[partition].last)

    def _up_to_live(self, partition: int) -> Iterator[Sequence[Record]]:
        """Records that were ingested meanwhile, if the cluster has deleted them since."""
        while (missing := self.live.missing(partition, self.read[partition])) is not None:
            before = self.read[partition]
            yield from self._from_lake(partition, self.newest.load())
            if self.read[partition] == before:
                raise missing
