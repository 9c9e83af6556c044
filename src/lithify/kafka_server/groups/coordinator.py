"""What requests of groups are answered with, by the gateway that coordinates them.

request ──► the room of the group ──► a step of the group ──► answers, also to others who wait
            (`seat.py`)               (`classic/`)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import CONSUMERS, Group, Joined, Phase, Step, Synced
from lithify.kafka_server.groups.classic.joining import Join, joined
from lithify.kafka_server.groups.classic.sessions import Sync, check, committing, heartbeat, left, synced
from lithify.kafka_server.groups.committed import Commit, Committed, Place
from lithify.kafka_server.groups.consumer_protocol import assigned, subscribed
from lithify.kafka_server.groups.consumers import Consumers
from lithify.kafka_server.groups.modern.beats import committing as consumer_commits
from lithify.kafka_server.groups.modern.group import ConsumerGroup
from lithify.kafka_server.groups.shares import Token

GROUPS_AT_ONCE = 200
"""For which the database is asked by one query."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which offsets of a group are asked for: in these partitions, or all. `member` is an id and epoch (KIP-848)."""

    places: Collection[Place] | None
    member: tuple[str, int] | None = None


class Coordinator(Consumers):
    """What members and others ask of groups. For one event loop, on which it runs while it is entered."""

    async def join(self, group: str, join: Join) -> Joined:
        """JoinGroup, with neither ticket nor new id."""
        room = await self._entered(group, join.token)
        if isinstance(room, Code):
            return Joined(room, join.member_id)
        if (refusal := await self._refusal(group)) is not Code.NONE:
            return Joined(refusal, join.member_id)
        if self._rooms.get(group) is not room:  # given up meanwhile
            return Joined(Code.NOT_COORDINATOR, join.member_id)
        if not room.consumers.is_unused:
            return Joined(Code.INCONSISTENT_GROUP_PROTOCOL, join.member_id)
        ticket, answer = self._rooms.ticket()
        join = replace(join, ticket=ticket, new_id=f"{join.instance_id or join.client_id}-{self._clock.new_id()}")
        step = joined(room.group, join, self._clock.monotonic_ms())
        if not self._rooms.fits(room, step.group):
            step = Step(room.group, ((ticket, Joined(self._full("members"), join.member_id)),))
        self._rooms.take(room, step)
        result = await answer
        assert isinstance(result, Joined)
        return result

    async def sync(self, group: str, sync: Sync) -> Synced:
        """SyncGroup, without a ticket. With the leader's the partitions become this gateway's to commit in."""
        room = self._known(group)
        if isinstance(room, Code):
            return Synced(room)
        if (places := _places(room.group, sync)) and not await self._hold(group, room, places):
            return Synced(Code.REBALANCE_IN_PROGRESS)
        ticket, answer = self._rooms.ticket()
        step = synced(room.group, replace(sync, ticket=ticket), self._clock.monotonic_ms())
        if not self._rooms.fits(room, step.group):
            step = Step(room.group, ((ticket, Synced(self._full("assignments"))),))
        self._rooms.take(room, step)
        result = await answer
        assert isinstance(result, Synced)
        return result

    async def heartbeat(self, group: str, member_id: str, instance_id: str | None, generation: int) -> Code:
        room = self._known(group)
        if isinstance(room, Code):
            return room
        now_ms = self._clock.monotonic_ms()
        heard, code = heartbeat(room.group, member_id, instance_id, generation, now_ms)
        self._rooms.take(room, Step(heard), rush=False)
        return code

    async def leave(self, group: str, members: Sequence[tuple[str, str | None]]) -> list[Code]:
        """LeaveGroup: of each member its id, or its name alone; with the result of each."""
        room = self._known(group)
        if isinstance(room, Code):
            return [room] * len(members)
        step, codes = left(room.group, members, self._clock.monotonic_ms())
        self._rooms.take(room, step)
        return codes

    async def commit(
        self, group: str, member: tuple[str, str | None, int], commits: Mapping[Place, Commit], token: Token = None
    ) -> dict[Place, Code]:
        """OffsetCommit, of a member's id, name and generation."""
        if not commits:
            return {}
        room = await self._entered(group, token)
        if isinstance(room, Code):
            return dict.fromkeys(commits, room)
        async with room.lock:
            if self._rooms.get(group) is not room:
                return dict.fromkeys(commits, Code.NOT_COORDINATOR)
            now_ms = self._clock.monotonic_ms()
            heard, code = room.group, consumer_commits(room.consumers, member[0], member[2])
            if room.consumers.is_unused:
                heard, code = committing(room.group, *member, now_ms)
            if code is not Code.NONE:
                return dict.fromkeys(commits, code)
            self._rooms.take(room, Step(heard), rush=False)
            is_simple = not heard.members and room.consumers.is_unused
            refusal = Code.UNKNOWN_MEMBER_ID if is_simple else Code.REBALANCE_IN_PROGRESS
            if is_simple:
                room.used_ms = now_ms
            codes = await self._asked(lambda: self._offsets.commit(group, commits, refusal=refusal))
            return dict.fromkeys(commits, codes) if isinstance(codes, Code) else codes

    async def fetch(self, asked: Mapping[str, Wanted]) -> dict[str, dict[Place, Committed] | Code]:
        """OffsetFetch: by group, the offsets in these partitions, or all."""
        found: dict[str, dict[Place, Committed] | Code] = {}
        for some in _in_parts(asked):
            codes = {group: self._fetching(group, asked[group].member) for group in some}
            places = {group: asked[group].places for group, code in codes.items() if code is Code.NONE}
            offsets = await self._asked(partial(self._offsets.fetch, places))
            found |= codes | (dict.fromkeys(places, offsets) if isinstance(offsets, Code) else offsets)
        return found

    def _fetching(self, group: str, member: tuple[str, int] | None) -> Code:
        code, room = self._checked(group), self._rooms.get(group)
        if code is Code.NONE and member is not None and room is not None and not room.consumers.is_unused:
            return consumer_commits(room.consumers, *member)
        return code

    async def delete_groups(self, groups: Collection[str], token: Token = None) -> dict[str, Code]:
        """DeleteGroups: the offsets of groups without members."""
        codes: dict[str, Code] = {}
        for some in _in_parts(groups):
            known = await self._known_of(some)
            for group in some:
                code = known[group]
                if code is Code.NONE:
                    result = await self.delete(group, None, token)
                    code = result if isinstance(result, Code) else Code.NONE
                codes[group] = code
        return codes

    async def _known_of(self, groups: Collection[str]) -> dict[str, Code]:
        """`NONE` for those that this gateway coordinates, and that have members or offsets. None begins by that."""
        codes = {group: self._checked(group) for group in groups}
        rooms = {group: self._rooms.get(group) for group, code in codes.items() if code is Code.NONE}
        asked = [group for group, room in rooms.items() if room is None or room.is_unused]
        stored = await self._asked(lambda: self._offsets.stored(asked))
        if isinstance(stored, Code):
            return codes | dict.fromkeys(asked, stored)
        return codes | {group: Code.NONE if group in stored else Code.GROUP_ID_NOT_FOUND for group in asked}

    async def delete(
        self, group: str, places: Collection[Place] | None, token: Token = None
    ) -> Code | dict[Place, Code]:
        """OffsetDelete of these partitions, or of all."""
        room = await self._entered(group, token)
        if isinstance(room, Code):
            return room
        async with room.lock:
            if self._rooms.get(group) is not room:
                return Code.NOT_COORDINATOR
            has_members = bool(room.group.members or room.consumers.members)
            read = subscriptions(room.group) if room.consumers.is_unused else room.consumers.subscribed
            if has_members and (places is None or read is None):
                return Code.NON_EMPTY_GROUP
            names = await self._asked(self._topics.names)
            if isinstance(names, Code):
                return names
            topics = {names.get(name, name) for name in read or ()}  # a view and its log have one position
            held = (place for place in places or () if names.get(place[0], place[0]) in topics)
            kept = dict.fromkeys(held, Code.GROUP_SUBSCRIBED_TO_TOPIC)
            gone = None if places is None else [place for place in places if place not in kept]
            code = await self._asked(lambda: self._offsets.delete(group, gone))
            if gone is None or not (code is Code.NONE or (has_members and code is Code.GROUP_ID_NOT_FOUND)):
                return code
            return dict.fromkeys(gone, Code.NONE) | kept

    async def topics(self, group: str) -> frozenset[str] | Code:
        """The topics that members of a group read, or in which it has offsets.

        Those that a member names without a right to read them do not count: else they could be tried so.
        """
        if (code := self._checked(group)) is not Code.NONE:
            return code
        stored = await self._asked(lambda: self._offsets.topics(group))
        room = self._rooms.get(group)
        if isinstance(stored, Code) or room is None:
            return stored
        return stored.union(room.consumers.subscribed, *(member.reads for member in room.group.members.values()))

    async def described(self, groups: Collection[str]) -> dict[str, Group | ConsumerGroup | Code]:
        """By name, each group; one that nobody is in is empty, if it has offsets."""
        found: dict[str, Group | ConsumerGroup | Code] = {}
        for some in _in_parts(groups):
            codes = await self._known_of(some)
            for name, code in codes.items():
                room = self._rooms.get(name)
                if code is Code.GROUP_ID_NOT_FOUND:
                    found[name] = Group(Phase.DEAD)
                elif code is not Code.NONE:
                    found[name] = code
                elif room is None or room.is_unused:
                    found[name] = Group(protocol_type=CONSUMERS)
                else:
                    found[name] = room.group if room.consumers.is_unused else room.consumers
        return found

    async def listed(self) -> dict[str, Group | ConsumerGroup] | Code:
        """All groups that this gateway coordinates."""
        known = await self._asked(self._offsets.groups)
        if isinstance(known, Code):
            return known
        ours: dict[str, Group | ConsumerGroup] = {
            name: Group(protocol_type=CONSUMERS) for name in known if self._checked(name) is Code.NONE
        }
        for name, room in self._rooms:
            if not room.is_unused:
                ours[name] = room.group if room.consumers.is_unused else room.consumers
        return ours


def _in_parts(groups: Collection[str]) -> Iterator[Sequence[str]]:
    """A request may name very many: others are answered in between."""
    every = [*groups]
    return (every[begin : begin + GROUPS_AT_ONCE] for begin in range(0, len(every), GROUPS_AT_ONCE))


def _places(group: Group, sync: Sync) -> list[Place]:
    """The partitions that the leader assigns, if it is the leader and they can be read."""
    is_leader = sync.member_id == group.leader and group.phase is Phase.COMPLETING
    valid = check(group, sync.member_id, sync.instance_id, sync.generation) is Code.NONE
    if not is_leader or not valid or group.protocol_type != CONSUMERS:
        return []
    by_topic = (assigned(assignment).items() for assignment in sync.assignments.values())
    return [(name, number) for some in by_topic for name, numbers in some for number in numbers]


def subscriptions(group: Group) -> frozenset[str] | None:
    """The topics that members of a group read; None if that cannot be told."""
    if not group.members:
        return frozenset()
    if group.protocol_type != CONSUMERS or group.protocol is None:
        return None
    return frozenset().union(*(subscribed(member.metadata(group.protocol)) for member in group.members.values()))
