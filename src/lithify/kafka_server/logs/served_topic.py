"""A topic in one version, as clients of Kafka see it."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.version_files import VersionFiles
from lithify.model.names import LogId, TopicName
from lithify.model.topic.state import TopicState


@dataclass(frozen=True, slots=True, eq=False)
class ServedTopic:
    """Its logs are read without asking the catalog, as long as their files are there."""

    kafka_name: str
    topic_id: bytes
    """The 16 bytes of a UUID; a recreated topic has another one."""
    state: TopicState
    files: VersionFiles

    @property
    def name(self) -> TopicName:
        return self.state.name

    @property
    def partitions(self) -> range:
        return self.state.partitions

    def log(self, partition: int) -> ServedLog:
        """The log of one of `partitions`."""
        return ServedLog(LogId(self.name, partition), self.state.log(partition), self.files)
