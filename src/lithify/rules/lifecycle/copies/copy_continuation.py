"""Where a copy of another system's log continues, and when it must not: pure decisions from offsets alone.

    copy     |-------------------------E
    source        |start ......................... end|      continue at E
    source                                  |start  end|      lost: [E, start) is nowhere any more
    source   |start ........ end|                             went back: recreated, or truncated
    source   |start ....|x ............ end|                  was cut at x, and has grown again (C72)

Only the offsets say how far the copy is: no checkpoint and no consumer group does (C1, C6). Of Pulsar the ids do
(`pulsar/lake`), with the first three outcomes. Whether the source was cut only its brokers know. They are asked where
its leader epoch has changed since the copy. A cluster whose disks were all restored repeats its epochs: so what it has
in place of the copy's last record is compared, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.model.sources.source import (
    EpochAt,
    Signs,
    SourceLog,
    SourcePosition,
    compared_record,
    copied_in,
    differ,
    record_to_compare,
)
from lithify.model.topic.state import TopicState

EARLIER = 50
"""If the source has no record at the offset of the copy's last one, records at this number of offsets before
it are compared: a transaction's marker may be there, or the source's cleaner was."""


@dataclass(frozen=True, slots=True)
class CopyContinues:
    """The copy continues at `position`; None: at the earliest entry of the source."""

    position: SourcePosition | None


@dataclass(frozen=True, slots=True)
class NeverCopied:
    """The source has deleted what is from one position to the other, and it was never copied.

    Of offsets it is [start, end); of ids what is behind `start`, if it is known, and at or before `end`.
    """

    start: SourcePosition | None
    end: SourcePosition


@dataclass(frozen=True, slots=True)
class SourceWentBack:
    """The source's log ends at `source_end`, below the copy's `log_end`."""

    log_end: SourcePosition
    source_end: SourcePosition


@dataclass(frozen=True, slots=True)
class SourceWasCut:
    """The source has lost its records from `cut` on, below the copy's `log_end`, and has others there now (C72).

    Of Pulsar `log_end` is the id up to which the copy has everything (C52).
    """

    log_end: SourcePosition
    cut: int | None
    """None: from somewhere below `log_end` on."""


CopyContinuation = CopyContinues | NeverCopied | SourceWentBack | SourceWasCut


def copy_continuation(log_end: int | None, source: SourceLog) -> CopyContinuation:
    """How the copy of one log continues. `log_end` is None for a log that has no copy, or an empty one."""
    if log_end is None:
        return CopyContinues(source.start_offset)
    if source.end_offset < log_end:
        return SourceWentBack(log_end, source.end_offset)
    if source.start_offset > log_end:
        return NeverCopied(log_end, source.start_offset)
    return CopyContinues(log_end)


def copy_continuations(state: TopicState | None, source: Mapping[int, SourceLog]) -> Mapping[int, CopyContinuation]:
    """By partition of the source. New partitions begin at their start."""
    return {partition: copy_continuation(_log_end(state, partition), log) for partition, log in source.items()}


def epochs_to_ask(state: TopicState, source: Mapping[int, SourceLog]) -> Mapping[int, EpochAt]:
    """By partition, what to check at the source before the copy continues: has it lost some of that? (C72)

    A log loses records only with a new leader epoch. Nothing is known of copies that an earlier Lithify made.
    """
    copied = {p: copied_in(state.log(p)) for p in source if p in state.partitions}
    return {
        p: at
        for p, at in copied.items()
        if at is not None and at.offset and source[p].leader_epoch not in (None, at.epoch)
    }


def records_to_compare(state: TopicState, source: Mapping[int, SourceLog]) -> Mapping[int, int]:
    """By partition, the offset of the copy's last record, if the source has that offset (C72)."""
    return {
        p: last.offset
        for p, log in source.items()
        if p in state.partitions
        if (last := record_to_compare(state.log(p), log.start_offset, log.end_offset)) is not None
    }


def cuts_by_records(state: TopicState, theirs: Mapping[int, Signs]) -> Mapping[int, SourceWasCut]:
    """Of partitions whose record at the offset of the copy's last one is another one. `theirs` are the signs of those.

    A partition is not in `theirs` where the source has no record at that offset any more, which tells nothing.
    """
    return {
        p: SourceWasCut(state.log(p).log_end_offset, None)
        for p, signs in theirs.items()
        if (last := compared_record(state.log(p))) is not None and last.is_not(signs)
    }


def earlier_to_compare(
    state: TopicState, source: Mapping[int, SourceLog], lasts: Mapping[int, int]
) -> Mapping[int, tuple[int, int]]:
    """By partition of `lasts`, whose offset has no record in the source, the range of offsets before it to compare."""
    starts = {
        p: max(source[p].start_offset, state.log(p).log_start_offset, last - EARLIER) for p, last in lasts.items()
    }
    return {p: (start, lasts[p]) for p, start in starts.items() if start < lasts[p]}


def cuts_by_earlier(
    state: TopicState, ours: Mapping[int, Mapping[int, Signs]], theirs: Mapping[int, Mapping[int, Signs]]
) -> Mapping[int, SourceWasCut]:
    """Of partitions in which copy and source have different records at one offset, by offset as both have them now."""
    return {
        p: SourceWasCut(state.log(p).log_end_offset, None)
        for p, mine in ours.items()
        if differ(mine, theirs.get(p, {}))
    }


def unproven(
    state: TopicState, cuts: Mapping[int, SourceWasCut], theirs: Mapping[int, Signs]
) -> Mapping[int, SourceWasCut]:
    """The cuts, without false ones, for which brokers do not have the epoch, but have the copy's last record.

    A cluster that was restored to before later elections responds so for a log that has lost nothing since.
    """
    lasts = {p: compared_record(state.log(p)) for p in cuts}
    return {
        p: cut
        for p, cut in cuts.items()
        if cut.cut is not None or (last := lasts[p]) is None or not last.is_proven(theirs.get(p))
    }


def with_cuts(
    continuations: Mapping[int, CopyContinuation], cuts: Mapping[int, SourceWasCut]
) -> Mapping[int, CopyContinuation]:
    """The continuations, of which those that were possible are not where the source was cut."""
    return {p: cuts.get(p, how) if isinstance(how, CopyContinues) else how for p, how in continuations.items()}


def _log_end(state: TopicState | None, partition: int) -> int | None:
    """The copy's log end; None if nothing was ever copied, so that nothing can be missing."""
    if state is None or partition not in state.partitions:
        return None
    end = state.log(partition).log_end_offset
    return end or None
