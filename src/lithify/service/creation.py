"""Creates topics with what they inherit from their stream, also at their first append (C56)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from lithify.errors import TopicExistsError, UnknownTopicError
from lithify.lifecycle.admission import check_partitions
from lithify.model.log import TopicState
from lithify.model.names import TopicName, TopicReference, check_printable
from lithify.model.settings.inheritance import in_force
from lithify.model.settings.stream_attributes import StreamAttributes, with_attributes
from lithify.ports.store import LogStore, Warehouse


def attributes_of(store: LogStore, stream: str) -> StreamAttributes | None:
    """The attributes of a stream; None if it was neither created nor changed.

    Raises `InvalidSettingError` for attributes that other programs set, or `WarehouseError`.
    """
    return all_attributes(store, [stream]).get(stream)


def all_attributes(store: LogStore, streams: Collection[str]) -> dict[str, StreamAttributes]:
    """The same of several streams, without those that were neither created nor changed."""
    stored = store.stream_attributes(streams)
    return {stream: with_attributes(StreamAttributes(), attributes) for stream, attributes in stored.items()}


def create_topic(
    warehouse: Warehouse, reference: TopicReference, own: Mapping[str, object], partitions: int | None = None
) -> TopicState:
    """Creates a topic with these settings of its own; without `partitions` it gets as many as its stream says.

    Raises `TopicExistsError`, `InvalidNameError`, `InvalidSettingError`, `RefusedError` or `WarehouseError`.
    """
    check_printable(reference)
    name = reference.whole("created")
    attributes = attributes_of(warehouse.store, name.stream) or StreamAttributes()
    settings = in_force(own, attributes.inherited)
    if partitions is None:
        partitions = attributes.default_partitions
    check_partitions(partitions)
    now_ms = warehouse.clock.now_ms()
    return warehouse.store.create_topic(name, reference.original, settings, partitions, now_ms, frozenset(own))


def creates_itself(store: LogStore, name: TopicName) -> bool:
    """Whether the first append to a topic that does not exist creates it."""
    attributes = attributes_of(store, name.stream)
    return attributes is not None and attributes.autocreate


def load_or_create(warehouse: Warehouse, name: TopicName) -> TopicState:
    """The topic that is appended to. Raises `UnknownTopicError` if its stream creates none by itself."""
    try:
        return warehouse.store.load(name)
    except UnknownTopicError:
        if not creates_itself(warehouse.store, name):
            raise
    with suppress(TopicExistsError):  # another append has created it right now
        return create_topic(warehouse, TopicReference(name, str(name)), {})
    return warehouse.store.load(name)
