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
    hint = "run `lithify topic list` to see the topics"
    if (original := original_name(name)).startswith(PULSARS):
        hint += (
            f", `lithify pulsar ingest {original}` to copy a live topic into the warehouse, or "
            f"`lithify pulsar compact {original}` to compact it in its cluster"
        )
    return UnknownTopicError(f"{name}: no such topic in {where}", hint=hint)


def outside(name: TopicName, where: str, path: str) -> LocationChangedError:
    """The error for files that are not in the folder of the warehouse whose catalog names them (C47)."""
    return LocationChangedError(
        f"{name}: the catalog of {where} references files outside of it: {path}",
        hint="use the warehouse where it was, as it cannot be copied or moved as a folder; copy topics with "
        "`lithify replica add TOPIC --to DIR`; nothing was changed",
    )


def topic_exists(name: TopicName) -> TopicExistsError:
    return TopicExistsError(f"{name}: the topic exists already", hint="choose another name, or delete it first")


def unknown_stream(stream: str, there: Iterable[str]) -> UnknownStreamError:
    stream = original_stream(stream)
    hint = nearest(stream, map(original_stream, there), "run `lithify stream list` to see the streams")
    return UnknownStreamError(f"{stream}: no such stream", hint=hint)


def stream_exists(stream: str) -> RefusedError:
    return RefusedError(
        f"{original_stream(stream)}: the stream exists already", hint="change its attributes with `lithify stream edit`"
    )


def stream_not_empty(stream: str) -> RefusedError:
    return RefusedError(
        f"{original_stream(stream)}: the stream is not empty",
        hint="delete its topics first; nothing was changed",
    )


def unknown_version(name: TopicName, version: int, kept: Sequence[KeptVersion], newest: int) -> UnknownVersionError:
    """Of the state that the `newest` version names; `kept` are those before it."""
    there = ", ".join(str(k.version) for k in kept) or "no earlier version"
    hint = f"retained: {there}; the newest version is {newest}, which is the default"
    return UnknownVersionError(f"{name}: version {version} is not retained", hint=hint)


def no_warehouse(where: str) -> WarehouseError:
    return WarehouseError(
        f"{where}: there is no warehouse yet",
        hint="check the path, or create the first topic with `lithify topic create`",
    )


def no_common_folder(where: str) -> WarehouseError:
    return WarehouseError(
        f"{where}: it stores every topic in a folder of its own, and has no place for rates of all cleaners",
        hint="set the rates of one topic at a time with `lithify throttle TOPIC`",
    )


def check_removed(edit: TopicEdit, remove: Iterable[Segment], named: Iterable[Segment]) -> None:
    """Raises `ValueError` if `edit` removes a segment that the version does not name.

    That is a defect of the caller, so nothing is committed.
    """
    absent = {segment.id for segment in remove}.difference(segment.id for segment in named)
    if absent:
        raise ValueError(f"run {edit.run_id} removes a segment that the version does not reference: {min(absent)}")
