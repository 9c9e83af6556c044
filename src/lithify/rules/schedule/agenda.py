"""The work that a topic requires, and the order in which cleaners do it (C28, C29, C31).

every log ─► due? ─► may it be tried?  ─► a round
              │            └─ no ─► when it may, or when a user releases it
              ├─ whole segments can go ─► retention, and a round only if the rest is due for one
              └─ not due ─► when the clock alone makes it due

most overdue first, then dirtiest   [A large][b small][C large][d small][e small]
a batch is                          A alone, or b with d and e: many small logs are one Spark job

The same order holds within a topic, so that the first share of its logs has the most overdue ones, and a topic whose
most overdue logs are taken is sorted behind others.

If several cleaners share the work, a batch is at most one cleaner's share, of many topics or of the logs of one
large topic. So the others have work as well, and little is lost if one of them dies. A share is a part of what is
left, so the last ones are small, and all cleaners end at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.segment import Volume
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.schedule.assessment import Assessment
from lithify.rules.schedule.backoff import ALONE_AFTER, may_run

SMALL_BYTES = 32 * 2**20
SMALL_RECORDS = 500_000
"""A topic whose due logs have less than both shares a batch with others."""

BATCH_BYTES = 512 * 2**20
BATCH_RECORDS = 4_000_000
BATCH_LOGS = 1_000
"""Limits of a batch over all of its topics; the driver holds its logs in memory."""

SHARED_TOPICS = 8
"""So few topics are not split among cleaners: one more job costs more than a few small topics in another one."""

SHARED_LOGS = 100
"""So many logs of one topic are worth a job of their own, however small they are."""

LAST_PRIORITY = (0, 0.0)


@dataclass(frozen=True, slots=True)
class RequiredWork:
    """The work that one topic requires."""

    rounds: tuple[int, ...] = ()
    """Partitions whose logs are due for a round and may be tried, the first to run first."""
    order: tuple[tuple[int, float], ...] = ()
    """Their priorities, ascending, as `Assessment.priority` has them."""
    retains: tuple[int, ...] = ()
    """Partitions of whose logs whole segments can be removed without a round."""
    volume: Volume = Volume()
    """Of the logs that are due for a round."""
    failing: bool = False
    """Whether one of them has failed more than once, and may fail those that share its job."""
    has_failed: bool = False
    """Whether failures are recorded, which a successful round clears."""
    look_at_ms: int | None = None
    """When to look again even without a commit; None is never."""

    @property
    def priority(self) -> tuple[int, float]:
        """Of its first log."""
        return self.order[0] if self.order else LAST_PRIORITY

    @property
    def overdue_ms(self) -> int:
        """How far that log, the most overdue one, is past `max.compaction.lag.ms`."""
        return -self.priority[0]

    def only(self, partitions: Iterable[int]) -> RequiredWork:
        """With the rounds of these logs only. Its volume is an estimate, in proportion to the number of logs."""
        wanted = frozenset(partitions)  # of thousands
        left = [due for due in zip(self.rounds, self.order, strict=True) if due[0] in wanted]
        if len(left) == len(self.rounds):
            return self
        rounds, order = tuple(partition for partition, _ in left), tuple(priority for _, priority in left)
        records = self.volume.records * len(rounds) // len(self.rounds)
        size_bytes = self.volume.size_bytes * len(rounds) // len(self.rounds)
        return replace(self, rounds=rounds, order=order, volume=Volume(records, size_bytes))


def required_work(
    state: TopicState, assessments: Mapping[int, Assessment], failures: Mapping[int, LogFailure], now_ms: int
) -> RequiredWork:
    """What to do for the topic at `now_ms`, whose logs are assessed as of then.

    A log without an assessment is one whose manifests cannot be read: it is failing.
    """
    rounds: list[tuple[tuple[int, float], LogState]] = []
    retains: list[int] = []
    look_at: list[int] = []
    for log in state.logs:
        assessment = assessments.get(log.partition)
        if assessment is None:
            look_at += [now_ms] if log.partition in failures else []  # each time, as a user may release it
            continue
        verdict = assessment.verdict
        if not verdict.due:
            look_at += [] if verdict.due_at_ms is None else [verdict.due_at_ms]
            continue
        if verdict.by_retention:
            retains.append(log.partition)
        if not verdict.by_round:
            continue
        if may_run(failures.get(log.partition), now_ms):
            rounds.append((assessment.priority, log))
        else:
            look_at.append(now_ms)  # each time, as a user may release it
    rounds.sort(key=lambda due: (due[0], due[1].partition))
    logs = [log for _, log in rounds]
    return RequiredWork(
        rounds=tuple(log.partition for log in logs),
        order=tuple(priority for priority, _ in rounds),
        retains=tuple(retains),
        volume=sum((log.volume for log in logs), Volume()),
        failing=any(failures[log.partition].failures >= ALONE_AFTER for log in logs if log.partition in failures),
        has_failed=bool(failures),
        look_at_ms=now_ms if rounds or retains else min(look_at, default=None),
    )


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

    def leases(self, partitions: Iterable[int]) -> dict[str, int]:
        """Logs by the names of their leases: each log has one, so that several cleaners share a topic."""
        return {f"{self.identity}/{partition}": partition for partition in partitions}

    def only(self, partitions: Iterable[int]) -> TopicWork | None:
        """The rounds of these logs; None if none of them is due."""
        required = self.required.only(partitions)
        return replace(self, required=required) if required.rounds else None

    def share(self, cleaners: int) -> TopicWork:
        """What one of several cleaners does of a large topic, what is first in it: no less than is worth a job, no more
        than a batch."""
        logs, volume = len(self.required.rounds), self.required.volume
        small = min(SMALL_BYTES / max(1, volume.size_bytes), SMALL_RECORDS / max(1, volume.records))
        least = min(SHARED_LOGS, ceil(logs * small))
        most = min(BATCH_LOGS, max(least, ceil(logs / cleaners)))
        return replace(self, required=self.required.only(self.required.rounds[:most]))


def in_order(work: Sequence[TopicWork]) -> list[TopicWork]:
    """What is to be done first comes first; of equals the one that is first by name."""
    return sorted(work, key=lambda topic: (topic.required.priority, topic.name))


def without(work: Sequence[TopicWork], done: Sequence[TopicWork]) -> list[TopicWork]:
    """`work` without the rounds of `done`, in order: what is left of a topic may come behind others."""
    taken: dict[TopicName, set[int]] = {}
    for topic in done:
        taken.setdefault(topic.name, set()).update(topic.required.rounds)
    left = (
        topic.only([p for p in topic.required.rounds if p not in taken[topic.name]]) if topic.name in taken else topic
        for topic in work
    )
    return in_order([topic for topic in left if topic is not None])


def next_batch(work: Sequence[TopicWork], cleaners: int = 1) -> tuple[TopicWork, ...]:
    """What to do next of `work`, which is in order and which this number of cleaners share.

    It is the first topic and those that share its job, or, of a large topic, a share of its logs.
    """
    if not work:
        return ()
    most = max(SHARED_TOPICS, ceil(len(work) / cleaners))
    first = work[0]
    batch = [first]
    if not first.is_small or (cleaners > 1 and len(first.required.rounds) > SHARED_LOGS):
        return (first.share(cleaners),)
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
