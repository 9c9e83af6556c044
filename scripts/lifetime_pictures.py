"""How long records, masked records and files stay: three of the pictures that `concept_pictures` writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drawing import BOLD, CENTRED, DASHED, FAINT, LINE, SOFT, arrow, box, line, sheet, text
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.compaction.decisions import CountedSegment, MaskLimits

WIDTH = 760
READ, PASSED, KEPT, UNNAMED = "#bbf7d0", "#fde68a", "#dbeafe", "#ffffff"
"""Colours of what readers get, what only readers of old offsets get, what only an earlier version has, and the rest."""


def look(fill: str) -> str:
    """Of a bar: files that nothing names have a dashed line."""
    return f'rx="5" fill="{fill}" stroke="{FAINT}" {DASHED if fill == UNNAMED else ""}'


@dataclass(frozen=True, slots=True)
class Span:
    """A bar from one x to another, with words on it."""

    x: float
    to_x: float
    fill: str
    words: Sequence[str]

    def drawn(self, y: float, height: float) -> Iterator[str]:
        yield box(self.x + 1, y, self.to_x - self.x - 2, height, look(self.fill))
        middle, below = (self.x + self.to_x) / 2, y + height / 2 + 5 - 8 * (len(self.words) - 1)
        for number, words in enumerate(self.words):
            yield text(middle, below + 16 * number, words, size=12.5, more=CENTRED)


def tombstone() -> str:
    """A value and the tombstone that deletes it, until no file has a byte of either."""
    events = {
        200: ("tombstone", "appended"),
        284: ("round", "covers it"),
        424: ("version", "expires, sweep"),
        556: ("next round", "removes it"),
        696: ("version", "expires, sweep"),
    }
    put, covered, erased, dropped, gone = events
    value = (
        Span(110, put, READ, ("the latest",)),
        Span(put, covered, PASSED, ("superseded",)),
        Span(covered, erased, KEPT, ("only in a", "retained version")),
    )
    delete = (
        Span(put, dropped, READ, ("readable: every reader gets the delete",)),
        Span(dropped, gone, KEPT, ("only in a", "retained version")),
    )
    parts = [text(24, 107, "old value", size=14, more=BOLD), text(24, 171, "tombstone", size=14, more=BOLD)]
    for x, names in events.items():
        parts += [text(x, 32 + 16 * number, words, size=12.5, more=CENTRED) for number, words in enumerate(names)]
        low = {put: 188, covered: 256, dropped: 256}.get(x, 230)
        parts.append(line(x, 56, x, low, f'stroke="{LINE}" stroke-width="1.5"'))
    for y, spans in ((80, value), (144, delete)):
        for span in spans:
            parts += span.drawn(y, 44)
    parts += [
        text(erased + 8, 107, "no byte in any file", fill=SOFT),
        *duration(covered, erased, 220, "versions.retention.ms"),
        *duration(covered, dropped, 248, "delete.retention.ms"),
        *duration(dropped, gone, 220, "versions.retention.ms"),
    ]
    notes = (
        "Not to scale. Both settings are a day by default, so the middle two events are close.",
        "Without masks: the bytes of a masked value remain until a later round rewrites its segment.",
    )
    parts += [text(24, 290 + 18 * number, words, fill=SOFT) for number, words in enumerate(notes)]
    return sheet(
        WIDTH, 326, "The life of a tombstone and of the value that it deletes, until the bytes are erased", parts
    )


def duration(x: float, to_x: float, y: float, words: str) -> Iterator[str]:
    """An arrow between two events with a name on it."""
    yield from arrow(x + 2, y, to_x - 2, both=True)
    yield text((x + to_x) / 2, y - 6, words, size=12, fill=SOFT, more=CENTRED)


SQUARE = 24
RECORDS = 8
DEAD = frozenset({2, 5})
MORE_DEAD = DEAD | {6}


def masks() -> str:
    """A segment, its mask after a round that finds few dead records, and the file that replaces both later."""
    titles = ("A segment", "Few records are dead", "More are dead")
    first, second, third = 28, 272, 516
    parts = [text(x, 34, title, size=16, more=BOLD) for x, title in zip((first, second, third), titles, strict=True)]
    parts += [text(first, 56, "8 records", fill=SOFT)]
    parts += [text(second, 56, f"2 of 8: a round {fate(DEAD)}", fill=SOFT)]
    parts += [text(third, 56, f"3 of 8: a round {fate(MORE_DEAD)}", fill=SOFT)]
    parts += a_file(first, 74, "a.parquet", range(RECORDS))
    parts += a_file(second, 74, "a.parquet, the same file", range(RECORDS), DEAD)
    parts += note(second, 148, "a.deletes.parquet: 2, 5", "")
    parts += a_file(third, 74, "b.parquet", [n for n in range(RECORDS) if n not in MORE_DEAD])
    parts += note(third, 148, "a.parquet and its mask", DASHED)
    captions = (
        (first, "Positions in the file,", "from 0"),
        (second, "Readers skip 2 and 5.", "Their bytes are still in the file."),
        (third, "Readers of the newest version", "need b alone; a sweep deletes a."),
    )
    for x, *lines in captions:
        parts += [text(x, 208 + 18 * number, words, fill=SOFT) for number, words in enumerate(lines)]
    return sheet(WIDTH, 244, "A segment, the same segment with a mask, and the segment that replaces it", parts)


def fate(dead: frozenset[int]) -> str:
    """What a round does to the segment with so many dead records, by the default settings."""
    size = TopicSettings().segment_bytes
    segment = Segment("a", 0, 0, RECORDS, RECORDS, size, size, 0, 0, 0, 0, 4, b"a", b"z")
    limits = MaskLimits.of(TopicSettings(), 0)
    return "writes a mask" if limits.allow(CountedSegment(segment, RECORDS - len(dead))) else "rewrites it"


def a_file(
    x: float, y: float, name: str, positions: Sequence[int], dead: frozenset[int] = frozenset()
) -> Iterator[str]:
    """A file with the records at these positions of the first one."""
    yield box(x - 4, y, 8 * 27 + 5, 58, f'rx="9" fill="none" stroke="{LINE}" stroke-width="1.5"')
    yield text(x + 4, y + 18, name, size=12, fill=SOFT)
    for place, position in enumerate(positions):
        faint = position in dead
        left = x + 1 + 27 * place
        yield f'<g opacity="{0.4 if faint else 1:g}">'
        yield box(left, y + 26, SQUARE, SQUARE, 'rx="4" fill="#dbeafe" stroke="#1d4ed8"')
        yield text(left + SQUARE / 2, y + 43, str(position), more=CENTRED)
        yield "</g>"
        if faint:
            yield line(left + 3, y + 47, left + 21, y + 29, 'stroke="#b91c1c" stroke-width="1.5"')


def note(x: float, y: float, words: str, dashes: str) -> Iterator[str]:
    """A small file under another one."""
    yield box(x - 4, y, 8 * 27 + 5, 30, f'rx="7" fill="none" stroke="{FAINT}" {dashes}')
    yield text(x + 4, y + 20, words, size=12.5)


COMMITS = (
    (180, "11", "append"),
    (248, "12", "append"),
    (316, "13", "round"),
    (384, "14", "append"),
    (452, "15", "expire"),
    (586, "", "sweep"),
)
"""Left edge of a column, the version that a commit makes, and what the commit is."""


def versions() -> str:
    """Which version names which file, and when a file is deleted."""
    x = [left for left, _, _ in COMMITS]
    rows = (
        ("a.parquet", (Span(x[0], x[2], READ, ()), Span(x[2], x[4], KEPT, ()), Span(x[4], x[5], UNNAMED, ()))),
        ("b.parquet", (Span(x[1], 736, READ, ()),)),
        ("a2.parquet, from a", (Span(x[2], 736, READ, ()),)),
        ("c.parquet", (Span(x[3], 736, READ, ()),)),
    )
    parts = [text(24, 34, "version", size=14, more=BOLD), text(24, 54, "= Iceberg snapshot", size=12.5, fill=SOFT)]
    edges = (*x[1:], 736)
    for (left, version, verb), right in zip(COMMITS, edges, strict=True):
        middle = (left + right) / 2
        parts += [text(middle, 34, version, size=15, more=f"{CENTRED} {BOLD}"), text(middle, 54, verb, more=CENTRED)]
        parts.append(line(left, 22, left, 236, f'stroke="{LINE}"'))
    for number, (name, spans) in enumerate(rows):
        y = 70 + 32 * number
        parts.append(text(24, y + 17, name))
        for span in spans:
            parts += span.drawn(y, 24)
    parts += [
        text((x[2] + x[4]) / 2, 87, "by version 12 alone", size=12.5, more=CENTRED),
        text((x[4] + x[5]) / 2, 87, "by none", size=12.5, more=CENTRED),
        text(x[5] + 10, 87, "deleted", size=12.5, fill=SOFT),
        text(24, 221, "retained version 12", more=BOLD),
        *Span(x[2], x[4], KEPT, ("tag lithify-12",)).drawn(204, 24),
        text(24, 262, "in Iceberg's words", fill=SOFT),
        text(x[0] + 4, 262, "each commit adds a snapshot to main", size=12.5, fill=SOFT),
        text((x[4] + x[5]) / 2, 262, "expire_snapshots", size=12.5, fill=SOFT, more=CENTRED),
        text((x[5] + 736) / 2, 262, "remove_orphan_files", size=12.5, fill=SOFT, more=CENTRED),
        *legend(24, 286),
    ]
    return sheet(WIDTH, 316, "Versions of a topic, the files that they name, and the sweep that deletes one", parts)


def legend(x: float, y: float) -> Iterator[str]:
    """What the colours of the bars say."""
    for fill, words in ((READ, "named by the newest version"), (KEPT, "by a retained version"), (UNNAMED, "by none")):
        yield box(x, y - 2, 22, 14, look(fill))
        yield text(x + 30, y + 10, words, size=12.5, fill=SOFT)
        x += 60 + 7 * len(words)
