"""Roles and tokens: what includes what, and which texts are some."""

from __future__ import annotations

import pytest

from lithify.errors import InvalidNameError, RefusedError
from lithify.errors.redaction import error_text
from lithify.model.access.roles import ALL, Grant, Role, allows, parse_grant
from lithify.model.access.tokens import Token, checked_grants, checked_name, hashed, parse_token, token_text

INCLUDED = {
    Role.LOOK: {Role.LOOK},
    Role.CONSUME: {Role.CONSUME, Role.LOOK},
    Role.PRODUCE: {Role.PRODUCE, Role.LOOK},
    Role.TOPIC: {Role.TOPIC, Role.LOOK},
    Role.ADMIN: set(Role),
}


@pytest.mark.parametrize("role", Role)
def test_what_a_role_includes(role):
    assert {asked for asked in Role if allows([Grant(role, "shop")], asked, "shop")} == INCLUDED[role]
    assert not any(allows([Grant(role, "shop")], asked, other) for asked in Role for other in ("shops", "", ALL))
    assert {asked for asked in Role if allows([Grant(role)], asked, "shop")} == INCLUDED[role]
    assert {asked for asked in Role if allows([Grant(role)], asked, ALL)} == INCLUDED[role]


def test_several_grants_allow_what_each_does_and_none_allows_nothing():
    grants = [Grant(Role.CONSUME, "shop"), Grant(Role.PRODUCE, "audit")]
    assert allows(grants, Role.LOOK, "audit") and not allows(grants, Role.CONSUME, "audit")
    assert not allows([], Role.LOOK, "shop")


@pytest.mark.parametrize(
    ("text", "grant", "shown"),
    [
        ("produce:shop", Grant(Role.PRODUCE, "shop"), "produce:shop"),
        ("admin", Grant(Role.ADMIN), "admin:*"),
        ("look:*", Grant(Role.LOOK), "look:*"),
        ("consume:persistent://shop/eu", Grant(Role.CONSUME, "pulsar.shop.eu"), "consume:persistent://shop/eu"),
        ("topic:/apps/clicks", Grant(Role.TOPIC, "mapr.%2Fapps%2Fclicks"), "topic:/apps/clicks"),
    ],
)
def test_a_grant_as_people_write_it(text, grant, shown):
    assert (parse_grant(text), str(grant), parse_grant(str(grant))) == (grant, shown, grant)


@pytest.mark.parametrize("text", ["", "shop", ":shop", "Produce:shop", "produce :shop", "produce,admin:shop", "*:*"])
def test_what_is_no_grant(text):
    with pytest.raises(RefusedError, match="is not a grant"):
        parse_grant(text)


@pytest.mark.parametrize("text", ["produce:", "produce:a/b", "produce:a b", "produce:..", "produce:*a", "look: *"])
def test_what_is_no_stream(text):
    with pytest.raises(InvalidNameError):
        parse_grant(text)


def test_a_token_has_at_least_one_grant_and_not_very_many():
    assert checked_grants([Grant(Role.LOOK, "b"), Grant(Role.LOOK, "a"), Grant(Role.LOOK, "b")]) == (
        Grant(Role.LOOK, "a"),
        Grant(Role.LOOK, "b"),
    )
    with pytest.raises(RefusedError, match="without a grant"):
        checked_grants([])
    with pytest.raises(RefusedError, match="at most 64"):
        checked_grants(Grant(Role.LOOK, f"s{n}") for n in range(65))


@pytest.mark.parametrize("name", ["", "a b", "a\n", "a" * 101, "ä", "a/b", "\u0661"])
def test_what_cannot_name_a_token(name):
    with pytest.raises(InvalidNameError):
        checked_name(name)
    assert checked_name("alice@example.org") == "alice@example.org"


ID, SECRET = "0123456789abcdef", "f0" * 32


def test_a_token_is_its_text_and_nothing_near_to_it():
    text = token_text(ID, SECRET)
    assert parse_token(text) == (ID, SECRET)
    near = [text[:-1], text + "0", text.upper(), f" {text}", f"{text}\n", text.replace("0", "\u0660"), ""]
    assert [parse_token(one) for one in near] == [None] * len(near)


def test_a_token_accepts_its_secret_until_it_expires():
    token = Token("alice", ID, hashed(SECRET), (), 0, 1_000)
    assert token.accepts(SECRET)
    assert not any(map(token.accepts, ["", SECRET[:-1], token.secret_sha256, "0" * 64, "\u0661"]))
    assert [token.is_expired(now_ms) for now_ms in (999, 1_000, 2_000)] == [False, True, True]
    assert not Token("bob", ID, hashed(SECRET), (), 0, None).is_expired(2**62)


def test_no_error_shows_the_secret_of_a_token():
    text = token_text(ID, SECRET)
    for told in (text, f"sent {text[:40]}…", f"(Bearer {text})", text.upper()):
        shown = error_text(f"the header is {told}")
        assert SECRET[:10] not in shown.lower() and (ID in shown.lower() or "Bearer ***" in shown)
