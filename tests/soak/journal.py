"""The journal of a soak: everything that was acknowledged, log by log, and what must be left of it.

    appended      every record with the offset that it got       (C1)
    deleted       up to where `delete-records` has cut           (C26)
    truncated     records that are as if they had never been

What is left at the end is the oracle's word (`rules/compaction/survivors.py`) on the whole journal in one
round, however many rounds there were. Where the contract leaves it open, `Wanted.may` says what may
be there as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lithify.model.record import Record, is_tombstone
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.compaction.survivor_rules import SurvivorRules, order_of
from lithify.rules.compaction.survivors import survivors
from soak.topics import DAY_MS


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader must get, and what else it may get."""

    must: Mapping[int, Record]
    may: Mapping[int, Record] = field(default_factory=dict)
    start: int = 0
    """Nothing below it is there."""

    def findings(self, where: str, found: Sequence[Record]) -> Iterable[str]:
        """In words, how `found` is something else."""
        offsets = [r.offset for r in found]
        if offsets != sorted(set(offsets)):
            yield f"{where}: offsets do not ascend"
        there = {r.offset: r for r in found}
        missing = sorted(set(self.must) - set(there))
        if missing:
            yield f"{where}: {len(missing)} records are missing, the first {self.must[missing[0]]}"
        more = sorted(set(there) - set(self.must) - set(self.may))
        if more:
            yield f"{where}: {len(more)} records should be gone, the first {there[more[0]]}"
        allowed = {**self.may, **self.must}
        other = [o for o in there if o in allowed and there[o] != allowed[o]]
        if other:
            yield f"{where}: {len(other)} records are not as written, the first {there[other[0]]}"
        extra = [there[o].key for o in there if o not in self.must and o in self.may]
        if len(set(extra)) != len(extra) and all(r.value is None or r.value == b"" for r in self.may.values()):
            yield f"{where}: a key has two tombstones"


@dataclass(slots=True)
class LogJournal:
    """One log. Only its feeder writes to it."""

    partition: int
    by_offset: dict[int, Record] = field(default_factory=dict)
    batches: list[tuple[int, int]] = field(default_factory=list)
    """[start, end) of what every append wrote: one segment, where segments count."""
    end: int = 0
    deleted_below: int = 0
    whole_from: int = 0
    """Below it rounds in place have compacted what is a backlog now."""
    truncations: list[int] = field(default_factory=list)

    def append(self, records: Sequence[Record]) -> None:
        """Records with their offsets."""
        self.by_offset.update((at(r), r) for r in records)
        self.batches.append((at(records[0]), at(records[-1]) + 1))
        self.end = at(records[-1]) + 1

    def truncate(self, to: int) -> None:
        self.by_offset = {o: r for o, r in self.by_offset.items() if o < to}
        self.batches = [(start, min(end, to)) for start, end in self.batches if start < to]
        self.end, self.whole_from = to, min(self.whole_from, to)
        self.truncations.append(to)

    def from_on(self, start: int) -> dict[int, Record]:
        return {o: r for o, r in self.by_offset.items() if o >= start}

    def retained_from(self, settings: TopicSettings, now_ms: int) -> int:
        """Where the log starts once all segments at the front have gone that are past age, or deleted (C24, C26)."""
        start, before_ms = self.deleted_below, _old_before_ms(settings, now_ms)
        for first, end in self.batches:
            old = before_ms is not None and all(
                (r.timestamp or 0) < before_ms for o in range(first, end) if (r := self.by_offset.get(o)) is not None
            )
            if not old and end > self.deleted_below:
                break
            start = max(start, end)
        return start

    def compacted(self, settings: TopicSettings, now_ms: int) -> Wanted:
        """What compaction must leave of it, in place or in the view."""
        in_place = not settings.side_by_side
        before_ms = _old_before_ms(settings, now_ms) if in_place else None
        rules = SurvivorRules(
            log_start=self.deleted_below,
            horizon=self.end,
            keep_keyless=settings.null_key == "retain",
            empty_is_tombstone=settings.empty_is_tombstone,
            tombstones_expire_below=self.end if settings.delete_retention_ms < DAY_MS else 0,
            order=settings.order,
            values_expire_before_ms=before_ms,
        )
        every = list(self.from_on(self.deleted_below).values())
        left = {at(r): r for r in survivors(every, rules).records}
        if before_ms is None:
            return Wanted(left, start=self.deleted_below)
        young = {o: r for o, r in left.items() if (r.timestamp or 0) >= before_ms}
        return Wanted(young, _old_tombstones(every, rules, before_ms), self.deleted_below)

    def plain(self, settings: TopicSettings, now_ms: int) -> Wanted:
        """What a reader must get who does not ask for compacted data."""
        if settings.compacts and not settings.side_by_side:
            return self.compacted(settings, now_ms)
        start = self.retained_from(settings, now_ms) if settings.deletes else self.deleted_below
        must = self.from_on(max(start, self.whole_from))
        if start >= self.whole_from:
            return Wanted(must, start=start)
        # In place before: what rounds would leave at the end is surely there, the rest may be.
        left = {o: r for o, r in self.compacted(settings, now_ms).must.items() if o >= start}
        return Wanted({**left, **must}, {o: r for o, r in self.from_on(start).items() if o < self.whole_from}, start)


def at(record: Record) -> int:
    """The offset of a record that has one."""
    assert record.offset is not None
    return record.offset


def _old_before_ms(settings: TopicSettings, now_ms: int) -> int | None:
    return now_ms - settings.retention_ms if settings.deletes and settings.retention_ms != -1 else None


def _old_tombstones(records: Iterable[Record], rules: SurvivorRules, before_ms: int) -> dict[int, Record]:
    """Old tombstones that no young record beats: they go with a whole segment, which is a matter of luck (C24)."""
    if rules.tombstones_expire_below:
        return {}
    ordered = sorted(records, key=lambda r: (order_of(r, rules), at(r)))
    winners = {r.key: r for r in ordered}
    return {
        at(r): r
        for r in ordered
        if r.key is not None
        and (r.timestamp or 0) < before_ms
        and is_tombstone(None if r.value is None else len(r.value), empty_is_tombstone=rules.empty_is_tombstone)
        and (winners[r.key].timestamp or 0) < before_ms
    }


@dataclass(slots=True)
class TopicJournal:
    """One topic as it was made last."""

    settings: TopicSettings
    logs: list[LogJournal]

    @classmethod
    def of(cls, settings: TopicSettings, partitions: int) -> TopicJournal:
        return cls(settings, [LogJournal(p) for p in range(partitions)])

    def placed(self, records: Sequence[Record]) -> dict[int, list[Record]]:
        """By partition, the records with the offsets that they must get."""
        found: dict[int, list[Record]] = {}
        for record in records:
            assert record.partition is not None
            mine = found.setdefault(record.partition, [])
            offset = self.logs[record.partition].end + len(mine) if record.offset is None else record.offset
            mine.append(record._replace(offset=offset))
        return found
