"""A topic of a Kafka cluster as that behind a copy: its ends, its id, and its tail."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lithify.errors import LithifyError, SourceLostError, SourceWentBackError
from lithify.kafka.consumer.live_tail import LiveTail, check_reachable, cut_error
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.epochs import find_cut, leader_epoch
from lithify.lifecycle.copies.kafka import check_still_copy
from lithify.model.source import EpochAt, copied_in
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.snapshot.live import Reached, check_same

_AS_KAFKA = str.maketrans("+/", "-_")


class KafkaTopic:
    """See `snapshot.live.LiveSource`."""

    system = "Kafka"

    def __init__(self, cluster: Cluster, topic: str, clock: Clock) -> None:
        self._cluster, self.topic, self._clock = cluster, topic, clock
        self._asking = cluster.consumer()
        try:
            self.partitions()  # before the id: this request notices at once that authentication is refused
            self.topic_id = cluster.topic_id(topic)
        except BaseException:
            self._asking.close()
            raise

    def check_same(self, known: str) -> None:
        written = known.translate(_AS_KAFKA)  # in positions of earlier versions
        check_same(self.system, self.topic, written, self._cluster.topic_id(self.topic))

    def check_copy(self, state: TopicState) -> None:
        check_still_copy(state)

    def partitions(self) -> int:
        return self._cluster.partitions(self._asking, self.topic)

    def begin(self, partition: int, log: LogState, at: Reached) -> Reached | None:
        self._check_uncut(partition, at.epoch, copied_in(log))
        end, ends = max(at.offset, log.log_end_offset), self._ends(partition)
        if end == 0:  # at Kafka's log start, as any consumer
            return Reached(ends[0])
        check_reachable(self.topic, partition, ends, end)
        return None

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        return {partition: Reached(self._ends(partition)[1]) for partition in partitions}

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        if at.epoch is not None and at.epoch.offset < at.offset:  # else the tail's client asks
            self._check_uncut(partition, at.epoch)
        try:
            check_reachable(self.topic, partition, self._ends(partition), at.offset)
        except (SourceLostError, SourceWentBackError) as error:
            return error
        return None

    def tail(self, starts: Mapping[int, Reached]) -> LiveTail:
        return LiveTail(self._cluster, self.topic, starts, self._clock, topic_id=self.topic_id)

    def close(self) -> None:
        self._asking.close()

    def _check_uncut(self, partition: int, *known: EpochAt | None) -> None:
        """Raises `SourceWentBackError` if Kafka's log has lost records that were read, or copied (C72)."""
        read = [at for at in known if at is not None and at.offset]
        epoch = leader_epoch(self._cluster, self.topic, partition) if read else None
        for at in read:
            if epoch in (None, at.epoch):  # a log loses records only with a new one
                continue
            if (cut := find_cut(self._cluster, self.topic, partition, at)) is not None:
                raise cut_error(self.topic, partition, cut, at.offset)

    def _ends(self, partition: int) -> tuple[int, int]:
        return self._cluster.ends(self._asking, self.topic, partition)
