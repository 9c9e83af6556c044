"""Consumer groups that read rarely: members come and go, with and without a commit, and fold what they get (C58).

    member 1    join  read  commit ······ read  commit  leave
    member 2                      join ·· read  leave               its records are read again
    table       ═══════════════════════════════════════════════►    the oracle's live keys in the end

Nothing is told to them but by the reader: where it continues without an error, no delete may be missing (C49).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from lithify.api.groups import Membership
from lithify.coordination.groups.group_reader import GroupReader
from lithify.errors import CoordinationError, LithifyError, LogTruncatedError, UnknownGroupError
from lithify.model.record import Record
from soak.feeder import FedTopic
from soak.groups.reasons import Interruption
from soak.groups.table import Deletes, GroupTable
from soak.journal import TopicJournal
from soak.topics import GROUP

LEASE_MS = 10_000
CATCHES_UP_S = 120.0


@dataclass(slots=True)
class GroupCounts:
    """What the members of all groups did."""

    reads: int = 0
    records: int = 0
    commits: int = 0
    not_committed: int = 0
    """Members that left without a commit of what they had read."""
    shared: int = 0
    """Second members."""
    resets: Counter[str] = field(default_factory=Counter)
    interruptions: list[Interruption] = field(default_factory=list)


@dataclass(slots=True)
class _Member:
    reader: GroupReader
    pending: list[Record] = field(default_factory=list)


@dataclass(slots=True)
class SlowGroup:
    """The group of one topic. One thread uses it, another one than that which feeds the topic."""

    fed: FedTopic
    luck: Random
    counts: GroupCounts
    compacted: bool
    longest_pause_s: float = 1.0
    """Between two reads; the shortest is a tenth of it."""
    table: GroupTable = field(default_factory=GroupTable)
    findings: list[str] = field(default_factory=list)
    next_s: float = 0.0
    _members: list[_Member] = field(default_factory=list)
    _committed: dict[int, int] = field(default_factory=dict)
    _resets_for: str | None = None
    """Why the next member begins at the start, and with an empty table."""
    _was_reset: bool = False
    _is_at_end: bool = False

    def turn(self) -> None:
        """Reads once, and mostly commits."""
        self._guarded(self._read_and_leave)
        self.next_s = time.monotonic() + self.luck.uniform(0.1, 1.0) * self.longest_pause_s

    def finish(self) -> None:
        """Reads to the end and commits there."""
        until_s, self._is_at_end = time.monotonic() + CATCHES_UP_S, False
        self._leave_all()
        while not self._is_at_end and time.monotonic() < until_s:
            self._guarded(self._read_on)
            time.sleep(0.2)
        if not self._is_at_end:
            self.findings.append(f"{self.fed.name}: its group does not get to the end")
        self._leave_all()

    def check(self) -> list[str]:
        """How its table is another one than the oracle's."""
        return [*self.findings, *self.table.findings(f"{self.fed.name} group", self.fed.journal)]

    def _read_and_leave(self) -> None:
        if not self._members or (len(self._members) == 1 and self.luck.random() < 0.2):
            self.counts.shared += len(self._members)
            self._join()
        for member in list(self._members):
            self._read(member)
            chance = self.luck.random()
            if chance < 0.15:
                continue  # commits another time
            if chance < 0.3:
                self.counts.not_committed += bool(member.pending)
                self._leave(member)
                continue
            self._commit(member)
            if chance > 0.6:
                self._leave(member)

    def _read_on(self) -> None:
        """As the only member."""
        if not self._members:
            self._join()
        (member,) = self._members
        journal = self.fed.journal
        self._read(member)
        self._commit(member)
        positions = member.reader.positions()
        self._is_at_end = all(positions.get(log.partition, -1) >= log.end for log in journal.logs)

    def _join(self) -> None:
        if self._resets_for is not None:
            self._reset()
        membership = Membership(GROUP, LEASE_MS)
        # From the start of a trimmed backlog alone nobody gets all live keys.
        compacted = self.compacted or GROUP in self.fed.journal.settings.trimming_groups
        self._members.append(_Member(self.fed.topic.reader(group=membership, compacted=compacted, follow=True)))

    def _reset(self) -> None:
        with suppress(UnknownGroupError):  # nobody has committed anything yet
            self.fed.lake.group(GROUP).reset(self.fed.name, "earliest", lease_ms=LEASE_MS)
        self.counts.resets[str(self._resets_for)] += 1
        self.table, self._committed, self._was_reset, self._resets_for = GroupTable(), {}, True, None

    def _read(self, member: _Member) -> None:
        journal = self.fed.journal
        deletes = {log.partition: Deletes.of(log) for log in list(journal.logs)}
        before = self._committed | member.reader.positions()
        got = [record for batch in member.reader.poll() for record in batch.records()]
        self._check_deletes(journal, deletes, before, member, got)
        member.pending += got
        self.counts.reads += 1
        self.counts.records += len(got)

    def _check_deletes(
        self,
        journal: TopicJournal,
        deletes: Mapping[int, Deletes],
        before: Mapping[int, int],
        member: _Member,
        got: Sequence[Record],
    ) -> None:
        if self.fed.journal is not journal:  # recreated meanwhile
            return
        for partition, position in member.reader.positions().items():
            start = before.get(partition)
            if start is None or partition not in deletes:
                continue
            mine = [record for record in got if record.partition == partition]
            missed = deletes[partition].missed(start, position, mine)
            if missed:
                key, offset = next(iter(missed.items()))
                self.findings.append(
                    f"{self.fed.name}[{partition}]: its group read on from {start} to {position} without an error, and "
                    f"has missed {len(missed)} deletes, such as that of {key!r} at {offset}"
                )

    def _commit(self, member: _Member) -> None:
        """Whatever fails here leaves open which positions were stored: the table begins anew then."""
        self._resets_for = "commit failed"
        member.reader.commit()
        self._resets_for = None
        self.counts.commits += 1
        self.table.add(member.pending)
        self._committed |= member.reader.positions()
        member.pending, self._was_reset = [], False

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except LithifyError as error:
            self._interrupted(error)

    def _interrupted(self, error: LithifyError) -> None:
        now_ms = time.time_ns() // 10**6
        found = Interruption(self.fed.name, now_ms, error, self.fed.journal, self._was_reset)
        self.counts.interruptions.append(found)
        if isinstance(error, LogTruncatedError):
            self._resets_for = found.kind
        self._leave_all()

    def _leave_all(self) -> None:
        for member in list(self._members):
            self._leave(member)

    def _leave(self, member: _Member) -> None:
        self._members.remove(member)
        with suppress(CoordinationError):  # then its leases run out
            member.reader.close()
