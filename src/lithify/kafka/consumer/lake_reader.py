"""The part of a consumer's records that the lake has, version by version, and what is known of each log (C7, C49)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from lithify.errors import LithifyError
from lithify.kafka.consumer.place import COMPACTED, check_place, first_place, log_of
from lithify.model.cursor import Place
from lithify.model.log import LogState, TopicState
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.reading.continuation import moved
from lithify.service.documents import source_of
from lithify.service.read.fetch import open_log

TAKEN_AT_ONCE = 8192
"""Records of the lake that stand in memory as such."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A version of the topic."""

    state: TopicState

    @classmethod
    def newest(cls, warehouse: Warehouse, name: TopicName) -> Sight:
        """Raises `UnknownTopicError` or `WarehouseError`."""
        return cls(warehouse.store.load(name))

    def records(self, warehouse: Warehouse, partition: int, offset: int) -> Iterator[Record]:
        """The compacted records of a log from an offset on, up to the end of this version."""
        return chain.from_iterable(self.batches(warehouse, partition, offset))

    def kafka_id(self, warehouse: Warehouse, kafka_topic: str) -> str:
        """The id of the topic in Kafka that this one was copied from; empty where that is not known."""
        copied = source_of(warehouse.store, self.state)
        return copied.topic_id if copied is not None and copied.name == kafka_topic else ""

    def batches(self, warehouse: Warehouse, partition: int, offset: int) -> Iterator[Sequence[Record]]:
        """The same, many at a time."""
        log = log_of(self.state, partition)
        if offset < log.log_end_offset:
            start = max(offset, log.compacted_start)
            for batch in open_log(warehouse, self.state, partition, start, COMPACTED).poll():
                records = batch.records()
                while some := tuple(islice(records, TAKEN_AT_ONCE)):
                    yield some


class Places:
    """By partition, where the user of a consumer stands, and the version of the log that was seen last."""

    def __init__(self, sight: Sight, stored: Mapping[int, Place], partitions: Iterable[int]) -> None:
        """Raises `LogTruncatedError` where a stored place cannot be gone on from."""
        self._places: dict[int, Place] = {}
        self._seen: dict[int, LogState] = {}
        for partition in partitions:
            self.add(partition, sight, stored.get(partition))

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def add(self, partition: int, sight: Sight, stored: Place | None = None) -> int:
        """Goes on in a partition, or begins with it; returns the offset."""
        place = first_place(sight.state, partition) if stored is None else stored
        check_place(place, sight.state, partition)
        self._places[partition] = place
        self._seen[partition] = log_of(sight.state, partition)
        return place.offset

    def offset(self, partition: int) -> int:
        return self._places[partition].offset

    def see(self, partition: int, sight: Sight, settled: int, read: int) -> None:
        """The log is at that version now. Raises `LogTruncatedError` where reading cannot go on in it."""
        place = moved(self._places[partition], self._seen[partition], settled)
        check_place(moved(place, self._seen[partition], read), sight.state, partition)
        self._places[partition] = place
        self._seen[partition] = log_of(sight.state, partition)

    def see_all(self, warehouse: Warehouse, name: TopicName, settled: Mapping[int, int]) -> None:
        """Looks at the newest version, if it can be had: what is live does not depend on it."""
        with suppress(LithifyError):
            sight = Sight.newest(warehouse, name)
            for partition in self._places:
                self.see(partition, sight, settled[partition], settled[partition])

    def settled(self, offsets: Mapping[int, int]) -> dict[int, Place]:
        """What is to be stored for a user who came to these offsets."""
        return {p: moved(place, self._seen[p], offsets[p]) for p, place in self._places.items()}
