"""Members of a group in any order of steps, on one clock: what a group has processed is what was in the log (C58, C49).

Each member is driven by hand, without its thread. Its next calls of the database may fail, lose their answers, or
stall until all that it holds has been taken over. What a member was given counts as processed once its commit was
accepted, as a program does that stores its results together with the position:

    given to a member ─► its commit is accepted ─► applied to the group's table
                      └► refused, or it dies     ─► forgotten
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random

import pytest

from leases.places import TroubledCoordination
from lithify.coordination.groups.empty_group import EmptyGroup, reset
from lithify.coordination.groups.group_reader import GroupReader
from lithify.coordination.groups.member import Member
from lithify.errors import CoordinationError, LogTruncatedError, PartitionTakenOverError, PolicyError
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.rules.reading.pieces import Reading
from lithify.service.change.alter import alter
from lithify.service.change.cut import truncate
from lithify.service.read.fetch import open_log
from lithify.service.read.version_reader import VersionReader
from lithify.testing.memory_groups import MemoryGroups
from support.topics.memory_topic import ORDERS, MemoryTopic

LEASE_MS = 3_000
BEAT_MS = 300
SCOPE = "memory"
PARTITIONS, MOST_PARTITIONS = 3, 5
MEMBERS = 3
KEYS = 4


class TroubledGroups:
    """`Groups` as one member has them: `around` wraps each of its calls."""

    def __init__(self, group: GroupUnderTest, name: str) -> None:
        self._group, self._name = group, name
        self.scope = SCOPE
        self.leases = TroubledCoordination(group.real.leases)
        self.leases.before, self.leases.after = self._before, self._after
        self.trouble: tuple[str, str, str] | None = None
        """Fails or stalls, before or after which call of the database: the next one of that kind."""

    def positions(self, *of: object) -> tuple[Position, ...]:
        with self._around("positions"):
            return self._group.real.positions(*of)  # type: ignore[arg-type]

    def elsewhere(self, *of: object) -> tuple[str, ...]:
        with self._around("positions"):
            return self._group.real.elsewhere(*of)  # type: ignore[arg-type]

    def commit(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        with self._around("commit"):
            refused = self._group.real.commit(positions, owner)
            if not refused:
                self._group.accepted(self._name, positions)
            return refused

    @contextmanager
    def _around(self, operation: str) -> Iterator[None]:
        self._before(operation)
        yield
        self._after(operation)

    def _before(self, operation: str) -> None:
        self._strike("before", operation)

    def _after(self, operation: str) -> None:
        self._strike("after", operation)

    def _strike(self, when: str, operation: str) -> None:
        match self.trouble:
            case ("fails", at, which) if (at, which) == (when, operation):
                self.trouble = None
                raise CoordinationError("the database is down")
            case ("stalls", at, which) if (at, which) == (when, operation):
                self.trouble = None
                self._group.takes_over_from(self._name)


@dataclass
class Driven:
    """A member, and what it was given of each partition since it opened it."""

    reader: GroupReader
    member: Member
    groups: TroubledGroups
    given: dict[int, list[Record]] = field(default_factory=dict)
    opened: dict[int, object] = field(default_factory=dict)


class GroupUnderTest:
    """One group of one topic."""

    def __init__(self, *, compacted: bool) -> None:
        mode = "side-by-side" if compacted else "in-place"
        self.topic = MemoryTopic(partitions=PARTITIONS, delete_retention_ms=0, compaction_mode=mode)
        self.compacted = compacted
        self.real = MemoryGroups(SCOPE)
        self.members: dict[str, Driven] = {}
        self.tables: dict[int, dict[bytes, bytes]] = {}
        self.processed: dict[int, int] = {}
        self.joined = 0

    def accepted(self, name: str, positions: Sequence[Position]) -> None:
        """The database has taken the positions of a member."""
        for position in positions:
            partition, offset = position.log.partition, position.cursor.offset
            before = self.processed.get(partition, 0)
            assert offset >= before, f"partition {partition} went back from {before} to {offset}"
            got = [r for r in self.members[name].given.get(partition, []) if before <= (r.offset or 0) < offset]
            there = {r.offset for r in self.there(partition) if before <= (r.offset or 0) < offset}
            assert there <= {r.offset for r in got}, f"{name} skipped records of {partition}"
            table = self.tables.setdefault(partition, {})
            for record in sorted(got, key=lambda record: record.offset or 0):
                assert record.key is not None
                if record.value is None:
                    table.pop(record.key, None)
                else:
                    table[record.key] = record.value
            self.processed[partition] = offset

    def there(self, partition: int) -> list[Record]:
        return self.topic.records(partition, compacted=self.compacted)

    def join(self) -> None:
        if len(self.members) == MEMBERS:
            return
        self.joined += 1
        name = f"m{self.joined}"
        groups = TroubledGroups(self, name)
        part = GroupTopic(SCOPE, "g", ORDERS)
        member = Member(groups, part, name, LEASE_MS, self.topic.clock)  # type: ignore[arg-type]
        member.beat()
        how = Reading(follow=True, compacted=self.compacted)
        reader = GroupReader(self.topic.warehouse, member, self.topic.state, "earliest", how)
        self.members[name] = Driven(reader, member, groups)

    def read(self, driven: Driven, most: int) -> None:
        """Some records, without waiting."""
        with suppress(CoordinationError):
            driven.reader._advance()
            for record in islice(driven.reader._rest(VersionReader.records), most):
                assert record.partition is not None
                at = driven.reader._assigned.get(record.partition)
                if driven.opened.get(record.partition) is not at:
                    driven.opened[record.partition], driven.given[record.partition] = at, []
                driven.given[record.partition].append(record)

    def commit(self, driven: Driven) -> None:
        with suppress(CoordinationError, PartitionTakenOverError):
            driven.reader.commit()

    def pass_time(self, ms: int, without: Collection[str] = ()) -> None:
        """In which members beat, but for those that are stopped."""
        for _ in range(0, ms, BEAT_MS):
            self.topic.clock.advance(BEAT_MS)
            for name in sorted(self.members):
                if name in self.members and name not in without:
                    self.members[name].member.beat()

    def takes_over_from(self, name: str) -> None:
        """The member stalls in a call, for longer than its lease; another one reads and commits all meanwhile."""
        stalled = self.members.pop(name)
        self.join()
        self.pass_time(2 * LEASE_MS)
        try:
            for other in 2 * list(self.members.values()):
                self.read(other, 100)
                self.commit(other)
        except LogTruncatedError:
            pass  # a step of its own finds it as well
        finally:
            self.members[name] = stalled

    def reset(self) -> None:
        """All leave, and the group starts again."""
        members, self.members = self.members, {}
        for driven in members.values():
            driven.groups.trouble = None
            driven.reader.close()
        alone = EmptyGroup(self.real, f"alone{self.joined}", LEASE_MS, self.topic.clock, lambda _, __: None)
        state = self.topic.state
        starts = {
            p: open_log(self.topic.warehouse, state, p, how=Reading(compacted=self.compacted)).cursor()
            for p in state.partitions
        }
        self.processed, self.tables = {p: cursor.offset for p, cursor in starts.items()}, {}
        positions = [Position("g", LogId(ORDERS, p), cursor, self.compacted, 0) for p, cursor in starts.items()]
        reset(alone, GroupTopic(SCOPE, "g", ORDERS), positions)

    def check_holders(self) -> None:
        """On one clock, no two members believe at once to hold a partition."""
        for partition in range(MOST_PARTITIONS):
            holders = [name for name, driven in self.members.items() if driven.member.holds(partition)]
            assert len(holders) <= 1, f"{holders} hold {partition}"

    def drain(self) -> None:
        """All troubles end, and one member reads on from where the group is."""
        for name in list(self.members):
            self.members[name].groups.trouble = None
            if self.joined % 2:
                self.members.pop(name)  # killed
        self.pass_time(2 * LEASE_MS)
        self.join()
        for _ in range(12):
            self.pass_time(LEASE_MS)
            for driven in list(self.members.values()):
                self.read(driven, 1_000)
                self.commit(driven)
        for log in self.topic.state.logs:
            assert self.processed.get(log.partition, 0) == log.log_end_offset
            live = {r.key: r.value for r in self.there(log.partition)}
            assert self.tables.get(log.partition, {}) == {k: v for k, v in live.items() if v is not None}


def done(group: GroupUnderTest, step: str, which: int, number: int) -> None:
    """A step of the topic or of time, or of one member."""
    names = sorted(group.members)
    match step:
        case "append":
            value = None if number == 0 else b"%d.%d" % (which, number)
            to = {which % PARTITIONS, number % PARTITIONS}
            group.topic.append([Record(b"%d" % (number % KEYS), value, partition=p) for p in sorted(to)])
        case "compact":
            group.topic.compact()
        case "cut":
            end = group.topic.log(which % PARTITIONS).log_end_offset
            with suppress(PolicyError):
                truncate(group.topic.warehouse, ORDERS, which % PARTITIONS, max(0, end - number % 3))
        case "grow":
            partitions = min(MOST_PARTITIONS, len(group.topic.state.logs) + 1)
            alter(group.topic.warehouse, ORDERS, {}, partitions=partitions)
        case "join":
            group.join()
        case "time":
            group.pass_time(BEAT_MS * (1 + number))
        case "jump":
            group.topic.clock.advance(BEAT_MS * number)
        case _ if names:
            done_by(group, names[which % len(names)], step, number)


def done_by(group: GroupUnderTest, name: str, step: str, number: int) -> None:
    driven = group.members[name]
    match step:
        case "read":
            group.read(driven, number)
        case "commit":
            group.commit(driven)
        case "leave":
            driven.reader.close()
            group.members.pop(name)
        case "kill":
            group.members.pop(name)
        case "freeze":
            group.pass_time(LEASE_MS + BEAT_MS * number, without={name})
        case "beat":
            driven.member.beat()
        case _:
            what, when = step.split()
            driven.groups.trouble = (what, when, CALLS[number % len(CALLS)])


TROUBLES = [f"{what} {when}" for what in ("fails", "stalls") for when in ("before", "after")]
CALLS = ("commit", "commit", "commit", "positions", "take", "renew", "release", "leases")
OFTEN = ["append", "read", "read", "commit", "commit", "time", "beat", "join"]
STEPS = (*OFTEN, *OFTEN, *TROUBLES, "leave", "kill", "freeze", "jump", "compact", "grow", "cut")
MOST_STEPS = 60
LIVES = 60
"""For each seed, half of them of compacted readers of a view: some 2 seconds."""


@pytest.mark.parametrize("seed", range(6))
def test_a_group_has_processed_what_its_positions_say(seed: int) -> None:
    luck = Random(seed)
    for life in range(LIVES):
        steps = [(luck.choice(STEPS), luck.randrange(6), luck.randrange(9)) for _ in range(luck.randrange(MOST_STEPS))]
        print(f"life {life}: {steps}")
        live(steps, compacted=life % 2 == 1)


def live(steps: list[tuple[str, int, int]], *, compacted: bool) -> None:
    group = GroupUnderTest(compacted=compacted)
    group.topic.append([Record(b"%d" % n, b"first", partition=n % PARTITIONS) for n in range(9)])
    group.join()
    for step in steps:
        attempt(group, partial(done, group, *step))
        group.check_holders()
    assert any(attempt(group, group.drain) for _ in range(3)), "it never gets through"


def attempt(group: GroupUnderTest, what: Callable[[], object]) -> bool:
    """False where a group cannot continue, as it would miss a delete: then it starts again."""
    try:
        what()
    except LogTruncatedError:
        group.reset()
        return False
    return True
