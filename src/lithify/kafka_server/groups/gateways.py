"""The gateways that serve Kafka's clients of one warehouse, as each of them sees it.

Each holds a lease whose name has its address, SCOPE/HOST:PORT/OWNER. One that does not renew it is no longer there for
the others after `LEASE_MS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.outcomes import Watched
from lithify.kafka_server.groups.ranking import Gateway
from lithify.ports.clock import Clock
from lithify.ports.leases import Coordination

LEASE_MS = 15_000
"""After this time without a renewal another gateway takes over. Members of groups are told after `session.timeout.ms`,
by default 45 s, that they are gone: so they do not notice if they find the new coordinator before."""
RENEW_MS = LEASE_MS // 6


class Gateways:
    """For one thread at a time, except `live`, which any may read.

    `told` gets whether another gateway that runs has the same address, at each look.
    """

    def __init__(
        self,
        own: Gateway,
        leases: Coordination,
        prefix: str,
        owner: str,
        clock: Clock,
        *,
        told: Callable[[bool], None] = lambda _has_another: None,
    ) -> None:
        self.live: tuple[Gateway, ...] = (own,)
        """Sorted, with its own."""
        self._own, self._prefix, self._clock = own, prefix, clock
        self._name = f"{prefix}{own.host}:{own.port}/{owner}"
        self._keeper = LeaseKeeper(leases, owner, LEASE_MS, clock.monotonic_ms, prefix)
        self._renewed_ms = clock.monotonic_ms()
        self._told = told

    def look(self) -> None:
        """Renews its own lease when it is time, and looks who else is there. Raises `CoordinationError`."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._renewed_ms >= RENEW_MS:
            self._renewed_ms = now_ms
            self._keeper.renew()
        self._keeper.observe()
        self._keeper.take([self._name])  # the first time, and after it was lost
        others = self._others(self._keeper.watched())
        self.live = tuple(sorted({self._own, *(gateway for _, gateway in others)}))
        self._told(self._has_another(others))

    def _others(self, watched: Mapping[str, Watched]) -> list[tuple[Watched, Gateway]]:
        alive = ((lease, _gateway(n.removeprefix(self._prefix))) for n, lease in watched.items() if lease.left_ms > 0)
        return [(lease, gateway) for lease, gateway in alive if gateway is not None]

    def _has_another(self, others: Sequence[tuple[Watched, Gateway]]) -> bool:
        """Whether another one with its own address runs: one that was killed does not renew its lease."""
        return any(gateway == self._own and lease.renewed for lease, gateway in others)

    def leave(self) -> None:
        """The others need not wait for its lease to end."""
        self._keeper.leave()


def _gateway(name: str) -> Gateway | None:
    host, _, port = name.rpartition("/")[0].rpartition(":")
    return Gateway(host, int(port)) if host and port.isdecimal() else None
