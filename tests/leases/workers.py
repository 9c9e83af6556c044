"""What processes of their own do with leases: started by spawn, so they share nothing but the database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.sql_coordination import open_coordination
from lithify.ports.leases import Lease

TIMEOUT_S = 120.0


def race(barrier: Barrier, url: str, owner: str, rounds: Sequence[Sequence[str]]) -> list[list[str]]:
    """Opens a database that has no table yet; in each round, takes what it can get of the names."""
    barrier.wait(TIMEOUT_S)
    coordination = open_coordination(url)
    won = []
    for beats, names in enumerate(rounds, 1):
        barrier.wait(TIMEOUT_S)
        seen = {lease.name: lease for lease in coordination.leases()}
        barrier.wait(TIMEOUT_S)
        won.append(sorted(coordination.take([Lease(name, owner, beats) for name in names], seen)))
    return won


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def keep(pipe: Connection, url: str, owner: str, lease_ms: int) -> None:
    """Takes the lease `orders`, renews it and says so, until the lease is lost."""
    keeper = LeaseKeeper(open_coordination(url), owner, lease_ms, monotonic_ms)
    keeper.observe()
    pipe.send(("taken", sorted(keeper.take(["orders"]))))
    while not keeper.lost("orders"):
        time.sleep(lease_ms / 20_000)
        if keeper.holds("orders"):
            keeper.renew()
        else:
            pipe.send(("doubts", sorted(keeper.renew().lost)))
    pipe.send(("over", []))
