"""Ranks of messages in the key pass: as in `columnar.keypass.ranks`, with ordinals by range of entries.

    ordinal = number of the range << 32 | number of the message in the range

The number of messages of a range is not known before it is read, so every range has room for 2^32 of them.
"""

from __future__ import annotations

import numpy as np

from lithify.columnar.keypass.ranks import EXPIRED_BIT, ORDINAL_SHIFT, STEP_SHIFT, TOMBSTONE_BIT
from lithify.columnar.segment.dead_records import Integers

RANGE_SHIFT = 32
MOST_RANGES = 1 << (63 - RANGE_SHIFT - ORDINAL_SHIFT)

EMPTY_BIT = TOMBSTONE_BIT
"""The payload is empty: it deletes its key."""
DROPPED_BIT = EXPIRED_BIT
"""An empty payload that is removed even if it wins its key: no sealed batch before it hides keys that it may delete."""
BATCHED_BIT = 1 << STEP_SHIFT
"""The message is in a batch, which matters in event-time order."""


def range_starts(ranges: int) -> Integers:
    """The ordinal of the first message of each range, then the end: int64."""
    return np.arange(ranges + 1, dtype=np.int64) << RANGE_SHIFT
