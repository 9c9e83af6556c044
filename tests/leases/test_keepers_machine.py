"""Keepers with clocks of their own, that freeze, wake, die and lose their database, in any order.

What is guaranteed, and tested after every step:

- Where clocks go at the same speed, however far apart, never do two believe to hold a lease.
- Where a clock jumped ahead, two may: until the time of a lease after the latest of the two took it,
  and no longer than until both have renewed theirs.
- The cleaners that are left get every lease in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leases.places import TroubledCoordination, down
from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.errors import CoordinationError

LEASE_MS = 30_000
NAMES = ("orders", "payments", "clicks")
KEEPERS = range(3)

keepers = st.sampled_from(KEEPERS)
names = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
spans_ms = st.sampled_from((1, 5_000, LEASE_MS - 1, LEASE_MS))


class Keepers(RuleBasedStateMachine):
    """Frozen ones do nothing, while their clocks go on."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.database = MemoryCoordination()
        self.wires = [TroubledCoordination(self.database) for _ in KEEPERS]
        self.ahead_ms = [0] * len(KEEPERS)
        self.keepers: list[LeaseKeeper] = []
        self.frozen: set[int] = set()
        self.taken_ms: dict[str, int] = {}

    @initialize(ahead_ms=st.lists(st.integers(-600_000, 600_000), min_size=3, max_size=3))
    def start(self, ahead_ms: list[int]) -> None:
        self.ahead_ms = ahead_ms
        self.keepers = [LeaseKeeper(self.wires[k], f"owner{k}", LEASE_MS, self.clock(k)) for k in KEEPERS]

    def clock(self, k: int) -> Callable[[], int]:
        return lambda: self.now_ms + self.ahead_ms[k]

    @rule(ms=spans_ms)
    def time_goes_by(self, ms: int) -> None:
        self.now_ms += ms

    @rule(k=keepers, wanted=names)
    def take(self, k: int, wanted: list[str]) -> None:
        if k not in self.frozen:
            for name in self.keepers[k].take(wanted):
                self.taken_ms[name] = self.now_ms

    @rule(k=keepers)
    def observe(self, k: int) -> None:
        if k not in self.frozen:
            with suppress(CoordinationError):
                self.keepers[k].observe()

    @rule(k=keepers)
    def renew(self, k: int) -> None:
        if k not in self.frozen:
            before = {name for name in NAMES if self.keepers[k].holds(name)}
            lost = self.keepers[k].renew().lost
            assert all(self.keepers[k].lost(name) for name in lost)
            assert all(self.keepers[k].holds(name) for name in before - lost)

    @rule(k=keepers, given_back=names)
    def release(self, k: int, given_back: list[str]) -> None:
        if k not in self.frozen:
            self.keepers[k].release(given_back)
            assert not any(self.keepers[k].holds(name) or self.keepers[k].lost(name) for name in given_back)

    @rule(k=keepers, ms=spans_ms, landed=st.booleans(), what=st.sampled_from(("renew", "observe", "take")))
    def something_takes_long(self, k: int, ms: int, landed: bool, what: str) -> None:
        """It is frozen before the database has done what it asked for, or after; the others go on."""
        if k in self.frozen:
            return
        wire, keeper, begun_ms = self.wires[k], self.keepers[k], self.now_ms
        before, after = wire.before, wire.after

        def freeze(operation: str) -> None:
            wire.before, wire.after = before, after
            self.frozen.add(k)
            self.go_on(list(KEEPERS), ms)
            self.go_on(list(KEEPERS), 0)
            self.frozen.discard(k)
            (after if landed else before)(operation)

        if landed:
            wire.after = freeze
        else:
            wire.before = freeze
        match what:
            case "renew":
                keeper.renew()
            case "observe":
                with suppress(CoordinationError):
                    keeper.observe()
            case _:
                self.taken_ms |= dict.fromkeys(keeper.take(NAMES), begun_ms)
        wire.before, wire.after = before, after

    @rule(k=keepers)
    def freeze(self, k: int) -> None:
        self.frozen.add(k)

    @rule(k=keepers, answers=st.booleans())
    def lose_connection(self, k: int, answers: bool) -> None:
        """What it asks does not arrive; or it does, and the answer does not."""
        if answers:
            self.wires[k].after = down
        else:
            self.wires[k].before = down

    @rule()
    def all_is_well_again(self) -> None:
        self.frozen.clear()
        for wire in self.wires:
            wire.mend()

    @rule(ks=st.lists(keepers, unique=True), ms=spans_ms)
    def go_on(self, ks: list[int], ms: int) -> None:
        """What cleaners do all the time."""
        for k in ks:
            self.renew(k)
            self.observe(k)
            self.take(k, list(NAMES))
        self.now_ms += ms

    def holders(self, name: str) -> list[int]:
        return [k for k in KEEPERS if self.keepers and self.keepers[k].holds(name)]

    @invariant()
    def one_at_most_believes_to_hold_a_lease(self) -> None:
        for name in NAMES:
            assert len(self.holders(name)) <= 1, name

    def teardown(self) -> None:
        """Only one is left, and the database is well: it gets every lease."""
        if not self.keepers:
            return
        left = self.keepers[0]
        self.wires[0].mend()
        left.renew()
        left.observe()
        self.now_ms += LEASE_MS
        left.renew()
        left.observe()
        left.take(NAMES)
        assert all(left.holds(name) for name in NAMES)
        assert {lease.owner for lease in self.database.leases()} == {"owner0"}


class KeepersWithClocksThatJump(Keepers):
    """A machine was asleep, or its clock is broken: it believes that a long time has gone by."""

    @rule(k=keepers, ms=st.integers(1, 600_000))
    def jump(self, k: int, ms: int) -> None:
        self.ahead_ms[k] += ms

    @precondition(lambda self: self.keepers)
    @rule()
    def all_renew(self) -> None:
        for k in KEEPERS:
            self.wires[k].mend()
            self.keepers[k].renew()
        super().one_at_most_believes_to_hold_a_lease()

    @invariant()
    def one_at_most_believes_to_hold_a_lease(self) -> None:
        for name in NAMES:
            assert len(self.holders(name)) <= 1 or self.now_ms - self.taken_ms[name] < LEASE_MS, name


Keepers.TestCase.settings = KeepersWithClocksThatJump.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40
)
TestKeepers = Keepers.TestCase
TestKeepersWithClocksThatJump = KeepersWithClocksThatJump.TestCase
