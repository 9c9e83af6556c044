"""Parts of the pictures in docs/images: text, boxes, lines, arrows, records, and the sheet that they are on.

A sheet is white with a frame, so a picture reads the same on a light and on a dark page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from lithify.model.record import Record

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

COLOURS = {
    "ana": ("#dbeafe", "#1d4ed8"),
    "ben": ("#fee2e2", "#b91c1c"),
    "cleo": ("#dcfce7", "#15803d"),
    "dan": ("#fef3c7", "#b45309"),
    "eva": ("#f3e8ff", "#7e22ce"),
}
"""Fill and line of a key's records."""

INK, SOFT, FAINT, LINE = "#1f2937", "#4b5563", "#6b7280", "#cbd5e1"
CENTRED, BOLD, DASHED = 'text-anchor="middle"', 'font-weight="bold"', 'stroke-dasharray="4 3"'
TALL = 54
"""Height of a record."""
HEAD = 7
"""Length of an arrow's head."""


def text(x: float, y: float, words: str, *, size: float = 13, fill: str = INK, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" {more}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {look}/>'


def line(x: float, y: float, to_x: float, to_y: float, look: str = f'stroke="{FAINT}"') -> str:
    return f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" {look}/>'


def arrow(x: float, y: float, to_x: float, *, fill: str = FAINT, both: bool = False) -> Iterator[str]:
    """A horizontal arrow to `to_x`, on the left or on the right; with `both` it has a head at each end."""
    way = 1 if to_x > x else -1
    begin = x + way * HEAD if both else x
    yield line(begin, y, to_x - way * HEAD, y, f'stroke="{fill}" stroke-width="1.5"')
    for tip, back in ((to_x, -way), (x, way))[: 1 + both]:
        yield f'<path d="M{tip:g} {y:g} l{back * HEAD} -4 v8 z" fill="{fill}"/>'


def segment_frame(x: float, y: float, width: float) -> str:
    """The frame of a segment around records that begin at `y`."""
    return box(x, y - 6, width, TALL + 12, f'rx="9" fill="none" stroke="{LINE}" stroke-width="1.5"')


def cell(record: Record, x: float, y: float, width: float, *, loses: bool = False) -> Iterator[str]:
    """A record: its key over its value; fainter if a round removes it."""
    assert record.key is not None
    fill, colour = COLOURS[record.key.decode()]
    value = "∅" if record.value is None else record.value.decode()
    yield f'<g opacity="{0.45 if loses else 1:g}">'
    yield box(x, y, width, TALL, f'rx="6" fill="{fill}" stroke="{colour}"')
    yield text(x + width / 2, y + 23, record.key.decode(), fill=colour, more=f"{CENTRED} {BOLD}")
    yield text(x + width / 2, y + 43, value, more=CENTRED + (' text-decoration="line-through"' if loses else ""))
    yield "</g>"


def gap(x: float, y: float) -> str:
    """An offset without a record, in the middle of `x`."""
    return text(x, y + 32, "·", fill=FAINT, more=CENTRED)


def sheet(width: int, height: int, label: str, parts: Iterable[str]) -> str:
    """A whole picture; `label` says what it shows to who cannot see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif" role="img" '
        f'aria-label="{escape(label)}">'
    )
    frame = box(0.5, 0.5, width - 1, height - 1, f'rx="12" fill="#ffffff" stroke="{LINE}"')
    return "\n".join([head, frame, *parts, "</svg>", ""])
