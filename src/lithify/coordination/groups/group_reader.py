"""Reads a topic as a member of a group: its share of the partitions, each from the group's position on (C58).

    taken      position of the group ──► checked (C7, C49) ──► read
    commit     what was returned     ──► positions, in one transaction that only the holder of the leases gets through
    given up   with what is returned and not committed last, so that as few records as possible are read twice

Every record is returned at least once to some member: those after the last commit are returned again when a
partition changes hands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

from lithify.coordination.groups.lost_identity import check_not_elsewhere
from lithify.coordination.groups.member import Member
from lithify.errors import PartitionTakenOverError, RefusedError
from lithify.model.cursor import Cursor, Start, offsets_text
from lithify.model.groups.positions import Position
from lithify.model.groups.sharing import Turn
from lithify.model.names import LogId
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.continuation import Continues, Gone, continuation, lost_error
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import POLL_S, LogsReader
from lithify.service.read.open_version import OpenVersion
from lithify.service.read.version_reader import VersionReader

T = TypeVar("T")
UNSETTLED = Turn(settled=False)


@dataclass(slots=True)
class _Assigned:
    """A partition that this member reads. All records below `committed` are processed."""

    log: VersionReader
    committed: int
    stored: int | None
    """The offset of the group's position; None if it has none here."""

    @property
    def is_committed(self) -> bool:
        """Whether no record was returned since the last commit."""
        return self.committed == self.log.position


class GroupReader(LogsReader):
    """Iterate over it for records, or over `batches()`, and `commit()` what was processed. A context manager.

    For one thread. Leaving the group commits nothing.
    """

    def __init__(self, warehouse: Warehouse, member: Member, state: TopicState, start: Start, how: Reading) -> None:
        super().__init__(warehouse, state, (), how)
        self._member, self._start, self._partitions = member, start, len(state.logs)
        self._assigned: dict[int, _Assigned] = {}
        self._forfeited: dict[int, int] = {}
        self._looks, self._turn = 0, UNSETTLED
        self._excess_since_ms: int | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        at = offsets_text(self.positions()) or "none: it reads no partition"
        state = ", closed" if self._closed else ""
        return f"<GroupReader of {self._name}, group {self._member.part.group}, next offsets {at}{state}>"

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that this member reads now."""
        return tuple(sorted(self._assigned))

    def positions(self) -> dict[int, int]:
        """By partition that it reads, the offset after the last record that was returned."""
        return {partition: self._assigned[partition].log.position for partition in self.partitions}

    def has_message_available(self) -> bool:
        """Whether a read would return something now (C36), of the partitions that it has or can take now."""
        self._check_open()
        self._settle()
        return super().has_message_available()

    def seek(self, partition: int, offset: int) -> None:
        """Continues in a partition that it reads at an offset, which is not checked for missed deletes (C49)."""
        self._check_open()
        if partition not in self._assigned:
            raise RefusedError(
                f"{LogId(self._name, partition)} is not read by this member", hint=f"it reads {list(self.partitions)}"
            )
        self._assigned[partition].log.go_to(offset)

    def commit(self) -> None:
        """Stores the positions after all records that were returned, in one transaction.

        Raises `PartitionTakenOverError` if another member has a partition by now: the positions of the other
        partitions are stored nevertheless. Raises `CoordinationError`, after which it is unknown whether they were
        stored.
        """
        self._check_open()
        self._member.use()
        changed = {p: self._position(p) for p, at in self._assigned.items() if at.stored != at.log.settled.offset}
        while changed:
            refused = self._member.groups.commit(list(changed.values()), self._member.member_id)
            if not refused:
                break
            self._drop([log.partition for log in refused])
            changed = {p: position for p, position in changed.items() if p in self._assigned}
        for partition, position in changed.items():
            at = self._assigned[partition]
            at.committed, at.stored = at.log.position, position.cursor.offset
        if self._forfeited:
            lost, self._forfeited = self._forfeited, {}
            raise self._taken_over(lost)

    def close(self) -> None:
        """Leaves the group: other members read on from the committed positions at once."""
        if not self._closed:
            self._closed = True
            self._records.close()
            self._member.leave()

    def _endless(self, read: Callable[[VersionReader], Iterator[T]]) -> Generator[T, None, None]:
        """Ends, unless it follows, when no partition is about to change hands and its own are read to their ends."""
        while True:
            yield from self._rest(read)
            if not self._how.follow and self._turn.settled:
                return
            if not self._advance():
                self._warehouse.clock.sleep(POLL_S)

    def _rest(self, read: Callable[[VersionReader], Iterator[T]]) -> Iterator[T]:
        while (next_log := self._next()) is not None:
            partition, at = next_log
            for item in read(at.log):
                yield item
                if self._looks != self._member.looks:
                    self._settle()
                if self._closed or self._assigned.get(partition) is not at or not self._member.holds(partition):
                    break

    def _next(self) -> tuple[int, _Assigned] | None:
        """The next log that is not at the end of its version."""
        self._check_open()
        self._settle()
        return next(((p, at) for p, at in self._assigned.items() if not at.log.is_at_end), None)

    def _advance(self) -> bool:
        if not self._how.follow:
            return False
        newest = self._warehouse.store.load(self._name)
        self._partitions = len(newest.logs)
        for partition, at in self._assigned.items():
            self._check_continues(newest, partition, at.log.cursor)
        return self._advance_to(newest)

    def _settle(self) -> None:
        """Takes part in the group: notes what it has lost, takes what is free, gives up what is too much."""
        self._member.use()
        self._drop([p for p in self._assigned if not self._member.holds(p)])
        if self._looks == self._member.looks:
            return
        self._looks = self._member.looks
        # Taken, but not assigned: the call that took them was interrupted, and no member would read them.
        self._member.give_up([p for p in range(self._partitions) if self._member.holds(p) and p not in self._assigned])
        self._turn = self._member.turn(self._partitions, self._assigned)
        self._give_up(self._turn.give_up)
        if self._turn.take:
            self._open(self._member.take(self._turn.take))
            self._turn = self._member.turn(self._partitions, self._assigned)

    def _give_up(self, excess: int) -> None:
        """Partitions without uncommitted records; after the time of a lease also others."""
        now_ms = self._warehouse.clock.monotonic_ms()
        self._excess_since_ms = (self._excess_since_ms or now_ms) if excess else None
        overdue = self._excess_since_ms is not None and now_ms - self._excess_since_ms >= self._member.lease_ms
        last_first = sorted(self._assigned, reverse=True)
        done = [p for p in last_first if self._assigned[p].is_committed]
        late = [p for p in last_first if p not in done] if overdue else []
        self._drop((done + late)[:excess])

    def _open(self, taken: Collection[int]) -> None:
        try:
            part = self._member.part
            stored = {p.log.partition: p for p in self._member.groups.positions(part.group, part.topic)}
            state = self._warehouse.store.load(self._name)  # not before they were committed in it (C49)
            if not stored:
                check_not_elsewhere(self._member.groups, part, state.identity)
            self._partitions = len(state.logs)  # a recreated topic may have fewer
            version = OpenVersion(self._warehouse, state, sorted({*state.partitions}.intersection(taken)), self._how)
            for partition in sorted({*stored, *state.partitions}.intersection(taken)):
                self._assigned[partition] = self._opened(version, partition, stored.get(partition))
            self._member.give_up([p for p in taken if p not in self._assigned])
        except BaseException:
            self._member.give_up([p for p in taken if p not in self._assigned])
            raise
        finally:
            self._readers = tuple(at.log for at in self._assigned.values())

    def _opened(self, version: OpenVersion, partition: int, stored: Position | None) -> _Assigned:
        if stored is not None:
            self._check_continues(version.state, partition, stored.cursor)
        start = self._start if stored is None else stored.cursor
        log = VersionReader(self._warehouse, version, partition, start, self._how)
        return _Assigned(log, log.position, None if stored is None else stored.cursor.offset)

    def _drop(self, partitions: Collection[int]) -> None:
        """Ends to read partitions, and gives up those that it still holds."""
        for partition in partitions:
            at = self._assigned.pop(partition)
            if not at.is_committed:
                self._forfeited[partition] = at.committed
        if partitions:
            self._member.give_up(partitions)
            self._readers = tuple(at.log for at in self._assigned.values())

    def _position(self, partition: int) -> Position:
        return Position(
            self._member.part.group,
            LogId(self._name, partition),
            self._assigned[partition].log.settled,  # C61: or tombstones of a log that nobody appends to stay held
            self._how.compacted,
            self._warehouse.clock.now_ms(),
        )

    def _check_continues(self, state: TopicState, partition: int, cursor: Cursor) -> None:
        group, log = self._member.part.group, LogId(self._name, partition)
        hint = f"run `lithify group reset {group} {self._name} --to earliest`, or reset it to an offset"
        there = partition in state.partitions
        compacted = self._how.compacted
        match continuation(cursor, state, state.log(partition), compacted=compacted) if there else Gone():
            case Continues():
                return
            case lost:
                raise lost_error(log, cursor, lost, hint)

    def _taken_over(self, lost: dict[int, int]) -> PartitionTakenOverError:
        logs = ", ".join(f"{LogId(self._name, p)} from offset {offset} on" for p, offset in sorted(lost.items()))
        return PartitionTakenOverError(
            f"group {self._member.part.group}: the lease was lost before the position was committed, and another "
            f"member reads again: {logs}",
            hint="commit more often, or set a longer lease for all members",
        )

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError("the reader has left its group", hint="open a new one")
