"""Streams as `stream info` and `stream list` show them (C56)."""

from __future__ import annotations

from collections import Counter

from lithify.model.names import original_stream
from lithify.model.settings.inheritance import Origin
from lithify.model.settings.stream_attributes import (
    ATTRIBUTES,
    INHERITABLE,
    StreamAttributes,
    keeps,
)
from lithify.ports.store import Warehouse
from lithify.reports.streams import AttributeValue, StreamInfo
from lithify.service.creation import all_attributes, attributes_of


def stream_info(warehouse: Warehouse, stream: str) -> StreamInfo:
    """Raises `UnknownStreamError` or `WarehouseError`."""
    topics = warehouse.store.stream_topics(stream)
    return _info(stream, attributes_of(warehouse.store, stream), len(topics))


def all_streams(warehouse: Warehouse) -> tuple[StreamInfo, ...]:
    """All streams by name. Raises `WarehouseError`."""
    streams = warehouse.store.streams()
    topics = Counter(name.stream for name in warehouse.store.topics())
    known = all_attributes(warehouse.store, streams)
    return tuple(_info(stream, known.get(stream), topics[stream]) for stream in streams)


def _info(stream: str, attributes: StreamAttributes | None, topics: int) -> StreamInfo:
    found = StreamAttributes() if attributes is None else attributes
    values = {
        name: AttributeValue(found.value(name), Origin.STREAM if found.is_given(name) else Origin.DEFAULT)
        for name in (*ATTRIBUTES, *INHERITABLE)
    }
    return StreamInfo(original_stream(stream), stream, values, topics, keeps(found))
