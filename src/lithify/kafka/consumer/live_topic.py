"""A topic of a Kafka cluster as that behind a copy: its ends, its id, and its tail."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lithify.errors import LithifyError, SourceLostError, SourceWentBackError
from lithify.kafka.consumer.live_tail import LiveTail, check_reachable
from lithify.kafka_client.client import Cluster
from lithify.lifecycle.copies.kafka import check_still_copy
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
        end, ends = max(at.offset, log.log_end_offset), self._ends(partition)
        if end == 0:  # at Kafka's log start, as any consumer
            return Reached(ends[0])
        check_reachable(self.topic, partition, ends, end)
        return None

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        return {partition: Reached(self._ends(partition)[1]) for partition in partitions}

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        try:
            check_reachable(self.topic, partition, self._ends(partition), at.offset)
        except (SourceLostError, SourceWentBackError) as error:
            return error
        return None

    def tail(self, starts: Mapping[int, Reached]) -> LiveTail:
        offsets = {partition: at.offset for partition, at in starts.items()}
        return LiveTail(self._cluster, self.topic, offsets, self._clock, topic_id=self.topic_id)

    def close(self) -> None:
        self._asking.close()

    def _ends(self, partition: int) -> tuple[int, int]:
        return self._cluster.ends(self._asking, self.topic, partition)
