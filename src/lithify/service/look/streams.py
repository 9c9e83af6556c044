"""Streams as `stream info` and `stream list` show them (C56)."""

from __future__ import annotations

from collections import Counter

from lithify.errors import InvalidSettingError
from lithify.model.names import in_order, original_stream
from lithify.model.settings.inheritance import Origin
from lithify.model.settings.stream_attributes import (
    ATTRIBUTES,
    INHERITABLE,
    StreamAttributes,
    keeps,
)
from lithify.ports.store import Warehouse
from lithify.reports.streams import AttributeValue, StreamInfo
from lithify.service.creation import all_attributes


def stream_info(warehouse: Warehouse, stream: str) -> StreamInfo:
    """Raises `UnknownStreamError` or `WarehouseError`."""
    topics = warehouse.store.stream_topics(stream)
    return _info(warehouse, stream, all_attributes(warehouse.store, [stream]).get(stream), len(topics))


def all_streams(warehouse: Warehouse) -> tuple[StreamInfo, ...]:
    """All streams by name. Raises `WarehouseError`."""
    streams = warehouse.store.streams()
    topics = Counter(name.stream for name in warehouse.store.topics())
    known = all_attributes(warehouse.store, streams)
    return tuple(
        _info(warehouse, stream, known.get(stream), topics[stream]) for stream in sorted(streams, key=in_order)
    )


def _info(
    warehouse: Warehouse, stream: str, attributes: StreamAttributes | InvalidSettingError | None, topics: int
) -> StreamInfo:
    if isinstance(attributes, InvalidSettingError):
        return _invalid(warehouse, stream, attributes, topics)
    attributes = StreamAttributes() if attributes is None else attributes
    values = {
        name: AttributeValue(attributes.value(name), Origin.STREAM if attributes.is_given(name) else Origin.DEFAULT)
        for name in (*ATTRIBUTES, *INHERITABLE)
    }
    return StreamInfo(original_stream(stream), stream, values, topics, keeps(attributes))


def _invalid(warehouse: Warehouse, stream: str, error: InvalidSettingError, topics: int) -> StreamInfo:
    """Of attributes that other programs set it shows what is stored."""
    stored = warehouse.store.stream_attributes([stream]).get(stream, {})
    values = {name: AttributeValue(text, Origin.STREAM) for name, text in sorted(stored.items())}
    return StreamInfo(original_stream(stream), stream, values, topics, "the same as before", str(error), error.code)
