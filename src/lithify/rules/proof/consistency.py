"""Checks that the metadata of one version is consistent in itself (C8, C19, C36). Opens no file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from lithify.model.finding import Finding, FindingKind
from lithify.model.log_arithmetic import last_readable, measured, view_of
from lithify.model.names import LogId
from lithify.model.segment import Segment, Volume, segments_of
from lithify.model.topic.log import LastRecord, LogState
from lithify.model.topic.state import TopicState


def metadata_findings(
    state: TopicState, log: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...] = ()
) -> Iterator[Finding]:
    """What is wrong with one log; `segments` and `view` are those of all logs of this version."""
    whole = _Log(state, log, segments_of(segments, log.partition), segments_of(view, log.partition))
    for law in (_offsets, _order, _volumes, _last_record, _steps, _view):
        for problem, path in law(whole):
            name = LogId(state.name, log.partition)
            yield Finding(log.partition, FindingKind.WRONG_METADATA, f"{name}: {problem}", path=path)


@dataclass(frozen=True, slots=True)
class _Log:
    topic: TopicState
    state: LogState
    segments: tuple[Segment, ...]
    view: tuple[Segment, ...]


Problems = Iterator[tuple[str, str | None]]
"""What is wrong, and the file that it is about."""


def _offsets(log: _Log) -> Problems:
    start, dirty, end = log.state.log_start_offset, log.state.first_dirty_offset, log.state.log_end_offset
    if not 0 <= start <= dirty <= end:
        yield f"S <= D <= E does not hold: {start}, {dirty}, {end}", None
    if not 0 <= log.state.deleted_below <= start:
        yield f"records below {log.state.deleted_below} were deleted, but the log starts at {start}", None
    held = log.state.held
    if held is not None and not held.below <= held.horizon <= end:
        yield f"expired tombstones are held below {held.below}, up to {held.horizon}, but the log ends at {end}", None


def _order(log: _Log) -> Problems:
    for what, files in (("", log.segments), ("the view: ", log.view)):
        for segment in files:
            if segment.base_offset >= segment.end_offset:
                yield (
                    f"{what}{segment.path} has no offsets: {segment.base_offset} to {segment.end_offset}",
                    segment.path,
                )
        for earlier, later in pairwise(files):
            if earlier.end_offset > later.base_offset:
                yield f"{what}{later.path} begins at {later.base_offset}, before {earlier.path} ends", later.path
    ends = ("log end", log.segments, log.state.log_end_offset), ("first dirty", log.view, log.state.first_dirty_offset)
    for what, files, end in ends:
        if files and files[-1].end_offset > end:
            yield f"{files[-1].path} ends at {files[-1].end_offset}, after the {what} offset {end}", files[-1].path


def _volumes(log: _Log) -> Problems:
    counted = measured(log.state, log.segments)
    for what in ("clean", "dirty", "oldest_dirty_timestamp_ms"):
        stored, actual = getattr(log.state, what), getattr(counted, what)
        if stored != actual:
            yield f"{what} is {stored} in the metadata, but {actual} in the segments", None
    for part in ("clean", "dirty"):
        yield from _too_many_chunks(part, getattr(log.state, part), getattr(counted, part))


def _last_record(log: _Log) -> Problems:
    stored = log.state.last_record
    last = _last(log.segments, stored)
    actual = last_readable(last, log.state.log_start_offset)
    if stored != actual:
        yield f"the last record is {stored} in the metadata, but {actual} in the segments", None


def _last(segments: tuple[Segment, ...], stored: LastRecord | None) -> LastRecord | None:
    """Where segments end; their bounds do not tell the rest of the last record, nor the offset if there is a mask."""
    if not segments:
        return None
    segment = segments[-1]
    if segment.mask is not None:
        if stored is None:
            return LastRecord(segment.base_offset, 0)  # it may be there, and then nobody can read it
        if segment.base_offset <= stored.offset < segment.end_offset:
            return stored
    offset = segment.end_offset - 1
    return LastRecord(offset, 0) if stored is None else replace(stored, offset=offset)


def _steps(log: _Log) -> Problems:
    steps = log.state.steps
    for first, second in pairwise(steps):
        if first.end_offset >= second.end_offset or first.time_ms > second.time_ms:
            yield f"tombstone steps do not ascend: {first}, {second}", None
    if steps and steps[-1].end_offset > log.state.first_dirty_offset:
        yield f"{steps[-1]} covers records above the first dirty offset {log.state.first_dirty_offset}", None
    for step in steps:
        if step.tombstones < 0:
            yield f"{step} counts a negative number", None


def _view(log: _Log) -> Problems:
    stored = log.state.view
    if stored is None:
        if log.view:
            yield f"{log.view[0].path} is in a compacted view that the log does not have", log.view[0].path
        if log.topic.settings.side_by_side and log.state.first_dirty_offset != log.state.log_start_offset:
            yield (
                f"there is no compacted view of the records below the first dirty offset "
                f"{log.state.first_dirty_offset}",
                None,
            )
        return
    if not log.topic.settings.side_by_side:
        yield "there is a compacted view, although the topic is compacted in place", None
    if not 0 <= stored.start_offset <= log.state.log_start_offset:
        yield (
            f"the compacted view starts at {stored.start_offset}, but the log starts at {log.state.log_start_offset}",
            None,
        )
    last = _last(log.view, stored.last_record)
    actual = view_of(log.view, last, stored.start_offset, losers_removed=stored.losers_removed)
    if stored != actual:
        yield f"the compacted view is {stored} in the metadata, but {actual} in its segments", None
    yield from _too_many_chunks("the compacted view", stored.volume, actual.volume)


def _too_many_chunks(what: str, stored: Volume, actual: Volume) -> Problems:
    """Fewer are correct: earlier versions do not count them (C53)."""
    if stored.chunks > actual.chunks:
        yield f"{what} has {stored.chunks} chunks in the metadata, but {actual.chunks} in the segments", None
