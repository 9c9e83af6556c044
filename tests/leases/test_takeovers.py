"""What versions before the identity have stored, taken over by users with all rights, some, and none (C73)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from leases.conftest import SHARED
from leases.test_groups import ALPHA, CLICKS, ORDERS, at
from leases.test_replicas import a_replica
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups, open_groups
from lithify.coordination.leases.lease_scopes import SCOPES
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.coordination.leases.replicas_sql import SqlReplicas, open_replicas
from lithify.errors import CoordinationError
from lithify.model.cursor import Cursor
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.groups.positions import GroupTopic, Position
from lithify.ports.leases import Lease
from support.servers.postgres import Postgres

PLACE = "file:///srv/lake"
FOUND = WarehouseScope("an-identity", PLACE, PLACE)
NAME = GroupTopic(PLACE, "g", ORDERS).partition(0)


def stored_before(url: str) -> None:
    before = SqlGroups(Transactions(engine_at(url)), PLACE)
    before.leases.take([Lease(NAME, ALPHA, 1)], {})
    assert before.commit([at(7)], ALPHA) == frozenset()


def test_an_sqlite_file_that_is_only_read_is_read_c73(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    stored_before(url)
    only_read = f"sqlite:///file:{tmp_path}/shared.db?mode=ro&uri=true"
    assert open_groups(only_read, None, FOUND).positions() == ()
    assert open_groups(url, None, FOUND).positions() == (at(7),)
    assert open_groups(only_read, None, FOUND).positions() == (at(7),)


@pytest.fixture
def user(server: Postgres, database: str) -> Callable[..., str]:
    """The URL of a user who may do what is granted, in a database where an earlier version has stored a position."""
    url = server.uri(database)
    stored_before(url)

    def made(*granted: str) -> str:
        with engine_at(url).begin() as connection:
            connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
            connection.execute(text("DROP ROLE IF EXISTS narrow"))
            connection.execute(text("CREATE ROLE narrow"))
            for grant in granted:
                connection.execute(text(f"GRANT {grant} TO narrow"))
        return f"{url}{'&' if '?' in url else '?'}options=-c%20role%3Dnarrow"

    return made


def test_a_user_who_only_reads_takes_nothing_over_c73(user: Callable[..., str]) -> None:
    assert open_groups(user("SELECT ON ALL TABLES IN SCHEMA public"), None, FOUND).positions() == ()


def test_a_member_that_may_not_take_over_is_refused_and_does_not_begin_anew_c73(
    server: Postgres, database: str, user: Callable[..., str]
) -> None:
    url = user("ALL ON ALL TABLES IN SCHEMA public")
    for _ in range(2):
        with pytest.raises(CoordinationError, match=r"earlier version stored.*cannot be taken over") as refused:
            open_groups(url, None, FOUND).positions()
        assert "may create tables" in str(refused.value)
    everything = server.uri(database)
    assert open_groups(everything, None, FOUND).positions() == (at(7),)
    with engine_at(everything).begin() as connection:
        assert connection.execute(SCOPES.select()).all() == [(PLACE, FOUND.name)]
        connection.execute(text("GRANT SELECT ON lithify_scopes TO narrow"))
    assert open_groups(url, None, FOUND).positions() == (at(7),)


LINK = "file:///mnt/link/lake"


def stored_as(url: str, scope: str, *positions: Position) -> None:
    groups = SqlGroups(Transactions(engine_at(url)), scope)
    names = [GroupTopic(scope, p.group, p.log.topic).partition(p.log.partition) for p in positions]
    groups.leases.take([Lease(name, ALPHA, 1) for name in names], {})
    assert groups.commit(positions, ALPHA) == frozenset()


def deleted(groups: SqlGroups, group: str) -> None:
    logs = [p.log for p in groups.positions(group)]
    names = [GroupTopic(groups.scope, group, log.topic).partition(log.partition) for log in logs]
    groups.leases.take([Lease(name, ALPHA, 1) for name in names], {})
    assert groups.delete(group, logs, ALPHA) == frozenset()


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_a_deleted_group_does_not_come_back_by_another_spelling_of_the_place_c73(url: str) -> None:
    """By whichever spelling it was read before, and that is taken over only after the deletion."""
    others = at(3, group="other"), at(4, topic=CLICKS)
    stored_as(url, PLACE, at(7))
    stored_as(url, LINK, at(5), at(6, 1), *others)
    stored_as(url, "file:///another/lake", of_another := replace(at(8), cursor=Cursor("id2", 0, 8, 0)))
    deleted(open_groups(url, None, FOUND), "g")
    by_link = open_groups(url, None, WarehouseScope(FOUND.name, LINK, LINK))
    assert by_link.positions() == (others[1], others[0]), "what was not deleted is taken over"
    assert SqlGroups(Transactions(engine_at(url)), "file:///another/lake").positions() == (of_another,)
    assert SqlGroups(Transactions(engine_at(url)), PLACE).positions() == (at(7),), "of members of an earlier version"
    assert by_link.elsewhere("g", ORDERS, "id1") == ()


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_positions_under_a_lost_identity_or_a_place_that_was_not_taken_over_are_found_c73(url: str) -> None:
    assert open_groups(url, None, FOUND).elsewhere("g", ORDERS, "id1") == ()
    stored_as(url, PLACE, at(7))
    stored_as(url, LINK, at(5))
    found = open_groups(url, None, FOUND)
    assert found.elsewhere("g", ORDERS, "id1") == (LINK,), "the other one was taken over"
    made_anew = open_groups(url, None, WarehouseScope("another-identity", PLACE, PLACE))
    assert made_anew.positions() == ()
    assert made_anew.elsewhere("g", ORDERS, "id1") == (FOUND.name, LINK, PLACE)
    assert made_anew.elsewhere("g", ORDERS, "id2") == (FOUND.name,), "recreated, at a place that was taken over"
    assert made_anew.elsewhere("h", ORDERS, "id1") == made_anew.elsewhere("g", CLICKS, "id1") == ()
    elsewhere = open_groups(url, None, WarehouseScope("a-third", "file:///other/lake", "file:///other/lake"))
    assert elsewhere.elsewhere("g", ORDERS, "id2") == ()


@pytest.mark.parametrize("before", ["an earlier version", "this version"])
@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_replicas_under_a_lost_identity_are_told_until_one_is_defined_c73(url: str, before: str) -> None:
    anew, another = (WarehouseScope(name, place, place) for name, place in (("anew", PLACE), ("another", LINK)))
    assert open_replicas(url, None, FOUND).definitions() == ()
    if before == "an earlier version":
        assert SqlReplicas(Transactions(engine_at(url)), PLACE).add(a_replica(scope=PLACE))
    else:
        assert open_replicas(url, None, FOUND).add(a_replica(scope=FOUND.name))
    assert [one.scope for one in open_replicas(url, None, FOUND).definitions()] == [FOUND.name]
    with pytest.raises(CoordinationError, match=f"{FOUND.name}.*\n?.*A lost identity"):
        open_replicas(url, None, anew).definitions()
    assert open_replicas(url, None, another).definitions() == ()
    assert open_replicas(url, None, anew).add(a_replica("other", scope="anew"))
    assert open_replicas(url, None, anew).remove("other")
    assert open_replicas(url, None, anew).definitions() == ()
    assert [one.scope for one in open_replicas(url, None, FOUND).definitions()] == [FOUND.name]
