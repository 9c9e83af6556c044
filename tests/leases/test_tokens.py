"""Tokens in the databases that gateways share: of one warehouse, once each, and hashed."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import make_url, select, text

from leases.conftest import SHARED
from lithify.coordination.leases.gateways import tokens_sql
from lithify.coordination.leases.gateways.tokens_sql import SqlTokens, open_tokens
from lithify.coordination.leases.tables.scram_keys import SCRAM_KEYS
from lithify.errors import CoordinationError, RefusedError
from lithify.model.access.roles import Grant, Role
from lithify.model.access.scram import scram_keys
from lithify.model.access.tokens import Token, hashed
from lithify.model.formats.warehouse_scope import WarehouseScope

ALICE = Token("alice", "00000000000000aa", hashed("a"), (Grant(Role.PRODUCE, "shop"), Grant(Role.ADMIN)), 5, 10)
BOB = Token("bob", "00000000000000bb", hashed("b"), (Grant(Role.LOOK, "mapr.%2Fa"),), 6, None)
LAKE = WarehouseScope("identity-1", "file:///lake", "file:///lake")


@pytest.fixture
def tokens(url, tmp_path) -> SqlTokens:
    (tmp_path / "leases.db").touch()
    return open_tokens(url, None, LAKE)


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_tokens_are_stored_listed_and_removed(url, tokens):
    assert tokens.all() == ()
    tokens.remove("alice")
    assert tokens.add(BOB) and tokens.add(ALICE)
    assert open_tokens(url, None, LAKE).all() == (ALICE, BOB)
    tokens.remove("alice")
    assert tokens.all() == (BOB,)


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_a_name_is_given_once_also_to_two_at_the_same_moment(url, tokens):
    several = [replace(ALICE, id=f"{n:016x}") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda token: open_tokens(url, None, LAKE).add(token), several))
    assert added.count(True) == 1
    assert tokens.all() == (several[added.index(True)],)
    assert tokens.add(several[added.index(True)])  # the very same one again: its answer was lost


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_a_token_is_of_one_warehouse(url, tokens):
    other = open_tokens(url, None, WarehouseScope("identity-2", "file:///other", "file:///other"))
    assert tokens.add(ALICE) and other.add(replace(ALICE, secret_sha256=hashed("other")))
    other.remove("alice")
    assert (tokens.all(), other.all()) == ((ALICE,), ())


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_there_are_not_more_than_a_gateway_has_memory_for(monkeypatch, tokens):
    monkeypatch.setattr(tokens_sql, "TOKENS_AT_MOST", 1)
    assert tokens.add(ALICE)
    with pytest.raises(RefusedError, match="1 tokens already"):
        tokens.add(BOB)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("column", "value"),
    [("grants", ""), ("grants", "root:*"), ("grants", "look"), ("grants", "look:"), ("expires_ms", "x")],
)
def test_an_edited_row_is_an_error_that_names_it(tokens, tmp_path, column, value):
    assert tokens.add(ALICE)
    with closing(sqlite3.connect(tmp_path / "leases.db")) as other:
        other.execute(f"UPDATE lithify_tokens SET {column} = ?", (value,))
        other.commit()
    with pytest.raises(CoordinationError, match=f"lithify_tokens with scope 'identity-1'.* its {column} is"):
        tokens.all()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_only_a_hash_is_stored(tokens, tmp_path):
    assert tokens.add(replace(ALICE, secret_sha256=hashed("f0" * 32)))
    assert b"f0" * 32 not in (tmp_path / "leases.db").read_bytes()


def test_without_a_shared_database_there_are_none():
    with pytest.raises(RefusedError, match=r"tokens need an SQL database.*coordination_url"):
        open_tokens(None, None, LAKE)


def test_a_file_that_is_not_there_is_not_created_by_reading(tmp_path):
    tokens = open_tokens(f"sqlite:///{tmp_path}/wrong.db", None, LAKE)
    with pytest.raises(CoordinationError, match="does not exist"):
        tokens.all()
    assert list(tmp_path.iterdir()) == []


def with_keys(token: Token) -> Token:
    return replace(token, scram=scram_keys(token.id, token.name))


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_what_scram_needs_of_a_token_is_stored_and_removed_with_it(url, tokens):
    alice, carol = with_keys(ALICE), replace(with_keys(BOB), name="carol", id="00000000000000cc")
    assert tokens.add(BOB)  # as an earlier version stores it: there is no other table yet
    assert tokens.all() == (BOB,)
    assert tokens.add(alice) and tokens.add(carol)
    assert open_tokens(url, None, LAKE).all() == (alice, BOB, carol)
    tokens.remove("alice")
    assert tokens.all() == (BOB, carol)
    with open_tokens(url, None, LAKE)._transactions._engine.connect() as connection:
        assert [row.token_id for row in connection.execute(select(SCRAM_KEYS))] == [carol.id]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_gateway_that_may_not_read_what_scram_needs_reads_the_tokens(url, server, tokens):
    assert tokens.add(with_keys(ALICE))
    reader = f"reader_{url.rpartition('/')[2]}"
    with tokens._transactions._engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {reader} LOGIN PASSWORD 'x'"))
        connection.execute(text(f"GRANT SELECT ON lithify_tokens TO {reader}"))
    try:
        theirs = make_url(url).set(username=reader, password="x").render_as_string(hide_password=False)
        assert open_tokens(theirs, None, LAKE).all() == (ALICE,)
    finally:
        with tokens._transactions._engine.begin() as connection:
            connection.execute(text(f"DROP OWNED BY {reader}"))
            connection.execute(text(f"DROP ROLE {reader}"))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("value", ["", "ab", "x" * 64, "A" * 64])
def test_an_edited_key_is_an_error_that_names_its_row(tokens, tmp_path, value):
    assert tokens.add(with_keys(ALICE))
    with closing(sqlite3.connect(tmp_path / "leases.db")) as other:
        other.execute("UPDATE lithify_token_scram SET sha256_stored_key = ?", (value,))
        other.commit()
    with pytest.raises(CoordinationError, match=r"lithify_token_scram with scope .* its sha256_stored_key is"):
        tokens.all()
