"""Segments and masks from the columns of manifests (`columns`): the inverse of `segment_entries` and `mask_entries`.

Those define what the columns mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

from lithify.columnar.segment.column_names import (
    ENTRY_ID,
    ENVELOPE_FIELD_IDS,
    FIELD_IDS,
    KEY,
    LEDGER_ID,
    OFFSET,
    PASSED_THROUGH,
    TIMESTAMP,
    VALUE_SIZE,
)
from lithify.model.message import EnvelopeFacts
from lithify.model.segment import Mask, Segment
from lithify.store.iceberg.manifests.columns import MISSING, Columns
from lithify.store.iceberg.manifests.mask_entries import FILE_PATH, MaskEntry, other_deletes

STATUS, PARTITION = (0,), (1000,)
DELETED = 2
_CONTENT, _PATH, _RECORDS, _SIZE = (134,), (100,), (103,), (104,)
_SIZES, _NULLS, _NANS, _LOWER, _UPPER = 108, 110, 137, 125, 128
_OFFSET, _TIMESTAMP, _KEY, _VALUE_SIZE = (FIELD_IDS[name] for name in (OFFSET, TIMESTAMP, KEY, VALUE_SIZE))
_LEDGER, _ENTRY, _PASSED = (ENVELOPE_FIELD_IDS[name] for name in (LEDGER_ID, ENTRY_ID, PASSED_THROUGH))
_POSITION_DELETES = 1
_INT_BYTES, _LONG_BYTES = 4, 8

_OF_ALL = (STATUS, PARTITION, _CONTENT, _PATH, _RECORDS, _SIZE)
OF_SEGMENTS = frozenset(
    {
        *(*_OF_ALL, (_SIZES, _KEY), (_NANS, _KEY), (_LOWER, _VALUE_SIZE), (_LOWER, _PASSED)),
        *((_NULLS, column) for column in (_KEY, _VALUE_SIZE, _PASSED)),
        *((bounds, column) for bounds in (_LOWER, _UPPER) for column in (_OFFSET, _TIMESTAMP, _KEY, _LEDGER, _ENTRY)),
    }
)
OF_MASKS = frozenset({*_OF_ALL, (_LOWER, FILE_PATH), (_UPPER, FILE_PATH)})


def segments_in(columns: Columns) -> Iterator[Segment]:
    """The segment of each entry. Raises any exception for entries of other files."""
    smallest = columns.bound((_LOWER, _VALUE_SIZE), _INT_BYTES).tolist()
    return map(
        Segment,
        columns.texts(_PATH),
        columns.there(PARTITION).tolist(),
        columns.bound_there((_LOWER, _OFFSET), _LONG_BYTES).tolist(),
        (columns.bound_there((_UPPER, _OFFSET), _LONG_BYTES) + 1).tolist(),
        columns.there(_RECORDS).tolist(),
        columns.there(_SIZE).tolist(),
        columns.there((_SIZES, _KEY)).tolist(),
        columns.bound_there((_LOWER, _TIMESTAMP), _LONG_BYTES).tolist(),
        columns.bound_there((_UPPER, _TIMESTAMP), _LONG_BYTES).tolist(),
        columns.there((_NULLS, _KEY)).tolist(),
        columns.there((_NULLS, _VALUE_SIZE)).tolist(),
        [None if size == MISSING else size for size in smallest],
        columns.bytes_of((_LOWER, _KEY)),
        columns.bytes_of((_UPPER, _KEY)),
        _envelopes(columns),
        [bound == b"\x00" for bound in columns.bytes_of((_LOWER, _PASSED))],
        (columns.number((_NANS, _KEY)) != MISSING).tolist(),
    )


def _envelopes(columns: Columns) -> Iterable[EnvelopeFacts | None]:
    if (_LOWER, _LEDGER) not in columns.spans:
        return repeat(None)
    ids = [(bounds, column) for column in (_LEDGER, _ENTRY) for bounds in (_LOWER, _UPPER)]
    passed_through = columns.there(_RECORDS) - columns.number((_NULLS, _PASSED))
    facts = zip(*(columns.bound(name, _LONG_BYTES).tolist() for name in ids), passed_through.tolist(), strict=True)
    return [None if ledger == MISSING else EnvelopeFacts(ledger, *others) for ledger, *others in facts]


def masks_in(columns: Columns) -> Iterator[MaskEntry]:
    """The mask of each entry. Raises `DamagedError` for another program's file of deleted rows."""
    paths = columns.texts(_PATH)
    contents, sizes, dead = (columns.there(name).tolist() for name in (_CONTENT, _SIZE, _RECORDS))
    segments = zip(columns.bytes_of((_LOWER, FILE_PATH)), columns.bytes_of((_UPPER, FILE_PATH)), strict=True)
    for path, content, size, rows, (low, high) in zip(paths, contents, sizes, dead, segments, strict=True):
        if content != _POSITION_DELETES or low is None or low != high:
            raise other_deletes(path)
        yield MaskEntry(low.decode(), Mask(path, size, rows))
