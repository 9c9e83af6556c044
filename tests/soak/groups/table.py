"""What a consumer group makes of a topic: a table with the last record of every key, deletes too.

    returned by a reader    pending, with the member that has read it
    committed               in the table

A member that is closed without a commit, or fails, leaves the table as it was: so the table is that of the
group's positions, and the next member reads on from these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lithify.model.record import Record, is_tombstone
from lithify.model.settings.topic_settings import TopicSettings
from soak.journal import LogJournal, TopicJournal, at


@dataclass(slots=True)
class GroupTable:
    """By partition and key, the last record that was committed."""

    latest: dict[tuple[int, bytes], Record] = field(default_factory=dict)

    def add(self, records: Iterable[Record]) -> None:
        """Records of members that have committed, in the order of each log."""
        for record in records:
            assert record.partition is not None
            if record.key is not None:
                self.latest[record.partition, record.key] = record

    def findings(self, where: str, journal: TopicJournal) -> Iterator[str]:
        """In words, how the live keys of it are others than the oracle's."""
        for log in journal.logs:
            wanted = _live(log.compacted(journal.settings, 0).must.values(), journal.settings)
            mine = [r for (partition, _), r in self.latest.items() if partition == log.partition]
            # What `delete-records` has cut away is no delete: readers are not told of it.
            found = _live((r for r in mine if at(r) >= log.deleted_below), journal.settings)
            undead = [r for key, r in found.items() if key not in wanted]
            if undead:
                yield f"{where}[{log.partition}]: {len(undead)} deleted keys are in the table, such as {undead[0]}"
            missing = [r for key, r in wanted.items() if key not in found]
            if missing:
                yield f"{where}[{log.partition}]: {len(missing)} keys are not in the table, such as {missing[0]}"
            other = [found[key] for key, r in wanted.items() if key in found and found[key] != r]
            if other:
                yield f"{where}[{log.partition}]: {len(other)} keys have other records, such as {other[0]}"


def _live(records: Iterable[Record], settings: TopicSettings) -> dict[bytes, Record]:
    empty = settings.empty_is_tombstone
    return {
        r.key: r
        for r in records
        if r.key is not None and not is_tombstone(None if r.value is None else len(r.value), empty_is_tombstone=empty)
    }


@dataclass(frozen=True, slots=True)
class Deletes:
    """The deletes of one log that a reader must get who continues below `end` (C5, C49): those that win their keys."""

    journal: LogJournal
    end: int
    truncations: int
    latest: dict[bytes, int]

    @classmethod
    def of(cls, journal: LogJournal) -> Deletes:
        """As of now, of what was acknowledged."""
        latest: dict[bytes, Record] = {r.key: r for r in dict(journal.by_offset).values() if r.key is not None}
        deletes = {key: at(r) for key, r in latest.items() if r.value is None}
        return cls(journal, journal.end, len(journal.truncations), deletes)

    def missed(self, start: int, position: int, got: Iterable[Record]) -> dict[bytes, int]:
        """Those that a reader has not got that read from `start` up to `position` later on, and had no error."""
        if position < self.end or len(self.journal.truncations) != self.truncations:
            return {}
        if start == 0:
            return {}  # it had read nothing of the log yet, so there is no value that it would keep (C49)
        seen = {r.key: at(r) for r in got if r.key is not None}
        start = max(start, self.journal.deleted_below)
        return {key: o for key, o in self.latest.items() if start <= o and seen.get(key, -1) < o}
