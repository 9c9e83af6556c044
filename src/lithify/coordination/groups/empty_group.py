"""What is done to the positions of a group while it has no members: reset and delete (C58).

Leases show whether a member is there only while it renews them: one that is there is seen within seconds, one that
has died is known to be dead after the time of a lease. The leases of all partitions are taken then, so that no
member begins at the old positions meanwhile, and one that stalled cannot commit afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.outcomes import Watched
from lithify.errors import ConflictError, RefusedError
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId
from lithify.ports.clock import Clock
from lithify.ports.groups import Groups

LOOK_S = 0.5
TURNS = 5
"""Tries to take leases without a holder, before others are said to be faster."""

TellWait = Callable[[str, int], None]
"""Gets what is waited for, and how long at most, in ms."""


def reset(empty: EmptyGroup, part: GroupTopic, positions: Collection[Position]) -> None:
    """Replaces positions of a group that has no members. Raises `RefusedError` or `ConflictError`."""
    partitions = [position.log.partition for position in positions]
    with empty.holding(part, partitions):
        _check_stored(part, empty.groups.reset(tuple(positions), empty.owner))


def delete(empty: EmptyGroup, part: GroupTopic, partitions: Collection[int]) -> None:
    """Deletes positions of a group that has no members. Raises `RefusedError` or `ConflictError`."""
    logs = [LogId(part.topic, partition) for partition in partitions]
    with empty.holding(part, partitions):
        _check_stored(part, empty.groups.delete(part.group, logs, empty.owner))


class EmptyGroup:
    """Makes sure that no other member is in a group. `owner` is as unique as the id of a member."""

    def __init__(self, groups: Groups, owner: str, lease_ms: int, clock: Clock, tell: TellWait) -> None:
        self.groups, self.owner = groups, owner
        self._lease_ms, self._clock, self._tell = lease_ms, clock, tell

    @contextmanager
    def holding(self, part: GroupTopic, partitions: Collection[int]) -> Iterator[None]:
        """Holds the leases of all these partitions. Raises `RefusedError` if a member is there."""
        keeper = LeaseKeeper(self.groups.leases, self.owner, self._lease_ms, self._clock.monotonic_ms, part.prefix)
        names = {part.partition(partition) for partition in partitions}
        try:
            self._take(keeper, part, names)
            yield
        finally:
            keeper.leave()

    def _take(self, keeper: LeaseKeeper, part: GroupTopic, names: Collection[str]) -> None:
        left, is_announced = set(names), False
        for _ in range(TURNS):
            while waits := self._others(keeper, part):
                if not is_announced:
                    self._tell(f"whether {waits[0].owner} is still running", max(lease.left_ms for lease in waits))
                    is_announced = True
                self._clock.sleep(LOOK_S)
            left -= keeper.take(left)
            if not left:
                return
        raise ConflictError(
            f"group {part.group}: new members keep starting on {part.topic}", hint="stop them, then try again"
        )

    def _others(self, keeper: LeaseKeeper, part: GroupTopic) -> list[Watched]:
        """Leases of members that may have died. Raises `RefusedError` for a living one."""
        keeper.observe()
        others = [
            lease for name, lease in keeper.watched().items() if part.read(name) is not None and lease.left_ms > 0
        ]
        for lease in others:
            if lease.renewed:
                raise RefusedError(
                    f"group {part.group} has members that read {part.topic}, such as {lease.owner}",
                    hint="stop them first: positions can be changed only while no member reads",
                )
        return others


def _check_stored(part: GroupTopic, refused: Collection[LogId]) -> None:
    if refused:
        raise ConflictError(f"group {part.group}: a member has taken over {min(refused)} meanwhile", hint="try again")
