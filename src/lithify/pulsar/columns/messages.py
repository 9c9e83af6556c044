"""The messages of many entries as columns: what ingest and the key pass of a compaction use.

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
from lithify.pulsar.columns.headers import Headers
from lithify.pulsar.format.entry import RawEntry, metadata_of
from lithify.pulsar.format.wire_pb2 import MessageMetadata


@dataclass(frozen=True, slots=True)
class Messages:
    """Columns with a row per message.

    `row` is the number of its entry in `entries` and `headers`. `batch_index` is -1 for a whole entry. Times are
    in ms; an event time of 0 means that there is none. `empty`: the payload is, which deletes the key. `key` is
    binary, null without a key. `stored` is where the messages of batches are in `buffer`, `payload_start` where their
    payload begins there.
    """

    entries: Sequence[RawEntry]
    headers: Headers
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
    def ledger(self) -> Ints:
        return np.array([entry.ledger for entry in self.entries], np.int64)[self.row]

    @property
    def entry(self) -> Ints:
        return np.array([entry.entry for entry in self.entries], np.int64)[self.row]

    @property
    def publish_time(self) -> Ints:
        return self.headers.publish_time[self.row]

    @property
    def batched(self) -> Bools:
        """Whether the entry is a batch, even if the row is all of it."""
        return self.headers.count[self.row] >= 0

    def entry_metadata(self, row: int) -> MessageMetadata:
        """The metadata of the entry of a row, all of it."""
        number = int(self.row[row])
        raw = self.entries[number]
        return metadata_of(raw, self.headers.metadata(raw, number), any_metadata=True)
