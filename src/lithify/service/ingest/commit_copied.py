"""Commits records copied from another system: at the log ends that they were read from, or not at all (C1, C6).

    log end E ─► read [E, end) ─► segments with its offsets ─► commit, if the log still ends at E
                                                                  and ends at `end` from then on

The log ends where the source was read to, also if its last offsets hold nothing to copy: a transaction
marker, records without a key. Else they would seem lost once the source's retention deletes them (C2).

The first commit takes the range. A second ingest of the same log finds that the log end has moved and
fails, so every record is copied exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lithify.errors import ConflictError
from lithify.model.log import TopicEdit, TopicState
from lithify.model.names import LogId, TopicName
from lithify.model.staged import StagedLog, by_partition, segments_of_parts
from lithify.ports.store import Warehouse
from lithify.service.commit import commit
from lithify.service.write.append import appended, ended


@dataclass(frozen=True, slots=True)
class Copied:
    """What tasks have written for one topic, in offset order, and by partition the offset they have read up to."""

    topic: TopicName
    logs: tuple[StagedLog, ...]
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Reached:
    """The progress of one ingest: the topic that it writes to, and by partition the log end after its last commit.

    It is never taken from the newest version, which may have records of another writer: the ingest would
    take those for its own.
    """

    identity: str
    ends: Mapping[int, int]

    @classmethod
    def of(cls, state: TopicState) -> Reached:
        """The progress of an ingest that starts at the log ends of `state`."""
        return cls(state.identity, {log.partition: log.log_end_offset for log in state.logs})

    def after(self, copied: Copied) -> Reached:
        """The progress once `copied` is committed too."""
        return replace(self, ends={**self.ends, **copied.ends})

    def needs(self, ends: Mapping[int, int]) -> bool:
        """Whether a log does not end at the offset in `ends` yet."""
        return any(self.ends.get(partition, 0) != end for partition, end in ends.items())

    def check(self, newest: TopicState, partitions: Iterable[int]) -> None:
        """Raises `ConflictError` where one of these logs does not end where this ingest's last commit ended it."""
        if newest.identity != self.identity:
            raise ConflictError(f"{newest.name}: the topic was deleted and recreated meanwhile", hint="start again")
        for partition in partitions:
            left, end = self.ends.get(partition, 0), newest.log(partition).log_end_offset
            if end != left:
                raise ConflictError(
                    f"{LogId(newest.name, partition)}: another program writes to it: the copy ended at {left}, "
                    f"and ends at {end} now",
                    hint="one ingest of a topic at a time, and no other producers; nothing was written twice",
                )


def commit_copied(warehouse: Warehouse, copied: Copied, reached: Reached, run_id: str) -> TopicState:
    """Adds the segments that tasks have written to the logs of one topic and moves their ends, atomically.

    Raises `ConflictError` where another writer has moved a log end or the topic was recreated,
    `DamagedError`, or what `commit` raises.
    """
    by_log = by_partition(copied.logs)

    def decide(newest: TopicState) -> TopicEdit:
        reached.check(newest, {*by_log, *copied.ends})
        every = segments_of_parts(copied.logs)
        logs = {
            p: appended(newest.log(p), segments_of_parts(parts), parts[-1].last_timestamp_ms, parts[-1].last_message_id)
            for p, parts in by_log.items()
        }
        logs |= ended(newest, logs, copied.ends)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, add=every, written=every)

    return commit(warehouse, copied.topic, run_id, decide)
