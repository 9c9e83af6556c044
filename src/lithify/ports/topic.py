"""A topic of a lake as consumers, tables and publishers need it: what `lake.topic(name)` returns is one."""

from __future__ import annotations

from typing import Protocol

from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse


class OpenTopic(Protocol):
    """Where a topic is, and its newest state."""

    @property
    def warehouse(self) -> Warehouse: ...

    @property
    def topic_name(self) -> TopicName: ...

    @property
    def name(self) -> str: ...

    def state(self) -> TopicState:
        """Its newest version. Raises `UnknownTopicError`, `WarehouseError`."""
        ...
