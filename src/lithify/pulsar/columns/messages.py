"""The messages of many entries as columns: what ingest and the key pass of a compaction look at.

Every row is a message, or an entry whose messages do not show or do not count one by one (`format/kinds.py`).
Rows are in the order of their ids. What not every user wants (values, properties, chunks) is in `details.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lithify.pulsar.columns.fields import Bools, Buffer, Ints, Spans
from lithify.pulsar.format.entry import Entry, RawEntry


@dataclass(frozen=True, slots=True)
class Messages:
    """Columns with a row per message.

    `row` is the number of its entry in `entries`; `batch_index` is -1 for a whole entry; times are in ms,
    an event time of 0 is none; `empty`: the payload is, which deletes the key; `key` is binary, null for none.
    `stored` is where the messages of batches are in `buffer`, `payload_start` where their payload begins there.
    """

    entries: Sequence[Entry]
    row: Ints
    batch_index: Ints
    key: pa.Array
    event_time: Ints
    empty: Bools
    compacted_out: Bools
    kind: npt.NDArray[np.int8]
    stored: Spans
    payload_start: Ints
    buffer: Buffer

    def __len__(self) -> int:
        return len(self.row)

    @property
    def raw(self) -> list[RawEntry]:
        """The entries, without frames."""
        return [entry.raw for entry in self.entries]

    @property
    def ledger(self) -> Ints:
        return self._of_entries([entry.raw.ledger for entry in self.entries])

    @property
    def entry(self) -> Ints:
        return self._of_entries([entry.raw.entry for entry in self.entries])

    @property
    def publish_time(self) -> Ints:
        return self._of_entries([entry.metadata.publish_time for entry in self.entries])

    @property
    def batched(self) -> Bools:
        """Whether the entry is a batch, also where the row is all of it."""
        return self._of_entries([entry.is_batch for entry in self.entries]).astype(np.bool_)

    def _of_entries(self, values: list[int]) -> Ints:
        return np.array(values, np.int64)[self.row]
