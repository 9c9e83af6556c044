"""Draws docs/images/compaction.svg; `just docs` calls it.

What is left of the drawn log is not drawn by hand: the planner, the oracle and the decisions of
`lithify.rules.compaction` say which records survive two rounds and what becomes of each segment. A
test compares the picture with what this draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from drawing import BOLD, CENTRED, FAINT, IMAGES, SOFT, TALL, cell, gap, segment_frame, sheet, text
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState, TombstoneStep
from lithify.rules.compaction.decisions import (
    AddMask,
    CountedSegment,
    Decision,
    Drop,
    Keep,
    Rewrite,
    decide,
    segments_of,
)
from lithify.rules.compaction.planner import plan_log
from lithify.rules.compaction.survivors import survivors

PICTURE = IMAGES / "compaction.svg"

LOG = (
    (("ana", "Lima"), ("ben", "Oslo"), ("cleo", "Rome")),
    (("ana", "Bonn"), ("ben", None), ("dan", "Kyiv")),
    (("cleo", "Nice"), ("ana", "Graz"), ("eva", "Riga")),
)
"""Segments of keys and values; a record without a value deletes its key."""

DAY_MS = 86_400_000
WIDTH, HEIGHT = 950, 448
LEFT, TOP, CELL, GAP, ROW = 208, 66, 76, 14, 124
LEGEND = "One log. Frames are segments, immutable files. ∅ deletes its key. What is faint goes in the next round."


@dataclass(frozen=True, slots=True)
class Stage:
    """The log at one time: what is still there, and what became of each segment of before."""

    title: str
    lines: tuple[str, ...]
    left: frozenset[int]
    fates: tuple[str, ...]


def records() -> tuple[tuple[Record, ...], ...]:
    """The records of each segment, with their offsets."""
    size = len(LOG[0])
    return tuple(
        tuple(
            Record(
                key.encode(), None if value is None else value.encode(), 0, partition=0, offset=size * number + place
            )
            for place, (key, value) in enumerate(segment)
        )
        for number, segment in enumerate(LOG)
    )


def stages() -> tuple[Stage, ...]:
    """Before, after a round, and after another one a day later."""
    segments = records()
    end = sum(map(len, segments))
    there = frozenset(range(end))
    before = Stage("As appended", ("three segments,", "nine records"), there, ("",) * len(segments))
    fresh = LogState(0, log_end_offset=end)
    left, fates = after_round(segments, fresh, now_ms=0)
    first = Stage("After a round", ("the latest record of each key,", "at its original offset"), left, fates)
    rest = tuple(tuple(r for r in segment if r.offset in left) for segment in segments)
    covered = LogState(0, first_dirty_offset=end, log_end_offset=end, steps=(TombstoneStep(end, 0, 1),))
    left, fates = after_round(rest, covered, now_ms=DAY_MS)
    last = Stage("A day later", ("delete.retention.ms is over:", "the delete itself goes"), left, fates)
    return before, first, last


def after_round(
    segments: tuple[tuple[Record, ...], ...], state: LogState, *, now_ms: int
) -> tuple[frozenset[int], tuple[str, ...]]:
    """Offsets that survive a round, and by segment: dropped, rewritten, kept, or nothing if it is not there."""
    files = tuple(segment_of(number, segment) for number, segment in enumerate(segments) if segment)
    plan = plan_log(state, files, TopicSettings(), now_ms)
    left = frozenset(
        r.offset for r in survivors([r for s in segments for r in s], plan.rules).records if r.offset is not None
    )
    counted = tuple(
        CountedSegment(file, sum(file.base_offset <= offset < file.end_offset for offset in left)) for file in files
    )
    decisions = decide(counted, segment_bytes=TopicSettings().segment_bytes, moves=plan.moves)
    fates = {segment.path: fate_of(decision) for decision in decisions for segment in segments_of(decision)}
    return left, tuple(fates.get(str(number), "") for number in range(len(segments)))


def fate_of(decision: Decision) -> str:
    match decision:
        case Keep():
            return "untouched"
        case AddMask():
            return "masked"
        case Rewrite((_,)):
            return "rewritten"
        case Rewrite():
            return "merged"
        case Drop():
            return "dropped"
        case _:
            assert_never(decision)


def segment_of(number: int, held: tuple[Record, ...]) -> Segment:
    """A segment with these records; its name is its number in the picture."""
    offsets = [r.offset for r in held if r.offset is not None]
    keys = sorted(r.key for r in held if r.key is not None)
    size = 1000 * len(held)
    times = [r.timestamp for r in held if r.timestamp is not None]
    nulls = sum(r.value is None for r in held)
    first, last, oldest, newest = offsets[0], offsets[-1], min(times), max(times)
    return Segment(
        str(number), 0, first, last + 1, len(held), size, size, oldest, newest, 0, nulls, 4, keys[0], keys[-1]
    )


def column(offset: int) -> float:
    """The left edge of an offset's column."""
    return LEFT + offset * CELL + offset // len(LOG[0]) * GAP


def row(stage: Stage, number: int, lost_next: frozenset[int]) -> Iterator[str]:
    """One stage of the log."""
    y = TOP + number * ROW
    yield text(24, y + 18, stage.title, size=16, more=BOLD)
    for line, words in enumerate(stage.lines):
        yield text(24, y + 38 + 16 * line, words, size=11, fill=SOFT)
    for index, segment in enumerate(records()):
        here = [r for r in segment if r.offset in stage.left]
        left = column(index * len(segment)) - 3
        width = len(segment) * CELL + 6
        if here:
            yield segment_frame(left, y, width)
        if stage.fates[index]:
            caption = f"segment {stage.fates[index]}"
            yield text(left + width / 2, y + TALL + 22, caption, size=11, fill=FAINT, more=CENTRED)
        for r in segment:
            x = column(r.offset or 0)
            if r in here:
                yield from cell(r, x + 3, y, CELL - 6, loses=r.offset in lost_next)
            else:
                yield gap(x + CELL / 2, y)


def picture() -> str:
    """The whole drawing."""
    steps = stages()
    parts = [text(24, 36, "offset", size=12, fill=FAINT)]
    for offset in sorted(steps[0].left):
        parts.append(text(column(offset) + CELL / 2, 36, str(offset), size=12, fill=FAINT, more=CENTRED))
    for number, stage in enumerate(steps):
        gone = stage.left - steps[number + 1].left if number + 1 < len(steps) else frozenset()
        parts += row(stage, number, gone)
    parts.append(text(24, HEIGHT - 18, LEGEND, size=11, fill=FAINT))
    return sheet(WIDTH, HEIGHT, "A log before and after two rounds of compaction", parts)


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
