"""The order in which cleaners work on topics, and which topics share a job (C29).

most overdue first, then dirtiest   [A large][b small][C large][d small][e small]
a batch is                          A alone, or b with d and e: many small logs are one Spark job

Where several cleaners share the work, a batch is at most one cleaner's share: the others have work as
well, and little is lost if one of them dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from lithify.model.names import TopicName
from lithify.schedule.required_work import RequiredWork

SMALL_BYTES = 32 * 2**20
SMALL_RECORDS = 500_000
"""A topic whose due logs have less than both shares a batch with others."""

BATCH_BYTES = 512 * 2**20
BATCH_RECORDS = 4_000_000
BATCH_LOGS = 1_000
"""Limits of a batch over all of its topics; the driver holds its logs in memory."""

SHARED_TOPICS = 8
"""So few topics are not split among cleaners: one more job costs more than a few small topics in another one."""


@dataclass(frozen=True, slots=True)
class TopicWork:
    """Rounds that are to be done for a topic, as of one version of it."""

    name: TopicName
    identity: str
    version: int
    required: RequiredWork

    @property
    def is_small(self) -> bool:
        """Whether it may share a batch. A log that failed twice is tried alone, so that it fails no other."""
        volume = self.required.volume
        small = volume.size_bytes < SMALL_BYTES and volume.records < SMALL_RECORDS
        return small and not self.required.failing and len(self.required.rounds) < BATCH_LOGS


def in_order(work: Sequence[TopicWork]) -> list[TopicWork]:
    """What is to be done first comes first; of equals the one that is first by name."""
    return sorted(work, key=lambda topic: (topic.required.priority, topic.name))


def next_batch(work: Sequence[TopicWork], cleaners: int = 1) -> tuple[TopicWork, ...]:
    """What to do next of `work`, which is in order and which so many cleaners share.

    It is the first topic and those that share its job.
    """
    if not work:
        return ()
    most = max(SHARED_TOPICS, ceil(len(work) / cleaners))
    first = work[0]
    batch = [first]
    if not first.is_small:
        return (first,)
    size, records, logs = first.required.volume.size_bytes, first.required.volume.records, len(first.required.rounds)
    for topic in work[1:]:
        if not topic.is_small:
            continue
        size += topic.required.volume.size_bytes
        records += topic.required.volume.records
        logs += len(topic.required.rounds)
        if size > BATCH_BYTES or records > BATCH_RECORDS or logs > BATCH_LOGS or len(batch) == most:
            break
        batch.append(topic)
    return tuple(batch)
