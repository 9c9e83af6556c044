"""One log as the contract tells it: lists of records, and when rounds covered them.

    records   what was appended and not removed: in place the compacted log, side by side the backlog
    view      what rounds have left of the backlog (C33), None where there is no view
    low, high for every tombstone the earliest and the latest time from which it may have aged (C18, C19)

It plans nothing and stores nothing. Segments are only asked for what the contract says of segments:
where they end, how large they are, and how old (C14, C24).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from support.textbook.records import UNORDERED, Records, at, deletes, is_old, key_in, order, winners_of
from support.textbook.rounds import Cover, Covers, Dropped, Rounded, ended_at, longest_ms

TRUNCATIONS_KEPT = 8
"""A position from before more of them does not count any more."""


@dataclass(frozen=True, slots=True)
class TextbookLog:
    """One log at one version."""

    partition: int
    start: int = 0
    dirty_from: int = 0
    end: int = 0
    records: Records = ()
    view: Records | None = None
    view_start: int = 0
    """S when the first round made the view."""
    deleted_below: int = 0
    compacted_before: int = 0
    """D before it was set back (C26)."""
    low: Covers = ()
    high: Covers = ()
    uncovered: bool = False
    round_required: bool = False
    """A setting was changed since the last round (C43)."""
    hidden: bool = False
    """Records were deleted that no round has taken out of storage (C26)."""
    cuts: tuple[int, ...] = ()
    """Where every truncation cut; their number is the generation."""
    last_round: str = ""
    lost: bool = False
    """Rounds have removed records that could be read from the log."""
    view_lost: bool = False
    """They have from its view."""
    epoch: int = 1
    """Grows by every commit that a round has to know of (C44)."""
    dropped: tuple[Dropped, ...] = ()
    aged: Records = ()
    """The records that rounds have dropped for their age."""
    copied_to: MessageId | None = None
    """C52: the log has everything up to there."""
    undone: tuple[int, bool] = (0, True)
    """How far rounds that were undone had compacted the log, and whether in its view alone."""
    readers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How far groups have read, by their positions, and how often the log had been truncated then (C58)."""

    @property
    def compacted_up_to(self) -> int:
        """Readers of compacted data may have skipped what was superseded below it, and the log may have lost it."""
        return max(self.dirty_from, self.compacted_before)

    def reading(self, *, compacted: bool) -> Records:
        """What a reader gets from its start on (C26, C33)."""
        plain = tuple(r for r in self.records if at(r) >= self.start)
        if not compacted or self.view is None:
            return plain
        return tuple(r for r in self.view if at(r) >= self.deleted_below) + tuple(
            r for r in plain if at(r) >= self.dirty_from
        )

    def first_place(self, *, compacted: bool) -> int:
        """Where a reader starts (C37)."""
        if not compacted or self.view is None:
            return self.start
        return max(self.view_start, self.deleted_below)

    def table(self, settings: TopicSettings) -> dict[bytes, Record]:
        """The latest value of every live key."""
        winners = winners_of(self.reading(compacted=True), settings)
        return {key: record for key, record in winners.items() if not deletes(record, settings)}

    @property
    def sealed(self) -> set[tuple[bool, int]]:
        """Offsets of whole entries that are no chunks, also if they were deleted; true: in the view. After a round
        that takes some, the next may take tombstones that they had held (C53)."""
        return {(of_view, at(r)) for of_view, r in self._stored if r.passed_through and r.chunk is None}

    @property
    def _stored(self) -> list[tuple[bool, Record]]:
        return [*((False, r) for r in self.records), *((True, r) for r in self.view or ())]

    def may_be_hidden(self, key: bytes | None, below: int | None = None) -> bool:
        """Whether an entry is stored, also if it was deleted, that may have a value of the key (C53)."""
        entries = (r for _, r in self._stored if r.passed_through and (below is None or at(r) < below))
        return any(r.chunk is None or r.chunk.key == key for r in entries)

    @property
    def judged(self) -> Records:
        """What rounds have left: the log below D, or the view."""
        return tuple(r for r in self.reading(compacted=True) if at(r) < self.dirty_from)

    def ages(self, offset: int) -> tuple[int | None, int | None]:
        """The earliest and the latest T of a tombstone (C18); None if no round has covered it."""
        first, last = (next((c.time_ms for c in covers if offset < c.end), None) for covers in (self.low, self.high))
        return first, last

    def read_by(self, groups: Sequence[str]) -> int | None:
        """All of these groups have read what is below (C61, C62); None where none is named."""
        return min(map(self._read, groups), default=None)

    def _read(self, group: str) -> int:
        offset, cuts = self.readers.get(group, (0, len(self.cuts)))
        since = self.cuts[cuts:]
        return 0 if len(since) > TRUNCATIONS_KEPT else min(offset, self.end, *since)

    def may_go(self, tombstone: Record, settings: TopicSettings, now_ms: int, horizon: int) -> tuple[bool, bool]:
        """Whether one may go, and whether it has to, by its age and by what groups have read (C18, C61)."""
        read = self.read_by(settings.holding_groups)
        least_ms, most_ms = settings.delete_retention_ms, longest_ms(settings)
        if least_ms == 0 and (read is None or read >= horizon or most_ms == 0):
            return True, True

        def goes(covers: Covers) -> bool:
            cover = next((c for c in covers if at(tombstone) < c.end), None)
            if cover is None:
                return False
            all_have_read = read is None or cover.end <= read
            in_time = now_ms >= cover.time_ms + least_ms or least_ms == 0
            return (all_have_read and in_time) or now_ms >= cover.time_ms + most_ms

        return goes(self.low), goes(self.high)

    def gone(self, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> tuple[Segment, ...]:
        """The segments at the front that retention takes (C24, C25), that groups have read (C62), or below S (C26)."""
        read = self.read_by(settings.trimming_groups) or 0
        taken: list[Segment] = []
        for index, segment in enumerate(segments):
            rest = sum(s.size_bytes for s in segments[index + 1 :])
            old = settings.retention_ms != -1 and segment.max_timestamp_ms < now_ms - settings.retention_ms
            large = settings.retention_bytes != -1 and rest >= settings.retention_bytes
            waits = settings.side_by_side and segment.end_offset > self.dirty_from  # C33
            below = segment.end_offset <= max(self.start, read)
            if waits or not (below or (settings.deletes and (old or large))):
                break
            taken.append(segment)
        return tuple(taken)

    def retained(self, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> TextbookLog:
        """C24: whole segments go from the front, and S moves up."""
        gone = self.gone(segments, settings, now_ms)
        start = max(self.start, *(s.end_offset for s in gone)) if gone else self.start
        moved = replace(self, start=start, dirty_from=max(start, self.dirty_from), epoch=self.epoch + bool(gone))
        return moved._uncovered(settings)

    def horizon(self, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> int:
        """H (C14), over the segments that retention leaves."""
        horizon = self.end
        if settings.min_compaction_lag_ms > 0:
            young = (
                s.base_offset
                for s in segments
                if s.end_offset > self.dirty_from and s.max_timestamp_ms > now_ms - settings.min_compaction_lag_ms
            )
            horizon = min(horizon, next(young, horizon))
        if settings.min_compaction_lag_bytes > 0:
            light = (
                s.base_offset
                for index, s in enumerate(segments)
                if sum(later.size_bytes for later in segments[index:]) <= settings.min_compaction_lag_bytes
            )
            horizon = min(horizon, next(light, horizon))
        return max(horizon, self.dirty_from)

    def rounded(
        self, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int, there: Container[int]
    ) -> Rounded:
        """A round planned at `now_ms`. Where the contract leaves it open, `there` says which tombstones stayed."""
        gone = len(self.gone(segments, settings, now_ms))
        sources = self.retained(segments, settings, now_ms)
        start, horizon = sources.start, sources.horizon(segments[gone:], settings, now_ms)
        if settings.side_by_side:  # what the view has after the round leaves the backlog with it (C33, C41)
            start = replace(self, dirty_from=horizon).retained(segments, settings, now_ms).start
        every = sources.reading(compacted=settings.side_by_side)
        below = tuple(r for r in every if at(r) < horizon)
        above_horizon = tuple(r for r in sources.reading(compacted=False) if at(r) >= horizon)
        winners = winners_of(below, settings)
        aging = settings.deletes and not settings.side_by_side and settings.retention_ms != -1
        oldest_ms = now_ms - settings.retention_ms if aging else None
        expired: list[Record] = []
        aged: list[Record] = []

        hiding = _hiding(below if settings.compaction_strategy == "offset" else every)
        in_chunks = {r.chunk.key for r in below if r.chunk is not None and not is_old(r, oldest_ms)}

        def stays(record: Record) -> bool:
            if record.key is None and settings.null_key != "retain" and not record.passed_through:
                return False
            if record.key is not None and winners[record.key] is not record:
                return False
            if record.key is not None and deletes(record, settings):
                goes = not hiding and record.key not in in_chunks
                goes, into = goes and self._goes(record, above_horizon, settings, now_ms, horizon, there), expired
            else:
                goes, into = is_old(record, oldest_ms), aged
            if goes:
                into.append(record)
            return not goes

        left = tuple(filter(stays, below))
        held = not settings.side_by_side and any(s.base_offset < self.deleted_below < s.end_offset for s in segments)
        held = held and not any(s.base_offset < self.deleted_below and s.end_offset <= horizon for s in segments)
        return Rounded(
            planned_on=self,
            start=start,
            horizon=horizon,
            records=left,
            side_by_side=settings.side_by_side,
            held=held,
            expired=tuple(expired),
            known_below=horizon if settings.side_by_side else _end_of_last(expired, segments),
            aged=tuple(aged),
            loses=left != below,
        )

    def _goes(
        self,
        tombstone: Record,
        above_horizon: Records,
        settings: TopicSettings,
        now_ms: int,
        horizon: int,
        there: Container[int],
    ) -> bool:
        """Whether a winning tombstone goes in a round (C18, C20, C53, C61)."""
        mine = order(tombstone, settings)
        if any(key_in(r) == tombstone.key and order(r, settings) < mine for r in above_horizon):
            return False  # C20
        if at(tombstone) in there and self.may_be_hidden(tombstone.key):
            return False  # C53: a round may count those that were deleted and are stored still
        may, must = self.may_go(tombstone, settings, now_ms, horizon)
        return must or (may and at(tombstone) not in there)

    def beaten_later(self, done: Rounded, settings: TopicSettings) -> Records:
        """The records that came since a round was planned, and that deletes beat which it drops (C20)."""
        late = (r for r in self.reading(compacted=False) if at(r) >= done.planned_on.end)
        dropped = {r.key: order(r, settings) for r in done.expired}
        return tuple(r for r in late if order(r, settings) < dropped.get(key_in(r), UNORDERED))

    def with_round(
        self, done: Rounded, settings: TopicSettings, dated_ms: int, now_ms: int, run_id: str
    ) -> TextbookLog:
        """The log, as it is now, after a round that was dated so, by a clock that said `now_ms` at the latest."""
        planned = done.planned_on
        start = max(self.start, done.start)
        low, high = planned.low, planned.high
        if done.horizon > planned.dirty_from or planned.uncovered:
            low, high = (
                (*covers, Cover(done.horizon, max([dated_ms, *(c.time_ms for c in covers[-1:])])))
                for covers in (low, high)
            )
        records = self.records
        if not done.side_by_side:
            records = done.records + tuple(r for r in self.records if at(r) >= done.horizon)
        after = replace(
            self,
            start=start,
            dirty_from=max(start, done.horizon),
            records=records,
            view=done.records if done.side_by_side else None,
            view_start=planned.start if planned.view is None else planned.view_start,
            low=low,
            high=high,
            uncovered=False,
            round_required=False,
            hidden=self.hidden and (done.held or self.deleted_below > planned.deleted_below),
            last_round=run_id,
            lost=self.lost or (done.loses and not done.side_by_side),
            view_lost=self.view_lost or (done.loses and done.side_by_side),
            epoch=self.epoch + 1,
            dropped=self.dropped + done.dropped(self.epoch + 1),
            aged=self.aged + done.aged,
            undone=(0, True) if self._reached_again(done) else self.undone,
        )
        return after._aged(settings, now_ms)

    def _reached_again(self, done: Rounded) -> bool:
        """Whether readers may pass the same after a round as after those that were undone."""
        below, of_view = self.undone
        return below <= done.horizon and (of_view or not done.side_by_side)

    def without_round(self, before: TextbookLog, horizon: int, start_after: int) -> TextbookLog:
        """The log without the round that was applied to `before` and moved S to `start_after` (C7)."""
        start = self.start if self.start > start_after else max(before.start, self.deleted_below)
        records = tuple(r for r in before.records if at(r) < horizon) + tuple(
            r for r in self.records if at(r) >= horizon
        )
        return replace(
            self,
            start=start,
            dirty_from=max(before.dirty_from, start),
            records=records,
            view=before.view,
            view_start=before.view_start,
            low=before.low,
            high=before.high,
            uncovered=before.uncovered,
            round_required=self.round_required or before.round_required,
            hidden=self.hidden or before.hidden,
            last_round=before.last_round,
            lost=before.lost,
            view_lost=before.view_lost,
            epoch=self.epoch + 1,
            dropped=before.dropped,
            aged=before.aged,
            undone=(max(self.undone[0], self.dirty_from), self.undone[1] and self.view is not None),
        )

    def appended(self, records: Records, end: int) -> TextbookLog:
        """C1: `records` follow, and the log ends at `end`."""
        ids = [r.envelope.id for r in records if r.envelope is not None]
        return replace(self, records=self.records + records, end=end, copied_to=ids[-1] if ids else self.copied_to)

    def records_deleted(self, before: int) -> TextbookLog:
        """C26: records below `before` are gone for readers."""
        start, deleted = max(before, self.start), max(before, self.deleted_below)
        hidden = [r for r in self.records if self.start <= at(r) < start]
        hidden += [r for r in self.view or () if self.deleted_below <= at(r) < deleted]
        return replace(
            self,
            start=start,
            dirty_from=max(start, self.dirty_from),
            deleted_below=deleted,
            hidden=self.hidden or bool(hidden),
        )

    def truncated(self, to: int) -> TextbookLog:
        """C26: records at and above `to` are gone, `to` is the new end."""
        back = to < self.dirty_from
        dirty_from = to if back else self.dirty_from
        view = self.view
        dropped = tuple(replace(d, last=min(d.last, to - 1)) for d in self.dropped)
        below = self.compacted_before if view is None else self.compacted_up_to
        if to < below:
            dropped += (Dropped(self.epoch + 1, to, below, of_view=True, restored=True),)
        undone, of_view = self.undone
        if to < undone:
            dropped += (Dropped(self.epoch + 1, to, undone, of_view=of_view, restored=True),)
        if back and view is not None:  # what the backlog still has is judged anew
            view, dirty_from = tuple(r for r in view if at(r) < self.start), self.start
        return replace(
            self,
            end=to,
            dirty_from=dirty_from,
            records=tuple(r for r in self.records if at(r) < to),
            view=view,
            low=ended_at(self.low, dirty_from if back else to),
            high=ended_at(self.high, dirty_from if back else to, at_the_latest=True),
            cuts=(*self.cuts, to),
            compacted_before=min(self.compacted_before, to),
            epoch=self.epoch + 1,
            dropped=dropped,
            undone=(0, True) if to < undone else self.undone,
            copied_to=self._copied_after(to),
        )

    def _copied_after(self, to: int) -> MessageId | None:
        """C52: what is truncated is to be copied again."""
        cut = [r.envelope.id for r in self.records if at(r) >= to and r.envelope is not None]
        if not cut:
            return self.copied_to
        ledger, entry, index = cut[0]
        return MessageId(ledger, entry, index - 1) if index > 0 else MessageId(ledger, entry - 1)

    def uncompacted(self) -> TextbookLog:
        """C35: D = S, no steps, no view."""
        return replace(
            self,
            dirty_from=self.start,
            compacted_before=self.compacted_up_to,
            view=None,
            low=(),
            high=(),
            uncovered=False,
            last_round="",
            view_lost=False,
            dropped=tuple(d for d in self.dropped if d.restored or not d.of_view),
        )

    def missed(self, offset: int, epoch: int, *, compacted: bool) -> tuple[bool, bool]:
        """Whether one who took all below `offset` in `epoch` must and may be told of deletes that are gone (C49)."""
        since = [d for d in self.dropped if d.epoch > epoch and offset and (compacted or not d.of_view)]
        return any(d.last >= offset for d in since), any(d.below > offset for d in since)

    def _uncovered(self, settings: TopicSettings) -> TextbookLog:
        """C19: steps at or below S cover nothing any more."""
        below = self.deleted_below if settings.side_by_side else self.start
        return replace(self, low=tuple(c for c in self.low if c.end > below))

    def _aged(self, settings: TopicSettings, now_ms: int) -> TextbookLog:
        """C19: in a round, expired steps may become the newest of them."""
        expired = [c for c in self.high if c.time_ms + longest_ms(settings) <= now_ms]
        return replace(self._uncovered(settings), high=(*expired[-1:], *self.high[len(expired) :]))


def _hiding(records: Records) -> bool:
    """Whether there is an entry that may have a value of any key (C53)."""
    return any(r.passed_through and r.chunk is None for r in records)


def _end_of_last(expired: Sequence[Record], segments: tuple[Segment, ...]) -> int:
    """The end of the segment that the last of them stood in; 0 if there is none."""
    ends = (s.end_offset for s in segments for r in expired[-1:] if s.base_offset <= at(r) < s.end_offset)
    return next(ends, 0)
