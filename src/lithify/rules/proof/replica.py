"""What metadata alone says of a replica and its source at the same version, or at a later one (C63).

same version     states of logs, settings, and files must be the same
a later one      files that both name must be; what the replica lacks, a copy will bring
"""

from __future__ import annotations

from collections.abc import Iterator

from lithify.model.finding import Finding, FindingKind
from lithify.model.names import LogId
from lithify.model.replicas.file_names import origin
from lithify.model.segment import Segment, by_file
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.mirroring import TopicFiles, by_origin
from lithify.rules.lifecycle.own_views import (
    content_of_replica,
    content_of_source,
    may_compact,
    same_log,
    settings_of_copy,
)
from lithify.rules.lifecycle.replicas import check_replica


def state_findings(source: TopicState, replica: TopicState) -> Iterator[Finding]:
    """Where a replica's state differs from its source's at the same version."""
    name, says = replica.name, check_replica(replica)
    if says.compacts != (says.compact and may_compact(source)):
        message = "compacts by itself" if says.compacts else "does not compact by itself"
        yield Finding(0, FindingKind.WRONG_METADATA, f"{name}: the replica {message}, which contradicts its source")
    settings, own_settings = settings_of_copy(source, says)
    for what, wanted in (("settings", settings), ("own_settings", own_settings)):
        if getattr(replica, what) != wanted:
            message = f"{name}: the replica has other {what.replace('_', ' ')} than its source"
            yield Finding(0, FindingKind.WRONG_METADATA, message)
    for partition in range(max(len(source.logs), len(replica.logs))):
        theirs = content_of_source(source.log(partition), says) if partition in source.partitions else None
        ours = content_of_replica(replica, partition) if partition in replica.partitions else None
        message = f"{LogId(name, partition)}: the replica has {ours} for the log, but its source has {theirs}"
        if theirs == ours:
            if same_log(source.log(partition), replica):
                continue
            message = (
                f"{LogId(name, partition)}: the last commit of the source to the log differs from the copied commit"
            )
        yield Finding(partition, FindingKind.WRONG_METADATA, message)


def file_findings(source: TopicFiles, replica: TopicFiles) -> Iterator[Finding]:
    """Files that only one of two sides at the same version names, in logs and in views that were copied.

    Of a segment with another mask, or with one where the other side has none, that is the newest of its files.
    """
    for theirs, ours, where in (
        (source.segments, replica.segments, "its log"),
        (source.view, replica.view, "its view"),
    ):
        known, wanted = {origin(segment.id) for segment in ours}, {origin(segment.id) for segment in theirs}
        for segment in theirs:
            if origin(segment.id) not in known:
                message = f"{segment.id}: {where} has no copy of it in the replica"
                yield Finding(segment.partition, FindingKind.FILE_MISSING, message, path=segment.id)
        for segment in ours:
            if origin(segment.id) not in wanted:
                message = f"{segment.id}: the source does not have it in {where}"
                yield Finding(segment.partition, FindingKind.WRONG_METADATA, message, path=segment.id)


def copies_of(source: TopicFiles, replica: TopicFiles) -> dict[str, Segment]:
    """By path of a file of the replica, what it is a copy of, if the source still names that: see `ByOrigin`."""
    theirs = by_origin((*source.segments, *source.view))
    ours = by_file((*replica.segments, *replica.view))
    return {path: theirs[key] for path in ours if (key := origin(path)) in theirs}
