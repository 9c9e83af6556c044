"""A topic of a Kafka cluster as that behind a copy: its ends, its id, and its tail."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lithify.errors import LithifyError, SourceLostError, SourceWentBackError
from lithify.kafka.consumer.live_tail import LiveTail, ReadBefore, check_reachable, cut_error
from lithify.kafka.consumer.tail_watch import TailWatch
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.epochs import LEAST, Cut, find_cut, leader_epoch, signs_between
from lithify.model.names import TopicName
from lithify.model.sources.copied_topic import known_id
from lithify.model.sources.ends import Ends
from lithify.model.sources.source import (
    ComparedRecord,
    EpochAt,
    Signs,
    SourceLog,
    compared_record,
    copied_in,
    record_to_compare,
)
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.copies.copy_continuation import cuts_by_earlier, earlier_to_compare
from lithify.rules.lifecycle.copies.missed_deletes import needed
from lithify.rules.lifecycle.copies.ownership import check_still_copy
from lithify.service.documents import source_ends_of
from lithify.service.read.signs import copied_signs
from lithify.service.snapshot.live import Reached, check_same

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_AS_KAFKA = str.maketrans("+/", "-_")


class KafkaTopic:
    """See `snapshot.live.LiveSource`."""

    system = "Kafka"

    def __init__(self, cluster: Cluster, topic: str, warehouse: Warehouse, name: TopicName) -> None:
        """`name` is its copy's."""
        self._cluster, self.topic, self._clock = cluster, topic, warehouse.clock
        self._warehouse, self._name = warehouse, name
        self._asking, self._asked_after = cluster.consumer(**LEAST), cluster.outages
        self._copied: dict[int, LogState] = {}
        """By partition, the log of the copy that was read last."""
        self._read: dict[int, ComparedRecord] = {}
        """By partition, the last record that this consumer has read, of the copy or of Kafka."""
        self._epochs_went_back: set[int] = set()
        """Partitions whose broker does not know the epoch any more in which they were read, and that lost nothing."""
        self._watch = TailWatch(cluster, topic, name, warehouse.clock, lambda partition: self._ends(partition)[1])
        try:
            self.partitions()  # before the id: this request notices at once that authentication is refused
            self.topic_id = cluster.topic_id(topic)
            self._learn_from_copy()
        except BaseException:
            self._asking.close()
            raise

    def check_same(self, known: str) -> None:
        written = known_id(known.translate(_AS_KAFKA))  # in positions of earlier versions
        check_same(self.system, self.topic, written, self._cluster.topic_id(self.topic))

    def check_copy(self, state: TopicState) -> None:
        check_still_copy(state)

    def partitions(self) -> int:
        return self._cluster.partitions(self._asker(), self.topic)

    def begin(self, partition: int, log: LogState, at: Reached) -> Reached | None:
        self._copied[partition] = log
        self._note_read({partition: at})
        self._check_uncut(partition, at.epoch, copied_in(log))
        self.enter(partition, log, at)
        time_ms = self._clock.now_ms()
        end, ends = max(at.offset, log.log_end_offset), self._ends(partition)
        if end:
            check_reachable(self.topic, partition, ends, end)
            self._check_last({partition: ends})
        start = end or ends[0]  # at Kafka's log start, as any consumer
        if (late := self._watch.begin(partition, start, ends[1], time_ms, anew=end == 0)) is not None:
            raise late
        return None if end else Reached(start)

    def enter(self, partition: int, log: LogState, at: Reached) -> None:
        self._copied[partition] = log
        if at.epoch is not None and log.source_epoch not in (None, at.epoch.epoch):
            self._check_uncut(partition, at.epoch)  # else it would go on with what another log has there
        self._watch.enter(partition, at.offset, log)

    def learn(self, ends: Ends) -> None:
        self._watch.goes_on(ends)

    def known_ends(self, places: Mapping[int, int]) -> Ends:
        return {p: needed(known, places[p]) for p, known in self._watch.known.items() if p in places}

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        return {partition: Reached(self._ends(partition)[1]) for partition in partitions}

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        if at.epoch is not None and at.epoch.offset < at.offset:  # else the tail's client asks
            self._check_uncut(partition, at.epoch)
        time_ms, ends = self._clock.now_ms(), self._ends(partition)
        try:
            check_reachable(self.topic, partition, ends, at.offset)
        except (SourceLostError, SourceWentBackError) as error:
            return error
        if self._watch.missed(partition, at.offset, ends[1], time_ms) is None:
            return None
        self._learn_from_copy()  # an ingest may have seen more since
        return self._watch.missed(partition, at.offset, ends[1], time_ms)

    def tail(self, starts: Mapping[int, Reached]) -> LiveTail:
        asked = {p: at._replace(epoch=None) if p in self._epochs_went_back else at for p, at in starts.items()}
        return LiveTail(
            self._cluster,
            self.topic,
            asked,
            self._clock,
            watch=self._watch,
            before=ReadBefore(self._compare, self._lacks, self.topic_id),
        )

    def close(self) -> None:
        self._asking.close()

    def _check_uncut(self, partition: int, *known: EpochAt | None) -> None:
        """Raises `SourceWentBackError` if Kafka's log has lost records that were read, or copied (C72)."""
        read = [at for at in known if at is not None and at.offset]
        epoch = leader_epoch(self._cluster, self.topic, partition) if read else None
        for at in read:
            if epoch in (None, at.epoch):  # a log loses records only with a new one
                continue
            cut = find_cut(self._cluster, self.topic, partition, at)
            if cut is not None and self._lacks(partition, at, cut):
                raise cut_error(f"{self.topic}-{partition}", cut, at.offset)

    def _lacks(self, partition: int, at: EpochAt, cut: Cut) -> bool:
        """Whether a log that its broker calls cut has lost what was read: not if it has the last record of that.

        A cluster that was restored to before later elections does not have their epochs.
        """
        if cut.offset is not None:
            return True
        log, last = self._copied.get(partition), self._read.get(partition)
        if last is None or at.offset > last.offset + 1:
            last = None if log is None or at.offset > log.log_end_offset else compared_record(log)
        start, end = self._ends(partition)
        if last is None or not start <= last.offset < end:
            return True
        if not last.is_proven(self._signs({partition: last.offset}).get(partition)):
            return True
        self._epochs_went_back.add(partition)
        return False

    def _compare(self, read: Mapping[int, Reached]) -> None:
        """Raises `SourceWentBackError` if what was read up to there is not what Kafka has there now."""
        self._note_read(read)
        for partition, at in read.items():
            if at.epoch is not None and at.epoch.offset < at.offset:
                self._check_uncut(partition, at.epoch)
        self._check_last({partition: self._ends(partition) for partition in read})

    def _note_read(self, read: Mapping[int, Reached]) -> None:
        self._read |= {partition: at.last for partition, at in read.items() if at.last is not None}

    def _check_last(self, ends: Mapping[int, tuple[int, int]]) -> None:
        """Raises `SourceWentBackError` if Kafka has another record in place of the last that was read, or copied."""
        read = {
            p: self._read[p]
            for p, (start, end) in ends.items()
            if p in self._read and start <= self._read[p].offset < end
        }
        for p, signs in self._signs({p: last.offset for p, last in read.items()}).items():
            if read[p].is_not(signs):
                raise cut_error(f"{self.topic}-{p}", Cut(None), read[p].offset + 1)
        self._check_last_copied(ends)

    def _check_last_copied(self, ends: Mapping[int, tuple[int, int]]) -> None:
        """Raises `SourceWentBackError` if Kafka has another record in place of the copy's last one (C72)."""
        logs = {p: self._copied[p] for p in ends}
        asked = {p: last.offset for p, log in logs.items() if (last := record_to_compare(log, *ends[p])) is not None}
        signs_by_partition = self._signs(asked)
        for p, signs in signs_by_partition.items():
            if (last := compared_record(logs[p])) is not None and last.is_not(signs):
                raise cut_error(f"{self.topic}-{p}", Cut(None), logs[p].log_end_offset)
        if lasts := {p: at for p, at in asked.items() if p not in signs_by_partition}:
            self._check_earlier({p: SourceLog(p, *ends[p]) for p in lasts}, lasts)

    def _check_earlier(self, source: Mapping[int, SourceLog], lasts: Mapping[int, int]) -> None:
        """Raises `SourceWentBackError` as well, for logs without a record at the offset of the copy's last one."""
        state = self._warehouse.store.load(self._name)
        ranges = earlier_to_compare(state, source, lasts)
        theirs = signs_between(self._cluster, self._asker(), self.topic, ranges)
        for p, cut in cuts_by_earlier(state, copied_signs(self._warehouse, state, ranges), theirs).items():
            raise cut_error(f"{self.topic}-{p}", Cut(cut.cut), self._copied[p].log_end_offset)

    def _signs(self, offsets: Mapping[int, int]) -> Mapping[int, Signs]:
        """By partition the signs of Kafka's record at its offset, if there is one."""
        ranges = {p: (at, at + 1) for p, at in offsets.items()}
        signs_by_partition = signs_between(self._cluster, self._asker(), self.topic, ranges)
        return {p: signs[offsets[p]] for p, signs in signs_by_partition.items() if signs}

    def _learn_from_copy(self) -> None:
        store = self._warehouse.store
        self._watch.learn(source_ends_of(store, store.load(self._name)))

    def _ends(self, partition: int) -> tuple[int, int]:
        return self._cluster.ends(self._asker(), self.topic, partition)

    def _asker(self) -> Consumer:
        """The consumer for requests; after an outage another one, as for a tail."""
        if (outages := self._cluster.outages) != self._asked_after:
            self._asking.close()
            self._asking, self._asked_after = self._cluster.consumer(**LEAST), outages
        return self._asking
