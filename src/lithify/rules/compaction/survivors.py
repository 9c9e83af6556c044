"""The oracle: what one round leaves of one log, in plain Python.

As Kafka specifies it: sort by key (stable), take the last of each, drop the deletes. It is
slow and holds all records in memory; it specifies the result, and tests compare the engine with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lithify.model.record import Record, is_tombstone
from lithify.rules.compaction.survivor_rules import NO_ORDER, Cause, Fate, SurvivorRules, order_of


@dataclass(frozen=True, slots=True)
class Survivors:
    """The records left below the horizon, in offset order, and why the others were dropped.

    `held` are the offsets of expired tombstones that had to remain (C20, C53), `held_by_chunks` of those among them for
    which a chunk below the horizon suffices.
    """

    records: tuple[Record, ...]
    losers: dict[Cause, int]
    keys: int
    held: tuple[int, ...] = ()
    tombstones_unversioned: int = 0
    held_by_chunks: tuple[int, ...] = ()


def survivors(records: Iterable[Record], rules: SurvivorRules) -> Survivors:
    """What the rules leave of `records`: all records of one log, each with its offset.

    Records at or above the horizon are not returned; they only hold back tombstones that beat them (C14, C20).
    """
    ordered = sorted(records, key=_offset)
    below = [r for r in ordered if _offset(r) < rules.horizon]
    above_horizon = [r for r in ordered if _offset(r) >= rules.horizon]
    winners = _winners(below, rules)
    beaten = _lowest_orders(above_horizon, rules)
    whole = _whole_entries(ordered if rules.is_ordered else below, rules)
    if any(entry.chunk is None for entry in whole):
        rules = replace(rules, tombstones_expire_below=0)  # C53
    in_chunks = {_chunk_key(entry) for entry in whole if _offset(entry) < rules.horizon}
    kept: list[Record] = []
    held: list[int] = []
    by_chunks: list[int] = []
    unordered = 0
    losers: Counter[Cause] = Counter()
    for record in below:
        offset, key = _offset(record), record.key
        tombstone = _deletes(record, rules)
        holds = key in in_chunks or (key in beaten and beaten[key] < order_of(record, rules))
        wins = key is not None and winners.get(key) is record
        passed = record.passed_through
        cause = rules.verdict(Fate(offset, record.timestamp or 0, key is not None, wins, tombstone, holds, passed))
        if cause is None:
            kept.append(record)
            if key is not None and tombstone and holds and offset < rules.tombstones_expire_below:
                held.append(offset)
                by_chunks += [offset] if key in in_chunks else []
        else:
            losers[cause] += 1
        if cause is Cause.SUPERSEDED and tombstone and order_of(record, rules) == NO_ORDER:
            unordered += 1  # C11
    return Survivors(tuple(kept), dict(losers), len(winners), tuple(held), unordered, tuple(by_chunks))


def _winners(below: Iterable[Record], rules: SurvivorRules) -> dict[bytes, Record]:
    """By key, the record that wins (C9 to C11); `below` is in offset order."""
    winners: dict[bytes, Record] = {}
    for record in below:
        if record.key is None or _offset(record) < rules.log_start:
            continue
        best = winners.get(record.key)
        if best is None or order_of(record, rules) >= order_of(best, rules):
            winners[record.key] = record
    return winners


def _lowest_orders(above_horizon: Iterable[Record], rules: SurvivorRules) -> dict[bytes | None, int]:
    """By key, the lowest order at or above the horizon; of equal orders the higher offset wins anyway.

    A chunk there is a record of its key (C53).
    """
    lowest: dict[bytes | None, int] = {}
    for record in above_horizon:
        order = order_of(record, rules)
        key = record.key if record.key is not None else _chunk_key(record)
        if key is not None:
            lowest[key] = min(order, lowest.get(key, order))
    return lowest


def _whole_entries(records: Iterable[Record], rules: SurvivorRules) -> list[Record]:
    """The whole entries that remain: they may have values which a consumer would take for the latest (C53)."""
    wholes = [r for r in records if r.passed_through]
    fates = [Fate(_offset(r), r.timestamp or 0, False, False, False, passed_through=True) for r in wholes]
    stays = [fate.offset >= rules.horizon or rules.verdict(fate) is None for fate in fates]
    return [whole for whole, there in zip(wholes, stays, strict=True) if there]


def _chunk_key(record: Record) -> bytes | None:
    """The key whose values a chunk may hide."""
    chunk = record.chunk
    return None if chunk is None else chunk.key


def _deletes(record: Record, rules: SurvivorRules) -> bool:
    size = None if record.value is None else len(record.value)
    return is_tombstone(size, empty_is_tombstone=rules.empty_is_tombstone)


def _offset(record: Record) -> int:
    if record.offset is None:
        raise ValueError(f"a record without an offset is in no log: {record}")
    return record.offset
