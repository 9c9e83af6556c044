"""A member of a group: it shows that it is there, and holds the leases of the partitions that it reads.

    thread     renews its leases a few times in each lease, and looks at those of the others once a second
    reader     calls `turn` between records: takes what is free, gives up what is more than its share

The thread never takes a partition and never gives one up: only the reader knows what it has returned and not
committed. If the reader is not used for `IDLE_MS`, the thread renews no more, so that a program that hangs
does not keep its partitions.
"""

from __future__ import annotations

from collections.abc import Collection
from threading import Event, Thread

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.errors import CoordinationError
from lithify.errors.defects import as_lithify_error
from lithify.model.groups.positions import GroupTopic
from lithify.model.groups.sharing import Turn, next_turn
from lithify.ports.clock import Clock
from lithify.ports.groups import Groups

LEASE_MS = 30_000
"""Default time without a renewal after which others take over."""
RENEWALS_PER_LEASE = 6
RENEW_MS = 5_000
"""The longest time between two renewals, so that others soon see that a member is there, however long its lease."""
LOOKS_PER_LEASE = 10
LOOK_MS = 1_000
"""The longest time between two checks of the leases of the others."""
IDLE_MS = 300_000
"""As Kafka's `max.poll.interval.ms`."""
JOIN_S = 1.0
"""How long `leave` waits for the thread to end."""


class Member:
    """One member. `member_id` is unique among all members, past ones included. One thread uses it.

    One that does not share is not counted by the others, and keeps all that it has taken.
    """

    def __init__(
        self,
        groups: Groups,
        part: GroupTopic,
        member_id: str,
        lease_ms: int,
        clock: Clock,
        *,
        shares: bool = True,
    ) -> None:
        self.groups, self.part, self.member_id, self.lease_ms = groups, part, member_id, lease_ms
        self.looks = 0
        """How often the leases were checked: without a new check `turn` does not change."""
        self._clock = clock
        self._keeper = LeaseKeeper(groups.leases, member_id, lease_ms, clock.monotonic_ms, part.prefix)
        self._names = frozenset({part.member(member_id)} if shares else ())
        self._renewed_ms = self._used_ms = clock.monotonic_ms()
        self._error: Exception | None = None
        self._left = Event()
        self._thread = Thread(target=self._until_left, daemon=True)

    def join(self) -> None:
        """Becomes a member. Raises `CoordinationError`."""
        self._look()
        self._thread.start()

    def leave(self) -> None:
        """Gives up everything at once, so that no other member has to wait."""
        self._left.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
        self._keeper.leave()

    def use(self) -> None:
        """Says that the reader is used. Raises what has ended the thread, `CoordinationError` while it holds nothing
        because the database cannot be used."""
        self._used_ms = self._clock.monotonic_ms()
        match self._error:
            case None:
                return
            case CoordinationError() as error:
                if not all(map(self._keeper.holds, self._names)):
                    raise error
            case error:
                raise as_lithify_error(error, "a member of a group")

    def holds(self, partition: int) -> bool:
        """Whether it certainly holds the lease of a partition."""
        return self._keeper.holds(self.part.partition(partition))

    def turn(self, partitions: int, mine: Collection[int]) -> Turn:
        """What to take and to give up, as of the last look."""
        holders, members = dict.fromkeys(mine, self.member_id), set()
        watched = self._keeper.watched()
        heard = {lease.owner for lease in watched.values() if lease.renewed}
        for name, lease in watched.items():
            match self.part.read(name) if lease.left_ms > 0 else None:
                case int(partition):
                    holders[partition] = lease.owner
                case str(member):
                    members.add(member)
        silent = {*holders.values()} - heard - {self.member_id}
        return next_turn(self.member_id, partitions, holders, members, silent)

    def take(self, partitions: Collection[int]) -> list[int]:
        """Tries to take partitions; returns those taken."""
        names = {self.part.partition(partition): partition for partition in partitions}
        return sorted(names[name] for name in self._keeper.take(names))

    def give_up(self, partitions: Collection[int]) -> None:
        self._keeper.release([self.part.partition(partition) for partition in partitions])

    def rival(self, partition: int) -> str | None:
        """Another member that certainly holds a partition."""
        lease = self._keeper.watched().get(self.part.partition(partition))
        return lease.owner if lease is not None and lease.renewed and lease.left_ms > 0 else None

    def beat(self) -> None:
        """Renews its leases, when it is time, and checks the others' leases. Its thread does it all the time."""
        if self._clock.monotonic_ms() - self._used_ms > IDLE_MS:
            return
        try:
            self._renew()
            self._look()
            self._error = None
        except CoordinationError as error:
            self._error = error

    def _until_left(self) -> None:
        look_s = min(LOOK_MS, self.lease_ms / LOOKS_PER_LEASE) / 1000
        while not self._left.wait(look_s):
            try:
                self.beat()
            except Exception as error:  # a defect: the reader raises it
                self._error = error
                return

    def _renew(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._renewed_ms < min(RENEW_MS, self.lease_ms / RENEWALS_PER_LEASE):
            return
        error = self._keeper.renew().error
        if error is not None:
            raise error
        self._renewed_ms = now_ms

    def _look(self) -> None:
        self._keeper.observe()
        lost = [name for name in self._names if not self._keeper.holds(name)]
        self._keeper.release(lost)
        self._keeper.take(lost)
        self.looks += 1
