"""Creates, changes and deletes streams; lets topics inherit what has changed (C43, C56).

stream edit ─► attributes stored ─► every topic whose inherited settings differ is altered, a commit each
                    │ a crash here
                    └─► the next round of the topic, or the next look of a cleaner, does the rest
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from lithify.errors import ConflictError, InvalidSettingError, RefusedError, UnknownStreamError, UnknownTopicError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import TopicName, original_stream
from lithify.model.settings.inheritance import inheriting
from lithify.model.settings.stream_attributes import StreamAttributes, with_attributes
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore, Warehouse
from lithify.reports.changed_settings import AlterReport, SettingChange
from lithify.reports.streams import EditedTopic, StreamDeleteReport, StreamEditReport
from lithify.rules.lifecycle.setting_changes import altered
from lithify.service.change.alter import alter
from lithify.service.creation import attributes_of, create_warehouse
from lithify.waits.parallel import parallel

EDITS_AT_ONCE = 5
"""As often an edit looks whether others have changed the stream while it altered topics; a cleaner does the rest."""


def create_stream(warehouse: Warehouse, stream: str, config: Mapping[str, object]) -> None:
    """Creates a stream. Raises `InvalidSettingError`, `RefusedError` or `WarehouseError`."""
    create_warehouse(warehouse.store)
    warehouse.store.create_stream(stream, with_attributes(StreamAttributes(), config).given)


def edit_stream(
    warehouse: Warehouse, stream: str, config: Mapping[str, object], unset_names: Iterable[str] = ()
) -> StreamEditReport:
    """Sets and unsets attributes, then alters the topics that inherit other settings by it.

    Only these are written, so that an edit at the same time loses nothing. A topic that fails has its error in the
    report; a repetition tries it again. Raises `UnknownStreamError`, `InvalidSettingError` or `WarehouseError`, and has
    changed nothing then; `ConflictError` if another edit contradicts, so that the attributes need a repair.
    """
    store = warehouse.store
    with store.edit_lock(stream):
        store.stream_topics(stream)  # it must exist
        stored = store.stream_attributes([stream]).get(stream)
        before = StreamAttributes(stored or {})  # unchecked: an edit may repair it
        wanted = with_attributes(before, config, unset_names)
        names = [n for n in {**before.given, **wanted.given} if before.given.get(n) != wanted.given.get(n)]
        if stored is None or names:
            given = {name: text for name, text in wanted.given.items() if name in names}
            store.change_stream(stream, given, [name for name in names if name not in given])
    return StreamEditReport(
        stream=original_stream(stream),
        attributes={n: SettingChange(before.given.get(n, ""), wanted.given.get(n, "")) for n in names},
        topics=tuple(_all_edited(warehouse, stream)),
    )


def _all_edited(warehouse: Warehouse, stream: str) -> Iterable[EditedTopic]:
    """Alters the topics that inherit other settings; again if an edit at the same time has stored others meanwhile.

    That edit may have read a topic just before this one committed what was stored earlier.
    """
    store, edited = warehouse.store, dict[TopicName, EditedTopic]()
    attributes = _as_stored(store, stream)
    for _ in range(EDITS_AT_ONCE):
        topics = store.stream_topics(stream)
        edits = parallel(partial(_edited, warehouse, attributes=attributes), topics, store.at_once)
        for name, topic in zip(topics, edits, strict=True):
            earlier = edited.pop(name, None)
            if topic is not None:  # else it was deleted meanwhile
                unchanged = topic.altered is None and topic.error is None
                edited[name] = earlier if unchanged and earlier is not None and earlier.error is None else topic
        applied, attributes = attributes, _as_stored(store, stream)
        if attributes == applied:
            break
    return edited.values()


def _as_stored(store: LogStore, stream: str) -> StreamAttributes:
    """What is stored after an edit. Raises `ConflictError` if edits contradict that could not take turns."""
    try:
        return attributes_of(store, stream) or StreamAttributes()
    except InvalidSettingError as error:
        raise ConflictError(f"the stream was edited at the same time: {error.message}", hint=error.hint) from error


def inherit(warehouse: Warehouse, state: TopicState, attributes: StreamAttributes) -> AlterReport | None:
    """Alters a topic that does not have what these attributes say, by those that there are now; None if it has.

    Raises `InvalidSettingError` if that contradicts settings of its own, or what `alter` raises.
    """
    if state.replica is not None:  # it has the settings of its source (C63)
        return None
    if inheriting(state.settings, state.own_settings, attributes.inherited) == state.settings:
        return None
    return alter(warehouse, state.name, {})


def inherit_now(warehouse: Warehouse, name: TopicName) -> TopicState | None:
    """Does for one topic what an interrupted `edit_stream` has left undone. Raises what `inherit` raises.

    Returns the topic if it had to be loaded, and is still at that version.
    """
    attributes = attributes_of(warehouse.store, name.stream)
    if attributes is None:
        return None
    state = warehouse.store.load(name)
    return state if inherit(warehouse, state, attributes) is None else None


def as_inherited(warehouse: Warehouse, state: TopicState) -> TopicState:
    """The topic as it will be after `inherit`, for a plan. Raises what `inherit` raises."""
    attributes = None if state.replica is not None else attributes_of(warehouse.store, state.name.stream)
    settings = (
        state.settings if attributes is None else inheriting(state.settings, state.own_settings, attributes.inherited)
    )
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
            f"{original_stream(stream)}: the stream has {count}", hint="delete the topics first, or add --topics"
        )
    left: list[str] = []
    for name in topics:
        left += warehouse.store.drop_topic(name)
    try:
        warehouse.store.drop_stream(stream)
    except UnknownStreamError:
        if not topics:  # else it was never created, and is gone with its topics
            raise
    return StreamDeleteReport(original_stream(stream), True, tuple(map(str, topics)), tuple(left))


def _edited(warehouse: Warehouse, name: TopicName, attributes: StreamAttributes) -> EditedTopic | None:
    try:
        return EditedTopic(str(name), inherit(warehouse, warehouse.store.load(name), attributes))
    except UnknownTopicError:  # deleted meanwhile
        return None
    except Exception as error:
        failed = as_lithify_error(error, name)
        return EditedTopic(str(name), error=str(failed), error_code=failed.code)
