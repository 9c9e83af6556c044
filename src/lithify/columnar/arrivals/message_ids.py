"""Checks that the message ids of appended records ascend in each partition (C52), as whole columns.

rows of a batch, by partition    5:0   5:1:0   5:1:1   5:3        each id is compared with the one before,
                                                                  the first one with that of an earlier piece
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lithify.columnar.segment.schema import BATCH_INDEX, ENTRY_ID, LEDGER_ID, PASSED_THROUGH
from lithify.model.message import NO_BATCH, MessageId

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_NONE = np.iinfo(np.int64).min
_BEFORE_ALL = MessageId(_NONE, _NONE, _NONE)


class AscendingIds:
    """The state of one batch across its pieces: the last id of each partition."""

    def __init__(self) -> None:
        self._last: dict[int, MessageId] = {}
        self._before: list[Ints] = []

    def refused(self, given: pa.RecordBatch, places: npt.NDArray[np.int32], order: Ints, starts: list[int]) -> Flags:
        """For each record whether it has no valid id, or one that does not ascend: bool.

        `order` sorts the rows by partition; `starts` are the positions in it where a partition begins.
        """
        columns = [given.column(name) for name in (LEDGER_ID, ENTRY_ID, BATCH_INDEX)]
        missing = np.zeros(given.num_rows, np.bool_)
        for column in columns:
            missing |= column.is_null().to_numpy(zero_copy_only=False)
        ids = [column.fill_null(_UNSET).to_numpy().astype(np.int64) for column in columns]
        self._before = [np.full(given.num_rows, _NONE, np.int64) for _ in ids]
        for part, before in zip(ids, self._before, strict=True):
            before[order[1:]] = part[order[:-1]]
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            partition = int(places[order[start]])
            for before, value in zip(self._before, self._last.get(partition, _BEFORE_ALL), strict=True):
                before[order[start]] = value
            self._last[partition] = MessageId(*(int(part[order[end - 1]]) for part in ids))
        (ledger, entry, index), (ledger_0, entry_0, index_0) = ids, self._before
        ascends = (ledger > ledger_0) | (
            (ledger == ledger_0) & ((entry > entry_0) | ((entry == entry_0) & (index > index_0)))
        )
        valid = (ledger >= 0) & (entry >= 0) & (index >= NO_BATCH)
        return np.asarray(missing | ~ascends | ~valid, np.bool_)

    def before(self, row: int) -> MessageId | None:
        """The id before the one of a row of the last piece, in its partition."""
        message_id = MessageId(*(int(part[row]) for part in self._before))
        return None if message_id == _BEFORE_ALL else message_id


_UNSET = -2
"""No valid part of an id."""


def reached(table: pa.Table, sought: MessageId) -> Flags:
    """For each record of a segment `Envelope.reaches`: bool."""
    ledger, entry, index = (table.column(name).to_numpy() for name in (LEDGER_ID, ENTRY_ID, BATCH_INDEX))
    whole = table.column(PASSED_THROUGH).fill_null(False).to_numpy() | (index == NO_BATCH)
    in_entry = (entry > sought.entry) | ((entry == sought.entry) & (whole | (index >= sought.batch_index)))
    return np.asarray((ledger > sought.ledger) | ((ledger == sought.ledger) & in_entry), np.bool_)


def ids_of(table: pa.Table, first_row: int = 0, last_row: int = -1) -> tuple[MessageId, MessageId] | None:
    """The ids of the records in two rows of a table, its first and last ones; None if records have no ids."""
    if LEDGER_ID not in table.column_names:
        return None
    first, last = (
        MessageId(*(table.column(name)[row].as_py() for name in (LEDGER_ID, ENTRY_ID, BATCH_INDEX)))
        for row in (first_row, last_row)
    )
    return first, last
