"""A chore of the gateway: it forgets the idempotency keys of old appends, a little at a time (C75)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.daemons.stop import Stop
from lithify.errors import LithifyError
from lithify.gateway.appends.forgetting import forget_old
from lithify.ports.clock import ahead_ms
from lithify.ports.store import Warehouse

EVERY_S = 300.0
CALLS = 50
"""At most, each time: with 2,000 notes a call, that is 100,000 keys in five minutes. The rest is for the next time."""


@dataclass(slots=True)
class ForgettingKeys:
    """Runs on a thread until the gateway is stopped. All gateways of a warehouse may do so at once.

    A clock that jumps ahead while the gateway runs has nothing forgotten: that could not be undone, and all gateways
    would refuse keys until it is that late. One that is set right by a jump only keeps keys for longer.
    """

    warehouse: Warehouse
    notes: SqlAppendNotes
    stop: Stop
    every_s: float = EVERY_S
    _ahead_ms: int = field(init=False)
    """The clock when the gateway began, before the one that only goes forward."""

    def __post_init__(self) -> None:
        self._ahead_ms = ahead_ms(self.warehouse.clock)

    def run(self) -> None:
        while not self.stop.asked.wait(self.every_s):
            with suppress(LithifyError):  # as of a database that is away: the next time tries again
                self.once()

    def once(self) -> None:
        """Forgets what is old now, up to `CALLS` times some of it."""
        clock = self.warehouse.clock
        now_ms = clock.monotonic_ms() + min(ahead_ms(clock), self._ahead_ms)
        for _ in range(CALLS):
            if not forget_old(self.warehouse, self.notes, now_ms) or self.stop.asked.is_set():
                return
