"""Logins by SCRAM over real sockets: the order of messages, and what those who fail are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lithify.errors import CoordinationError
from lithify.kafka_server.requests.context import Known
from lithify.model.access.scram import Mechanism, scram_keys
from lithify.testing import memory_lake
from support.kafka.scram_client import AioKafka
from support.kafka.served import Everyone, OpenLogins, ServedLake, serving_kafka
from support.kafka.wire import WireClient

METADATA, HANDSHAKE, API_VERSIONS, AUTHENTICATE = 3, 17, 18, 36
ID, TOKEN = "00000000000000aa", "lithify_00000000000000aa_secret"
KEYS = scram_keys(ID, TOKEN)
WRONG = (
    "the user is not the id of a token, the password is not that token, "
    "or it was created before SCRAM was supported: create another token, or use PLAIN"
)


@pytest.fixture
def logins() -> OpenLogins:
    alice = Everyone("alice")
    users = {ID: lambda mechanism: Known(alice, KEYS.of(mechanism)), "old": lambda _mechanism: Known(alice, None)}
    return OpenLogins(None, {TOKEN: alice}, users)


@pytest.fixture
def served(logins: OpenLogins) -> Iterator[ServedLake]:
    with serving_kafka(memory_lake(), logins) as one:
        yield one


def challenged(client: WireClient, mechanism: str, user: str, password: str) -> tuple[AioKafka, dict[str, Any]]:
    """A client of SCRAM, and what it is sent for its first message."""
    scram = AioKafka(mechanism, user, password)
    assert client.ask(HANDSHAKE, 1, mechanism=mechanism)["error_code"] == 0
    return scram, client.ask(AUTHENTICATE, 2, auth_bytes=scram.first())


@pytest.mark.parametrize("mechanism", [*Mechanism])
@pytest.mark.parametrize("user", [ID, f"lithify_{ID}"])
def test_a_client_proves_that_it_has_its_token(served, mechanism, user):
    with served.client() as client:
        scram, answer = challenged(client, mechanism.value, user, TOKEN)
        last = client.ask(AUTHENTICATE, 2, auth_bytes=scram.last(answer["auth_bytes"].decode()))
        scram.check(last["auth_bytes"])
        assert (last["error_code"], last["session_lifetime_ms"]) == (0, 0)
        assert client.ask(METADATA, 12, topics=None)["topics"] == []
    assert (served.closed, served.logins.failures) == ([], 0)


@pytest.mark.parametrize(
    ("user", "reason"),
    [(ID, WRONG), ("nobody", WRONG), ("old", "no keys of SCRAM can be read for the token of alice")],
)
def test_who_has_no_such_token_cannot_tell_whether_there_is_one(served, user, reason):
    with served.client() as client:
        scram, answer = challenged(client, "SCRAM-SHA-512", user, "lithify_00000000000000aa_wrong")
        assert (answer["error_code"], len(answer["auth_bytes"])) == (0, len("r=more,s=,i=4096") + 32 + 24)
        told = client.ask(AUTHENTICATE, 2, auth_bytes=scram.last(answer["auth_bytes"].decode()))
        assert (told["error_code"], told["error_message"], told["auth_bytes"]) == (58, WRONG, b"")
        assert client.is_closed()
    assert (served.closed, served.logins.failures) == ([reason], 1)


def test_the_same_name_gets_the_same_salt_each_time(served):
    sent = []
    for _ in range(2):
        with served.client() as client:
            sent.append(challenged(client, "SCRAM-SHA-256", "nobody", "x")[1]["auth_bytes"].partition(b",")[2])
    assert sent[0] == sent[1]


@pytest.mark.parametrize(
    "sent", [b"", b"n,,n=user", b"p=tls-unique,,n=user,r=abc", b"n,,n=u,r=a,tokenauth=true", b"x" * 60_000]
)
def test_a_malformed_message_is_told_and_closes_the_connection(served, sent):
    with served.client() as client:
        client.ask(HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
        told = client.ask(AUTHENTICATE, 2, auth_bytes=sent)
        assert (told["error_code"], told["error_message"]) == (58, served.closed[-1])
        assert client.is_closed()
    assert served.logins.failures == 1


def test_messages_in_another_order_are_refused(served):
    with served.client() as client:
        assert client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0" + TOKEN.encode())["error_code"] == 34
        scram, answer = challenged(client, "SCRAM-SHA-256", ID, TOKEN)
        assert client.ask(HANDSHAKE, 1, mechanism="PLAIN")["error_code"] == 34
        last = scram.last(answer["auth_bytes"].decode())
        assert client.ask(AUTHENTICATE, 2, auth_bytes=last)["error_code"] == 0
        assert client.ask(AUTHENTICATE, 2, auth_bytes=last)["error_code"] == 34
        assert client.ask(HANDSHAKE, 1, mechanism="PLAIN")["error_code"] == 34  # no second login (KIP-368)
        assert client.ask(METADATA, 12, topics=None)["topics"] == []
    with served.client() as client:
        challenged(client, "SCRAM-SHA-256", ID, TOKEN)
        assert client.ask(AUTHENTICATE, 2, auth_bytes=scram.first())["error_code"] == 58
        assert client.is_closed()
    with served.client() as client:  # one that is recorded proves nothing to another connection
        served.logins.nonce = "other"
        scram, _ = challenged(client, "SCRAM-SHA-256", ID, TOKEN)
        assert client.ask(AUTHENTICATE, 2, auth_bytes=last)["error_code"] == 58


def test_the_first_version_of_a_handshake_is_told_as_a_broker_tells_it_but_not_answered(served):
    with served.client() as client:
        rows = client.ask(API_VERSIONS, 4, client_software_name="test", client_software_version="1")["api_keys"]
        assert [(row["min_version"], row["max_version"]) for row in rows if row["api_key"] == HANDSHAKE] == [(0, 1)]
        client.send(HANDSHAKE, 0, mechanism="PLAIN")
        assert client.is_closed()


def test_a_login_that_cannot_be_looked_up_is_not_told_as_wrong(served, logins):
    def lost(*_: object) -> Any:
        raise CoordinationError("the database is away")

    logins.users[ID] = lost
    with served.client() as client:
        scram, answer = challenged(client, "SCRAM-SHA-256", ID, TOKEN)
        client.send(AUTHENTICATE, 2, auth_bytes=scram.last(answer["auth_bytes"].decode()))
        assert client.is_closed()
    assert (served.closed, served.logins.failures) == (["tokens cannot be looked up now"], 0)


def test_who_fails_too_often_is_told_so(served):
    served.logins.failures_at_most = 1
    told = []
    for _ in range(2):
        with served.client() as client:
            client.ask(HANDSHAKE, 1, mechanism="PLAIN")
            told.append(client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0wrong")["error_message"])
    assert told == [
        "the password is not a valid token",
        "127.0.0.1 has failed to authenticate too often: check what this machine sends",
    ]
    with served.client() as client:
        client.ask(HANDSHAKE, 1, mechanism="PLAIN")
        assert client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0" + TOKEN.encode())["error_code"] == 0


def test_a_request_without_a_login_counts_as_a_failure(served):
    with served.client() as client:
        client.send(METADATA, 12, topics=None)
        assert client.is_closed()
    assert served.logins.failures == 1
