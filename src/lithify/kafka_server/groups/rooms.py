"""The groups that this gateway coordinates, in memory, with the requests that wait and the timers that go on.

All on one event loop. A group is forgotten once nobody is in it; its offsets are in the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

from lithify.kafka_server.groups.classic.group import Group, Joined, Step, Synced
from lithify.kafka_server.groups.classic.sessions import due_ms, elapsed, resigned
from lithify.kafka_server.groups.modern import beats
from lithify.kafka_server.groups.modern.group import ConsumerGroup, Layout, layout_bytes, pattern_bytes
from lithify.kafka_server.groups.shares import GROUP_BYTES, Shares, Sizes, Token, difference, total
from lithify.ports.clock import Clock


class Room:
    """One group. `lock` is held while the database is asked for it, so that commits keep the order of generations.

    Its members are all of the classic protocol, or all of the newer one. `token` began it, and `common` is the memory
    that counts as that one's.
    """

    def __init__(self, token: Token) -> None:
        self.token, self.common = token, GROUP_BYTES
        self.is_dropped = False
        self.group = Group()
        self.consumers = ConsumerGroup()
        self.layout: Layout = {}
        """The topics of its members that are served, as they were known at `layout_ms`, and those that came since."""
        self.layout_bytes = self.layout_ms = 0
        self.lock = asyncio.Lock()
        self.used_ms = 0
        """When offsets were last committed by someone who is not a member."""
        self.timer: asyncio.TimerHandle | None = None
        self.due_ms: int | None = None

    @property
    def is_unused(self) -> bool:
        return self.group.is_unused and self.consumers.is_unused

    def lay_out(self, layout: Layout) -> None:
        self.layout, self.layout_bytes = layout, layout_bytes(layout)

    def common_with(self, consumers: ConsumerGroup) -> int:
        return GROUP_BYTES + self.layout_bytes + pattern_bytes(consumers)


class Rooms:
    """The groups by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rooms: dict[str, Room] = {}
        self._waiting: dict[int, asyncio.Future[Joined | Synced]] = {}
        self._tickets = count(1)
        self.shares = Shares()

    def __iter__(self) -> Iterator[tuple[str, Room]]:
        return iter(list(self._rooms.items()))

    def __len__(self) -> int:
        return len(self._rooms)

    def get(self, group: str) -> Room | None:
        return self._rooms.get(group)

    def made(self, group: str, token: Token) -> Room:
        """The group, or a new one that a token begins."""
        if (room := self._rooms.get(group)) is None:
            self._rooms[group] = room = Room(token)
            self.shares.add_group(token)
            self.shares.add({token: room.common})
        return room

    def ticket(self) -> tuple[int, asyncio.Future[Joined | Synced]]:
        """A ticket for a request, and what is answered to it."""
        number = next(self._tickets)
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        return number, answer

    def take(self, room: Room, step: Step, *, rush: bool = True) -> None:
        """A step was taken. Without `rush` nothing is due earlier than before."""
        self._become(room, step.group, room.consumers)
        for number, answer in step.answers:
            waiting = self._waiting.pop(number)
            if not waiting.done():  # else its connection is gone
                waiting.set_result(answer)
        if rush:
            self._schedule(room)

    def put(self, room: Room, consumers: ConsumerGroup) -> None:
        self._become(room, room.group, consumers)
        self._schedule(room)

    def fits(self, room: Room, group: Group | ConsumerGroup) -> bool:
        """Whether there is memory for what the group would become."""
        is_new = isinstance(group, ConsumerGroup)
        return self.shares.takes(_more(room, *(room.group, group) if is_new else (group, room.consumers)))

    def drop(self, name: str) -> None:
        """Forgets a group. All who wait in it look for its coordinator again."""
        room = self._rooms.pop(name)
        self._become(room, room.group, ConsumerGroup())
        self.take(room, resigned(room.group))
        self.shares.add_group(room.token, -1)
        self.shares.add({room.token: -room.common})
        room.is_dropped = True

    def _become(self, room: Room, group: Group, consumers: ConsumerGroup) -> None:
        if not room.is_dropped:
            self.shares.add(_more(room, group, consumers))
        room.group, room.consumers = group, consumers
        room.common = room.common_with(consumers)

    def _schedule(self, room: Room) -> None:
        due = due_ms(room.group) if room.consumers.is_unused else beats.due_ms(room.consumers)
        if due == room.due_ms:
            return
        if room.timer is not None:
            room.timer.cancel()
        room.due_ms, room.timer = due, None
        if due is not None:
            wait_s = max(0, due - self._clock.monotonic_ms()) / 1000
            room.timer = asyncio.get_running_loop().call_later(wait_s, self._elapse, room)

    def _elapse(self, room: Room) -> None:
        room.timer = room.due_ms = None
        now_ms = self._clock.monotonic_ms()
        self._become(room, room.group, beats.elapsed(room.consumers, room.layout, now_ms))
        self.take(room, elapsed(room.group, now_ms))


def _more(room: Room, group: Group, consumers: ConsumerGroup) -> Sizes:
    """By how much a group becomes larger."""
    return total(
        (
            difference(room.group.members, group.members),
            difference(room.group.pending, group.pending),
            difference(room.consumers.members, consumers.members),
            {room.token: room.common_with(consumers) - room.common},
        )
    )
