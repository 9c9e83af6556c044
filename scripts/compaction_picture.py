"""Draws docs/images/compaction.svg; `just docs` calls it.

What is left of the drawn log is not drawn by hand: the planner, the oracle and the decisions of
`lithify.rules.compaction` say which records survive two rounds and what becomes of each segment. A
test compares the picture with what this draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import assert_never

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

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "compaction.svg"

LOG = (
    (("ana", "Lima"), ("ben", "Oslo"), ("cleo", "Rome")),
    (("ana", "Bonn"), ("ben", None), ("dan", "Kyiv")),
    (("cleo", "Nice"), ("ana", "Graz"), ("eva", "Riga")),
)
"""Segments of keys and values; a record without a value deletes its key."""

COLOURS = {
    "ana": ("#dbeafe", "#1d4ed8"),
    "ben": ("#fee2e2", "#b91c1c"),
    "cleo": ("#dcfce7", "#15803d"),
    "dan": ("#fef3c7", "#b45309"),
    "eva": ("#f3e8ff", "#7e22ce"),
}
"""Fill and line of a key's records."""

DAY_MS = 86_400_000
WIDTH, HEIGHT = 950, 448
LEFT, TOP, CELL, GAP, ROW, TALL = 208, 66, 76, 14, 124, 54
LEGEND = "One log. Frames are segments, immutable files. ∅ deletes its key. What is faint goes in the next round."
INK, FAINT, LINE = "#1f2937", "#6b7280", "#cbd5e1"


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
    first = Stage("After a round", ("the latest record of each key,", "at the offset it always had"), left, fates)
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
    nulls = sum(r.value is None for r in held)
    return Segment(
        str(number), 0, offsets[0], offsets[-1] + 1, len(held), size, size, 0, 0, 0, nulls, 4, keys[0], keys[-1]
    )


def text(x: float, y: float, words: str, *, size: int = 13, fill: str = INK, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" {more}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {look}/>'


def column(offset: int) -> float:
    """The left edge of an offset's column."""
    return LEFT + offset * CELL + offset // len(LOG[0]) * GAP


def cell(record: Record, y: float, *, loses: bool) -> Iterator[str]:
    """A record: its key over its value; fainter if the next round removes it."""
    assert record.offset is not None and record.key is not None  # as `records` makes them
    fill, line = COLOURS[record.key.decode()]
    middle = column(record.offset) + CELL / 2
    value = "∅" if record.value is None else record.value.decode()
    centred = 'text-anchor="middle"'
    yield f'<g opacity="{0.45 if loses else 1:g}">'
    yield box(column(record.offset) + 3, y, CELL - 6, TALL, f'rx="6" fill="{fill}" stroke="{line}"')
    yield text(middle, y + 23, record.key.decode(), fill=line, more=f'{centred} font-weight="bold"')
    yield text(middle, y + 43, value, more=centred + (' text-decoration="line-through"' if loses else ""))
    yield "</g>"


def row(stage: Stage, number: int, lost_next: frozenset[int]) -> Iterator[str]:
    """One stage of the log."""
    y = TOP + number * ROW
    yield text(24, y + 18, stage.title, size=16, more='font-weight="bold"')
    for line, words in enumerate(stage.lines):
        yield text(24, y + 38 + 16 * line, words, size=11, fill="#4b5563")
    for index, segment in enumerate(records()):
        here = [r for r in segment if r.offset in stage.left]
        left = column(index * len(segment)) - 3
        width = len(segment) * CELL + 6
        if here:
            yield box(left, y - 6, width, TALL + 12, f'rx="9" fill="none" stroke="{LINE}" stroke-width="1.5"')
        if stage.fates[index]:
            caption = f"segment {stage.fates[index]}"
            yield text(left + width / 2, y + TALL + 22, caption, size=11, fill=FAINT, more='text-anchor="middle"')
        for r in segment:
            if r in here:
                yield from cell(r, y, loses=r.offset in lost_next)
            else:
                yield text(column(r.offset or 0) + CELL / 2, y + 32, "·", fill=FAINT, more='text-anchor="middle"')


def picture() -> str:
    """The whole drawing."""
    steps = stages()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif" role="img" '
        f'aria-label="A log before and after two rounds of compaction">',
        box(0.5, 0.5, WIDTH - 1, HEIGHT - 1, f'rx="12" fill="#ffffff" stroke="{LINE}"'),
        text(24, 36, "offset", size=12, fill=FAINT),
    ]
    for offset in sorted(steps[0].left):
        parts.append(text(column(offset) + CELL / 2, 36, str(offset), size=12, fill=FAINT, more='text-anchor="middle"'))
    for number, stage in enumerate(steps):
        gone = stage.left - steps[number + 1].left if number + 1 < len(steps) else frozenset()
        parts += row(stage, number, gone)
    parts.append(text(24, HEIGHT - 18, LEGEND, size=11, fill=FAINT))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
