"""Draws the pictures of docs/understand/concepts.md; `just docs` calls it.

Which records win, how far a round goes and what it leaves is not drawn by hand: the planner and the
oracle of `lithify.rules.compaction` say it. A test compares the files with what this draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction_picture import segment_of
from drawing import (
    BOLD,
    CENTRED,
    DASHED,
    FAINT,
    IMAGES,
    LINE,
    SOFT,
    TALL,
    arrow,
    box,
    cell,
    line,
    segment_frame,
    sheet,
    text,
)
from lifetime_pictures import masks, tombstone, versions
from lithify.model.record import Header, Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.log import LogState
from lithify.rules.compaction.planner import plan_log
from lithify.rules.compaction.survivors import survivors

WIDTH = 760
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
WINS = 'rx="11" fill="#dcfce7" stroke="#15803d"'
READS, READS_VIEW = "#475569", "#1d4ed8"

Segments = tuple[tuple[Record, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Where the records of a log are drawn: the left edge of offset 0, the top, and the width of an offset."""

    x: float
    y: float
    pitch: float

    def at(self, offset: int) -> float:
        return self.x + offset * self.pitch

    def records(self, segments: Segments, left: frozenset[int], loses: frozenset[int] = frozenset()) -> Iterator[str]:
        """The frames of segments that have a record left, these records, and a point for each of the others."""
        for held in segments:
            offsets = [offset_of(record) for record in held]
            if left.intersection(offsets):
                width = (offsets[-1] + 1 - offsets[0]) * self.pitch
                yield segment_frame(self.at(offsets[0]) + 1.5, self.y, width - 3)
            for record in held:
                x, offset = self.at(offset_of(record)), offset_of(record)
                if offset in left:
                    yield from cell(record, x + 5, self.y, self.pitch - 10, loses=offset in loses)
                else:
                    yield f'<circle cx="{x + self.pitch / 2:g}" cy="{self.y + TALL / 2:g}" r="2.5" fill="{FAINT}"/>'

    def numbers(self, offsets: Sequence[int]) -> Iterator[str]:
        """The offsets under the records."""
        for offset in offsets:
            x = self.at(offset) + self.pitch / 2
            yield text(x, self.y + TALL + 22, str(offset), size=12, fill=FAINT, more=CENTRED)


def offset_of(record: Record) -> int:
    assert record.offset is not None  # as `log` makes them
    return record.offset


def log(*parts: str) -> Segments:
    """Segments of records such as `ana=Lima`, without a value for a tombstone, from offset 0 on."""
    made, offset = [], 0
    for part in parts:
        words = part.split()
        made.append(tuple(a_record(word, offset + place) for place, word in enumerate(words)))
        offset += len(words)
    return tuple(made)


def a_record(word: str, offset: int, timestamp: int = 0, headers: tuple[Header, ...] = ()) -> Record:
    key, _, value = word.partition("=")
    return Record(key.encode(), value.encode() or None, timestamp, headers, partition=0, offset=offset)


def offsets_of(segments: Segments) -> frozenset[int]:
    return frozenset(offset_of(record) for held in segments for record in held)


def topic() -> str:
    """Two partitions of a topic."""
    logs = (
        (log("ana=Lima cleo=Rome ana=Bonn", "cleo=Nice ana=Graz"), {1, 2, 3, 4}),
        (log("ben=Oslo dan=Kyiv dan=Lviv", "eva=Riga ben=", "eva=Nis"), {0, 2, 3, 4, 5}),
    )
    parts = [text(24, 36, "Topic customers: one Iceberg table", size=16, more=BOLD)]
    for partition, (segments, left) in enumerate(logs):
        row = Row(150, 66 + 112 * partition, 62)
        end = len(offsets_of(segments))
        parts += [
            text(24, row.y + 24, f"Partition {partition}", size=14, more=BOLD),
            text(24, row.y + 43, "is one log", fill=SOFT),
            *row.records(segments, frozenset(left)),
            *row.numbers(range(end + 1)),
            box(row.at(end) + 5, row.y, row.pitch - 10, TALL, f'rx="6" fill="none" stroke="{FAINT}" {DASHED}'),
            *arrow(row.at(end + 1) + 40, row.y + TALL / 2, row.at(end + 1) + 2),
            text(row.at(end + 1) + 46, row.y + TALL / 2 + 4, "append", fill=SOFT),
        ]
    parts += [
        text(24, 298, "Frame: a segment, one Parquet file. Number: the offset. ∅: a tombstone.", fill=SOFT),
        text(24, 318, "Point: an offset whose record a round removed. Dashed: the log end offset.", fill=SOFT),
    ]
    return sheet(WIDTH, 336, "A topic with two partitions, each a log of segments with records at offsets", parts)


def offsets() -> str:
    """The four offsets of a log before and after a round."""
    texts = log("ana=Lima ben=Bern", "ben=Oslo cleo=Pisa ana=Bonn", "ben= dan=Kyiv ana=Graz", "cleo=Nice dan=Lviv")
    young = tuple(a_record(word, 10 + place, HOUR_MS) for place, word in enumerate(("eva=Riga", "cleo=Rome")))
    segments = (*texts, young)
    start, dirty, end, there = 2, 5, 12, offsets_of(segments) - {0, 1, 3}
    files = tuple(
        segment_of(number, tuple(r for r in held if r.offset in there)) for number, held in enumerate(segments[1:])
    )
    state = LogState(0, log_start_offset=start, first_dirty_offset=dirty, log_end_offset=end)
    plan = plan_log(state, files, settings_of({"min.compaction.lag.ms": HOUR_MS}), HOUR_MS + 1)
    kept = survivors([r for held in segments for r in held if r.offset in there], plan.rules).records
    horizon = plan.horizon.offset
    left = frozenset(map(offset_of, kept)) | {offset for offset in there if offset >= horizon}
    before = {start: "S  log start", dirty: "D  first dirty", horizon: "H  first uncleanable", end: "E  log end"}
    after = {start: "S", horizon: "D = H", end: "E"}
    parts = [
        text(28, 34, "Before a round", size=16, more=BOLD),
        *offsets_row(Row(28, 76, 57), segments, there, before, there - left),
        *ranges(Row(28, 76, 57), {"clean": (start, dirty), "dirty": (dirty, horizon), "too young": (horizon, end)}),
        text(28, 236, "After the round", size=16, more=BOLD),
        *offsets_row(Row(28, 278, 57), segments, left, after),
        *ranges(Row(28, 278, 57), {"clean": (start, horizon), "too young": (horizon, end)}),
    ]
    return sheet(WIDTH, 404, "A log with the offsets S, D, H and E before and after a round", parts)


def offsets_row(
    row: Row, segments: Segments, left: frozenset[int], flags: Mapping[int, str], loses: frozenset[int] = frozenset()
) -> Iterator[str]:
    """A log with lines at some offsets."""
    for offset, name in flags.items():
        x = row.at(offset)
        yield line(x, row.y - 14, x, row.y + TALL + 50, f'stroke="{SOFT}" stroke-width="1.5"')
        yield text(x, row.y - 20, name, more=f"{CENTRED} {BOLD}")
    yield from row.records(segments, left, loses)
    yield from row.numbers(range(12))


RANGES = {"clean": "#dcfce7", "dirty": "#fef3c7", "too young": "#e5e7eb"}


def ranges(row: Row, named: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Coloured bars under a log."""
    y = row.y + TALL + 30
    for name, (start, end) in named.items():
        width = (end - start) * row.pitch
        yield box(row.at(start) + 2, y, width - 4, 20, f'rx="5" fill="{RANGES[name]}"')
        yield text(row.at(start) + width / 2, y + 15, name, more=CENTRED)


@dataclass(frozen=True, slots=True)
class Rival:
    """A record of one key, and by strategy what decides for it."""

    record: Record
    decides: Mapping[str, str]


STRATEGIES = {
    "offset": "the highest offset",
    "timestamp": "the latest timestamp",
    "header": "the highest number in a header",
}


def rivals() -> tuple[Rival, ...]:
    def rival(word: str, offset: int, minute: int, order: int | None) -> Rival:
        headers = () if order is None else (("version", order.to_bytes(8, "big")),)
        record = a_record(word, offset, minute * MINUTE_MS, headers)
        header = "no header" if order is None else f"version {order}"
        return Rival(record, {"offset": f"offset {offset}", "timestamp": f"12:{minute:02}", "header": header})

    return rival("ana=Lima", 3, 5, 2), rival("ana=Bonn", 5, 9, 1), rival("ana=", 8, 2, None)


def winner_by(strategy: str, rivals: Sequence[Rival]) -> Record:
    """The record of these that a round keeps."""
    held = tuple(rival.record for rival in rivals)
    config = {"compaction.strategy": strategy}
    if strategy == "header":
        config["compaction.strategy.header"] = "version"
    state = LogState(0, log_end_offset=offset_of(held[-1]) + 1)
    plan = plan_log(state, (segment_of(0, held),), settings_of(config), HOUR_MS)
    (left,) = survivors(held, plan.rules).records
    return left


def winners() -> str:
    """Which of three records wins, by strategy."""
    shown = rivals()
    parts = [text(24, 52, "Three records of key ana", size=16, more=BOLD)]
    columns = {offset_of(rival.record): 344 + 132 * place for place, rival in enumerate(shown)}
    for rival in shown:
        parts += cell(rival.record, columns[offset_of(rival.record)] + 28, 24, 64)
    for number, (strategy, rule) in enumerate(STRATEGIES.items()):
        y = 118 + 58 * number
        parts += [
            line(24, y - 22, WIDTH - 24, y - 22, f'stroke="{LINE}"'),
            text(24, y + 4, f"compaction.strategy={strategy}", size=14, more=BOLD),
            text(24, y + 22, f"{rule} wins", fill=SOFT),
        ]
        winner = winner_by(strategy, shown)
        for rival in shown:
            x, words = columns[offset_of(rival.record)], rival.decides[strategy]
            if rival.record is winner:
                parts += [box(x + 8, y - 6, 104, 24, WINS), text(x + 60, y + 11, words, more=f"{CENTRED} {BOLD}")]
            else:
                parts.append(text(x + 60, y + 11, words, fill=FAINT, more=CENTRED))
    return sheet(WIDTH, 286, "Which of three records wins under each compaction strategy", parts)


def modes() -> str:
    """What a round leaves in place, and side by side."""
    segments = log("ana=Lima ben=Oslo ana=Bonn cleo=Rome", "ben= ana=Graz")
    dirty, there = 4, offsets_of(segments)
    state = LogState(0, log_end_offset=dirty)
    plan = plan_log(state, (segment_of(0, segments[0]),), settings_of({}), 0)
    view = frozenset(map(offset_of, survivors(segments[0], plan.rules).records))
    left = view | {offset for offset in there if offset >= dirty}
    above, below, x = 116, 246, 416
    place, beside = Row(32, below, 54), Row(x, below, 54)
    parts = [
        text(32, 36, "In place", size=16, more=BOLD),
        text(32, 56, "the log itself is compacted, as in Kafka", fill=SOFT),
        text(x, 36, "Side by side", size=16, more=BOLD),
        text(x, 56, "a compacted view beside the full log, as in Pulsar", fill=SOFT),
        line(WIDTH / 2 + 6, 24, WIDTH / 2 + 6, 366, f'stroke="{LINE}"'),
        text(32, above - 18, "Log before the round", fill=SOFT),
        *Row(32, above, 54).records(segments, there, there - left),
        text(32, below - 18, "Log after it", fill=SOFT),
        *place.records(segments, left),
        *arrow(place.at(0), below + 80, place.at(6), fill=READS),
        text(place.at(0), below + 104, "every reader", fill=READS, more=BOLD),
        text(x, above - 18, "Compacted view", fill=SOFT),
        *Row(x, above, 54).records(segments[:1], view),
        text(x, below - 18, "Log", fill=SOFT),
        *beside.records(segments, there),
        line(beside.at(dirty), above - 28, beside.at(dirty), below + 64, f'stroke="{SOFT}" {DASHED}'),
        text(beside.at(dirty), above - 34, "D", more=f"{CENTRED} {BOLD}"),
        *arrow(beside.at(0), above + 78, beside.at(dirty) - 4, fill=READS_VIEW),
        *arrow(beside.at(dirty) + 4, below - 22, beside.at(6), fill=READS_VIEW),
        text(beside.at(dirty) + 9, above + 24, "compacted", size=12, fill=READS_VIEW, more=BOLD),
        text(beside.at(dirty) + 9, above + 40, "read: the view,", size=12, fill=READS_VIEW, more=BOLD),
        text(beside.at(dirty) + 9, above + 56, "then the log", size=12, fill=READS_VIEW, more=BOLD),
        *arrow(beside.at(0), below + 80, beside.at(6), fill=READS),
        text(beside.at(0), below + 104, "plain read", fill=READS, more=BOLD),
    ]
    return sheet(WIDTH, 372, "A round in place, and a round side by side with what its readers read", parts)


PICTURES: Mapping[str, Callable[[], str]] = {
    "topic.svg": topic,
    "offsets.svg": offsets,
    "winners.svg": winners,
    "tombstone.svg": tombstone,
    "modes.svg": modes,
    "masks.svg": masks,
    "versions.svg": versions,
}
"""By file in docs/images, what draws it."""

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), "utf-8")
