"""The oracle: what one round leaves of one log, in plain Python.

Kafka's own way of saying it: sort by key (stable), take the last of each, drop the deletes. It is
slow and holds everything; it decides what is right, and the engine is compared with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from lithify.compaction.rules import Cause, SurvivorRules
from lithify.model.record import Record, is_tombstone


@dataclass(frozen=True, slots=True)
class Survivors:
    """What is left below the horizon, in offset order, and why the others went."""

    records: tuple[Record, ...]
    losers: dict[Cause, int]
    keys: int


def survivors(records: Iterable[Record], rules: SurvivorRules) -> Survivors:
    """What the rules leave of `records`: all records of one log, each with its offset.

    Records at or above the horizon are neither looked at nor returned (C14).
    """
    below = sorted((r for r in records if _offset(r) < rules.horizon), key=_offset)
    winners: dict[bytes, int] = {
        r.key: _offset(r) for r in below if r.key is not None and _offset(r) >= rules.log_start
    }
    kept: list[Record] = []
    losers: Counter[Cause] = Counter()
    for record in below:
        offset = _offset(record)
        size = None if record.value is None else len(record.value)
        cause = rules.verdict(
            offset,
            has_key=record.key is not None,
            wins=record.key is not None and winners.get(record.key) == offset,
            tombstone=is_tombstone(size, empty_is_tombstone=rules.empty_is_tombstone),
        )
        if cause is None:
            kept.append(record)
        else:
            losers[cause] += 1
    return Survivors(tuple(kept), dict(losers), len(winners))


def _offset(record: Record) -> int:
    if record.offset is None:
        raise ValueError(f"a record without an offset is in no log: {record}")
    return record.offset
