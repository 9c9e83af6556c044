"""What one version of a log must have left of the one before it: the proofs that `verify` checks.

    version 7    [ a b c d ][ e ]      ┐ closed by a round: the rules say what stays below the horizon
    version 9    [ b d ][ e ][ f ]     ┘ above it everything stays; f was appended since

A proof covers two consecutive versions: one commit replaced the older, and after that commit there
were only appends, `delete-records` and changed settings. So the rules of that one commit, computed
again on the version that it was based on, give exactly the records that must be left. A chain of
proofs covers any number of rounds, retentions, truncations and undos. The round's own report is
trusted only if it makes the round do less, and for how far records were old enough if later commits
have made their times coarser (C14). Metadata cannot decide, and so no proof does, whether
`retain` was right about the time, and what `undo` restored once the restored version has expired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lithify.model.groups.reads import GroupRead, LogReads
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.edit import Verb
from lithify.model.topic.log import CommittedEnd, LogState
from lithify.reports.rounds.round import LogReport
from lithify.rules.compaction.eligible.horizon import LONG_AGO_MS
from lithify.rules.compaction.planner import LogPlan, plan_log
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.lifecycle.undoing import LogFiles, files_after

NO_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogVersion:
    """A log as one version has it: its segments and its view's, each in offset order."""

    version: int
    state: LogState
    settings: TopicSettings
    files: LogFiles


@dataclass(frozen=True, slots=True)
class Transition:
    """A log at two versions, and the commit that led from the first to the second.

    `round_` is the log's part of the round if the commit was one; `in_between` are versions in between
    whose commits remove no records. For an `undo`, `round_` is the round that it undid and
    `restored` the version that it restored, if that is still kept.
    """

    before: LogVersion
    after: LogVersion
    verb: Verb
    round_: LogReport | None = None
    now_ms: int = 0
    in_between: tuple[LogVersion, ...] = ()
    restored: LogVersion | None = None

    @property
    def gave_up(self) -> bool:
        """Whether the version that an `undo` restored has expired, so that its records are unknown."""
        return self.verb is Verb.UNDO and self.restored is None

    @property
    def cut_at(self) -> int:
        """The lowest offset at which the log was truncated in between."""
        cuts = self.after.state.generation - self.before.state.generation
        if cuts <= 0:
            return NO_END
        return min(self.after.state.truncated[-cuts:]) if cuts <= len(self.after.state.truncated) else 0


@dataclass(frozen=True, slots=True)
class Source:
    """A segment of the older version whose records count from an offset on."""

    segment: Segment
    from_offset: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """What the records of `before` must have become in `after`.

    `rules` judge the records below their horizon; the others must all still be there, unless
    `tail_stays` is false: then they only say which tombstones the round had to hold (C20).
    """

    partition: int
    of_view: bool
    versions: tuple[int, int]
    before: tuple[Source, ...]
    after: tuple[Segment, ...]
    empty_is_tombstone: bool
    visible_from: int = 0
    """Records below are not judged: no reader can reach them."""
    known_up_to: int = NO_END
    """Records of `after` in [known_from, known_up_to) must be in `before`."""
    known_from: int = 0
    cut_at: int = NO_END
    """Offsets from here on were truncated; the log may have given them to other records since."""
    rules: SurvivorRules | None = None
    tail_stays: bool = True
    asked_up_to: int = NO_END
    """The log end offset when the round read the keys above its horizon (C20)."""

    @property
    def horizon(self) -> int:
        return 0 if self.rules is None else self.rules.horizon


def proofs(how: Transition) -> Iterator[Proof]:
    """The proof of a log, and of its view if it has or should have one."""
    planned = _planned(how)
    if how.verb is Verb.UNDO and how.round_ is not None:
        how = _restored(how, how.round_)
    yield _of_log(how, planned)
    if how.verb is not Verb.UNCOMPACT and (how.before.state.view is not None or how.after.state.view is not None):
        yield _of_view(how, planned)


def left_behind(how: Transition) -> Iterator[Segment]:
    """Segments with records below the log start that a round should have removed (C26)."""
    if how.verb is not Verb.COMPACT or how.round_ is None:
        return
    of_view = how.before.settings.side_by_side
    start = how.round_.deleted_below if of_view else how.round_.log_start_offset_after
    for segment in how.after.files.view if of_view else how.after.files.segments:
        if segment.base_offset < start and segment.end_offset <= how.round_.horizon:
            yield segment


def view_proof(now: LogVersion) -> Proof:
    """A record of the view must equal the backlog's at the same offset, where the backlog still has it (C33)."""
    return Proof(
        partition=now.state.partition,
        of_view=True,
        versions=(now.version, now.version),
        before=tuple(Source(segment) for segment in now.files.segments),
        after=now.files.view,
        empty_is_tombstone=now.settings.empty_is_tombstone,
        known_up_to=0,
        tail_stays=False,
    )


def _planned(how: Transition) -> LogPlan | None:
    """The round of a transition, planned again; commits after the original plan can only widen it."""
    if how.verb is not Verb.COMPACT or how.round_ is None:
        return None
    before, end = how.before, how.round_.log_end_offset
    segments = tuple(s for s in before.files.segments if s.base_offset < end)  # without what was appended since
    state = _as_old(before.state, segments, how.round_.horizon, how.now_ms)
    reads = _reads(before, how.round_)
    return plan_log(state, segments, before.settings, how.now_ms, before.files.view, reads)


def _as_old(log: LogState, segments: tuple[Segment, ...], horizon: int, now_ms: int) -> LogState:
    """The log with what a round has covered committed long ago, except the times that its plan had as well.

    Commits since the plan may have made the times later that the log keeps of its commits (C14), and the times at its
    plan are not known any more. An entry from before the plan's time, at the end of a segment below the horizon, was
    there.
    """
    ends = {segment.end_offset for segment in segments if segment.end_offset <= horizon}
    known = tuple(entry for entry in log.committed if entry.end_offset in ends and entry.time_ms <= now_ms)
    later = tuple(entry for entry in log.committed if entry.end_offset > horizon)
    return replace(log, committed=(*known, CommittedEnd(horizon, LONG_AGO_MS), *later))


def _reads(before: LogVersion, round_: LogReport) -> LogReads:
    """How far groups had read by the report; where they were named and it does not say, they had read nothing."""
    holding = [GroupRead(group, round_.tombstones_read_below or 0) for group in before.settings.holding_groups]
    trimming = [GroupRead(group, round_.backlog_read_below or 0) for group in before.settings.trimming_groups]
    return LogReads(tuple(holding), tuple(trimming))


def _of_log(how: Transition, planned: LogPlan | None) -> Proof:
    before, after, round_ = how.before, how.after, how.round_
    rules = None
    if planned is not None and round_ is not None and planned.view is None:
        rules = _rules(planned, round_, min(planned.log_start, round_.log_start_offset_after))
    appended = (Source(s, before.state.log_end_offset) for version in how.in_between for s in version.files.segments)
    return Proof(
        partition=before.state.partition,
        of_view=False,
        versions=(before.version, after.version),
        before=(*(Source(segment) for segment in before.files.segments), *appended),
        after=after.files.segments,
        empty_is_tombstone=before.settings.empty_is_tombstone,
        visible_from=_visible_from(how, planned),
        known_up_to=max(s.state.log_end_offset for s in (before, *how.in_between)),
        known_from=round_.horizon if how.gave_up and round_ is not None else 0,
        cut_at=how.cut_at,
        rules=rules,
        asked_up_to=NO_END if round_ is None else round_.log_end_offset,
    )


def _of_view(how: Transition, planned: LogPlan | None) -> Proof:
    before, after, round_ = how.before, how.after, how.round_
    log, rules = before.state, None
    backlog: tuple[Source, ...] = ()
    if planned is not None and round_ is not None and planned.view is not None:
        rules = _rules(planned, round_, min(log.deleted_below, round_.deleted_below))
        # `delete-records` may have raised D during the round, which had read from further down.
        dirty = min(log.first_dirty_offset, round_.first_dirty_offset)
        # Records above the horizon only decide which tombstones had to be held.
        read_up_to = NO_END if rules.is_ordered else rules.horizon
        unseen = (s for s in before.files.segments if s.end_offset > dirty and s.base_offset < read_up_to)
        backlog = tuple(Source(segment, dirty) for segment in unseen)
    cut = how.cut_at
    return Proof(
        partition=log.partition,
        of_view=True,
        versions=(before.version, after.version),
        before=(*(Source(segment) for segment in before.files.view), *backlog),
        after=after.files.view,
        empty_is_tombstone=before.settings.empty_is_tombstone,
        visible_from=after.state.deleted_below,
        cut_at=NO_END if cut >= log.first_dirty_offset else log.log_start_offset,
        rules=rules,
        tail_stays=rules is None,
        asked_up_to=NO_END if round_ is None else round_.log_end_offset,
    )


def _rules(planned: LogPlan, round_: LogReport, log_start: int) -> SurvivorRules:
    horizon = min(planned.horizon.offset, round_.horizon)
    # `delete-records` may have hidden from the new plan why none expired (C53).
    expire_below = min(planned.rules.tombstones_expire_below, round_.tombstones_expire_below, horizon)
    return replace(
        planned.rules,
        log_start=log_start,
        horizon=horizon,
        tombstones_expire_below=expire_below,
    )


def _visible_from(how: Transition, planned: LogPlan | None) -> int:
    """The log start, but no higher than this commit can have raised it."""
    before, after = how.before.state, how.after.state
    if how.verb is Verb.RETAIN and how.before.settings.retains:
        return after.log_start_offset
    moved = max(before.log_start_offset, after.deleted_below, 0 if planned is None else planned.log_start)
    return min(after.log_start_offset, moved)


def _restored(how: Transition, undone: LogReport) -> Transition:
    """The same transition, with what `undo` had to leave as `before`."""
    before = how.before
    if how.restored is not None:
        files = files_after(before.files, how.restored.files, undone)
        state = replace(before.state, view=how.restored.state.view)
    else:
        # `undo` restores only records below the horizon.
        files = LogFiles(tuple(s for s in before.files.segments if s.end_offset > undone.horizon), how.after.files.view)
        state = before.state
    return replace(how, before=replace(before, state=state, files=files))
