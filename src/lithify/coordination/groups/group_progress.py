"""Reports how far a stream has read as positions of a group, so that its lag can be seen (C58).

    batch begins ──► where it begins, as all before it is done ──► positions of partitions whose leases it holds

The stream's own checkpoint decides where it continues; positions are never read. It shares no partitions: a
group that a stream reports to has no other members. A report that fails because the database cannot be used is
left to the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import groupby

from lithify.coordination.groups.member import LEASE_MS, Member
from lithify.errors import CoordinationError, RefusedError
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.ports.clock import Clock
from lithify.ports.groups import Groups

LOGGER = logging.getLogger(__name__)


class Progress:
    """The positions of one stream. `new_id` makes ids of members. For one thread."""

    def __init__(self, groups: Groups, group: str, new_id: Callable[[], str], clock: Clock, *, compacted: bool) -> None:
        self._groups, self._group, self._new_id, self._clock = groups, group, new_id, clock
        self._compacted = compacted
        self._members: dict[TopicName, Member] = {}
        self._stored: dict[LogId, Cursor] = {}

    def report(self, cursors: Mapping[LogId, Cursor]) -> None:
        """Stores the cursors up to which all is done. Raises `RefusedError` if the group has other members."""
        changed = sorted(log for log, cursor in cursors.items() if self._stored.get(log) != cursor)
        for topic, some in groupby(changed, lambda log: log.topic):
            try:
                self._report(self._member(topic), {log: cursors[log] for log in some})
            except CoordinationError as error:
                LOGGER.warning("group %s: positions cannot be stored: %s", self._group, error)

    def stop(self) -> None:
        """Gives up the leases, so that the next run of the stream does not have to wait for them."""
        for member in self._members.values():
            member.leave()
        self._members.clear()

    def _report(self, member: Member, cursors: Mapping[LogId, Cursor]) -> None:
        member.use()
        lacking = [log.partition for log in cursors if not member.holds(log.partition)]
        member.give_up(lacking)  # what it has lost
        for partition in set(lacking).difference(member.take(lacking)):
            if (rival := member.rival(partition)) is not None:
                raise RefusedError(
                    f"group {self._group}: {rival} already reads {member.part.topic}",
                    hint="use another group for this stream",
                )
        now_ms = self._clock.now_ms()
        held = {log: cursor for log, cursor in cursors.items() if member.holds(log.partition)}
        positions = [Position(self._group, log, cursor, self._compacted, now_ms) for log, cursor in held.items()]
        if not self._groups.commit(positions, member.member_id):
            self._stored |= held

    def _member(self, topic: TopicName) -> Member:
        if topic not in self._members:
            part = GroupTopic(self._groups.scope, self._group, topic)
            member = Member(self._groups, part, self._new_id(), LEASE_MS, self._clock, shares=False)
            member.join()
            self._members[topic] = member
        return self._members[topic]
