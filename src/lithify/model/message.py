"""Ids and positions of messages in a Pulsar topic, as Pulsar orders and writes them.

    ledger 5:  entry 0 [ 0 1 2 ]   entry 1 [ . ]      batch index 0, 1, 2, and -1 for an entry without a batch
    ledger 9:  entry 0 [ . ]

Ids of one partition ascend by ledger, entry and batch index. An id never belongs to another message.
"""

from __future__ import annotations

from typing import Final, NamedTuple

NO_BATCH: Final = -1
"""The batch index of a message that is an entry of its own."""


class MessageId(NamedTuple):
    """The id of a message, or with batch index -1 of a whole entry."""

    ledger: int
    entry: int
    batch_index: int = NO_BATCH

    def __str__(self) -> str:
        whole = f"{self.ledger}:{self.entry}"
        return whole if self.batch_index == NO_BATCH else f"{whole}:{self.batch_index}"
