"""The groups that this gateway coordinates, for as long as it does.

    request ──► is this the gateway for the group? ──► does it hold its lease? ──► the room of the group
                heaviest of the live ones              (`tenure.py`)

Once a second it checks which gateways are there, and gives up the groups that are another one's now. Members are known
to it alone: after that they join again there, and continue at the committed offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from lithify.errors import CoordinationError, InvalidNameError, LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Place
from lithify.kafka_server.groups.gateways import Gateways
from lithify.kafka_server.groups.offsets import Offsets, Topics
from lithify.kafka_server.groups.ranking import Gateway, heaviest
from lithify.kafka_server.groups.rooms import Room, Rooms
from lithify.kafka_server.groups.shares import Token
from lithify.kafka_server.groups.tenure import Others, Tenure
from lithify.model.names import checked_group
from lithify.ports.clock import Clock
from lithify.ports.groups import Groups
from lithify.ports.leases import Coordination

LOGGER = logging.getLogger(__name__)
BEAT_S = 1.0
FREE_MS = 5_000
"""How long partitions stay this gateway's after a commit by someone who is not a member."""
WORKERS = 4
PAUSE = 20
"""Times as long as a check of the catalog takes, so that checks take few per cent of a processor."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shared:
    """What gateways share in a database: the lake's groups, and the leases of those that serve Kafka's clients."""

    groups: Groups
    gateways: Coordination
    told: Callable[[bool], None] = lambda _has_another: None
    """Gets, about once a second, whether another gateway that runs has the same address. A thread calls it."""


class Seat:
    """For one event loop, on which it runs while it is entered. `own` is the address that clients know."""

    def __init__(
        self,
        cluster_id: str,
        own: Gateway,
        shared: Shared,
        topics: Topics,
        clock: Clock,
        tell: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        """`tell` gets why a member was refused for want of room."""
        owner = clock.new_id()
        self._tell = tell
        self.cluster_id = cluster_id
        self._own, self._topics, self._clock = own, topics, clock
        prefix = f"{shared.groups.scope}/"
        self._gateways = Gateways(own, shared.gateways, prefix, owner, clock, told=shared.told)
        self._tenure = Tenure(shared.groups, owner, clock)
        self._offsets = Offsets(shared.groups, topics, self._tenure, clock)
        self._rooms = Rooms(clock)
        self._is_open, self._check_from_ms = False, 0
        self._failed: set[str] = set()
        """Why the last beat could not renew leases."""
        self._workers = ThreadPoolExecutor(WORKERS, "groups")
        self._beats = ThreadPoolExecutor(1, "leases")
        self._running: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._looked()
        self._is_open = True
        self._running = [asyncio.create_task(self._each_second(what)) for what in (self._beat, self._follow_topics)]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Gives everything up, so that no other gateway has to wait."""
        self._is_open = False
        for task in self._running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for name, _room in self._rooms:
            self._rooms.drop(name)
        await self._on(self._beats, self._tenure.leave)
        await self._on(self._beats, self._gateways.leave)
        self._workers.shutdown(wait=False)
        self._beats.shutdown(wait=False)

    def gateways(self) -> tuple[Gateway, ...]:
        """The live ones, this one included, in the order of their addresses."""
        return self._gateways.live

    def leader_of(self, topic_id: bytes, partition: int) -> Gateway:
        return heaviest(f"partition {topic_id.hex()} {partition}", self._gateways.live)

    def coordinator_of(self, group: str) -> Gateway:
        return heaviest(f"group {group}", self._gateways.live)

    def _checked(self, group: str) -> Code:
        """Whether this is the gateway for a group of that name."""
        try:
            checked_group(group)
        except InvalidNameError:
            return Code.INVALID_GROUP_ID
        if not self._is_open:
            return Code.COORDINATOR_NOT_AVAILABLE
        return Code.NONE if self.coordinator_of(group) == self._own else Code.NOT_COORDINATOR

    def _known(self, group: str) -> Room | Code:
        """A group that has members here."""
        if (code := self._checked(group)) is not Code.NONE:
            return code
        room = self._rooms.get(group)
        if room is None or not self._tenure.holds(group):
            return Code.UNKNOWN_MEMBER_ID if room is None else Code.NOT_COORDINATOR
        return room

    async def _entered(self, group: str, token: Token) -> Room | Code:
        """A group, new or not, that this gateway coordinates from now on."""
        if (code := self._checked(group)) is not Code.NONE:
            return code
        if self._rooms.get(group) is None and not self._rooms.shares.takes_group(token):
            return self._full("groups")
        room = self._rooms.made(group, token)
        if self._tenure.holds(group):
            return room
        async with room.lock:
            if self._rooms.get(group) is not room:
                return Code.COORDINATOR_LOAD_IN_PROGRESS
            if not room.is_unused and not self._tenure.holds(group):  # others may have joined elsewhere meanwhile
                await self._give_up(group)
                return Code.NOT_COORDINATOR
            is_ours = await self._asked(lambda: self._tenure.acquire(group))
        if isinstance(is_ours, Code):
            return is_ours
        return room if is_ours and self._rooms.get(group) is room else Code.COORDINATOR_LOAD_IN_PROGRESS

    def _full(self, of: str) -> Code:
        self._tell(f"a member of a group of Kafka's clients was refused: there are as many {of} as this gateway takes")
        return Code.GROUP_MAX_SIZE_REACHED

    async def _refusal(self, group: str) -> Code:
        """Why nobody can join: members read with Lithify, and share partitions in another way."""
        if self._tenure.others(group) is not Others.NONE:
            await self._asked(self._tenure.look)  # they may have left since the last one
        match self._tenure.others(group):
            case Others.SOME:
                return Code.INCONSISTENT_GROUP_PROTOCOL
            case Others.PERHAPS:
                return Code.COORDINATOR_LOAD_IN_PROGRESS
            case Others.NONE:
                return Code.NONE

    async def _hold(self, group: str, room: Room, places: Collection[Place]) -> bool:
        async with room.lock:
            if self._rooms.get(group) is not room:  # nobody would give the leases up
                return False
            if await self._asked(lambda: self._offsets.hold(group, places)) is True:
                return True
            await self._asked(self._tenure.look)
        return False

    async def _each_second(self, what: Callable[[], Awaitable[None]]) -> None:
        """Without an end: a defect ends one turn alone, as no other gateway would notice. The same one is told once."""
        told = ""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await what()
            except Exception as error:
                text = str(as_lithify_error(error, "groups of Kafka's clients"))
                if text != told:
                    LOGGER.error("%s", text)
                told = text

    async def _beat(self) -> None:
        await self._looked()
        for name, room in self._rooms:
            await self._tidied(name, room)

    async def _follow_topics(self) -> None:
        """What members are assigned follows the topics. Beside the beats, as a catalog may answer late."""
        await self._check_commits()
        for _, room in self._rooms:
            await self._refreshed(room)

    async def _check_commits(self) -> None:
        """What was committed is compared with later versions of the logs, by one check of the catalog (C49)."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._check_from_ms:
            return
        began = self._tenure.take_unchecked()
        logs = {log for cursors in began.values() for log in cursors}
        states = await self._asked(lambda: self._offsets.look_anew(logs)) if logs else {}
        self._check_from_ms = now_ms + PAUSE * (self._clock.monotonic_ms() - now_ms)
        for name, cursors in began.items():
            if isinstance(states, Code):
                self._tenure.note_unchecked(name, cursors)
            elif (room := self._rooms.get(name)) is not None:
                async with room.lock:
                    await self._asked(partial(self._offsets.check, name, cursors, states))

    async def _refreshed(self, room: Room) -> None:
        """Only the newer protocol needs it: members of the other one do it themselves."""

    async def _looked(self) -> None:
        """Renews its leases, and checks which leases others hold. What fails is tried again at the next beat."""
        failed = set()
        for look in (self._gateways.look, self._tenure.beat):
            try:
                await self._on(self._beats, look)
            except CoordinationError as error:
                failed.add(str(error))
        for text in failed - self._failed:  # a beat comes each second, and an outage may last for hours
            LOGGER.warning("leases for Kafka's clients cannot be renewed: %s", text)
        self._failed = failed

    async def _tidied(self, name: str, room: Room) -> None:
        """Gives up a group that is another gateway's now, and frees partitions that nobody reads any more."""
        if room.lock.locked() or self._rooms.get(name) is not room:  # a request has given it up meanwhile
            return
        async with room.lock:
            is_idle = room.is_unused and self._clock.monotonic_ms() - room.used_ms >= FREE_MS
            if is_idle or self._checked(name) is not Code.NONE or not self._tenure.holds(name):
                await self._give_up(name)

    async def _give_up(self, name: str) -> None:
        """Its members join again, here or elsewhere. With the lock of its room."""
        self._rooms.drop(name)
        await self._on(self._beats, lambda: self._tenure.give_up(name))

    async def _asked(self, does: Callable[[], T]) -> T | Code:
        """What the database and the catalog say; a code while they cannot be used."""
        try:
            return await self._on(self._workers, does)
        except LithifyError as error:
            LOGGER.warning("groups of Kafka's clients: %s", error)
            return Code.COORDINATOR_NOT_AVAILABLE

    async def _on(self, threads: ThreadPoolExecutor, does: Callable[..., T], *given: object) -> T:
        """On a thread. If the client leaves meanwhile, it is waited for nevertheless: who holds a lock keeps it."""
        done = asyncio.get_running_loop().run_in_executor(threads, does, *given)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            done.exception()
            raise
