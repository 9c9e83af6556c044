"""The Python API: a lake holds topics.

What the verbs of the command line print is what these methods return, as typed values with
`to_json()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.errors import RefusedError
from lithify.model.names import parse_topic
from lithify.model.settings import settings_of
from lithify.ports import Warehouse
from lithify.topic import MAX_PARTITIONS, Topic
from lithify.wiring import open_warehouse


@dataclass(frozen=True, slots=True)
class Lake:
    """A warehouse of topics. Made by `lithify.open`."""

    warehouse: Warehouse

    def create_topic(
        self, name: str, partitions: int = 1, *, like: str = "kafka", config: Mapping[str, object] | None = None
    ) -> Topic:
        """Makes a topic with the settings of a preset (`kafka`, `pulsar`, `mapr`) and `config` over it.

        Raises `TopicExistsError`, `InvalidSettingError` or `InvalidNameError`.
        """
        reference = parse_topic(name)
        if reference.partition is not None:
            raise RefusedError(f"{name} names a partition; create the topic {reference.original}")
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise RefusedError(f"partitions={partitions}: a topic has 1 to {MAX_PARTITIONS}")
        settings = settings_of(config or {}, like=like)
        now_ms = self.warehouse.clock.now_ms()
        self.warehouse.store.create_topic(reference.name, reference.original, settings, partitions, now_ms)
        return Topic(self.warehouse, reference.name)

    def topic(self, name: str) -> Topic:
        """The topic of that name. Raises `UnknownTopicError` or `InvalidNameError`."""
        topic = Topic(self.warehouse, parse_topic(name).name)
        topic.state()
        return topic

    def topics(self) -> tuple[Topic, ...]:
        """All topics, by stream and name."""
        return tuple(Topic(self.warehouse, name) for name in sorted(self.warehouse.store.topics()))

    def delete_topic(self, name: str) -> None:
        """Deletes a topic and its files, for good. Raises `UnknownTopicError`."""
        reference = parse_topic(name)
        if reference.partition is not None:
            raise RefusedError(f"{name} names a partition; only a whole topic can be deleted")
        self.warehouse.store.drop_topic(reference.name)


def open_lake(warehouse: str | None = None, *, catalog: str | None = None) -> Lake:
    """A lake at a directory or URI, or behind a catalog by name; `./lithify-warehouse` by default.

    Raises `WarehouseError` if it cannot be used.
    """
    return Lake(open_warehouse(warehouse, catalog))
