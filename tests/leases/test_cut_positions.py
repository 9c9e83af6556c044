"""Positions over a wire to PostgreSQL that is cut at every request and every answer of a transaction (C58)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from leases.test_groups import ALPHA, BETA, ORDERS, SCOPE, at
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.errors import CoordinationError
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId
from lithify.ports.leases import Lease
from support.servers.postgres import Postgres
from support.servers.tcp_proxy import TcpProxy

NAMES = [GroupTopic(SCOPE, "g", ORDERS).partition(n) for n in (0, 1)]


@pytest.fixture
def direct(server: Postgres, database: str) -> SqlGroups:
    groups = SqlGroups(Transactions(engine_at(server.uri(database))), SCOPE)
    groups.leases.take([Lease(name, ALPHA, 1) for name in NAMES], {})
    assert groups.commit([at(1), at(1, 1)], ALPHA) == frozenset()
    return groups


@pytest.fixture
def cut_off(server: Postgres, database: str, wire: TcpProxy) -> Callable[[], SqlGroups]:
    """A new process of the same group, whose connections go over the wire."""
    url = server.uri(database).replace(f":{server.port}/", f":{wire.port}/")
    return lambda: SqlGroups(Transactions(engine_at(url)), SCOPE)


def struck(wire: TcpProxy, what: str, tries: int) -> Iterator[list[int]]:
    """Cuts the n-th chunk, and as many transactions as `tries` says, for every n until one gets through whole."""
    for number in count(1):
        seen, cuts = [0], [tries]

        def strike(_: bytes, seen: list[int] = seen, cuts: list[int] = cuts, number: int = number) -> None:
            seen[0] += 1
            if cuts[0] and seen[0] == number:
                seen[0], cuts[0] = 0, cuts[0] - 1
                wire.drop()
                raise OSError("cut")

        setattr(wire, f"on_{what}", strike)
        yield cuts
        wire.mend()
        if cuts[0]:
            return


@pytest.mark.parametrize(("what", "tries"), [("request", 2), ("answer", 1), ("answer", 2)])
def test_an_accepted_commit_is_stored_and_a_failed_one_is_whole_or_not_there(
    direct: SqlGroups, cut_off: Callable[[], SqlGroups], wire: TcpProxy, what: str, tries: int
) -> None:
    offset, failed = 1, 0
    for _ in struck(wire, what, tries):
        before, offset = (at(offset), at(offset, 1)), offset + 1
        after = (at(offset), at(offset, 1))
        try:
            assert cut_off().commit(after, ALPHA) == frozenset()
        except CoordinationError:
            failed += 1
            assert direct.positions() in (before, after)
            assert cut_off().commit(after, ALPHA) == frozenset(), "again, as a member does"
        assert direct.positions() == after
    assert (failed > 0) == (tries > 1)


@pytest.mark.parametrize(("what", "tries"), [("request", 1), ("answer", 2)])
def test_what_is_cut_off_overwrites_nothing_of_one_that_took_over_meanwhile(
    direct: SqlGroups, cut_off: Callable[[], SqlGroups], wire: TcpProxy, what: str, tries: int
) -> None:
    """Also not where its transaction goes on in the server after its connection has ended."""
    stored: tuple[Position, ...]
    for number, cuts in enumerate(struck(wire, what, tries)):
        for owner in (ALPHA, BETA):
            direct.leases.release(owner, NAMES)
        direct.leases.take([Lease(name, ALPHA, 10 * number + 1) for name in NAMES], {})
        slow = cut_off()
        try:
            slow.commit([at(5), at(5, 1)], ALPHA)
        except CoordinationError:
            assert not cuts[0]
        seen = {lease.name: lease for lease in direct.leases.leases()}
        assert direct.leases.take([Lease(name, BETA, 10 * number + 2) for name in NAMES], seen) == set(NAMES)
        assert direct.commit(stored := (at(9), at(9, 1)), BETA) == frozenset()
        assert slow.commit([at(6), at(6, 1)], ALPHA) == {LogId(ORDERS, 0), LogId(ORDERS, 1)}
        assert direct.positions() == stored
