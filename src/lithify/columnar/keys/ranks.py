"""Ranks: what the key pass compares records by, and what travels with each key.

A rank is one number that sorts like the offset and carries what decides about a winner:

    rank = ordinal << 12 | step << 4 | unordered << 3 | past << 2 | expired << 1 | tombstone

The ordinal numbers the records of a scan through (see `positions`); the step is the one that covers a
clean tombstone. With a strategy other than `offset` an order goes with it and decides first (C10);
a null order is none, and below every other.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lithify.columnar.segment.positions import Integers
from lithify.columnar.segment.schema import KEY

RANK = "rank"
ORDER = "order"
RANKED_KEYS = pa.schema([pa.field(KEY, pa.binary()), pa.field(RANK, pa.int64())])
ORDERED_KEYS = RANKED_KEYS.append(pa.field(ORDER, pa.int64()))

TOMBSTONE_BIT = 1
EXPIRED_BIT = 2
"""A tombstone past its time (C18)."""
PAST_BIT = 4
"""A value past retention (C24)."""
UNORDERED_BIT = 8
"""A tombstone without an order in its headers (C11)."""
STEP_SHIFT = 4
STEP_MASK = 0xFF
ORDINAL_SHIFT = 12

Flags = npt.NDArray[np.bool_]


class Portion(StrEnum):
    """The portions of a log that a key pass tells apart."""

    CLEAN = "clean"
    DIRTY = "dirty"
    WAITING = "waiting"
    """At or above the horizon: asked before an expired tombstone goes (C20)."""


def has(ranks: Integers, bit: int) -> Flags:
    """Which of the ranks have this bit."""
    return np.asarray(ranks & bit == bit, np.bool_)


def tombstones_by_step(ranks: Integers) -> Integers:
    """Of records with these ranks: how many are tombstones, by the step that covers them."""
    steps = (ranks[has(ranks, TOMBSTONE_BIT)] >> STEP_SHIFT) & STEP_MASK
    return np.bincount(steps, minlength=STEP_MASK + 1).astype(np.int64)
