"""A topic in one version, as clients of Kafka see it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.kafka_server.logs.kafka_names import kafka_name
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.topic_ids import topic_id
from lithify.kafka_server.logs.version_files import VersionFiles
from lithify.model.names import LogId, TopicName
from lithify.model.topic.state import TopicState
from lithify.rules.reading.pieces import Reading


@dataclass(frozen=True, slots=True, eq=False)
class ServedTopic:
    """Its logs are read without asking the catalog, as long as their files are there."""

    kafka_name: str
    topic_id: bytes
    """The 16 bytes of a UUID; a recreated topic has another one."""
    state: TopicState
    files: VersionFiles
    how: Reading = Reading()

    @classmethod
    def of(cls, state: TopicState, files: VersionFiles) -> ServedTopic:
        """As it was written, or compacted in place."""
        return cls(kafka_name(state.name), topic_id(state.identity), state, files)

    @property
    def name(self) -> TopicName:
        return self.state.name

    @property
    def partitions(self) -> range:
        return self.state.partitions

    def log(self, partition: int) -> ServedLog:
        """The log of one of `partitions`."""
        return ServedLog(LogId(self.name, partition), self.state.log(partition), self.files, self.how)

    def compacted(self) -> ServedTopic | None:
        """Its compacted data, as a topic of its own; None if that is not side by side."""
        if not self.state.settings.side_by_side:
            return None
        name, its_id = kafka_name(self.name, compacted=True), topic_id(f"{self.state.identity} compacted")
        return replace(self, kafka_name=name, topic_id=its_id, how=Reading(compacted=True))
