"""Ranks: the int64 that the key pass stores with each key and compares records by.

A rank sorts like the offset, and its low bits hold what decides whether a winner remains:

    rank = ordinal << 12 | step << 4 | unordered << 3 | past << 2 | expired << 1 | tombstone

The ordinal is the record's number in the scan (see `positions`); the step is the one that covers a clean
tombstone. With a strategy other than `offset` a second column holds the order, which is compared first (C10);
a null order is below every other.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import KEY

RANK = "rank"
ORDER = "order"
RANKED_KEYS = pa.schema([pa.field(KEY, pa.binary()), pa.field(RANK, pa.int64())])
ORDERED_KEYS = RANKED_KEYS.append(pa.field(ORDER, pa.int64()))

TOMBSTONE_BIT = 1
EXPIRED_BIT = 2
"""An expired tombstone (C18)."""
PAST_BIT = 4
"""A value past retention (C24)."""
UNORDERED_BIT = 8
"""A tombstone without an order in its headers (C11)."""
STEP_SHIFT = 4
STEP_MASK = 0xFF
ORDINAL_SHIFT = 12

Flags = npt.NDArray[np.bool_]


class Portion(StrEnum):
    """The portions of a log that a key pass distinguishes."""

    CLEAN = "clean"
    DIRTY = "dirty"
    ABOVE_HORIZON = "above_horizon"
    """At or above the horizon: checked before an expired tombstone is dropped (C20)."""
    CHUNKS = "chunks"
    """Chunks below the horizon, under the keys of their messages: checked before as well (C53)."""


ONLY_ASKED = (Portion.ABOVE_HORIZON, Portion.CHUNKS)
"""Their records only say which tombstones remain: the round removes none of them, and they have no ordinals."""


def has(ranks: Integers, bit: int) -> Flags:
    """For each rank, whether `bit` is set: bool, as long as `ranks`."""
    return np.asarray(ranks & bit == bit, np.bool_)


def tombstones_by_step(ranks: Integers) -> Integers:
    """The number of tombstones among `ranks` by step: int64, of length `STEP_MASK + 1`."""
    steps = (ranks[has(ranks, TOMBSTONE_BIT)] >> STEP_SHIFT) & STEP_MASK
    return np.bincount(steps, minlength=STEP_MASK + 1).astype(np.int64)
