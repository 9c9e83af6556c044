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
from lithify.kafka_server.groups.modern.group import ConsumerGroup, Layout
from lithify.ports.clock import Clock

MOST_GROUPS = 2_000
"""With members, at one gateway."""


class Room:
    """One group. `lock` is held while the database is asked for it, so that commits keep the order of generations.

    Its members are all of the classic protocol, or all of the newer one.
    """

    def __init__(self) -> None:
        self.group = Group()
        self.consumers = ConsumerGroup()
        self.layout: Layout = {}
        """The topics that are served, as they were known at `layout_ms`."""
        self.layout_ms = 0
        self.lock = asyncio.Lock()
        self.used_ms = 0
        """When offsets were last committed by someone who is not a member."""
        self.timer: asyncio.TimerHandle | None = None
        self.due_ms: int | None = None

    @property
    def is_unused(self) -> bool:
        return self.group.is_unused and self.consumers.is_unused


class Rooms:
    """The groups by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rooms: dict[str, Room] = {}
        self._waiting: dict[int, asyncio.Future[Joined | Synced]] = {}
        self._tickets = count(1)

    def __iter__(self) -> Iterator[tuple[str, Room]]:
        return iter(list(self._rooms.items()))

    def __len__(self) -> int:
        return len(self._rooms)

    def get(self, group: str) -> Room | None:
        return self._rooms.get(group)

    def made(self, group: str) -> Room:
        return self._rooms.setdefault(group, Room())

    def ticket(self) -> tuple[int, asyncio.Future[Joined | Synced]]:
        """A ticket for a request, and what is answered to it."""
        number = next(self._tickets)
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        return number, answer

    def take(self, room: Room, step: Step, *, rush: bool = True) -> None:
        """A step was taken. Without `rush` nothing is due earlier than before."""
        room.group = step.group
        for number, answer in step.answers:
            waiting = self._waiting.pop(number)
            if not waiting.done():  # else its connection is gone
                waiting.set_result(answer)
        if rush:
            self._schedule(room)

    def put(self, room: Room, consumers: ConsumerGroup) -> None:
        room.consumers = consumers
        self._schedule(room)

    def drop(self, name: str) -> None:
        """Forgets a group. All who wait in it look for its coordinator again."""
        room = self._rooms.pop(name)
        room.consumers = ConsumerGroup()
        self.take(room, resigned(room.group))

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
        room.consumers = beats.elapsed(room.consumers, room.layout, self._clock.monotonic_ms())
        self.take(room, elapsed(room.group, self._clock.monotonic_ms()))
