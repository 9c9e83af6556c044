"""Commits records copied from another system: at the log ends that they were read for, or not at all (C1, C6).

    log end E ─► read [E, end) ─► segments with its offsets ─► commit, if the log still ends at E
                                                                  and ends at `end` from then on

The log ends where the source was read to, even if its last offsets hold nothing to copy: a transaction
marker, records without a key. Else they would seem lost once the source's retention deletes them (C2).

The first commit takes the range. A second ingest of the same log finds that the log end has moved and
fails, so every record is copied exactly once. Copies of Pulsar topics have ids: of them the commit moves the id
up to which the log has everything (C52), and their offsets continue from the log end. A copy of a Kafka topic says so
itself before it has a record, so that no other program appends to it (C70).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lithify.errors import ConflictError
from lithify.model.message import MessageId
from lithify.model.names import LogId, TopicName
from lithify.model.sources.origin import OWN, Origin
from lithify.model.sources.source import SourcePosition
from lithify.model.staged import StagedLog, by_partition, segments_of_parts
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.copies.ownership import was_promoted
from lithify.service.commit import commit
from lithify.service.write.append import appended, ended

Begun = Mapping[int, tuple[int, int]]
"""By partition the offset at which a copy began, and when."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What tasks have written for one topic, in offset order, and by partition how far they have read."""

    topic: TopicName
    logs: tuple[StagedLog, ...]
    ends: Mapping[int, SourcePosition]
    epochs: Mapping[int, int] = field(default_factory=dict)
    """The source's leader epochs, of which all of this, and what was copied before, was read in or before (C72)."""
    begun: Begun = field(default_factory=dict)
    """Where and when the copy of each log began, as its first commit stores it (C71)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one log of a copy ends, and up to which id of Pulsar it has everything."""

    log_end: int = 0
    copied_to: MessageId | None = None

    def after(self, parts: Sequence[StagedLog], end: SourcePosition | None) -> Place:
        """The place once `parts` are appended that were read up to `end`."""
        appended_to = segments_of_parts(parts)[-1].end_offset if parts else self.log_end
        match end:
            case MessageId():
                return Place(appended_to, end)
            case int():
                return replace(self, log_end=end)
            case None:
                return replace(self, log_end=appended_to)

    def is_at(self, end: SourcePosition) -> bool:
        return end == (self.copied_to if isinstance(end, MessageId) else self.log_end)


@dataclass(frozen=True, slots=True)
class Reached:
    """The progress of one ingest: the topic that it writes to, and by partition its place after its last commit.

    It is never taken from the newest version, which may have records of another writer: the ingest would
    take those for its own.
    """

    identity: str
    places: Mapping[int, Place]
    origin: Origin = OWN
    """What the topic says that it is a copy of (C70)."""
    epochs: Mapping[int, int] = field(default_factory=dict)
    """Of logs that have one, the leader epoch that their last commit stored (C72)."""
    begun: Collection[int] = ()
    """The logs whose commits have stored where they began (C71)."""

    @classmethod
    def of(cls, state: TopicState) -> Reached:
        """The progress of an ingest that starts at the log ends of `state`."""
        return cls(
            state.identity,
            {p: Place(log.log_end_offset, log.copied_to) for p, log in enumerate(state.logs)},
            state.origin,
            {p: log.source_epoch for p, log in enumerate(state.logs) if log.source_epoch is not None},
            {p for p, log in enumerate(state.logs) if log.source_begun is not None},
        )

    def after(self, copied: Copied) -> Reached:
        """The progress once `copied` is committed too."""
        by_log = by_partition(copied.logs)
        moved = {p: self._of(p).after(by_log.get(p, ()), copied.ends.get(p)) for p in {*by_log, *copied.ends}}
        epochs, begun = {**self.epochs, **copied.epochs}, {*self.begun, *copied.begun}
        return replace(self, places={**self.places, **moved}, epochs=epochs, begun=begun)

    def needs(self, copied: Copied) -> bool:
        """Whether a log is not at its end in `copied` yet, or has records and no leader epoch, or no begin."""
        lacks = {*copied.epochs} - {*self.epochs} | {*copied.begun} - {*self.begun}
        return bool(self.moved(copied.ends)) or any(self._of(p).log_end for p in lacks)

    def moved(self, ends: Mapping[int, SourcePosition]) -> tuple[int, ...]:
        """The partitions that were read up to another place than this."""
        return tuple(p for p, end in ends.items() if not self._of(p).is_at(end))

    def _of(self, partition: int) -> Place:
        return self.places.get(partition, Place())

    def check(self, newest: TopicState, partitions: Iterable[int]) -> None:
        """Raises `ConflictError` if one of these logs does not end where this ingest's last commit ended it."""
        if newest.identity != self.identity:
            raise ConflictError(f"{newest.name}: the topic was deleted and recreated meanwhile", hint="start again")
        if newest.origin != self.origin:
            raise was_promoted(newest)
        for partition in partitions:
            left, log = self._of(partition), newest.log(partition)
            if left != Place(log.log_end_offset, log.copied_to):
                raise ConflictError(
                    f"{LogId(newest.name, partition)}: another program writes to it: the copy ended at "
                    f"{left.log_end}, but ends at {log.log_end_offset} now",
                    hint="run one ingest of a topic at a time, and no other producers; nothing was written twice",
                )


def commit_copied(warehouse: Warehouse, copied: Copied, reached: Reached, run_id: str) -> TopicState:
    """Adds the segments that tasks have written to the logs of one topic and moves their ends, atomically.

    Raises `ConflictError` if another writer has moved a log end or the topic was recreated,
    `DamagedError`, or what `commit` raises.
    """
    by_log = by_partition(copied.logs)

    def decide(newest: TopicState) -> TopicEdit:
        reached.check(newest, {*by_log, *copied.ends})
        every = segments_of_parts(copied.logs)
        logs = {p: _with_parts(newest.log(p), parts) for p, parts in by_log.items()}
        logs |= ended(newest, logs, {p: end for p, end in copied.ends.items() if isinstance(end, int)})
        for partition, end in copied.ends.items():
            if isinstance(end, MessageId):
                logs[partition] = replace(logs.get(partition, newest.log(partition)), copied_to=end)
        for partition, epoch in copied.epochs.items():
            log = logs.get(partition, newest.log(partition))
            if partition in logs or (log.source_epoch is None and log.log_end_offset):
                logs[partition] = replace(log, source_epoch=epoch)
        for partition, at in copied.begun.items():
            log = logs.get(partition, newest.log(partition))
            if partition in logs or (log.source_begun is None and log.log_end_offset):
                logs[partition] = replace(log, source_begun=at)
        now_ms = warehouse.clock.now_ms()
        return TopicEdit(run_id, now_ms, logs, add=every, written=every, origin=newest.origin)

    return commit(warehouse, copied.topic, run_id, decide)


def _with_parts(log: LogState, parts: Sequence[StagedLog]) -> LogState:
    segments, last = segments_of_parts(parts), parts[-1]
    longer = appended(log, segments, last.last_timestamp_ms, last.last_message_id)
    if last.last_checksum is None or last.last_message_id is not None:  # Pulsar's are compared by their ids
        return longer
    return replace(longer, source_last=(segments[-1].end_offset - 1, last.last_checksum))
