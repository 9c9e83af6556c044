"""Cutting one log: `delete-records` from its front, `truncate` from its end (C26).

truncate to N     [ a b ][ c d | e f ][ g h ]       the segment that straddles N is written again
                  [ a b ][ c d ]                    below it, in the commit that moves E to N
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.cut import CutReport, LogCut, cut_report, log_cut
from lithify.rules.lifecycle.cuts import Cut, records_deleted, truncated, truncation
from lithify.rules.lifecycle.replicas import check_own
from lithify.service.commit import commit
from lithify.service.last_record import first_message_id, last_record


def delete_records(warehouse: Warehouse, name: TopicName, partition: int, before: int) -> CutReport:
    """Makes every record below offset `before` unreadable at once; the next round removes them from storage.

    Raises `OffsetOutOfRangeError`, `UnknownTopicError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    cuts: list[LogCut] = []

    def decide(newest: TopicState) -> TopicEdit | None:
        cuts.clear()
        check_own(newest)
        newest.check_partition(partition)
        log = newest.log(partition)
        moved = records_deleted(LogId(name, partition), log, before, warehouse.store.segments(newest, [partition]))
        if moved == log:
            return None
        cuts.append(log_cut(log, moved, ()))
        return TopicEdit(run_id, warehouse.clock.now_ms(), {partition: moved}, verb=Verb.DELETE_RECORDS)

    state = commit(warehouse, name, run_id, decide)
    return cut_report(state, Verb.DELETE_RECORDS, cuts, warehouse.clock.now_ms())


def plan_delete_records(warehouse: Warehouse, name: TopicName, partition: int, before: int) -> CutReport:
    """What `delete_records` would do to the newest version; raises what it raises.

    The number of records is an upper bound, since a segment that is cut in two is not opened for it.
    """
    state = warehouse.store.load(name)
    check_own(state)
    state.check_partition(partition)
    log, segments = state.log(partition), warehouse.store.segments(state, [partition])
    moved = records_deleted(LogId(name, partition), log, before, segments)
    touched = tuple(s for s in segments if s.base_offset < moved.log_start_offset)
    most = moved.log_start_offset - log.log_start_offset
    cuts = [] if moved == log else [_at_most(log_cut(log, moved, touched), most)]
    return cut_report(state, Verb.DELETE_RECORDS, cuts, warehouse.clock.now_ms())


def truncate(
    warehouse: Warehouse, name: TopicName, partition: int, to: int, *, below_compacted: bool = False
) -> CutReport:
    """Removes every record at or above offset `to`, which becomes the log end.

    Raises `OffsetOutOfRangeError`, `PolicyError` below the first dirty offset without
    `below_compacted`, `UnknownTopicError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    cutter = _Cutter(warehouse, run_id)
    cuts: list[LogCut] = []

    def decide(newest: TopicState) -> TopicEdit | None:
        cuts.clear()
        check_own(newest)
        newest.check_partition(partition)
        log = newest.log(partition)
        how = truncation(LogId(name, partition), log, to, below_compacted=below_compacted)
        if how.end_offset == log.log_end_offset:
            return None
        whole = warehouse.store.segments(newest, [partition])
        segments = cutter.cut(newest, whole, how.end_offset)
        view = _Pieces((), (), ())
        if log.view is not None:
            view = cutter.cut(newest, warehouse.store.view(newest, [partition]), how.view_end_offset)
        last = last_record(warehouse, segments.left, log.last_record)
        view_last = last_record(warehouse, view.left, None if log.view is None else log.view.last_record)
        first = first_message_id(warehouse, whole, how.end_offset)
        moved = truncated(log, how, Cut(segments.left, last, view.left, view_last, first))
        cuts.append(log_cut(log, moved, segments.removed + view.removed, segments.written + view.written))
        return TopicEdit(
            run_id,
            warehouse.clock.now_ms(),
            {partition: moved},
            add=segments.written,
            remove=segments.removed,
            view_add=view.written,
            written=segments.written + view.written,
            view_remove=view.removed,
            verb=Verb.TRUNCATE,
        )

    state = commit(warehouse, name, run_id, decide)
    return cut_report(state, Verb.TRUNCATE, cuts, warehouse.clock.now_ms())


def plan_truncate(
    warehouse: Warehouse, name: TopicName, partition: int, to: int, *, below_compacted: bool = False
) -> CutReport:
    """What `truncate` would do to the newest version, by its metadata; raises what it raises.

    The number of records is an upper bound, since a segment that is cut in two is not opened for it.
    """
    state = warehouse.store.load(name)
    check_own(state)
    state.check_partition(partition)
    log = state.log(partition)
    how = truncation(LogId(name, partition), log, to, below_compacted=below_compacted)
    touched = tuple(s for s in warehouse.store.segments(state, [partition]) if s.end_offset > how.end_offset)
    moved = replace(log, log_end_offset=how.end_offset, first_dirty_offset=how.first_dirty_offset)
    most = log.log_end_offset - how.end_offset
    cuts = [] if most == 0 else [_at_most(log_cut(log, moved, touched), most)]
    return cut_report(state, Verb.TRUNCATE, cuts, warehouse.clock.now_ms())


def _at_most(cut: LogCut, records: int) -> LogCut:
    """`cut`, with no more records removed than there are offsets."""
    return replace(cut, records_removed=min(cut.records_removed, records))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The segments after a cut, those that it removed and those that it wrote."""

    left: tuple[Segment, ...]
    removed: tuple[Segment, ...]
    written: tuple[Segment, ...]


@dataclass(slots=True)
class _Cutter:
    """Cuts segments; a retry reuses the files of the attempt before."""

    warehouse: Warehouse
    run_id: str
    written: dict[tuple[str, int], tuple[Segment, ...]] = field(default_factory=dict)

    def cut(self, state: TopicState, segments: tuple[Segment, ...], end_offset: int) -> _Pieces:
        whole = tuple(s for s in segments if s.end_offset <= end_offset)
        removed = tuple(s for s in segments if s.end_offset > end_offset)
        written = tuple(
            new for s in removed if s.base_offset < end_offset for new in self._written(state, s, end_offset)
        )
        return _Pieces(whole + written, removed, written)

    def _written(self, state: TopicState, segment: Segment, end_offset: int) -> tuple[Segment, ...]:
        key = segment.id, end_offset
        if key not in self.written:
            self.written[key] = self.warehouse.files.cut(state, segment, end_offset, self.run_id)
        return self.written[key]
