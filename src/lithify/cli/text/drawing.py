"""Draws a log as columns of text: offsets, keys, values, and the starts of segments.

offset │ 0     1     2     │ 3     4
key    │ ana   ben   cleo  │ ana   ben
value  │ Lima  Oslo  Rome  │ Bonn  ∅
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lithify.cli.terminal.output import faint
from lithify.model.record import Record

TOMBSTONE = "∅"
GONE = "·"


def draw_log(records: Sequence[Record], left: Collection[int], segment_starts: Collection[int]) -> list[str]:
    """Lines that draw a log as it was, with those of its offsets that are not `left` as gaps.

    `records` include removed ones, so that a log has the same columns before and after a round.
    """
    rows = [faint("offset "), faint("key    "), faint("value  ")]
    for record in records:
        assert record.offset is not None  # every stored record has one
        value = TOMBSTONE if record.value is None else record.value.decode()
        cells = (str(record.offset), (record.key or b"").decode(), value)
        cell_width = max(map(len, cells)) + 2
        if record.offset not in left:
            cells = (GONE, GONE, GONE)
        edge = faint("│ ") if record.offset in segment_starts else "  "
        rows = [f"{row}{edge}{cell.ljust(cell_width - 2)} " for row, cell in zip(rows, cells, strict=True)]
    return [row.rstrip() for row in rows]
