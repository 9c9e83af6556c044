"""The layout of a topic's logs: segments along the offset axis, drawn as few runs where they are many.

Reads metadata only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from lithify.model.groups.reads import LogReads
from lithify.model.segment import Segment, by_partition
from lithify.model.topic.log import LogState
from lithify.model.topic.log import TombstoneStep as CoveredTombstones
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.looks.layout import LogLayout, Part, SegmentRun, TombstoneStep, TopicLayout
from lithify.rules.compaction.eligible.horizon import compaction_horizon
from lithify.rules.compaction.tombstones import Expiry, delete_retention_point, expiry_of
from lithify.service.group_reads import read_groups

RUNS = 400
"""Of one log, at most."""
RUNS_OF_TOPIC = 20_000
LEAST_RUNS = 20


def topic_layout(warehouse: Warehouse, state: TopicState, partitions: Sequence[int] | None = None) -> TopicLayout:
    """The layout of these logs, or of all. Raises `UnknownTopicError` for a partition that there is not."""
    wanted = list(state.partitions) if partitions is None else sorted(set(partitions))
    for partition in wanted:
        state.check_partition(partition)
    only = None if partitions is None else wanted
    segments = by_partition(warehouse.store.segments(state, only))
    view = by_partition(warehouse.store.view(state, only) if state.settings.side_by_side else ())
    reads, now_ms = read_groups(warehouse, state), warehouse.clock.now_ms()
    most = max(LEAST_RUNS, min(RUNS, RUNS_OF_TOPIC // max(1, len(wanted))))
    logs = [
        _log_layout(
            state,
            log,
            (segments.get(log.partition, ()), view.get(log.partition, ())),
            reads.of(log.partition),
            (now_ms, most),
        )
        for log in map(state.log, wanted)
    ]
    return TopicLayout(str(state.name), state.version, now_ms, tuple(logs))


def _log_layout(
    state: TopicState,
    log: LogState,
    files: tuple[tuple[Segment, ...], tuple[Segment, ...]],
    reads: LogReads,
    at: tuple[int, int],
) -> LogLayout:
    segments, view = files
    now_ms, most = at
    settings = state.round_settings
    horizon = compaction_horizon(log, segments, settings, now_ms).offset
    expiry = expiry_of(settings, reads)
    return LogLayout(
        partition=log.partition,
        log_start_offset=log.log_start_offset,
        delete_retention_point=delete_retention_point(log),
        first_dirty_offset=log.first_dirty_offset,
        horizon=horizon,
        log_end_offset=log.log_end_offset,
        segments=len(segments),
        runs=tuple(_runs(segments, (log.first_dirty_offset, horizon), most)),
        view=tuple(_runs(view, (log.first_dirty_offset, horizon), most)),
        steps=tuple(_step(step, expiry) for step in log.steps if step.tombstones),
    )


def _step(step: CoveredTombstones, expiry: Expiry) -> TombstoneStep:
    return TombstoneStep(step.end_offset, step.tombstones, step.time_ms, expiry.at_ms(step))


def _runs(segments: Sequence[Segment], ends: tuple[int, int], most: int) -> Iterator[SegmentRun]:
    """The segments in offset order; where there are more than `most`, those that begin in one stretch of offsets."""
    if not segments:
        return
    first = segments[0].base_offset
    stretch = 0 if len(segments) <= most else -(-(segments[-1].end_offset - first) // most)

    def place(numbered: tuple[int, Segment]) -> tuple[Part, int]:
        number, segment = numbered
        return _part(segment, ends), (segment.base_offset - first) // stretch if stretch else number

    for (part, _), some in groupby(enumerate(segments), place):
        yield _run(part, [segment for _, segment in some])


def _part(segment: Segment, ends: tuple[int, int]) -> Part:
    first_dirty_offset, horizon = ends
    if segment.end_offset <= first_dirty_offset:
        return Part.CLEAN
    return Part.DIRTY if segment.end_offset <= horizon else Part.WAITING


def _run(part: Part, segments: Sequence[Segment]) -> SegmentRun:
    return SegmentRun(
        part=part,
        base_offset=segments[0].base_offset,
        end_offset=segments[-1].end_offset,
        segments=len(segments),
        records=sum(s.records for s in segments),
        bytes=sum(s.size_bytes for s in segments),
        tombstones=sum(s.null_values for s in segments),
        masked_records=sum(s.records_in_file - s.records for s in segments),
    )
