"""Groups that the coordinator assigns itself (KIP-848): their heartbeats, and topics that come, go or grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Place
from lithify.kafka_server.groups.modern.beats import Beat, Told, beaten, retargeted
from lithify.kafka_server.groups.modern.group import Layout
from lithify.kafka_server.groups.rooms import Room
from lithify.kafka_server.groups.seat import Seat

LAYOUT_MS = 5_000
"""Between two checks of the topics of a group."""
MATCHING_MS, FEW_NAMES = 500, 8
"""How long a pattern may take for all names, about; and how many names show that it is a slow one."""
PATTERNS_KEPT = 100
"""Whose topics are remembered for as long as there are the same topics."""


class Consumers(Seat):
    """Members of such groups do not wait for each other: each heartbeat takes one a step further."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._matches: dict[str, tuple[Collection[str], frozenset[str] | None]] = {}
        """By pattern, all topics when it was matched, and those that it matches."""
        self._matching = asyncio.Lock()

    async def consumer_heartbeat(self, group: str, beat: Beat) -> Told:
        """ConsumerGroupHeartbeat. Partitions become this gateway's to commit in before a member gets them."""
        room = await self._entered(group, beat.token)
        if isinstance(room, Code):
            return Told(room, beat.member_id)
        if (code := await self._refusal(group)) is not Code.NONE or not room.group.is_unused:
            others = code is Code.COORDINATOR_LOAD_IN_PROGRESS
            return Told(code if others else Code.GROUP_ID_NOT_FOUND, beat.member_id)
        room.used_ms = self._clock.monotonic_ms()
        beat = replace(beat, member_id=beat.member_id or self._clock.new_id())
        if beat.topics is not None or beat.pattern is not None:
            matched = await self._looked_up(room, beat.topics or frozenset(), beat.pattern)
            if isinstance(matched, Code):
                return Told(matched, beat.member_id)
            beat = replace(beat, matched=matched)
        _, told = beaten(room.consumers, beat, room.layout, self._clock.monotonic_ms())
        if told.assigned and not await self._hold(group, room, _places(told, room.layout)):
            return Told(Code.COORDINATOR_LOAD_IN_PROGRESS, beat.member_id)
        if self._rooms.get(group) is not room:
            return Told(Code.NOT_COORDINATOR, beat.member_id)
        if not room.group.is_unused:  # a member of the other protocol has joined meanwhile
            return Told(Code.GROUP_ID_NOT_FOUND, beat.member_id)
        consumers, told = beaten(room.consumers, beat, room.layout, self._clock.monotonic_ms())
        if not self._rooms.fits(room, consumers):
            kept = room.consumers.subscribed  # what was found for it is not counted, and would stay
            room.lay_out({name: one for name, one in room.layout.items() if name in kept})
            return Told(self._full("members"), beat.member_id)
        self._rooms.put(room, consumers)
        return told

    async def _looked_up(self, room: Room, topics: frozenset[str], pattern: str | None) -> frozenset[str] | Code:
        """The topics that a pattern matches. The room then knows them, and those that are named."""
        found = await self._found({pattern} if pattern else ())
        if isinstance(found, Code):
            return found
        matched = found.get(pattern or "", frozenset())
        if matched is None:
            return Code.INVALID_REGULAR_EXPRESSION
        missing = [name for name in sorted(topics | matched) if name not in room.layout]
        layout = await self._asked(lambda: self._layout(missing))
        if isinstance(layout, Code):
            return layout
        room.lay_out({**room.layout, **layout})
        return matched

    async def _refreshed(self, room: Room) -> None:
        now_ms = self._clock.monotonic_ms()
        if room.consumers.is_unused or now_ms - room.layout_ms < LAYOUT_MS:
            return
        room.layout_ms = now_ms
        patterns = {m.pattern for m in room.consumers.members.values() if m.pattern}
        found = await self._found(patterns)
        if isinstance(found, Code):
            return
        matched = {pattern: names for pattern, names in found.items() if names is not None}
        wanted = room.consumers.subscribed.union(*matched.values())
        layout = await self._asked(lambda: self._layout(sorted(wanted)))
        if isinstance(layout, Code) or not room.consumers.subscribed <= wanted:  # the next check has those who came
            return
        members = {
            name: replace(m, matched=matched.get(m.pattern or "", m.matched))
            for name, m in room.consumers.members.items()
        }
        if layout != room.layout or members != room.consumers.members:
            room.lay_out(layout)
            self._rooms.put(room, retargeted(replace(room.consumers, members=members), layout))

    async def _found(self, patterns: Collection[str]) -> dict[str, frozenset[str] | None] | Code:
        """By pattern, the topics that it matches; None if it is refused. One thread at a time has patterns to match."""
        async with self._matching:
            return await self._asked(lambda: self._matched(patterns))

    def _matched(self, patterns: Collection[str]) -> dict[str, frozenset[str] | None]:
        """May wait for the catalog."""
        names = self._topics.listed()
        found = {}
        for pattern in patterns:
            of, matched = self._matches.get(pattern, (None, None))
            if of is not names:
                matched = matching(pattern, names, self._clock.monotonic_ms)
                self._matches[pattern] = names, matched
            found[pattern] = matched
        while len(self._matches) > PATTERNS_KEPT:
            self._matches.pop(next(iter(self._matches)), None)
        return found

    def _layout(self, names: list[str]) -> Layout:
        """Of these topics, as far as they can be read. May wait for the catalog."""
        known: dict[str, tuple[bytes, int]] = {}
        served = self._topics.names()
        for name in (name for name in names if name in served):
            topic = self._offsets.topic(name)
            if not isinstance(topic, Code):
                known[name] = topic.topic_id, len(topic.state.partitions)
        return known


def matching(pattern: str, names: Iterable[str], monotonic_ms: Callable[[], int]) -> frozenset[str] | None:
    """The names that a pattern of RE2 matches whole, as in Kafka; None if it is none, or is too much work.

    RE2 refuses very large patterns. Others can take milliseconds for each name.
    """
    left, some, matched, count = sorted(names), [""], set[str](), FEW_NAMES
    until_ms = monotonic_ms() + MATCHING_MS
    while some:
        every = pa.array(some, pa.string())
        try:
            matched.update(every.filter(pc.match_substring_regex(every, f"^(?:{pattern})$")).to_pylist())
        except pa.ArrowInvalid:
            return None
        if left and monotonic_ms() >= until_ms:
            return None
        some, left, count = left[:count], left[count:], 2 * count
    return frozenset(matched - {""})  # with which it was checked


def _places(told: Told, layout: Layout) -> list[Place]:
    names = {topic_id: name for name, (topic_id, _) in layout.items()}
    return [(names[topic_id], number) for topic_id, number in told.assigned or () if topic_id in names]
