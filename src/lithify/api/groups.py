"""The Python API of consumer groups: readers that are members, lag, reset and delete (C58, C59)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from lithify.api.wiring import groups_of, machine
from lithify.coordination.groups.empty_group import EmptyGroup, TellWait, delete, reset
from lithify.coordination.groups.group_reader import GroupReader
from lithify.coordination.groups.lost_identity import check_group_not_elsewhere
from lithify.coordination.groups.member import LEASE_MS, Member
from lithify.errors import LithifyError, RefusedError, UnknownGroupError, UnknownTopicError
from lithify.model.cursor import Cursor, Start
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.message import MessageId, MessagePosition
from lithify.model.names import LogId, TopicName, checked_group, in_order, nearest, parse_topic
from lithify.model.settings.units import format_time
from lithify.ports.groups import Groups
from lithify.ports.leases import LEAST_LEASE_MS
from lithify.ports.store import Warehouse
from lithify.reports.groups import ChangedPosition, GroupInfo, GroupLag, GroupReset
from lithify.reports.report import Reports
from lithify.rules.reading.pieces import Reading
from lithify.service.look.lag import group_lag
from lithify.service.read.fetch import open_logs


def tell_nobody(_what: str, _ms: int) -> None:
    """For callers that need not know what is waited for."""


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group of a lake: its positions in the topics that it reads."""

    warehouse: Warehouse
    name: str
    coordination_url: str | None = None

    def positions(self, topic: str | None = None) -> tuple[Position, ...]:
        """The positions of the group, in one topic or in all.

        Raises `UnknownTopicError` if it has none in that topic, `RefusedError` if it has some there under
        another name of the warehouse, or `CoordinationError`.
        """
        groups = self._groups()
        positions = groups.positions(self.name)
        if topic is None:
            return positions
        if there := _by_topic(positions).get(name := _topic(topic)):
            return there
        check_group_not_elsewhere(self.warehouse, groups, self.name, [name])
        topics = sorted({str(position.log.topic) for position in positions})
        raise UnknownTopicError(
            f"group {self.name} has no committed position in {topic}",
            hint=nearest(topic, topics, f"it has committed positions in {', '.join(topics[:10])}"),
        )

    def describe(self, topic: str | None = None) -> Reports[GroupLag]:
        """What it has left to read, by topic and partition: in records that are really there, and in time (C59).

        Partitions without a position are among them. A topic that cannot be read has its error there. Raises
        `UnknownGroupError`, `UnknownTopicError` for a topic that does not exist and in which it has no position, or
        `RefusedError` if it has some under another name of the warehouse.
        """
        groups = self._groups()
        by_topic = _topics_of(self.warehouse, groups, self.name)
        wanted = by_topic if topic is None else {(name := _topic(topic)): by_topic.get(name, ())}
        check_group_not_elsewhere(self.warehouse, groups, self.name, [name for name in wanted if not wanted[name]])
        lags = (group_lag(self.warehouse, self.name, name, positions) for name, positions in wanted.items())
        return Reports(lag for of_topic in lags for lag in of_topic)

    def plan_reset(self, topic: str, to: Start, *, partition: int | None = None) -> GroupReset:
        """What `reset` would do now; raises what it raises, except errors about members."""
        return self._planned(self._groups(), _topic(topic), to, partition)[1]

    def reset(
        self,
        topic: str,
        to: Start,
        *,
        partition: int | None = None,
        lease_ms: int = LEASE_MS,
        tell: TellWait = tell_nobody,
    ) -> GroupReset:
        """Moves the positions in a topic to `"earliest"`, `"latest"`, an offset or `AtTime(ms)`, checked as starts are.

        Only while no member reads the topic: whether one that ended without leaving is gone is known after
        `lease_ms`; `tell` gets what is waited for. Raises `UnknownGroupError`, `RefusedError`,
        `OffsetOutOfRangeError` or `ConflictError`.
        """
        groups, name = self._groups(makes=True), _topic(topic)
        moved, report = self._planned(groups, name, to, partition)
        empty = EmptyGroup(groups, _new_id(self.warehouse), lease_ms, self.warehouse.clock, tell)
        reset(empty, GroupTopic(groups.scope, self.name, name), moved)
        return report

    def plan_delete(self, topic: str | None = None) -> Reports[GroupReset]:
        """What `delete` would do now; raises what it raises, except errors about members."""
        by_topic = _by_topic(self.positions(topic))
        return Reports(_deleted(self.name, name, some) for name, some in by_topic.items())

    def delete(
        self, topic: str | None = None, *, lease_ms: int = LEASE_MS, tell: TellWait = tell_nobody
    ) -> Reports[GroupReset]:
        """Deletes all positions, or those in one topic, only while no member reads it. Raises as `reset` does."""
        groups, reports = self._groups(makes=True), []
        empty = EmptyGroup(groups, _new_id(self.warehouse), lease_ms, self.warehouse.clock, tell)
        for name, some in _by_topic(self.positions(topic) or _known(self.warehouse, groups, self.name)).items():
            report = _deleted(self.name, name, some)
            before = {position.partition: position.before for position in report.positions}
            delete(empty, GroupTopic(groups.scope, self.name, name), before)
            reports.append(report)
        return Reports(reports)

    def _groups(self, *, makes: bool = False) -> Groups:
        return groups_of(self.warehouse, self.coordination_url, makes=makes)

    def _planned(
        self, groups: Groups, topic: TopicName, to: Start, partition: int | None
    ) -> tuple[list[Position], GroupReset]:
        """The positions after a reset, and its report."""
        known = {position.log: position for position in _known(self.warehouse, groups, self.name)}
        if all(log.topic != topic for log in known):
            check_group_not_elsewhere(self.warehouse, groups, self.name, [topic])
        state = self.warehouse.store.load(topic)
        if partition is not None:
            state.check_partition(partition)
        _check_start(to, 1 if partition is not None else len(state.logs))
        now_ms = self.warehouse.clock.now_ms()
        logs = [LogId(topic, number) for number in (state.partitions if partition is None else [partition])]
        moved: list[Position] = []
        for compacted in (False, True):
            chosen = [log for log in logs if (log in known and known[log].compacted) is compacted]
            starts = dict.fromkeys((log.partition for log in chosen), to)
            readers = open_logs(self.warehouse, state, starts, Reading(compacted=compacted))
            for log, reader in zip(chosen, readers, strict=True):
                moved.append(Position(self.name, log, reader.cursor(), compacted, now_ms))
        moved.sort(key=lambda position: position.log.partition)
        before = {log.partition: position.cursor.offset for log, position in known.items() if log.topic == topic}
        changed = ((p.log.partition, p.cursor.offset) for p in moved)
        report = GroupReset(self.name, str(topic), tuple(ChangedPosition(n, before.get(n), at) for n, at in changed))
        return moved, report


def _deleted(group: str, topic: TopicName, positions: Iterable[Position]) -> GroupReset:
    """All of these positions, deleted."""
    changed = (ChangedPosition(position.log.partition, position.cursor.offset, None) for position in positions)
    return GroupReset(group, str(topic), tuple(changed))


def all_groups(warehouse: Warehouse, coordination_url: str | None) -> Reports[GroupInfo]:
    """All groups that have a position, by name."""
    positions = groups_of(warehouse, coordination_url).positions()
    infos = (_info(name, tuple(some)) for name, some in groupby(positions, lambda position: position.group))
    return Reports(sorted(infos, key=lambda info: in_order(info.group)))


def known_group(warehouse: Warehouse, name: str, coordination_url: str | None) -> Group:
    """The group of that name, which has a position or is named by a topic. Raises `UnknownGroupError`."""
    _topics_of(warehouse, groups_of(warehouse, coordination_url), name)
    return Group(warehouse, name, coordination_url)


@dataclass(frozen=True, slots=True)
class Membership:
    """How a reader takes part in a group: which, the time after which others take over, and the database."""

    group: str
    lease_ms: int = LEASE_MS
    coordination_url: str | None = None

    def __post_init__(self) -> None:
        """Raises `InvalidNameError` or `RefusedError`."""
        checked_group(self.group)
        if self.lease_ms < LEAST_LEASE_MS:
            raise RefusedError(f"a lease of {self.lease_ms} ms is too short", hint=f"set {LEAST_LEASE_MS} ms or more")


def start_of_group(partition: int | None, start: Start | Cursor | Mapping[int, Cursor], version: int | None) -> Start:
    """Where a member starts in logs without a position. Raises `RefusedError` for what a group decides itself."""
    if partition is not None or version is not None or isinstance(start, Cursor | Mapping):
        raise RefusedError(
            "the members of a group share its partitions, and continue at its committed positions in the newest "
            "version",
            hint="leave out partition, version and cursors",
        )
    return start


def open_member(
    warehouse: Warehouse, name: TopicName, group: str | Membership, start: Start, how: Reading
) -> GroupReader:
    """A reader that is a member from now on. Raises `InvalidNameError`, `RefusedError` or `CoordinationError`."""
    membership = Membership(group) if isinstance(group, str) else group
    groups = groups_of(warehouse, membership.coordination_url, makes=True)
    state = warehouse.store.load(name)
    _check_start(start, len(state.logs))
    part = GroupTopic(groups.scope, membership.group, name)
    member = Member(groups, part, _new_id(warehouse), membership.lease_ms, warehouse.clock)
    member.join()
    return GroupReader(warehouse, member, state, start, how)


def _new_id(warehouse: Warehouse) -> str:
    return f"{machine()}/{warehouse.clock.new_id()}"


def _topic(name: str) -> TopicName:
    return parse_topic(name).whole("read by a group")


def _known(warehouse: Warehouse, groups: Groups, name: str) -> tuple[Position, ...]:
    """The positions of a group. Raises `UnknownGroupError` if it has none, `RefusedError` if it has some under another
    name of the warehouse, or `InvalidNameError`."""
    if positions := groups.positions(checked_group(name)):
        return positions
    check_group_not_elsewhere(warehouse, groups, name)
    others = sorted({position.group for position in groups.positions()})
    there = f"the groups are {', '.join(others[:10])}" if others else "no group has committed a position so far"
    raise UnknownGroupError(f"there is no group {name}", hint=nearest(name, others, there))


def _topics_of(warehouse: Warehouse, groups: Groups, name: str) -> dict[TopicName, tuple[Position, ...]]:
    """The positions of a group by topic; without any, the topics that name it. Raises what `_known` raises."""
    try:
        return _by_topic(_known(warehouse, groups, name))
    except UnknownGroupError:
        if naming := tuple(_naming(warehouse, name)):
            return dict.fromkeys(naming, ())
        raise


def _naming(warehouse: Warehouse, name: str) -> Iterator[TopicName]:
    """Topics that hold tombstones or their backlog for a group, whether it has read anything or not."""
    for topic in warehouse.store.topics():
        with suppress(LithifyError):  # that of a topic that cannot be read is for those who read it
            if name in warehouse.store.load(topic).settings.named_groups:
                yield topic


def _by_topic(positions: Iterable[Position]) -> dict[TopicName, tuple[Position, ...]]:
    return {name: tuple(some) for name, some in groupby(positions, lambda position: position.log.topic)}


def _check_start(start: Start, partitions: int) -> None:
    one = isinstance(start, int | MessagePosition) or (isinstance(start, MessageId) and not start.is_end)
    if one and partitions > 1:
        raise RefusedError(
            f"{start} belongs to one log, but the topic has {partitions}", hint="pass a partition, or a time"
        )


def _info(name: str, positions: tuple[Position, ...]) -> GroupInfo:
    topics = tuple(sorted({str(position.log.topic) for position in positions}))
    latest_ms = max(position.committed_ms for position in positions)
    return GroupInfo(name, topics, len(positions), format_time(latest_ms))
