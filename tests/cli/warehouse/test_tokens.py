"""`token …`: whole outputs, the JSON contract, exit codes, and that a secret is printed once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lithify as package
from lithify.errors import RefusedError, WarehouseError
from lithify.model.access.tokens import parse_token


def test_create_list_and_revoke(lithify):
    created = lithify("token", "create", "alice", "--grant", "produce:shop", "--grant", "consume", "--expires", "1h")
    assert parse_token(created.out.removesuffix("\n")) is not None
    assert re.fullmatch(
        r"token alice: consume:\*, produce:shop; expires: 20\S+Z; it is printed only now:\n", created.err
    )
    listed = lithify("token", "list")
    token_id, secret = parse_token(created.out.strip())
    assert re.fullmatch(rf"NAME +ID +EXPIRES +GRANTS\nalice +{token_id} +20\S+Z +consume:\* produce:shop\n", listed.out)
    revoked = lithify("token", "revoke", "alice")
    assert (revoked.out, revoked.err) == ("", "token alice: revoked; gateways refuse it within 10 s\n")
    assert lithify("token", "list").err == "no tokens yet (`lithify token create NAME --grant ROLE` makes one)\n"
    for said in (created.err, listed.out, listed.err, revoked.err):
        assert secret[:16] not in said


def test_the_json_of_each(lithify):
    created = lithify("token", "create", "ci", "--grant", "admin:*", "--expires", "never", "--json").json
    assert parse_token(created.pop("token"))[0] == created["id"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*Z", created["created_at"])
    expected = {"name": "ci", "grants": ["admin:*"], "expires_at": None, "expired": False}
    assert {key: created[key] for key in expected} == expected and len(created) == 6
    assert lithify("token", "list", "--json").lines == [created]
    assert lithify("token", "revoke", "ci", "--json").json == created
    assert lithify("token", "list", "--json").lines == []


def test_a_token_expires_after_ninety_days_unless_it_is_said(lithify):
    given = lithify("token", "create", "a", "--grant", "look", "--json").json
    assert given["expires_at"] > given["created_at"]
    assert package.open(str(lithify.warehouse)).tokens().infos()[0].expires_at == given["expires_at"]


def test_what_is_refused(lithify):
    assert "there is no warehouse" in lithify.error("token", "list", code=1)
    assert not Path(lithify.warehouse).exists()
    lithify("token", "create", "alice", "--grant", "look")
    assert lithify.error("token", "create", "alice", "--grant", "look") == (
        "there is a token alice already (choose another name, or run `lithify token revoke alice`)"
    )
    assert "did you mean alice?" in lithify.error("token", "revoke", "alicia")
    assert "did you mean produce?" in lithify.error("token", "create", "b", "--grant", "produces:shop")
    assert "cannot name a token" in lithify.error("token", "create", "b c", "--grant", "look")
    assert "Missing option '--grant'" in lithify.error("token", "create", "b")
    assert "must be above zero" in lithify.error("token", "create", "b", "--grant", "look", "--expires", "0s")
    days = lithify.error("token", "create", "b", "--grant", "look", "--expires", "30")
    assert "30: the duration must be at least 1.0 s" in days
    assert [one["name"] for one in lithify("token", "list", "--json").lines] == ["alice"]


def test_the_token_of_the_api_is_shown_by_nothing_but_its_field(lithify):
    lithify("topic", "create", "orders")
    tokens = package.open(str(lithify.warehouse)).tokens()
    created = tokens.create("alice", ["admin"])
    secret = parse_token(created.token)[1]
    assert secret in str(created.to_json())
    for shown in (
        repr(created),
        str(created),
        created._repr_html_(),
        tokens.infos()._repr_html_(),
        repr(tokens.infos()),
    ):
        assert secret[:16] not in shown and "alice" in shown
    with pytest.raises(RefusedError, match=r"lake\.tokens\(\)\.revoke\('alice'"):
        tokens.create("alice", ["admin"])
    with pytest.raises(RefusedError, match="cannot expire in 0 ms"):
        tokens.create("bob", ["admin"], expires_ms=0)


def test_each_secret_is_another_one(lithify):
    tokens = package.open(str(lithify.warehouse)).tokens()
    texts = {tokens.create(f"t{n}", ["look"]).token for n in range(20)}
    assert len(texts) == len({parse_token(text)[0] for text in texts}) == 20


def test_a_lake_in_memory_has_none():
    from lithify.testing import memory_lake

    with pytest.raises((RefusedError, WarehouseError)):
        memory_lake().tokens().infos()
