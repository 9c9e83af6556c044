"""Pulsar's questions to a compacted topic, put to a live one: the two of its compaction service (PIP-429).

    last position       the last id that the broker tells, and when that entry was published
                        encrypted end of a view: Pulsar 4.2 cannot tell it, so the view is read to its end
    find by a time      the broker's id for the time, then the first entry from there on

An entry that cannot be opened has the index of its last message as its last position, and none as the start of a read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from lithify.model.message import EARLIEST, LATEST, MessageId, MessagePosition
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.broker_refusals import SealedEndError
from lithify.pulsar.columns import Damage, messages_of
from lithify.pulsar.format.batch import last_batch_index
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import without_frame
from lithify.pulsar.live.live_cluster import LiveCluster


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
            for entry in deque(self._read(None, LATEST.id, compacted=True), maxlen=1):
                return MessagePosition(
                    *entry[:2], last_batch_index(entry_of(entry, any_metadata=True)), _published(entry)
                )
            return self.last(compacted=compacted)  # the view was dropped meanwhile
        if last is None:
            return EARLIEST
        place = MessageId(*last.place)
        for entry in self._read(place, place, compacted=compacted):
            return MessagePosition(*last, _published(entry))
        return self.last(compacted=compacted)  # it was compacted away, or trimmed, since the broker told it

    def published_at(self, time_ms: int, *, compacted: bool) -> MessagePosition | None:
        """Of the first message that was published at or after a time; None if there is none."""
        last = Cluster(self.config).last_id(self.partition)
        if last is None and not compacted:
            return None
        start = None if last is None else self._begin(time_ms, compacted=compacted)
        first = islice(self._read(None, LATEST.id, compacted=compacted), 1)  # brokers pass over it
        for entry in chain(first, self._read(start, LATEST.id, compacted=compacted)):
            published = _published(entry)
            if published >= time_ms and (index := _first_index(entry)) is not None:
                return MessagePosition(*entry[:2], index, published)
        return None

    def _begin(self, time_ms: int, *, compacted: bool) -> MessageId | None:
        """Where to begin to search for a time; None: at the first entry.

        The broker looks for it in the entries of the topic itself, and not in those that only the view still has.
        """
        ledger, entry_id = Admin(self.config).id_published_at(self.partition, time_ms)
        if compacted:
            ledgers = LiveCluster(self.config).look(self.partition).ledgers
            if (ledger, entry_id) <= (next((one.ledger for one in ledgers if one.entries), ledger), 0):
                return None
        return MessageId(ledger, max(0, entry_id - 1))

    def _read(self, start: MessageId | None, end: MessageId, *, compacted: bool) -> Iterator[RawEntry]:
        for entries in TopicReader(self.config, self.partition).read(start, end, compacted=compacted):
            yield from map(without_frame, entries)


def _published(entry: RawEntry) -> int:
    return int(entry_of(entry, any_metadata=True).metadata.publish_time)


def _first_index(entry: RawEntry) -> int | None:
    """Of the first message that a reader gets; None if it gets none."""
    for messages in messages_of([entry], Damage()):
        for index, out in zip(messages.batch_index.tolist(), messages.compacted_out.tolist(), strict=True):
            if not out:
                return int(index)
    return None
