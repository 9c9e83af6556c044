"""A replica that compacts by itself: a view of its own beside the log of its source (C67).

    source     log   a b c d                         takes no rounds
    replica    log   a b c d                         the source's, word for word
               view  b'          D = 2               of its own rounds, as of a topic that compacts side by side

A copy brings the source's log and leaves the view, with all that rounds have noted, as long as the log below D is the
one that they have read. Else it drops the view: if the source cut its log below D, at its start or its end, rewrote
a part of it, or compacts it. What readers of the view may have missed by that remains noted (C49). So the epochs of
such a replica are ahead of its source's for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.log_arithmetic import measured
from lithify.model.missed import DroppedDeletes
from lithify.model.replicas.replica_of import CopiedLog, ReplicaOf
from lithify.model.segment import Segment, Volume
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.compaction.eligible.required import carried_reason, deletion_reason
from lithify.rules.compaction.tombstones import Drops, with_drop, without_view
from lithify.rules.lifecycle.cuts import uncompacted
from lithify.rules.lifecycle.setting_changes import altered_log

NO_RUN = "none"
"""In the place of the commit that a log is the result of, where none is known."""
_SET_BY_REPLICA = frozenset({"cleanup.policy", "compaction.mode"})


def may_compact(source: TopicState) -> bool:
    """Whether a replica of this topic may compact by itself: only where the source neither compacts nor ever did."""
    return not source.settings.compacts and not any(
        log.view is not None or log.losers_removed or log.first_dirty_offset > log.log_start_offset
        for log in source.logs
    )


def why_not_compacting(replica: TopicState) -> str | None:
    """Why a replica that is to compact by itself does not; None if it does, or is not to."""
    says = replica.replica
    if says is None or not says.compact or says.compacts:
        return None
    if replica.settings.compacts:
        return "its source compacts"
    return "its source was compacted"


def settings_of_copy(source: TopicState, says: ReplicaOf) -> tuple[TopicSettings, frozenset[str]]:
    """The settings of a replica that says so, and which of them are its own (C56)."""
    if not says.compacts:
        return source.settings, source.own_settings
    policy = "compact,delete" if source.settings.deletes else "compact"
    settings = replace(source.settings, cleanup_policy=policy, compaction_mode="side-by-side")
    return settings, source.own_settings | _SET_BY_REPLICA


def last_run(log: LogState) -> str:
    """The latest commit to a log of a source."""
    return log.run_ids[-1] if log.run_ids else NO_RUN


def copied_log(replica: TopicState, partition: int) -> CopiedLog:
    """Which state of its source's log a replica has; unless it has stored it, its own commit follows the source's."""
    known, log = replica.replica, replica.log(partition)
    if known is not None and partition < len(known.copied):
        return known.copied[partition]
    return CopiedLog(log.epoch, log.run_ids[-2] if len(log.run_ids) > 1 else NO_RUN)


def content_of_source(log: LogState, says: ReplicaOf) -> LogState:
    """What a replica that says so has of a log: not the commits that led to it, nor what it has of its own instead."""
    log = replace(log, run_ids=())
    if says.copied:
        log = replace(log, compacted_below=0, dropped=(), undone=None)
    return _without_rounds(log) if says.compacts else log


def content_of_replica(replica: TopicState, partition: int) -> LogState:
    """The same of the replica's log, in the epoch of its source."""
    log, says = replica.log(partition), replica.replica
    assert says is not None
    return content_of_source(replace(log, epoch=copied_log(replica, partition).epoch), says)


def same_log(source: LogState, replica: TopicState) -> bool:
    """Whether a replica has a log as its source has it, by the same commit there.

    Another history of a restored source may end in a state that looks the same, with other records.
    """
    partition = source.partition
    if partition not in replica.partitions or replica.replica is None:
        return False
    if last_run(source) != copied_log(replica, partition).run:
        return False
    return content_of_source(source, replica.replica) == content_of_replica(replica, partition)


@dataclass(frozen=True, slots=True)
class Step:
    """A copy of `source` into `replica`, which `says` so from then on."""

    source: TopicState
    replica: TopicState
    says: ReplicaOf

    @property
    def did_compact(self) -> bool:
        return self.replica.replica is not None and self.replica.replica.compacts

    @property
    def changes_rounds(self) -> bool:
        """Whether its rounds begin, end, or follow other settings from then on."""
        if not (self.did_compact or self.says.compacts):
            return False
        settings, _ = settings_of_copy(self.source, self.says)
        return self.did_compact != self.says.compacts or settings != self.replica.settings


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The segments of a log once it is copied, and those that the copy adds or removes."""

    segments: tuple[Segment, ...]
    moved: tuple[Segment, ...]


def keeps_view(step: Step, partition: int, moved: tuple[Segment, ...]) -> bool:
    """Whether the view of a log, and all that its rounds have noted, remains: what they have read is as it was."""
    if not (step.did_compact and step.says.compacts) or partition not in step.replica.partitions:
        return False
    theirs, ours = step.source.log(partition), step.replica.log(partition)
    start, end = theirs.log_start_offset, ours.first_dirty_offset
    cut = _cut_at(theirs, ours)
    if start > end or theirs.log_end_offset < end or (cut is not None and cut < end):
        return False
    return not any(segment.base_offset < end and segment.end_offset > start for segment in moved)


def followed(step: Step, partition: int, files: LogFiles) -> LogState:
    """The state of a log of a replica that compacts by itself, or did, after the copy, except its runs."""
    theirs = step.source.log(partition)
    is_new = partition not in step.replica.partitions
    ours = LogState(partition, epoch=theirs.epoch) if is_new else step.replica.log(partition)
    copied = theirs.epoch if is_new else copied_log(step.replica, partition).epoch
    keeps = keeps_view(step, partition, files.moved)
    drops_view = step.did_compact and ours.view is not None and not keeps
    epoch = theirs.epoch + ours.epoch - copied
    if (drops_view or step.changes_rounds) and epoch == ours.epoch:
        epoch += 1  # no round that was planned before may commit (C44)
    log = theirs
    if keeps:
        log = _with_rounds_of(ours, theirs)
    elif step.says.compacts:
        required = ours.round_required if step.did_compact else ""
        log = replace(uncompacted(theirs, files.segments), round_required=required)
    log = _with_memory(log, theirs, ours, _Since(copied, epoch, drops_view))
    if not step.says.compacts:
        return log
    if step.changes_rounds:
        settings, _ = settings_of_copy(step.source, step.says)
        log = altered_log(log, files.segments, _settings_before(step), settings)
    return measured(log, files.segments)


def _settings_before(step: Step) -> TopicSettings:
    return step.replica.settings if step.did_compact else step.source.settings


def _without_rounds(log: LogState) -> LogState:
    """A log without what rounds note of it."""
    return replace(
        log,
        first_dirty_offset=log.log_start_offset,
        clean=Volume(),
        dirty=log.volume,
        oldest_dirty_timestamp_ms=None,
        steps=(),
        last_round_ms=None,
        last_round="",
        round_required="",
        uncovered=False,
        held=None,
        aged_before_ms=None,
        view=None,
        committed=(),
    )


def _with_rounds_of(ours: LogState, theirs: LogState) -> LogState:
    """The source's log with what the replica's rounds have noted of it."""
    required = ours.round_required
    if ours.view is not None and theirs.deleted_below > ours.deleted_below:
        required = carried_reason((ours,), deletion_reason(theirs.deleted_below))  # of the view (C26)
    return replace(
        theirs,
        first_dirty_offset=ours.first_dirty_offset,
        steps=ours.steps,
        last_round_ms=ours.last_round_ms,
        last_round=ours.last_round,
        round_required=required,
        uncovered=ours.uncovered,
        held=ours.held if theirs.generation == ours.generation else None,
        aged_before_ms=ours.aged_before_ms,
        view=ours.view,
        committed=tuple(c for c in theirs.committed if c.end_offset > ours.first_dirty_offset),
    )


def _cut_at(theirs: LogState, ours: LogState) -> int | None:
    """The lowest offset that truncations have cut the log at since it was copied; None if there were none."""
    since = theirs.generation - ours.generation
    if since == 0:
        return None
    return min(theirs.truncated[-since:]) if 0 < since <= len(theirs.truncated) else 0


@dataclass(frozen=True, slots=True)
class _Since:
    """The source's epoch that the replica has, the replica's own after the copy, and whether its view is dropped."""

    copied_epoch: int
    epoch: int
    drops_view: bool


def _with_memory(log: LogState, theirs: LogState, ours: LogState, since: _Since) -> LogState:
    """`log` with what readers of the replica may have missed, as its own commits and its source's say it (C49)."""
    dropped: Drops = without_view(ours.dropped) if since.drops_view else ours.dropped
    for drop in theirs.dropped:
        if drop.epoch > since.copied_epoch:
            dropped = with_drop(dropped, replace(drop, epoch=since.epoch))
    compacted = ours.compacted_below
    if since.drops_view:
        compacted = max(compacted, ours.first_dirty_offset)
    cut = _cut_at(theirs, ours)
    if cut is not None and cut < compacted:
        dropped = with_drop(dropped, DroppedDeletes(since.epoch, compacted, of_view=True, restored=True))
        compacted = cut
    return replace(
        log,
        epoch=since.epoch,
        dropped=dropped,
        compacted_below=max(theirs.compacted_below, compacted if compacted > theirs.log_start_offset else 0),
    )


def copied_logs(source: TopicState) -> tuple[CopiedLog, ...]:
    """What a replica says of the logs of its source."""
    return tuple(CopiedLog(log.epoch, last_run(log)) for log in source.logs)
