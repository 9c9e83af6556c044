"""Tables of docs/understand/scale.md that are not measured: the rules say them, for 1 GiB of task memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from figure_tables import table
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.keypass.key_comparison import FULL_AGAIN
from lithify.columnar.keypass.parted_rows import PartedRows
from lithify.rules.compaction.key_pass_shape import (
    BYTES_PER_KEY,
    LEAST_RECORDS,
    LONG_KEY_BYTES,
    UNPACKED,
    KeyLoad,
    KeyPassShape,
    balanced_shapes,
    winners_memory,
)

TASK_MEMORY_BYTES = 2**30
KEYS = {"16 bytes": 16, "36 bytes (UUID as text)": 36, "100 bytes": 100}
STORED_KEY_BYTES, SENT_KEY_BYTES = 5, 8
"""What a key of 16 digits takes in a segment and in the shuffle."""
SLOTS = (2, 4, 16, 200)
MILLIONS = (20, 100, 1_000, 10_000)
SAMPLE = 1_000


def keys_of_a_range() -> str:
    """How many keys one range holds, by their size and by what decides."""
    rows = [
        [name, *(f"{_most_keys(size, ordered=ordered) / 1e6:.1f} M" for ordered in (False, True))]
        for name, size in KEYS.items()
    ]
    return table(["keys of", "by offset", "by timestamp or header"], rows)


def ranges_by_slots() -> str:
    """How a round divides one dirty log, and what it reads, by records and slots."""
    rows = [[f"{millions:,} M", *_cells(millions)] for millions in MILLIONS]
    return table(["records", *(f"{slots} slots" for slots in SLOTS)], rows)


def _most_keys(key_bytes: int, *, ordered: bool) -> float:
    keys = pa.array([bytes(key_bytes)] * SAMPLE, pa.binary(key_bytes))
    orders = pa.array([0] * SAMPLE, pa.int64()) if ordered else None
    held = PartedRows(2**62, lambda rows: rows)
    held.add(Rows(keys, np.zeros(SAMPLE, np.uint32), np.zeros(SAMPLE, np.int64), orders))
    return winners_memory(TASK_MEMORY_BYTES) * FULL_AGAIN * SAMPLE / held.needed_bytes


def _cells(millions: int) -> list[str]:
    told = [_told(millions * LEAST_RECORDS, _shape(millions * LEAST_RECORDS, slots)) for slots in SLOTS]
    return [
        f"{ranges} ranges, {'the same' if number and read == told[number - 1][1] else read}"
        for number, (ranges, read) in enumerate(told)
    ]


def _shape(records: int, slots: int) -> KeyPassShape:
    needed, most = BYTES_PER_KEY + STORED_KEY_BYTES, LONG_KEY_BYTES + STORED_KEY_BYTES * UNPACKED
    load = KeyLoad(records, records, records * needed, records // LEAST_RECORDS, records * most, alone=True)
    (shape,) = balanced_shapes([load], TASK_MEMORY_BYTES, slots)
    return shape


def _told(records: int, shape: KeyPassShape) -> tuple[int, str]:
    read = f"{shape.reads * records * STORED_KEY_BYTES / 1e9:g} GB read"
    return shape.ranges, read + (f", {records * SENT_KEY_BYTES / 1e9:g} GB shuffled" if shape.shuffled else "")
