"""Pulsar's questions to a compacted topic, put to a live one: the two of its compaction service (PIP-429).

    last position       the last id that the broker tells, and when that entry was published
                        encrypted end of a view: Pulsar 4.2 cannot tell it, so the view is read, entry by entry
    find by a time      the broker's id for the time, then the first entry from there on

An entry that cannot be opened has the index of its last message as its last position, and none as the start of a read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from lithify.model.message import EARLIEST, MessageId, MessagePosition
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.refusals import SealedEndError
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.batch import last_batch_index
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import without_frame
from lithify.pulsar.live.cluster import LiveCluster


@dataclass(frozen=True, slots=True)
class LivePositions:
    """Of one partition. Calls raise `UnknownSourceError`, `BrokerError` and `DamagedError`."""

    config: ClientConfig
    partition: str

    def last(self, *, compacted: bool) -> MessagePosition:
        """Of the last message that a reader gets; `EARLIEST` if there is none."""
        try:
            last = Cluster(self.config).last_id(self.partition, compacted=compacted)
        except SealedEndError:
            *_, entry = self._view()
            return MessagePosition(*entry[:2], last_batch_index(entry_of(entry)), _published(entry))
        if last is None:
            return EARLIEST
        place = MessageId(*last.place)
        for entries in TopicReader(self.config, self.partition).read(place, place, compacted=compacted):
            return MessagePosition(*last, _published(entries[-1]))
        return self.last(compacted=compacted)  # it was compacted away, or trimmed, since the broker told it

    def published_at(self, time_ms: int, *, compacted: bool) -> MessagePosition | None:
        """Of the first message that was published at or after a time; None if there is none."""
        last = Cluster(self.config).last_id(self.partition)
        if last is None:
            return None
        end = MessageId(*last.place)
        ledger, entry_id = Admin(self.config).id_published_at(self.partition, time_ms)
        start = MessageId(ledger, max(0, entry_id - 1))
        first = islice(self._from(None, end, compacted=compacted), 1)  # brokers pass over it
        for entry in chain(first, self._from(start, end, compacted=compacted)):
            published = _published(entry)
            if published >= time_ms and (index := _first_index(entry)) is not None:
                return MessagePosition(*entry[:2], index, published)
        return None

    def _from(self, start: MessageId | None, end: MessageId, *, compacted: bool) -> Iterator[RawEntry]:
        reader = TopicReader(self.config, self.partition)
        try:
            for entries in reader.read(start, end, compacted=compacted):
                yield from map(without_frame, entries)
        except SealedEndError:  # nothing is behind the view, so that it was not read yet
            yield from (entry for entry in self._view() if start is None or entry[:2] >= start.place)

    def _view(self) -> Iterator[RawEntry]:
        served = LiveCluster(self.config).look(self.partition).served
        entries = TopicReader(self.config, self.partition).read_view(0 if served is None else served.entries)
        return map(without_frame, entries)


def _published(entry: RawEntry) -> int:
    return int(entry_of(without_frame(entry)).metadata.publish_time)


def _first_index(entry: RawEntry) -> int | None:
    """Of the first message that a reader gets; None if it gets none."""
    for messages in messages_of([entry]):
        for index, out in zip(messages.batch_index.tolist(), messages.compacted_out.tolist(), strict=True):
            if not out:
                return int(index)
    return None
