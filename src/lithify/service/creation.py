"""Creates topics with what they inherit from their stream, also at their first append (C56), and warehouses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from lithify.errors import InvalidSettingError, TopicExistsError, UnknownTopicError, WarehouseError
from lithify.model.formats.warehouse import NEWEST_FORMAT, UNSTATED_FORMAT, WarehouseFormat
from lithify.model.names import TopicName, TopicReference, check_printable, nearest, original_name, original_stream
from lithify.model.settings.inheritance import in_force
from lithify.model.settings.stream_attributes import StreamAttributes, with_attributes
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.documents import DocumentKind
from lithify.ports.store import LogStore, Warehouse
from lithify.rules.lifecycle.admission import check_partitions
from lithify.rules.lifecycle.copies.ownership import check_takes_records
from lithify.service.documents import put_warehouse_format, warehouse_format


def attributes_of(store: LogStore, stream: str) -> StreamAttributes | None:
    """The attributes of a stream; None if it was neither created nor changed.

    Raises `InvalidSettingError` for attributes that other programs set, or `WarehouseError`.
    """
    attributes = all_attributes(store, [stream]).get(stream)
    if isinstance(attributes, InvalidSettingError):
        raise attributes
    return attributes


def all_attributes(store: LogStore, streams: Collection[str]) -> dict[str, StreamAttributes | InvalidSettingError]:
    """The same of several streams, or why they are invalid; without those that were neither created nor changed."""
    stored = store.stream_attributes(streams)
    return {stream: _checked(stream, attributes) for stream, attributes in stored.items()}


def _checked(stream: str, stored: Mapping[str, str]) -> StreamAttributes | InvalidSettingError:
    try:
        return with_attributes(StreamAttributes(), stored)
    except InvalidSettingError as error:
        name = original_stream(stream)
        hint = f"correct it with `lithify stream edit {name}` and --unset or --config"
        return InvalidSettingError(f"{name}: the attributes of the stream are invalid: {error.message}", hint=hint)


def create_warehouse(store: LogStore) -> None:
    """Gives a warehouse that has nothing in it, or is not there yet, the newest format, before its first topic (C66).

    Two programs that do so at a time state the same. Raises `UnsupportedFormatError` or `WarehouseError`.
    """
    if warehouse_format(store) == UNSTATED_FORMAT and format_now(store) == NEWEST_FORMAT:
        store.create_warehouse()
        put_warehouse_format(store, NEWEST_FORMAT)


def format_now(store: LogStore) -> WarehouseFormat:
    """The format of a warehouse as its first topic will find it. Raises what `warehouse_format` raises.

    One that has topics or streams and says nothing was made by an earlier Lithify, which may still use it. One without
    a folder of its own says it in a namespace of the catalog, which nothing but an upgrade creates.
    """
    stated_format = warehouse_format(store)
    if stated_format != UNSTATED_FORMAT or not _has_folder(store) or store.topics() or store.streams():
        return stated_format
    return NEWEST_FORMAT


def _has_folder(store: LogStore) -> bool:
    with suppress(WarehouseError):
        store.document_path(None, DocumentKind.FORMAT)
        return True
    return False


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
    create_warehouse(warehouse.store)
    now_ms = warehouse.clock.now_ms()
    return warehouse.store.create_topic(
        NewTopic(name, reference.original, settings, partitions, now_ms, frozenset(own))
    )


def check_known(store: LogStore, name: TopicName) -> None:
    """Raises `UnknownTopicError`, with the nearest name, for a topic that is not there and that no append creates."""
    try:
        store.load(name)
    except UnknownTopicError as error:
        if creates_itself(store, name):
            return
        name_the_nearest(store, name, error)
        raise


def name_the_nearest(store: LogStore, name: TopicName, error: UnknownTopicError) -> None:
    """Has the error for a topic that is not there name the one that may be meant."""
    with suppress(WarehouseError):
        known = sorted(original_name(topic) for topic in store.topics())
        error.hint = nearest(original_name(name), known, error.hint)


def creates_itself(store: LogStore, name: TopicName) -> bool:
    """Whether the first append to a topic that does not exist creates it."""
    attributes = attributes_of(store, name.stream)
    return attributes is not None and attributes.autocreate


def load_or_create(warehouse: Warehouse, name: TopicName) -> TopicState:
    """The topic that is appended to.

    Raises `UnknownTopicError` if its stream creates none by itself, or `PolicyError` for a replica (C64) or a copy of
    a Kafka topic (C70).
    """
    try:
        return _taking(warehouse.store.load(name))
    except UnknownTopicError:
        if not creates_itself(warehouse.store, name):
            raise
    with suppress(TopicExistsError):  # another append has created it right now
        return create_topic(warehouse, TopicReference(name, str(name)), {})
    return _taking(warehouse.store.load(name))


def _taking(state: TopicState) -> TopicState:
    check_takes_records(state)
    return state
