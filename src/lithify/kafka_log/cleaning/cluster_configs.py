"""What the metadata log of a cluster says of its topics and their settings, once its records are applied in order.

    TopicRecord, ConfigRecord, RemoveTopicRecord ─► applied     within a transaction: all together, or none

A setting of a topic counts before one of its broker, and this before one that all brokers have. What a broker has in
its `server.properties` comes after them, and is not in the log.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lithify.kafka_protocol.metadata import MetadataRecord

_TOPIC, _BROKER = 2, 4
"""Kinds of what has settings, by Kafka's numbers."""
_EVERY_BROKER: Final = ""

OF_BROKERS: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "index.interval.bytes": "log.index.interval.bytes",
    "producer.id.expiration.ms": "producer.id.expiration.ms",
}
"""The settings that a cleaner goes by, and the names under which a broker has them for topics without their own."""

Settings = Mapping[tuple[int, str], Mapping[str, str]]


@dataclass(slots=True)
class ClusterConfigs:
    """Filled by `apply`."""

    topics: dict[str, str] = field(default_factory=dict)
    """Ids by name, as `partition.metadata` has them."""
    _settings: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    _before: tuple[dict[str, str], Settings] | None = None
    """As it was when the open transaction began."""

    def apply(self, record: MetadataRecord) -> None:
        match record:
            case MetadataRecord("TopicRecord", {"name": name, "topic_id": topic_id}):
                self.topics[name] = _text_of(topic_id)
            case MetadataRecord("RemoveTopicRecord", {"topic_id": topic_id}):
                gone = [name for name, own in self.topics.items() if own == _text_of(topic_id)]
                for name in gone:
                    del self.topics[name]
                    self._settings.pop((_TOPIC, name), None)
            case MetadataRecord("ConfigRecord", fields):
                self._set(fields)
            case MetadataRecord("BeginTransactionRecord"):
                self._before = dict(self.topics), {owner: dict(own) for owner, own in self._settings.items()}
            case MetadataRecord("EndTransactionRecord"):
                self._before = None
            case _:
                self.end()

    def end(self) -> None:
        """Forgets what a transaction has changed that was aborted, or has not ended."""
        if self._before is not None:
            self.topics, settings = self._before
            self._settings = {owner: dict(own) for owner, own in settings.items()}
            self._before = None

    def of(self, topic: str, node: str) -> Mapping[str, str]:
        """The settings of a topic that a cleaner goes by, as far as they are stated for it on that broker."""
        own = self._settings.get((_TOPIC, topic), {})
        brokers = [self._settings.get((_BROKER, name), {}) for name in (node, _EVERY_BROKER)]
        found = {name: [own.get(name), *(one.get(named) for one in brokers)] for name, named in OF_BROKERS.items()}
        stated = {name: [value for value in values if value is not None] for name, values in found.items()}
        return {name: values[0] for name, values in stated.items() if values}

    def _set(self, fields: Mapping[str, Any]) -> None:
        own = self._settings.setdefault((fields["resource_type"], fields["resource_name"]), {})
        if fields["value"] is None:
            own.pop(fields["name"], None)
        else:
            own[fields["name"]] = fields["value"]


def _text_of(topic_id: bytes) -> str:
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()
