"""The server's side of SCRAM: the RFC's own example, and a client that others wrote."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lithify.kafka_server.logins import scram
from lithify.kafka_server.logins.scram import Challenge, ScramError, challenge
from lithify.model.access.scram import ITERATIONS, KeyPair, Mechanism, key_pair, salt_of, scram_keys
from support.kafka.scram_client import AioKafka

TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=100)
NONCES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1, max_size=40)
NOBODY = KeyPair(bytes(32), bytes(32))


def keys_of(mechanism: Mechanism, user: str, password: str) -> KeyPair:
    return key_pair(mechanism, password, salt_of(user), ITERATIONS)


def test_the_example_of_the_rfc(monkeypatch):
    """RFC 7677, section 3."""
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    monkeypatch.setattr(scram, "salt_of", lambda _user: salt)
    sent = challenge(Mechanism.SHA_256, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert sent.sent == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    last = f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    pair = key_pair(Mechanism.SHA_256, "pencil", salt, 4096)
    assert sent.answered(last, pair) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("repeated", ["rOprNGfwEbeRWgbNEkqO", ""])
def test_a_client_may_repeat_its_nonce_before_the_whole_one_as_librdkafka_did(repeated):
    password, mechanism = "pencil", Mechanism.SHA_256
    asked = challenge(mechanism, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "more")
    client_key = mechanism.hmac(pbkdf2_hmac("sha256", password.encode(), salt_of("user"), ITERATIONS), b"Client Key")
    unproved = f"c=biws,r={repeated}{asked.nonce}"
    signed = f"n=user,r=rOprNGfwEbeRWgbNEkqO,{asked.sent},{unproved}".encode()
    signature = mechanism.hmac(mechanism.digest(client_key), signed)
    proof = b64encode(bytes(one ^ other for one, other in zip(client_key, signature, strict=True)))
    pair = keys_of(mechanism, "user", password)
    assert asked.answered(unproved.encode() + b",p=" + proof, pair) == (
        b"v=" + b64encode(mechanism.hmac(pair.server_key, signed))
    )
    with pytest.raises(ScramError, match="does not belong"):
        asked.answered(unproved.encode() + b"x,p=" + proof, pair)


@settings(max_examples=20)
@given(user=TEXTS, password=TEXTS, wrong=TEXTS, nonce=NONCES)
@pytest.mark.parametrize("mechanism", [*Mechanism])
def test_the_client_of_aiokafka_proves_its_password_and_no_other(mechanism, user, password, wrong, nonce):
    assume(wrong != password and not user.startswith("lithify_"))
    pair = keys_of(mechanism, user, password)
    right, stranger = AioKafka(mechanism.value, user, password), AioKafka(mechanism.value, user, wrong)
    asked = challenge(mechanism, right.first(), nonce)
    assert asked.user == user
    right.check(asked.answered(right.last(asked.sent), pair))
    other = challenge(mechanism, stranger.first(), nonce)
    with pytest.raises(ScramError, match="the proof of SCRAM is wrong"):
        other.answered(stranger.last(other.sent), pair)


@pytest.mark.parametrize("mechanism", [*Mechanism])
@pytest.mark.parametrize("user", ["00000000000000aa", "lithify_00000000000000aa"])
def test_the_user_is_the_id_of_a_token_or_the_begin_of_its_text(mechanism, user):
    keys = scram_keys("00000000000000aa", "lithify_00000000000000aa_secret")
    client = AioKafka(mechanism.value, user, "lithify_00000000000000aa_secret")
    asked = challenge(mechanism, client.first(), "more")
    assert asked.user == "00000000000000aa"
    client.check(asked.answered(client.last(asked.sent), keys.of(mechanism)))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "malformed"),
        (b"n,,n=user", "malformed"),
        (b"n,,n=,r=abc", "malformed"),
        (b"n,,n=us=er,r=abc", "malformed"),
        (b"n,,m=must,n=user,r=abc", "malformed"),
        (b"p=tls-unique,,n=user,r=abc", "channel binding"),
        (b"x,,n=user,r=abc", "malformed"),
        (b"n,,n=user,r=a b", "malformed"),
        (b"n,,n=us\0er,r=abc", "malformed"),
        (b"n,,n=user,r=abc\n", "malformed"),
        (b"n,a=admin,n=user,r=abc", "act for another"),
        (b"n,,n=user,r=abc,tokenauth=true", "delegation tokens"),
        (b"n,,n=user,r=abc,x=y,tokenauth=TRUE", "delegation tokens"),
        (b"n,,n=\xff,r=abc", "UTF-8"),
        (b"n,,n=user,r=" + b"a" * 65_536, "at most"),
        (b"\0any\0lithify_00_secret", "malformed"),
    ],
)
def test_first_messages_that_are_refused(sent, why):
    with pytest.raises(ScramError, match=why):
        challenge(Mechanism.SHA_256, sent, "more")


@pytest.mark.parametrize(
    "first", [b"n,a=user,n=user,r=abc", b"y,,n=user,r=abc", b"n,,n=user,r=abc,x=y,tokenauth=false"]
)
def test_first_messages_that_are_taken(first):
    assert challenge(Mechanism.SHA_512, first, "more").nonce == "abcmore"


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "malformed"),
        (b"c=biws,r=abcmore", "malformed"),
        (b"c=biws,p=AAAA,r=abcmore", "malformed"),
        (b"c=biws,r=abcmore,p=AA!A", "malformed"),
        (b"c=biws,r=abcmore,p=AAAAA", "base64"),
        (b"c=b,r=abcmore,p=AAAA", "base64"),
        (b"c=biws,r=abcmore,p=AAAA", "another length"),
        (b"c=biws,r=abcmore,p=", "another length"),
        (b"c=biws,r=abc,p=AAAA", "does not belong"),
        (b"c=biws,r=abcmor,p=AAAA", "does not belong"),
        (b"c=eSws,r=abcmore,p=AAAA", "does not belong"),  # y,, instead of n,,
        (b"c=biws,r=abcmore,p=" + b"A" * 43 + b"=", "is wrong"),
        (b"c=biws,r=abcmore,p=" + b"A" * 65_536, "at most"),
    ],
)
def test_last_messages_that_are_refused(sent, why):
    asked = challenge(Mechanism.SHA_256, b"n,,n=user,r=abc", "more")
    with pytest.raises(ScramError, match=why):
        asked.answered(sent, keys_of(Mechanism.SHA_256, "user", "pencil"))


@given(data=st.binary(max_size=200) | st.text("nyap=,rc+/A \0é", max_size=60).map(str.encode))
@example(b"c=biws,r=abcmore,p=" + b"A" * 43 + b"=")
def test_whatever_comes_is_refused_and_nothing_else_happens(data):
    asked = challenge(Mechanism.SHA_256, b"n,,n=user,r=abc", "more")
    with pytest.raises(ScramError):
        asked.answered(data, NOBODY)
    try:
        made: Any = challenge(Mechanism.SHA_512, data, "more")
    except ScramError:
        return
    assert isinstance(made, Challenge)


def test_a_proof_counts_for_its_own_challenge_only():
    client = AioKafka("SCRAM-SHA-256", "user", "pencil")
    first, pair = client.first(), keys_of(Mechanism.SHA_256, "user", "pencil")
    asked = challenge(Mechanism.SHA_256, first, "more")
    last = client.last(asked.sent)
    asked.answered(last, pair)
    with pytest.raises(ScramError, match="does not belong"):
        challenge(Mechanism.SHA_256, first, "other").answered(last, pair)
