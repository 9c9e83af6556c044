"""The leases of one process, a cleaner or a member of a group: what it holds, may take over, and may have lost.

    renewal     ├──────────┤ commits somewhere in here
    holds       ├───────────── lease ─────────────┤ until here, unless it is renewed
    a watcher              sees it ├───────────── lease ─────────────┤ takes it over from here on

The owner counts from before its renewal, a watcher from after it first saw it, each by its own
monotonic clock. Their times are never compared. So if the clocks run at the same speed, two processes
never hold a lease at once. If a watcher's clock jumped ahead, both hold it until the owner's next
successful renewal or the end of its lease time. What a round or a group commits does not depend on it (C44, C58).

Every write has a number of its own (`ports/leases.py`). Methods wait for the database only, without
the lock: meanwhile the names of the request are `busy`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from lithify.coordination.leases.outcomes import Refused, Registered, Registration, Renewal, Waiting, Watched
from lithify.errors import CoordinationError, RefusedError
from lithify.ports.leases import Coordination, Lease

GONE_LEASES = 10
"""A lease is removed after this many lease times without a renewal; an owner that resumes then has lost it."""
REMOVED_AT_ONCE = 5_000

CLEANER = "cleaner:"
"""Prefix of the name of the lease that a running cleaner holds for its id."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lease, since when it was not renewed, and whether this process has seen a renewal of it."""

    lease: Lease
    since_ms: int
    moved: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A lease that this cleaner holds, as of one write; each write makes a new object, so `is` compares writes."""

    begun_ms: int
    """A time before its latest successful write."""


class LeaseKeeper:
    """Several threads may use it; one of them calls `renew` and `observe` several times in a lease time.

    `owner` is unique among all processes, past ones included. The caller chooses the names of leases; it takes and
    checks only names that begin with `prefix`.
    """

    def __init__(
        self, coordination: Coordination, owner: str, lease_ms: int, monotonic: Callable[[], int], prefix: str = ""
    ) -> None:
        self._coordination = coordination
        self._owner = owner
        self._lease_ms = lease_ms
        self._monotonic = monotonic
        self._prefix = prefix
        self._lock = Lock()
        self._number = 0
        self._seen: dict[str, _Seen] = {}
        self._held: dict[str, _Held] = {}
        self._lost: set[str] = set()
        self._busy: set[str] = set()
        self._registration: str | None = None

    def register(self, cleaner_id: str) -> Registration:
        """Takes the lease of a cleaner's id. Call it until it no longer returns `Waiting`.

        Raises `CoordinationError`.
        """
        name = f"{CLEANER}{cleaner_id}"
        self.observe()
        with self._lock:
            seen = self._seen.get(name)
            left_ms = self._left_ms(seen)
        if seen is not None and left_ms > 0:
            return Refused(_running(cleaner_id, seen.lease.owner)) if seen.moved else Waiting(left_ms)
        if not self._claim([name]):
            return Waiting(0)  # another cleaner took it first; the next call sees it
        with self._lock:
            self._registration = name
        return Registered()

    def observe(self) -> None:
        """Reads the leases, notes since when each was not renewed, and removes those not renewed for long.

        Raises `CoordinationError`.
        """
        leases = self._coordination.leases(self._prefix)
        with self._lock:
            # After the read: with an earlier time a lease that was renewed meanwhile would seem older.
            now_ms = self._monotonic()
            self._seen = {lease.name: _next_sight(self._seen.get(lease.name), lease, now_ms) for lease in leases}
            gone = [seen.lease for name, seen in self._seen.items() if self._is_gone(name, seen)][:REMOVED_AT_ONCE]
        if gone:
            self._coordination.remove(gone)

    def _is_gone(self, name: str, seen: _Seen) -> bool:
        """Whether its owner has ended: leases that no other cleaner takes, such as ids, would remain for ever."""
        return self._is_free(name) and self._left_ms(seen) <= -(GONE_LEASES - 1) * self._lease_ms

    def take(self, names: Collection[str]) -> frozenset[str]:
        """Takes leases that are free or that their owners do not renew; returns those taken.

        Leases that this cleaner holds already are not among them, as another thread uses them. If the
        database cannot be reached, none is taken, and the next `renew` returns the error.
        """
        try:
            return self._claim(names)
        except CoordinationError:
            return frozenset()  # if the write was committed nevertheless, `renew` finds and releases it

    def renew(self) -> Renewal:
        """Renews all leases held. An unreachable database is an `error` in the result, not an exception."""
        with self._lock:
            before, begun_ms, number = dict(self._held), self._monotonic(), self._next_number()
        try:
            renewed = self._coordination.renew(self._owner, number)
        except CoordinationError as error:
            return Renewal(lost=self._lose_doubtful(), error=error)
        lost, unheld = self._note_renewal(before, renewed, begun_ms)
        try:
            self._give_back(unheld)
            replaced_by = None
            if self._registration is not None and self._registration not in renewed:
                replaced_by = self._register_again(self._registration)
        except CoordinationError as error:
            return Renewal(lost=lost, error=error)
        return Renewal(lost=lost, replaced_by=replaced_by)

    def holds(self, name: str) -> bool:
        """Whether this cleaner certainly holds it. Without the database; False `lease_ms` after the last renewal."""
        return self.held_until_ms(name) is not None

    def held_until_ms(self, name: str) -> int | None:
        """Until when this process certainly holds it, by its monotonic clock; None if it does not."""
        with self._lock:
            held = self._held.get(name)
            return None if held is None or self._doubtful(held) else held.begun_ms + self._lease_ms

    def held(self) -> int:
        """How many this process certainly holds, as `holds` has it."""
        with self._lock:
            return sum(not self._doubtful(held) for held in self._held.values())

    def watched(self) -> dict[str, Watched]:
        """The leases of other processes, by name, as of the last `observe`."""
        with self._lock:
            return {
                name: Watched(seen.lease.owner, self._left_ms(seen), seen.moved)
                for name, seen in self._seen.items()
                if seen.lease.owner != self._owner
            }

    def other_cleaners(self) -> frozenset[str]:
        """The ids of the other running cleaners: those that renewed the lease of their id in time."""
        return frozenset(
            name.removeprefix(CLEANER)
            for name, lease in self.watched().items()
            if name.startswith(CLEANER) and lease.left_ms > 0
        )

    def cleaners(self) -> int:
        """The number of running cleaners, this one included."""
        return 1 + len(self.other_cleaners())

    def lost(self, name: str) -> bool:
        """Whether this cleaner held it and has certainly lost it; False again once it is released or retaken."""
        with self._lock:
            return name in self._lost

    def release(self, names: Collection[str]) -> None:
        """Releases leases. If the database cannot be reached, the next `renew` releases them, or they expire."""
        with self._lock:
            self._lost.difference_update(names)
            ours = {name for name in names if self._held.pop(name, None) is not None}
            self._busy |= ours
        with suppress(CoordinationError):
            self._give_back(ours)

    def leave(self) -> None:
        """Releases all leases, including the id's, so that no other cleaner has to wait. After the last renewal."""
        with self._lock:
            self._registration = None
            names = tuple(self._held)
        self.release(names)

    def _claim(self, names: Iterable[str]) -> frozenset[str]:
        """Tries to take leases; returns those taken. Raises `CoordinationError`."""
        with self._lock:
            free = {name for name in names if self._is_free(name)}
            if not free:
                return frozenset()
            self._busy |= free
            seen = {name: self._seen[name].lease for name in free if name in self._seen}
            begun_ms, number = self._monotonic(), self._next_number()
        taken: frozenset[str] = frozenset()
        try:
            taken = self._coordination.take([Lease(name, self._owner, number) for name in free], seen)
        finally:
            with self._lock:
                self._busy -= free
                self._lost -= taken
                self._held |= dict.fromkeys(taken, _Held(begun_ms))
        return taken

    def _is_free(self, name: str) -> bool:
        return name not in self._held and name not in self._busy and self._left_ms(self._seen.get(name)) <= 0

    def _note_renewal(
        self, before: dict[str, _Held], renewed: frozenset[str], begun_ms: int
    ) -> tuple[frozenset[str], set[str]]:
        """Leases that were lost, and leases in the database under this owner that it does not know of, now busy."""
        with self._lock:
            # The answer says nothing about leases that were taken or released during the request.
            unchanged = [name for name, held in before.items() if self._held.get(name) is held]
            for name in renewed.intersection(unchanged):
                self._held[name] = _Held(begun_ms)
            lost = self._lose(name for name in unchanged if name not in renewed)
            unheld = set(renewed - self._held.keys() - self._busy)
            self._busy |= unheld
        return lost, unheld

    def _lose_doubtful(self) -> frozenset[str]:
        with self._lock:
            return self._lose([name for name, held in self._held.items() if self._doubtful(held)])

    def _lose(self, names: Iterable[str]) -> frozenset[str]:
        lost = frozenset(names) - {self._registration}
        for name in lost:
            del self._held[name]
        self._lost |= lost
        return lost

    def _give_back(self, names: set[str]) -> None:
        """Releases leases that are busy. Raises `CoordinationError`."""
        try:
            if names:
                self._coordination.release(self._owner, names)
        finally:
            with self._lock:
                for name in names:
                    self._seen.pop(name, None)
                self._busy -= names

    def _register_again(self, name: str) -> str | None:
        """After the lease of the id was lost: returns its new owner; if it has none, takes it again."""
        for lease in self._coordination.leases(name):
            if lease.name == name and lease.owner != self._owner:
                return lease.owner
        with self._lock:
            lease = Lease(name, self._owner, self._next_number())
        self._coordination.take([lease], {})  # if another cleaner takes it first, the next renewal finds that
        return None

    def _left_ms(self, seen: _Seen | None) -> int:
        """Ms until a lease can be taken; 0 or less if it can be now."""
        if seen is None or seen.lease.owner == self._owner:
            return 0
        return self._lease_ms - (self._monotonic() - seen.since_ms)

    def _doubtful(self, held: _Held) -> bool:
        return self._monotonic() - held.begun_ms >= self._lease_ms

    def _next_number(self) -> int:
        self._number += 1
        return self._number


def _next_sight(before: _Seen | None, lease: Lease, now_ms: int) -> _Seen:
    if before is None:
        return _Seen(lease, now_ms, moved=False)
    return before if before.lease == lease else _Seen(lease, now_ms, moved=True)


def _running(cleaner_id: str, owner: str) -> RefusedError:
    return RefusedError(
        f"another cleaner with the id {cleaner_id} is running (owner {owner})",
        hint="start this one under another name: --id of a cleaner, --name of a gateway",
    )
