"""Segments that tasks wrote for a batch which is not committed yet: no version names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lithify.model.message import MessageId
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.state import TopicState


@dataclass(frozen=True, slots=True)
class Destination:
    """The facts of a topic that a task needs to write to it: some ten bytes per log, without their states.

    Spark sends it with the code of the tasks, which it writes to disk if it is large (docs/understand/security.md).
    """

    name: TopicName
    identity: str
    location: str
    settings: TopicSettings
    log_ends: tuple[int, ...]
    """By partition, as of the version that the batch was planned on."""

    @staticmethod
    def of(state: TopicState) -> Destination:
        """A topic at one version."""
        ends = tuple(log.log_end_offset for log in state.logs)
        return Destination(state.name, state.identity, state.location, state.settings, ends)


@dataclass(frozen=True, slots=True)
class StagedLog:
    """What one task wrote for one log, in the order in which its records came.

    The offsets in the files count from the log end that the task knew, in the topic of that `identity`, or
    are those that the records came with.
    """

    topic: TopicName
    identity: str
    partition: int
    segments: tuple[Segment, ...]
    last_timestamp_ms: int
    message_ids: tuple[MessageId, MessageId] | None = None
    """Of its first and its last record, in a topic that keeps Pulsar's (C52)."""
    last_checksum: int | None = None
    """Of its last record (`model.sources.source.checksum_of`)."""

    @property
    def last_message_id(self) -> MessageId | None:
        return None if self.message_ids is None else self.message_ids[1]


def by_partition(logs: Iterable[StagedLog]) -> dict[int, list[StagedLog]]:
    """What the tasks wrote for each log of one topic, in the order of the tasks."""
    logs_by_partition: dict[int, list[StagedLog]] = {}
    for log in logs:
        logs_by_partition.setdefault(log.partition, []).append(log)
    return logs_by_partition


def segments_of_parts(parts: Sequence[StagedLog]) -> tuple[Segment, ...]:
    """The rows of all parts, in their order."""
    return tuple(segment for part in parts for segment in part.segments)
