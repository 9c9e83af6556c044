"""Creates, changes and deletes streams; lets topics inherit what has changed (C43, C56).

stream edit ─► attributes stored ─► every topic whose inherited settings differ is altered, a commit each
                    │ a crash here
                    └─► the next round of the topic, or the next look of a cleaner, does the rest
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from lithify.defects import as_lithify_error
from lithify.errors import RefusedError, UnknownTopicError
from lithify.lifecycle.setting_changes import altered
from lithify.model.log import TopicState
from lithify.model.names import TopicName, original_stream
from lithify.model.settings.inheritance import inheriting
from lithify.model.settings.stream_attributes import StreamAttributes, with_attributes
from lithify.ports.store import Warehouse
from lithify.reports.cut import AlterReport, SettingChange
from lithify.reports.streams import EditedTopic, StreamDeleteReport, StreamEditReport
from lithify.service.change.alter import alter
from lithify.service.creation import attributes_of
from lithify.waits.parallel import parallel


def create_stream(warehouse: Warehouse, stream: str, config: Mapping[str, object]) -> None:
    """Creates a stream. Raises `InvalidSettingError`, `RefusedError` or `WarehouseError`."""
    warehouse.store.create_stream(stream, with_attributes(StreamAttributes(), config).given)


def edit_stream(
    warehouse: Warehouse, stream: str, config: Mapping[str, object], unset_names: Iterable[str] = ()
) -> StreamEditReport:
    """Sets and unsets attributes, then alters the topics that inherit other settings by it.

    A topic that fails has its error in the report; a repetition tries it again. Raises `UnknownStreamError`,
    `InvalidSettingError` or `WarehouseError`, and has changed nothing then.
    """
    store = warehouse.store
    topics = store.stream_topics(stream)
    known = attributes_of(store, stream)
    before = StreamAttributes() if known is None else known
    after = with_attributes(before, config, unset_names)
    gone = before.given.keys() - after.given.keys()
    if known is None or after != before:
        store.change_stream(stream, after.given, gone)
    names = [name for name in (*before.given, *after.given) if before.given.get(name) != after.given.get(name)]
    edited = parallel(partial(_edited, warehouse, attributes=after), topics, store.at_once)
    return StreamEditReport(
        stream=original_stream(stream),
        attributes={n: SettingChange(before.given.get(n, ""), after.given.get(n, "")) for n in names},
        topics=tuple(topic for topic in edited if topic is not None),
    )


def inherit(warehouse: Warehouse, state: TopicState, attributes: StreamAttributes) -> AlterReport | None:
    """Alters a topic that does not have what these attributes say, by those that there are now; None if it has.

    Raises `InvalidSettingError` where that contradicts settings of its own, or what `alter` raises.
    """
    if inheriting(state.settings, state.own_settings, attributes.inherited) == state.settings:
        return None
    return alter(warehouse, state.name, {})


def inherit_now(warehouse: Warehouse, name: TopicName) -> None:
    """Does for one topic what an interrupted `edit_stream` has left undone. Raises what `inherit` raises."""
    attributes = attributes_of(warehouse.store, name.stream)
    if attributes is not None:
        inherit(warehouse, warehouse.store.load(name), attributes)


def as_inherited(warehouse: Warehouse, state: TopicState) -> TopicState:
    """The topic as it will be after `inherit`, for a plan. Raises what `inherit` raises."""
    found = attributes_of(warehouse.store, state.name.stream)
    settings = state.settings if found is None else inheriting(state.settings, state.own_settings, found.inherited)
    if settings == state.settings:
        return state
    logs = altered(state, warehouse.store.segments(state), settings, len(state.logs))
    return replace(state, settings=settings, logs=tuple(logs.get(log.partition, log) for log in state.logs))


def delete_stream(warehouse: Warehouse, stream: str, *, with_topics: bool = False) -> StreamDeleteReport:
    """Deletes a stream, and `with_topics` those irreversibly; a repetition continues after an error.

    Raises `UnknownStreamError`, `RefusedError` while it has topics, or what deleting a topic raises.
    """
    topics = warehouse.store.stream_topics(stream)
    if topics and not with_topics:
        count = f"{len(topics)} topic{'s' if len(topics) > 1 else ''}"
        raise RefusedError(
            f"{original_stream(stream)}: the stream has {count}", hint="delete them first, or with it: --topics"
        )
    left: list[str] = []
    for name in topics:
        left += warehouse.store.drop_topic(name)
    warehouse.store.drop_stream(stream)
    return StreamDeleteReport(original_stream(stream), True, tuple(map(str, topics)), tuple(left))


def _edited(warehouse: Warehouse, name: TopicName, attributes: StreamAttributes) -> EditedTopic | None:
    try:
        return EditedTopic(str(name), inherit(warehouse, warehouse.store.load(name), attributes))
    except UnknownTopicError:  # deleted meanwhile
        return None
    except Exception as error:
        return EditedTopic(str(name), error=str(as_lithify_error(error, name)))
