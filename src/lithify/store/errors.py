"""Errors that both stores raise, in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lithify.errors import (
    LocationChangedError,
    RefusedError,
    TopicExistsError,
    UnknownStreamError,
    UnknownTopicError,
    UnknownVersionError,
    WarehouseError,
)
from lithify.model.names import PULSARS, TopicName, nearest, original_name, original_stream
from lithify.model.segment import Segment
from lithify.model.topic.edit import KeptVersion, TopicEdit


def unknown_topic(name: TopicName, where: str) -> UnknownTopicError:
    hint = "`lithify topic list` lists the topics"
    if (original := original_name(name)).startswith(PULSARS):
        hint += (
            f"; `lithify pulsar ingest {original}` copies a live topic into the warehouse, and "
            f"`lithify pulsar compact {original}` compacts it in its cluster"
        )
    return UnknownTopicError(f"{name}: no such topic in {where}", hint=hint)


def outside(name: TopicName, where: str, path: str) -> LocationChangedError:
    """The error for files that are not in the folder of the warehouse whose catalog names them (C47)."""
    return LocationChangedError(
        f"{name}: the catalog of {where} names files outside of it: {path}",
        hint="a warehouse cannot be copied or moved as a folder: use it where it was, and copy topics with "
        "`lithify replica add TOPIC --to DIR`; nothing was changed",
    )


def topic_exists(name: TopicName) -> TopicExistsError:
    return TopicExistsError(f"{name}: the topic exists already", hint="choose another name, or delete it first")


def unknown_stream(stream: str, there: Iterable[str]) -> UnknownStreamError:
    stream = original_stream(stream)
    hint = nearest(stream, map(original_stream, there), "`lithify stream list` lists the streams")
    return UnknownStreamError(f"{stream}: no such stream", hint=hint)


def stream_exists(stream: str) -> RefusedError:
    return RefusedError(
        f"{original_stream(stream)}: the stream exists already", hint="`lithify stream edit` changes its attributes"
    )


def stream_not_empty(stream: str) -> RefusedError:
    return RefusedError(
        f"{original_stream(stream)}: there are tables in the stream",
        hint="delete its topics first; nothing was changed",
    )


def unknown_version(name: TopicName, version: int, kept: Sequence[KeptVersion], newest: int) -> UnknownVersionError:
    """Of the state that the `newest` version names; `kept` are those before it."""
    there = ", ".join(str(k.version) for k in kept) or "no earlier one"
    hint = f"retained: {there}; the newest is {newest}, which is read if none is given"
    return UnknownVersionError(f"{name}: version {version} is not retained", hint=hint)


def no_warehouse(where: str) -> WarehouseError:
    return WarehouseError(
        f"{where}: there is no warehouse yet",
        hint="check the path; `lithify topic create` makes the first topic",
    )


def no_common_folder(where: str) -> WarehouseError:
    return WarehouseError(
        f"{where}: it gives every topic a folder of its own, and has none for rates of all cleaners",
        hint="`lithify throttle TOPIC` works, one topic at a time",
    )


def check_removed(edit: TopicEdit, remove: Iterable[Segment], named: Iterable[Segment]) -> None:
    """Raises `ValueError` if `edit` removes a segment that the version does not name.

    That is a defect of the caller, so nothing is committed.
    """
    absent = {segment.id for segment in remove}.difference(segment.id for segment in named)
    if absent:
        raise ValueError(f"run {edit.run_id} removes a segment that the version does not name: {min(absent)}")
