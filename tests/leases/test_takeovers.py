"""What versions before the identity have stored, taken over by users with all rights, some, and none (C73)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from leases.test_groups import ALPHA, ORDERS, at
from lithify.errors import CoordinationError
from lithify.leases.database import engine_at
from lithify.leases.groups_sql import SqlGroups, open_groups
from lithify.leases.scopes import SCOPES
from lithify.leases.transactions import Transactions
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.groups.positions import GroupTopic
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
        with pytest.raises(CoordinationError, match=r"earlier version has stored.*cannot be taken over") as refused:
            open_groups(url, None, FOUND).positions()
        assert "may create tables" in str(refused.value)
    everything = server.uri(database)
    assert open_groups(everything, None, FOUND).positions() == (at(7),)
    with engine_at(everything).begin() as connection:
        assert connection.execute(SCOPES.select()).all() == [(PLACE, FOUND.name)]
        connection.execute(text("GRANT SELECT ON lithify_scopes TO narrow"))
    assert open_groups(url, None, FOUND).positions() == (at(7),)
